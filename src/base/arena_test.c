/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <criterion/criterion.h>
#include <signal.h>

Test(arena, gives_zeroed_aligned_memory_that_stays)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *blocks[2000];
    for (size_t i = 0; i < RT_COUNT(blocks); i++) {
        size_t size = i * 7 % 900;
        blocks[i] = rt_arena_alloc(&arena, size);
        cr_assert_eq((uintptr_t)blocks[i] % RT_ARENA_ALIGN, 0);
        for (size_t b = 0; b < size; b++)
            cr_assert_eq(blocks[i][b], 0);
        memset(blocks[i], (int)(i % 251), size);
    }
    for (size_t i = 0; i < RT_COUNT(blocks); i++)
        for (size_t b = 0; b < i * 7 % 900; b++)
            cr_assert_eq((unsigned char)blocks[i][b], i % 251);
}

Test(arena, a_big_request_does_not_waste_the_current_chunk)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *before = rt_arena_alloc(&arena, 16);
    memset(rt_arena_alloc_raw(&arena, 10 << 20), 1, 10 << 20);
    char *after = rt_arena_alloc(&arena, 16);
    cr_expect_eq(after - before, 16);
}

Test(arena, resizing_keeps_what_was_there)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *text = NULL;
    size_t size = 0;
    for (size_t next = 10; next < 3000000; next = next * 3 / 2) {
        text = rt_arena_resize(&arena, text, size, next);
        for (size_t i = 0; i < size; i += 97)
            cr_assert_eq(text[i], (char)i);
        for (size_t i = 0; i < next; i++)
            text[i] = (char)i;
        size = next;
        if (next % 2)
            rt_arena_alloc(&arena, 1); /* so that it is not always the latest */
    }
    char *smaller = rt_arena_resize(&arena, text, size, 5);
    cr_expect_eq(smaller[4], 4);
}

Test(arena, the_latest_block_grows_in_place)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *text = rt_arena_alloc_raw(&arena, 20);
    cr_expect_eq(rt_arena_resize(&arena, text, 20, 400), text);
    cr_expect_eq(rt_arena_resize(&arena, text, 400, 20), text);
    cr_expect_eq((char *)rt_arena_alloc_raw(&arena, 1) - text, 32);
}

Test(arena, copies_are_terminated)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    cr_expect_str_eq(rt_arena_copy(&arena, (rt_str){ "hello", 4 }), "hell");
    cr_expect_str_eq(rt_arena_copy(&arena, (rt_str){ NULL, 0 }), "");
    rt_str text = rt_arena_printf(&arena, "%s-%d", "x", 42);
    cr_expect_str_eq(text.ptr, "x-42");
    cr_expect_eq(text.len, 4);
    cr_expect_eq(rt_arena_str(&arena, RT_STR("a\0b")).len, 3);
}

Test(arena, can_be_used_again_after_reset_and_done)
{
    rt_arena arena = { 0 };
    rt_arena_reset(&arena);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++)
            memset(rt_arena_alloc(&arena, 5000), 1, 5000);
        rt_arena_reset(&arena);
        cr_expect_eq(((char *)rt_arena_alloc(&arena, 8))[7], 0);
    }
    rt_arena_done(&arena);
    rt_arena_done(&arena);
    cr_expect_null(arena.chunk);
}

Test(arena, an_impossible_request_aborts, .signal = SIGABRT)
{
    rt_arena arena = { 0 };
    volatile size_t size = SIZE_MAX - 8;
    rt_arena_alloc(&arena, size);
}
