/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - one skill from what its files say, or the reason why it is none.
 *
 * skill.yaml and a registration over the API have the same members, so both come here as JSON. A
 * member nobody knows is passed over, since other systems put theirs beside ours; but one that is
 * nearly ours is refused: a misspelt safety flag must not be a flag that is off.
 */
#include "skills/skills_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME_MAX_BYTES  64
#define DESCRIPTION_MAX 4096
#define NUMBER_MAX      999999999u
#define FILE_NAME_MAX   100

static const struct {
    const char *name;
    unsigned flag;
} flags[] = {
    { "none", 0 },
    { "pii_risk", RT_SKILL_PII_RISK },
    { "external_call", RT_SKILL_EXTERNAL_CALL },
    { "side_effect", RT_SKILL_SIDE_EFFECT },
    { "file_system", RT_SKILL_FILE_SYSTEM },
    { "network_access", RT_SKILL_NETWORK_ACCESS },
};

/* Other words in the place of a skill's name in the API's paths. */
static const char *const taken_names[] = { "list",       "execute", "register",
                                           "provenance", "guides",  "problems" };

static const char *const members[] = {
    "name",           "version",      "description",   "safety_flags", "requires_approval",
    "handler",        "tags",         "handler_path",  "handler_code", "inputs_schema",
    "outputs_schema", "input_schema", "output_schema", "limits",       "dependencies",
    "tools",          "read_paths",   "author",        "license",      "metadata",
};

const char *rt_skill_flag_name(size_t i, unsigned *flag)
{
    if (i >= RT_COUNT(flags))
        return NULL;
    *flag = flags[i].flag;
    return flags[i].name;
}

static bool check_members(rt_json metadata, rt_error *err)
{
    rt_json_iter it = rt_json_each(metadata);
    rt_str name;
    rt_json value;
    while (rt_json_next(&it, &name, &value)) {
        rt_nearest near;
        char hint[RT_NEAREST_HINT];
        bool is_known = false;
        rt_nearest_start(&near, name);
        for (size_t i = 0; i < RT_COUNT(members); i++) {
            rt_nearest_try(&near, rt_str_of(members[i]));
            is_known |= rt_str_eq_c(name, members[i]);
        }
        if (!is_known && rt_nearest_hint(&near, "", hint)[0] != '\0')
            return rt_fail(err, RT_INVALID, "unknown key '%.*s'%s",
                           (int)RT_MIN(name.len, (size_t)40), name.ptr, hint);
    }
    return true;
}

static bool read_text(rt_json metadata, const char *name, size_t max, rt_str *out, rt_error *err)
{
    rt_json value = rt_json_get_c(metadata, name);
    if (rt_json_type(value) <= RT_JSON_NULL)
        return true;
    if (rt_json_type(value) != RT_JSON_STRING)
        return rt_fail(err, RT_INVALID, "'%s' must be a text, not %s", name,
                       rt_json_type_name(value));
    *out = rt_json_str(value);
    if (out->len > max || !rt_utf8_valid(*out) || (out->len && memchr(out->ptr, '\0', out->len)))
        return rt_fail(err, RT_INVALID, "'%s' must be UTF-8 text of at most %zu bytes", name, max);
    return true;
}

static bool is_word(rt_str s, const char *also)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_' && !strchr(also, c))
            return false;
    }
    return s.len > 0;
}

static bool check_name(rt_str name, rt_error *err)
{
    if (name.len == 0)
        return rt_fail(err, RT_INVALID, "'name' is missing");
    if (!is_word(name, "-") || name.len > NAME_MAX_BYTES || name.ptr[0] == '-')
        return rt_fail(err, RT_INVALID,
                       "'name' must be 1 to %d letters, digits, '_' and '-', not '%.*s'",
                       NAME_MAX_BYTES, (int)RT_MIN(name.len, (size_t)80), name.ptr);
    for (size_t i = 0; i < RT_COUNT(taken_names); i++)
        if (rt_str_eq_c(name, taken_names[i]))
            return rt_fail(err, RT_INVALID, "'%s' is a word of the API's own; choose another name",
                           taken_names[i]);
    return true;
}

static bool read_version(skill *s, rt_error *err)
{
    rt_str rest = s->shown.version, part;
    size_t count = 0;
    bool ok = rest.len > 0;
    while (ok && rt_str_cut(&rest, '.', &part)) {
        ok = count < RT_COUNT(s->numbers) && rt_str_to_u64(part, &s->numbers[count]) &&
             s->numbers[count] <= NUMBER_MAX;
        count++;
    }
    if (!ok || count != RT_COUNT(s->numbers))
        return rt_fail(err, RT_INVALID,
                       "'version' must be three numbers such as 1.0.0, in quotes if need be");
    return true;
}

