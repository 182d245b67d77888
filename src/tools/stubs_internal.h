/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stubs_internal.h - what the two writers of stubs share.
 *
 * Schemas are strangers' texts: they may be deep, huge, go round in circles, and have names that
 * would be code if they were written as they came. So a writer asks here for every name, comment
 * and literal, and for leave to go one level deeper.
 */
#ifndef RT_TOOLS_STUBS_INTERNAL_H
#define RT_TOOLS_STUBS_INTERNAL_H

#include "tools/tools.h"

enum {
    STUBS_DEPTH_MAX = 6,
    STUBS_NODES_MAX = 2000, /* schemas looked at for one tool */
    STUBS_MEMBERS_MAX = 100,
    STUBS_CHOICES_MAX = 24, /* of an enum or a union; more are told as their type */
    STUBS_NAME_MAX = 100,   /* bytes of a property's name that is shown */
    STUBS_TYPE_MAX = 16 << 10,
    STUBS_BYTES_MAX = 256 << 10,
};

typedef struct stubs_writer {
    rt_arena *arena;
    rt_buf out;
    rt_json root; /* of the schema that is read, for "$ref" */
    unsigned nodes;
    rt_str *used; /* names of types that are taken */
    size_t used_count, used_cap;
} stubs_writer;

/* list_commits: listCommits, or ListCommits. ASCII letters and digits only; may be empty, or begin
 * with a digit. */
rt_str stubs_camel(rt_str name, bool is_pascal, rt_arena *arena);
bool stubs_is_word(rt_str name); /* a letter or '_', then letters, digits, '_' */

/* `name`, or with a number behind it when that is taken; taken from now on. */
rt_str stubs_take_name(stubs_writer *s, rt_str name);

/* A text on one line, short, without what could end a comment or a string. */
rt_str stubs_comment(rt_str text, rt_arena *arena);
rt_str stubs_quote(rt_str text, rt_arena *arena); /* as JSON, which both languages read */

/* The schema itself, where a reference inside its document leads; absent: nowhere. */
rt_json stubs_resolve(stubs_writer *s, rt_json schema);
bool stubs_may_descend(stubs_writer *s, unsigned depth);

/* Visits properties that can be shown, each name once. */
typedef struct stubs_members {
    rt_json schema, properties;
    rt_json_iter it;
    size_t count;
} stubs_members;

typedef struct stubs_member {
    rt_str name;
    rt_json schema;
    bool is_required;
} stubs_member;

stubs_members stubs_each(rt_json schema);
bool stubs_next(stubs_members *all, stubs_member *out);
bool stubs_has_members(rt_json schema);
bool stubs_has_required(rt_json schema);

/* Texts that are joined, each once. */
typedef struct stubs_union {
    rt_str parts[STUBS_CHOICES_MAX];
    size_t count;
    bool is_full;
} stubs_union;

void stubs_union_add(stubs_union *u, rt_str part);
rt_str stubs_union_join(const stubs_union *u, const char *joint, rt_str otherwise, rt_arena *arena);

void stubs_typescript(stubs_writer *s, const rt_tool *tools, size_t count);
void stubs_python(stubs_writer *s, const rt_tool *tools, size_t count);

/* The tool's part of "server:tool". */
rt_str stubs_own_name(const rt_tool *tool);
/* Parses; an absent value when there is none, or none that is JSON. */
rt_json stubs_parse(stubs_writer *s, rt_str schema);

#endif
