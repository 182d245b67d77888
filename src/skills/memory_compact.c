/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_compact.c - what a session has kept, and making it less.
 *
 * truncate removes the oldest artifacts until the rest fits; summarize puts a summary, made by the
 * skill text_summarize, in the place of all that is not preserved. Either way the origin of what is
 * left can still be told.
 */
#include "skills/memory_internal.h"

#define TARGET_DEFAULT 8000
#define TARGET_MIN     1000
#define SUMMARY_CHARS  100000 /* that text_summarize takes */

typedef struct compaction {
    const rt_memory *memory;
    const rt_caller *caller;
    rt_arena *arena;
    rt_str session_id, strategy, summary_id;
    rt_json preserved;
    uint64_t target, before, after, compacted, removed;
    rt_memory_row *rows; /* newest first */
    size_t count;
} compaction;

static bool load(compaction *c, rt_error *err)
{
    rt_memory_filter filter = { .organisation_id = c->caller->organisation_id,
                                .session_id = c->session_id,
                                .limit = RT_MEMORY_LOOKED_MAX };
    if (!rt_memory_rows(c->memory->store, &filter, c->arena, &c->rows, &c->count, err))
        return false;
    for (size_t i = 0; i < c->count; i++)
        c->before += c->rows[i].tokens;
    c->after = c->before;
    return true;
}

static bool is_preserved(const compaction *c, const rt_memory_row *row)
{
    rt_json_iter it = rt_json_each(c->preserved);
    rt_json value;
    while (rt_json_next(&it, NULL, &value))
        if (rt_str_eq(rt_json_str(value), row->id))
            return true;
    return false;
}

static bool remove_row(compaction *c, const rt_memory_row *row, rt_error *err)
{
    if (!rt_memory_remove(c->memory->store, row->organisation_id, row->id, rt_wall_ms(), err))
        return false;
    c->removed++;
    c->after -= row->tokens;
    return true;
}

static bool truncate_rows(compaction *c, rt_error *err)
{
    for (size_t i = c->count; i-- > 0 && c->after > c->target;)
        if (!is_preserved(c, &c->rows[i]) && !remove_row(c, &c->rows[i], err))
            return false;
    return true;
}

/* Every text in a value, one a line. */
static void gather_text(rt_json value, rt_buf *out)
{
    rt_json_iter it = rt_json_each(value);
    rt_json inner;
    if (rt_json_type(value) == RT_JSON_STRING) {
        rt_buf_add(out, rt_json_str(value));
        rt_buf_add(out, RT_STR(". "));
    }
    while (rt_json_next(&it, NULL, &inner))
        gather_text(inner, out);
}

static bool summarize(compaction *c, rt_str text, rt_json *out, rt_error *err)
{
    rt_buf args RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_skill_result result;
    rt_json doc;
    rt_json_begin(&w, &args);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "text", text);
    rt_jw_end(&w);
    if (!rt_json_parse(rt_buf_str(&args), c->arena, &doc, err))
        return false;
    rt_skill_call call = { .caller = c->caller,
                           .surface = RT_STR("memory"),
                           .skill = RT_STR("text_summarize"),
                           .args = doc };
    if (!rt_skills_execute(c->memory->skills, &call, c->arena, &result, err))
        return false;
    if (!result.is_success)
        return rt_fail(err, RT_UNAVAILABLE, "text_summarize: %.*s",
                       (int)RT_MIN(result.error_message.len, (size_t)150),
                       result.error_message.ptr);
    return rt_json_parse(result.value, c->arena, out, err);
}

/* The summary becomes an artifact whose parents are those it stands for. */
static bool commit_summary(compaction *c, rt_str summary, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json request, made;
    rt_str json;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kobject(&w, "artifact");
    rt_jw_kobject(&w, "content");
    rt_jw_kstr(&w, "summary", summary);
    rt_jw_end(&w);
    rt_jw_kstr(&w, "session_id", c->session_id);
    rt_jw_karray(&w, "parent_artifact_ids");
    for (size_t i = 0, listed = 0; i < c->count && listed < 100; i++)
        if (!is_preserved(c, &c->rows[i])) {
            rt_jw_str(&w, c->rows[i].id);
            listed++;
        }
    rt_jw_end(&w);
    rt_jw_end(&w);
    rt_jw_kstr(&w, "actor_id", RT_STR("memory"));
    rt_jw_kstr(&w, "actor_type", RT_STR("skill"));
    rt_jw_kraw(&w, "tool_ids", RT_STR("[\"skills:text_summarize\"]"));
    rt_jw_end(&w);
    if (!rt_json_parse(rt_buf_str(&text), c->arena, &request, err) ||
        !rt_memory_commit(c->memory, c->caller, request, c->arena, &json, err) ||
        !rt_json_parse(json, c->arena, &made, err))
        return false;
    c->summary_id = rt_json_str(rt_json_get_c(made, "artifact_id"));
    c->after += rt_utf8_length(summary) / 4;
    return true;
}

