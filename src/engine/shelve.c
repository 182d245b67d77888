/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelve.c - big output never floods the caller: it becomes an artifact with a handle.
 *
 * Files the code left in out/ go to the shelf, and so does a result or a stream past the budget;
 * the answer then carries a head, a tail, the size, the type and the handle. If the shelf cannot
 * take something (a full disk), the answer says so instead of failing: the run has happened.
 */
#include "engine/engine_internal.h"

#define HEAD_BYTES (4u << 10)
#define TAIL_BYTES (4u << 10)

/* A cut must not fall inside a character. */
static rt_str head_of(rt_str text)
{
    size_t end = RT_MIN(text.len, (size_t)HEAD_BYTES);
    while (end > 0 && end < text.len && ((unsigned char)text.ptr[end] & 0xc0) == 0x80)
        end--;
    return rt_str_slice(text, 0, end);
}

static rt_str tail_of(rt_str text)
{
    size_t from = text.len - RT_MIN(text.len, (size_t)TAIL_BYTES);
    while (from < text.len && ((unsigned char)text.ptr[from] & 0xc0) == 0x80)
        from++;
    return rt_str_slice(text, from, text.len);
}

static bool put(passage *p, const char *kind, rt_str name, rt_str type, rt_str data,
                rt_artifact_row *row, rt_error *err)
{
    *row = (rt_artifact_row){ .organisation_id = p->request->caller.organisation_id,
                              .user_id = engine_user(p->request),
                              .execution_id = p->id,
                              .session_id = p->request->session_id,
                              .kind = rt_str_of(kind),
                              .name = name,
                              .type = type };
    return rt_artifact_put(p->engine->config.shelf, row, data, p->arena, err);
}

static void shelve_files(passage *p)
{
    for (size_t i = 0; i < p->outcome.artifact_count; i++) {
        rt_file *f = &p->outcome.artifacts[i];
        rt_artifact_row row;
        if (f->is_cut)
            continue;
        rt_str type = rt_str_of(rt_content_type(f->name, f->data));
        if (put(p, "file", f->name, type, f->data, &row, NULL))
            f->handle = row.id;
        else
            f->is_cut = true;
    }
}

/* Replaces *text by what the answer may carry, and adds a member to the list of handles. */
static void shelve_output(passage *p, const char *of, const char *name, const char *type,
                          rt_str *text, rt_json_writer *w)
{
    rt_artifact_row row = { 0 };
    rt_error err = { 0 };
    rt_str whole = *text, head = head_of(whole), tail = tail_of(whole);
    bool is_kept = put(p, of, rt_str_of(name), rt_str_of(type), whole, &row, &err);
    rt_jw_object(w);
    rt_jw_kstr(w, "of", rt_str_of(of));
    if (is_kept)
        rt_jw_kstr(w, "handle", row.id);
    else
        rt_jw_kstr(w, "error", rt_str_of(err.text));
    rt_jw_ku64(w, "size", whole.len);
    rt_jw_kstr(w, "type", rt_str_of(type));
    rt_jw_kstr(w, "head", head);
    rt_jw_kstr(w, "tail", tail);
    rt_jw_end(w);
    rt_buf shown RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_add(&shown, head);
    rt_buf_addf(&shown, "\n[%zu bytes left out; the whole is %.*s]\n",
                whole.len - head.len - tail.len, is_kept ? (int)row.id.len : 8,
                is_kept ? row.id.ptr : "not kept");
    rt_buf_add(&shown, tail);
    *text = rt_arena_str(p->arena, rt_buf_str(&shown));
}

/* Of a skill's result anybody can work out the hash (S4-04): it is of the canonical text. */
static void hash_output(passage *p)
{
    const rt_outcome *o = &p->outcome;
    rt_buf canonical RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json value;
    rt_buf_init(&canonical, RT_JSON_SIZE_CEILING);
    rt_str text = o->has_value ? p->kept_value : o->out;
    if (p->request->skill_name.len > 0 && o->has_value &&
        rt_json_parse(p->kept_value, p->arena, &value, NULL)) {
        rt_json_canonical(value, &canonical);
        text = rt_buf_str(&canonical);
    }
    rt_sha256_hex(text, p->output_hash);
}

bool engine_shelve(passage *p, rt_error *err)
{
    rt_outcome *o = &p->outcome;
    uint64_t budget = p->request->budget_bytes ? p->request->budget_bytes
                                               : p->engine->config.limits.output_budget_bytes;
    rt_buf list RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    (void)err;
    p->full_output_bytes = o->value.len + o->out.len + o->err.len;
    hash_output(p);
    shelve_files(p);
    bool is_value_big = o->has_value && o->value.len > budget;
    if (!is_value_big && o->out.len <= budget && o->err.len <= budget)
        return true;
    rt_json_begin(&w, &list);
    rt_jw_array(&w);
    if (is_value_big) {
        rt_str value = p->kept_value; /* never what was put back */
        shelve_output(p, "result", "result.json", "application/json", &value, &w);
        o->has_value = false;
    }
    if (o->out.len > budget)
        shelve_output(p, "stdout", "stdout.txt", "text/plain; charset=utf-8", &o->out, &w);
    if (o->err.len > budget)
        shelve_output(p, "stderr", "stderr.txt", "text/plain; charset=utf-8", &o->err, &w);
    rt_jw_end(&w);
    p->handles = rt_arena_str(p->arena, rt_buf_str(&list));
    return true;
}
