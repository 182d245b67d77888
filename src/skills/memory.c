/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - committing, finding and tracing artifacts. */
#include "skills/memory_internal.h"

#include <math.h>

#include "tools/search.h"

#define DIMENSIONS  384
#define TOP_K       5
#define TOP_K_MAX   100
#define CHAIN_MAX   1000
#define PARENTS_MAX 100

static const char *const types[] = { "research_snippet", "claim_verification", "code_patch",
                                     "generic" };
static const char *const classes[] = { "public", "internal", "sensitive", "pii" };

/* -- Reading requests -------------------------------------------------------------------------- */

static bool read_choice(rt_json object, const char *name, const char *const *words, size_t count,
                        size_t fallback, rt_str *out, rt_error *err)
{
    rt_json value = rt_json_get_c(object, name);
    if (rt_json_type(value) <= RT_JSON_NULL) {
        *out = fallback < count ? rt_str_of(words[fallback]) : (rt_str){ 0 };
        return true;
    }
    for (size_t i = 0; i < count; i++)
        if (rt_str_eq_c(rt_json_str(value), words[i])) {
            *out = rt_str_of(words[i]);
            return true;
        }
    return rt_fail(err, RT_INVALID, "'%s' must be one of those the documents list", name);
}

bool memory_label(rt_json object, const char *name, bool is_required, rt_str *out, rt_error *err)
{
    rt_json value = rt_json_get_c(object, name);
    if (rt_json_type(value) <= RT_JSON_NULL && !is_required)
        return true;
    *out = rt_json_str(value);
    if (rt_json_type(value) != RT_JSON_STRING || out->len == 0 || !rt_request_label(*out))
        return rt_fail(err, RT_INVALID, "'%s' must be a short text", name);
    return true;
}

/* A list of short texts, as JSON. */
static bool read_words(rt_json object, const char *name, rt_arena *arena, rt_str *out,
                       rt_error *err)
{
    rt_json list = rt_json_get_c(object, name), value;
    rt_json_iter it = rt_json_each(list);
    *out = RT_STR("[]");
    if (rt_json_type(list) <= RT_JSON_NULL)
        return true;
    if (rt_json_type(list) != RT_JSON_ARRAY || rt_json_count(list) > PARENTS_MAX)
        return rt_fail(err, RT_INVALID, "'%s' must be a list of at most %d texts", name,
                       PARENTS_MAX);
    while (rt_json_next(&it, NULL, &value))
        if (rt_json_type(value) != RT_JSON_STRING || !rt_request_label(rt_json_str(value)))
            return rt_fail(err, RT_INVALID, "'%s' must be a list of short texts", name);
    *out = memory_print(list, arena);
    return true;
}

rt_str memory_print(rt_json value, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_print(value, &text);
    return rt_arena_str(arena, rt_buf_str(&text));
}

static rt_str hash_of(rt_json value, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    char hash[RT_SHA256_HEX];
    rt_json_canonical(value, &text);
    rt_sha256_hex(rt_buf_str(&text), hash);
    return rt_arena_str(arena, rt_str_of(hash));
}

static rt_str purpose_of(const rt_memory_row *row, rt_arena *arena)
{
    return rt_arena_printf(arena, "memory:%.*s:%.*s", RT_FMT(row->organisation_id),
                           RT_FMT(row->id));
}

bool memory_content(const rt_memory *m, const rt_memory_row *row, rt_arena *arena, rt_str *out)
{
    return row->content.len > 0 &&
           rt_vault_unseal(m->vault, purpose_of(row, arena), row->content, arena, out, NULL);
}

/* -- Commit ------------------------------------------------------------------------------------ */

static bool read_content(rt_json artifact, rt_arena *arena, rt_str *text, rt_error *err)
{
    rt_json content = rt_json_get_c(artifact, "content");
    if (rt_json_type(content) != RT_JSON_OBJECT || rt_json_count(content) == 0)
        return rt_fail(err, RT_INVALID, "'artifact.content' must be an object that is not empty");
    *text = memory_print(content, arena);
    if (text->len > RT_MEMORY_CONTENT_MAX || !rt_utf8_valid(*text))
        return rt_fail(err, RT_LIMIT, "'artifact.content' has more than %u bytes",
                       RT_MEMORY_CONTENT_MAX);
    return true;
}

