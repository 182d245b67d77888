/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings_env.c - settings from variables: those of the process, and those of a .env file.
 *
 *     # a comment
 *     RETORT_PORT=9000
 *     export RETORT_REDIS_URL='redis://localhost/2'     # quotes keep blanks and #
 *     RETORT_NODE_NAME="a \"good\" name"                # \" \\ \n \t in double ones
 *
 * Each setting has its own name, RETORT_<KEY>, which wins over its other names. The names of older
 * programs may count in other units or say the opposite; the table knows. An empty value is no
 * value, since that is what a template leaves behind for what nobody filled in.
 */
#include "cli/settings_internal.h"

#include <strings.h>

/* Variables with our prefix that are for the tests, the set-up and the runtimes. A star: any end.
 */
static const char *const others[] = {
    "RETORT_CONFIG", "RETORT_PYTHON",    "RETORT_NODE",        "RETORT_GUESTS",
    "RETORT_TEST_*", "RETORT_LEAK_RUNS", "RETORT_BENCH_*",     "RETORT_DEATHS",
    "RETORT_BUILD",  "RETORT_VERSION",   "RETORT_NPM_FOLDERS", "RETORT_JSON_SUITE",
};

/* ---- .env ---- */

typedef struct line_reader {
    rt_str rest; /* of the line */
    const char *problem;
} line_reader;

static bool is_name(rt_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!is_letter && !(i > 0 && ((c >= '0' && c <= '9') || c == '.')))
            return false;
    }
    return name.len > 0;
}

static char escaped(char c)
{
    return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

/* The line's rest begins with the quote. */
static rt_str read_quoted(line_reader *r, rt_arena *arena)
{
    char quote = r->rest.ptr[0], *out = rt_arena_alloc(arena, r->rest.len + 1);
    size_t len = 0, i = 1;
    for (; i < r->rest.len && r->rest.ptr[i] != quote; i++) {
        bool is_escape = quote == '"' && r->rest.ptr[i] == '\\' && i + 1 < r->rest.len;
        out[len++] = is_escape ? escaped(r->rest.ptr[++i]) : r->rest.ptr[i];
    }
    rt_str after = rt_str_trim(rt_str_slice(r->rest, i + 1, r->rest.len));
    if (i >= r->rest.len)
        r->problem = "a quote does not end on its line";
    else if (after.len > 0 && after.ptr[0] != '#')
        r->problem = "something stands behind the closing quote";
    return (rt_str){ out, len };
}

static rt_str read_bare(const line_reader *r)
{
    for (size_t i = 0; i < r->rest.len; i++)
        if (r->rest.ptr[i] == '#' &&
            (i == 0 || r->rest.ptr[i - 1] == ' ' || r->rest.ptr[i - 1] == '\t'))
            return rt_str_trim(rt_str_slice(r->rest, 0, i));
    return rt_str_trim(r->rest);
}

/* False for a line that sets nothing; `problem` says when it should have. */
static bool read_line(line_reader *r, rt_arena *arena, cli_variable *out)
{
    rt_str name;
    r->rest = rt_str_trim(r->rest);
    if (r->rest.len == 0 || r->rest.ptr[0] == '#')
        return false;
    if (rt_str_starts(r->rest, RT_STR("export ")) || rt_str_starts(r->rest, RT_STR("export\t")))
        r->rest = rt_str_trim(rt_str_slice(r->rest, 7, r->rest.len));
    if (!memchr(r->rest.ptr, '=', r->rest.len) || !rt_str_cut(&r->rest, '=', &name) ||
        !is_name(rt_str_trim(name))) {
        r->problem = "NAME=VALUE is expected";
        return false;
    }
    r->rest = rt_str_trim(r->rest);
    bool is_quoted = r->rest.len > 0 && (r->rest.ptr[0] == '"' || r->rest.ptr[0] == '\'');
    out->name = rt_str_trim(name);
    out->value = is_quoted ? read_quoted(r, arena) : read_bare(r);
    return !r->problem;
}

static size_t count_lines(rt_str text)
{
    size_t lines = 1;
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    return lines;
}

cli_variables cli_dotenv_parse(rt_str text, const char *name, cli_gathered *to)
{
    cli_variables found = { 0 };
    rt_str line;
    if (rt_str_starts(text, RT_STR("\xef\xbb\xbf"))) /* a byte order mark */
        text = rt_str_slice(text, 3, text.len);
    found.items = rt_arena_alloc(to->arena, sizeof(*found.items) * count_lines(text));
    for (size_t number = 1; rt_str_cut(&text, '\n', &line); number++) {
        line_reader r = { .rest = line };
        cli_variable *next = &found.items[found.count];
        if (read_line(&r, to->arena, next)) {
            next->source = rt_arena_printf(to->arena, "%s:%zu", name, number);
            found.count++;
        } else if (r.problem) {
            cli_warn(to, "%s:%zu: the line is ignored: %s", name, number, r.problem);
        }
    }
    return found;
}

/* ---- the environment ---- */

cli_variables cli_environment(char *const *environment, rt_arena *arena)
{
    cli_variables found = { 0 };
    size_t count = 0;
    while (environment && environment[count])
        count++;
    found.items = rt_arena_alloc(arena, sizeof(*found.items) * (count + 1));
    for (size_t i = 0; i < count; i++) {
        rt_str rest = rt_str_of(environment[i]), name;
        if (!rt_str_cut(&rest, '=', &name) || !rest.ptr)
            continue;
        rt_str source = rt_arena_printf(arena, "environment %.*s", RT_FMT(name));
        found.items[found.count++] = (cli_variable){ name, rest, source };
    }
    return found;
}

/* ---- from variables to settings ---- */

/* CODE_EXEC_… comes from a program that did not care about case. */
static bool is_called(rt_str name, const char *known)
{
    bool is_lax = strncmp(known, "CODE_EXEC_", 10) == 0;
    return name.len == strlen(known) && (is_lax ? strncasecmp(name.ptr, known, name.len)
                                                : strncmp(name.ptr, known, name.len)) == 0;
}

static const cli_variable *find(cli_variables from, const char *name)
{
    for (size_t i = from.count; i-- > 0;)
        if (is_called(from.items[i].name, name))
            return &from.items[i];
    return NULL;
}

rt_str cli_variable_get(cli_variables from, const char *name)
{
    const cli_variable *found = find(from, name);
    return found ? found->value : (rt_str){ 0 };
}

static bool is_whole_number(rt_str text)
{
    uint64_t ignored;
    return rt_str_to_u64(text, &ignored);
}

static rt_str convert(rt_str text, cli_convert how, rt_arena *arena)
{
    bool is_on;
    switch (how) {
    case CLI_IN_MEGABYTES:
        return is_whole_number(text) ? rt_arena_printf(arena, "%.*sM", RT_FMT(text)) : text;
    case CLI_INVERTED:
        if (!cli_switch_parse(text, &is_on))
            return text; /* its parser will complain */
        return is_on ? RT_STR("false") : RT_STR("true");
    case CLI_PYTHON_LEVEL:
        if (text.len == 7 && strncasecmp(text.ptr, "warning", 7) == 0)
            return RT_STR("warn");
        if (text.len == 8 && strncasecmp(text.ptr, "critical", 8) == 0)
            return RT_STR("error");
        return text;
    case CLI_PYTHON_FORMAT:
        return memchr(text.ptr, '%', text.len) ? RT_STR("text") : text;
    case CLI_AS_IS:
        break;
    }
    return text;
}

static bool take(cli_variables from, const char *name, cli_convert how, const cli_setting *setting,
                 cli_layer layer, cli_gathered *to)
{
    const cli_variable *found = find(from, name);
    if (!found || found->value.len == 0)
        return false;
    cli_gather(to, setting, convert(found->value, how, to->arena),
               (cli_origin){ layer, found->source });
    return true;
}

static bool is_other(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(others); i++) {
        size_t len = strlen(others[i]);
        if (others[i][len - 1] == '*' ? rt_str_starts(name, (rt_str){ others[i], len - 1 })
                                      : rt_str_eq_c(name, others[i]))
            return true;
    }
    return false;
}

