/*
 * outcome.c - what came out of a run, made readable: for programs as JSON, for people with hints.
 */
#include "runtimes/runtimes_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *rt_status_name(rt_status status)
{
    static const char *const names[] = { "SUCCESS", "FAILED", "TIMEOUT", "MEMORY_ERROR",
                                         "CANCELLED" };
    return names[status];
}

void runtimes_fail(rt_outcome *out, rt_status status, const char *type, const char *limit,
                   rt_str message, rt_str hint)
{
    out->status = status;
    out->has_value = false;
    out->has_error = true;
    out->error = (rt_code_error){ .type = rt_str_of(type),
                                  .name = rt_str_of(type),
                                  .limit = rt_str_of(limit),
                                  .message = message,
                                  .hint = hint };
}

static rt_str member(rt_json frame, const char *key)
{
    return rt_json_str(rt_json_get_c(frame, key));
}

/* The types our answers know; a guest that says something else is not believed. */
static const char *known_type(rt_str type)
{
    static const char *const known[] = { "SyntaxError", "MemoryError", "PermissionError",
                                         "ResourceLimitError" };
    for (size_t i = 0; i < RT_COUNT(known); i++)
        if (rt_str_eq_c(type, known[i]))
            return known[i];
    return "RuntimeError";
}

static rt_str hint_for(rt_json frame, rt_arena *arena)
{
    int64_t code = 0;
    rt_str path = member(frame, "path");
    rt_json_i64(rt_json_get_c(frame, "errno"), &code);
    bool is_absolute = path.len > 0 && path.ptr[0] == '/';
    if (code == ENOENT && is_absolute && !rt_str_starts(path, RT_STR(RT_WORKDIR "/")))
        return rt_arena_printf(arena,
                               "host files are not visible in a cell; grant this one by the "
                               "policy's read (--read %.*s), "
                               "or pass its content as input",
                               RT_FMT(path));
    if ((code == EROFS || code == EACCES || code == EPERM) && path.len > 0)
        return rt_arena_printf(
            arena,
            "'%.*s' cannot be written here: only the scratch directory " RT_WORKDIR
            " can (files left in " RT_WORKDIR "/out come back)",
            RT_FMT(path));
    if (code == ENOSPC || code == EDQUOT)
        return RT_STR("the scratch directory is full; raise the policy's scratch (--scratch)");
    if (member(frame, "module").len > 0)
        return rt_arena_printf(arena, "allow it by the policy's imports (--imports %.*s)",
                               RT_FMT(member(frame, "module")));
    return (rt_str){ 0 };
}

/* No process ends with more than 255, and exit(256) would say that all is well. */
static int64_t status_of(rt_json frame)
{
    int64_t status = 0;
    bool ok = rt_json_i64(rt_json_get_c(frame, "status"), &status);
    return ok && status > 0 && status < 256 ? status : 0;
}

static void read_error(rt_outcome *out, rt_json frame, rt_arena *arena)
{
    rt_code_error *e = &out->error;
    int64_t code = 0;
    rt_json_i64(rt_json_get_c(frame, "errno"), &code);
    out->status = RT_STATUS_FAILED;
    out->has_error = true;
    e->type = rt_str_of(known_type(member(frame, "type")));
    e->name = member(frame, "name");
    e->message = member(frame, "message");
    e->stack = member(frame, "stack");
    rt_json_i64(rt_json_get_c(frame, "line"), &e->line);
    rt_json_i64(rt_json_get_c(frame, "column"), &e->column);
    e->status = status_of(frame);
    e->hint = hint_for(frame, arena);
    if (rt_str_eq_c(e->type, "MemoryError")) {
        out->status = RT_STATUS_MEMORY_ERROR;
        e->limit = RT_STR("memory");
    } else if (code == ENOSPC || code == EDQUOT) {
        e->type = RT_STR("ResourceLimitError");
        e->limit = RT_STR("scratch");
    }
}

