/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture_test.h - agents in a store of their own, with an engine whose runtime tells what it got.
 *
 *     AGENTS_TEST(agents, are_made_at_1_0_0)
 *     {
 *         rt_agent agent = agents_fixture_make(f, "{\"name\":\"adder\",…}");
 *     }
 *
 * runs on SQLite and on PostgreSQL, as STORE_TEST does.
 */
#ifndef RT_AGENTS_FIXTURE_TEST_H
#define RT_AGENTS_FIXTURE_TEST_H

#include "agents/agents_internal.h"
#include "store/fixture_test.h"

typedef struct agents_fixture {
    store_fixture *where;
    rt_arena arena;
    rt_vault *vault;
    rt_objects objects;
    rt_cache *cache;
    rt_telemetry *telemetry;
    rt_shelf *shelf;
    rt_engine *engine;
    rt_agents *agents;
    rt_runtime runtime;
    rt_str code, input;            /* of the last run */
    rt_str env;                    /* "NAME=value " of its policy */
    rt_str imports;                /* "math json " of its policy */
    rt_str answer;                 /* what the next run answers with; empty: its input */
    rt_str failure;                /* or: how it fails, "message" */
    rt_caller ann, bob, eve, root; /* a member, her admin, a rival's admin, the operator */
} agents_fixture;

void agents_fixture_open(agents_fixture *f, store_fixture *where);
void agents_fixture_done(agents_fixture *f);
rt_json agents_fixture_json(agents_fixture *f, const char *text);
/* By Ann; fails the test when it cannot be. */
rt_agent agents_fixture_make(agents_fixture *f, const char *body);

#define AGENTS_TEST_ON(suite, name, kind)                                                          \
    Test(suite, name##_on_##kind)                                                                  \
    {                                                                                              \
        store_fixture where RT_CLEANUP(store_fixture_done) = { 0 };                                \
        agents_fixture f RT_CLEANUP(agents_fixture_done) = { 0 };                                  \
        store_fixture_open(&where, #kind);                                                         \
        agents_fixture_open(&f, &where);                                                           \
        suite##_##name(&f);                                                                        \
    }

#define AGENTS_TEST(suite, name)                                                                   \
    static void suite##_##name(agents_fixture *f);                                                 \
    AGENTS_TEST_ON(suite, name, sqlite)                                                            \
    AGENTS_TEST_ON(suite, name, postgresql)                                                        \
    static void suite##_##name(agents_fixture *f)

#endif
