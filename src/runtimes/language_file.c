/* SPDX-License-Identifier: Apache-2.0 */
/*
 * language_file.c - a language from a few lines of YAML.
 *
 *     name: ruby
 *     aliases: [rb]
 *     ending: rb
 *     run: [ruby, "{file}"]
 *     version: [ruby, --version]
 *     error: "main\\.rb:(?<line>\\d+):.*?: (?<message>.*)"
 *     package: ruby
 *
 * The file is the operator's word, so it is read strictly: a key it does not know, a word that is
 * missing or a path that could open the cell is an error with its line.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtimes/runtimes_internal.h"

#include <pcre2.h>
#include <stddef.h>
#include <string.h>

#define TEXT_MAX     400
#define NAME_MAX_LEN 20 /* also what a zygote's name has room for */

typedef enum field_kind {
    F_NAME,
    F_ENDING,
    F_FILE,
    F_CODE,
    F_TEXT,
    F_ERROR,
    F_WORDS,
    F_ALIASES,
    F_PATHS,
    F_ENV
} field_kind;

static const struct field {
    const char *key;
    field_kind kind;
    size_t offset;
} fields[] = {
    { "name", F_NAME, 0 },
    { "aliases", F_ALIASES, 0 },
    { "ending", F_ENDING, 0 },
    { "file", F_FILE, offsetof(language_file, file) },
    { "code", F_CODE, 0 },
    { "run", F_WORDS, offsetof(language_file, run) },
    { "compile", F_WORDS, offsetof(language_file, build) },
    { "waits", F_WORDS, offsetof(language_file, waits) },
    { "version", F_WORDS, offsetof(language_file, asks) },
    { "needs", F_PATHS, offsetof(language_file, needs) },
    { "path", F_PATHS, offsetof(language_file, places) },
    { "env", F_ENV, 0 },
    { "error", F_ERROR, offsetof(language_file, error) },
    { "tries", F_WORDS, offsetof(language_file, tries) },
    { "package", F_TEXT, offsetof(language_file, package) },
    { "about", F_TEXT, offsetof(language_file, language.about) },
};

typedef struct reading {
    rt_arena *arena;
    language_file *out;
} reading;

static const struct field *find_field(rt_str key)
{
    for (size_t i = 0; i < RT_COUNT(fields); i++)
        if (rt_str_eq_c(key, fields[i].key))
            return &fields[i];
    return NULL;
}

static unsigned shapes_of(rt_str key)
{
    const struct field *f = find_field(key);
    if (!f)
        return YAML_PLAIN | YAML_LIST | YAML_MAP; /* set() says that there is no such key */
    if (f->kind == F_ENV)
        return YAML_MAP;
    return f->kind == F_WORDS || f->kind == F_ALIASES || f->kind == F_PATHS ? YAML_LIST
                                                                            : YAML_PLAIN;
}

static bool refuse(rt_error *err, size_t line, rt_str value, const char *why)
{
    return rt_fail(err, RT_INVALID, "language: line %zu: '%.*s' %s", line,
                   (int)RT_MIN(value.len, (size_t)40), value.ptr, why);
}

static bool is_word(rt_str s, const char *more)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (c == '\0' || (!is_plain && !strchr(more, c)))
            return false;
    }
    return s.len > 0 && s.len <= NAME_MAX_LEN;
}

/* Letters of a file's name; it lies in a directory of its own. */
static bool is_file_name(rt_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-",
                    s.ptr[i]) ||
            s.ptr[i] == '\0')
            return false;
    return s.len > 0 && s.len <= 64 && s.ptr[0] != '.' && s.ptr[0] != '-';
}

/* Of the host, read-only, and never what a cell has of its own. */
static bool check_path(rt_str path, size_t line, rt_error *err)
{
    static const char *const own[] = { "/proc", "/sys",     "/dev", "/work", "/retort",
                                       "/tmp",  "/var/tmp", "/run", "/root", "/home" };
    rt_str rest = path, part;
    if (path.len < 2 || path.ptr[0] != '/')
        return refuse(err, line, path, "is not an absolute path below /");
    while (rt_str_cut(&rest, '/', &part))
        if (rt_str_eq_c(part, "..") || rt_str_eq_c(part, ".") || rt_str_starts(rest, RT_STR("/")))
            return refuse(err, line, path, "must not contain ., .. or //");
    rt_str top = rt_str_slice(path, 1, path.len), first;
    rt_str_cut(&top, '/', &first);
    if (memchr(first.ptr, '*', first.len))
        return refuse(err, line, path, "must name its first directory");
    for (size_t i = 0; i < RT_COUNT(own); i++) {
        rt_str place = rt_str_of(own[i]);
        if (rt_str_starts(path, place) && (path.len == place.len || path.ptr[place.len] == '/'))
            return refuse(err, line, path, "cannot be shown in cells");
    }
    return true;
}

static bool add_word(reading *r, word_list *list, rt_str value, size_t line, rt_error *err)
{
    if (list->count == LANGUAGE_WORDS_MAX)
        return refuse(err, line, value, "is one too many; at most 24 are taken");
    if (value.len == 0 || value.len > TEXT_MAX)
        return refuse(err, line, value, "is empty or too long");
    list->items[list->count++] = rt_arena_str(r->arena, value);
    return true;
}

static bool add_alias(reading *r, rt_str value, size_t line, rt_error *err)
{
    const char *had = r->out->language.aliases;
    if (!is_word(value, "+#-_"))
        return refuse(err, line, value, "is no name: use small letters and digits");
    if (strlen(had) > TEXT_MAX)
        return refuse(err, line, value, "is one alias too many");
    r->out->language.aliases =
        rt_arena_printf(r->arena, "%s%.*s ", *had ? had : " ", RT_FMT(value)).ptr;
    return true;
}

