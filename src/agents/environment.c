/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.c - an agent's variables: sealed at rest, given to the code, shown to nobody.
 *
 *     "environment": {"API_KEY": "sk-…", "REGION": {"value": "eu", "secret": false}}
 *
 * A value is a secret unless it is said not to be. Whoever reads an agent gets a mask in its place,
 * and may send the mask back: it means the value that is there. What code lets out of a secret is
 * masked in the answer too, so that a mistake in a published agent does not give its key away. (It
 * is no wall: code that means to tell a secret can spell it.)
 */
#include "agents/agents_internal.h"

#define VARIABLES_MAX 100
#define VALUE_MAX     ((size_t)32 << 10) /* bytes */
#define SECRET_MIN    6                  /* shorter ones are too like other text to be masked */

static bool is_name(rt_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return name.len > 0 && name.len <= 100;
}

static bool read_variable(rt_str name, rt_json given, rt_json before, rt_json_writer *w,
                          rt_error *err)
{
    bool is_object = rt_json_type(given) == RT_JSON_OBJECT;
    rt_json value = is_object ? rt_json_get_c(given, "value") : given;
    bool is_secret = !is_object || rt_json_bool(rt_json_get_c(given, "secret"), true);
    if (!is_name(name))
        return rt_fail(err, RT_INVALID,
                       "environment: '%.*s' is no name; use letters, digits and '_'",
                       (int)RT_MIN(name.len, (size_t)60), name.ptr);
    if (rt_json_type(value) != RT_JSON_STRING)
        return rt_fail(err, RT_INVALID,
                       "environment: %.*s must be a text, or {\"value\": text, \"secret\": false}",
                       RT_FMT(name));
    if (rt_str_eq_c(rt_json_str(value), AGENTS_MASK)) {
        value = rt_json_get_c(rt_json_get(before, name), "value");
        if (rt_json_is_absent(value))
            return rt_fail(err, RT_INVALID,
                           "environment: %.*s is masked, and there is no value it stands for",
                           RT_FMT(name));
    }
    rt_str text = rt_json_str(value);
    if (text.len > VALUE_MAX || !rt_utf8_valid(text) ||
        (text.len > 0 && memchr(text.ptr, '\0', text.len)))
        return rt_fail(err, RT_INVALID, "environment: %.*s must be UTF-8 of at most %zu bytes",
                       RT_FMT(name), VALUE_MAX);
    rt_jw_key(w, name);
    rt_jw_object(w);
    rt_jw_kstr(w, "value", text);
    rt_jw_kbool(w, "secret", is_secret);
    rt_jw_end(w);
    return true;
}

bool agents_environment_read(rt_json given, rt_json before, rt_arena *arena, rt_json *out,
                             rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_iter it = rt_json_each(given);
    rt_json_writer w;
    rt_str name;
    rt_json value;
    if (rt_json_type(given) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "'environment' must be an object of names and texts");
    if (rt_json_count(given) > VARIABLES_MAX)
        return rt_fail(err, RT_LIMIT, "environment: at most %d variables", VARIABLES_MAX);
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    while (rt_json_next(&it, &name, &value))
        if (!read_variable(name, value, before, &w, err))
            return false;
    rt_jw_end(&w);
    return rt_buf_ok(&text, err) && rt_json_parse(rt_buf_str(&text), arena, out, err);
}

static rt_str purpose(rt_str agent_id, rt_arena *arena)
{
    return rt_arena_printf(arena, "code-agent:%.*s", RT_FMT(agent_id));
}

rt_str agents_environment_seal(const rt_agents *a, rt_str agent_id, rt_json environment,
                               rt_arena *arena)
{
    if (rt_json_count(environment) == 0)
        return (rt_str){ 0 };
    return rt_vault_seal(a->config.vault, purpose(agent_id, arena),
                         agents_json_text(environment, arena), arena);
}

