/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts.h - organisations, workspaces, users, and the keys that speak for them.
 *
 * Promise: a key is 32 random bytes shown once; the store keeps its SHA-256 and a few first
 * characters to tell it by. A revoked or expired key stops working at once on this node, and within
 * a second on the others.
 */
#ifndef RT_STORE_ACCOUNTS_H
#define RT_STORE_ACCOUNTS_H

#include "store/db.h"

/* What a role may do, each including the one before. */
typedef enum rt_role {
    RT_ROLE_NONE,
    RT_ROLE_VIEWER, /* read records */
    RT_ROLE_MEMBER, /* run code, keep sessions */
    RT_ROLE_ADMIN,  /* keys, erasure, export, retention of their organisation */
    RT_ROLE_OWNER,  /* the operator: every organisation */
} rt_role;

const char *rt_role_name(rt_role role); /* "member" */
bool rt_role_parse(rt_str text, rt_role *out, rt_error *err);

#define RT_LOCAL_ORGANISATION "local" /* made by the first migration, with a workspace and a user */
#define RT_LOCAL_WORKSPACE    "local"
#define RT_LOCAL_USER         "local"

typedef struct rt_key_spec {
    rt_str name;
    rt_str organisation, workspace, user; /* ids or new names; made when they do not exist */
    rt_role role;
    uint64_t expires_ms;       /* 0: never */
    uint64_t rate_per_minute;  /* 0: the server's default */
    uint64_t max_body_bytes;   /* 0: the server's default */
    double budget_usd_month;   /* 0: none */
} rt_key_spec;

typedef struct rt_key {
    rt_str id, name, prefix;
    rt_str organisation_id, workspace_id, user_id;
    rt_role role;
    uint64_t created_ms, expires_ms, revoked_ms, last_used_ms;
    uint64_t rate_per_minute, max_body_bytes;
    double budget_usd_month;
} rt_key;

/* *secret is "rt_<43 characters>": the only time anybody sees it. */
bool rt_key_create(rt_store *store, const rt_key_spec *spec, rt_arena *arena, rt_key *out,
                   rt_str *secret, rt_error *err);
/* RT_DENIED for a key that is unknown, revoked or expired; does not tell which. */
bool rt_key_find(rt_store *store, rt_str secret, rt_arena *arena, rt_key *out, rt_error *err);
bool rt_key_list(rt_store *store, rt_str organisation_id, rt_arena *arena, rt_key **rows,
                 size_t *count, rt_error *err);
bool rt_key_revoke(rt_store *store, rt_str organisation_id, rt_str id, uint64_t now_ms,
                   rt_error *err);
bool rt_key_count(rt_store *store, uint64_t *out, rt_error *err); /* that work now */
/* Whether there ever was one: from then on nobody comes in without. */
bool rt_key_was_made(rt_store *store, bool *out, rt_error *err);
bool rt_key_touch(rt_store *store, rt_str id, uint64_t now_ms, rt_error *err);

#endif
