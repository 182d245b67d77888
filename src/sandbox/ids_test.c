/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox_internal.h"

#include <criterion/criterion.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What `uid` would choose; asked in a child, because there is no way back from another user. */
static house_ids choose_as(uid_t uid)
{
    struct answer {
        house_ids ids;
        bool ok;
    } *answer =
        mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(answer, MAP_FAILED);
    pid_t pid = fork();
    if (pid == 0) {
        if (uid != geteuid() && setresuid(uid, uid, uid) != 0)
            _exit(1);
        answer->ok = sandbox_ids_choose(&answer->ids, &(rt_error){ 0 });
        _exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    cr_assert(status == 0 && answer->ok);
    house_ids ids = answer->ids;
    munmap(answer, sizeof(*answer));
    return ids;
}

Test(ids, root_takes_a_block_that_no_account_has)
{
    if (geteuid() != 0)
        cr_skip("needs root to be root");
    house_ids ids = choose_as(0);
    cr_expect_eq(ids.kind, IDS_RANGE);
    cr_expect(!ids.has_helper);
    cr_expect_eq(ids.host_first % HOUSE_IDS, 0);
    cr_expect_geq(ids.host_first, 0x70000000u);
    cr_expect_lt((uint64_t)ids.host_first + HOUSE_IDS, 0x80000000ull,
                 "ids above 2^31 confuse old tools");
}

Test(ids, a_user_without_a_subordinate_range_is_the_house_alone)
{
    uid_t uid = geteuid() == 0 ? 54321 : geteuid();
    house_ids ids = choose_as(uid);
    if (ids.kind == IDS_RANGE) /* this very user has one in /etc/subuid */
        cr_expect(ids.has_helper && uid != 54321);
    else
        cr_expect(ids.kind == IDS_SINGLE && ids.host_first == uid && !ids.has_helper);
}

Test(ids, a_process_that_is_gone_cannot_be_mapped)
{
    house_ids ids = { .kind = IDS_SINGLE, .host_first = geteuid() };
    rt_error err = { 0 };
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    cr_expect(!sandbox_ids_apply(&ids, pid, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND, "%s", err.text);
}
