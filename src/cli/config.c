/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - `retort config`: the settings in force, and every other way to show the table.
 */
#include "cli/cli.h"
#include "cli/settings_internal.h"

#include <string.h>

/* ---- values with their sources ---- */

static rt_str shown(const rt_settings *settings, const cli_setting *setting, rt_buf *text)
{
    rt_buf_reset(text);
    cli_setting_show(settings, setting, text);
    return rt_buf_str(text);
}

static void print_table(const rt_settings *settings, FILE *to)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    const cli_setting *setting;
    if (settings->file.len > 0)
        fprintf(to, "# read from %.*s\n", RT_FMT(settings->file));
    else
        fputs("# there is no retort.yaml; 'retort config --example' prints one\n", to);
    for (size_t i = 0; (setting = cli_setting_at(i)); i++) {
        rt_str value = shown(settings, setting, &text);
        fprintf(to, "%-39s %-38.*s %.*s%s\n", setting->key, RT_FMT(value.len ? value : RT_STR("-")),
                RT_FMT(settings->origins[i].source),
                setting->is_reserved ? " (no effect in this version)" : "");
    }
}

static void write_list(rt_json_writer *w, rt_str text)
{
    rt_str rest = text, word;
    rt_jw_array(w);
    while (text.len > 0 && rt_str_cut(&rest, ',', &word))
        rt_jw_str(w, word);
    rt_jw_end(w);
}

static void write_value(rt_json_writer *w, const cli_setting *setting, rt_str text)
{
    rt_jw_key(w, RT_STR("value"));
    switch (setting->kind) {
    case CLI_COUNT:
    case CLI_NUMBER:
    case CLI_SWITCH:
        rt_jw_raw(w, text);
        break;
    case CLI_LIST:
        write_list(w, text);
        break;
    default:
        rt_jw_str(w, text);
    }
}

static void write_json(const rt_settings *settings, rt_buf *out)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    const cli_setting *setting;
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    if (settings->file.len > 0)
        rt_jw_kstr(&w, "file", settings->file);
    else
        rt_jw_knull(&w, "file");
    rt_jw_kobject(&w, "settings");
    for (size_t i = 0; (setting = cli_setting_at(i)); i++) {
        rt_jw_kobject(&w, setting->key);
        write_value(&w, setting, shown(settings, setting, &text));
        rt_jw_kstr(&w, "source", settings->origins[i].source);
        rt_jw_kbool(&w, "has_effect", !setting->is_reserved);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_karray(&w, "warnings");
    for (size_t i = 0; i < settings->warnings.count; i++)
        rt_jw_str(&w, settings->warnings.items[i]);
    rt_jw_end(&w);
    rt_jw_end(&w);
}

void cli_settings_print(const rt_settings *settings, bool is_json, FILE *to)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    if (!is_json) {
        print_table(settings, to);
        return;
    }
    write_json(settings, &out);
    fprintf(to, "%.*s\n", RT_FMT(rt_buf_str(&out)));
}

/* ---- the table without values ---- */

void cli_settings_help(FILE *to)
{
    const cli_setting *setting;
    fputs("      --config FILE             read this instead of ./retort.yaml, retort.yaml in the "
          "data\n                                directory, or /etc/retort/retort.yaml\n",
          to);
    for (size_t i = 0; (setting = cli_setting_at(i)); i++) {
        const char *other = setting->flag ? setting->flag : setting->off_flag;
        fprintf(to, "      --%s%s%s\n                                %s", setting->key,
                other ? ", " : "", other ? other : "", setting->about);
        if (!setting->fallback || setting->fallback[0])
            fprintf(to, " (%s)", setting->fallback ? setting->fallback : setting->computed);
        fputs(setting->is_reserved ? "; no effect in this version\n" : "\n", to);
    }
}

static rt_str section_of(const cli_setting *setting)
{
    rt_str rest = rt_str_of(setting->key), section;
    return rt_str_cut(&rest, '.', &section) && rest.ptr ? section : RT_STR("");
}

static const char *yaml_default(const cli_setting *setting)
{
    if (!setting->fallback)
        return "";
    if (strcmp(setting->fallback, "*") == 0)
        return "[\"*\"]"; /* which means something else to YAML */
    return setting->fallback[0] ? setting->fallback : setting->kind == CLI_LIST ? "[]" : "\"\"";
}

/* Taking the '#' away in front of a key, and nothing else, sets it. */
static void print_example(const cli_setting *setting, rt_str section, FILE *to)
{
    const char *indent = section.len ? "  " : "";
    const char *value = yaml_default(setting);
    fprintf(to, "%s# %s%s\n", indent, setting->about,
            setting->is_reserved ? "; no effect in this version" : "");
    if (setting->computed)
        fprintf(to, "%s# default: %s\n", indent, setting->computed);
    fprintf(to, "%s#%s:%s%s\n", indent, setting->key + section.len + (section.len > 0),
            value[0] ? " " : "", value);
}

