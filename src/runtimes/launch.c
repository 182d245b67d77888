/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - languages that are programs of the host: are they there, what are they told, and what
 * do their words on stderr mean?
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtimes/runtimes_internal.h"

#include <glob.h>
#include <limits.h>
#include <pcre2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAMS    "/usr/local/bin:/usr/bin:/bin"
#define STDERR_MAX  (64u << 10) /* of what is searched for the place of an error */
#define MATCH_MAX   200000u     /* steps of that search: the text is the code's to choose */
#define VERSION_MAX 40
#define MESSAGE_MAX 300

/* ---- is it there? ---- */

static rt_str search_path(const language_file *l, rt_arena *arena)
{
    rt_buf path RT_CLEANUP(rt_buf_done) = { 0 };
    for (size_t i = 0; i < l->places.count; i++)
        rt_buf_addf(&path, "%.*s:", RT_FMT(l->places.items[i]));
    rt_buf_add(&path, RT_STR(PROGRAMS));
    return rt_arena_str(arena, rt_buf_str(&path));
}

/* Cells see the system's directories and what the file says it needs. */
static bool is_seen(const language_file *l, rt_str path)
{
    static const char *const seen[] = { "/usr/", "/bin/", "/sbin/", "/lib", "/retort/" };
    for (size_t i = 0; i < RT_COUNT(seen); i++)
        if (rt_str_starts(path, rt_str_of(seen[i])))
            return true;
    for (size_t i = 0; i < l->needs.count; i++)
        if (rt_str_starts(path, l->needs.items[i]))
            return true;
    return false;
}

/* Where the program is, as cells see it; empty: nowhere. */
static rt_str find_program(const language_file *l, rt_str word, rt_arena *arena)
{
    rt_str rest = search_path(l, arena), directory;
    if (memchr(word.ptr, '/', word.len)) {
        rt_str path = rt_arena_str(arena, word);
        return is_seen(l, path) && access(path.ptr, X_OK) == 0 ? path : (rt_str){ 0 };
    }
    while (rt_str_cut(&rest, ':', &directory)) {
        rt_str path = rt_arena_printf(arena, "%.*s/%.*s", RT_FMT(directory), RT_FMT(word));
        if (is_seen(l, path) && access(path.ptr, X_OK) == 0)
            return path;
    }
    return (rt_str){ 0 };
}

#define STEPS 3

/* The first words of what it takes; what was built is not looked for. */
static size_t list_programs(const language_file *l, rt_str out[STEPS])
{
    const word_list *steps[STEPS] = { &l->build, &l->run, &l->waits };
    size_t count = 0;
    for (size_t i = 0; i < STEPS; i++)
        if (steps[i]->count > 0 && steps[i]->items[0].ptr[0] != '{')
            out[count++] = steps[i]->items[0];
    return count;
}

bool runtimes_launch_find(const language_file *l, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str words[STEPS];
    size_t count = list_programs(l, words), i = 0;
    while (i < count && find_program(l, words[i], &arena).len > 0)
        i++;
    if (i == count)
        return true;
    if (l->package.len > 0)
        return rt_fail(err, RT_UNSUPPORTED,
                       "%s is not installed: there is no program '%.*s'; apt-get install %.*s",
                       l->language.name, RT_FMT(words[i]), RT_FMT(l->package));
    return rt_fail(err, RT_UNSUPPORTED, "%s is not installed: there is no program '%.*s' in %.*s",
                   l->language.name, RT_FMT(words[i]), RT_FMT(search_path(l, &arena)));
}

rt_str rt_language_mark(const rt_language *language, rt_arena *arena)
{
    const language_file *l = runtimes_guest(rt_str_of(language->name))->launch;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str words[STEPS];
    size_t count = l ? list_programs(l, words) : 0;
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        rt_str path = find_program(l, words[i], arena);
        if (path.len > 0 && stat(path.ptr, &st) == 0)
            rt_buf_addf(&text, "%.*s %lld %lld ", RT_FMT(path), (long long)st.st_mtime,
                        (long long)st.st_size);
    }
    return rt_arena_str(arena, rt_buf_str(&text));
}

bool runtimes_launch_check(const guest_kind *kind, const rt_policy *policy, rt_error *err)
{
    if (!kind->launch)
        return true;
    if (!runtimes_launch_find(kind->launch, err))
        return false;
    if (policy->is_exec_denied)
        return rt_fail(err, RT_DENIED,
                       "%s runs as a program, and this policy has 'subprocess: deny'; "
                       "set subprocess: allow, or use python, javascript or sql",
                       kind->language);
    return true;
}

/* ---- what must be seen in cells ---- */

