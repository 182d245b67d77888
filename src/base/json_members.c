/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_members.c - the members of an object in the order of their keys.
 *
 * To compare two objects, or to print one canonically, every member must be found in the other
 * order. Sorting costs n log n; looking each one up would cost n squared, which an object of a
 * million members from outside turns into an attack.
 */
#include "base/json_internal.h"

#include <stdlib.h>

static int by_key_then_place(const void *a, const void *b)
{
    const json_node *left = *(const json_node *const *)a, *right = *(const json_node *const *)b;
    int order = rt_str_cmp(json_text(left), json_text(right));
    return order ? order : (left > right) - (left < right);
}

void json_members_init(json_members *members, const json_node *object)
{
    members->keys = members->few;
    if (object->size > RT_COUNT(members->few)) {
        members->keys = malloc(object->size * sizeof(*members->keys));
        if (!members->keys)
            rt_out_of_memory(object->size * sizeof(*members->keys));
    }
    size_t count = 0;
    const json_node *end = json_after(object);
    for (const json_node *at = object + 1; at < end; at = json_after(at + 1))
        members->keys[count++] = at;
    if (count > 1)
        qsort(members->keys, count, sizeof(*members->keys), by_key_then_place);

    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count ||
                       !rt_str_eq(json_text(members->keys[i]), json_text(members->keys[i + 1]));
        if (is_last)
            members->keys[kept++] = members->keys[i];
    }
    members->count = kept;
}

void json_members_done(json_members *members)
{
    if (members->keys != members->few)
        free(members->keys);
    members->keys = NULL;
}
