/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.h - who may talk to us at all: by the name they call us, the page they come from, the key.
 *
 * Without keys, being on this machine is the only credential, and a browser on this machine runs
 * everybody's pages. So a foreign page must not reach us in its own name (Origin, Sec-Fetch-Site),
 * nor by making its own name point at 127.0.0.1 (Host).
 */
#ifndef RT_SERVER_GUARD_H
#define RT_SERVER_GUARD_H

#include "server/http.h"

typedef struct guard_rules {
    bool is_local;                 /* no keys: Host must be of this machine */
    const rt_str *allowed_origins; /* "https://app.example.com" */
    size_t allowed_origin_count;
    const rt_str *allowed_hosts;
    size_t allowed_host_count;
    rt_str public_url;
} guard_rules;

typedef struct guard_visit {
    rt_str host, origin, fetch_site; /* headers; {NULL, 0}: not sent */
    bool is_page;                    /* something a link may lead to */
} guard_visit;

/* RT_DENIED says what was wrong and which setting would allow it. */
bool guard_check(const guard_rules *rules, const guard_visit *visit, rt_error *err);

/* Is this an origin whose pages may read our answers? (For CORS headers.) */
bool guard_is_allowed_origin(const guard_rules *rules, rt_str origin);

/* "Name:8002", "[::1]:8002" to its parts; false: it is no authority. */
bool guard_split_host(rt_str header, rt_str *name, rt_str *port);
bool guard_is_loopback(rt_str name);

/* -- Keys -------------------------------------------------------------------------------------- */

typedef struct guard_keyring guard_keyring;

guard_keyring *guard_keyring_new(rt_store *store);
void guard_keyring_free(guard_keyring *ring);
void guard_keyring_forget(guard_keyring *ring); /* a key was revoked */

/* The key of a secret, from memory when it was looked up less than a second ago. RT_DENIED: it is
 * none, or no longer. RT_LIMIT: too many wrong ones from this address; *retry_after_ms says when.
 */
bool guard_keyring_find(guard_keyring *ring, rt_str secret, rt_str address, rt_arena *arena,
                        rt_key *out, uint64_t *retry_after_ms, rt_error *err);

#endif
