/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbound.c - what may leave, and who looks through it first.
 */
#include "base/outbound.h"

#include <assert.h>
#include <string.h>

static rt_outbound_scrub scrub_with;

void rt_outbound_scrub_set(rt_outbound_scrub scrub)
{
    scrub_with = scrub;
}

bool rt_outbound_scrub_nothing(rt_str json, const rt_str *exempt, size_t exempt_count, rt_buf *out,
                               rt_error *err)
{
    (void)exempt, (void)exempt_count;
    rt_buf_add(out, json);
    return rt_buf_ok(out, err);
}

bool rt_outbound_clear(rt_outbound *parcel, rt_outbound_kind kind, rt_str body,
                       const rt_str *exempt, size_t exempt_count, rt_error *err)
{
    parcel->is_cleared = false;
    rt_buf_reset(&parcel->held);
    if (kind != RT_OUTBOUND_DATA) {
        parcel->bytes = body;
        return parcel->is_cleared = true;
    }
    if (!scrub_with)
        return rt_fail(err, RT_DENIED, "nobody looks through what is sent to other services");
    if (!scrub_with(body, exempt, exempt_count, &parcel->held, err))
        return rt_wrap(err, "look through what is to be sent");
    parcel->bytes = rt_buf_str(&parcel->held);
    return parcel->is_cleared = true;
}

rt_str rt_outbound_bytes(const rt_outbound *parcel)
{
    assert(parcel->is_cleared);
    return parcel->bytes;
}

void rt_outbound_done(rt_outbound *parcel)
{
    rt_buf_done(&parcel->held);
    *parcel = (rt_outbound){ 0 };
}
