/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings_value.c - a setting's value from text, and back to text.
 *
 * Whatever the layer, a value is text until it comes here. An error says what would have been
 * accepted; it does not repeat the value of a secret.
 */
#include "cli/settings_internal.h"

#include <stdio.h>
#include <strings.h>

enum { QUOTED_MAX = 40 }; /* bytes of a wrong value that an error repeats */

static void *field_of(rt_settings *settings, const cli_setting *setting)
{
    return (char *)settings + setting->offset;
}

static const void *value_of(const rt_settings *settings, const cli_setting *setting)
{
    return (const char *)settings + setting->offset;
}

/* ---- amounts ---- */

static const struct {
    const char *unit;
    uint64_t factor;
} sizes[] = { { "T", 1ull << 40 }, { "G", 1u << 30 }, { "M", 1u << 20 }, { "K", 1u << 10 } },
  spans[] = { { "h", 3600000 }, { "m", 60000 }, { "s", 1000 } };

/* "64M": the largest unit that leaves a whole number. */
static void add_amount(rt_buf *out, cli_kind kind, uint64_t n)
{
    for (size_t i = 0; kind == CLI_BYTES && i < RT_COUNT(sizes); i++)
        if (n > 0 && n % sizes[i].factor == 0) {
            rt_buf_addf(out, "%llu%s", (unsigned long long)(n / sizes[i].factor), sizes[i].unit);
            return;
        }
    for (size_t i = 0; kind == CLI_DURATION && i < RT_COUNT(spans); i++)
        if (n > 0 && n % spans[i].factor == 0) {
            rt_buf_addf(out, "%llu%s", (unsigned long long)(n / spans[i].factor), spans[i].unit);
            return;
        }
    rt_buf_addf(out, "%llu%s", (unsigned long long)n, kind == CLI_DURATION && n > 0 ? "ms" : "");
}

static bool fail_range(const cli_setting *setting, rt_str text, const char *what, rt_error *err)
{
    rt_buf range RT_CLEANUP(rt_buf_done) = { 0 };
    add_amount(&range, setting->kind, setting->min);
    rt_buf_add(&range, RT_STR(" to "));
    add_amount(&range, setting->kind, setting->max);
    return rt_fail(err, RT_INVALID, "'%.*s' is not %s from %.*s",
                   RT_FMT(rt_str_slice(text, 0, QUOTED_MAX)), what, RT_FMT(rt_buf_str(&range)));
}

static bool set_amount(const cli_setting *setting, rt_str text, uint64_t *field, rt_error *err)
{
    static const char *const what[] = {
        [CLI_COUNT] = "a whole number", [CLI_BYTES] = "a size", [CLI_DURATION] = "a duration"
    };
    uint64_t amount;
    bool ok = setting->kind == CLI_DURATION ? rt_parse_duration_ms(text, &amount, NULL)
              : setting->kind == CLI_BYTES  ? rt_parse_bytes(text, &amount, NULL)
                                            : rt_str_to_u64(text, &amount);
    if (!ok || amount < setting->min || amount > setting->max)
        return fail_range(setting, text, what[setting->kind], err);
    *field = amount;
    return true;
}

/* As JSON writes numbers, so no locale, no hexadecimal, no infinity. */
static bool set_number(const cli_setting *setting, rt_str text, double *field, rt_arena *arena,
                       rt_error *err)
{
    rt_json doc;
    double number;
    if (!rt_json_parse(text, arena, &doc, NULL) || !rt_json_double(doc, &number) ||
        number < (double)setting->min || number > (double)setting->max)
        return fail_range(setting, text, "a number", err);
    *field = number;
    return true;
}

/* ---- words ---- */

static bool is_word(rt_str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.ptr, word, text.len) == 0;
}

bool cli_switch_parse(rt_str text, bool *out)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on", "0", "1" };
    for (size_t i = 0; i < RT_COUNT(words); i++)
        if (is_word(text, words[i])) {
            *out = i % 2;
            return true;
        }
    return false;
}

static bool set_switch(rt_str text, bool *field, rt_error *err)
{
    if (!cli_switch_parse(text, field))
        return rt_fail(err, RT_INVALID, "'%.*s' is neither true nor false",
                       RT_FMT(rt_str_slice(text, 0, QUOTED_MAX)));
    return true;
}

