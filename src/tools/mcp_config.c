/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_config.c - the mcpServers of the clients people already have, read as those clients do.
 *
 * Each entry stands alone: one that cannot be used becomes a problem under its name, and the others
 * load. Values may hold secrets, so no error repeats one; names of keys and variables it may.
 */
#include "tools/mcp_internal.h"

enum {
    ARGS_MAX = 1000,
    PAIRS_MAX = 1000,
    NAME_MAX_BYTES = 63,
    EXPANDED_MAX = 128 << 10,
};
#define CONFIG_MAX ((size_t)4 << 20)

typedef struct reader {
    const char *const *environ;
    rt_arena *arena;
    rt_error *err; /* of the entry at hand */
} reader;

/* -- Variables --------------------------------------------------------------------------------- */

const char *mcp_environ_get(const char *const *environ, rt_str name)
{
    for (size_t i = 0; environ && environ[i]; i++)
        if (strncmp(environ[i], name.ptr, name.len) == 0 && environ[i][name.len] == '=')
            return environ[i] + name.len + 1;
    return NULL;
}

static bool is_variable(rt_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.len > 0;
}

/* What stands between ${ and }. What cannot be a variable is text, such as the code of a shell. */
static bool expand_one(reader *r, rt_str inside, rt_buf *out)
{
    char shown[MCP_SHOWN_SIZE];
    rt_str name = inside, fallback = { 0 };
    ptrdiff_t dash = rt_str_find(inside, RT_STR(":-"));
    if (rt_str_eq_c(inside, "userHome")) {
        name = RT_STR("HOME");
    } else if (rt_str_eq_c(inside, "pathSeparator") || rt_str_eq_c(inside, "/")) {
        rt_buf_addc(out, '/');
        return true;
    } else if (rt_str_starts(inside, RT_STR("env:"))) {
        name = rt_str_slice(inside, 4, inside.len);
    } else if (dash >= 0) {
        name = rt_str_slice(inside, 0, (size_t)dash);
        fallback = (rt_str){ inside.ptr + dash + 2, inside.len - (size_t)dash - 2 };
    }
    if (name.len && memchr(name.ptr, ':', name.len))
        return rt_fail(r->err, RT_UNSUPPORTED, "${%s} cannot be filled in here",
                       mcp_show(inside, shown));
    if (!is_variable(name)) {
        rt_buf_addf(out, "${%.*s}", RT_FMT(inside));
        return true;
    }
    const char *value = mcp_environ_get(r->environ, name);
    if (!value && !fallback.ptr)
        return rt_fail(r->err, RT_INVALID,
                       "the variable %s is not set; set it, or write ${%s:-default}",
                       mcp_show(name, shown), shown);
    rt_buf_add(out, value ? rt_str_of(value) : fallback);
    return true;
}

static bool expand_into(reader *r, rt_str text, rt_buf *out)
{
    ptrdiff_t open;
    while ((open = rt_str_find(text, RT_STR("${"))) >= 0) {
        rt_str tail = rt_str_slice(text, (size_t)open + 2, text.len);
        const char *close = tail.len ? memchr(tail.ptr, '}', tail.len) : NULL;
        if (!close)
            break; /* "${" alone is text */
        rt_buf_add(out, rt_str_slice(text, 0, (size_t)open));
        if (!expand_one(r, (rt_str){ tail.ptr, (size_t)(close - tail.ptr) }, out))
            return false;
        text = (rt_str){ close + 1, (size_t)(tail.ptr + tail.len - close - 1) };
    }
    rt_buf_add(out, text);
    return true;
}

static bool expand(reader *r, const char *what, rt_json value, const char **out)
{
    if (rt_json_type(value) != RT_JSON_STRING)
        return rt_fail(r->err, RT_INVALID, "%s must be a string, and is %s", what,
                       rt_json_type_name(value));
    rt_buf text RT_CLEANUP(rt_buf_done) = { .max = EXPANDED_MAX };
    if (!expand_into(r, rt_json_str(value), &text) || !rt_buf_ok(&text, r->err))
        return rt_wrap(r->err, "%s", what);
    if (text.len && memchr(text.ptr, '\0', text.len))
        return rt_fail(r->err, RT_INVALID, "%s contains a NUL character", what);
    *out = rt_arena_copy(r->arena, rt_buf_str(&text));
    return true;
}

