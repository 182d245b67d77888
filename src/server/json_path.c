/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_path.c - reads a path step by step, and takes each step from all places reached so far.
 */
#include "server/json_path.h"

#include <string.h>

typedef enum step_kind { BY_NAME, BY_INDEX, BY_SLICE, ALL } step_kind;

typedef struct step {
    step_kind kind;
    rt_str name;
    int64_t from, to; /* negative: from the end */
    bool has_to;
} step;

typedef struct cursor {
    rt_str text;
    size_t at;
    rt_arena *arena;
    rt_error *err;
} cursor;

typedef struct places {
    rt_json *list;
    size_t count, room;
} places;

static bool wrong(cursor *c, const char *expected)
{
    return rt_fail(c->err, RT_INVALID, "json_path: at character %zu %s is expected", c->at + 1,
                   expected);
}

static bool take(cursor *c, char wanted)
{
    if (c->at >= c->text.len || c->text.ptr[c->at] != wanted)
        return false;
    c->at++;
    return true;
}

static bool is_name_char(char c)
{
    return !strchr(".[]'\"*?()@, \t\r\n", c) || c == '\0';
}

static bool read_name(cursor *c, step *out)
{
    size_t from = c->at;
    if (take(c, '*')) {
        out->kind = ALL;
        return true;
    }
    while (c->at < c->text.len && is_name_char(c->text.ptr[c->at]))
        c->at++;
    out->kind = BY_NAME;
    out->name = rt_str_slice(c->text, from, c->at);
    return out->name.len > 0 || wrong(c, "a name or '*' after '.'");
}

/* 'it''s written with \' for a quote' */
static bool read_quoted(cursor *c, char quote, step *out)
{
    char *text = rt_arena_alloc_raw(c->arena, c->text.len + 1);
    size_t len = 0;
    out->kind = BY_NAME;
    while (c->at < c->text.len && c->text.ptr[c->at] != quote) {
        if (c->text.ptr[c->at] == '\\' && c->at + 1 < c->text.len)
            c->at++;
        text[len++] = c->text.ptr[c->at++];
    }
    out->name = (rt_str){ text, len };
    return take(c, quote) || wrong(c, "a closing quote");
}

static bool read_number(cursor *c, int64_t *out)
{
    size_t from = c->at;
    take(c, '-');
    while (c->at < c->text.len && c->text.ptr[c->at] >= '0' && c->text.ptr[c->at] <= '9')
        c->at++;
    return rt_str_to_i64(rt_str_slice(c->text, from, c->at), out);
}

static bool read_index(cursor *c, step *out)
{
    bool has_from = c->at < c->text.len && c->text.ptr[c->at] != ':';
    if (has_from && !read_number(c, &out->from))
        return wrong(c, "a number, a name in quotes, or '*'");
    out->kind = BY_INDEX;
    if (!take(c, ':'))
        return has_from || wrong(c, "a number, a name in quotes, or '*'");
    out->kind = BY_SLICE;
    out->has_to = c->at < c->text.len && c->text.ptr[c->at] != ']';
    return !out->has_to || read_number(c, &out->to) || wrong(c, "a number after ':'");
}

static bool read_bracket(cursor *c, step *out)
{
    bool ok;
    if (take(c, '*')) {
        out->kind = ALL;
        ok = true;
    } else if (take(c, '\'')) {
        ok = read_quoted(c, '\'', out);
    } else if (take(c, '"')) {
        ok = read_quoted(c, '"', out);
    } else {
        ok = read_index(c, out);
    }
    return ok && (take(c, ']') || wrong(c, "']'"));
}

static bool read_step(cursor *c, step *out)
{
    *out = (step){ 0 };
    if (take(c, '.'))
        return read_name(c, out);
    if (take(c, '['))
        return read_bracket(c, out);
    return wrong(c, "'.' or '['");
}

static bool add(cursor *c, places *p, rt_json value)
{
    if (rt_json_is_absent(value))
        return true;
    if (p->count == JSON_PATH_MATCHES_MAX)
        return rt_fail(c->err, RT_LIMIT, "json_path: it leads to more than %d values",
                       JSON_PATH_MATCHES_MAX);
    if (p->count == p->room) {
        size_t room = p->room ? p->room * 2 : 16;
        p->list =
            rt_arena_resize(c->arena, p->list, p->room * sizeof(rt_json), room * sizeof(rt_json));
        p->room = room;
    }
    p->list[p->count++] = value;
    return true;
}

/* The children from..to-1. */
static bool add_range(cursor *c, places *p, rt_json parent, size_t from, size_t to)
{
    rt_json_iter it = rt_json_each(parent);
    rt_json child;
    for (size_t i = 0; i < to && rt_json_next(&it, NULL, &child); i++)
        if (i >= from && !add(c, p, child))
            return false;
    return true;
}

static size_t clamp(int64_t index, size_t count)
{
    if (index < 0)
        index = -index > (int64_t)count ? 0 : (int64_t)count + index;
    return RT_MIN((size_t)index, count);
}

static bool walk(cursor *c, const step *s, rt_json from, places *to)
{
    rt_json_kind kind = rt_json_type(from);
    size_t count = rt_json_count(from);
    switch (s->kind) {
    case BY_NAME:
        return kind != RT_JSON_OBJECT || add(c, to, rt_json_get(from, s->name));
    case BY_INDEX:
        if (kind != RT_JSON_ARRAY || s->from >= (int64_t)count || s->from < -(int64_t)count)
            return true;
        return add(c, to, rt_json_at(from, clamp(s->from, count)));
    case BY_SLICE:
        return kind != RT_JSON_ARRAY || add_range(c, to, from, clamp(s->from, count),
                                                  s->has_to ? clamp(s->to, count) : count);
    default:
        return (kind != RT_JSON_ARRAY && kind != RT_JSON_OBJECT) ||
               add_range(c, to, from, 0, count);
    }
}

bool json_path_find(rt_json root, rt_str path, rt_arena *arena, rt_json **out, size_t *count,
                    rt_error *err)
{
    cursor c = { .text = path, .arena = arena, .err = err };
    places here = { 0 };
    if (!take(&c, '$'))
        return wrong(&c, "'$'");
    add(&c, &here, root);
    for (unsigned steps = 0; c.at < path.len; steps++) {
        places next = { 0 };
        step s;
        if (steps == JSON_PATH_STEPS_MAX)
            return rt_fail(err, RT_LIMIT, "json_path: more than %d steps", JSON_PATH_STEPS_MAX);
        if (!read_step(&c, &s))
            return false;
        for (size_t i = 0; i < here.count; i++)
            if (!walk(&c, &s, here.list[i], &next))
                return false;
        here = next;
    }
    *out = here.list;
    *count = here.count;
    return true;
}
