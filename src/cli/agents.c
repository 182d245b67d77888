/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agents.c - `retort agents …`: code agents from the command line.
 *
 * They are those of the data directory (or the database) that the settings name, whether a server
 * uses it or not. A run has an engine of its own, under a name of its own, so that it and a server
 * do not take each other's runs for theirs.
 */
#include "cli/agents.h"
#include "cli/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BODY_MAX (2 * RT_AGENT_CODE_MAX)

static const char help[] =
    "Usage: retort agents list [--public]             one's own agents, or the public registry\n"
    "       retort agents search QUERY                those a sentence may mean\n"
    "       retort agents show NAME [--version V]     all about one, with its code\n"
    "       retort agents create FILE                 a JSON or YAML file (-: stdin)\n"
    "       retort agents update NAME FILE            the next version\n"
    "       retort agents run NAME [JSON]             run it with this input (-: stdin)\n"
    "       retort agents versions NAME\n"
    "       retort agents publish|unpublish NAME\n"
    "       retort agents deprecate NAME [--message TEXT]\n"
    "       retort agents register|unregister NAME    as a tool, agents:NAME\n"
    "       retort agents deploy SERVER NAME...       as an MCP server of their own\n"
    "       retort agents export NAME [--format openai|anthropic|mcp]\n"
    "       retort agents push DIR [--message TEXT]   agent.yaml and its files, into the store\n"
    "       retort agents pull NAME DIR [--version V] and back\n"
    "       retort agents check FILE                  what looks like a way out of the sandbox\n"
    "       retort agents delete NAME\n\n"
    "NAME is an agent's id or name, with @1.2.0 or @latest if you like. Options: --json,\n"
    "--organisation ID, --workspace ID; settings (--data-dir, --database-url) as for\n"
    "'retort serve'.";

enum { WORDS_MAX = 32 };

typedef struct options {
    rt_str words[WORDS_MAX]; /* what is no option */
    size_t word_count;
    rt_str version, format, message, organisation, workspace;
    bool is_json, is_public;
} options;

/* The service is opened by those who need more than the store. */
typedef struct command {
    cli_service s;
    options o;
    rt_agents *agents;
    rt_caller caller;
} command;

static bool read_options(options *o, int argc, char **argv, rt_error *err)
{
    const struct {
        const char *flag;
        rt_str *text;
    } valued[] = { { "--version", &o->version },
                   { "--format", &o->format },
                   { "--message", &o->message },
                   { "--organisation", &o->organisation },
                   { "--workspace", &o->workspace } };
    for (int i = 2; i < argc; i++) {
        const char *value = NULL;
        for (size_t k = 0; k < RT_COUNT(valued) && !value && !err->code; k++)
            if ((value = cli_option(argc, argv, &i, valued[k].flag, err)))
                *valued[k].text = rt_str_of(value);
        if (err->code)
            return false;
        if (value)
            continue;
        if (strcmp(argv[i], "--json") == 0)
            o->is_json = true;
        else if (strcmp(argv[i], "--public") == 0)
            o->is_public = true;
        else if (argv[i][0] == '-' && argv[i][1] == '-')
            return rt_fail(err, RT_INVALID,
                           "unknown option %.60s; 'retort agents --help' lists them", argv[i]);
        else if (o->word_count == WORDS_MAX)
            return rt_fail(err, RT_INVALID, "'%.60s' is one too many", argv[i]);
        else
            o->words[o->word_count++] = rt_str_of(argv[i]);
    }
    return true;
}

static bool need(const command *c, size_t least, size_t most, const char *usage, rt_error *err)
{
    return (c->o.word_count >= least && c->o.word_count <= most) ||
           rt_fail(err, RT_INVALID, "usage: retort agents %s", usage);
}

/* ---- opening ---- */

