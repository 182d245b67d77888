/* SPDX-License-Identifier: Apache-2.0 */
#include "guests/sql/sql.h"

#include <criterion/criterion.h>

/* Fields with | between them, rows with / between them; "" marks what was quoted. */
static const struct {
    const char *text, *fields;
} cases[] = {
    { "", "" },
    { "a,b\n1,2\n", "a|b/1|2" },
    { "a,b\r\n1,2\r\n", "a|b/1|2" },
    { "a,b\n1,2", "a|b/1|2" },
    { "a\n\nb\n", "a//b" },
    { "a,\n", "a|" },
    { ",\n", "|" },
    { "a,", "a|" },
    { "\"a,b\",c\n", "\"a,b\"|c" },
    { "\"say \"\"hi\"\"\"\n", "\"say \"hi\"\"" },
    { "\"two\nlines\",x\n", "\"two\nlines\"|x" },
    { "\"\",x\n", "\"\"|x" },
    { "\"open", "\"open\"" },
    { "\"a\"b,c\n", "\"ab\"|c" },
    { "a\"b,c\n", "a\"b|c" },
    { "a;b\n1,5;2\n", "a|b/1,5|2" },
    { "a\tb\n1\t2\n", "a|b/1|2" },
    { "\xef\xbb\xbf"
      "a,b\n",
      "a|b" },
    { "a\rb,c\n", "a\rb|c" },
};

Test(csv, fields_and_rows_are_found)
{
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_buf got RT_CLEANUP(rt_buf_done) = { 0 };
        csv_reader r;
        rt_str field;
        bool is_quoted, is_first = true, was_over = true;
        csv_start(&r, rt_str_of(cases[i].text));
        while (csv_next(&r, &field, &is_quoted)) {
            if (!is_first)
                rt_buf_addc(&got, was_over ? '/' : '|');
            rt_buf_addf(&got, is_quoted ? "\"%.*s\"" : "%.*s", RT_FMT(field));
            is_first = false;
            was_over = r.is_row_over;
        }
        csv_done(&r);
        cr_expect(rt_str_eq_c(rt_buf_str(&got), cases[i].fields), "case %zu: '%.*s'", i,
                  RT_FMT(rt_buf_str(&got)));
    }
}