void cli_settings_example(FILE *to)
{
    const cli_setting *setting;
    rt_str last = { 0 };
    fputs("# retort.yaml - every setting with its default. Take away the # before those you "
          "change.\n"
          "# Variables (RETORT_SERVER_PORT) and flags (--server.port) win over this file.\n",
          to);
    for (size_t i = 0; (setting = cli_setting_at(i)); i++) {
        rt_str section = section_of(setting);
        if (i == 0 || !rt_str_eq(section, last))
            fputc('\n', to);
        if (section.len && !rt_str_eq(section, last))
            fprintf(to, "%.*s:\n", RT_FMT(section));
        print_example(setting, section, to);
        last = section;
    }
}

static void print_names(const cli_setting *setting, FILE *to)
{
    char own[CLI_KEY_MAX];
    cli_setting_variable(setting, own);
    fprintf(to, "`%s`", own);
    for (size_t n = 0; n < CLI_NAMES_MAX && setting->names[n].name; n++) {
        cli_convert how = setting->names[n].convert;
        fprintf(to, ", `%s`%s", setting->names[n].name,
                how == CLI_INVERTED       ? " (the opposite)"
                : how == CLI_IN_MEGABYTES ? " (MB)"
                                          : "");
    }
}

static void print_default(const cli_setting *setting, FILE *to)
{
    if (!setting->fallback)
        fputs(setting->computed, to);
    else if (setting->fallback[0])
        fprintf(to, "`%s`", setting->fallback);
}

void cli_settings_markdown(FILE *to)
{
    const cli_setting *setting;
    fputs("| key | default | meaning | variables | flag beside `--key` |\n"
          "|---|---|---|---|---|\n",
          to);
    for (size_t i = 0; (setting = cli_setting_at(i)); i++) {
        const char *flag = setting->flag ? setting->flag : setting->off_flag;
        fprintf(to, "| `%s` | ", setting->key);
        print_default(setting, to);
        fprintf(to, " | %s%s", setting->about,
                setting->is_reserved ? " *(no effect in this version)*" : "");
        if (setting->kind == CLI_CHOICE)
            fprintf(to, " (one of: %s)", setting->choices);
        fputs(" | ", to);
        print_names(setting, to);
        if (flag)
            fprintf(to, " | `%s` |\n", flag);
        else
            fputs(" | |\n", to);
    }
}

/* ---- the command ---- */

static void print_help(FILE *to)
{
    fputs("Usage: retort config [--json] [SETTINGS]\n"
          "       retort config --example | --markdown\n\n"
          "Prints the settings in force and where each came from: default, retort.yaml, .env,\n"
          "environment or flag, of which the last wins. Exit status 2 if they are not valid.\n\n"
          "      --json                    print one JSON object instead of text\n"
          "      --example                 print a retort.yaml with every setting as a comment\n"
          "      --markdown                print the table of docs/configuration.md\n\n"
          "Settings, each also a key of retort.yaml and a variable (--server.port is\n"
          "RETORT_SERVER_PORT):\n",
          to);
    cli_settings_help(to);
}

static const struct {
    const char *word;
    void (*print)(FILE *to);
} answers[] = {
    { "--help", print_help },
    { "--example", cli_settings_example },
    { "--markdown", cli_settings_markdown },
};

/* For what needs no settings, so that it is there when they are wrong. */
static bool answer(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        for (size_t n = 0; n < RT_COUNT(answers); n++)
            if (strcmp(argv[i], answers[n].word) == 0) {
                answers[n].print(stdout);
                return true;
            }
    return false;
}

static bool read_rest(int argc, char **argv, bool *is_json, rt_error *err)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            *is_json = true;
        else if (argv[i][0] == '-')
            return cli_settings_unknown_flag(argv[i], err);
        else
            return rt_fail(err, RT_INVALID, "'%.60s' is not expected; 'retort config --help'",
                           argv[i]);
    }
    return true;
}

int cli_config(int argc, char **argv)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_settings settings;
    rt_error err = { 0 };
    bool is_json = false;
    if (answer(argc, argv))
        return EXIT_GOOD;
    if (!cli_settings_load(&argc, argv, &arena, &settings, &err) ||
        !read_rest(argc, argv, &is_json, &err)) {
        cli_complain(&err);
        return EXIT_USAGE;
    }
    cli_settings_print(&settings, is_json, stdout);
    fflush(stdout);
    for (size_t i = 0; !is_json && i < settings.warnings.count; i++)
        fprintf(stderr, "retort: warning: %.*s\n", RT_FMT(settings.warnings.items[i]));
    return EXIT_GOOD;
}
