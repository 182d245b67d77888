/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_test.c - a store of its own for each test; see fixture_test.h. */
#include "store/fixture_test.h"

#include <ftw.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *server_url(void)
{
    return getenv("RETORT_TEST_POSTGRES_URL");
}

static void ignore_notice(void *ctx, const char *text)
{
    (void)ctx, (void)text;
}

static void run_on_server(const char *statement)
{
    PGconn *server = PQconnectdb(server_url());
    PQsetNoticeProcessor(server, ignore_notice, NULL);
    PGresult *result = PQexec(server, statement);
    cr_assert(PQresultStatus(result) == PGRES_COMMAND_OK, "%s: %s", statement,
              PQerrorMessage(server));
    PQclear(result);
    PQfinish(server);
}

static void make_schema(store_fixture *where)
{
    unsigned char random[8];
    char hex[2 * sizeof(random) + 1], statement[128];
    rt_random_bytes(random, sizeof(random));
    rt_hex(hex, random, sizeof(random));
    snprintf(where->schema, sizeof(where->schema), "test_%s", hex);
    snprintf(statement, sizeof(statement), "CREATE SCHEMA %s", where->schema);
    run_on_server(statement);
    snprintf(where->url, sizeof(where->url), "%s%coptions=-csearch_path%%3D%s", server_url(),
             strchr(server_url(), '?') ? '&' : '?', where->schema);
}

void store_fixture_place(store_fixture *where, const char *kind)
{
    bool is_sqlite = strcmp(kind, "sqlite") == 0;
    if (!is_sqlite && !server_url())
        cr_skip_test("RETORT_TEST_POSTGRES_URL is not set");
    snprintf(where->directory, sizeof(where->directory), "/tmp/retort-store-XXXXXX");
    cr_assert(mkdtemp(where->directory));
    if (is_sqlite)
        snprintf(where->url, sizeof(where->url), "sqlite://%s/data/retort.db", where->directory);
    else
        make_schema(where);
}

rt_store *store_fixture_reopen(const store_fixture *where)
{
    rt_error err = { 0 };
    rt_store_config config = { .url = rt_str_of(where->url) };
    rt_store *store = NULL;
    cr_assert(rt_store_open(&config, &store, &err), "%s", err.text);
    return store;
}

void store_fixture_open(store_fixture *where, const char *kind)
{
    rt_error err = { 0 };
    store_fixture_place(where, kind);
    where->store = store_fixture_reopen(where);
    cr_assert(rt_store_migrate(where->store, NULL, NULL, &err), "%s", err.text);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

void store_fixture_done(store_fixture *where)
{
    rt_store_closep(&where->store);
    if (where->schema[0]) {
        char statement[128];
        snprintf(statement, sizeof(statement), "DROP SCHEMA %s CASCADE", where->schema);
        run_on_server(statement);
    }
    if (where->directory[0])
        nftw(where->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
