/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.c - `retort tools seed|list|search|show|call|stubs|prompt|import`.
 */
#include "cli/house.h"
#include "tools/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GATHER_MS = 15000, LIMIT_DEFAULT = 10, LIMIT_MAX = 1000, LINE_MAX_BYTES = 1 << 20 };

static const char help[] =
    "Usage: retort tools search QUERY [--limit N] [--json]   the tools a sentence may mean\n"
    "       retort tools search --jsonl [--limit N]          {\"query\":…} by line on stdin\n"
    "       retort tools list [--category NAME] [--json]     categories, or one's tools\n"
    "       retort tools show NAME                           all about a tool, with its schemas\n"
    "       retort tools call NAME [JSON]                    call it with these arguments\n"
    "       retort tools import FILE                         a JSON array of tools, to be found\n"
    "       retort tools stubs NAME [--language python]      declarations for code that calls it\n"
    "       retort tools prompt [NAME] [--category NAME]     what to tell an agent about its "
    "tools\n"
    "       retort tools seed                                the sample tools\n\n"
    "--jsonl answers each line with {\"query\":…,\"names\":[…]}, best first. Settings "
    "(--data-dir,\n"
    "--database-url) as for 'retort serve'.";

typedef struct options {
    rt_str words[2]; /* what is no option */
    size_t word_count;
    rt_str category, language;
    uint64_t limit;
    bool is_json, is_jsonl;
} options;

static bool read_option(options *o, int argc, char **argv, int *i, rt_error *err)
{
    const char *value;
    if (strcmp(argv[*i], "--json") == 0)
        return o->is_json = true;
    if (strcmp(argv[*i], "--jsonl") == 0)
        return o->is_jsonl = true;
    if ((value = cli_option(argc, argv, i, "--category", err))) {
        o->category = rt_str_of(value);
        return true;
    }
    if ((value = cli_option(argc, argv, i, "--language", err))) {
        o->language = rt_str_of(value);
        return true;
    }
    if ((value = cli_option(argc, argv, i, "--limit", err))) {
        bool is_number = rt_str_to_u64(rt_str_of(value), &o->limit);
        return (is_number && o->limit > 0 && o->limit <= LIMIT_MAX) ||
               rt_fail(err, RT_INVALID, "--limit: a number from 1 to %d", LIMIT_MAX);
    }
    return err->code ? false
                     : rt_fail(err, RT_INVALID,
                               "unknown option %.60s; 'retort tools --help' lists them", argv[*i]);
}

static bool read_options(options *o, int argc, char **argv, rt_error *err)
{
    o->limit = LIMIT_DEFAULT;
    for (int i = 2; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1] == '-') {
            if (!read_option(o, argc, argv, &i, err))
                return false;
        } else if (o->word_count == RT_COUNT(o->words)) {
            return rt_fail(err, RT_INVALID, "'%.60s' is one too many; quote a sentence", argv[i]);
        } else {
            o->words[o->word_count++] = rt_str_of(argv[i]);
        }
    }
    return true;
}

static bool need(const options *o, size_t least, size_t most, const char *what, rt_error *err)
{
    return (o->word_count >= least && o->word_count <= most) ||
           rt_fail(err, RT_INVALID, "usage: retort tools %s", what);
}

static bool print_json(rt_buf *text, rt_error *err)
{
    rt_buf_addc(text, '\n');
    return rt_buf_ok(text, err) && rt_write_all(STDOUT_FILENO, rt_buf_str(text), err);
}

/* ---- running a toolbox tool ---- */

bool cli_toolbox_run(void *ctx, const rt_toolbox_run *run, rt_arena *arena, rt_tool_result *out,
                     rt_error *err)
{
    rt_runtime *local = ctx;
    rt_policy policy = *rt_policy_preset(RT_STR("default"));
    rt_outcome outcome;
    rt_canceller canceller = { .wake = run->call->cancel_fd };
    policy.memory_bytes = (uint64_t)run->tool->max_memory_mb << 20;
    policy.wall_ms = (uint64_t)run->tool->max_timeout_sec * 1000;
    rt_run what = { .language = run->tool->language,
                    .code = run->tool->code,
                    .policy = &policy,
                    .input = run->call->arguments,
                    .has_input = true,
                    .canceller = run->call->cancel_fd >= 0 ? &canceller : NULL };
    if (!local->execute(local, &what, arena, &outcome, err))
        return false;
    *out = (rt_tool_result){ .value = outcome.has_value ? outcome.value : RT_STR("null"),
                             .content = RT_STR("[]"),
                             .is_error = outcome.status != RT_STATUS_SUCCESS,
                             .elapsed_us = outcome.wall_us };
    if (out->is_error) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        rt_json_writer w;
        rt_json_begin(&w, &text);
        rt_outcome_write(&outcome, &w);
        out->value = rt_arena_str(arena, rt_buf_str(&text));
    }
    return true;
}

