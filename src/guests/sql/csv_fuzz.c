/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv_fuzz.c - any text is some table: reading ends, and no field lies outside the text.
 */
#include "guests/sql/sql.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_str text = { (const char *)data, size }, field;
    csv_reader r;
    bool is_quoted;
    size_t fields = 0;
    csv_start(&r, text);
    while (csv_next(&r, &field, &is_quoted)) {
        size_t total = 0;
        for (size_t i = 0; i < field.len; i++)
            total += (unsigned char)field.ptr[i];
        assert(field.len <= size && total <= size * 255);
        assert(++fields <= size + 1);
    }
    csv_done(&r);
    return 0;
}
