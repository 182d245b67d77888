/* SPDX-License-Identifier: Apache-2.0 */
/*
 * definition.c - an agent as people write it down: the members of a body, and what must be true of
 * them.
 *
 * One row per member, as in the engine's request.c: what is unknown or of a wrong type is refused
 * by name. A body changes what it has and leaves the rest, so that creating is changing an agent
 * that is still empty.
 */
#include "agents/agents_internal.h"

#include <stddef.h>

#define NAME_MAX        100  /* characters */
#define DESCRIPTION_MAX 4000 /* bytes */
#define CHANGELOG_MAX   10000
#define JSON_MAX        ((size_t)64 << 10) /* of metadata, packages and tools each */
#define LIST_MAX        200

typedef enum member_kind {
    M_TEXT,
    M_CHOICE,
    M_SCHEMA,
    M_LIST,   /* of texts; kept as JSON */
    M_OBJECT, /* kept as JSON */
    M_POLICY,
    M_BOOL,
    M_FILES,
    M_ENVIRONMENT,
} member_kind;

#define IN_ROW(member)     offsetof(agents_draft, row.member)
#define IN_CONTENT(member) offsetof(agents_draft, row.content.member)

static const struct member {
    const char *name;
    member_kind kind;
    size_t offset;
    const char *choices;
} members[] = {
    { "name", M_TEXT, IN_ROW(name), NULL },
    { "description", M_TEXT, IN_ROW(description), NULL },
    { "language", M_TEXT, IN_CONTENT(language), NULL },
    { "code", M_TEXT, IN_CONTENT(code), NULL },
    { "files", M_FILES, 0, NULL },
    { "entryPoint", M_TEXT, IN_CONTENT(entry_point), NULL },
    { "inputSchema", M_SCHEMA, IN_CONTENT(input_schema), NULL },
    { "outputSchema", M_SCHEMA, IN_CONTENT(output_schema), NULL },
    { "validationType", M_CHOICE, IN_CONTENT(validation_type), "zod pydantic" },
    { "runtime", M_CHOICE, IN_CONTENT(runtime), "auto vm2 e2b wasmedge bacalhau subprocess" },
    { "packages", M_LIST, IN_CONTENT(packages), NULL },
    { "tools", M_LIST, IN_CONTENT(tools), NULL },
    { "policy", M_POLICY, IN_CONTENT(policy), NULL },
    { "environment", M_ENVIRONMENT, 0, NULL },
    { "isPublic", M_BOOL, IN_ROW(is_public), NULL },
    { "deprecated", M_BOOL, IN_ROW(is_deprecated), NULL },
    { "deprecation", M_TEXT, IN_ROW(deprecation), NULL },
    { "metadata", M_OBJECT, IN_ROW(metadata), NULL },
    { "changelog", M_TEXT, offsetof(agents_draft, changelog), NULL },
    { "version", M_TEXT, offsetof(agents_draft, version), NULL },
};

/* ---- reading ---- */

static bool wrong_kind(const struct member *m, const char *wanted, rt_json value, rt_error *err)
{
    return rt_fail(err, RT_INVALID, "'%s' must be %s, not %s", m->name, wanted,
                   rt_json_type_name(value));
}

static bool read_choice(const struct member *m, rt_json value, rt_str *field, rt_error *err)
{
    rt_str rest = rt_str_of(m->choices), word;
    while (rt_str_cut(&rest, ' ', &word))
        if (rt_json_type(value) == RT_JSON_STRING && rt_str_eq(word, rt_json_str(value))) {
            *field = word;
            return true;
        }
    return rt_fail(err, RT_INVALID, "'%s' must be one of: %s", m->name, m->choices);
}

static bool read_json(const struct member *m, rt_json value, rt_arena *arena, rt_str *field,
                      rt_error *err)
{
    rt_str text = agents_json_text(value, arena);
    if (text.len > JSON_MAX)
        return rt_fail(err, RT_LIMIT, "'%s' has more than %zu bytes", m->name, JSON_MAX);
    *field = text;
    return true;
}

static bool read_list(const struct member *m, rt_json value, rt_arena *arena, rt_str *field,
                      rt_error *err)
{
    rt_json_iter it = rt_json_each(value);
    rt_json item;
    if (rt_json_type(value) != RT_JSON_ARRAY)
        return wrong_kind(m, "an array of texts", value, err);
    if (rt_json_count(value) > LIST_MAX)
        return rt_fail(err, RT_LIMIT, "'%s' has more than %d items", m->name, LIST_MAX);
    while (rt_json_next(&it, NULL, &item))
        if (rt_json_type(item) != RT_JSON_STRING || !rt_request_label(rt_json_str(item)))
            return rt_fail(err, RT_INVALID, "'%s' must be an array of short texts", m->name);
    return read_json(m, value, arena, field, err);
}

