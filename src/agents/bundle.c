/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.c - code of several files: where it lies, and how it becomes one program.
 *
 * The files of an agent are written into the cell's own directory by a prelude before the entry
 * point's first line, so imports, require() and source find them as they would on any disk, and
 * data files can be opened by name. The prelude stands on the entry point's first line, so that
 * lines stay the user's; only in Python, where a block cannot follow a statement on its line, and
 * in TypeScript, where an import must begin one, it has a line of its own, and the lines of errors
 * are set right afterwards.
 *
 * What is small lies in the row. Above RT_AGENT_ROW_MAX it is one object in the object directory;
 * if that cannot be written, the row has to do.
 */
#include "agents/agents_internal.h"

#include <stdio.h>

#define FILES_MAX 200
#define DEPTH_MAX 8
#define PATH_MAX_ 200

/* ---- what files may be ---- */

static bool is_part(rt_str part)
{
    for (size_t i = 0; i < part.len; i++) {
        char c = part.ptr[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-';
        if (!is_word && !(i > 0 && c == '.'))
            return false;
    }
    return part.len > 0;
}

static bool is_path(rt_str path)
{
    rt_str rest = path, part;
    size_t depth = 0;
    while (rt_str_cut(&rest, '/', &part))
        if (!is_part(part) || ++depth > DEPTH_MAX)
            return false;
    return path.len > 0 && path.len <= PATH_MAX_;
}

static bool is_joined(rt_str language)
{
    static const char *const known[] = { "python", "javascript", "typescript", "bash" };
    for (size_t i = 0; i < RT_COUNT(known); i++)
        if (rt_str_eq_c(language, known[i]))
            return true;
    return false;
}

bool agents_files_check(rt_json files, rt_str entry_point, rt_str language, rt_error *err)
{
    rt_json_iter it = rt_json_each(files);
    rt_str path;
    rt_json text;
    if (entry_point.len > 0 && !is_path(entry_point))
        return rt_fail(err, RT_INVALID, "'entryPoint' must be a path such as main.py");
    if (rt_json_count(files) == 0)
        return true;
    if (rt_json_count(files) > FILES_MAX)
        return rt_fail(err, RT_LIMIT, "files: at most %d", FILES_MAX);
    if (!is_joined(language))
        return rt_fail(err, RT_UNSUPPORTED,
                       "several files are for python, javascript, typescript and bash");
    while (rt_json_next(&it, &path, &text)) {
        rt_str content = rt_json_str(text);
        if (!is_path(path))
            return rt_fail(err, RT_INVALID,
                           "files: '%.*s' is no path such as lib/util.py: letters, digits, '.', "
                           "'_' and '-' between slashes",
                           (int)RT_MIN(path.len, (size_t)60), path.ptr);
        if (rt_json_type(text) != RT_JSON_STRING || !rt_utf8_valid(content) ||
            (content.len > 0 && memchr(content.ptr, '\0', content.len)))
            return rt_fail(err, RT_INVALID, "files: '%.*s' must be text", RT_FMT(path));
    }
    return true;
}

/* ---- where they lie ---- */

static rt_str object_path(rt_str agent_id, rt_str version, rt_arena *arena)
{
    return rt_arena_printf(arena, "code-agents/code-blobs/%.*s/%.*s.txt", RT_FMT(agent_id),
                           RT_FMT(version));
}

static rt_str wrap(const rt_agent_content *content, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "code", content->code);
    rt_jw_kraw(&w, "files", content->files.len ? content->files : RT_STR("{}"));
    rt_jw_end(&w);
    return rt_arena_str(arena, rt_buf_str(&text));
}

bool agents_bundle_store(const rt_agents *a, rt_str agent_id, rt_str version,
                         rt_agent_content *content, rt_arena *arena, rt_error *err)
{
    content->code_storage_path = (rt_str){ 0 };
    content->code_bytes = content->code.len + content->files.len;
    if (content->code_bytes > RT_AGENT_CODE_MAX)
        return rt_fail(err, RT_LIMIT, "the code has %llu bytes; an agent may have %zu",
                       (unsigned long long)content->code_bytes, RT_AGENT_CODE_MAX);
    if (content->code_bytes <= RT_AGENT_ROW_MAX)
        return true;
    rt_str path = object_path(agent_id, version, arena);
    if (!rt_objects_put(a->config.objects, path, wrap(content, arena), NULL))
        return true; /* the row has it */
    content->code_storage_path = path;
    content->code = content->files = (rt_str){ 0 };
    return true;
}