bool runtimes_read_result(rt_outcome *out, rt_str text, rt_arena *arena, rt_error *err)
{
    rt_json frame;
    if (!rt_json_parse(text, arena, &frame, err))
        return false;
    rt_str op = member(frame, "op");
    if (rt_str_eq_c(op, "error")) {
        read_error(out, frame, arena);
    } else if (rt_str_eq_c(op, "result")) {
        out->error.status = status_of(frame);
        rt_json value = rt_json_get_c(frame, "value");
        if (!rt_json_is_absent(value)) {
            rt_buf printed RT_CLEANUP(rt_buf_done) = { 0 };
            rt_json_print(value, &printed);
            out->has_value = out->is_parsed = true;
            out->value = rt_arena_str(arena, rt_buf_str(&printed));
        }
    } else {
        return rt_fail(err, RT_INVALID, "it is neither a result nor an error");
    }
    return true;
}

/* Bash names the place on stderr: "main.sh: line 3: syntax error near …". The last one counts. */
void runtimes_read_shell_error(rt_outcome *out, rt_arena *arena)
{
    rt_str rest = out->err, line, mark = RT_STR("main.sh: "), dash = RT_STR("-c: "),
           word = RT_STR("line ");
    while (rt_str_cut(&rest, '\n', &line)) {
        ptrdiff_t at = rt_str_find(line, mark);
        uint64_t number;
        rt_str tail, digits;
        if (at < 0)
            continue;
        tail = rt_str_slice(line, (size_t)at + mark.len, line.len);
        if (rt_str_starts(tail, dash))
            tail = rt_str_slice(tail, dash.len, tail.len);
        if (!rt_str_starts(tail, word))
            continue;
        tail = rt_str_slice(tail, word.len, tail.len);
        if (!rt_str_cut(&tail, ':', &digits) || !rt_str_to_u64(digits, &number))
            continue;
        rt_str what = rt_str_trim(tail);
        if (rt_str_starts(what, RT_STR("`")))
            continue; /* the line itself, quoted after the message */
        out->error.line = (int64_t)number;
        out->error.message = rt_arena_str(arena, what);
        if (rt_str_find(what, RT_STR("syntax error")) >= 0)
            out->error.type = out->error.name = RT_STR("SyntaxError");
    }
}

/* After a failure: if something was refused on the way, say so, because it is probably the cause.
 */
void runtimes_explain(rt_outcome *out, const rt_policy *policy, rt_arena *arena)
{
    (void)policy;
    if (!out->has_error || out->denial_count == 0 || out->error.limit.len > 0)
        return;
    const rt_denial *d = &out->denials[out->denial_count - 1];
    if (out->error.hint.len == 0 || strncmp(d->rule, "network", 7) == 0)
        out->error.hint =
            rt_arena_printf(arena, "%s was refused (%s): %s", d->call, d->rule, d->allow);
    if (rt_str_eq_c(out->error.type, "RuntimeError"))
        out->error.type = RT_STR("PermissionError");
}

/* ---- as JSON ---- */

static const char *type_of_file(rt_str name)
{
    static const struct {
        const char *ending, *type;
    } types[] = {
        { ".png", "image/png" },       { ".jpg", "image/jpeg" },        { ".jpeg", "image/jpeg" },
        { ".svg", "image/svg+xml" },   { ".json", "application/json" }, { ".csv", "text/csv" },
        { ".txt", "text/plain" },      { ".md", "text/markdown" },      { ".html", "text/html" },
        { ".pdf", "application/pdf" },
    };
    for (size_t i = 0; i < RT_COUNT(types); i++)
        if (rt_str_ends(name, rt_str_of(types[i].ending)))
            return types[i].type;
    return "application/octet-stream";
}

void rt_base64(rt_buf *out, rt_str data)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < data.len; i += 3) {
        uint32_t b = (uint32_t)(uint8_t)data.ptr[i] << 16;
        size_t left = data.len - i;
        b |= left > 1 ? (uint32_t)(uint8_t)data.ptr[i + 1] << 8 : 0;
        b |= left > 2 ? (uint8_t)data.ptr[i + 2] : 0;
        rt_buf_addc(out, digits[b >> 18]);
        rt_buf_addc(out, digits[b >> 12 & 63]);
        rt_buf_addc(out, left > 1 ? digits[b >> 6 & 63] : '=');
        rt_buf_addc(out, left > 2 ? digits[b & 63] : '=');
    }
}

static void write_base64(rt_json_writer *w, rt_str data)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_base64(&text, data);
    rt_jw_kstr(w, "base64", rt_buf_str(&text));
}

