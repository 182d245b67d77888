/*
 * main.c - finds the command and calls it.
 */
#include "cli/cli.h"
#include "privacy/privacy.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int (*call)(int argc, char **argv);
    const char *about;
} commands[] = {
    { "serve", cli_serve, "serve the HTTP API" },
    { "mcp", cli_mcp, "serve one MCP client over stdin and stdout" },
    { "run", cli_run, "run code in a sealed cell" },
    { "validate", cli_validate, "look for risks in code without running it" },
    { "schema", cli_schema, "check JSON against a JSON Schema" },
    { "languages", cli_languages, "which languages run here, and in which version" },
    { "policies", cli_policies, "the policy presets" },
    { "privacy", cli_privacy, "find or mask personal data in text" },
    { "config", cli_config, "the settings in force, and where each came from" },
    { "tools", cli_tools, "find, show and call tools; import others" },
    { "skills", cli_skills, "list, show, run and make skills" },
    { "agents", cli_agents, "keep code as named, versioned agents; run and share them" },
    { "models", cli_models, "install sentence models, embed text with them" },
    { "keys", cli_keys, "create, list and revoke API keys" },
    { "migrate", cli_migrate, "bring the database up to date" },
    { "audit", cli_audit, "verify the chain of records" },
    { "users", cli_users, "export or erase what is on record about a person" },
    { "retention", cli_retention, "remove what is older than retention.days" },
    { "doctor", cli_doctor, "what this host can do, layer by layer, and how to mend the rest" },
};

static void print_help(FILE *to)
{
    fputs("Retort runs code sealed, in about a millisecond.\n\n"
          "  retort run hello.py                    run a file\n"
          "  retort run -l python -c 'return 6*7'   run a line\n\n"
          "Commands:\n",
          to);
    for (size_t i = 0; i < RT_COUNT(commands); i++)
        fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].about);
    fputs("\n'retort COMMAND --help' says more. 'retort --version' prints the version.\n", to);
}

int cli_complain(const rt_error *err)
{
    fprintf(stderr, "retort: %s\n", err->text);
    switch (err->code) {
    case RT_INVALID:
    case RT_UNSUPPORTED:
    case RT_TOO_MANY:
    case RT_NOT_FOUND:
    case RT_LIMIT:
    case RT_DENIED:
        return EXIT_USAGE;
    case RT_UNAVAILABLE:
        return EXIT_HOST;
    default:
        return EXIT_FAILED;
    }
}

const char *cli_option(int argc, char **argv, int *i, const char *name, rt_error *err)
{
    size_t len = strlen(name);
    if (strncmp(argv[*i], name, len) != 0)
        return NULL;
    if (argv[*i][len] == '=' && len > 2)
        return argv[*i] + len + 1;
    if (argv[*i][len] != '\0')
        return NULL;
    if (*i + 1 >= argc) {
        rt_fail(err, RT_INVALID, "%s needs a value", name);
        return NULL;
    }
    return argv[++*i];
}

void cli_local_config(rt_local_config *config)
{
    config->guests_dir = getenv("RETORT_GUESTS");
    config->python = getenv("RETORT_PYTHON");
    config->node = getenv("RETORT_NODE");
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    rt_outbound_scrub_set(rt_privacy_scrub);
    rt_log_scrub_set(rt_privacy_scrub_line);
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return EXIT_GOOD;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("retort " RETORT_VERSION);
        return EXIT_GOOD;
    }
    for (size_t i = 0; i < RT_COUNT(commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].call(argc - 1, argv + 1);
    fprintf(stderr, "retort: there is no command '%s'; 'retort --help' lists them\n", argv[1]);
    return EXIT_USAGE;
}