static void become(command *c)
{
    const options *o = &c->o;
    c->caller = (rt_caller){ .organisation_id = o->organisation.len ? o->organisation
                                                                    : RT_STR(RT_LOCAL_ORGANISATION),
                             .workspace_id = o->workspace,
                             .user_id = RT_STR(RT_LOCAL_USER),
                             .actor_type = RT_STR("cli"),
                             .role = RT_ROLE_ADMIN };
    if (o->organisation.len == 0 && o->workspace.len == 0)
        c->caller.workspace_id = RT_STR(RT_LOCAL_WORKSPACE);
}

static bool open_store(command *c, rt_error *err)
{
    cli_house *h = &c->s.house;
    if (!cli_house_open(h, err))
        return false;
    become(c);
    c->agents = rt_agents_new(
        &(rt_agents_config){ .store = h->store, .vault = h->vault, .objects = &h->objects });
    return true;
}

static bool open_service(command *c, rt_error *err)
{
    cli_house *h = &c->s.house;
    sigset_t signals;
    h->node = rt_arena_printf(&h->arena, "%.*s-cli-%d", RT_FMT(h->node), (int)getpid());
    if (!cli_service_open(&c->s, &signals, err))
        return false;
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    become(c);
    c->agents = c->s.agents;
    return true;
}

static void close_command(command *c)
{
    if (c->agents != c->s.agents)
        rt_agents_free(c->agents);
    if (c->s.engine)
        cli_service_close(&c->s);
    else
        cli_house_close(&c->s.house);
}

/* ---- showing ---- */

static bool print(rt_buf *text, rt_error *err)
{
    rt_buf_addc(text, '\n');
    return rt_buf_ok(text, err) && rt_write_all(STDOUT_FILENO, rt_buf_str(text), err);
}

static bool print_pretty(rt_buf *json, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json doc;
    if (!rt_buf_ok(json, err) || !rt_json_parse(rt_buf_str(json), &arena, &doc, err))
        return false;
    rt_json_print_pretty(doc, &text);
    return print(&text, err);
}

static bool print_agent(const command *c, const rt_agent *agent, const char *done, rt_error *err)
{
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    if (!c->o.is_json && done) {
        printf("%.*s %.*s %s\n", RT_FMT(agent->row.tool_name), RT_FMT(agent->version), done);
        return true;
    }
    rt_json_begin(&w, &json);
    rt_jw_object(&w);
    rt_agent_write(agent, &w);
    rt_jw_end(&w);
    return print_pretty(&json, err);
}

static bool print_rows(const command *c, const rt_agent_row *rows, size_t count, rt_error *err)
{
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    if (c->o.is_json) {
        rt_json_begin(&w, &json);
        rt_jw_array(&w);
        for (size_t i = 0; i < count; i++) {
            rt_jw_object(&w);
            rt_agent_row_write(&rows[i], &w);
            rt_jw_end(&w);
        }
        rt_jw_end(&w);
        return print_pretty(&json, err);
    }
    for (size_t i = 0; i < count; i++)
        printf("%-24.*s %-8.*s %-11.*s %s%s%s%.*s\n", RT_FMT(rows[i].tool_name),
               RT_FMT(rows[i].version), RT_FMT(rows[i].content.language),
               rows[i].is_public ? "public " : "", rows[i].is_deprecated ? "deprecated " : "",
               rows[i].is_tool ? "tool " : "", RT_FMT(rows[i].description));
    if (count == 0)
        puts("There are none. 'retort agents create' and 'push' make one.");
    return true;
}

/* ---- looking ---- */

static bool list(command *c, rt_error *err)
{
    rt_agent_filter filter = { .is_own = !c->o.is_public };
    rt_agent_row *rows;
    size_t count;
    if (c->o.is_public) {
        filter.is_public = RT_AGENT_YES;
        filter.is_deprecated = RT_AGENT_NO;
    }
    return need(c, 0, 0, "list [--public] [--json]", err) && open_store(c, err) &&
           rt_agents_list(c->agents, &c->caller, &filter, &c->s.house.arena, &rows, &count, err) &&
           print_rows(c, rows, count, err);
}