static bool open_runtime(rt_runtime **out, rt_error *err)
{
    rt_local_config config = { .max_cells = 2 };
    cli_local_config(&config);
    return rt_local_open(&config, out, err);
}

/* The registry for a command that looks around: every server has listed its tools, or had time to.
 */
static bool open_tools(cli_house *h, rt_runtime *local, rt_tools **out, rt_error *err)
{
    if (!cli_tools_open(h, local, out, err))
        return false;
    if (!rt_tools_gather(*out, rt_now_ns() + GATHER_MS * 1000000ull))
        rt_log(RT_LOG_WARN, "some servers take long to list their tools; they are left out");
    return true;
}

static bool open_store(cli_house *h, rt_error *err)
{
    return cli_house_open_store(h, err) && rt_store_migrate(h->store, NULL, NULL, err);
}

/* ---- search ---- */

static void write_hit(const rt_tool_hit *hit, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "name", hit->tool.name);
    rt_jw_kstr(w, "description", hit->tool.description);
    rt_jw_kstr(w, "category", hit->tool.category);
    rt_jw_kdouble(w, "score", hit->score);
    rt_jw_kdouble(w, "lexical", hit->lexical);
    rt_jw_kdouble(w, "semantic", hit->semantic);
    rt_jw_kdouble(w, "usage", hit->usage);
    rt_jw_end(w);
}

static bool search_once(cli_house *h, const options *o, rt_tools *tools, rt_error *err)
{
    rt_tool_hit *hits = rt_arena_alloc(&h->arena, o->limit * sizeof(*hits));
    size_t count = rt_tools_search(tools, o->words[0], &h->arena, hits, o->limit);
    if (o->is_json) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        rt_json_writer w;
        rt_json_begin(&w, &text);
        rt_jw_array(&w);
        for (size_t i = 0; i < count; i++)
            write_hit(&hits[i], &w);
        rt_jw_end(&w);
        return print_json(&text, err);
    }
    for (size_t i = 0; i < count; i++)
        printf("%.2f  %-40.*s  %.*s\n", hits[i].score, RT_FMT(hits[i].tool.name),
               (int)RT_MIN(hits[i].tool.description.len, 100u), hits[i].tool.description.ptr);
    if (count == 0)
        puts("Nothing found. 'retort tools list' shows what there is.");
    return true;
}

static bool answer_line(const options *o, rt_tools *tools, rt_str line, rt_buf *text, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    int64_t limit = (int64_t)o->limit;
    rt_json question;
    rt_json_writer w;
    if (!rt_json_parse(line, &arena, &question, err))
        return false;
    rt_json query = rt_json_get_c(question, "query"), wish = rt_json_get_c(question, "limit");
    if (rt_json_type(query) != RT_JSON_STRING)
        return rt_fail(err, RT_INVALID, "there is no text \"query\"");
    if (!rt_json_is_absent(wish) && (!rt_json_i64(wish, &limit) || limit < 1 || limit > LIMIT_MAX))
        return rt_fail(err, RT_INVALID, "\"limit\" is a number from 1 to %d", LIMIT_MAX);
    rt_tool_hit *hits = rt_arena_alloc(&arena, (size_t)limit * sizeof(*hits));
    size_t count = rt_tools_search(tools, rt_json_str(query), &arena, hits, (size_t)limit);
    rt_json_begin(&w, text);
    rt_jw_object(&w);
    rt_jw_kjson(&w, "query", query);
    rt_jw_karray(&w, "names");
    for (size_t i = 0; i < count; i++)
        rt_jw_str(&w, hits[i].tool.name);
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

/* Each line is answered before the next is read, so that a program may ask one by one. */
static bool search_lines(const options *o, rt_tools *tools, rt_error *err)
{
    char *line RT_CLEANUP(rt_freep) = NULL;
    size_t cap = 0, number = 0;
    ssize_t len;
    while ((len = getline(&line, &cap, stdin)) > 0) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        rt_str given = rt_str_trim((rt_str){ line, (size_t)len });
        number++;
        if (given.len == 0)
            continue;
        if ((size_t)len > LINE_MAX_BYTES)
            return rt_fail(err, RT_LIMIT, "line %zu is longer than %d bytes", number,
                           LINE_MAX_BYTES);
        if (!answer_line(o, tools, given, &text, err))
            return rt_wrap(err, "line %zu", number);
        if (!print_json(&text, err))
            return false;
    }
    return true;
}

