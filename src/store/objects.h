/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects.h - what is too large for a row and stays until it is removed: the object directory.
 *
 * Promise: an object is there whole or not at all, whenever the program is killed; the bytes lie
 * encrypted, each for its own path, so that one cannot be passed off as another. A path is made by
 * us ("code-agents/code-blobs/agent_1/1.0.0.txt") and never leads out of the directory.
 *
 *     rt_objects_put(objects, path, text, err);
 *     rt_objects_get(objects, path, MAX, &arena, &text, err);
 *
 * Nodes that share a database see each other's objects when they share the directory and the
 * vault's key.
 */
#ifndef RT_STORE_OBJECTS_H
#define RT_STORE_OBJECTS_H

#include "store/vault.h"

typedef struct rt_objects {
    const char *directory; /* made when the first object comes, mode 0700 */
    const rt_vault *vault;
} rt_objects;

bool rt_objects_put(const rt_objects *objects, rt_str path, rt_str data, rt_error *err);
/* RT_NOT_FOUND when there is none; RT_LIMIT when it has more than `max` bytes. */
bool rt_objects_get(const rt_objects *objects, rt_str path, size_t max, rt_arena *arena,
                    rt_str *out, rt_error *err);
/* Nothing, when there is none. Folders that are empty then go too. */
void rt_objects_remove(const rt_objects *objects, rt_str path);

#endif
