/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c - the operator's commands on what is on record: migrate, audit, users, retention.
 */
#include "cli/house.h"

#include <stdio.h>
#include <unistd.h>

static bool has_flag(int argc, char **argv, const char *flag)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], flag) == 0)
            return true;
    return false;
}

/* The settings are read, and their flags are gone from argv; what --help says is printed here. */
static bool begin(cli_house *h, int *argc, char **argv, const char *help, bool *is_done,
                  rt_error *err)
{
    *is_done = has_flag(*argc, argv, "--help");
    if (*is_done) {
        puts(help);
        return true;
    }
    return cli_house_read(h, argc, argv, err);
}

/* ---- migrate ---- */

static void tell_migration(void *ctx, unsigned version, const char *name, bool is_new)
{
    unsigned *count = ctx;
    *count += is_new;
    printf("%04u %-24s %s\n", version, name, is_new ? "applied" : "was there");
}

int cli_migrate(int argc, char **argv)
{
    static const char help[] =
        "Usage: retort migrate [--sql] [settings]\n\n"
        "Brings the database up to date and says what it did; a second time does nothing.\n"
        "--sql prints the PostgreSQL text instead, for those who apply it themselves.";
    cli_house house RT_CLEANUP(cli_house_close) = { 0 };
    rt_error err = { 0 };
    bool is_done;
    unsigned applied = 0;
    if (has_flag(argc, argv, "--sql")) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        rt_store_migrations_print(&text);
        return rt_write_all(STDOUT_FILENO, rt_buf_str(&text), &err) ? EXIT_GOOD
                                                                    : cli_complain(&err);
    }
    if (!begin(&house, &argc, argv, help, &is_done, &err))
        return cli_complain(&err);
    if (is_done)
        return EXIT_GOOD;
    if (argc > 1 && !cli_settings_unknown_flag(argv[1], &err))
        return cli_complain(&err);
    if (!cli_house_open_store(&house, &err) ||
        !rt_store_migrate(house.store, tell_migration, &applied, &err))
        return cli_complain(&err);
    printf("%u applied; the %s store is up to date. Next: 'retort serve', and 'retort keys create' "
           "before others may use it.\n",
           applied, rt_store_kind(house.store));
    return EXIT_GOOD;
}

/* ---- audit ---- */

static void tell_fault(void *ctx, rt_str organisation_id, int64_t sequence, rt_str execution_id,
                       const char *what)
{
    (void)ctx;
    printf("%.*s #%lld %.*s: %s\n", RT_FMT(organisation_id), (long long)sequence,
           RT_FMT(execution_id), what);
}

int cli_audit(int argc, char **argv)
{
    static const char help[] =
        "Usage: retort audit verify [--organisation ID] [settings]\n\n"
        "Walks the chain of provenance records and names each that was changed, is missing or was\n"
        "moved. Ends with 1 when there is one.";
    cli_house house RT_CLEANUP(cli_house_close) = { 0 };
    rt_audit_report report = { 0 };
    rt_str organisation = RT_STR("");
    rt_error err = { 0 };
    bool is_done;
    if (!begin(&house, &argc, argv, help, &is_done, &err))
        return cli_complain(&err);
    if (is_done)
        return EXIT_GOOD;
    if (argc < 2 || strcmp(argv[1], "verify") != 0) {
        rt_fail(&err, RT_INVALID, "usage: retort audit verify [--organisation ID]");
        return cli_complain(&err);
    }
    for (int i = 2; i < argc; i++) {
        const char *value = cli_option(argc, argv, &i, "--organisation", &err);
        if (!value) {
            if (!err.code)
                cli_settings_unknown_flag(argv[i], &err);
            return cli_complain(&err);
        }
        organisation = rt_str_of(value);
    }
    if (!cli_house_exists(&house, &err) || !cli_house_open_store(&house, &err) ||
        !rt_store_migrate(house.store, NULL, NULL, &err) ||
        !rt_audit_verify(house.store, organisation, tell_fault, NULL, &report, &err))
        return cli_complain(&err);
    printf("%llu records of %llu organisations: %llu faults, %llu erased on request\n",
           (unsigned long long)report.records, (unsigned long long)report.organisations,
           (unsigned long long)report.faults, (unsigned long long)report.erased);
    return report.faults ? EXIT_FAILED : EXIT_GOOD;
}