/* A list of texts; one text alone is a list of one. */
static bool read_list(rt_json metadata, const char *name, rt_arena *arena, const rt_str **out,
                      size_t *count, rt_error *err)
{
    rt_json list = rt_json_get_c(metadata, name), value;
    bool is_one = rt_json_type(list) == RT_JSON_STRING;
    if (rt_json_type(list) <= RT_JSON_NULL)
        return true;
    if (!is_one && rt_json_type(list) != RT_JSON_ARRAY)
        return rt_fail(err, RT_INVALID, "'%s' must be a list of texts", name);
    if (rt_json_count(list) > SKILL_LIST_MAX)
        return rt_fail(err, RT_LIMIT, "'%s' has more than %d entries", name, SKILL_LIST_MAX);
    rt_str *items = rt_arena_alloc(arena, sizeof(*items) * SKILL_LIST_MAX);
    rt_json_iter it = rt_json_each(list);
    if (is_one)
        items[(*count)++] = rt_json_str(list);
    while (!is_one && rt_json_next(&it, NULL, &value)) {
        if (rt_json_type(value) != RT_JSON_STRING || !rt_utf8_valid(rt_json_str(value)))
            return rt_fail(err, RT_INVALID, "'%s' must be a list of texts", name);
        items[(*count)++] = rt_json_str(value);
    }
    *out = items;
    return true;
}

static bool read_flag(rt_str name, unsigned *set, rt_error *err)
{
    for (size_t i = 0; i < RT_COUNT(flags); i++)
        if (rt_str_eq_c(name, flags[i].name)) {
            *set |= flags[i].flag;
            return true;
        }
    return rt_fail(err, RT_INVALID,
                   "unknown safety flag '%.*s'; there are none, pii_risk, external_call, "
                   "side_effect, file_system and network_access",
                   (int)RT_MIN(name.len, (size_t)40), name.ptr);
}

static bool read_limit(rt_json limits, const char *name, double least, double most, double *out,
                       rt_error *err)
{
    rt_json value = rt_json_get_c(limits, name);
    if (rt_json_type(value) <= RT_JSON_NULL)
        return true;
    if (!rt_json_double(value, out) || *out < least || *out > most)
        return rt_fail(err, RT_INVALID, "'limits.%s' must be a number from %g to %g", name, least,
                       most);
    return true;
}

static bool read_limits(rt_json metadata, skill *s, rt_error *err)
{
    rt_json limits = rt_json_get_c(metadata, "limits");
    double seconds = 0, megabytes = 0, percent = 0;
    if (rt_json_type(limits) > RT_JSON_NULL && rt_json_type(limits) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "'limits' must be a map");
    if (!read_limit(limits, "timeout_seconds", 0.1, 300, &seconds, err) ||
        !read_limit(limits, "max_memory_mb", 16, 65536, &megabytes, err) ||
        !read_limit(limits, "max_cpu_percent", 1, 100, &percent, err))
        return false;
    s->timeout_ms = (uint64_t)(seconds * 1000);
    s->memory_bytes = (uint64_t)megabytes << 20;
    return true;
}

static const char *const endings[] = { ".py", ".js", ".ts", ".sh" };

static rt_str drop_ending(rt_str file, rt_str *ending)
{
    for (size_t i = 0; i < RT_COUNT(endings); i++)
        if (rt_str_ends(file, rt_str_of(endings[i]))) {
            *ending = rt_str_of(endings[i]);
            return rt_str_slice(file, 0, file.len - ending->len);
        }
    return file;
}

/* "handler.function", "handler.py", "handler.py:function" or "handler.py.function" (S4-36). */
static bool read_handler(skill *s, rt_arena *arena, rt_error *err)
{
    rt_str path = s->shown.handler_path.len ? s->shown.handler_path : RT_STR("handler");
    rt_str stem = path, function = { 0 }, ending = { 0 };
    const char *last = memrchr(path.ptr, ':', path.len);
    stem = drop_ending(path, &ending);
    if (!last && ending.len == 0)
        last = memrchr(path.ptr, '.', path.len);
    if (last) {
        function = rt_str_slice(path, (size_t)(last - path.ptr) + 1, path.len);
        stem = drop_ending(rt_str_slice(path, 0, (size_t)(last - path.ptr)), &ending);
        if (!is_word(function, "$"))
            return rt_fail(err, RT_INVALID, "'handler' must be such as handler.function_name");
    }
    if (!is_word(stem, "") || stem.len > FILE_NAME_MAX)
        return rt_fail(err, RT_INVALID, "'handler' must be such as handler.function_name");
    s->function = function;
    s->file = rt_arena_printf(arena, "%.*s%.*s", RT_FMT(stem), RT_FMT(ending));
    s->shown.handler_path = path;
    return true;
}