bool agents_bundle_load(const rt_agents *a, rt_agent_content *content, rt_arena *arena,
                        rt_error *err)
{
    rt_str text;
    rt_json doc;
    if (content->code_storage_path.len == 0)
        return true;
    if (!rt_objects_get(a->config.objects, content->code_storage_path, 2 * RT_AGENT_CODE_MAX, arena,
                        &text, err)) {
        if (err && err->code == RT_NOT_FOUND)
            return rt_fail(err, RT_UNAVAILABLE,
                           "the code of this version lies on another node's disk; nodes that "
                           "share a database need the same object directory");
        return rt_wrap(err, "the code of this version");
    }
    if (!rt_json_parse(text, arena, &doc, err))
        return rt_wrap(err, "the code of this version");
    content->code = rt_json_str(rt_json_get_c(doc, "code"));
    content->files = agents_json_text(rt_json_get_c(doc, "files"), arena);
    return true;
}

/* ---- how they become one program ---- */

/* [["lib/util.py", "…"], …]: JSON is a literal in Python and in JavaScript. */
static void write_pairs(rt_json files, rt_buf *out)
{
    rt_json_iter it = rt_json_each(files);
    rt_json_writer w;
    rt_str path;
    rt_json text;
    rt_json_begin(&w, out);
    rt_jw_array(&w);
    while (rt_json_next(&it, &path, &text)) {
        rt_jw_array(&w);
        rt_jw_str(&w, path);
        rt_jw_str(&w, rt_json_str(text));
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
}

/* The import names its namespace, so that it is not taken for the user's where imports are listed.
 */
static void write_python(rt_json files, rt_buf *out)
{
    rt_buf_add(out, RT_STR("(lambda files: [(__import__('os', {'__name__': 'retort'}).makedirs("
                           "p.rpartition('/')[0] or '.', exist_ok=True), open(p, 'w', "
                           "encoding='utf-8').write(t)) for p, t in files] and None)("));
    write_pairs(files, out);
    rt_buf_add(out, RT_STR(")"));
}

static void write_javascript(rt_json files, rt_buf *out)
{
    rt_buf_add(out, RT_STR("((files, fs, path) => { for (const [p, t] of files) { "
                           "fs.mkdirSync(path.dirname(p), { recursive: true }); "
                           "fs.writeFileSync(p, t); } })("));
    write_pairs(files, out);
    rt_buf_add(out, RT_STR(", process.getBuiltinModule('fs'), "
                           "process.getBuiltinModule('path')); "));
}

static void quote_bash(rt_str text, rt_buf *out)
{
    rt_buf_add(out, RT_STR("$'"));
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '\'' || c == '\\')
            rt_buf_addc(out, '\\');
        if (c < ' ' || c == 0x7f)
            rt_buf_addf(out, "\\%03o", c);
        else
            rt_buf_addc(out, (char)c);
    }
    rt_buf_addc(out, '\'');
}

static void write_bash(rt_json files, rt_buf *out)
{
    rt_json_iter it = rt_json_each(files);
    rt_str path;
    rt_json text;
    while (rt_json_next(&it, &path, &text)) {
        const char *slash = memrchr(path.ptr, '/', path.len);
        if (slash)
            rt_buf_addf(out, "mkdir -p -- '%.*s'; ", (int)(slash - path.ptr), path.ptr);
        rt_buf_add(out, RT_STR("printf %s "));
        quote_bash(rt_json_str(text), out);
        rt_buf_addf(out, " > '%.*s'; ", RT_FMT(path)); /* a checked path: it has no quote */
    }
}

/* After what must come first: the last "from __future__" line of Python, a "#!" line elsewhere. */
static size_t begin_of(rt_str code, bool is_python)
{
    size_t at = 0, begin = 0;
    while (at < code.len) {
        rt_str rest = rt_str_slice(code, at, code.len);
        ptrdiff_t end = rt_str_find(rest, RT_STR("\n"));
        size_t next = end < 0 ? code.len : at + (size_t)end + 1;
        bool is_first = is_python ? rt_str_starts(rest, RT_STR("from __future__ import"))
                                  : at == 0 && rt_str_starts(rest, RT_STR("#!"));
        if (is_first && end >= 0)
            begin = next;
        at = next;
    }
    return begin;
}

