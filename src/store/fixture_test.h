/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture_test.h - a test that runs on SQLite and on PostgreSQL.
 *
 *     STORE_TEST(executions, a_run_is_recorded_once)
 *     {
 *         cr_assert(rt_execution_record(store, &row, &err), "%s", err.text);
 *     }
 *
 * defines executions/a_run_is_recorded_once_on_sqlite and …_on_postgresql. `store` is open and
 * migrated, and nobody else's: a file in a directory of its own, or a schema of its own on the
 * server RETORT_TEST_POSTGRES_URL names (tests/services/with sets it). `where` tells more.
 */
#ifndef RT_STORE_FIXTURE_TEST_H
#define RT_STORE_FIXTURE_TEST_H

#include <criterion/criterion.h>

#include "store/db.h"

typedef struct store_fixture {
    char directory[64]; /* an empty one, for files */
    char schema[64];    /* PostgreSQL */
    char url[512];      /* opens the same store again */
    rt_store *store;
} store_fixture;

/* `kind` is "sqlite" or "postgresql". These fail or skip the test by themselves. */
void store_fixture_open(store_fixture *where, const char *kind);
void store_fixture_place(store_fixture *where, const char *kind); /* empty, and not open */
rt_store *store_fixture_reopen(const store_fixture *where);       /* another store on the same */
void store_fixture_done(store_fixture *where);

#define STORE_TEST_ON(suite, name, kind)                                                           \
    Test(suite, name##_on_##kind)                                                                  \
    {                                                                                              \
        store_fixture where RT_CLEANUP(store_fixture_done) = { 0 };                                \
        store_fixture_open(&where, #kind);                                                         \
        suite##_##name(where.store, &where);                                                       \
    }

#define STORE_TEST(suite, name)                                                                    \
    static void suite##_##name(rt_store *store, const store_fixture *where);                       \
    STORE_TEST_ON(suite, name, sqlite)                                                             \
    STORE_TEST_ON(suite, name, postgresql)                                                         \
    static void suite##_##name(rt_store *store __attribute__((unused)),                            \
                               const store_fixture *where __attribute__((unused)))

#endif
