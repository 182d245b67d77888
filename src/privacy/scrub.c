/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub.c - redaction on the way out of the house: to other services, and into the log.
 *
 * Ids and moments are numbers of many digits, so S0's lenient rules (any 16 digits are a card) are
 * left out here: they would spoil every span.
 */
#include "privacy/privacy_internal.h"

bool rt_privacy_scrub(rt_str json, const rt_str *exempt, size_t exempt_count, rt_buf *out,
                      rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_privacy_mask mask = { .mode = RT_PRIVACY_REDACT,
                             .is_strict = true,
                             .masks_keys = true,
                             .exempt = exempt,
                             .exempt_count = exempt_count };
    rt_json doc;
    return rt_json_parse(json, &arena, &doc, err) &&
           rt_privacy_mask_json(doc, &mask, out, NULL, err);
}

/* Addresses of hosts are what an operator reads the log for; URLs are masked with credentials only.
 */
size_t rt_privacy_scrub_line(rt_str line, char *out, size_t max)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_privacy_mask mask = { .mode = RT_PRIVACY_REDACT,
                             .is_strict = true,
                             .scan = { .types = RT_PII_USUAL & ~RT_PII_BIT(RT_PII_IP) } };
    rt_error err = { 0 };
    if (!rt_privacy_mask_text(line, &mask, &text, NULL, &err)) {
        rt_buf_reset(&text);
        rt_buf_add(&text, RT_STR("[a line that could not be looked through]"));
    }
    size_t len = RT_MIN(text.len, max);
    memcpy(out, rt_buf_str(&text).ptr, len);
    return len;
}
