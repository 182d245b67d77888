/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - retort schema validate: JSON against a JSON Schema.
 *
 * One schema and one instance from files, with errors for people or as JSON; or with --jsonl a
 * case a line from standard input, an answer a line to standard output, in the same order.
 */
#include "cli/cli.h"
#include "schema/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 256 << 20, REMOTES_MAX = 256 };

typedef struct request {
    const char *schema, *instance;
    bool is_jsonl, is_json, adds_defaults;
    rt_schema_options options;
    rt_schema_document remotes[REMOTES_MAX];
    rt_arena arena;
} request;

static const char help[] =
    "Usage: retort schema validate --schema FILE --instance FILE [OPTIONS]\n"
    "       retort schema validate --jsonl < CASES > ANSWERS\n\n"
    "  --schema FILE      the schema; its \"$schema\" tells the draft, 2020-12 if there is none\n"
    "  --instance FILE    the JSON to check; - is standard input\n"
    "  --draft DRAFT      04, 06, 07, 2019-09 or 2020-12, for schemas that do not say\n"
    "  --remote URI=FILE  a document that references may lead to; may be repeated\n"
    "  --assert-format    a string must have the \"format\" it is said to have\n"
    "  --json             the answer as {\"valid\":...,\"errors\":[...]}\n"
    "  --defaults         print the instance with the schema's defaults put in\n"
    "  --jsonl            a line each: {\"schema\":...,\"instance\":...,\"remotes\":{URI: "
    "schema},\n"
    "                     \"assert_format\":true,\"draft\":\"07\"} in, "
    "{\"valid\":...,\"errors\":[...]} out\n\n"
    "Exit status 1 if the instance is not valid, 2 if the schema is none.\n";

static bool read_draft(rt_str name, rt_schema_draft *out, rt_error *err)
{
    static const struct {
        const char *name;
        rt_schema_draft draft;
    } drafts[] = {
        { "04", RT_DRAFT_04 },           { "06", RT_DRAFT_06 },           { "07", RT_DRAFT_07 },
        { "2019-09", RT_DRAFT_2019_09 }, { "2020-12", RT_DRAFT_2020_12 },
    };
    if (rt_str_starts(name, RT_STR("draft-")))
        name = rt_str_slice(name, 6, name.len);
    for (size_t i = 0; i < RT_COUNT(drafts); i++)
        if (rt_str_eq_c(name, drafts[i].name)) {
            *out = drafts[i].draft;
            return true;
        }
    return rt_fail(err, RT_INVALID, "there is no draft '%.*s'", RT_FMT(name));
}

static bool read_json(const char *file, rt_arena *arena, rt_json *out, rt_error *err)
{
    rt_str text;
    bool ok = strcmp(file, "-") == 0 ? rt_read_fd(STDIN_FILENO, FILE_BYTES_MAX, arena, &text, err)
                                     : rt_read_file(file, FILE_BYTES_MAX, arena, &text, err);
    if (!ok)
        return false;
    return rt_json_parse(text, arena, out, err) || rt_wrap(err, "%s", file);
}

static bool add_remote(request *r, const char *text, rt_error *err)
{
    const char *equals = strrchr(text, '=');
    if (!equals)
        return rt_fail(err, RT_INVALID, "--remote needs URI=FILE");
    if (r->options.document_count == REMOTES_MAX)
        return rt_fail(err, RT_LIMIT, "more than %d documents", REMOTES_MAX);
    rt_schema_document *remote = &r->remotes[r->options.document_count++];
    remote->uri = (rt_str){ text, (size_t)(equals - text) };
    return read_json(equals + 1, &r->arena, &remote->root, err);
}

/* One option; moves *i behind its value. */
static bool read_option(request *r, int argc, char **argv, int *i, rt_error *err)
{
    static const struct {
        const char *name;
        size_t at;
    } flags[] = {
        { "--jsonl", offsetof(request, is_jsonl) },
        { "--json", offsetof(request, is_json) },
        { "--defaults", offsetof(request, adds_defaults) },
        { "--assert-format", offsetof(request, options.asserts_format) },
    };
    for (size_t f = 0; f < RT_COUNT(flags); f++)
        if (strcmp(argv[*i], flags[f].name) == 0) {
            *(bool *)((char *)r + flags[f].at) = true;
            return true;
        }
    const char *value;
    if ((value = cli_option(argc, argv, i, "--schema", err)))
        r->schema = value;
    else if (!err->code && (value = cli_option(argc, argv, i, "--instance", err)))
        r->instance = value;
    else if (!err->code && (value = cli_option(argc, argv, i, "--draft", err)))
        return read_draft(rt_str_of(value), &r->options.draft, err);
    else if (!err->code && (value = cli_option(argc, argv, i, "--remote", err)))
        return add_remote(r, value, err);
    else if (!err->code)
        return rt_fail(err, RT_INVALID, "unknown option %s; 'retort schema --help' lists them",
                       argv[*i]);
    return !err->code;
}

static bool write_out(rt_buf *text, rt_error *err)
{
    rt_buf_addc(text, '\n');
    return rt_buf_ok(text, err) && rt_write_all(STDOUT_FILENO, rt_buf_str(text), err);
}

/* -- Files ------------------------------------------------------------------------------------- */

static void say(const request *r, const rt_schema_report *report)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    if (r->is_json) {
        rt_json_writer w;
        rt_json_begin(&w, &text);
        rt_schema_report_write(report, &w);
        write_out(&text, NULL);
        return;
    }
    for (size_t i = 0; i < report->error_count; i++)
        printf("%.*s (%.*s)\n", RT_FMT(report->errors[i].message),
               RT_FMT(report->errors[i].schema_path));
}