/* -- Keys -------------------------------------------------------------------------------------- */

static bool read_args(reader *r, rt_json value, rt_mcp_config *out)
{
    size_t count = rt_json_count(value), i = 0;
    if (rt_json_type(value) != RT_JSON_ARRAY)
        return rt_fail(r->err, RT_INVALID, "args must be an array of strings");
    if (count > ARGS_MAX)
        return rt_fail(r->err, RT_LIMIT, "more than %d args", ARGS_MAX);
    const char **args = rt_arena_alloc(r->arena, (count + 1) * sizeof(*args));
    rt_json_iter it = rt_json_each(value);
    rt_json item;
    while (rt_json_next(&it, NULL, &item))
        if (!expand(r, "args", item, &args[i++]))
            return false;
    out->args = args;
    return true;
}

static bool read_pairs(reader *r, const char *what, rt_json value, rt_mcp_pairs *out)
{
    size_t count = rt_json_count(value), i = 0;
    char label[MCP_SHOWN_SIZE + 16];
    if (rt_json_type(value) != RT_JSON_OBJECT)
        return rt_fail(r->err, RT_INVALID, "%s must be an object of strings", what);
    if (count > PAIRS_MAX)
        return rt_fail(r->err, RT_LIMIT, "more than %d members in %s", PAIRS_MAX, what);
    rt_mcp_pair *pairs = rt_arena_alloc(r->arena, (count + 1) * sizeof(*pairs));
    rt_json_iter it = rt_json_each(value);
    rt_str key;
    rt_json item;
    while (rt_json_next(&it, &key, &item)) {
        char shown[MCP_SHOWN_SIZE];
        const char *text;
        snprintf(label, sizeof(label), "%s.%s", what, mcp_show(key, shown));
        if (!expand(r, label, item, &text))
            return false;
        pairs[i++] = (rt_mcp_pair){ rt_arena_str(r->arena, key), rt_str_of(text) };
    }
    *out = (rt_mcp_pairs){ pairs, i };
    return true;
}

static bool read_command(reader *r, rt_json value, rt_mcp_config *out)
{
    return expand(r, "command", value, &out->command);
}

static bool read_env(reader *r, rt_json value, rt_mcp_config *out)
{
    return read_pairs(r, "env", value, &out->env);
}

static bool read_cwd(reader *r, rt_json value, rt_mcp_config *out)
{
    return expand(r, "cwd", value, &out->cwd);
}

static bool read_url(reader *r, rt_json value, rt_mcp_config *out)
{
    return expand(r, "url", value, &out->url);
}

static bool read_headers(reader *r, rt_json value, rt_mcp_config *out)
{
    return read_pairs(r, "headers", value, &out->headers);
}

static bool read_type(reader *r, rt_json value, rt_mcp_config *out)
{
    static const char *const known[] = { "stdio", "http", "streamable-http", "streamableHttp",
                                         "sse" };
    rt_str type = rt_json_str(value);
    out->is_sse = rt_str_eq_c(type, "sse");
    for (size_t i = 0; i < RT_COUNT(known); i++)
        if (rt_str_eq_c(type, known[i]))
            return true;
    return rt_fail(r->err, RT_INVALID, "type must be stdio, http or sse");
}

static bool read_number(reader *r, const char *what, rt_json value, int64_t max, int64_t *out)
{
    if (!rt_json_i64(value, out) || *out < 0 || *out > max)
        return rt_fail(r->err, RT_INVALID, "%s must be a whole number from 0 to %lld", what,
                       (long long)max);
    return true;
}

static bool read_timeout(reader *r, rt_json value, rt_mcp_config *out)
{
    int64_t ms;
    if (!read_number(r, "timeout_ms", value, 24 * 3600 * 1000, &ms))
        return false;
    out->timeout_ms = (uint64_t)ms;
    return true;
}

static bool read_rate(reader *r, rt_json value, rt_mcp_config *out)
{
    int64_t rate;
    if (!read_number(r, "rate_limit", value, MCP_RATE_MAX, &rate))
        return false;
    out->rate_limit = (unsigned)rate;
    out->has_no_rate_limit = rate == 0;
    return true;
}