/* {"lib/util.py": "…"} */
static bool read_files(const struct member *m, rt_json value, agents_draft *draft, rt_error *err)
{
    if (rt_json_type(value) != RT_JSON_OBJECT)
        return wrong_kind(m, "an object of paths and texts", value, err);
    draft->files = value;
    return true;
}

static bool read_member(const struct member *m, rt_json value, rt_arena *arena, agents_draft *draft,
                        rt_error *err)
{
    void *field = (char *)draft + m->offset;
    bool is_null = rt_json_type(value) == RT_JSON_NULL;
    switch (m->kind) {
    case M_TEXT:
        if (!is_null && rt_json_type(value) != RT_JSON_STRING)
            return wrong_kind(m, "a text", value, err);
        *(rt_str *)field = rt_json_str(value);
        return true;
    case M_CHOICE:
        return is_null || read_choice(m, value, field, err);
    case M_SCHEMA:
        return agents_schema_adopt(value, m->name, arena, field, err);
    case M_LIST:
        return is_null || read_list(m, value, arena, field, err);
    case M_OBJECT:
        if (!is_null && rt_json_type(value) != RT_JSON_OBJECT)
            return wrong_kind(m, "an object", value, err);
        return is_null || read_json(m, value, arena, field, err);
    case M_POLICY:
        *(rt_str *)field = (rt_str){ 0 };
        return is_null || read_json(m, value, arena, field, err);
    case M_BOOL:
        if (rt_json_type(value) != RT_JSON_BOOL)
            return wrong_kind(m, "true or false", value, err);
        *(bool *)field = rt_json_bool(value, false);
        return true;
    case M_FILES:
        return is_null || read_files(m, value, draft, err);
    case M_ENVIRONMENT:
        return is_null ||
               agents_environment_read(value, draft->environment, arena, &draft->environment, err);
    }
    return true;
}

static bool fail_unknown(rt_str name, rt_error *err)
{
    rt_nearest near;
    char hint[RT_NEAREST_HINT];
    rt_nearest_start(&near, name);
    for (size_t i = 0; i < RT_COUNT(members); i++)
        rt_nearest_try(&near, rt_str_of(members[i].name));
    return rt_fail(err, RT_INVALID, "unknown member '%.*s'%s", (int)RT_MIN(name.len, (size_t)40),
                   name.ptr, rt_nearest_hint(&near, "; docs/agents.md lists what there is", hint));
}

static const struct member *find_member(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(members); i++)
        if (rt_str_eq_c(name, members[i].name))
            return &members[i];
    return NULL;
}

bool agents_draft_read(rt_json body, rt_arena *arena, agents_draft *draft, rt_error *err)
{
    rt_json_iter it = rt_json_each(body);
    rt_str name;
    rt_json value;
    if (rt_json_type(body) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "the body must be a JSON object, not %s",
                       rt_json_type_name(body));
    while (rt_json_next(&it, &name, &value)) {
        const struct member *m = find_member(name);
        if (!m)
            return fail_unknown(name, err);
        if (!read_member(m, value, arena, draft, err))
            return false;
    }
    draft->has_code = rt_json_type(rt_json_get_c(body, "code")) == RT_JSON_STRING;
    return true;
}

/* ---- checking ---- */

static bool check_name(agents_draft *d, rt_arena *arena, rt_error *err)
{
    rt_str name = d->row.name;
    if (rt_str_trim(name).len == 0)
        return rt_fail(err, RT_INVALID, "'name' is missing");
    if (!rt_request_label(name) || rt_utf8_length(name) > NAME_MAX)
        return rt_fail(err, RT_INVALID,
                       "'name' must have at most %d characters, none of them a control character",
                       NAME_MAX);
    d->row.tool_name = rt_agent_tool_name(name, arena);
    for (size_t i = 0; i < d->row.tool_name.len; i++)
        if (d->row.tool_name.ptr[i] != '-')
            return rt_tool_name_check(d->row.tool_name, err) || rt_wrap(err, "name");
    return rt_fail(err, RT_INVALID, "'name' must have a letter or a digit of ASCII in it");
}

static bool check_texts(const agents_draft *d, rt_error *err)
{
    const struct {
        const char *name;
        rt_str text;
        size_t max;
    } texts[] = { { "description", d->row.description, DESCRIPTION_MAX },
                  { "deprecation", d->row.deprecation, DESCRIPTION_MAX },
                  { "changelog", d->changelog, CHANGELOG_MAX } };
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        if (texts[i].text.len > texts[i].max || !rt_utf8_valid(texts[i].text) ||
            (texts[i].text.len > 0 && memchr(texts[i].text.ptr, '\0', texts[i].text.len)))
            return rt_fail(err, RT_INVALID, "'%s' must be text of at most %zu bytes", texts[i].name,
                           texts[i].max);
    return true;
}

