/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault.h - secrets at rest: AES-256-GCM under a key in a file of mode 0600.
 *
 * Promise: a key file others can read is refused, never repaired. A sealed text says nothing of its
 * content but its length; one that was changed, or sealed for another purpose, does not open. Keys
 * are wiped from memory when the vault closes, and kept out of core dumps and of children: a vault
 * must not be used after fork().
 */
#ifndef RT_STORE_VAULT_H
#define RT_STORE_VAULT_H

#include "store/db.h"

typedef struct rt_vault rt_vault;

/* Makes the key file when there is none; safe when several programs start at once. */
bool rt_vault_open(const char *key_file, rt_vault **out, rt_error *err);
void rt_vault_close(rt_vault *vault);
void rt_vault_closep(rt_vault **vault);

/* `purpose` is authenticated with the text: what was sealed for one opens for no other. */
rt_str rt_vault_seal(const rt_vault *vault, rt_str purpose, rt_str plain, rt_arena *arena);
bool rt_vault_unseal(const rt_vault *vault, rt_str purpose, rt_str sealed, rt_arena *arena,
                     rt_str *plain, rt_error *err);

/* Named secrets of an organisation (tokens of tools and remote services), sealed in the store. */
#define RT_SECRET_NAME_MAX  200
#define RT_SECRET_BYTES_MAX 65536

bool rt_secret_set(rt_store *store, const rt_vault *vault, rt_str organisation_id, rt_str name,
                   rt_str value, rt_error *err);
bool rt_secret_get(rt_store *store, const rt_vault *vault, rt_str organisation_id, rt_str name,
                   rt_arena *arena, rt_str *value, rt_error *err);
bool rt_secret_names(rt_store *store, rt_str organisation_id, rt_arena *arena, rt_str **names,
                     size_t *count, rt_error *err);
bool rt_secret_remove(rt_store *store, rt_str organisation_id, rt_str name, rt_error *err);

#endif
