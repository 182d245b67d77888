/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - `retort keys create|list|revoke`: who may use the server.
 */
#include "cli/house.h"

#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "Usage: retort keys create [--name NAME] [--role viewer|member|admin|owner]\n"
    "                          [--organisation ID] [--workspace ID] [--user ID]\n"
    "                          [--expires TIME] [--rate PER_MINUTE] [--budget USD_PER_MONTH]\n"
    "       retort keys list\n"
    "       retort keys revoke ID\n\n"
    "A key is shown once, when it is made; the store keeps its hash. With the first key a server\n"
    "asks everybody for one. Settings (--data-dir, --database-url) as for 'retort serve'.";

static bool read_spec(int argc, char **argv, rt_key_spec *spec, rt_error *err)
{
    struct {
        const char *flag;
        rt_str *text;
        uint64_t *number;
    } const options[] = {
        { "--name", &spec->name, NULL },
        { "--organisation", &spec->organisation, NULL },
        { "--workspace", &spec->workspace, NULL },
        { "--user", &spec->user, NULL },
        { "--rate", NULL, &spec->rate_per_minute },
    };
    for (int i = 2; i < argc; i++) {
        const char *value = NULL;
        bool is_known = false;
        for (size_t k = 0; k < RT_COUNT(options) && !value; k++) {
            value = cli_option(argc, argv, &i, options[k].flag, err);
            if (!value)
                continue;
            is_known = true;
            if (options[k].text)
                *options[k].text = rt_str_of(value);
            else if (!rt_str_to_u64(rt_str_of(value), options[k].number))
                return rt_fail(err, RT_INVALID, "%s: '%.40s' is no number", options[k].flag, value);
        }
        if (is_known)
            continue;
        if ((value = cli_option(argc, argv, &i, "--role", err))) {
            if (!rt_role_parse(rt_str_of(value), &spec->role, err))
                return false;
        } else if ((value = cli_option(argc, argv, &i, "--expires", err))) {
            uint64_t ms;
            if (!rt_parse_duration_ms(rt_str_of(value), &ms, err))
                return rt_wrap(err, "--expires");
            spec->expires_ms = rt_wall_ms() + ms;
        } else if ((value = cli_option(argc, argv, &i, "--budget", err))) {
            char *end;
            spec->budget_usd_month = strtod(value, &end);
            if (*end || !(spec->budget_usd_month >= 0 && spec->budget_usd_month < 1e12))
                return rt_fail(err, RT_INVALID, "--budget: '%.40s' is no amount of USD", value);
        } else {
            return err->code
                       ? false
                       : rt_fail(err, RT_INVALID,
                                 "unknown option %.60s; 'retort keys --help' lists them", argv[i]);
        }
    }
    return true;
}

static bool create(cli_house *h, int argc, char **argv, rt_error *err)
{
    rt_key_spec spec = { .name = RT_STR("key"),
                         .organisation = RT_STR(RT_LOCAL_ORGANISATION),
                         .workspace = RT_STR(RT_LOCAL_WORKSPACE),
                         .user = RT_STR(RT_LOCAL_USER),
                         .role = RT_ROLE_MEMBER };
    rt_key key;
    rt_str secret;
    if (!read_spec(argc, argv, &spec, err) || !cli_house_open(h, err) ||
        !rt_key_create(h->store, &spec, &h->arena, &key, &secret, err))
        return false;
    rt_audit_event event = { .time_ms = rt_wall_ms(),
                             .organisation_id = key.organisation_id,
                             .actor_id = RT_STR("operator"),
                             .actor_type = RT_STR("cli"),
                             .action = RT_STR("key.create"),
                             .subject = key.id,
                             .outcome = RT_STR("ok") };
    rt_audit_add(h->store, &event, NULL);
    printf("%.*s\n", RT_FMT(secret));
    fprintf(
        stderr,
        "retort: key %.*s, role %s of %.*s; this is the only time it is shown. A server that runs "
        "already learns of the first key when it is started again.\n",
        RT_FMT(key.id), rt_role_name(key.role), RT_FMT(key.organisation_id));
    return true;
}

static void print_time(uint64_t ms, const char *none)
{
    char text[RT_ISO8601_SIZE];
    rt_iso8601_write(text, ms);
    printf("  %-24s", ms ? text : none);
}

static bool list(cli_house *h, int argc, char **argv, rt_error *err)
{
    rt_key *keys;
    size_t count;
    (void)argv;
    if (argc > 2)
        return rt_fail(err, RT_INVALID, "'retort keys list' takes no arguments");
    if (!cli_house_exists(h, err) || !cli_house_open(h, err) ||
        !rt_key_list(h->store, RT_STR(""), &h->arena, &keys, &count, err))
        return false;
    if (count == 0)
        puts("There are no keys. 'retort keys create' makes one.");
    for (size_t i = 0; i < count; i++) {
        const rt_key *k = &keys[i];
        printf("%.*s  %.*s…  %-7s %-16.*s %-16.*s", RT_FMT(k->id), RT_FMT(k->prefix),
               rt_role_name(k->role), RT_FMT(k->organisation_id), RT_FMT(k->name));
        print_time(k->last_used_ms, "never used");
        if (k->revoked_ms)
            printf("  revoked");
        else if (k->expires_ms)
            print_time(k->expires_ms, "");
        putchar('\n');
    }
    return true;
}

static bool revoke(cli_house *h, int argc, char **argv, rt_error *err)
{
    if (argc != 3)
        return rt_fail(err, RT_INVALID, "usage: retort keys revoke ID");
    if (!cli_house_exists(h, err) || !cli_house_open(h, err) ||
        !rt_key_revoke(h->store, RT_STR(""), rt_str_of(argv[2]), rt_wall_ms(), err))
        return false;
    printf("%s is revoked\n", argv[2]);
    return true;
}

int cli_keys(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*call)(cli_house *h, int argc, char **argv, rt_error *err);
    } verbs[] = { { "create", create }, { "list", list }, { "revoke", revoke } };
    cli_house house RT_CLEANUP(cli_house_close) = { 0 };
    rt_error err = { 0 };
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        puts(help);
        return argc < 2 ? EXIT_USAGE : EXIT_GOOD;
    }
    if (!cli_house_read(&house, &argc, argv, &err))
        return cli_complain(&err);
    for (size_t i = 0; i < RT_COUNT(verbs); i++)
        if (argc > 1 && strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].call(&house, argc, argv, &err) ? EXIT_GOOD : cli_complain(&err);
    rt_fail(&err, RT_INVALID, "'retort keys' can create, list and revoke");
    return cli_complain(&err);
}