static bool read_artifact(const rt_caller *caller, rt_json request, rt_arena *arena,
                          rt_memory_row *row, rt_str *content, rt_error *err)
{
    rt_json artifact = rt_json_get_c(request, "artifact");
    rt_json metadata = rt_json_get_c(artifact, "metadata");
    if (rt_json_type(artifact) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "'artifact' is missing");
    *row = (rt_memory_row){ .organisation_id = caller->organisation_id,
                            .user_id = caller->user_id,
                            .id = rt_uuid_new(arena),
                            .created_ms = rt_wall_ms() };
    if (!read_content(artifact, arena, content, err) ||
        !read_choice(artifact, "artifact_type", types, RT_COUNT(types), 3, &row->type, err) ||
        !read_choice(artifact, "safety_class", classes, RT_COUNT(classes), 1, &row->safety_class,
                     err) ||
        !memory_label(artifact, "id", false, &row->id, err) ||
        !memory_label(artifact, "session_id", false, &row->session_id, err) ||
        !memory_label(request, "actor_id", true, &row->actor_id, err) ||
        !memory_label(request, "actor_type", true, &row->actor_type, err) ||
        !read_words(artifact, "tags", arena, &row->tags, err) ||
        !read_words(artifact, "parent_artifact_ids", arena, &row->parents, err) ||
        !read_words(request, "tool_ids", arena, &row->tool_ids, err))
        return false;
    row->metadata =
        rt_json_type(metadata) == RT_JSON_OBJECT ? memory_print(metadata, arena) : RT_STR("{}");
    row->content_hash = hash_of(rt_json_get_c(artifact, "content"), arena);
    row->inputs_hash = hash_of(request, arena);
    row->tokens = rt_utf8_length(*content) / 4;
    return true;
}

bool rt_memory_commit(const rt_memory *m, const rt_caller *caller, rt_json request, rt_arena *arena,
                      rt_str *json, rt_error *err)
{
    float vector[DIMENSIONS];
    rt_memory_row row;
    rt_str content;
    uint64_t number;
    bool is_embedded = rt_json_bool(rt_json_get_c(request, "generate_embedding"), true);
    if (!read_artifact(caller, request, arena, &row, &content, err))
        return false;
    row.content = rt_vault_seal(m->vault, purpose_of(&row, arena), content, arena);
    if (is_embedded) {
        rt_embed(content, vector, DIMENSIONS);
        row.embedding = (rt_str){ (const char *)vector, sizeof(vector) };
    }
    if (!rt_memory_add(m->store, &row, &number, err))
        return false;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "memory_id", row.id);
    rt_jw_kstr(&w, "artifact_id", row.id);
    rt_jw_kbool(&w, "embedding_generated", is_embedded);
    rt_jw_knull(&w, "cold_storage_ref");
    rt_jw_ku64(&w, "provenance_id", number);
    memory_write_time(&w, "created_at", row.created_ms);
    rt_jw_end(&w);
    *json = rt_arena_str(arena, rt_buf_str(&text));
    return true;
}

void memory_write_time(rt_json_writer *w, const char *key, uint64_t wall_ms)
{
    char text[RT_ISO8601_SIZE];
    rt_iso8601_write(text, wall_ms);
    rt_jw_kstr(w, key, rt_str_of(text));
}

/* -- Query ------------------------------------------------------------------------------------- */

typedef struct hit {
    const rt_memory_row *row;
    double similarity;
} hit;

