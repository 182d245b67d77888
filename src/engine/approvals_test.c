#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/engine_internal.h"

/* Only what an approval needs of an engine. */
typedef struct desk {
    char key[64];
    rt_engine engine;
    rt_arena arena;
} desk;

static void set_up(desk *d)
{
    rt_error err = { 0 };
    rt_store_config store = { .url = RT_STR("sqlite::memory:") };
    *d = (desk){ .engine = { .config = { .host = RT_STR("here") } } };
    snprintf(d->key, sizeof(d->key), "/tmp/retort-approval-%d.key", getpid());
    unlink(d->key);
    cr_assert(rt_store_open(&store, &d->engine.config.store, &err), "%s", err.text);
    cr_assert(rt_store_migrate(d->engine.config.store, NULL, NULL, &err), "%s", err.text);
    cr_assert(rt_vault_open(d->key, &d->engine.config.vault, &err), "%s", err.text);
    d->engine.approvals = engine_approvals_new();
}

static void tear_down(desk *d)
{
    engine_approvals_free(d->engine.approvals);
    rt_vault_close(d->engine.config.vault);
    rt_store_close(d->engine.config.store);
    rt_arena_done(&d->arena);
    unlink(d->key);
}

static const rt_caller ann = { .organisation_id = { "local", 5 },
                               .user_id = { "ann", 3 },
                               .role = RT_ROLE_MEMBER };
static const rt_caller bob = { .organisation_id = { "local", 5 },
                               .user_id = { "bob", 3 },
                               .actor_type = { "user", 4 },
                               .role = RT_ROLE_ADMIN };

typedef struct asking {
    desk *d;
    rt_canceller *canceller;
    uint64_t ttl_ms;
    bool is_approved;
    rt_error err;
    pthread_t thread;
} asking;

static void *ask(void *arg)
{
    asking *a = arg;
    rt_question question = { .caller = &ann,
                             .operation = RT_STR("github:delete_repository"),
                             .arguments = RT_STR("{\"name\":\"marker-of-arguments\"}"),
                             .ttl_ms = a->ttl_ms };
    a->is_approved = rt_engine_ask(&a->d->engine, &question, a->canceller, &a->err);
    return NULL;
}

static rt_approval_row wait_pending(desk *d)
{
    rt_approval_row *rows;
    size_t count = 0;
    rt_error err = { 0 };
    while (count == 0) {
        cr_assert(rt_approval_list(d->engine.config.store, RT_STR(""), RT_STR("pending"), 0,
                                   &d->arena, &rows, &count, &err));
        usleep(500);
    }
    return rows[0];
}

Test(approvals, a_run_goes_on_when_it_was_approved)
{
    desk d;
    asking a = { .d = &d };
    rt_approval_row out;
    rt_error err = { 0 };
    set_up(&d);
    pthread_create(&a.thread, NULL, ask, &a);
    rt_approval_row row = wait_pending(&d);
    cr_assert(rt_str_eq_c(rt_engine_arguments(&d.engine, &row, &d.arena),
                          "{\"name\":\"marker-of-arguments\"}"));
    cr_assert(rt_str_find(row.arguments, RT_STR("marker")) < 0, "it is kept sealed");
    cr_assert(!rt_engine_decide(&d.engine, &ann, row.id, true, RT_STR(""), &d.arena, &out, &err));
    cr_assert_eq(err.code, RT_DENIED);
    cr_assert(rt_engine_decide(&d.engine, &bob, row.id, true, RT_STR("fine"), &d.arena, &out, &err),
              "%s", err.text);
    pthread_join(a.thread, NULL);
    cr_assert(a.is_approved, "%s", a.err.text);
    tear_down(&d);
}

Test(approvals, a_rejection_says_why)
{
    desk d;
    asking a = { .d = &d };
    rt_approval_row out;
    rt_error err = { 0 };
    set_up(&d);
    pthread_create(&a.thread, NULL, ask, &a);
    rt_approval_row row = wait_pending(&d);
    cr_assert(rt_engine_decide(&d.engine, &bob, row.id, false, RT_STR("not on a Friday"), &d.arena,
                               &out, &err));
    pthread_join(a.thread, NULL);
    cr_assert(!a.is_approved && a.err.code == RT_DENIED && strstr(a.err.text, "Friday"));
    tear_down(&d);
}

Test(approvals, silence_and_cancelling_end_the_wait)
{
    desk d;
    asking a = { .d = &d, .ttl_ms = 1 };
    set_up(&d);
    ask(&a);
    cr_assert(!a.is_approved && a.err.code == RT_TIMEOUT);
    rt_canceller canceller;
    rt_canceller_init(&canceller);
    asking b = { .d = &d, .canceller = &canceller };
    pthread_create(&b.thread, NULL, ask, &b);
    wait_pending(&d);
    rt_canceller_cancel(&canceller);
    engine_approvals_wake(d.engine.approvals);
    pthread_join(b.thread, NULL);
    cr_assert(!b.is_approved && b.err.code == RT_CANCELLED);
    rt_canceller_done(&canceller);
    tear_down(&d);
}
