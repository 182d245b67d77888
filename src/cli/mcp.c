/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp.c - `retort mcp`: the program as a client's own MCP server, over stdin and stdout.
 *
 * Clients start one of us for each of their windows, and a daemon may be running too; but a data
 * directory belongs to one program. So the first takes it, and the next ones take directories of
 * their own below it (mcp/1, mcp/2 …). stdout is for messages alone: the log goes to stderr.
 */
#include "cli/service.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define WINDOWS_MAX 64

static void print_help(void)
{
    puts("Usage: retort mcp [options]\n\n"
         "Speaks the Model Context Protocol on stdin and stdout, for one client. In the settings\n"
         "of Claude, Cursor and others:\n\n"
         "  {\"mcpServers\": {\"retort\": {\"command\": \"retort\", \"args\": [\"mcp\"]}}}\n\n"
         "docs/mcp.md says more. Options are the settings of 'retort serve', and:\n\n"
         "      --agents NAME,...         serve these code agents as tools, and nothing else\n"
         "      --mcp-fixture\n"
         "                                what the MCP conformance suite looks for; not for "
         "clients");
}

/* The settings again, with another directory. */
static bool move_house(cli_house *house, int argc, char **argv, rt_str directory, rt_error *err)
{
    cli_house other = { 0 };
    char **args = rt_arena_alloc(&house->arena, (size_t)(argc + 3) * sizeof(*args));
    memcpy(args, argv, (size_t)argc * sizeof(*args));
    args[argc++] = rt_arena_copy(&house->arena, RT_STR("--data-dir"));
    args[argc++] = rt_arena_copy(&house->arena, directory);
    if (!cli_house_read(&other, &argc, args, err))
        return false;
    rt_arena_done(&house->arena);
    *house = other;
    return true;
}

static bool take_directory(cli_service *s, int argc, char **argv, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str base = rt_arena_str(&arena, s->house.settings.data_dir);
    if (cli_house_lock(&s->house, err))
        return true;
    for (int i = 1; i <= WINDOWS_MAX && err->code == RT_CONFLICT; i++) {
        rt_str own = rt_arena_printf(&arena, "%.*s/mcp/%d", RT_FMT(base), i);
        if (!move_house(&s->house, argc, argv, own, err))
            return false;
        if (cli_house_lock(&s->house, err))
            return true;
    }
    return false;
}

/* Agents are where they were made, whoever serves from there: only our runs need a name apart. */
static bool share_directory(cli_service *s)
{
    cli_house *h = &s->house;
    h->node = rt_arena_printf(&h->arena, "%.*s-mcp-%d", RT_FMT(h->node), (int)getpid());
    return true;
}

/* Interpreters are started when they are first needed; the client has better things to wait for. */
static void *warm(void *arg)
{
    cli_service *s = arg;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_language languages[RT_LANGUAGES_OURS];
    rt_engine_languages(s->engine, &arena, languages, RT_COUNT(languages));
    return NULL;
}

static bool serve(cli_service *s, const sigset_t *signals, rt_error *err)
{
    rt_server_config config = { 0 };
    pthread_t warmer;
    bool has_warmer = pthread_create(&warmer, NULL, warm, s) == 0;
    int stop RT_CLEANUP(rt_closep) = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
    cli_service_lend(s, &config);
    rt_log(RT_LOG_INFO, "retort %s speaks MCP on stdin and stdout, data in %.*s", RETORT_VERSION,
           RT_FMT(s->house.settings.data_dir));
    bool ok = rt_mcp_serve(&config, STDIN_FILENO, STDOUT_FILENO, stop, err);
    rt_engine_stop(s->engine, 0);
    if (has_warmer)
        pthread_join(warmer, NULL);
    return ok;
}

int cli_mcp(int argc, char **argv)
{
    cli_service s = { 0 };
    sigset_t signals;
    rt_error err = { 0 };
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return EXIT_GOOD;
        }
    s.has_mcp_fixture = cli_service_flag(&argc, argv, "--mcp-fixture");
    s.mcp_agents = rt_str_of(cli_service_option(&argc, argv, "--agents", &err));
    if (err.code)
        return cli_complain(&err);
    int given = argc;
    char **args = calloc((size_t)argc + 1, sizeof(*args)); /* reading takes what it knows out */
    if (!args)
        rt_out_of_memory((size_t)argc * sizeof(*args));
    memcpy(args, argv, (size_t)argc * sizeof(*args));
    bool ok = cli_house_read(&s.house, &argc, argv, &err);
    if (ok && argc > 1)
        ok = cli_settings_unknown_flag(argv[1], &err);
    ok = ok &&
         (s.mcp_agents.len > 0 ? share_directory(&s) : take_directory(&s, given, args, &err)) &&
         cli_service_open(&s, &signals, &err) && serve(&s, &signals, &err);
    cli_service_close(&s);
    free(args);
    return ok ? EXIT_GOOD : cli_complain(&err);
}