bool agents_environment_unseal(const rt_agents *a, rt_str agent_id, rt_str sealed, rt_arena *arena,
                               rt_json *out, rt_error *err)
{
    rt_str text;
    *out = (rt_json){ 0 };
    if (sealed.len == 0)
        return true;
    if (!rt_vault_unseal(a->config.vault, purpose(agent_id, arena), sealed, arena, &text, NULL))
        return rt_fail(err, RT_UNAVAILABLE,
                       "the environment of this agent was sealed with another key; nodes that "
                       "share a database need the same vault.key");
    return rt_json_parse(text, arena, out, err);
}

rt_json agents_environment_mask(rt_json environment, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_iter it = rt_json_each(environment);
    rt_json_writer w;
    rt_str name;
    rt_json variable, out = { 0 };
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    while (rt_json_next(&it, &name, &variable)) {
        rt_jw_key(&w, name);
        if (rt_json_bool(rt_json_get_c(variable, "secret"), true))
            rt_jw_str(&w, RT_STR(AGENTS_MASK));
        else
            rt_jw_json(&w, variable);
    }
    rt_jw_end(&w);
    rt_json_parse(rt_buf_str(&text), arena, &out, NULL);
    return out;
}

/* ---- secrets in answers ---- */

typedef struct secrets {
    rt_str items[VARIABLES_MAX];
    size_t count;
} secrets;

static void gather(rt_json environment, secrets *out)
{
    rt_json_iter it = rt_json_each(environment);
    rt_json variable;
    while (rt_json_next(&it, NULL, &variable) && out->count < VARIABLES_MAX) {
        rt_str value = rt_json_str(rt_json_get_c(variable, "value"));
        if (value.len >= SECRET_MIN && rt_json_bool(rt_json_get_c(variable, "secret"), true))
            out->items[out->count++] = value;
    }
}

/* Where the first of them begins, the longest of those that begin there; -1: none does. */
static ptrdiff_t find_first(const secrets *all, rt_str text, size_t *len)
{
    ptrdiff_t first = -1;
    for (size_t i = 0; i < all->count; i++) {
        ptrdiff_t at = rt_str_find(text, all->items[i]);
        if (at < 0 || (first >= 0 && (at > first || (at == first && all->items[i].len <= *len))))
            continue;
        first = at;
        *len = all->items[i].len;
    }
    return first;
}

static void write_masked(const secrets *all, rt_str text, rt_buf *out)
{
    size_t len = 0;
    ptrdiff_t at;
    while ((at = find_first(all, text, &len)) >= 0) {
        rt_buf_add(out, rt_str_slice(text, 0, (size_t)at));
        rt_buf_add(out, RT_STR(AGENTS_MASK));
        text = rt_str_slice(text, (size_t)at + len, text.len);
    }
    rt_buf_add(out, text);
}

static void mask_value(const secrets *all, rt_json value, rt_json_writer *w)
{
    rt_json_iter it = rt_json_each(value);
    rt_json_kind kind = rt_json_type(value);
    rt_str key;
    rt_json item;
    if (kind == RT_JSON_STRING) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        write_masked(all, rt_json_str(value), &text);
        rt_jw_str(w, rt_buf_str(&text));
        return;
    }
    if (kind != RT_JSON_ARRAY && kind != RT_JSON_OBJECT) {
        rt_jw_json(w, value);
        return;
    }
    if (kind == RT_JSON_OBJECT)
        rt_jw_object(w);
    else
        rt_jw_array(w);
    while (rt_json_next(&it, &key, &item)) {
        if (kind == RT_JSON_OBJECT)
            rt_jw_key(w, key);
        mask_value(all, item, w);
    }
    rt_jw_end(w);
}

rt_json agents_mask_secrets(rt_json value, rt_json environment, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    secrets all = { 0 };
    rt_json_writer w;
    rt_json out = { 0 };
    gather(environment, &all);
    if (all.count == 0)
        return value;
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_begin(&w, &text);
    mask_value(&all, value, &w);
    rt_json_parse(rt_buf_str(&text), arena, &out, NULL);
    return out;
}
