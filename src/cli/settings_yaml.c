/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings_yaml.c - retort.yaml as assignments.
 *
 *     server: { port: 9000 }        # the same as
 *     server.port: 9000
 *     server:
 *       allowed_origins: [https://a.example, https://b.example]
 *
 * Maps are sections, so they are no deeper than the keys of the table. Anchors and aliases are
 * refused, so that a small file cannot stand for a large one; a second document and a key that
 * stands there twice too, since one of the two would be passed over. A key with nothing behind it
 * is not set: that is what a section whose lines are all comments looks like.
 */
#include "cli/settings_internal.h"

#include <yaml.h>

enum { PATH_MAX_BYTES = 256 }; /* of "section.key" as written; longer is no key of ours */

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    const char *name;
    size_t *lines; /* where each setting was set; 0: not yet */
    cli_gathered *to;
    rt_error *err;
} reader;

static size_t line_of(const reader *r)
{
    return r->event.start_mark.line + 1;
}

static rt_str scalar(const yaml_event_t *e)
{
    return (rt_str){ (const char *)e->data.scalar.value, e->data.scalar.length };
}

static bool is_nothing(const yaml_event_t *e)
{
    rt_str text = scalar(e);
    return e->type == YAML_SCALAR_EVENT && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (text.len == 0 || rt_str_eq_c(text, "~") || rt_str_eq_c(text, "null"));
}

static bool advance(reader *r)
{
    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return rt_fail(r->err, RT_INVALID, "%s:%zu: %s", r->name, r->parser.problem_mark.line + 1,
                       r->parser.problem ? r->parser.problem : "not YAML");
    bool has_anchor =
        (r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.anchor) ||
        (r->event.type == YAML_SEQUENCE_START_EVENT && r->event.data.sequence_start.anchor) ||
        (r->event.type == YAML_MAPPING_START_EVENT && r->event.data.mapping_start.anchor);
    if (r->event.type == YAML_ALIAS_EVENT || has_anchor)
        return rt_fail(r->err, RT_INVALID, "%s:%zu: anchors and aliases are not used here", r->name,
                       line_of(r));
    return true;
}

static bool fail_unknown(reader *r, rt_str key, size_t line)
{
    char hint[RT_NEAREST_HINT];
    rt_nearest near;
    const cli_setting *setting;
    rt_nearest_start(&near, key);
    for (size_t i = 0; (setting = cli_setting_at(i)); i++) {
        rt_str name = rt_str_of(setting->key), rest = name, section;
        rt_nearest_try(&near, name);
        if (rt_str_cut(&rest, '.', &section) && rest.ptr)
            rt_nearest_try(&near, section);
    }
    return rt_fail(r->err, RT_INVALID, "%s:%zu: unknown key '%.*s'%s", r->name, line,
                   RT_FMT(rt_str_slice(key, 0, 60)),
                   rt_nearest_hint(&near, "; 'retort config --help' lists them", hint));
}

static bool fail_shape(reader *r, const cli_setting *setting, size_t line)
{
    return rt_fail(r->err, RT_INVALID, "%s:%zu: %s takes %s", r->name, line, setting->key,
                   setting->kind == CLI_LIST ? "a list of plain values" : "one plain value");
}

static bool assign(reader *r, const cli_setting *setting, rt_str text, size_t line)
{
    size_t *seen = &r->lines[cli_setting_index(setting)];
    if (*seen)
        return rt_fail(r->err, RT_INVALID, "%s:%zu: %s is set a second time; first on line %zu",
                       r->name, line, setting->key, *seen);
    *seen = line;
    rt_str source = rt_arena_printf(r->to->arena, "%s:%zu", r->name, line);
    cli_gather(r->to, setting, text, (cli_origin){ CLI_FILE, source });
    return true;
}

