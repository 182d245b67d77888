/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbound.h - the only door for what is sent to an outside service.
 *
 * Promise: bytes that an adapter hands to the network were cleared here first. Data about what
 * happens in this house is scrubbed of personal data, and refused when there is nobody to scrub it.
 * tests/privacy/test_outbound.py looks through the sources for a way around.
 *
 *     rt_outbound parcel RT_CLEANUP(rt_outbound_done) = { 0 };
 *     if (!rt_outbound_clear(&parcel, RT_OUTBOUND_DATA, body, NULL, 0, err))
 *         return rt_wrap(err, "the batch");
 *     rt_str bytes = rt_outbound_bytes(&parcel);           // for CURLOPT_POSTFIELDS
 *
 * Who scrubs lives upstairs: the program says so at its start.
 */
#ifndef RT_BASE_OUTBOUND_H
#define RT_BASE_OUTBOUND_H

#include "base/buf.h"
#include "base/error.h"

typedef enum rt_outbound_kind {
    RT_OUTBOUND_DATA,  /* JSON: telemetry, events, texts for a model, webhooks, code sent away */
    RT_OUTBOUND_TOOL,  /* a tool's call: what it may see was decided before (engine/protect.h) */
    RT_OUTBOUND_LOGIN, /* a form with credentials of ours, for who gave them to us */
} rt_outbound_kind;

typedef struct rt_outbound {
    rt_buf held;
    rt_str bytes;
    bool is_cleared;
} rt_outbound;

/* Appends the JSON text without personal data; members named in `exempt` stay as they are. */
typedef bool (*rt_outbound_scrub)(rt_str json, const rt_str *exempt, size_t exempt_count,
                                  rt_buf *out, rt_error *err);

/* Before there are threads. Until then, and with NULL, RT_OUTBOUND_DATA is refused. */
void rt_outbound_scrub_set(rt_outbound_scrub scrub);

/* For an operator who switched privacy off: everything stays as it is. */
bool rt_outbound_scrub_nothing(rt_str json, const rt_str *exempt, size_t exempt_count, rt_buf *out,
                               rt_error *err);

/* `body` is borrowed unless it is scrubbed. A parcel can be used again. */
bool rt_outbound_clear(rt_outbound *parcel, rt_outbound_kind kind, rt_str body,
                       const rt_str *exempt, size_t exempt_count, rt_error *err);
rt_str rt_outbound_bytes(const rt_outbound *parcel); /* of a cleared one */
void rt_outbound_done(rt_outbound *parcel);

#endif
