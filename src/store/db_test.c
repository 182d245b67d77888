/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fixture_test.h"

STORE_TEST(db, the_schema_has_its_first_organisation)
{
    rt_error err = { 0 };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    cr_assert(rt_sql_once(store, RT_TX_READ, "SELECT name FROM organisations", NULL, 0, &arena,
                          &rows, &err),
              "%s", err.text);
    cr_assert(rt_str_eq_c(rt_rows_at(&rows, 0, 0).text, "local"));
}
