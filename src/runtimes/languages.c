/*
 * languages.c - which languages there are, and how each runs in a cell.
 */
#include "runtimes/runtimes_internal.h"

#include <string.h>

static const rt_language languages[] = {
    { .name = "python", .aliases = " py python3 ", .ending = "py" },
    { .name = "javascript", .aliases = " js node nodejs ", .ending = "js" },
    { .name = "typescript", .aliases = " ts ", .ending = "ts" },
    { .name = "bash", .aliases = " sh shell ", .ending = "sh" },
};

static const struct {
    const char *ending, *language;
} other_endings[] = {
    { "mjs", "javascript" }, { "cjs", "javascript" }, { "mts", "typescript" }, { "bash", "bash" }
};

static const char *const data_words[] = { "numpy", "pandas", "matplotlib", NULL };

static const guest_kind guests[] = {
    { "python", "python", data_words, "python-data", true, true, true },
    { "javascript", "node", NULL, NULL, false, true, true },
    { "typescript", "node", NULL, NULL, false, true, true },
    { "bash", "bash", NULL, NULL, false, false, false },
};

const rt_language *rt_language_find(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(languages); i++) {
        rt_str rest = rt_str_of(languages[i].aliases), alias;
        if (rt_str_eq_c(name, languages[i].name))
            return &languages[i];
        while (name.len > 0 && rt_str_cut(&rest, ' ', &alias))
            if (rt_str_eq(alias, name))
                return &languages[i];
    }
    return NULL;
}

const rt_language *rt_language_of_file(rt_str path)
{
    size_t dot = path.len;
    while (dot > 0 && path.ptr[dot - 1] != '.' && path.ptr[dot - 1] != '/')
        dot--;
    if (dot == 0 || path.ptr[dot - 1] != '.')
        return NULL;
    rt_str ending = rt_str_slice(path, dot, path.len);
    for (size_t i = 0; i < RT_COUNT(languages); i++)
        if (rt_str_eq_c(ending, languages[i].ending))
            return &languages[i];
    for (size_t i = 0; i < RT_COUNT(other_endings); i++)
        if (rt_str_eq_c(ending, other_endings[i].ending))
            return rt_language_find(rt_str_of(other_endings[i].language));
    return NULL;
}

bool rt_language_unknown(rt_str name, rt_error *err)
{
    if (name.len == 0)
        return rt_fail(err, RT_INVALID,
                       "no language given; use one of: python, javascript, typescript, bash");
    return rt_fail(err, RT_UNSUPPORTED,
                   "unknown language '%.*s'; use one of: python, javascript, typescript, bash",
                   (int)RT_MIN(name.len, (size_t)40), name.ptr);
}

const guest_kind *runtimes_guest(rt_str language)
{
    for (size_t i = 0; i < RT_COUNT(guests); i++)
        if (rt_str_eq_c(language, guests[i].language))
            return &guests[i];
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
