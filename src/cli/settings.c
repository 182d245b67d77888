/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - the layers, put on top of each other.
 *
 * First everything is gathered: flags and variables, which say where retort.yaml is, then that
 * file. Then it is applied, layer by layer, so that the last one wins; a wrong value is an error
 * even where a later layer would have replaced it. At last come the values that follow from others,
 * and the checks that need more than one value.
 */
#include "cli/settings_internal.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct loader {
    const cli_world *world;
    rt_arena *arena;
    cli_gathered found;
    rt_settings *settings;
    cli_origin *origins; /* one per row of the table */
    rt_error *err;
} loader;

/* ---- gathering ---- */

void cli_gather(cli_gathered *to, const cli_setting *setting, rt_str text, cli_origin origin)
{
    if (to->count == to->cap) {
        size_t cap = to->cap ? to->cap * 2 : 64;
        to->items = rt_arena_resize(to->arena, to->items, to->cap * sizeof(*to->items),
                                    cap * sizeof(*to->items));
        to->cap = cap;
    }
    to->items[to->count++] = (cli_assignment){ setting, rt_arena_str(to->arena, text), origin };
}

void cli_warn(cli_gathered *to, const char *fmt, ...)
{
    va_list args;
    if (to->warning_count == CLI_WARNINGS_MAX)
        return;
    if (!to->warnings)
        to->warnings = rt_arena_alloc(to->arena, sizeof(*to->warnings) * CLI_WARNINGS_MAX);
    va_start(args, fmt);
    to->warnings[to->warning_count++] = rt_arena_vprintf(to->arena, fmt, args);
    va_end(args);
}

/* ---- the file ---- */

static bool exists(rt_str path)
{
    return access(path.ptr, F_OK) == 0;
}

/* The directory that the layers above the file name, or the default. */
static bool early_data_dir(loader *l, rt_str *out)
{
    const cli_setting *data_dir = cli_setting_find(RT_STR("data_dir"));
    const cli_assignment *last = NULL;
    rt_settings scratch;
    for (size_t i = 0; i < l->found.count; i++) {
        const cli_assignment *a = &l->found.items[i];
        if (a->setting == data_dir && (!last || a->origin.layer >= last->origin.layer))
            last = a;
    }
    if (!cli_setting_set(&scratch, data_dir, last->text, l->world, l->arena, l->err))
        return rt_wrap(l->err, "%.*s: data_dir", RT_FMT(last->origin.source));
    *out = scratch.data_dir;
    return true;
}

/* --config, RETORT_CONFIG, else the first that exists; empty: there is none. */
static bool find_file(loader *l, const char *flag, rt_str variable, rt_str *path, const char **name)
{
    rt_str data_dir = { 0 };
    *name = flag ? flag : variable.len ? rt_arena_copy(l->arena, variable) : NULL;
    if (*name && (*name)[0]) {
        *path = (*name)[0] == '/' ? rt_str_of(*name)
                                  : rt_arena_printf(l->arena, "%s/%s", l->world->directory, *name);
        return true;
    }
    if (flag)
        return rt_fail(l->err, RT_INVALID, "flag --config needs the name of a file");
    if (!early_data_dir(l, &data_dir))
        return false;
    rt_str places[] = { rt_arena_printf(l->arena, "%s/retort.yaml", l->world->directory),
                        rt_arena_printf(l->arena, "%.*s/retort.yaml", RT_FMT(data_dir)),
                        rt_arena_printf(l->arena, "%s/retort.yaml", l->world->etc) };
    for (size_t i = 0; i < RT_COUNT(places); i++)
        if (exists(places[i])) {
            *path = places[i];
            *name = i == 0 ? "retort.yaml" : places[i].ptr;
            return true;
        }
    return true;
}

static bool gather_file(loader *l, const char *flag, rt_str variable)
{
    rt_str path = { 0 }, text;
    const char *name = NULL;
    if (!find_file(l, flag, variable, &path, &name))
        return false;
    if (path.len == 0)
        return true;
    l->settings->file = path;
    return rt_read_file(path.ptr, CLI_FILE_MAX, l->arena, &text, l->err) &&
           cli_settings_yaml(text, name, &l->found, l->err);
}

/* ---- .env ---- */

/* A directory of that name is a Python environment, not ours. */
static bool read_dotenv(loader *l, cli_variables *out)
{
    struct stat st;
    rt_str text, path = rt_arena_printf(l->arena, "%s/.env", l->world->directory);
    *out = (cli_variables){ 0 };
    if (stat(path.ptr, &st) != 0 || !S_ISREG(st.st_mode))
        return true;
    if (!rt_read_file(path.ptr, CLI_FILE_MAX, l->arena, &text, l->err))
        return false;
    *out = cli_dotenv_parse(text, ".env", &l->found);
    return true;
}

/* ---- defaults that depend on the host ---- */