static bool check_language(agents_draft *d, rt_error *err)
{
    rt_agent_content *c = &d->row.content;
    if (c->language.len == 0)
        return rt_fail(err, RT_INVALID, "'language' is missing");
    const rt_language *known = rt_language_find(c->language);
    if (!known) {
        rt_language_unknown(c->language, err);
        return rt_wrap(err, "UNSUPPORTED_LANGUAGE");
    }
    c->language = rt_str_of(known->name);
    if (c->validation_type.len == 0)
        c->validation_type =
            rt_str_eq_c(c->language, "python") ? RT_STR("pydantic") : RT_STR("zod");
    return true;
}

rt_str agents_entry_point(const rt_agent_content *c, rt_arena *arena)
{
    const rt_language *known = rt_language_find(c->language);
    return c->entry_point.len > 0
               ? c->entry_point
               : rt_arena_printf(arena, "main.%s", known ? known->ending : "txt");
}

/* The entry point comes out of the files, where it may lie, and into the code. */
static bool settle_files(agents_draft *d, rt_arena *arena, rt_error *err)
{
    rt_agent_content *c = &d->row.content;
    rt_buf others RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_iter it = rt_json_each(d->files);
    rt_json_writer w;
    rt_str path;
    rt_json text;
    if (!agents_files_check(d->files, c->entry_point, c->language, err))
        return false;
    rt_str entry = agents_entry_point(c, arena);
    c->entry_point = (rt_str){ 0 }; /* where it is the usual one, it is as if none was named */
    if (!rt_str_eq(entry, agents_entry_point(c, arena)))
        c->entry_point = entry;
    rt_json_begin(&w, &others);
    rt_jw_object(&w);
    while (rt_json_next(&it, &path, &text)) {
        if (!rt_str_eq(path, entry)) {
            rt_jw_key(&w, path);
            rt_jw_json(&w, text);
        } else if (!d->has_code) {
            c->code = rt_json_str(text);
        }
    }
    rt_jw_end(&w);
    c->files = rt_arena_str(arena, rt_buf_str(&others));
    return rt_buf_ok(&others, err) && rt_json_parse(c->files, arena, &d->files, err);
}

static bool check_code(const agents_draft *d, rt_arena *arena, rt_error *err)
{
    rt_str code = d->row.content.code;
    if (rt_str_trim(code).len == 0)
        return rt_fail(err, RT_INVALID,
                       "MISSING_CODE: give 'code', or 'files' with %.*s among them",
                       RT_FMT(agents_entry_point(&d->row.content, arena)));
    if (!rt_utf8_valid(code) || memchr(code.ptr, '\0', code.len))
        return rt_fail(err, RT_INVALID, "the code must be text in UTF-8");
    return true;
}

static bool check_policy(const agents_draft *d, rt_arena *arena, rt_error *err)
{
    rt_policy policy = *rt_policy_preset(RT_STR("quick"));
    rt_json given;
    if (!agents_json_parse(d->row.content.policy, arena, &given))
        return true;
    if (!rt_policy_read(given, arena, &policy, err))
        return false;
    if (policy.files == RT_FILES_READ_ONLY && rt_json_count(d->files) > 0)
        return rt_fail(err, RT_INVALID,
                       "policy: files of an agent are written into its cell; 'files' must not be "
                       "read_only");
    return true;
}

static bool check_metadata(const agents_draft *d, rt_arena *arena, rt_error *err)
{
    static const char *const scopes[] = { "private", "workspace", "public" };
    rt_json metadata, scope;
    if (!agents_json_parse(d->row.metadata, arena, &metadata))
        return true;
    scope = rt_json_get_c(metadata, "scope");
    for (size_t i = 0; i < RT_COUNT(scopes); i++)
        if (rt_json_type(scope) <= RT_JSON_NULL || rt_str_eq_c(rt_json_str(scope), scopes[i]))
            return true;
    return rt_fail(err, RT_INVALID, "metadata: 'scope' must be private, workspace or public");
}

bool agents_draft_check(agents_draft *d, rt_arena *arena, rt_error *err)
{
    agents_semver version;
    if (d->version.len > 0 && !agents_semver_parse(d->version, &version))
        return rt_fail(err, RT_INVALID, "'version' must be three numbers such as 1.4.0");
    return check_name(d, arena, err) && check_texts(d, err) && check_language(d, err) &&
           settle_files(d, arena, err) && check_code(d, arena, err) &&
           check_policy(d, arena, err) && check_metadata(d, arena, err);
}
