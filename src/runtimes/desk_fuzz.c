/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk_fuzz.c - whatever code says in the place of calls: no crash, no more calls under way than
 * may be, the desk gets only what is JSON, and so does the guest.
 *
 * The input is a list of frames, each behind a byte: below 128 the frame is as it comes, above it
 * begins as a call of this run does. Every other frame some answers are ready. desk.c is compiled
 * in here, with the cell's calls replaced.
 */
#include "runtimes/runtimes_internal.h"

#include <assert.h>

static void check_json(rt_str text)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc;
    rt_error err = { 0 };
    bool ok = rt_json_parse(text, &arena, &doc, &err);
    assert(ok && rt_json_type(doc) == RT_JSON_OBJECT);
}

static void fake_post(rt_cell *cell, rt_str json, int fd)
{
    (void)cell, (void)fd;
    check_json(json);
}

static bool fake_has_post(const rt_cell *cell)
{
    (void)cell;
    return false;
}

static void fake_attend(rt_cell *cell, int fd)
{
    (void)cell, (void)fd;
}

#define rt_cell_post                 fake_post
#define rt_cell_has_post             fake_has_post
#define rt_cell_attend               fake_attend
#define runtimes_is_call             fuzzed_is_call
#define runtimes_desk_take           fuzzed_desk_take
#define runtimes_desk_serve          fuzzed_desk_serve
#define runtimes_desk_deadline       fuzzed_desk_deadline
#define runtimes_desk_is_out_of_time fuzzed_desk_is_out_of_time
bool fuzzed_is_call(const progress *, rt_str);
void fuzzed_desk_take(progress *, rt_cell *, rt_str);
void fuzzed_desk_serve(progress *, rt_cell *);
uint64_t fuzzed_desk_deadline(progress *);
bool fuzzed_desk_is_out_of_time(progress *);
#include "runtimes/desk.c"

static struct {
    uint64_t numbers[RT_DESK_PENDING_MAX];
    size_t count;
    bool is_open;
} table;

static void take(rt_desk *self, const rt_desk_call *call)
{
    (void)self;
    assert(table.count < RT_DESK_PENDING_MAX && call->tool.len > 0);
    check_json(call->arguments);
    for (size_t i = 0; i < table.count; i++)
        assert(table.numbers[i] != call->number);
    table.numbers[table.count++] = call->number;
}

static bool next(rt_desk *self, rt_arena *arena, rt_desk_answer *out)
{
    (void)self, (void)arena;
    if (!table.is_open || table.count == 0)
        return false;
    uint64_t number = table.numbers[--table.count];
    *out = number % 2 ? (rt_desk_answer){ .number = number, .value = RT_STR("[1]") }
                      : (rt_desk_answer){ .number = number, .is_error = true };
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_desk desk = { .fd = -1, .take = take, .next = next, .servers = RT_STR("[]") };
    rt_run run = { .policy = rt_policy_preset(RT_STR("default")), .desk = &desk };
    progress p = { .run = &run, .arena = &arena, .id = 1, .deadline_ns = 1 };
    table.count = 0;
    for (size_t at = 0, n; at + 2 <= size; at += 2 + n) {
        n = RT_MIN((size_t)data[at + 1], size - at - 2);
        rt_buf frame RT_CLEANUP(rt_buf_done) = { 0 };
        if (data[at] >= 128)
            rt_buf_addf(&frame, "{\"op\":\"call\",\"id\":1,\"call\":%u,", data[at] - 128u);
        rt_buf_add(&frame, (rt_str){ (const char *)data + at + 2, n });
        if (runtimes_is_call(&p, rt_buf_str(&frame)))
            runtimes_desk_take(&p, NULL, rt_buf_str(&frame));
        assert(p.calls.count == table.count);
        table.is_open = data[at] % 2;
        runtimes_desk_serve(&p, NULL);
        runtimes_desk_deadline(&p);
    }
    return 0;
}