static bool set_choice(const cli_setting *setting, rt_str text, unsigned *field, rt_error *err)
{
    rt_str rest = rt_str_of(setting->choices), word;
    for (unsigned i = 0; rt_str_cut(&rest, ' ', &word); i++)
        if (word.len == text.len && strncasecmp(word.ptr, text.ptr, text.len) == 0) {
            *field = i;
            return true;
        }
    return rt_fail(err, RT_INVALID, "'%.*s' is not one of: %s",
                   RT_FMT(rt_str_slice(text, 0, QUOTED_MAX)), setting->choices);
}

/* ---- text ---- */

static bool has_beginning(const cli_setting *setting, rt_str text)
{
    rt_str rest = rt_str_of(setting->choices), word;
    while (rt_str_cut(&rest, ' ', &word))
        if (rt_str_starts(text, word))
            return true;
    return !setting->choices;
}

/* It ends up in headers, file names and log lines. */
static bool is_plain(rt_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return false;
    return rt_utf8_valid(text);
}

static bool set_text(const cli_setting *setting, rt_str text, rt_str *field, rt_arena *arena,
                     rt_error *err)
{
    if (text.len < setting->min)
        return rt_fail(err, RT_INVALID, "a text is expected");
    if (text.len > 0 && !has_beginning(setting, text))
        return rt_fail(err, RT_INVALID, "it must begin with one of: %s", setting->choices);
    *field = rt_arena_str(arena, text);
    return true;
}

static bool set_path(const cli_setting *setting, rt_str text, rt_str *field, const cli_world *world,
                     rt_arena *arena, rt_error *err)
{
    bool is_home = rt_str_eq_c(text, "~") || rt_str_starts(text, RT_STR("~/"));
    if (text.len < setting->min)
        return rt_fail(err, RT_INVALID, "a path is expected");
    if (is_home && world->home.len == 0)
        return rt_fail(err, RT_INVALID, "there is no home directory for '~'; give a whole path");
    if (text.len == 0)
        *field = RT_STR("");
    else if (is_home)
        *field = rt_arena_printf(arena, "%.*s%.*s", RT_FMT(world->home),
                                 RT_FMT(rt_str_slice(text, 1, text.len)));
    else if (text.ptr[0] == '/')
        *field = rt_arena_str(arena, text);
    else
        *field = rt_arena_printf(arena, "%s/%.*s", world->directory, RT_FMT(text));
    return true;
}

static bool set_list(rt_str text, cli_words *field, rt_arena *arena)
{
    rt_str rest = text, word;
    size_t count = 0;
    rt_str *items = rt_arena_alloc(arena, sizeof(*items) * (text.len / 2 + 1));
    while (rt_str_cut(&rest, ',', &word))
        if (rt_str_trim(word).len > 0)
            items[count++] = rt_arena_str(arena, rt_str_trim(word));
    *field = (cli_words){ items, count };
    return true;
}

bool cli_setting_set(rt_settings *settings, const cli_setting *setting, rt_str text,
                     const cli_world *world, rt_arena *arena, rt_error *err)
{
    void *field = field_of(settings, setting);
    if (text.len > CLI_VALUE_MAX)
        return rt_fail(err, RT_LIMIT, "a value of %zu bytes; at most %d are taken", text.len,
                       CLI_VALUE_MAX);
    if (!is_plain(text))
        return rt_fail(err, RT_INVALID, "a value has no control characters and is UTF-8");
    switch (setting->kind) {
    case CLI_COUNT:
    case CLI_BYTES:
    case CLI_DURATION:
        return set_amount(setting, text, field, err);
    case CLI_NUMBER:
        return set_number(setting, text, field, arena, err);
    case CLI_SWITCH:
        return set_switch(text, field, err);
    case CLI_CHOICE:
        return set_choice(setting, text, field, err);
    case CLI_TEXT:
        return set_text(setting, text, field, arena, err);
    case CLI_PATH:
        return set_path(setting, text, field, world, arena, err);
    case CLI_LIST:
        return set_list(text, field, arena);
    }
    return rt_fail(err, RT_INTERNAL, "a kind of setting without a parser");
}