/* What a flag must stand for: files and tools are named only by those who say so. */
static bool check_flags(const skill *s, rt_error *err)
{
    if (s->read_path_count > 0 && !(s->shown.flags & RT_SKILL_FILE_SYSTEM))
        return rt_fail(err, RT_INVALID, "'read_paths' needs the safety flag file_system");
    for (size_t i = 0; i < s->read_path_count; i++)
        if (s->read_paths[i].len == 0 || s->read_paths[i].ptr[0] != '/')
            return rt_fail(err, RT_INVALID, "'read_paths' must be absolute");
    if (s->tool_count > 0 && !(s->shown.flags & RT_SKILL_EXTERNAL_CALL))
        return rt_fail(err, RT_INVALID, "'tools' needs the safety flag external_call");
    return true;
}

bool skills_read_metadata(rt_json metadata, rt_arena *arena, skill *s, rt_error *err)
{
    const rt_str *words = NULL;
    size_t word_count = 0;
    rt_json approval = rt_json_get_c(metadata, "requires_approval");
    if (rt_json_type(metadata) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "lines of 'key: value' are expected");
    s->metadata = metadata;
    if (!check_members(metadata, err) ||
        !read_text(metadata, "name", NAME_MAX_BYTES * 4, &s->shown.name, err) ||
        !check_name(s->shown.name, err) ||
        !read_text(metadata, "version", 40, &s->shown.version, err) || !read_version(s, err) ||
        !read_text(metadata, "description", DESCRIPTION_MAX, &s->shown.description, err) ||
        !read_text(metadata, "handler", FILE_NAME_MAX * 2, &s->shown.handler_path, err) ||
        !read_text(metadata, "handler_path", FILE_NAME_MAX * 2, &s->shown.handler_path, err) ||
        !read_list(metadata, "tags", arena, &s->shown.tags, &s->shown.tag_count, err) ||
        !read_list(metadata, "safety_flags", arena, &words, &word_count, err) ||
        !read_list(metadata, "tools", arena, &s->tools, &s->tool_count, err) ||
        !read_list(metadata, "read_paths", arena, &s->read_paths, &s->read_path_count, err) ||
        !read_limits(metadata, s, err))
        return false;
    if (s->shown.description.len == 0)
        return rt_fail(err, RT_INVALID, "'description' is missing");
    if (rt_json_type(approval) > RT_JSON_NULL && rt_json_type(approval) != RT_JSON_BOOL)
        return rt_fail(err, RT_INVALID, "'requires_approval' must be true or false");
    s->shown.requires_approval = rt_json_bool(approval, false);
    for (size_t i = 0; i < word_count; i++)
        if (!read_flag(words[i], &s->shown.flags, err))
            return false;
    return check_flags(s, err) && read_handler(s, arena, err);
}

/* -- Schemas ----------------------------------------------------------------------------------- */

static bool take_schema(rt_json schema, const char *name, rt_arena *arena, rt_str *text,
                        rt_schema **out, rt_error *err)
{
    static const rt_schema_options options = { .draft = RT_DRAFT_07 };
    rt_buf printed RT_CLEANUP(rt_buf_done) = { 0 };
    if (rt_json_is_absent(schema))
        return rt_fail(err, RT_INVALID, "the %s schema is missing", name);
    if (rt_json_type(schema) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "the %s schema must be an object", name);
    if (!rt_schema_new(schema, &options, out, err))
        return rt_wrap(err, "the %s schema", name);
    rt_json_print(schema, &printed);
    *text = rt_arena_str(arena, rt_buf_str(&printed));
    return rt_buf_ok(&printed, err);
}

bool skills_take_schemas(rt_json input, rt_json output, rt_arena *arena, skill *s, rt_error *err)
{
    return take_schema(input, "input", arena, &s->shown.input_schema, &s->input, err) &&
           take_schema(output, "output", arena, &s->shown.output_schema, &s->output, err);
}