static bool read_vector(rt_json request, float out[DIMENSIONS], rt_error *err)
{
    rt_json text = rt_json_get_c(request, "query_text"), value;
    rt_json given = rt_json_get_c(request, "query_embedding");
    rt_json_iter it = rt_json_each(given);
    double length = 0, number;
    if (rt_json_type(given) != RT_JSON_ARRAY) {
        if (rt_json_type(text) != RT_JSON_STRING || rt_json_str(text).len == 0)
            return rt_fail(err, RT_INVALID,
                           "Either query_text or query_embedding must be provided");
        rt_embed(rt_json_str(text), out, DIMENSIONS);
        return true;
    }
    if (rt_json_count(given) != DIMENSIONS)
        return rt_fail(err, RT_INVALID, "'query_embedding' must have %d numbers", DIMENSIONS);
    for (size_t i = 0; rt_json_next(&it, NULL, &value); i++) {
        if (!rt_json_double(value, &number))
            return rt_fail(err, RT_INVALID, "'query_embedding' must have numbers only");
        out[i] = (float)number;
        length += number * number;
    }
    for (size_t i = 0; i < DIMENSIONS && length > 0; i++)
        out[i] = (float)((double)out[i] / sqrt(length));
    return true;
}

static double likeness(rt_str stored, const float query[DIMENSIONS])
{
    float vector[DIMENSIONS];
    double sum = 0;
    if (stored.len != sizeof(vector))
        return -1; /* it was committed without one, or by another program */
    memcpy(vector, stored.ptr, sizeof(vector));
    for (size_t i = 0; i < DIMENSIONS; i++)
        sum += (double)vector[i] * (double)query[i];
    return sum;
}

/* Keeps the best, in their order. */
static void keep(hit *hits, size_t *count, size_t max, hit one)
{
    size_t at = *count < max ? (*count)++ : max;
    for (; at > 0 && hits[at - 1].similarity < one.similarity; at--)
        if (at < max)
            hits[at] = hits[at - 1];
    if (at < max)
        hits[at] = one;
}

static void write_hit(const rt_memory *m, const hit *one, rt_arena *arena, rt_json_writer *w)
{
    const rt_memory_row *row = one->row;
    rt_str content;
    rt_jw_object(w);
    rt_jw_kstr(w, "artifact_id", row->id);
    rt_jw_kstr(w, "artifact_type", row->type);
    rt_jw_kraw(w, "content", memory_content(m, row, arena, &content) ? content : RT_STR("null"));
    rt_jw_kdouble(w, "similarity", round(one->similarity * 1e6) / 1e6);
    rt_jw_kraw(w, "metadata", row->metadata);
    rt_jw_kstr(w, "created_by", row->actor_id);
    memory_write_time(w, "created_at", row->created_ms);
    rt_jw_end(w);
}

static bool read_query(const rt_caller *caller, rt_json request, rt_memory_filter *filter,
                       int64_t *top_k, double *least, rt_error *err)
{
    rt_json count = rt_json_get_c(request, "top_k"), min = rt_json_get_c(request, "min_similarity");
    *filter = (rt_memory_filter){ .organisation_id = caller->organisation_id,
                                  .limit = RT_MEMORY_LOOKED_MAX };
    *top_k = TOP_K;
    *least = 0;
    if (rt_json_type(count) > RT_JSON_NULL &&
        (!rt_json_i64(count, top_k) || *top_k < 1 || *top_k > TOP_K_MAX))
        return rt_fail(err, RT_INVALID, "'top_k' must be a number from 1 to %d", TOP_K_MAX);
    if (rt_json_type(min) > RT_JSON_NULL && !rt_json_double(min, least))
        return rt_fail(err, RT_INVALID, "'min_similarity' must be a number from 0 to 1");
    return memory_label(request, "filter_session_id", false, &filter->session_id, err) &&
           read_choice(request, "filter_artifact_type", types, RT_COUNT(types), RT_COUNT(types),
                       &filter->type, err) &&
           read_choice(request, "filter_safety_class", classes, RT_COUNT(classes),
                       RT_COUNT(classes), &filter->safety_class, err);
}

