/*
 * languages.c - which languages there are, and how each runs in a cell.
 *
 * Some have a guest of their own, and stand in the tables here. The others are programs of the
 * host, each described by a file (language_file.c) that is read once, when somebody first asks.
 */
#include "runtimes/runtimes_internal.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX (64u << 10)

static const rt_language built_in[RT_LANGUAGES_OURS] = {
    { .name = "python", .aliases = " py python3 ", .ending = "py" },
    { .name = "javascript", .aliases = " js node nodejs ", .ending = "js" },
    { .name = "typescript", .aliases = " ts ", .ending = "ts" },
    { .name = "bash", .aliases = " sh shell ", .ending = "sh", .is_program = true },
    { .name = "sql", .aliases = " sqlite sqlite3 ", .ending = "sql" },
    { .name = "wasm", .aliases = " webassembly wasi ", .ending = "wasm" },
};

static const struct {
    const char *ending, *language;
} other_endings[] = {
    { "mjs", "javascript" }, { "cjs", "javascript" }, { "mts", "typescript" }, { "bash", "bash" }
};

static const char *const data_words[] = { "numpy", "pandas", "matplotlib", NULL };

static const guest_kind guests[] = {
    { .language = "python",
      .zygote = "python",
      .heavy_words = data_words,
      .heavy_zygote = "python-data",
      .is_data_limited = true,
      .is_branched = true,
      .has_modules = true },
    { .language = "javascript", .zygote = "node", .is_branched = true, .has_modules = true },
    { .language = "typescript", .zygote = "node", .is_branched = true, .has_modules = true },
    { .language = "bash", .zygote = "bash", .is_program = true, .answers_by_output = true },
    { .language = "sql", .zygote = "sql" },
    { .language = "wasm", .zygote = "node", .answers_by_output = true },
};

/* ---- what the files say ---- */

static struct {
    pthread_once_t once;
    rt_arena arena; /* lives as long as the program */
    language_file files[LANGUAGES_MAX];
    guest_kind kinds[LANGUAGES_MAX];
    size_t count;
    rt_error error;
} known = { .once = PTHREAD_ONCE_INIT };

static bool is_called(const rt_language *l, rt_str name)
{
    rt_str rest = rt_str_of(l->aliases), alias;
    if (rt_str_eq_c(name, l->name))
        return true;
    while (name.len > 0 && rt_str_cut(&rest, ' ', &alias))
        if (rt_str_eq(alias, name))
            return true;
    return false;
}

/* At its place in the table; an operator's file takes the place of ours. */
static size_t place_of(const language_file *file)
{
    for (size_t i = 0; i < known.count; i++)
        if (strcmp(known.files[i].language.name, file->language.name) == 0)
            return i;
    return known.count;
}

static bool is_taken(rt_str name, size_t place, rt_error *err)
{
    for (size_t i = 0; i < RT_COUNT(built_in) + known.count; i++) {
        bool is_ours = i < RT_COUNT(built_in);
        const rt_language *l =
            is_ours ? &built_in[i] : &known.files[i - RT_COUNT(built_in)].language;
        if ((is_ours || i - RT_COUNT(built_in) != place) && is_called(l, name))
            return !rt_fail(err, RT_CONFLICT, "language: '%.*s' is a name of %s already",
                            RT_FMT(name), l->name);
    }
    return false;
}

static bool keep(const language_file *file, rt_error *err)
{
    size_t place = place_of(file);
    rt_str rest = rt_str_of(file->language.aliases), alias;
    if (place == LANGUAGES_MAX)
        return rt_fail(err, RT_LIMIT, "language: at most %d are read", LANGUAGES_MAX);
    if (is_taken(rt_str_of(file->language.name), place, err))
        return false;
    while (rt_str_cut(&rest, ' ', &alias))
        if (alias.len > 0 && is_taken(alias, place, err))
            return false;
    known.files[place] = *file;
    bool waits = file->waits.count > 0;
    known.kinds[place] = (guest_kind){
        .language = file->language.name,
        .zygote =
            waits ? rt_arena_printf(&known.arena, "waits-%s", file->language.name).ptr : "launch",
        .is_program = true,
        .answers_by_output = true,
        .launch = &known.files[place],
    };
    known.count = RT_MAX(known.count, place + 1);
    return true;
}