/* "schema.json#/definitions/X" or "#/definitions/X": a schema that leads there. */
static bool point_into(rt_json schemas, rt_str reference, const char *name, rt_arena *arena,
                       rt_json *out, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    ptrdiff_t hash = rt_str_find(reference, RT_STR("#"));
    if (reference.len == 0)
        return rt_fail(err, RT_INVALID, "the %s schema is missing", name);
    if (hash < 0)
        return rt_fail(err, RT_INVALID, "'%ss_schema' must be such as schema.json#/definitions/x",
                       name);
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "$ref", rt_str_slice(reference, (size_t)hash, reference.len));
    rt_jw_kjson(&w, "definitions", rt_json_get_c(schemas, "definitions"));
    rt_jw_end(&w);
    return rt_json_parse(rt_buf_str(&text), arena, out, err);
}

bool skills_read_schemas(rt_json schemas, rt_arena *arena, skill *s, rt_error *err)
{
    rt_json input = rt_json_get_c(schemas, "input"), output = rt_json_get_c(schemas, "output");
    rt_str in_ref = rt_json_str(rt_json_get_c(s->metadata, "inputs_schema"));
    rt_str out_ref = rt_json_str(rt_json_get_c(s->metadata, "outputs_schema"));
    bool has_definitions = rt_json_type(rt_json_get_c(schemas, "definitions")) == RT_JSON_OBJECT;
    if (rt_json_type(schemas) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "an object with \"input\" and \"output\" is expected");
    if (rt_json_is_absent(input) && has_definitions &&
        !point_into(schemas, in_ref, "input", arena, &input, err))
        return false;
    if (rt_json_is_absent(output) && has_definitions &&
        !point_into(schemas, out_ref, "output", arena, &output, err))
        return false;
    return skills_take_schemas(input, output, arena, s, err);
}

/* -- Handlers ---------------------------------------------------------------------------------- */

static bool names_word(rt_str code, rt_str word)
{
    for (rt_str rest = code;;) {
        ptrdiff_t at = rt_str_find(rest, word);
        if (at < 0)
            return false;
        size_t end = (size_t)at + word.len;
        bool is_start = at == 0 || !is_word((rt_str){ rest.ptr + at - 1, 1 }, "$");
        if (is_start && (end == rest.len || !is_word((rt_str){ rest.ptr + end, 1 }, "$")))
            return true;
        rest = rt_str_slice(rest, end, rest.len);
    }
}

static bool has_wrapper(const rt_language *language)
{
    static const char *const names[] = { "python", "javascript", "typescript", "bash" };
    for (size_t i = 0; language && i < RT_COUNT(names); i++)
        if (strcmp(language->name, names[i]) == 0)
            return true;
    return false;
}

bool skills_check_handler(skill *s, rt_error *err)
{
    const rt_language *language = rt_language_of_file(s->file);
    if (!has_wrapper(language))
        return rt_fail(err, RT_INVALID, "%.*s: a handler ends in .py, .js, .ts or .sh",
                       RT_FMT(s->file));
    s->shown.language = rt_str_of(language->name);
    if (!rt_utf8_valid(s->code) || (s->code.len && memchr(s->code.ptr, '\0', s->code.len)))
        return rt_fail(err, RT_INVALID, "%.*s is not UTF-8 text", RT_FMT(s->file));
    if (rt_str_trim(s->code).len == 0)
        return rt_fail(err, RT_INVALID, "%.*s is empty", RT_FMT(s->file));
    bool is_shell = rt_str_eq_c(s->shown.language, "bash");
    if (s->function.len == 0 && !is_shell)
        return rt_fail(err, RT_INVALID, "'handler' must name a function: handler.function_name");
    if (s->function.len > 0 && !names_word(s->code, s->function))
        return rt_fail(err, RT_INVALID, "%.*s has no function '%.*s'", RT_FMT(s->file),
                       RT_FMT(s->function));
    return true;
}

void skills_skill_done(skill *s)
{
    rt_schema_free(s->input);
    rt_schema_free(s->output);
    s->input = s->output = NULL;
}

int skills_compare(const skill *a, const skill *b)
{
    int order = rt_str_cmp(a->shown.name, b->shown.name);
    for (size_t i = 0; i < RT_COUNT(a->numbers) && order == 0; i++)
        order = a->numbers[i] < b->numbers[i] ? 1 : -(a->numbers[i] > b->numbers[i]);
    return order ? order : rt_str_cmp(a->shown.organisation_id, b->shown.organisation_id);
}
