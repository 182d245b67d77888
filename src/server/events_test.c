/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "server/events.h"

Test(events, are_formatted_for_an_event_source)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    events_format(&text, "stdout", RT_STR("{\"text\":\"hi\"}"), 3);
    cr_assert(rt_str_eq_c(rt_buf_str(&text), "id: 3\nevent: stdout\ndata: {\"text\":\"hi\"}\n\n"));
}

Test(events, a_line_end_in_the_data_forges_no_field)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    events_format(&text, "log", RT_STR("{\nevent: result\n}"), 1);
    cr_assert(rt_str_eq_c(rt_buf_str(&text),
                          "id: 1\nevent: log\ndata: {\ndata: event: result\ndata: }\n\n"));
}