static int check_files(request *r, rt_error *err)
{
    rt_json schema, instance;
    rt_schema *compiled RT_CLEANUP(rt_schema_freep) = NULL;
    if (!r->schema || !r->instance)
        rt_fail(err, RT_INVALID, "--schema and --instance are needed, or --jsonl");
    if (err->code || !read_json(r->schema, &r->arena, &schema, err) ||
        !read_json(r->instance, &r->arena, &instance, err))
        return cli_complain(err);
    if (!rt_schema_new(schema, &r->options, &compiled, err)) {
        rt_wrap(err, "%s", r->schema);
        return cli_complain(err);
    }
    if (r->adds_defaults) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        if (!rt_schema_add_defaults(compiled, instance, &r->arena, &instance, err))
            return cli_complain(err);
        rt_json_print_pretty(instance, &text);
        if (!write_out(&text, err))
            return cli_complain(err);
    }
    rt_schema_report report = { .arena = &r->arena };
    bool is_valid = rt_schema_check(compiled, instance, &report);
    say(r, &report);
    return is_valid ? EXIT_GOOD : EXIT_FAILED;
}

/* -- Lines ------------------------------------------------------------------------------------- */

/* A schema that is none makes nothing valid; the error says so in the form of the others. */
static void answer_broken(const rt_error *err, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kbool(w, "valid", false);
    rt_jw_karray(w, "errors");
    rt_jw_object(w);
    rt_jw_kstr(w, "instance_path", RT_STR(""));
    rt_jw_kstr(w, "keyword", RT_STR("schema"));
    rt_jw_kstr(w, "schema_path", RT_STR("#"));
    rt_jw_kstr(w, "message", rt_str_of(err->text));
    rt_jw_end(w);
    rt_jw_end(w);
    rt_jw_kstr(w, "error", rt_str_of(rt_code_name(err->code)));
    rt_jw_end(w);
}

static bool compile_line(const request *r, rt_json line, rt_arena *arena, rt_schema **out,
                         rt_error *err)
{
    rt_schema_options options = r->options;
    rt_json remotes = rt_json_get_c(line, "remotes");
    rt_json draft = rt_json_get_c(line, "draft");
    options.asserts_format =
        rt_json_bool(rt_json_get_c(line, "assert_format"), options.asserts_format);
    if (!rt_json_is_absent(draft) && !read_draft(rt_json_str(draft), &options.draft, err))
        return false;
    if (rt_json_type(remotes) == RT_JSON_OBJECT) {
        rt_schema_document *list =
            rt_arena_alloc(arena, (rt_json_count(remotes) + 1) * sizeof(*list));
        rt_json_iter it = rt_json_each(remotes);
        size_t count = 0;
        while (rt_json_next(&it, &list[count].uri, &list[count].root))
            count++;
        options.documents = list;
        options.document_count = count;
    }
    return rt_schema_new(rt_json_get_c(line, "schema"), &options, out, err);
}

static void answer_line(const request *r, rt_str text, rt_json_writer *w)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_schema *schema RT_CLEANUP(rt_schema_freep) = NULL;
    rt_error err = { 0 };
    rt_json line;
    if (!rt_json_parse(text, &arena, &line, &err) ||
        !compile_line(r, line, &arena, &schema, &err)) {
        answer_broken(&err, w);
        return;
    }
    rt_schema_report report = { .arena = &arena };
    rt_schema_check(schema, rt_json_get_c(line, "instance"), &report);
    rt_schema_report_write(&report, w);
}

static int check_lines(const request *r, rt_error *err)
{
    char *line RT_CLEANUP(rt_freep) = NULL;
    size_t cap = 0;
    ssize_t len;
    rt_buf answer RT_CLEANUP(rt_buf_done) = { 0 };
    while ((len = getline(&line, &cap, stdin)) >= 0) {
        rt_str text = rt_str_trim((rt_str){ line, (size_t)len });
        if (text.len == 0)
            continue;
        if (text.len > FILE_BYTES_MAX) {
            rt_fail(err, RT_LIMIT, "a line is longer than %d bytes", FILE_BYTES_MAX);
            return cli_complain(err);
        }
        rt_json_writer w;
        rt_buf_reset(&answer);
        rt_json_begin(&w, &answer);
        answer_line(r, text, &w);
        if (!write_out(&answer, err))
            return cli_complain(err);
    }
    return EXIT_GOOD;
}

int cli_schema(int argc, char **argv)
{
    rt_error err = { 0 };
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[argc - 1], "--help") == 0)) {
        fputs(help, stdout);
        return EXIT_GOOD;
    }
    if (argc < 2 || strcmp(argv[1], "validate") != 0) {
        fputs(help, stderr);
        return EXIT_USAGE;
    }
    request *r RT_CLEANUP(rt_freep) = calloc(1, sizeof(*r));
    if (!r)
        rt_out_of_memory(sizeof(*r));
    r->options.documents = r->remotes;
    for (int i = 2; i < argc; i++)
        if (!read_option(r, argc, argv, &i, &err)) {
            rt_arena_done(&r->arena);
            return cli_complain(&err);
        }
    int status = r->is_jsonl ? check_lines(r, &err) : check_files(r, &err);
    rt_arena_done(&r->arena);
    return status;
}