bool rt_memory_query(const rt_memory *m, const rt_caller *caller, rt_json request, rt_arena *arena,
                     rt_str *json, rt_error *err)
{
    uint64_t began = rt_now_ns();
    float query[DIMENSIONS];
    hit hits[TOP_K_MAX];
    rt_memory_filter filter;
    rt_memory_row *rows;
    size_t count, found = 0, candidates = 0;
    int64_t top_k;
    double least;
    if (!read_query(caller, request, &filter, &top_k, &least, err) ||
        !read_vector(request, query, err) ||
        !rt_memory_rows(m->store, &filter, arena, &rows, &count, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        double similarity = likeness(rows[i].embedding, query);
        if (similarity < least)
            continue;
        candidates++;
        keep(hits, &found, (size_t)top_k, (hit){ &rows[i], similarity });
    }
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < found; i++)
        write_hit(m, &hits[i], arena, &w);
    rt_jw_end(&w);
    rt_jw_kdouble(&w, "query_time_ms", (double)(rt_now_ns() - began) / 1e6);
    rt_jw_ku64(&w, "total_candidates", candidates);
    rt_jw_end(&w);
    *json = rt_arena_str(arena, rt_buf_str(&text));
    return rt_buf_ok(&text, err);
}

/* -- Provenance -------------------------------------------------------------------------------- */

static void write_link(const rt_memory_row *row, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "artifact_id", row->id);
    rt_jw_kstr(w, "actor_id", row->actor_id);
    rt_jw_kstr(w, "actor_type", row->actor_type);
    rt_jw_kstr(w, "inputs_hash", row->inputs_hash);
    rt_jw_kstr(w, "outputs_hash", row->content_hash);
    rt_jw_kraw(w, "tool_ids", row->tool_ids);
    rt_jw_kraw(w, "parent_artifact_ids", row->parents);
    rt_jw_kraw(w, "metadata", row->metadata);
    memory_write_time(w, "created_at", row->created_ms);
    rt_jw_end(w);
}

typedef struct chain {
    rt_str ids[CHAIN_MAX];
    rt_memory_row rows[CHAIN_MAX]; /* by the ids; without an id: there is no such artifact */
    size_t count;
} chain;

static void add_id(chain *c, rt_str id)
{
    for (size_t i = 0; i < c->count; i++)
        if (rt_str_eq(c->ids[i], id))
            return;
    if (c->count < CHAIN_MAX)
        c->ids[c->count++] = id;
}

/* Itself, its parents, theirs, and so on; each once. */
static bool follow(const rt_memory *m, rt_str organisation_id, chain *c, rt_arena *arena,
                   rt_error *err)
{
    for (size_t i = 0; i < c->count; i++) {
        rt_json parents, parent;
        rt_error why = { 0 };
        if (!rt_memory_find(m->store, organisation_id, c->ids[i], arena, &c->rows[i], &why)) {
            if (i > 0 && why.code == RT_NOT_FOUND)
                continue; /* a parent that was never committed here */
            *err = why;
            return false;
        }
        if (!rt_json_parse(c->rows[i].parents, arena, &parents, err))
            return false;
        rt_json_iter it = rt_json_each(parents);
        while (rt_json_next(&it, NULL, &parent))
            add_id(c, rt_json_str(parent));
    }
    return true;
}

bool rt_memory_provenance(const rt_memory *m, const rt_caller *caller, rt_str id, rt_arena *arena,
                          rt_str *json, rt_error *err)
{
    chain *c = rt_arena_alloc(arena, sizeof(*c));
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    size_t depth = 0;
    add_id(c, id);
    if (!follow(m, caller->organisation_id, c, arena, err))
        return false;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "artifact_id", id);
    rt_jw_karray(&w, "chain");
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].id.len > 0) {
            write_link(&c->rows[i], &w);
            depth++;
        }
    rt_jw_end(&w);
    rt_jw_ku64(&w, "depth", depth);
    rt_jw_karray(&w, "root_artifacts");
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].id.len > 0 && rt_str_eq_c(c->rows[i].parents, "[]"))
            rt_jw_str(&w, c->rows[i].id);
    rt_jw_end(&w);
    rt_jw_end(&w);
    *json = rt_arena_str(arena, rt_buf_str(&text));
    return rt_buf_ok(&text, err);
}