static uint64_t count_lines(rt_str text)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    return lines;
}

bool agents_bundle_join(rt_str language, rt_str code, rt_json files, rt_arena *arena, rt_str *out,
                        uint64_t *shift_from, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    bool is_python = rt_str_eq_c(language, "python");
    bool is_apart = is_python || rt_str_eq_c(language, "typescript");
    *shift_from = 0;
    *out = code;
    if (rt_json_count(files) == 0)
        return true;
    size_t begin = begin_of(code, is_python);
    rt_buf_add(&text, rt_str_slice(code, 0, begin));
    if (is_apart)
        *shift_from = count_lines(rt_str_slice(code, 0, begin)) + 1;
    if (is_python) {
        write_python(files, &text);
    } else if (rt_str_eq_c(language, "bash")) {
        write_bash(files, &text);
    } else {
        write_javascript(files, &text);
    }
    if (is_apart)
        rt_buf_addc(&text, '\n');
    rt_buf_add(&text, rt_str_slice(code, begin, code.len));
    if (!rt_buf_ok(&text, err))
        return rt_wrap(err, "join the files");
    *out = rt_arena_str(arena, rt_buf_str(&text));
    return true;
}

/* ---- lines ---- */

static int64_t shifted(int64_t line, uint64_t from)
{
    return line > (int64_t)from ? line - 1 : line;
}

/* Lines stand after 'File "main.py", line ' or 'main.ts:'. */
static rt_str shift_after(rt_str stack, rt_str mark, uint64_t from, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    ptrdiff_t at;
    while ((at = rt_str_find(stack, mark)) >= 0) {
        size_t begin = (size_t)at + mark.len, end = begin;
        uint64_t line = 0;
        while (end < stack.len && stack.ptr[end] >= '0' && stack.ptr[end] <= '9')
            end++;
        rt_str_to_u64(rt_str_slice(stack, begin, end), &line);
        rt_buf_add(&text, rt_str_slice(stack, 0, begin));
        if (end > begin)
            rt_buf_addf(&text, "%lld", (long long)shifted((int64_t)line, from));
        stack = rt_str_slice(stack, end, stack.len);
    }
    rt_buf_add(&text, stack);
    return rt_arena_str(arena, rt_buf_str(&text));
}

static rt_str shift_stack(rt_str stack, rt_str file, uint64_t from, rt_arena *arena)
{
    rt_str python = rt_arena_printf(arena, "File \"%.*s\", line ", RT_FMT(file));
    rt_str node = rt_arena_printf(arena, "%.*s:", RT_FMT(file));
    return shift_after(shift_after(stack, python, from, arena), node, from, arena);
}

static void write_error(rt_json error, rt_str file, uint64_t from, rt_arena *arena,
                        rt_json_writer *w)
{
    rt_json_iter it = rt_json_each(error);
    rt_str key;
    rt_json value;
    int64_t line = 0;
    rt_jw_object(w);
    while (rt_json_next(&it, &key, &value)) {
        rt_jw_key(w, key);
        if (rt_str_eq_c(key, "line") && rt_json_i64(value, &line))
            rt_jw_i64(w, shifted(line, from));
        else if (rt_str_eq_c(key, "stack"))
            rt_jw_str(w, shift_stack(rt_json_str(value), file, from, arena));
        else
            rt_jw_json(w, value);
    }
    rt_jw_end(w);
}

rt_json agents_bundle_lines(rt_json answer, rt_str file, uint64_t from, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json error = rt_json_get_c(answer, "error"), value, out = answer;
    rt_json_iter it = rt_json_each(answer);
    rt_json_writer w;
    rt_str key;
    if (from == 0 || rt_json_type(error) != RT_JSON_OBJECT)
        return answer;
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    while (rt_json_next(&it, &key, &value)) {
        rt_jw_key(&w, key);
        if (rt_str_eq_c(key, "error"))
            write_error(value, file, from, arena, &w);
        else
            rt_jw_json(&w, value);
    }
    rt_jw_end(&w);
    rt_json_parse(rt_buf_str(&text), arena, &out, NULL);
    return out;
}