static bool read_disabled(reader *r, rt_json value, rt_mcp_config *out)
{
    if (rt_json_type(value) != RT_JSON_BOOL)
        return rt_fail(r->err, RT_INVALID, "disabled must be true or false");
    out->is_disabled = rt_json_bool(value, false);
    return true;
}

static bool read_version(reader *r, rt_json value, rt_mcp_config *out)
{
    const rt_mcp_version *version = rt_mcp_version_find(rt_json_str(value));
    if (!version)
        return rt_fail(r->err, RT_INVALID, "protocol_version must be a revision of MCP such as %s",
                       rt_mcp_versions[0].name);
    out->protocol_version = rt_str_of(version->name);
    return true;
}

static bool read_oauth(reader *r, rt_json value, rt_mcp_config *out)
{
    const struct {
        const char *key, *label;
        rt_str *out;
    } parts[] = {
        { "client_id", "oauth.client_id", &out->oauth.client_id },
        { "clientId", "oauth.clientId", &out->oauth.client_id },
        { "client_secret", "oauth.client_secret", &out->oauth.client_secret },
        { "scope", "oauth.scope", &out->oauth.scope },
    };
    if (rt_json_type(value) != RT_JSON_OBJECT)
        return rt_fail(r->err, RT_INVALID, "oauth must be an object");
    for (size_t i = 0; i < RT_COUNT(parts); i++) {
        rt_json part = rt_json_get_c(value, parts[i].key);
        const char *text;
        if (rt_json_is_absent(part))
            continue;
        if (!expand(r, parts[i].label, part, &text))
            return false;
        *parts[i].out = rt_str_of(text);
    }
    return true;
}

/* Keys that others know and we do not are left alone: the file is shared. */
static const struct {
    const char *key;
    bool (*read)(reader *r, rt_json value, rt_mcp_config *out);
} keys[] = {
    { "command", read_command },
    { "args", read_args },
    { "env", read_env },
    { "cwd", read_cwd },
    { "url", read_url },
    { "serverUrl", read_url },
    { "headers", read_headers },
    { "type", read_type },
    { "transport", read_type },
    { "oauth", read_oauth },
    { "timeout_ms", read_timeout },
    { "rate_limit", read_rate },
    { "disabled", read_disabled },
    { "protocol_version", read_version },
};

/* -- Entries ----------------------------------------------------------------------------------- */

bool mcp_name_check(rt_str name, rt_error *err)
{
    if (name.len == 0 || name.len > NAME_MAX_BYTES)
        return rt_fail(err, RT_INVALID, "a server's name has 1 to %d characters", NAME_MAX_BYTES);
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
        if (!is_good)
            return rt_fail(err, RT_INVALID,
                           "a server's name consists of letters, digits, '_', '-' and '.'");
    }
    return true;
}

static bool check_header(const rt_mcp_pair *pair, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    for (size_t i = 0; i < pair->name.len; i++)
        if (pair->name.ptr[i] <= ' ' || pair->name.ptr[i] == ':' || pair->name.ptr[i] == 0x7f)
            return rt_fail(err, RT_INVALID, "the header name %s", mcp_show(pair->name, shown));
    for (size_t i = 0; i < pair->value.len; i++)
        if ((uint8_t)pair->value.ptr[i] < ' ' && pair->value.ptr[i] != '\t')
            return rt_fail(err, RT_INVALID, "the value of the header %s has a control character",
                           mcp_show(pair->name, shown));
    return pair->name.len > 0 || rt_fail(err, RT_INVALID, "a header without a name");
}

static bool check_pairs(const rt_mcp_config *config, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    for (size_t i = 0; i < config->headers.count; i++)
        if (!check_header(&config->headers.items[i], err))
            return false;
    for (size_t i = 0; i < config->env.count; i++) {
        rt_str name = config->env.items[i].name;
        if (name.len == 0 || memchr(name.ptr, '=', name.len) || memchr(name.ptr, '\0', name.len))
            return rt_fail(err, RT_INVALID, "there can be no variable named \"%s\"",
                           mcp_show(name, shown));
    }
    return true;
}