static bool add_variable(reading *r, rt_str value, size_t line, rt_error *err)
{
    rt_pair *pair = &r->out->env[r->out->env_count];
    rt_str rest = rt_arena_str(r->arena, value), name;
    if (r->out->env_count == LANGUAGE_WORDS_MAX)
        return refuse(err, line, value, "is one variable too many");
    rt_str_cut(&rest, '=', &name);
    if (name.len == 0)
        return refuse(err, line, value, "has no name");
    *pair = (rt_pair){ .name = name, .value = rest };
    r->out->env_count++;
    return true;
}

static bool check_pattern(rt_str pattern, size_t line, rt_error *err)
{
    int code;
    PCRE2_SIZE at;
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len,
                                         PCRE2_UTF | PCRE2_MULTILINE, &code, &at, NULL);
    bool has_line = compiled && pcre2_substring_number_from_name(compiled, (PCRE2_SPTR) "line") > 0;
    pcre2_code_free(compiled);
    if (!compiled)
        return refuse(err, line, pattern, "is no regular expression");
    return has_line || refuse(err, line, pattern, "names no group: (?<line>\\d+)");
}

static bool set_field(reading *r, const struct field *f, rt_str value, size_t line, rt_error *err)
{
    void *at = (char *)r->out + f->offset;
    switch (f->kind) {
    case F_NAME:
        if (!is_word(value, "+#-_"))
            return refuse(err, line, value, "is no name: use small letters and digits");
        r->out->language.name = rt_arena_copy(r->arena, value);
        return true;
    case F_ENDING:
        if (!is_word(value, "+"))
            return refuse(err, line, value, "is no ending: write it without the dot");
        r->out->language.ending = rt_arena_copy(r->arena, value);
        return true;
    case F_FILE:
        if (!is_file_name(value))
            return refuse(err, line, value, "is no plain file name");
        break;
    case F_CODE:
        r->out->is_base64 = rt_str_eq_c(value, "base64");
        return r->out->is_base64 || rt_str_eq_c(value, "text") ||
               refuse(err, line, value, "is neither text nor base64");
    case F_ERROR:
        if (!check_pattern(value, line, err))
            return false;
        break;
    case F_PATHS:
        return check_path(value, line, err) && add_word(r, at, value, line, err);
    case F_WORDS:
        return add_word(r, at, value, line, err);
    case F_ALIASES:
        return add_alias(r, value, line, err);
    case F_ENV:
        return add_variable(r, value, line, err);
    case F_TEXT:
        break;
    }
    if (value.len == 0 || value.len > TEXT_MAX)
        return refuse(err, line, value, "is empty or too long");
    *(rt_str *)at = rt_arena_str(r->arena, value);
    return true;
}

static bool set(void *ctx, rt_str key, rt_str value, size_t line, rt_error *err)
{
    const struct field *f = find_field(key);
    rt_nearest near;
    char hint[RT_NEAREST_HINT];
    if (value.len > 0 && memchr(value.ptr, '\0', value.len))
        return refuse(err, line, key, "has a NUL byte");
    if (f)
        return set_field(ctx, f, value, line, err);
    rt_nearest_start(&near, key);
    for (size_t i = 0; i < RT_COUNT(fields); i++)
        rt_nearest_try(&near, rt_str_of(fields[i].key));
    return rt_fail(err, RT_INVALID, "language: line %zu: unknown key '%.*s'%s", line,
                   (int)RT_MIN(key.len, (size_t)40), key.ptr,
                   rt_nearest_hint(&near, "; docs/languages.md lists them", hint));
}

/* A compiled language runs what was built; any other one its file. */
static bool names_place(const word_list *words, const char *place)
{
    for (size_t i = 0; i < words->count; i++)
        if (rt_str_find(words->items[i], rt_str_of(place)) >= 0)
            return true;
    return false;
}

static bool check_whole(const language_file *l, rt_error *err)
{
    if (!*l->language.name)
        return rt_fail(err, RT_INVALID, "language: 'name' is missing");
    if (!*l->language.ending)
        return rt_fail(err, RT_INVALID, "language: 'ending' is missing, such as 'ending: rb'");
    if (l->waits.count > 0 && (l->run.count > 0 || l->build.count > 0))
        return rt_fail(err, RT_INVALID, "language: 'waits' stands instead of 'run' and 'compile'");
    if (l->waits.count > 0)
        return true;
    if (l->run.count == 0)
        return rt_fail(err, RT_INVALID,
                       "language: 'run' is missing, such as 'run: [ruby, \"{file}\"]'");
    if (l->build.count == 0 && !names_place(&l->run, "{file}"))
        return rt_fail(err, RT_INVALID, "language: 'run' does not say where {file} goes");
    if (l->build.count > 0 && !names_place(&l->build, "{file}"))
        return rt_fail(err, RT_INVALID, "language: 'compile' does not say where {file} goes");
    return true;
}

bool runtimes_language_parse(rt_str yaml, rt_arena *arena, language_file *out, rt_error *err)
{
    static const yaml_form form = { .what = "language", .shapes = shapes_of, .set = set };
    language_file made = { .language = { .name = "", .aliases = "", .ending = "" } };
    reading r = { arena, &made };
    if (!runtimes_yaml_read(yaml, &form, &r, arena, err) || !check_whole(&made, err))
        return false;
    made.language.is_program = true;
    if (made.file.len == 0)
        made.file = rt_arena_printf(arena, "main.%s", made.language.ending);
    *out = made;
    return true;
}