/* A list becomes the text a flag would give: its entries with commas between them. */
static bool read_list(reader *r, const cli_setting *setting, size_t line)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&text, CLI_VALUE_MAX);
    while (advance(r) && r->event.type == YAML_SCALAR_EVENT && !is_nothing(&r->event)) {
        rt_str item = scalar(&r->event);
        if (item.len && memchr(item.ptr, ',', item.len))
            return rt_fail(r->err, RT_INVALID, "%s:%zu: %s: an entry has a comma in it", r->name,
                           line_of(r), setting->key);
        rt_buf_add(&text, text.len ? RT_STR(",") : RT_STR(""));
        rt_buf_add(&text, item);
    }
    if (r->err->code)
        return false;
    if (r->event.type != YAML_SEQUENCE_END_EVENT)
        return fail_shape(r, setting, line_of(r));
    if (!rt_buf_ok(&text, r->err))
        return rt_wrap(r->err, "%s:%zu: %s", r->name, line, setting->key);
    return assign(r, setting, rt_buf_str(&text), line);
}

static bool read_map(reader *r, rt_str section);

/* What stands behind `key`; the event is its first. */
static bool read_value(reader *r, rt_str key, size_t line)
{
    const cli_setting *setting = cli_setting_find(key);
    bool is_section = cli_setting_is_section(key);
    if (!setting && !is_section)
        return fail_unknown(r, key, line);
    if (is_nothing(&r->event))
        return true;
    if (is_section && r->event.type == YAML_MAPPING_START_EVENT)
        return read_map(r, key);
    if (!setting)
        return rt_fail(r->err, RT_INVALID, "%s:%zu: %.*s is a section: it takes 'key: value' lines",
                       r->name, line, RT_FMT(key));
    if (r->event.type == YAML_SCALAR_EVENT)
        return assign(r, setting, scalar(&r->event), line);
    if (r->event.type == YAML_SEQUENCE_START_EVENT && setting->kind == CLI_LIST)
        return read_list(r, setting, line);
    return fail_shape(r, setting, line);
}

static bool read_map(reader *r, rt_str section)
{
    while (advance(r) && r->event.type == YAML_SCALAR_EVENT) {
        size_t line = line_of(r);
        rt_str word = scalar(&r->event);
        char key[PATH_MAX_BYTES];
        if (word.len && memchr(word.ptr, '\0', word.len))
            break;
        int len = snprintf(key, sizeof(key), "%.*s%s%.*s", RT_FMT(section), section.len ? "." : "",
                           (int)RT_MIN(word.len, sizeof(key)), word.ptr);
        rt_str whole = { key, RT_MIN((size_t)len, sizeof(key) - 1) };
        if (!advance(r) || !read_value(r, whole, line))
            return false;
    }
    if (r->err->code)
        return false;
    if (r->event.type != YAML_MAPPING_END_EVENT)
        return rt_fail(r->err, RT_INVALID, "%s:%zu: a key is expected", r->name, line_of(r));
    return true;
}

static bool read_document(reader *r)
{
    do {
        if (!advance(r))
            return false;
        if (r->event.type == YAML_STREAM_END_EVENT)
            return true; /* an empty file sets nothing */
    } while (r->event.type == YAML_STREAM_START_EVENT ||
             r->event.type == YAML_DOCUMENT_START_EVENT);
    if (r->event.type == YAML_MAPPING_START_EVENT) {
        if (!read_map(r, RT_STR("")))
            return false;
    } else if (!is_nothing(&r->event)) {
        return rt_fail(r->err, RT_INVALID, "%s:%zu: lines of 'key: value' are expected", r->name,
                       line_of(r));
    }
    if (!advance(r) || !advance(r)) /* the end of the document, then of the file */
        return false;
    if (r->event.type != YAML_STREAM_END_EVENT)
        return rt_fail(r->err, RT_INVALID, "%s:%zu: one document is expected", r->name, line_of(r));
    return true;
}

bool cli_settings_yaml(rt_str text, const char *name, cli_gathered *to, rt_error *err)
{
    rt_error problem = { 0 };
    reader r = { .name = name, .to = to, .err = &problem };
    if (text.len > CLI_FILE_MAX)
        return rt_fail(err, RT_LIMIT, "%s: a file of %zu bytes; at most %u are read", name,
                       text.len, CLI_FILE_MAX);
    if (!yaml_parser_initialize(&r.parser))
        return rt_fail(err, RT_LIMIT, "%s: no memory for the YAML parser", name);
    r.lines = rt_arena_alloc(to->arena, sizeof(*r.lines) * cli_setting_count());
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.len ? text.ptr : ""),
                                 text.len);
    bool ok = read_document(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    if (!ok && err)
        *err = problem;
    return ok;
}