static bool search(command *c, rt_error *err)
{
    rt_agent_row *rows;
    size_t count;
    return need(c, 1, 1, "search QUERY", err) && open_store(c, err) &&
           rt_agents_search(c->agents, &c->caller, c->o.words[0], false, 20, &c->s.house.arena,
                            &rows, &count, err) &&
           print_rows(c, rows, count, err);
}

static bool show(command *c, rt_error *err)
{
    rt_agent agent;
    return need(c, 1, 1, "show NAME [--version V]", err) && open_store(c, err) &&
           rt_agents_find(c->agents, &c->caller, c->o.words[0], c->o.version, &c->s.house.arena,
                          &agent, err) &&
           print_agent(c, &agent, NULL, err);
}

static bool list_versions(command *c, rt_error *err)
{
    rt_agent_version *rows;
    size_t count;
    char date[RT_ISO8601_SIZE];
    if (!need(c, 1, 1, "versions NAME", err) || !open_store(c, err) ||
        !rt_agents_versions(c->agents, &c->caller, c->o.words[0], &c->s.house.arena, &rows, &count,
                            err))
        return false;
    for (size_t i = 0; i < count; i++) {
        rt_iso8601_write(date, rows[i].created_ms);
        printf("%-10.*s %s  %.*s\n", RT_FMT(rows[i].version), date, RT_FMT(rows[i].changelog));
    }
    return true;
}

static bool export_tool(command *c, rt_error *err)
{
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_manifest form = RT_MANIFEST_RETORT;
    rt_json_writer w;
    rt_agent agent;
    if (!need(c, 1, 1, "export NAME [--format openai|anthropic|mcp]", err) ||
        (c->o.format.len > 0 && !rt_manifest_parse(c->o.format, &form, err)) ||
        !open_store(c, err) ||
        !rt_agents_find(c->agents, &c->caller, c->o.words[0], c->o.version, &c->s.house.arena,
                        &agent, err))
        return false;
    rt_json_begin(&w, &json);
    rt_agent_write_manifest(&agent, form, &w);
    return print_pretty(&json, err);
}

/* ---- making and changing ---- */

static bool read_text(command *c, rt_str path, rt_str *out, rt_error *err)
{
    rt_arena *arena = &c->s.house.arena;
    const char *name;
    if (!rt_str_to_path(path, arena, &name, err))
        return false;
    return strcmp(name, "-") == 0 ? rt_read_fd(STDIN_FILENO, BODY_MAX, arena, out, err)
                                  : rt_read_file(name, BODY_MAX, arena, out, err);
}

/* JSON or YAML; what is JSON is read as such, because YAML has lower limits. */
static bool read_body(command *c, rt_str path, rt_json *out, rt_error *err)
{
    rt_arena *arena = &c->s.house.arena;
    rt_str text;
    if (!read_text(c, path, &text, err))
        return false;
    bool is_json = rt_str_starts(rt_str_trim(text), RT_STR("{"));
    return (is_json ? rt_json_parse(text, arena, out, err)
                    : rt_yaml_parse(text, arena, out, err)) ||
           rt_wrap(err, "%.*s", RT_FMT(path));
}

static bool create(command *c, rt_error *err)
{
    rt_agent agent;
    rt_json body;
    return need(c, 1, 1, "create FILE", err) && read_body(c, c->o.words[0], &body, err) &&
           open_store(c, err) &&
           rt_agents_create(c->agents, &c->caller, body, &c->s.house.arena, &agent, err) &&
           print_agent(c, &agent, "is made", err);
}

static bool update(command *c, rt_error *err)
{
    rt_agent agent;
    rt_json body;
    return need(c, 2, 2, "update NAME FILE", err) && read_body(c, c->o.words[1], &body, err) &&
           open_store(c, err) &&
           rt_agents_update(c->agents, &c->caller, c->o.words[0], body, &c->s.house.arena, &agent,
                            err) &&
           print_agent(c, &agent, "is made", err);
}

static bool mark(command *c, rt_agent_mark how, rt_str note, const char *done, rt_error *err)
{
    rt_agent agent;
    return need(c, 1, 1, "publish|unpublish|deprecate|register|unregister NAME", err) &&
           open_store(c, err) &&
           rt_agents_mark(c->agents, &c->caller, c->o.words[0], how, note, &c->s.house.arena,
                          &agent, err) &&
           print_agent(c, &agent, done, err);
}

