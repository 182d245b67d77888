/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - a ring of the latest runs nobody waited for; several may look at one at a time. */
#include "server/jobs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define ORGANISATION_MAX 128

struct job_hold {
    rt_job *job;
    atomic_uint shares;
};

typedef struct kept {
    job_hold *hold;
    char organisation[ORGANISATION_MAX];
    size_t organisation_len;
    uint64_t since_ns;
} kept;

struct jobs {
    pthread_mutex_t lock;
    kept ring[JOBS_MAX];
    size_t next; /* where the newest goes: the oldest is there */
};

static void *new_zeroed(size_t size)
{
    void *p = calloc(1, size);
    if (!p)
        rt_out_of_memory(size);
    return p;
}

job_hold *job_hold_new(rt_job *job)
{
    job_hold *hold = new_zeroed(sizeof(*hold));
    hold->job = job;
    atomic_init(&hold->shares, 1);
    return hold;
}

rt_job *job_hold_job(const job_hold *hold)
{
    return hold->job;
}

void job_hold_release(job_hold *hold)
{
    if (!hold || atomic_fetch_sub(&hold->shares, 1) > 1)
        return;
    rt_job_release(hold->job);
    free(hold);
}

void job_hold_releasep(job_hold **hold)
{
    job_hold_release(RT_TAKE(*hold));
}

jobs *jobs_new(void)
{
    jobs *table = new_zeroed(sizeof(*table));
    pthread_mutex_init(&table->lock, NULL);
    return table;
}

void jobs_free(jobs *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < JOBS_MAX; i++)
        job_hold_release(table->ring[i].hold);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

void jobs_keep(jobs *table, rt_str organisation_id, job_hold *hold)
{
    if (organisation_id.len > ORGANISATION_MAX)
        return;
    uint64_t now = rt_now_ns();
    job_hold *old[JOBS_MAX];
    size_t old_count = 0;
    atomic_fetch_add(&hold->shares, 1);
    pthread_mutex_lock(&table->lock);
    for (size_t i = 0; i < JOBS_MAX; i++) {
        kept *k = &table->ring[i];
        if (k->hold && (i == table->next || now - k->since_ns > JOBS_KEPT_MS * 1000000ull))
            old[old_count++] = RT_TAKE(k->hold);
    }
    kept *mine = &table->ring[table->next];
    *mine = (kept){ .hold = hold, .organisation_len = organisation_id.len, .since_ns = now };
    if (organisation_id.len > 0)
        memcpy(mine->organisation, organisation_id.ptr, organisation_id.len);
    table->next = (table->next + 1) % JOBS_MAX;
    pthread_mutex_unlock(&table->lock);
    while (old_count > 0) /* outside the lock: the engine may take its time */
        job_hold_release(old[--old_count]);
}

job_hold *jobs_find(jobs *table, rt_str organisation_id, rt_str id)
{
    job_hold *found = NULL;
    pthread_mutex_lock(&table->lock);
    for (size_t i = 0; i < JOBS_MAX && !found; i++) {
        const kept *k = &table->ring[i];
        rt_str owner = { k->organisation, k->organisation_len };
        if (k->hold && rt_str_eq(rt_job_id(k->hold->job), id) &&
            (organisation_id.len == 0 || rt_str_eq(owner, organisation_id)))
            found = k->hold;
    }
    if (found)
        atomic_fetch_add(&found->shares, 1);
    pthread_mutex_unlock(&table->lock);
    return found;
}