static bool search(cli_house *h, const options *o, rt_error *err)
{
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    if (!need(o, o->is_jsonl ? 0 : 1, o->is_jsonl ? 0 : 1, "search QUERY, or search --jsonl",
              err) ||
        !open_store(h, err) || !open_tools(h, NULL, &tools, err))
        return false;
    return o->is_jsonl ? search_lines(o, tools, err) : search_once(h, o, tools, err);
}

/* ---- the others ---- */

static bool list(cli_house *h, const options *o, rt_error *err)
{
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    if (!need(o, 0, 0, "list [--category NAME] [--json]", err) || !open_store(h, err) ||
        !open_tools(h, NULL, &tools, err))
        return false;
    if (!o->is_json) {
        rt_str text = rt_tools_browse(tools, o->category, &h->arena);
        if (text.len > 0)
            return rt_write_all(STDOUT_FILENO, text, err);
        puts(o->category.len ? "There is no tool in this category."
                             : "There are no tools. 'retort tools seed' brings eleven samples.");
        return true;
    }
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_tool *all;
    size_t count = rt_tools_list(tools, o->category, &h->arena, &all);
    rt_json_begin(&w, &text);
    rt_jw_array(&w);
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "name", all[i].name);
        rt_jw_kstr(&w, "description", all[i].description);
        rt_jw_kstr(&w, "category", all[i].category);
        rt_jw_kstr(&w, "version", all[i].version);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    return print_json(&text, err);
}

static void write_schema(rt_json_writer *w, const char *key, rt_str schema)
{
    if (schema.len > 0)
        rt_jw_kraw(w, key, schema);
}

static bool show(cli_house *h, const options *o, rt_error *err)
{
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 }, pretty RT_CLEANUP(rt_buf_done) = { 0 };
    rt_tool_usage usage;
    rt_json_writer w;
    rt_json doc;
    rt_tool tool;
    if (!need(o, 1, 1, "show NAME", err) || !open_store(h, err) ||
        !open_tools(h, NULL, &tools, err) ||
        !rt_tools_find(tools, o->words[0], &h->arena, &tool, err) ||
        !rt_tools_usage(tools, tool.name, &usage, err))
        return false;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "name", tool.name);
    rt_jw_kstr(&w, "title", tool.title);
    rt_jw_kstr(&w, "description", tool.description);
    rt_jw_kstr(&w, "category", tool.category);
    rt_jw_kstr(&w, "version", tool.version);
    rt_jw_ku64(&w, "uses", usage.uses);
    rt_jw_ku64(&w, "failures", usage.failures);
    rt_jw_kdouble(&w, "average_ms", usage.average_ms);
    write_schema(&w, "input_schema", tool.input_schema);
    write_schema(&w, "output_schema", tool.output_schema);
    rt_jw_end(&w);
    if (!rt_json_parse(rt_buf_str(&text), &h->arena, &doc, err))
        return false;
    rt_json_print_pretty(doc, &pretty);
    return print_json(&pretty, err);
}

static bool stubs(cli_house *h, const options *o, rt_error *err)
{
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    rt_stub_language language = RT_STUB_TYPESCRIPT;
    rt_tool tool;
    if (!need(o, 1, 1, "stubs NAME [--language typescript|python]", err) ||
        (o->language.len && !rt_stub_language_parse(o->language, &language, err)) ||
        !open_store(h, err) || !open_tools(h, NULL, &tools, err) ||
        !rt_tools_find(tools, o->words[0], &h->arena, &tool, err))
        return false;
    return rt_write_all(STDOUT_FILENO, rt_tool_stub(&tool, language, &h->arena), err);
}