static void write_artifacts(const rt_outcome *o, rt_json_writer *w)
{
    rt_jw_karray(w, "artifacts");
    for (size_t i = 0; i < o->artifact_count; i++) {
        const rt_file *f = &o->artifacts[i];
        rt_jw_object(w);
        rt_jw_kstr(w, "name", f->name);
        rt_jw_kstr(w, "type", rt_str_of(type_of_file(f->name)));
        rt_jw_ku64(w, "size", f->size);
        if (f->is_cut) {
            rt_jw_kbool(w, "truncated", true);
        } else if (f->handle.len > 0) {
            rt_jw_kstr(w, "handle", f->handle);
        } else {
            char hash[65];
            rt_sha256_hex(f->data, hash);
            rt_jw_kstr(w, "sha256", rt_str_of(hash));
            write_base64(w, f->data);
        }
        rt_jw_end(w);
    }
    rt_jw_end(w);
}

static void write_optional(rt_json_writer *w, const char *key, rt_str text)
{
    if (text.len > 0)
        rt_jw_kstr(w, key, text);
}

static void write_error(const rt_outcome *o, rt_json_writer *w)
{
    if (!o->has_error) {
        rt_jw_knull(w, "error");
        return;
    }
    rt_jw_kobject(w, "error");
    rt_jw_kstr(w, "type", o->error.type);
    write_optional(w, "name", o->error.name);
    rt_jw_kstr(w, "message", o->error.message);
    if (o->error.line > 0)
        rt_jw_ki64(w, "line", o->error.line);
    if (o->error.column > 0)
        rt_jw_ki64(w, "column", o->error.column);
    write_optional(w, "limit", o->error.limit);
    write_optional(w, "hint", o->error.hint);
    write_optional(w, "stack", o->error.stack);
    rt_jw_end(w);
}

static void write_denials(const rt_outcome *o, rt_json_writer *w)
{
    rt_jw_karray(w, "denials");
    for (size_t i = 0; i < o->denial_count; i++) {
        rt_jw_object(w);
        rt_jw_kstr(w, "call", rt_str_of(o->denials[i].call));
        rt_jw_kstr(w, "rule", rt_str_of(o->denials[i].rule));
        rt_jw_kstr(w, "allow", rt_str_of(o->denials[i].allow));
        rt_jw_end(w);
    }
    rt_jw_end(w);
}

void rt_outcome_write(const rt_outcome *o, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_outcome_write_members(o, w);
    rt_jw_end(w);
}

void rt_outcome_write_members(const rt_outcome *o, rt_json_writer *w)
{
    rt_jw_kstr(w, "id", o->id);
    rt_jw_kstr(w, "status", rt_str_of(rt_status_name(o->status)));
    rt_jw_kbool(w, "success", o->status == RT_STATUS_SUCCESS);
    rt_jw_kstr(w, "language", o->language);
    rt_jw_kstr(w, "runtime", o->runtime);
    if (o->has_value)
        rt_jw_kraw(w, "result", o->value);
    else
        rt_jw_knull(w, "result");
    rt_jw_kbool(w, "parsed", o->is_parsed);
    rt_jw_kstr(w, "stdout", o->out);
    rt_jw_kstr(w, "stderr", o->err);
    if (o->out.len < o->out_bytes || o->err.len < o->err_bytes)
        rt_jw_kbool(w, "truncated", true);
    rt_jw_ki64(w, "exit_code", o->exit_code);
    write_error(o, w);
    write_denials(o, w);
    write_artifacts(o, w);
    rt_jw_kobject(w, "metrics");
    rt_jw_kdouble(w, "executionTimeMs", (double)o->wall_us / 1000.0);
    rt_jw_kdouble(w, "startMs", (double)o->start_us / 1000.0);
    rt_jw_kdouble(w, "cpuMs", (double)o->cpu_us / 1000.0);
    rt_jw_ku64(w, "memoryPeakBytes", o->memory_peak_bytes);
    rt_jw_ku64(w, "outputBytes", o->out_bytes + o->err_bytes);
    rt_jw_end(w);
    if (o->attestation.len > 0)
        rt_jw_kraw(w, "attestation", o->attestation);
    if (o->detail.len > 0)
        rt_jw_kraw(w, "detail", o->detail);
}