static bool has_entry(const rt_root_entry *entries, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(entries[i].target, path) == 0)
            return true;
    return false;
}

size_t runtimes_launch_needs(rt_arena *arena, rt_root_entry *out, size_t max)
{
    size_t count = 0;
    const rt_language *l;
    for (size_t i = 0; (l = runtimes_language_at(i)); i++) {
        const language_file *file = runtimes_guest(rt_str_of(l->name))->launch;
        for (size_t k = 0; file && k < file->needs.count; k++) {
            glob_t found;
            if (rt_str_starts(file->needs.items[k], RT_STR("/usr/")) ||
                glob(file->needs.items[k].ptr, 0, NULL, &found) != 0)
                continue;
            for (size_t n = 0; n < found.gl_pathc && count < max; n++) {
                const char *path = rt_arena_copy(arena, rt_str_of(found.gl_pathv[n]));
                if (!has_entry(out, count, path))
                    out[count++] = (rt_root_entry){ path, path };
            }
            globfree(&found);
        }
    }
    return count;
}

/* One zygote for each program that waits for its code. */
size_t runtimes_launch_zygotes(rt_arena *arena, const char *launcher, rt_zygote_spec *out,
                               size_t max)
{
    size_t count = 0;
    const rt_language *l;
    for (size_t i = 0; (l = runtimes_language_at(i)) && count < max; i++) {
        const guest_kind *kind = runtimes_guest(rt_str_of(l->name));
        if (!kind->launch || kind->launch->waits.count == 0)
            continue;
        const word_list *words = &kind->launch->waits;
        const char **argv = rt_arena_alloc(arena, sizeof(*argv) * (words->count + 2));
        argv[0] = launcher;
        for (size_t k = 0; k < words->count; k++)
            argv[k + 1] = words->items[k].ptr;
        out[count++] = (rt_zygote_spec){ .name = kind->zygote, .argv = argv };
    }
    return count;
}

/* ---- what the guest is told ---- */

static void write_words(rt_json_writer *w, const char *key, const word_list *words)
{
    if (words->count == 0)
        return;
    rt_jw_karray(w, key);
    for (size_t i = 0; i < words->count; i++)
        rt_jw_str(w, words->items[i]);
    rt_jw_end(w);
}

void runtimes_launch_write(rt_json_writer *w, const language_file *l)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_jw_kobject(w, "launch");
    rt_jw_kstr(w, "file", l->file);
    rt_jw_kbool(w, "base64", l->is_base64);
    write_words(w, "compile", &l->build);
    write_words(w, "run", &l->run);
    rt_jw_kstr(w, "path", search_path(l, &arena));
    rt_jw_kobject(w, "env");
    for (size_t i = 0; i < l->env_count; i++) {
        rt_jw_key(w, l->env[i].name);
        rt_jw_str(w, l->env[i].value);
    }
    rt_jw_end(w);
    rt_jw_end(w);
}

/* ---- versions ---- */

/* The first number with a dot in it, else the first line. */
static rt_str find_version(rt_str text)
{
    rt_str line;
    for (size_t i = 0; i < text.len; i++) {
        size_t end = i, dots = 0;
        bool is_start = i == 0 || !strchr("0123456789.", text.ptr[i - 1]);
        while (end < text.len && ((text.ptr[end] >= '0' && text.ptr[end] <= '9') ||
                                  (end > i && text.ptr[end] == '.')))
            dots += text.ptr[end++] == '.';
        if (is_start && dots > 0 && end > i && text.ptr[end - 1] != '.')
            return rt_str_slice(text, i, RT_MIN(end, i + VERSION_MAX));
    }
    rt_str_cut(&text, '\n', &line);
    return rt_str_slice(rt_str_trim(line), 0, VERSION_MAX);
}

static struct {
    pthread_mutex_t lock;
    struct {
        const language_file *of;
        char text[VERSION_MAX + 1];
    } seen[LANGUAGES_MAX];
    size_t count;
} versions = { .lock = PTHREAD_MUTEX_INITIALIZER };

static rt_str ask_version(rt_runtime *local, const guest_kind *kind, rt_arena *arena)
{
    language_file asking = *kind->launch;
    asking.run = asking.asks;
    asking.build.count = asking.waits.count = 0;
    guest_kind how = { .language = kind->language, .zygote = "launch", .launch = &asking };
    rt_run run = { .language = rt_str_of(kind->language),
                   .code = RT_STR(" "),
                   .name = asking.file,
                   .policy = rt_policy_preset(RT_STR("quick")) };
    rt_outcome outcome;
    if (asking.run.count == 0 || !runtimes_local_run(local, &run, &how, arena, &outcome, NULL))
        return (rt_str){ 0 };
    return find_version(rt_str_trim(outcome.out).len ? outcome.out : outcome.err);
}

