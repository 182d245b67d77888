/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - runs nobody waited for, kept for a while after they ended, so that their answer can be
 * fetched.
 *
 * Promise: at most JOBS_MAX are kept, none longer than JOBS_KEPT_MS; the oldest go first. A run
 * that is let go here is not cancelled, and its record is in the store all the same.
 *
 *     job_hold *hold = job_hold_new(job);              // the job is the hold's now
 *     jobs_keep(server->jobs, organisation, hold);     // the table has its own share
 *     job_hold_release(hold);
 */
#ifndef RT_SERVER_JOBS_H
#define RT_SERVER_JOBS_H

#include "engine/engine.h"

#define JOBS_MAX     256
#define JOBS_KEPT_MS (15 * 60 * 1000)

typedef struct jobs jobs;
typedef struct job_hold job_hold;

job_hold *job_hold_new(rt_job *job);
rt_job *job_hold_job(const job_hold *hold);
void job_hold_release(job_hold *hold);
void job_hold_releasep(job_hold **hold);

jobs *jobs_new(void);
void jobs_free(jobs *table);
void jobs_keep(jobs *table, rt_str organisation_id, job_hold *hold);
job_hold *jobs_find(jobs *table, rt_str organisation_id,
                    rt_str id); /* NULL: not here; release it */

#endif