static rt_str default_data_dir(const cli_world *world, rt_arena *arena)
{
    rt_str data = cli_variable_get(cli_environment(world->environment, arena), "XDG_DATA_HOME");
    if (world->is_root || (data.len == 0 && world->home.len == 0))
        return RT_STR("/var/lib/retort");
    if (data.len > 0 && data.ptr[0] == '/') /* the specification: a relative one is ignored */
        return rt_arena_printf(arena, "%.*s/retort", RT_FMT(data));
    return rt_arena_printf(arena, "%.*s/.local/share/retort", RT_FMT(world->home));
}

static void gather_defaults(loader *l)
{
    static const cli_origin origin = { CLI_DEFAULT, { "default", 7 } };
    char host[HOST_NAME_MAX + 1] = "";
    const cli_setting *setting;
    for (size_t i = 0; (setting = cli_setting_at(i)); i++)
        if (setting->fallback)
            cli_gather(&l->found, setting, rt_str_of(setting->fallback), origin);
    if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0')
        snprintf(host, sizeof(host), "localhost");
    cli_gather(&l->found, cli_setting_find(RT_STR("data_dir")),
               default_data_dir(l->world, l->arena), origin);
    cli_gather(&l->found, cli_setting_find(RT_STR("node.name")), rt_str_of(host), origin);
    cli_gather(&l->found, cli_setting_find(RT_STR("database.url")), RT_STR(""), origin);
    cli_gather(&l->found, cli_setting_find(RT_STR("models.directory")), RT_STR(""), origin);
}

/* ---- applying ---- */

static bool apply(loader *l, const cli_assignment *a)
{
    if (!cli_setting_set(l->settings, a->setting, a->text, l->world, l->arena, l->err))
        return rt_wrap(l->err, "%.*s: %s", RT_FMT(a->origin.source), a->setting->key);
    l->origins[cli_setting_index(a->setting)] = a->origin;
    return true;
}

static bool apply_layers(loader *l)
{
    for (cli_layer layer = CLI_DEFAULT; layer <= CLI_FLAG; layer++)
        for (size_t i = 0; i < l->found.count; i++)
            if (l->found.items[i].origin.layer == layer && !apply(l, &l->found.items[i]))
                return false;
    return true;
}

static cli_origin *origin_of(loader *l, const char *key)
{
    return &l->origins[cli_setting_index(cli_setting_find(rt_str_of(key)))];
}

/* ---- what follows from other values ---- */

static void add_encoded(rt_buf *out, rt_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
        if (is_plain)
            rt_buf_addc(out, (char)c);
        else
            rt_buf_addf(out, "%%%02X", c);
    }
}

static rt_str postgresql_url(const rt_settings *s, rt_arena *arena)
{
    rt_buf url RT_CLEANUP(rt_buf_done) = { 0 };
    bool is_ipv6 = memchr(s->database.host.ptr, ':', s->database.host.len) != NULL;
    rt_buf_add(&url, RT_STR("postgresql://"));
    add_encoded(&url, s->database.user);
    if (s->database.password.len > 0) {
        rt_buf_addc(&url, ':');
        add_encoded(&url, s->database.password);
    }
    rt_buf_addc(&url, '@');
    if (is_ipv6)
        rt_buf_addf(&url, "[%.*s]", RT_FMT(s->database.host));
    else
        add_encoded(&url, s->database.host);
    rt_buf_addf(&url, ":%llu/", (unsigned long long)s->database.port);
    add_encoded(&url, s->database.name);
    return rt_arena_str(arena, rt_buf_str(&url));
}

static void derive(loader *l)
{
    rt_settings *s = l->settings;
    cli_origin *url = origin_of(l, "database.url"), *level = origin_of(l, "log.level");
    if (s->database.url.len == 0 && s->database.host.len > 0) {
        s->database.url = postgresql_url(s, l->arena);
        *url = *origin_of(l, "database.host");
    } else if (s->database.url.len == 0) {
        s->database.url = rt_arena_printf(l->arena, "sqlite://%.*s/retort.db", RT_FMT(s->data_dir));
        *url = (cli_origin){ CLI_DEFAULT, RT_STR("default") };
    }
    if (s->models.directory.len == 0) {
        s->models.directory = rt_arena_printf(l->arena, "%.*s/models", RT_FMT(s->data_dir));
        *origin_of(l, "models.directory") = (cli_origin){ CLI_DEFAULT, RT_STR("default") };
    }
    if (s->is_debug && level->layer == CLI_DEFAULT) {
        s->log.level = RT_LOG_DEBUG;
        *level = *origin_of(l, "debug");
    }
}

/* ---- checks ---- */

static const struct {
    const char *less, *more;
} orders[] = {
    { "execution.timeout", "execution.max_timeout" },
    { "execution.memory", "execution.max_memory_per_run" },
    { "execution.memory", "execution.max_memory" },
    { "execution.pool", "execution.max_cells" },
    { "sessions.ttl", "sessions.max_ttl" },
};

static const struct {
    const char *one, *other;
} pairs[] = {
    { "server.tls_certificate", "server.tls_key" },
    { "telemetry.posthog_url", "telemetry.posthog_key" },
};

static uint64_t amount(const loader *l, const char *key)
{
    return *(const uint64_t *)((const char *)l->settings +
                               cli_setting_find(rt_str_of(key))->offset);
}

