/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statements.c - which texts a connection has prepared.
 *
 * A few dozen texts, looked up by length first: lengths hardly ever agree, so a lookup costs one
 * strlen() and one memcmp(). When all slots are taken, the one unused for longest goes.
 */
#include "store/store_internal.h"

#include <stdlib.h>

void *store_statements_find(store_statements *statements, const char *sql)
{
    size_t len = strlen(sql);
    for (size_t i = 0; i < statements->count; i++) {
        if (statements->slots[i].len != len || memcmp(statements->slots[i].sql, sql, len) != 0)
            continue;
        statements->slots[i].last_use = ++statements->uses;
        return statements->slots[i].handle;
    }
    return NULL;
}

void *store_statements_add(store_statements *statements, const char *sql, void *handle)
{
    void *evicted = NULL;
    size_t slot = statements->count;
    if (slot < STORE_STATEMENTS_MAX) {
        statements->count++;
    } else {
        slot = 0;
        for (size_t i = 1; i < STORE_STATEMENTS_MAX; i++)
            if (statements->slots[i].last_use < statements->slots[slot].last_use)
                slot = i;
        evicted = statements->slots[slot].handle;
        free(statements->slots[slot].sql);
    }
    size_t len = strlen(sql);
    char *copy = malloc(len + 1);
    if (!copy)
        rt_out_of_memory(len + 1);
    memcpy(copy, sql, len + 1);
    statements->slots[slot].sql = copy;
    statements->slots[slot].len = len;
    statements->slots[slot].handle = handle;
    statements->slots[slot].last_use = ++statements->uses;
    return evicted;
}

void store_statements_done(store_statements *statements, void (*free_handle)(void *handle))
{
    for (size_t i = 0; i < statements->count; i++) {
        free_handle(statements->slots[i].handle);
        free(statements->slots[i].sql);
    }
    statements->count = 0;
}