static int is_yaml(const struct dirent *e)
{
    return e->d_name[0] != '.' && rt_str_ends(rt_str_of(e->d_name), RT_STR(".yaml"));
}

static bool read_one(const char *directory, const char *name, rt_error *err)
{
    rt_str path = rt_arena_printf(&known.arena, "%s/%s", directory, name), text;
    language_file file;
    return (rt_read_file(path.ptr, FILE_MAX, &known.arena, &text, err) &&
            runtimes_language_parse(text, &known.arena, &file, err) && keep(&file, err)) ||
           rt_wrap(err, "%s", path.ptr);
}

static void read_directory(const char *directory, bool must_be_there)
{
    struct dirent **entries;
    int count = scandir(directory, &entries, is_yaml, alphasort);
    if (count < 0 && must_be_there)
        rt_fail_errno(&known.error, "RETORT_LANGUAGES: %s", directory);
    for (int i = 0; i < count; i++) {
        if (!known.error.code)
            read_one(directory, entries[i]->d_name, &known.error);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static void read_files(void)
{
    char path[PATH_MAX + 16] = "";
    const char *more = getenv("RETORT_LANGUAGES");
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    char *slash = n > 0 ? strrchr(path, '/') : NULL;
    if (slash) {
        strcpy(slash, "/languages");
        read_directory(path, false);
    }
    if (more && *more && !known.error.code)
        read_directory(more, true);
}

const rt_error *runtimes_languages_error(void)
{
    pthread_once(&known.once, read_files);
    return known.error.code ? &known.error : NULL;
}

/* ---- finding ---- */

const rt_language *runtimes_language_at(size_t i)
{
    if (i < RT_COUNT(built_in))
        return &built_in[i];
    pthread_once(&known.once, read_files);
    i -= RT_COUNT(built_in);
    return i < known.count ? &known.files[i].language : NULL;
}

const rt_language *rt_language_find(rt_str name)
{
    const rt_language *l;
    for (size_t i = 0; (l = runtimes_language_at(i)); i++)
        if (is_called(l, name))
            return l;
    return NULL;
}

const rt_language *rt_language_of_file(rt_str path)
{
    const rt_language *l;
    size_t dot = path.len;
    while (dot > 0 && path.ptr[dot - 1] != '.' && path.ptr[dot - 1] != '/')
        dot--;
    if (dot == 0 || path.ptr[dot - 1] != '.')
        return NULL;
    rt_str ending = rt_str_slice(path, dot, path.len);
    for (size_t i = 0; (l = runtimes_language_at(i)); i++)
        if (rt_str_eq_c(ending, l->ending))
            return l;
    for (size_t i = 0; i < RT_COUNT(other_endings); i++)
        if (rt_str_eq_c(ending, other_endings[i].ending))
            return rt_language_find(rt_str_of(other_endings[i].language));
    return NULL;
}

bool rt_language_unknown(rt_str name, rt_error *err)
{
    char list[160] = "";
    const rt_language *l;
    for (size_t i = 0, used = 0; (l = runtimes_language_at(i)) && used < sizeof(list) - 30; i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", l->name);
    if (name.len == 0)
        return rt_fail(err, RT_INVALID, "no language given; use one of: %s", list);
    return rt_fail(err, RT_UNSUPPORTED, "unknown language '%.*s'; use one of: %s",
                   (int)RT_MIN(name.len, (size_t)40), name.ptr, list);
}

const guest_kind *runtimes_guest(rt_str language)
{
    for (size_t i = 0; i < RT_COUNT(guests); i++)
        if (rt_str_eq_c(language, guests[i].language))
            return &guests[i];
    pthread_once(&known.once, read_files);
    for (size_t i = 0; i < known.count; i++)
        if (rt_str_eq_c(language, known.kinds[i].language))
            return &known.kinds[i];
    return NULL;
}

/*
 * Forking a zygote with pandas in it costs more than forking a bare one, so it serves only code
 * that names such a module. A wrong guess costs time, never correctness.
 */
rt_str runtimes_zygote_for(const guest_kind *kind, const rt_run *run)
{
    for (const char *const *word = kind->heavy_words; word && *word; word++)
        if (rt_str_find(run->code, rt_str_of(*word)) >= 0 ||
            rt_str_find(run->prelude.code, rt_str_of(*word)) >= 0)
            return rt_str_of(kind->heavy_zygote);
    return rt_str_of(kind->zygote);
}