/* ---- people ---- */

static bool export_user(cli_house *h, rt_str organisation, rt_str user, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    if (!rt_user_export(h->store, organisation, user, &w, err))
        return false;
    rt_buf_addc(&text, '\n');
    return rt_buf_ok(&text, err) && rt_write_all(STDOUT_FILENO, rt_buf_str(&text), err);
}

static bool erase_user(cli_house *h, rt_str organisation, rt_str user, rt_error *err)
{
    rt_erasure e;
    if (!rt_user_erase(h->store, h->shelf, organisation, user, RT_STR("operator"), rt_wall_ms(),
                       &h->arena, &e, err))
        return false;
    printf("erased: %llu runs, %llu artifacts, %llu sessions, %llu audit events\n"
           "receipt %.*s %.*s\n",
           (unsigned long long)e.executions, (unsigned long long)e.artifacts,
           (unsigned long long)e.sessions, (unsigned long long)e.audit_events, RT_FMT(e.receipt_id),
           RT_FMT(e.receipt_hash));
    return true;
}

int cli_users(int argc, char **argv)
{
    static const char help[] =
        "Usage: retort users export ID [--organisation ID] [settings]\n"
        "       retort users erase ID [--organisation ID] [settings]\n\n"
        "Everything on record about a person as JSON, or its erasure with a receipt.";
    cli_house house RT_CLEANUP(cli_house_close) = { 0 };
    rt_str organisation = RT_STR(RT_LOCAL_ORGANISATION);
    rt_error err = { 0 };
    bool is_done;
    if (!begin(&house, &argc, argv, help, &is_done, &err))
        return cli_complain(&err);
    if (is_done)
        return EXIT_GOOD;
    for (int i = 3; i < argc; i++) {
        const char *value = cli_option(argc, argv, &i, "--organisation", &err);
        if (!value) {
            if (!err.code)
                cli_settings_unknown_flag(argv[i], &err);
            return cli_complain(&err);
        }
        organisation = rt_str_of(value);
    }
    bool is_export = argc > 2 && strcmp(argv[1], "export") == 0;
    bool is_erase = argc > 2 && strcmp(argv[1], "erase") == 0;
    if (!is_export && !is_erase) {
        puts(help);
        return EXIT_USAGE;
    }
    bool ok =
        cli_house_exists(&house, &err) && cli_house_open(&house, &err) &&
        (is_export ? export_user : erase_user)(&house, organisation, rt_str_of(argv[2]), &err);
    return ok ? EXIT_GOOD : cli_complain(&err);
}

int cli_retention(int argc, char **argv)
{
    static const char help[] =
        "Usage: retort retention [--dry-run] [--retention.days N] [settings]\n\n"
        "Removes what runs older than retention.days left on record; the chain stays whole.";
    cli_house house RT_CLEANUP(cli_house_close) = { 0 };
    rt_retention gone = { 0 };
    rt_error err = { 0 };
    bool is_done;
    if (!begin(&house, &argc, argv, help, &is_done, &err))
        return cli_complain(&err);
    if (is_done)
        return EXIT_GOOD;
    bool is_dry = has_flag(argc, argv, "--dry-run");
    if (argc > 1 + is_dry) {
        cli_settings_unknown_flag(argv[1], &err);
        return cli_complain(&err);
    }
    unsigned days = (unsigned)house.settings.retention.days;
    if (days == 0) {
        puts("retention.days is 0: everything is kept");
        return EXIT_GOOD;
    }
    if (!cli_house_exists(&house, &err) || !cli_house_open(&house, &err) ||
        !rt_retention_apply(house.store, RT_STR(""), days, rt_wall_ms(), is_dry, &gone, &err))
        return cli_complain(&err);
    printf("%s: %llu runs, %llu audit events, %llu artifacts older than %u days\n",
           is_dry ? "would go" : "gone", (unsigned long long)gone.executions,
           (unsigned long long)gone.audit_events, (unsigned long long)gone.artifacts, days);
    return EXIT_GOOD;
}
