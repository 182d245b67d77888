/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_node.h - how a document lies in memory, for those who walk millions of values.
 *
 * Promise: this layout is what rt_json_parse() makes. Everyone else uses the functions of json.h,
 * which answer for absent values too; here the caller knows what he has in his hands.
 *
 * A document is one array of 16-byte nodes in the order of the text, and one copy of the text,
 * in which strings were decoded in place (decoding never makes them longer):
 *
 *     {"a": [1, 2], "b": "x"}
 *
 *     object 2 members, span 7 | "a" | array 2 elements, span 3 | 1 | 2 | "b" | "x"
 *
 * The children of a container follow it; in an object each key comes before its value. `span`
 * counts the nodes of a container and all it contains, so node + span is what comes next.
 */
#ifndef RT_BASE_JSON_NODE_H
#define RT_BASE_JSON_NODE_H

#include "base/json.h"

/* So many readable bytes follow the text of every string: keys can be loaded by the word. */
#define RT_JSON_TEXT_PADDING 16

typedef struct rt_json_node {
    uint8_t kind;  /* rt_json_kind */
    bool is_true;  /* of a boolean */
    bool is_plain; /* of a string: it is valid UTF-8, and needs no escapes when printed */
    uint32_t size; /* bytes of a string or number; elements of an array; members of an object */
    union {
        const char *text; /* of a string or number */
        uint64_t span;    /* of a container; while it is being parsed, the index of its parent */
    };
} rt_json_node;

_Static_assert(sizeof(rt_json_node) == 16, "four nodes to a cache line");

static inline const rt_json_node *rt_json_node_after(const rt_json_node *node)
{
    return node + (node->kind >= RT_JSON_ARRAY ? node->span : 1);
}

static inline rt_str rt_json_node_text(const rt_json_node *node)
{
    return (rt_str){ node->text, node->size };
}

#endif
