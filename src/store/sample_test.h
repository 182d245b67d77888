/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_test.h - runs to record, and questions to ask of the store, for the tests about tables.
 */
#ifndef RT_STORE_SAMPLE_TEST_H
#define RT_STORE_SAMPLE_TEST_H

#include "store/fixture_test.h"
#include "store/store.h"

#define SAMPLE_MS UINT64_C(1794713017123) /* 2026-11-15T03:23:37.123Z */

/* A run that succeeded, of user "alice" with key "key_1", finished at SAMPLE_MS. */
rt_execution_row sample_run(const char *id, const char *organisation_id);

void sample_organisation(rt_store *store, const char *id); /* makes it */
void sample_record(rt_store *store, const rt_execution_row *row);
/* Records `count` runs "<prefix>1", "<prefix>2", … */
void sample_record_many(rt_store *store, const char *organisation_id, const char *prefix,
                        unsigned count);

/* The first cell of what one statement without values answers. */
int64_t sample_number(rt_store *store, const char *sql);
void sample_run_sql(rt_store *store, const char *sql);

/* What rt_audit_verify() says of all chains. */
typedef struct sample_faults {
    rt_audit_report report;
    int64_t sequence;   /* of the first fault */
    char what[120];     /* the first fault's */
    char execution[64]; /* the first fault's */
} sample_faults;

sample_faults sample_verify(rt_store *store);

#endif