static bool publish(command *c, rt_error *err)
{
    return mark(c, RT_AGENT_PUBLISH, (rt_str){ 0 }, "is public", err);
}

static bool unpublish(command *c, rt_error *err)
{
    return mark(c, RT_AGENT_UNPUBLISH, (rt_str){ 0 }, "is private", err);
}

static bool deprecate(command *c, rt_error *err)
{
    return mark(c, RT_AGENT_DEPRECATE, c->o.message, "is deprecated", err);
}

static bool register_tool(command *c, rt_error *err)
{
    return mark(c, RT_AGENT_REGISTER, c->o.version,
                "is a tool; a server that runs already finds it within seconds", err);
}

static bool unregister_tool(command *c, rt_error *err)
{
    return mark(c, RT_AGENT_UNREGISTER, (rt_str){ 0 }, "is no tool any more", err);
}

static bool remove_agent(command *c, rt_error *err)
{
    if (!need(c, 1, 1, "delete NAME", err) || !open_store(c, err) ||
        !rt_agents_remove(c->agents, &c->caller, c->o.words[0], err))
        return false;
    printf("%.*s is gone\n", RT_FMT(c->o.words[0]));
    return true;
}

static bool deploy(command *c, rt_error *err)
{
    if (!need(c, 2, WORDS_MAX, "deploy SERVER NAME...", err) || !open_store(c, err) ||
        !rt_agents_deploy(c->agents, &c->caller, c->o.words[0], RT_STR("http"), c->o.words + 1,
                          c->o.word_count - 1, &c->s.house.arena, err))
        return false;
    rt_str name = rt_agent_tool_name(c->o.words[0], &c->s.house.arena);
    printf("at /mcp/agents/%.*s of a server, and by 'retort mcp --agents %.*s'\n", RT_FMT(name),
           RT_FMT(name));
    return true;
}

/* ---- folders ---- */

static bool with_message(command *c, rt_json body, rt_json *out, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_iter it = rt_json_each(body);
    rt_json_writer w;
    rt_str name;
    rt_json value;
    *out = body;
    if (c->o.message.len == 0)
        return true;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    while (rt_json_next(&it, &name, &value)) {
        rt_jw_key(&w, name);
        rt_jw_json(&w, value);
    }
    rt_jw_kstr(&w, "changelog", c->o.message);
    rt_jw_end(&w);
    return rt_buf_ok(&text, err) && rt_json_parse(rt_buf_str(&text), &c->s.house.arena, out, err);
}

static bool push(command *c, rt_error *err)
{
    const char *folder;
    bool is_changed;
    rt_agent agent;
    rt_json body;
    return need(c, 1, 1, "push DIR [--message TEXT]", err) &&
           rt_str_to_path(c->o.words[0], &c->s.house.arena, &folder, err) &&
           cli_agent_folder_read(folder, &c->s.house.arena, &body, err) &&
           with_message(c, body, &body, err) && open_store(c, err) &&
           rt_agents_put(c->agents, &c->caller, body, &c->s.house.arena, &agent, &is_changed,
                         err) &&
           print_agent(c, &agent, is_changed ? "is made" : "is there already", err);
}

static bool pull(command *c, rt_error *err)
{
    const char *folder;
    rt_agent agent;
    return need(c, 2, 2, "pull NAME DIR [--version V]", err) &&
           rt_str_to_path(c->o.words[1], &c->s.house.arena, &folder, err) && open_store(c, err) &&
           rt_agents_find(c->agents, &c->caller, c->o.words[0], c->o.version, &c->s.house.arena,
                          &agent, err) &&
           cli_agent_folder_write(folder, &agent, &c->s.house.arena, err) &&
           print_agent(c, &agent, rt_arena_printf(&c->s.house.arena, "is in %s", folder).ptr, err);
}

/* ---- running ---- */