/* ---- back to text ---- */

static void add_choice(rt_buf *out, const char *choices, unsigned value)
{
    rt_str rest = rt_str_of(choices), word = { 0 };
    for (unsigned i = 0; i <= value && rt_str_cut(&rest, ' ', &word); i++)
        ;
    rt_buf_add(out, word);
}

static void add_number(rt_buf *out, double number)
{
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_double(&w, number);
    if (rt_str_ends(rt_buf_str(out), RT_STR(".0")))
        out->len -= 2;
}

static void add_list(rt_buf *out, const cli_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        rt_buf_add(out, i ? RT_STR(",") : RT_STR(""));
        rt_buf_add(out, words->items[i]);
    }
}

void cli_setting_text(const rt_settings *settings, const cli_setting *setting, rt_buf *out)
{
    const void *value = value_of(settings, setting);
    switch (setting->kind) {
    case CLI_COUNT:
    case CLI_BYTES:
    case CLI_DURATION:
        add_amount(out, setting->kind, *(const uint64_t *)value);
        break;
    case CLI_NUMBER:
        add_number(out, *(const double *)value);
        break;
    case CLI_SWITCH:
        rt_buf_add(out, *(const bool *)value ? RT_STR("true") : RT_STR("false"));
        break;
    case CLI_CHOICE:
        add_choice(out, setting->choices, *(const unsigned *)value);
        break;
    case CLI_TEXT:
    case CLI_PATH:
        rt_buf_add(out, *(const rt_str *)value);
        break;
    case CLI_LIST:
        add_list(out, value);
        break;
    }
}

/* ---- for eyes ---- */

typedef struct span {
    size_t from, to;
} span;

/* user:PASSWORD@; up to the last '@', in case somebody forgot to encode one in the password. */
static span password_before_host(rt_str url)
{
    ptrdiff_t scheme = rt_str_find(url, RT_STR("://"));
    const char *at = url.len ? memrchr(url.ptr, '@', url.len) : NULL;
    if (scheme < 0 || !at || at < url.ptr + scheme + 3)
        return (span){ 0, 0 };
    const char *user = url.ptr + scheme + 3;
    const char *colon = memchr(user, ':', (size_t)(at - user));
    return colon ? (span){ (size_t)(colon + 1 - url.ptr), (size_t)(at - url.ptr) } : (span){ 0, 0 };
}

/* ?password=PASSWORD&…, at or after `from`. */
static span password_in_query(rt_str url, size_t from)
{
    static const rt_str name = { "password=", 9 };
    ptrdiff_t found = rt_str_find(rt_str_slice(url, from, url.len), name);
    if (found < 0)
        return (span){ 0, 0 };
    size_t start = from + (size_t)found + name.len;
    const char *end = start < url.len ? memchr(url.ptr + start, '&', url.len - start) : NULL;
    return (span){ start, end ? (size_t)(end - url.ptr) : url.len };
}

static void add_hidden(rt_buf *out, rt_str url)
{
    span host = password_before_host(url), query = password_in_query(url, 0);
    bool was_hidden = false;
    for (size_t i = 0; i < url.len; i++) {
        if (query.to && i >= query.to)
            query = password_in_query(url, i);
        bool is_hidden = (i >= host.from && i < host.to) || (i >= query.from && i < query.to);
        if (!is_hidden)
            rt_buf_addc(out, url.ptr[i]);
        else if (!was_hidden)
            rt_buf_add(out, RT_STR("***"));
        was_hidden = is_hidden;
    }
}

void cli_setting_show(const rt_settings *settings, const cli_setting *setting, rt_buf *out)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    cli_setting_text(settings, setting, &text);
    switch (setting->secrecy) {
    case CLI_SECRET:
        rt_buf_add(out, text.len ? RT_STR("***") : RT_STR(""));
        break;
    case CLI_HAS_PASSWORD:
        add_hidden(out, rt_buf_str(&text));
        break;
    case CLI_OPEN:
        rt_buf_add(out, rt_buf_str(&text));
        break;
    }
}