rt_str runtimes_launch_version(rt_runtime *local, const guest_kind *kind, rt_arena *arena)
{
    rt_str found = { 0 };
    pthread_mutex_lock(&versions.lock);
    size_t i = 0;
    while (i < versions.count && versions.seen[i].of != kind->launch)
        i++;
    if (i == versions.count && i < LANGUAGES_MAX) {
        rt_str text = ask_version(local, kind, arena);
        versions.seen[i].of = kind->launch;
        memcpy(versions.seen[i].text, text.len ? text.ptr : "", text.len);
        versions.seen[i].text[text.len] = '\0';
        versions.count++;
    }
    if (i < LANGUAGES_MAX)
        found = rt_arena_str(arena, rt_str_of(versions.seen[i].text));
    pthread_mutex_unlock(&versions.lock);
    return found;
}

/* ---- what it said ---- */

static rt_str group(pcre2_code *code, pcre2_match_data *match, const char *name, rt_str text)
{
    int n = pcre2_substring_number_from_name(code, (PCRE2_SPTR)name);
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match);
    if (n < 0 || (uint32_t)n >= pcre2_get_ovector_count(match) || ends[2 * n] == PCRE2_UNSET)
        return (rt_str){ 0 };
    return rt_str_slice(text, ends[2 * n], ends[2 * n + 1]);
}

static bool search_place(rt_outcome *out, rt_str pattern, rt_str text, rt_arena *arena)
{
    int problem;
    PCRE2_SIZE at;
    uint64_t number;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len,
                                     PCRE2_UTF | PCRE2_MULTILINE, &problem, &at, NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    pcre2_match_data *match = code ? pcre2_match_data_create_from_pattern(code, NULL) : NULL;
    if (limits)
        pcre2_set_match_limit(limits, MATCH_MAX);
    bool is_found =
        match && pcre2_match(code, (PCRE2_SPTR)text.ptr, text.len, 0, 0, match, limits) > 0;
    if (is_found) {
        rt_str message = rt_str_trim(group(code, match, "message", text));
        if (rt_str_to_u64(group(code, match, "line", text), &number))
            out->error.line = (int64_t)RT_MIN(number, (uint64_t)INT32_MAX);
        if (rt_str_to_u64(group(code, match, "column", text), &number))
            out->error.column = (int64_t)RT_MIN(number, (uint64_t)INT32_MAX);
        rt_str name = group(code, match, "name", text);
        if (name.len > 0)
            out->error.name = rt_arena_str(arena, rt_str_slice(name, 0, MESSAGE_MAX));
        if (message.len > 0)
            out->error.message = rt_arena_str(arena, rt_str_slice(message, 0, MESSAGE_MAX));
    }
    pcre2_match_data_free(match);
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
    return is_found;
}

/* Without a pattern that fits, the last line is the one that people read first. */
static void quote_last_line(rt_outcome *out, rt_str text, rt_arena *arena)
{
    rt_str rest = rt_str_trim(text);
    size_t from = rest.len;
    while (from > 0 && rest.ptr[from - 1] != '\n')
        from--;
    rt_str last = rt_str_trim(rt_str_slice(rest, from, rest.len));
    if (last.len > 0)
        out->error.message = rt_arena_printf(arena, "%.*s: %.*s", RT_FMT(out->error.message),
                                             (int)RT_MIN(last.len, (size_t)MESSAGE_MAX), last.ptr);
}

void runtimes_launch_explain(rt_outcome *out, const language_file *l, rt_arena *arena)
{
    rt_str text = rt_str_slice(out->err, 0, STDERR_MAX);
    bool is_text = rt_utf8_valid(text);
    if (!is_text || l->error.len == 0 || !search_place(out, l->error, text, arena))
        quote_last_line(out, text, arena);
    if (rt_str_find(out->error.message, RT_STR("syntax error")) >= 0 ||
        rt_str_ends(out->error.name, RT_STR("SyntaxError")))
        out->error.type = RT_STR("SyntaxError");
}

void runtimes_launch_forget(rt_outcome *out, const language_file *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < out->denial_count; i++) {
        bool is_tried = false;
        for (size_t k = 0; k < l->tries.count; k++)
            is_tried |= rt_str_eq_c(l->tries.items[k], out->denials[i].call);
        if (!is_tried)
            out->denials[kept++] = out->denials[i];
    }
    out->denials_seen -= RT_MIN((uint64_t)(out->denial_count - kept), out->denials_seen);
    out->denial_count = kept;
}
