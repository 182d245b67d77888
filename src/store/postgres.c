/* SPDX-License-Identifier: Apache-2.0 */
/* postgres.c - the shared database. */
#include "store/store_internal.h"

static bool settle(rt_store *store, const rt_store_config *config, rt_error *err)
{
    (void)store, (void)config;
    return rt_fail(err, RT_UNSUPPORTED, "PostgreSQL comes with the next commit");
}

const store_backend store_postgres = { .kind = "postgresql", .settle = settle };
