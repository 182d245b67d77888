/*
 * info.c - the commands that only tell: languages, policies, doctor; and validate, which only
 * looks.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LAYERS_MAX 32

static bool has_flag(int argc, char **argv, const char *flag)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], flag) == 0)
            return true;
    return false;
}

/* For commands whose only options are flags; false after saying which one is unknown. */
static bool are_flags_known(int argc, char **argv, const char *known)
{
    for (int i = 1; i < argc; i++) {
        char padded[64];
        snprintf(padded, sizeof(padded), " %.60s ", argv[i]);
        if (strstr(known, padded))
            continue;
        fprintf(stderr, "retort: unknown option %.60s; 'retort %s --help' lists them\n", argv[i],
                argv[0]);
        return false;
    }
    return true;
}

static bool open_local(rt_runtime **out, rt_error *err)
{
    rt_local_config config = { .max_cells = 2 };
    cli_local_config(&config);
    return rt_local_open(&config, out, err) && rt_sandbox_drop_privileges(err);
}

static void print_json(rt_buf *text)
{
    rt_buf_addc(text, '\n');
    rt_write_all(STDOUT_FILENO, rt_buf_str(text), NULL);
}

/* ---- languages ---- */

static void write_languages(const rt_language *list, size_t count)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_array(&w);
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "name", rt_str_of(list[i].name));
        rt_jw_kstr(&w, "about", list[i].about);
        rt_jw_kbool(&w, "available", list[i].is_available);
        rt_jw_kstr(&w, "version", list[i].version);
        if (!list[i].is_available)
            rt_jw_kstr(&w, "detail", list[i].detail);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    print_json(&text);
}

int cli_languages(int argc, char **argv)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_language list[RT_LANGUAGES_MAX];
    rt_runtime *local RT_CLEANUP(rt_runtime_closep) = NULL;
    if (has_flag(argc, argv, "--help")) {
        puts(
            "Usage: retort languages [--json]\n\nStarts each runtime once and prints its version.");
        return EXIT_GOOD;
    }
    if (!are_flags_known(argc, argv, " --json "))
        return EXIT_USAGE;
    if (!open_local(&local, &err))
        return cli_complain(&err);
    size_t count = local->languages(local, &arena, list, RT_LANGUAGES_MAX);
    if (has_flag(argc, argv, "--json")) {
        write_languages(list, count);
        return EXIT_GOOD;
    }
    for (size_t i = 0; i < count; i++)
        printf("%-12s %-10.*s%s %.*s\n", list[i].name, RT_FMT(list[i].version),
               list[i].is_available ? " ready" : "missing", RT_FMT(list[i].detail));
    return EXIT_GOOD;
}

/* ---- policies ---- */

int cli_policies(int argc, char **argv)
{
    bool is_json = has_flag(argc, argv, "--json");
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    const char *name;
    if (has_flag(argc, argv, "--help")) {
        puts("Usage: retort policies [--json]\n\nLists the presets that --policy takes.");
        return EXIT_GOOD;
    }
    if (!are_flags_known(argc, argv, " --json "))
        return EXIT_USAGE;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    for (size_t i = 0; (name = rt_policy_preset_name(i)); i++) {
        if (!is_json)
            printf("%-12s %s\n", name, rt_policy_preset_about(i));
        rt_jw_key(&w, rt_str_of(name));
        rt_policy_write(rt_policy_preset(rt_str_of(name)), &w);
    }
    rt_jw_end(&w);
    if (is_json)
        print_json(&text);
    return EXIT_GOOD;
}

/* ---- validate ---- */

int cli_validate(int argc, char **argv)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_runtime *local RT_CLEANUP(rt_runtime_closep) = NULL;
    const char *file = NULL, *language = NULL, *value;
    rt_str code;
    rt_verdict verdict;
    for (int i = 1; i < argc && !err.code; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            puts("Usage: retort validate FILE [-l LANGUAGE]\n\n"
                 "Parses the code and prints a JSON array of risks; exit status 1 if there are "
                 "any.");
            return EXIT_GOOD;
        }
        if ((value = cli_option(argc, argv, &i, "-l", &err)) ||
            (!err.code && (value = cli_option(argc, argv, &i, "--language", &err))))
            language = value;
        else if (!err.code)
            file = argv[i];
    }
    if (!err.code && !file)
        rt_fail(&err, RT_INVALID, "give a file to look at; 'retort validate --help' says more");
    if (err.code || !rt_read_file(file, 16u << 20, &arena, &code, &err))
        return cli_complain(&err);
    const rt_language *known =
        language ? rt_language_find(rt_str_of(language)) : rt_language_of_file(rt_str_of(file));
    if (!known) {
        rt_language_unknown(rt_str_of(language), &err);
        return cli_complain(&err);
    }
    if (!open_local(&local, &err) ||
        !local->validate(local, code, rt_str_of(known->name), &arena, &verdict, &err))
        return cli_complain(&err);
    if (!verdict.is_implemented) {
        rt_fail(&err, RT_UNSUPPORTED, "there is no checker for %s", known->name);
        return cli_complain(&err);
    }
    printf("%.*s\n", RT_FMT(verdict.risks));
    return verdict.is_safe ? EXIT_GOOD : EXIT_FAILED;
}

/* ---- doctor ---- */

static void show_layer(const rt_layer *layer)
{
    static const char *const marks[] = { "ok     ", "partly ", "MISSING" };
    printf("%s  %-18s %s\n", marks[layer->state], layer->name, layer->detail);
    if (layer->fix[0])
        printf("         %-18s -> %s\n", "", layer->fix);
}

static void show_program(const char *name, rt_str path, const char *fix)
{
    printf("%s  %-18s %.*s\n", path.len ? "ok     " : "MISSING", name, RT_FMT(path));
    if (path.len == 0)
        printf("         %-18s -> %s\n", "", fix);
}

int cli_doctor(int argc, char **argv)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_layer layers[LAYERS_MAX];
    rt_error err = { 0 };
    rt_local_config config = { 0 };
    rt_str guests, python, node;
    bool is_missing = false;
    if (has_flag(argc, argv, "--help")) {
        puts("Usage: retort doctor\n\nSays layer by layer what this host can do. Exit status 3 if "
             "cells "
             "cannot run here.");
        return EXIT_GOOD;
    }
    if (!are_flags_known(argc, argv, " "))
        return EXIT_USAGE;
    size_t count = rt_sandbox_examine(layers, LAYERS_MAX);
    for (size_t i = 0; i < count; i++) {
        show_layer(&layers[i]);
        is_missing |= layers[i].state == RT_LAYER_MISSING;
    }
    cli_local_config(&config);
    rt_local_find(&config, &arena, &guests, &python, &node);
    show_program("guests", guests, "run 'make'");
    show_program("python", python, "apt-get install python3, or set RETORT_PYTHON");
    show_program("node", node, "run 'make setup', or set RETORT_NODE");
    rt_runtime *local RT_CLEANUP(rt_runtime_closep) = NULL;
    rt_run run = { .language = RT_STR("bash"),
                   .code = RT_STR("RESULT=42"),
                   .policy = rt_policy_preset(RT_STR("quick")) };
    rt_outcome outcome;
    bool ok = open_local(&local, &err) && local->execute(local, &run, &arena, &outcome, &err);
    if (ok && rt_str_eq_c(outcome.value, "42"))
        puts("ok       a sealed run      answered");
    else
        printf("MISSING  a sealed run      %s\n", ok ? "gave a wrong answer" : err.text);
    return ok && !is_missing ? EXIT_GOOD : EXIT_HOST;
}
