/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.c - one message to a receiver of the operator's. */
#include "telemetry/telemetry_internal.h"

bool rt_webhook_send(rt_str url, rt_str json, uint64_t timeout_ms, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_outbound parcel RT_CLEANUP(rt_outbound_done) = { 0 };
    telemetry_target target = { .url = rt_arena_copy(&arena, url), .timeout_ms = timeout_ms };
    telemetry_answer answer = { 0 };
    telemetry_post *post = NULL;
    _Atomic uint64_t never = 0;
    if (!telemetry_check_url(url, err) ||
        !rt_outbound_clear(&parcel, RT_OUTBOUND_DATA, json, NULL, 0, err) ||
        !telemetry_post_open(&target, &never, &post, err))
        return rt_wrap(err, "the webhook");
    telemetry_post_send(post, &parcel, &answer);
    telemetry_post_close(post);
    bool is_taken = answer.verdict == TELEMETRY_TAKEN;
    if (!is_taken)
        rt_fail(err, RT_UNAVAILABLE, "the webhook was not taken: %s", answer.text);
    rt_buf_done(&answer.body);
    return is_taken;
}
