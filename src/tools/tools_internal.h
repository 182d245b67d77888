/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools_internal.h - what the files of the registry share.
 */
#ifndef RT_TOOLS_TOOLS_INTERNAL_H
#define RT_TOOLS_TOOLS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "tools/search.h"
#include "tools/tools.h"

#define TOOLS_IMPORTED "imported" /* the server of imported tools that name none */

/* -- catalogue.c: all tools at one moment, which never changes afterwards ---------------------- */

/* What one provider listed; the texts live in its arena. */
typedef struct tools_list {
    atomic_uint refs;
    rt_arena arena;
    rt_tool *tools;
    size_t count;
} tools_list;

typedef struct tools_catalogue {
    atomic_uint refs;
    tools_list **lists;
    size_t list_count;
    rt_tool *tools; /* in the order of names; texts are the lists' */
    size_t count;
    uint64_t fingerprint; /* of names and versions */
    pthread_mutex_t lock; /* for making the index, which the first question does */
    rt_search *search;
} tools_catalogue;

tools_list *tools_list_new(void);
void tools_list_drop(tools_list *list);

/* Takes a reference to each list. */
tools_catalogue *tools_catalogue_new(tools_list **lists, size_t count);
tools_catalogue *tools_catalogue_hold(tools_catalogue *catalogue);
void tools_catalogue_dropp(tools_catalogue **catalogue);
/* One that `audience` may see: its own before everybody's. */
const rt_tool *tools_catalogue_find(const tools_catalogue *catalogue, rt_str audience, rt_str name);
bool tools_is_for(const rt_tool *tool, rt_str audience);
bool tools_same_name(rt_str a, rt_str b);
/* However the name is written: "a:listThings", "a:list-things" and "a:list_things" are one. */
const rt_tool *tools_catalogue_mean(const tools_catalogue *catalogue, rt_str audience,
                                    rt_str written);

typedef struct tools_counts tools_counts;
/* `embedder` may be NULL. */
const rt_search *tools_catalogue_search(tools_catalogue *catalogue, tools_counts *counts,
                                        const rt_embedder *embedder);

void tools_copy(const rt_tool *from, bool with_schemas, rt_arena *arena, rt_tool *to);

/* -- meaning.c: vectors of tools by a model, kept from one catalogue to the next --------------- */

typedef struct tools_meaning tools_meaning;
tools_meaning *tools_meaning_new(const rt_model *model); /* NULL: NULL */
void tools_meaning_free(tools_meaning *meaning);
const rt_embedder *tools_meaning_embedder(tools_meaning *meaning); /* of NULL: NULL */

/* -- imports.c --------------------------------------------------------------------------------- */

bool tools_imports_read(rt_str json, rt_arena *arena, rt_tool **out, size_t *count, rt_error *err);
bool tools_imports_load(rt_store *store, tools_list *out, rt_error *err);

/* -- usage.c
 * --------------------------------------------------------------------------------------- */

tools_counts *tools_counts_new(rt_store *store);
void tools_counts_free(tools_counts *counts); /* without writing them */
void tools_counts_add(tools_counts *counts, rt_str name, uint64_t elapsed_us, bool is_failure);
bool tools_counts_flush(tools_counts *counts, rt_error *err);
bool tools_counts_get(tools_counts *counts, rt_str name, rt_tool_usage *out, rt_error *err);
/* How often each was used, for all at once: fills uses[i] for names[i]. */
void tools_counts_all(tools_counts *counts, const rt_tool *tools, size_t count, double *uses);

/* -- learn.c: what results look like ----------------------------------------------------------- */

typedef struct tools_lessons tools_lessons;
tools_lessons *tools_lessons_new(rt_store *store); /* which may be NULL */
bool tools_lessons_load(tools_lessons *all, rt_error *err);
void tools_lessons_free(tools_lessons *all); /* without writing them */
void tools_lessons_observe(tools_lessons *all, rt_str name, rt_str version, rt_str value);
/* False: nothing is known of this version. */
bool tools_lessons_get(tools_lessons *all, rt_str name, rt_str version, rt_arena *arena,
                       rt_str *schema);
bool tools_lessons_flush(tools_lessons *all, rt_error *err);

/* -- sequences.c: which tool is called after which --------------------------------------------- */

typedef struct tools_sequences tools_sequences;
tools_sequences *tools_sequences_new(rt_store *store); /* which may be NULL */
bool tools_sequences_load(tools_sequences *s, rt_error *err);
void tools_sequences_free(tools_sequences *s); /* without writing them */
void tools_sequences_add(tools_sequences *s, rt_str run, rt_str tool);
size_t tools_sequences_count(tools_sequences *s); /* edges */
/* How often `tool` came right before or after one of these, 0 to 1. */
double tools_sequences_score(tools_sequences *s, rt_str tool, const rt_str *context, size_t count);
size_t tools_sequences_related(tools_sequences *s, rt_str tool, rt_arena *arena,
                               rt_tool_related *out, size_t max);
bool tools_sequences_flush(tools_sequences *s, rt_error *err);

/* -- registry.c -------------------------------------------------------------------------------- */

tools_catalogue *tools_current(rt_tools *t); /* drop it */
const rt_search *tools_index_of(rt_tools *t, tools_catalogue *catalogue);
tools_sequences *tools_sequences_of(rt_tools *t);

#endif