static bool print_result(const command *c, const rt_agent_result *result, rt_error *err)
{
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json output = rt_json_get_c(result->answer, "result");
    if (result->warning.len > 0)
        fprintf(stderr, "retort: %.*s\n", RT_FMT(result->warning));
    if (c->o.is_json) {
        rt_json_print(result->answer, &json);
        if (!print_pretty(&json, err))
            return false;
    } else if (result->is_success) {
        bool is_text = rt_json_type(output) == RT_JSON_STRING;
        if (is_text)
            rt_buf_add(&json, rt_json_str(output));
        else
            rt_json_print(output, &json);
        return print(&json, err);
    }
    return result->is_success ||
           rt_fail(err, RT_INTERNAL, "%.*s: %.*s", RT_FMT(result->code),
                   (int)RT_MIN(result->message.len, (size_t)180), result->message.ptr);
}

static bool run(command *c, rt_error *err)
{
    rt_str input = c->o.word_count > 1 ? c->o.words[1] : (rt_str){ 0 };
    rt_agent_result result;
    rt_json doc;
    if (!need(c, 1, 2, "run NAME [JSON]", err))
        return false;
    if (rt_str_eq_c(input, "-") && !read_text(c, input, &input, err))
        return false;
    if (input.ptr && !rt_json_parse(input, &c->s.house.arena, &doc, err))
        return rt_wrap(err, "the input");
    rt_agent_run what = { .id = c->o.words[0],
                          .version = c->o.version,
                          .input = input,
                          .has_input = input.ptr != NULL,
                          .surface = RT_STR("cli") };
    return open_service(c, err) &&
           rt_agents_execute(c->agents, &c->caller, &what, &c->s.house.arena, &result, err) &&
           print_result(c, &result, err);
}

static bool check(command *c, rt_error *err)
{
    const rt_language *language = c->o.word_count > 0 ? rt_language_of_file(c->o.words[0]) : NULL;
    rt_escape_report report;
    rt_str code;
    if (!need(c, 1, 1, "check FILE", err) || !read_text(c, c->o.words[0], &code, err))
        return false;
    if (!language)
        return rt_fail(err, RT_INVALID, "which language is %.*s? Its ending does not tell",
                       RT_FMT(c->o.words[0]));
    if (!open_service(c, err) ||
        !rt_agents_check_escape(c->agents, &c->caller, rt_str_of(language->name), code,
                                (rt_str){ 0 }, &c->s.house.arena, &report, err))
        return false;
    printf("%.*s: %.*s\n%.*s\n", RT_FMT(report.severity), RT_FMT(report.description),
           RT_FMT(report.patterns));
    return !report.should_block || rt_fail(err, RT_INTERNAL, "%.*s", RT_FMT(report.recommendation));
}

static const struct {
    const char *name;
    bool (*call)(command *c, rt_error *err);
} commands[] = {
    { "list", list },
    { "search", search },
    { "show", show },
    { "create", create },
    { "update", update },
    { "run", run },
    { "versions", list_versions },
    { "publish", publish },
    { "unpublish", unpublish },
    { "deprecate", deprecate },
    { "register", register_tool },
    { "unregister", unregister_tool },
    { "deploy", deploy },
    { "export", export_tool },
    { "push", push },
    { "pull", pull },
    { "check", check },
    { "delete", remove_agent },
};

int cli_agents(int argc, char **argv)
{
    command c RT_CLEANUP(close_command) = { 0 };
    rt_error err = { 0 };
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            puts(help);
            return EXIT_GOOD;
        }
    rt_log_level_set(RT_LOG_WARN);
    if (!cli_house_read(&c.s.house, &argc, argv, &err))
        return cli_complain(&err);
    for (size_t i = 0; i < RT_COUNT(commands) && argc > 1; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return read_options(&c.o, argc, argv, &err) && commands[i].call(&c, &err)
                       ? EXIT_GOOD
                       : cli_complain(&err);
    rt_fail(&err, RT_INVALID,
            "usage: retort agents list|show|create|run|push|pull…; --help says "
            "more");
    return cli_complain(&err);
}