static bool summarize_rows(compaction *c, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json content, result;
    rt_str plain;
    for (size_t i = c->count; i-- > 0;)
        if (!is_preserved(c, &c->rows[i]) &&
            memory_content(c->memory, &c->rows[i], c->arena, &plain) &&
            rt_json_parse(plain, c->arena, &content, NULL))
            gather_text(content, &text);
    rt_str all = rt_str_slice(rt_buf_str(&text), 0, SUMMARY_CHARS);
    while (all.len > 0 && !rt_utf8_valid(all))
        all.len--;
    if (!c->memory->skills || rt_str_trim(all).len == 0)
        return truncate_rows(c, err);
    if (!summarize(c, all, &result, err) ||
        !commit_summary(c, rt_json_str(rt_json_get_c(result, "summary")), err))
        return false;
    for (size_t i = 0; i < c->count; i++) {
        if (is_preserved(c, &c->rows[i]))
            continue;
        if (!remove_row(c, &c->rows[i], err))
            return false;
        c->compacted++;
    }
    return true;
}

static bool read_request(compaction *c, rt_json request, rt_error *err)
{
    rt_json target = rt_json_get_c(request, "target_tokens"), strategy;
    int64_t tokens = TARGET_DEFAULT;
    strategy = rt_json_get_c(request, "strategy");
    c->strategy =
        rt_json_type(strategy) <= RT_JSON_NULL ? RT_STR("summarize") : rt_json_str(strategy);
    c->preserved = rt_json_get_c(request, "preserve_artifact_ids");
    if (!memory_label(request, "session_id", true, &c->session_id, err))
        return false;
    if (!rt_str_eq_c(c->strategy, "summarize") && !rt_str_eq_c(c->strategy, "truncate") &&
        !rt_str_eq_c(c->strategy, "none"))
        return rt_fail(err, RT_INVALID, "'strategy' must be summarize, truncate or none");
    if (rt_json_type(target) > RT_JSON_NULL &&
        (!rt_json_i64(target, &tokens) || tokens < TARGET_MIN))
        return rt_fail(err, RT_INVALID, "'target_tokens' must be a number from %d on", TARGET_MIN);
    c->target = (uint64_t)tokens;
    return true;
}

bool rt_memory_compact(const rt_memory *m, const rt_caller *caller, rt_json request,
                       rt_arena *arena, rt_str *json, rt_error *err)
{
    compaction c = { .memory = m, .caller = caller, .arena = arena };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    if (!read_request(&c, request, err) || !load(&c, err))
        return false;
    if (c.before <= c.target)
        c.strategy = RT_STR("none");
    bool is_short = rt_str_eq_c(c.strategy, "truncate");
    if (!rt_str_eq_c(c.strategy, "none") &&
        !(is_short ? truncate_rows(&c, err) : summarize_rows(&c, err)))
        return false;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "session_id", c.session_id);
    rt_jw_ku64(&w, "tokens_before", c.before);
    rt_jw_ku64(&w, "tokens_after", c.after);
    rt_jw_ku64(&w, "artifacts_compacted", c.compacted);
    rt_jw_ku64(&w, "artifacts_removed", c.removed);
    rt_jw_kstr(&w, "strategy_used", c.strategy);
    if (c.summary_id.len > 0)
        rt_jw_kstr(&w, "summary_artifact_id", c.summary_id);
    else
        rt_jw_knull(&w, "summary_artifact_id");
    rt_jw_end(&w);
    *json = rt_arena_str(arena, rt_buf_str(&text));
    return true;
}

bool rt_memory_stats(const rt_memory *m, const rt_caller *caller, rt_str session_id,
                     rt_arena *arena, rt_str *json, rt_error *err)
{
    static const char *const types[] = { "research_snippet", "claim_verification", "code_patch",
                                         "generic" };
    compaction c = { .memory = m, .caller = caller, .arena = arena, .session_id = session_id };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    if (!load(&c, err))
        return false;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "session_id", session_id);
    rt_jw_ku64(&w, "artifact_count", c.count);
    rt_jw_ku64(&w, "total_tokens", c.before);
    rt_jw_kbool(&w, "needs_compaction", c.before > TARGET_DEFAULT);
    rt_jw_kobject(&w, "artifacts_by_type");
    for (size_t i = 0; i < RT_COUNT(types); i++) {
        uint64_t count = 0;
        for (size_t k = 0; k < c.count; k++)
            count += rt_str_eq_c(c.rows[k].type, types[i]);
        if (count > 0)
            rt_jw_ku64(&w, types[i], count);
    }
    rt_jw_end(&w);
    rt_jw_end(&w);
    *json = rt_arena_str(arena, rt_buf_str(&text));
    return true;
}
