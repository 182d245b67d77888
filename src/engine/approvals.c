/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approvals.c - a run waits for a person's word.
 *
 * The question is a row in the store, so that it can be answered on any node and stays on record.
 * Who waits looks at its row when something was decided here, and every second in case it was
 * decided elsewhere. While it waits no clock of the run goes on: see gate.c.
 */
#include "engine/engine_internal.h"

#include <stdlib.h>
#include <time.h>

#define LOOK_MS        1000
#define DEFAULT_TTL_MS 3600000

struct approvals {
    pthread_mutex_t lock;
    pthread_cond_t decided;
    uint64_t generation;
};

approvals *engine_approvals_new(void)
{
    approvals *a = calloc(1, sizeof(*a));
    pthread_condattr_t attr;
    if (!a)
        rt_out_of_memory(sizeof(*a));
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&a->decided, &attr);
    pthread_condattr_destroy(&attr);
    return a;
}

void engine_approvals_free(approvals *a)
{
    if (!a)
        return;
    pthread_cond_destroy(&a->decided);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

void engine_approvals_wake(approvals *a)
{
    pthread_mutex_lock(&a->lock);
    a->generation++;
    pthread_cond_broadcast(&a->decided);
    pthread_mutex_unlock(&a->lock);
}

/* Until something was decided since `seen`, or it is time to look again. */
static uint64_t wait_a_little(approvals *a, uint64_t seen)
{
    uint64_t deadline = rt_now_ns() + LOOK_MS * 1000000ull;
    struct timespec until = { .tv_sec = (time_t)(deadline / 1000000000),
                              .tv_nsec = (long)(deadline % 1000000000) };
    int slept = 0;
    pthread_mutex_lock(&a->lock);
    while (a->generation == seen && slept == 0)
        slept = pthread_cond_timedwait(&a->decided, &a->lock, &until);
    seen = a->generation;
    pthread_mutex_unlock(&a->lock);
    return seen;
}

static rt_str purpose_of(rt_str id, rt_arena *arena)
{
    return rt_arena_printf(arena, "approval:%.*s", RT_FMT(id));
}

static void fill_row(rt_engine *e, const rt_question *q, rt_arena *arena, rt_approval_row *row)
{
    char hash[RT_SHA256_HEX];
    uint64_t now = rt_wall_ms();
    rt_sha256_hex(q->arguments, hash);
    *row = (rt_approval_row){ .id = rt_id_new("appr", arena),
                              .organisation_id = q->caller->organisation_id,
                              .workspace_id = q->caller->workspace_id,
                              .user_id = q->caller->user_id,
                              .key_id = q->caller->key_id,
                              .execution_id = q->execution_id,
                              .session_id = q->session_id,
                              .host = e->config.host,
                              .operation = q->operation,
                              .reason = q->reason,
                              .arguments_hash = rt_arena_str(arena, rt_str_of(hash)),
                              .priority = q->priority,
                              .status = RT_STR("pending"),
                              .created_ms = now,
                              .expires_ms = now + (q->ttl_ms ? q->ttl_ms : DEFAULT_TTL_MS) };
    row->arguments =
        rt_vault_seal(e->config.vault, purpose_of(row->id, arena), q->arguments, arena);
}

static bool read_word(const rt_approval_row *row, rt_error *err)
{
    if (rt_str_eq_c(row->status, "approved"))
        return true;
    if (rt_str_eq_c(row->status, "rejected"))
        return rt_fail(err, RT_DENIED, "%.*s was not approved%s%.*s", RT_FMT(row->operation),
                       row->comment.len ? ": " : "", (int)RT_MIN(row->comment.len, (size_t)120),
                       row->comment.ptr);
    if (rt_str_eq_c(row->status, "expired"))
        return rt_fail(err, RT_TIMEOUT, "nobody approved %.*s in time", RT_FMT(row->operation));
    return rt_fail(err, RT_CANCELLED, "the question about %.*s was withdrawn",
                   RT_FMT(row->operation));
}

/* Gives up the question itself, unless it was answered in the same moment. */
static bool withdraw(rt_engine *e, const rt_approval_row *asked, const char *status,
                     rt_arena *arena, rt_error *err)
{
    rt_approval_row row;
    rt_error late = { 0 };
    bool ok =
        rt_approval_decide(e->config.store, asked->organisation_id, asked->id, rt_str_of(status),
                           (rt_str){ 0 }, (rt_str){ 0 }, rt_wall_ms(), arena, &row, &late);
    if (!ok && late.code != RT_CONFLICT) {
        *err = late;
        return false;
    }
    return read_word(&row, err);
}

bool rt_engine_ask(rt_engine *e, const rt_question *question, rt_canceller *canceller,
                   rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 }, looking RT_CLEANUP(rt_arena_done) = { 0 };
    rt_approval_row asked, row;
    uint64_t seen = 0;
    fill_row(e, question, &arena, &asked);
    if (!rt_approval_add(e->config.store, &asked, err))
        return false;
    for (;;) {
        if ((canceller && rt_canceller_is_cancelled(canceller)) || atomic_load(&e->is_stopping))
            return withdraw(e, &asked, "cancelled", &arena, err);
        if (rt_wall_ms() >= asked.expires_ms)
            return withdraw(e, &asked, "expired", &arena, err);
        rt_arena_reset(&looking);
        if (!rt_approval_find(e->config.store, RT_STR(""), asked.id, &looking, &row, err))
            return rt_wrap(err, "wait for approval");
        if (!rt_str_eq_c(row.status, "pending"))
            return read_word(&row, err);
        seen = wait_a_little(e->approvals, seen);
    }
}