static bool is_empty(const loader *l, const char *key)
{
    return ((const rt_str *)((const char *)l->settings + cli_setting_find(rt_str_of(key))->offset))
               ->len == 0;
}

/* "execution.timeout (30s, default)" */
static rt_str described(loader *l, const char *key)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    cli_setting_show(l->settings, cli_setting_find(rt_str_of(key)), &text);
    return rt_arena_printf(l->arena, "%s (%.*s, %.*s)", key, RT_FMT(rt_buf_str(&text)),
                           RT_FMT(origin_of(l, key)->source));
}

static bool check(loader *l)
{
    for (size_t i = 0; i < RT_COUNT(orders); i++)
        if (amount(l, orders[i].less) > amount(l, orders[i].more))
            return rt_fail(l->err, RT_INVALID, "%.*s is more than %.*s",
                           RT_FMT(described(l, orders[i].less)),
                           RT_FMT(described(l, orders[i].more)));
    for (size_t i = 0; i < RT_COUNT(pairs); i++) {
        bool has_one = !is_empty(l, pairs[i].one), has_other = !is_empty(l, pairs[i].other);
        if (has_one != has_other)
            return rt_fail(l->err, RT_INVALID, "%s is set and %s is not; they go together",
                           has_one ? pairs[i].one : pairs[i].other,
                           has_one ? pairs[i].other : pairs[i].one);
    }
    if (!rt_policy_preset(l->settings->execution.default_policy))
        return rt_fail(l->err, RT_INVALID,
                       "%.*s: execution.default_policy: there is no policy '%.*s'; 'retort "
                       "policies' lists them",
                       RT_FMT(origin_of(l, "execution.default_policy")->source),
                       RT_FMT(rt_str_slice(l->settings->execution.default_policy, 0, 40)));
    return true;
}

/* What an operator should read in the log at every start. */
static void warn(loader *l)
{
    const rt_settings *s = l->settings;
    const cli_setting *setting;
    if (!s->privacy.is_enabled)
        cli_warn(&l->found, "privacy.enabled is false (%.*s): personal data is not replaced",
                 RT_FMT(origin_of(l, "privacy.enabled")->source));
    if (!s->cache.is_enabled)
        cli_warn(&l->found, "cache.enabled is false (%.*s): every run is computed anew",
                 RT_FMT(origin_of(l, "cache.enabled")->source));
    for (size_t i = 0; (setting = cli_setting_at(i)); i++)
        if (setting->is_reserved && l->origins[i].layer != CLI_DEFAULT)
            cli_warn(&l->found, "%.*s: %s has no effect in this version",
                     RT_FMT(l->origins[i].source), setting->key);
}

/* ---- loading ---- */

static bool gather(loader *l, int *argc, char **argv)
{
    const char *config = NULL;
    cli_variables dotenv, environment = cli_environment(l->world->environment, l->arena);
    gather_defaults(l);
    if (!cli_settings_flags(argc, argv, &l->found, &config, l->err) || !read_dotenv(l, &dotenv))
        return false;
    cli_settings_variables(dotenv, CLI_DOTENV, &l->found);
    cli_settings_variables(environment, CLI_ENVIRONMENT, &l->found);
    rt_str variable = cli_variable_get(environment, "RETORT_CONFIG");
    if (variable.len == 0)
        variable = cli_variable_get(dotenv, "RETORT_CONFIG");
    return gather_file(l, config, variable);
}

bool cli_settings_load_from(const cli_world *world, int *argc, char **argv, rt_arena *arena,
                            rt_settings *out, rt_error *err)
{
    rt_settings settings = { 0 };
    loader l = { .world = world,
                 .arena = arena,
                 .found = { .arena = arena },
                 .settings = &settings,
                 .origins = rt_arena_alloc(arena, sizeof(cli_origin) * cli_setting_count()),
                 .err = err };
    if (!gather(&l, argc, argv) || !apply_layers(&l))
        return false;
    derive(&l);
    if (!check(&l))
        return false;
    warn(&l);
    settings.origins = l.origins;
    settings.warnings = (cli_words){ l.found.warnings, l.found.warning_count };
    *out = settings;
    return true;
}

static rt_str find_home(rt_arena *arena)
{
    const char *home = getenv("HOME");
    const struct passwd *user = home && home[0] == '/' ? NULL : getpwuid(geteuid());
    return rt_arena_str(arena, rt_str_of(user ? user->pw_dir : home));
}

bool cli_settings_load(int *argc, char **argv, rt_arena *arena, rt_settings *out, rt_error *err)
{
    char directory[PATH_MAX];
    if (!getcwd(directory, sizeof(directory)))
        return rt_fail_errno(err, "the working directory");
    cli_world world = { .environment = environ,
                        .directory = directory,
                        .etc = "/etc/retort",
                        .is_root = geteuid() == 0,
                        .home = find_home(arena) };
    return cli_settings_load_from(&world, argc, argv, arena, out, err);
}

rt_str cli_settings_source(const rt_settings *settings, const char *key)
{
    const cli_setting *setting = cli_setting_find(rt_str_of(key));
    return setting ? settings->origins[cli_setting_index(setting)].source : (rt_str){ 0 };
}