static bool prompt(cli_house *h, const options *o, rt_error *err)
{
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    rt_str text;
    if (!need(o, 0, 1, "prompt [NAME] [--category NAME]", err) || !open_store(h, err) ||
        !open_tools(h, NULL, &tools, err))
        return false;
    if (o->word_count > 0) {
        if (!rt_prompt_tool(tools, h->store, RT_STR(""), o->words[0], &h->arena, &text, err))
            return false;
    } else {
        text = o->category.len ? rt_prompt_tools(tools, RT_STR(""), o->category, &h->arena)
                               : rt_prompt_system(tools, &h->arena);
    }
    return rt_write_all(STDOUT_FILENO, text, err);
}

static bool call(cli_house *h, const options *o, rt_error *err)
{
    rt_runtime *local RT_CLEANUP(rt_runtime_closep) = NULL;
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    rt_tool_call what = { .tool = o->words[0],
                          .arguments = o->word_count > 1 ? o->words[1] : RT_STR("{}"),
                          .cancel_fd = -1 };
    rt_tool_result result;
    if (!need(o, 1, 2, "call NAME [JSON]", err) || !open_runtime(&local, err) ||
        !open_store(h, err) || !open_tools(h, local, &tools, err) ||
        !rt_tools_call(tools, &what, &h->arena, &result, err))
        return false;
    printf("%.*s\n", RT_FMT(result.value));
    return !result.is_error || rt_fail(err, RT_INTERNAL, "the tool failed");
}

static bool import(cli_house *h, const options *o, rt_error *err)
{
    rt_str text;
    size_t count;
    const char *path;
    if (!need(o, 1, 1, "import FILE", err) || !rt_str_to_path(o->words[0], &h->arena, &path, err))
        return false;
    bool is_read = strcmp(path, "-") == 0
                       ? rt_read_fd(STDIN_FILENO, RT_TOOLS_IMPORT_BYTES, &h->arena, &text, err)
                       : rt_read_file(path, RT_TOOLS_IMPORT_BYTES, &h->arena, &text, err);
    if (!is_read || !open_store(h, err))
        return false;
    if (!rt_tools_import(h->store, text, &count, err))
        return rt_wrap(err, "%s", path);
    printf("%zu tools imported\n", count);
    return true;
}

static bool seed(cli_house *h, const options *o, rt_error *err)
{
    rt_toolbox_tool *tools;
    size_t added, count;
    if (!need(o, 0, 0, "seed", err) || !open_store(h, err) ||
        !rt_toolbox_seed(h->store, &added, err) ||
        !rt_toolbox_list(h->store, RT_STR(""), RT_STR(""), &h->arena, &tools, &count, err))
        return false;
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && rt_str_eq(tools[next].category, tools[i].category);)
            next++;
        printf("%-12.*s %zu:", RT_FMT(tools[i].category), next - i);
        for (size_t k = i; k < next; k++)
            printf("%s %.*s", k > i ? "," : "", RT_FMT(tools[k].name));
        putchar('\n');
    }
    printf("%zu tools, %zu of them new\n", count, added);
    return true;
}

static const struct {
    const char *name;
    bool (*call)(cli_house *h, const options *o, rt_error *err);
} commands[] = {
    { "search", search }, { "list", list }, { "show", show },   { "call", call },
    { "import", import }, { "seed", seed }, { "stubs", stubs }, { "prompt", prompt },
};

int cli_tools(int argc, char **argv)
{
    cli_house house RT_CLEANUP(cli_house_close) = { 0 };
    options o = { 0 };
    rt_error err = { 0 };
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            puts(help);
            return EXIT_GOOD;
        }
    if (!cli_house_read(&house, &argc, argv, &err))
        return cli_complain(&err);
    for (size_t i = 0; i < RT_COUNT(commands) && argc > 1; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return read_options(&o, argc, argv, &err) && commands[i].call(&house, &o, &err)
                       ? EXIT_GOOD
                       : cli_complain(&err);
    rt_fail(&err, RT_INVALID,
            "usage: retort tools seed|list|search|show|call|stubs|prompt|import; --help says more");
    return cli_complain(&err);
}