bool mcp_config_check(const rt_mcp_config *config, rt_error *err)
{
    bool has_command = config->command && config->command[0], has_url = config->url != NULL;
    if (!mcp_name_check(config->name, err))
        return false;
    if (has_command && has_url)
        return rt_fail(err, RT_INVALID, "it has a command and a url; it can have but one of them");
    if (!has_command && !has_url)
        return rt_fail(err, RT_INVALID, "it has neither a command nor a url");
    if (has_url && strncmp(config->url, "http://", 7) != 0 &&
        strncmp(config->url, "https://", 8) != 0)
        return rt_fail(err, RT_INVALID, "its url does not begin with http:// or https://");
    return check_pairs(config, err);
}

/* People write "My Server"; its tools need a name that code can say. */
static rt_str tamed_name(rt_str name, rt_arena *arena)
{
    char *tamed = rt_arena_copy(arena, name);
    for (size_t i = 0; i < name.len; i++)
        if (tamed[i] == ' ')
            tamed[i] = '-';
    return (rt_str){ tamed, name.len };
}

static bool read_entry(reader *r, rt_str name, rt_json entry, rt_mcp_config *out)
{
    out->name = tamed_name(name, r->arena);
    if (!mcp_name_check(out->name, r->err))
        return false;
    if (rt_json_type(entry) != RT_JSON_OBJECT)
        return rt_fail(r->err, RT_INVALID, "its entry must be an object");
    out->is_disabled = rt_json_bool(rt_json_get_c(entry, "disabled"), false);
    if (out->is_disabled)
        return true; /* whatever else is wrong with it */
    for (size_t i = 0; i < RT_COUNT(keys); i++) {
        rt_json value = rt_json_get_c(entry, keys[i].key);
        if (!rt_json_is_absent(value) && rt_json_type(value) != RT_JSON_NULL &&
            !keys[i].read(r, value, out))
            return false;
    }
    return mcp_config_check(out, r->err);
}

static bool is_taken(const rt_mcp_configs *configs, rt_str name)
{
    for (size_t i = 0; i < configs->count; i++)
        if (rt_str_eq(configs->items[i].name, name))
            return true;
    return false;
}

static void add_entry(reader *r, rt_str name, rt_json entry, rt_mcp_configs *out)
{
    rt_mcp_config config = { .environ = r->environ };
    rt_error err = { 0 };
    r->err = &err;
    bool is_good = read_entry(r, name, entry, &config);
    if (is_good && is_taken(out, config.name))
        is_good = rt_fail(&err, RT_CONFLICT, "another server has the same name");
    if (is_good)
        out->items[out->count++] = config;
    else
        out->problems[out->problem_count++] = (rt_mcp_problem){ rt_arena_str(r->arena, name), err };
}

static bool find_servers(rt_json doc, rt_json *out, rt_error *err)
{
    static const char *const names[] = { "mcpServers", "mcp_servers", "servers" };
    for (size_t i = 0; i < RT_COUNT(names); i++) {
        *out = rt_json_get_c(doc, names[i]);
        if (rt_json_type(*out) == RT_JSON_OBJECT)
            return true;
    }
    return rt_fail(err, RT_INVALID, "there is no object \"mcpServers\" in it");
}

bool rt_mcp_config_read(rt_str json, const char *const *environ, rt_arena *arena,
                        rt_mcp_configs *out, rt_error *err)
{
    rt_arena scratch RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc, servers, entry;
    rt_str name;
    if (!rt_json_parse_limited(json, &(rt_json_limits){ .max_size = CONFIG_MAX }, &scratch, &doc,
                               err) ||
        !find_servers(doc, &servers, err))
        return rt_wrap(err, "the list of MCP servers");
    size_t count = rt_json_count(servers);
    if (count > RT_MCP_SERVERS_MAX)
        return rt_fail(err, RT_LIMIT, "more than %d MCP servers", RT_MCP_SERVERS_MAX);
    rt_mcp_configs found = {
        .items = rt_arena_alloc(arena, (count + 1) * sizeof(rt_mcp_config)),
        .problems = rt_arena_alloc(arena, (count + 1) * sizeof(rt_mcp_problem)),
    };
    reader r = { .environ = environ, .arena = arena };
    rt_json_iter it = rt_json_each(servers);
    while (rt_json_next(&it, &name, &entry))
        add_entry(&r, name, entry, &found);
    *out = found;
    return true;
}
