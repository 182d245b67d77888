/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_copy.c - a value on its own, and its hash.
 *
 * A copy is laid out as the parser would have laid it out: nodes in one block, texts in another,
 * with the same padding behind them.
 */
#include "base/json_internal.h"
#include "base/hash.h"

enum { PADDING = 32 };

rt_json rt_json_copy(rt_json v, rt_arena *arena)
{
    if (!v.node)
        return v;
    const json_node *end = json_after(v.node);
    size_t count = (size_t)(end - v.node), bytes = 0;
    for (const json_node *at = v.node; at < end; at++)
        if (at->kind == RT_JSON_STRING || at->kind == RT_JSON_NUMBER)
            bytes += (size_t)at->size + 1;
    json_node *nodes = rt_arena_alloc_raw(arena, count * sizeof(*nodes));
    char *text = rt_arena_alloc_raw(arena, bytes + PADDING);
    memcpy(nodes, v.node, count * sizeof(*nodes));
    for (size_t i = 0; i < count; i++) {
        if (nodes[i].kind != RT_JSON_STRING && nodes[i].kind != RT_JSON_NUMBER)
            continue;
        memcpy(text, nodes[i].text, nodes[i].size);
        nodes[i].text = text;
        text += nodes[i].size;
        *text++ = '\0'; /* ends a number for strtod() */
    }
    memset(text, 0, PADDING);
    return (rt_json){ nodes };
}

static uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t sum = (a ^ (b << 23 | b >> 41)) * 0x9E3779B97F4A7C15u;
    return sum ^ sum >> 29;
}

static uint64_t hash_array(const json_node *array, const rt_hash_key *key)
{
    uint64_t hash = array->size;
    const json_node *end = json_after(array);
    for (const json_node *at = array + 1; at < end; at = json_after(at))
        hash = mixed(hash, rt_json_hash((rt_json){ at }, key));
    return hash;
}

static uint64_t hash_object(const json_node *object, const rt_hash_key *key)
{
    json_members members RT_CLEANUP(json_members_done);
    json_members_init(&members, object);
    uint64_t hash = members.count;
    for (size_t i = 0; i < members.count; i++) {
        hash = mixed(hash, rt_hash(key, json_text(members.keys[i])));
        hash = mixed(hash, rt_json_hash((rt_json){ members.keys[i] + 1 }, key));
    }
    return hash;
}

uint64_t rt_json_hash(rt_json v, const rt_hash_key *key)
{
    switch (rt_json_type(v)) {
    case RT_JSON_BOOL:
        return v.node->is_true ? 3 : 2;
    case RT_JSON_NUMBER:
        return mixed(4, json_number_hash(v.node, key));
    case RT_JSON_STRING:
        return mixed(5, rt_hash(key, json_text(v.node)));
    case RT_JSON_ARRAY:
        return mixed(6, hash_array(v.node, key));
    case RT_JSON_OBJECT:
        return mixed(7, hash_object(v.node, key));
    default:
        return 1;
    }
}