bool rt_engine_propose(rt_engine *e, const rt_question *question, rt_arena *arena,
                       rt_approval_row *out, rt_error *err)
{
    fill_row(e, question, arena, out);
    out->execution_id = (rt_str){ 0 };
    return rt_approval_add(e->config.store, out, err);
}

bool rt_engine_redeem(rt_engine *e, const rt_question *question, rt_str id, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_approval_row row;
    rt_error why = { 0 };
    char hash[RT_SHA256_HEX];
    int shown = (int)RT_MIN(id.len, (size_t)80);
    if (!rt_approval_find(e->config.store, question->caller->organisation_id, id, &arena, &row,
                          &why))
        return rt_fail(err, RT_DENIED, "%s", why.text);
    rt_sha256_hex(question->arguments, hash);
    if (!rt_str_eq(row.operation, question->operation) || !rt_str_eq_c(row.arguments_hash, hash))
        return rt_fail(err, RT_DENIED, "approval %.*s is for something else", shown, id.ptr);
    if (!rt_str_eq_c(row.status, "approved"))
        return rt_fail(err, RT_DENIED, "approval %.*s is %.*s, not approved", shown, id.ptr,
                       RT_FMT(row.status));
    return rt_approval_use(e->config.store, id, question->execution_id, rt_wall_ms(), &why) ||
           rt_fail(err, RT_DENIED, "%s", why.text);
}

bool rt_engine_decide(rt_engine *e, const rt_caller *caller, rt_str id, bool is_approved,
                      rt_str comment, rt_arena *arena, rt_approval_row *out, rt_error *err)
{
    rt_str scope = caller->role >= RT_ROLE_OWNER ? RT_STR("") : caller->organisation_id;
    rt_str who = caller->user_id.len ? caller->user_id : caller->key_id;
    if (caller->role < RT_ROLE_ADMIN)
        return rt_fail(err, RT_DENIED, "You do not have permission to approve; an admin may");
    if (!rt_approval_decide(e->config.store, scope, id,
                            is_approved ? RT_STR("approved") : RT_STR("rejected"), who, comment,
                            rt_wall_ms(), arena, out, err))
        return false;
    rt_audit_event event = { .time_ms = out->decided_ms,
                             .organisation_id = out->organisation_id,
                             .actor_id = who,
                             .actor_type = caller->actor_type,
                             .action = RT_STR("approval.decide"),
                             .subject = id,
                             .outcome = is_approved ? RT_STR("ok") : RT_STR("denied"),
                             .address = caller->address };
    engine_approvals_wake(e->approvals);
    return rt_audit_add(e->config.store, &event, err);
}

rt_str rt_engine_arguments(rt_engine *e, const rt_approval_row *row, rt_arena *arena)
{
    rt_str plain = { 0 };
    rt_vault_unseal(e->config.vault, purpose_of(row->id, arena), row->arguments, arena, &plain,
                    NULL);
    return plain;
}
