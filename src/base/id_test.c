/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include <criterion/criterion.h>

#include <sys/wait.h>
#include <unistd.h>

Test(id, hex_is_lower_case_and_terminated)
{
    char out[9];
    rt_hex(out, "\x00\x0F\xA5\xFF", 4);
    cr_expect_str_eq(out, "000fa5ff");
}

Test(id, ids_have_three_parts_and_differ)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str a = rt_id_new("run", &arena), b = rt_id_new("run", &arena);
    cr_expect(!rt_str_eq(a, b));
    rt_str rest = a, prefix, time, random;
    uint64_t ms;
    cr_expect(rt_str_cut(&rest, '_', &prefix) && rt_str_eq(prefix, RT_STR("run")));
    cr_expect(rt_str_cut(&rest, '_', &time) && rt_str_to_u64(time, &ms));
    cr_expect(rt_str_cut(&rest, '_', &random) && random.len == 16);
    cr_expect_null(rest.ptr);
}

Test(id, random_bytes_fill_the_whole_block)
{
    uint8_t block[4096] = { 0 };
    rt_random_bytes(block, sizeof(block));
    size_t zeros = 0;
    for (size_t i = 0; i < sizeof(block); i++)
        zeros += block[i] == 0;
    cr_expect_lt(zeros, 100);
    rt_random_bytes(block, 0);
}

Test(id, names_differ_from_thread_to_process)
{
    uint64_t mine[2], theirs;
    int ends[2];
    rt_random_name(mine, sizeof(mine));
    cr_assert_neq(mine[0], mine[1]);
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        rt_random_name(&theirs, sizeof(theirs));
        _exit(write(ends[1], &theirs, sizeof(theirs)) == sizeof(theirs) ? 0 : 1);
    }
    cr_assert_eq(read(ends[0], &theirs, sizeof(theirs)), (ssize_t)sizeof(theirs));
    waitpid(child, NULL, 0);
    rt_random_name(mine, sizeof(mine[0]));
    cr_assert_neq(mine[0], theirs, "a fork must not draw from its parent's stock");
}

Test(id, a_uuid_says_which_kind_it_is)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str one = rt_uuid_new(&arena), other = rt_uuid_new(&arena);
    cr_assert_eq(one.len, 36u);
    cr_expect_eq(one.ptr[8], '-');
    cr_expect_eq(one.ptr[14], '4');
    cr_expect(strchr("89ab", one.ptr[19]));
    cr_expect(!rt_str_eq(one, other));
}