/* The n-th name of a setting, its own first; NULL past the last. */
static const char *name_at(const cli_setting *setting, size_t n, char own[CLI_KEY_MAX])
{
    cli_setting_variable(setting, own);
    return n == 0 ? own : n <= CLI_NAMES_MAX ? setting->names[n - 1].name : NULL;
}

static bool is_setting(rt_str name)
{
    const cli_setting *setting;
    const char *known;
    char own[CLI_KEY_MAX];
    for (size_t i = 0; (setting = cli_setting_at(i)); i++)
        for (size_t n = 0; (known = name_at(setting, n, own)); n++)
            if (is_called(name, known))
                return true;
    return false;
}

static void warn_unknown(const cli_variable *variable, cli_gathered *to)
{
    const cli_setting *setting;
    const char *known;
    rt_nearest near;
    char own[CLI_KEY_MAX], hint[RT_NEAREST_HINT];
    bool is_ours = rt_str_starts(variable->name, RT_STR("RETORT_")) ||
                   rt_str_starts(variable->name, RT_STR("CODE_EXEC_"));
    if (!is_ours || is_other(variable->name) || is_setting(variable->name))
        return;
    rt_nearest_start(&near, variable->name);
    for (size_t i = 0; (setting = cli_setting_at(i)); i++)
        for (size_t n = 0; (known = name_at(setting, n, own)); n++)
            rt_nearest_try(&near, rt_str_of(known));
    cli_warn(to, "%.*s: no setting is called %.*s%s", RT_FMT(variable->source),
             RT_FMT(rt_str_slice(variable->name, 0, 80)), rt_nearest_hint(&near, "", hint));
}

void cli_settings_variables(cli_variables from, cli_layer layer, cli_gathered *to)
{
    const cli_setting *setting;
    const char *name;
    char own[CLI_KEY_MAX];
    for (size_t i = 0; (setting = cli_setting_at(i)); i++) {
        bool is_set = false;
        for (size_t n = 0; !is_set && (name = name_at(setting, n, own)); n++)
            is_set =
                take(from, name, n ? setting->names[n - 1].convert : CLI_AS_IS, setting, layer, to);
    }
    for (size_t i = 0; i < from.count && to->warning_count < CLI_WARNINGS_MAX; i++)
        warn_unknown(&from.items[i], to);
}
