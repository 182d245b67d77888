/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of plain files stand for the kernel's. What such files cannot show (that a written limit
 * holds, that rmdir works on a group with files in it) is shown end to end.
 */
#include "sandbox/sandbox_internal.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[] =
    "/tmp/retort-cgroup-XXXXXX"; /* each test has its own process, and its own copy */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void make_top(void)
{
    cr_assert_not_null(mkdtemp(top));
}

static void remove_top(void)
{
    nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *at(const char *path)
{
    static char full[4][2048];
    static unsigned turn;
    char *out = full[turn++ % 4];
    snprintf(out, sizeof(full[0]), "%s/%s", top, path);
    return out;
}

static void put_dir(const char *path)
{
    char part[2048];
    snprintf(part, sizeof(part), "%s", at(path));
    for (char *slash = part + strlen(top) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(part, 0755);
    }
    mkdir(part, 0755);
}

static void put(const char *path, const char *text)
{
    char dir[512];
    snprintf(dir, sizeof(dir), "%s", path);
    if (strrchr(dir, '/')) {
        *strrchr(dir, '/') = '\0';
        put_dir(dir);
    }
    int fd RT_CLEANUP(rt_closep) = open(at(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    cr_assert(fd >= 0 && rt_write_all(fd, rt_str_of(text), NULL), "%s", path);
}

static const char *text_of(const char *path)
{
    static char text[256];
    int fd RT_CLEANUP(rt_closep) = open(at(path), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void put_v2(const char *dir, const char *controllers, const char *procs)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/cgroup.controllers", dir);
    put(path, controllers);
    snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
    put(path, procs);
}

static bool find(const char *own, cgroup_tree *tree, rt_error *err)
{
    return sandbox_cgroup_find(top, own, "retort-7", tree, err);
}

static void expect_v2_at(const char *own, const char *dir)
{
    cgroup_tree tree;
    rt_error err = { 0 };
    cr_assert(find(own, &tree, &err), "%s", err.text);
    cr_expect_eq(tree.kind, CGROUP_V2);
    cr_expect_eq(tree.dir_count, 1);
    cr_expect_str_eq(tree.dirs[0], at(dir));
}

static void expect_nothing(const char *own)
{
    cgroup_tree tree = { .kind = CGROUP_V1 };
    rt_error err = { 0 };
    cr_expect(!find(own, &tree, &err));
    cr_expect_eq(err.code, RT_UNAVAILABLE);
    cr_expect(strstr(err.text, top), "the error names the place: %s", err.text);
    cr_expect_eq(tree.kind, CGROUP_NONE);
}

TestSuite(cgroup, .init = make_top, .fini = remove_top);

Test(cgroup, version_1_has_a_group_in_each_of_two_hierarchies)
{
    cgroup_tree tree;
    rt_error err = { 0 };
    put("memory/a/b/cgroup.procs", "1\n");
    put("pids/cgroup.procs", "1\n");
    cr_assert(find("5:pids:/\n4:memory:/a/b\n0::/\n", &tree, &err), "%s", err.text);
    cr_expect_eq(tree.kind, CGROUP_V1);
    cr_expect_eq(tree.dir_count, 2);
    cr_expect_str_eq(tree.dirs[0], at("memory/a/b/retort-7"));
    cr_expect_str_eq(tree.dirs[1], at("pids/retort-7"));
}

Test(cgroup, version_1_falls_back_to_the_top_when_our_own_group_is_not_there)
{
    cgroup_tree tree;
    rt_error err = { 0 };
    put("memory/cgroup.procs", "");
    put("pids/cgroup.procs", "");
    cr_assert(find("4:memory:/seen/only/by/the/host\n", &tree, &err), "%s", err.text);
    cr_expect_str_eq(tree.dirs[0], at("memory/retort-7"));
    cr_expect_str_eq(tree.dirs[1], at("pids/retort-7"));
}

Test(cgroup, version_1_needs_both_hierarchies)
{
    put("memory/cgroup.procs", "");
    expect_nothing("4:memory:/\n");
}

Test(cgroup, version_2_goes_above_our_own_group_because_it_has_processes)
{
    put_v2("", "cpu memory pids\n", "1\n");
    put_v2("user.slice", "memory pids\n", "");
    put_v2("user.slice/session.scope", "memory pids\n", "71\n72\n");
    expect_v2_at("0::/user.slice/session.scope\n", "user.slice/retort-7");
}

Test(cgroup, version_2_passes_over_a_parent_that_has_processes_too)
{
    put_v2("", "memory pids\n", "1\n");
    put_v2("busy", "memory pids\n", "9\n");
    put_v2("busy/own", "memory pids\n", "71\n");
    expect_v2_at("0::/busy/own\n", "retort-7");
}

Test(cgroup, the_top_of_version_2_may_hold_processes)
{
    put_v2("", "cpuset cpu io memory pids\n", "1\n2\n");
    expect_v2_at("0::/\n", "retort-7");
}

Test(cgroup, our_own_path_may_be_unknown)
{
    put_v2("", "memory pids\n", "");
    expect_v2_at("", "retort-7");
}

Test(cgroup, a_controller_is_a_word_and_not_a_part_of_one)
{
    put_v2("", "memory2 xpids cpu\n", "");
    expect_nothing("0::/\n");
    put("cgroup.controllers", "pids hugetlb memory"); /* first and last, no line end */
    expect_v2_at("0::/\n", "retort-7");
}

Test(cgroup, version_2_without_the_memory_controller_will_not_do)
{
    put_v2("", "cpu pids\n", "");
    expect_nothing("0::/\n");
}

Test(cgroup, a_hybrid_host_keeps_its_controllers_in_version_1)
{
    cgroup_tree tree;
    rt_error err = { 0 };
    put_v2("unified", "\n", "1\n");
    put("memory/cgroup.procs", "");
    put("pids/cgroup.procs", "");
    cr_assert(find("4:memory:/\n0::/\n", &tree, &err), "%s", err.text);
    cr_expect_eq(tree.kind, CGROUP_V1);
}

Test(cgroup, a_hybrid_host_may_keep_them_in_unified)
{
    put_v2("unified", "memory pids\n", "1\n");
    expect_v2_at("4:cpu:/\n0::/\n", "unified/retort-7");
}

Test(cgroup, a_host_with_nothing_is_told_so)
{
    expect_nothing("");
    expect_nothing("0::/\n");
    expect_nothing("no cgroups here, only words\n\n::\n");
}

Test(cgroup, what_cannot_be_written_is_not_used)
{
    put_v2("", "memory pids\n", "");
    put("memory/cgroup.procs", "");
    put("pids/cgroup.procs", "");
    cr_assert_eq(
        chmod(at("memory/cgroup.procs"), 0444) | chmod(at("memory"), 0555) | chmod(top, 0555), 0);
    /* Root may write everywhere, so ask as somebody else. */
    pid_t pid = fork();
    if (pid == 0) {
        cgroup_tree tree;
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(2);
        _exit(find("0::/\n4:memory:/\n", &tree, &(rt_error){ 0 }) ? 1 : 0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    chmod(top, 0755);
    chmod(at("memory"), 0755);
    cr_expect_eq(status, 0);
}

/* A directory whose name had to be shortened is another directory. */
Test(cgroup, a_path_too_long_to_hold_is_not_used_shortened)
{
    char own[700] = "0::", dir[700] = "";
    cgroup_tree tree;
    put_v2("", "cpu\n", "1\n");
    for (int i = 0; i < 12; i++) {
        snprintf(dir + strlen(dir), sizeof(dir) - strlen(dir), "%s%d23456789012345678901234567890",
                 i ? "/" : "", i % 10);
        put_v2(dir, "memory pids\n", "");
    }
    snprintf(own + 3, sizeof(own) - 3, "/%s\n", dir);
    if (!find(own, &tree, &(rt_error){ 0 }))
        return;
    char *slash = strrchr(tree.dirs[0], '/');
    cr_assert_str_eq(slash, "/retort-7");
    *slash = '\0';
    cr_expect_eq(access(tree.dirs[0], F_OK), 0, "%s does not exist", tree.dirs[0]);
}

/* ---- slots ---- */

static void put_v1_tree(cgroup_tree *tree)
{
    put_dir("memory");
    put_dir("pids");
    snprintf(tree->dirs[0], sizeof(tree->dirs[0]), "%s", at("memory/t"));
    snprintf(tree->dirs[1], sizeof(tree->dirs[1]), "%s", at("pids/t"));
}

static void close_slot(cgroup_slot *slot)
{
    int *all[] = { &slot->procs[0],      &slot->procs[1], &slot->memory_limit, &slot->memory_peak,
                   &slot->memory_events, &slot->pids_max, &slot->pids_events };
    for (size_t i = 0; i < RT_COUNT(all); i++)
        rt_closep(all[i]);
}

/* A slot of plain files, for limit and read. */
static cgroup_slot open_slot(void)
{
    cgroup_slot slot = { { -1, -1 }, -1, -1, -1, -1, -1 };
    put("limit", "");
    put("peak", "");
    put("events", "");
    put("max", "");
    put("pids", "");
    slot.memory_limit = open(at("limit"), O_RDWR | O_CLOEXEC);
    slot.memory_peak = open(at("peak"), O_RDWR | O_CLOEXEC);
    slot.memory_events = open(at("events"), O_RDONLY | O_CLOEXEC);
    slot.pids_max = open(at("max"), O_RDWR | O_CLOEXEC);
    slot.pids_events = open(at("pids"), O_RDONLY | O_CLOEXEC);
    return slot;
}

Test(cgroup, a_tree_is_made_once)
{
    cgroup_slot none;
    cgroup_tree tree = { .kind = CGROUP_V1, .dir_count = 2 };
    rt_error err = { 0 };
    put_v1_tree(&tree);
    cr_assert(sandbox_cgroup_make(&tree, 0, &none, &err), "%s", err.text);
    cr_expect(!sandbox_cgroup_make(&tree, 0, &none, &err));
    cr_expect_eq(err.code, RT_CONFLICT, "%s", err.text);
}

Test(cgroup, a_group_without_its_files_is_an_error_that_names_it)
{
    cgroup_slot slot;
    cgroup_tree tree = { .kind = CGROUP_V1, .dir_count = 2 };
    rt_error err = { 0 };
    put_v1_tree(&tree);
    cr_expect(!sandbox_cgroup_make(&tree, 3, &slot, &err));
    cr_expect(strstr(err.text, "memory/t/0"), "%s", err.text);
    cr_expect_eq(tree.slots, 1, "what was begun is known, so that it can be removed");
    close_slot(&slot);
}

Test(cgroup, version_2_switches_the_controllers_on)
{
    cgroup_slot none;
    cgroup_tree tree = { .kind = CGROUP_V2, .dir_count = 1 };
    rt_error err = { 0 };
    put("cgroup.subtree_control", "");
    snprintf(tree.dirs[0], sizeof(tree.dirs[0]), "%s", at("t"));
    cr_expect(!sandbox_cgroup_make(&tree, 1, &none, &err),
              "there is no control file in a plain directory");
    cr_expect(strstr(err.text, "t/cgroup.subtree_control"), "%s", err.text);
    cr_expect_str_eq(text_of("cgroup.subtree_control"), "+memory +pids");
}

Test(cgroup, a_limit_is_written_to_both_files_and_starts_the_peak_anew)
{
    cgroup_slot slot RT_CLEANUP(close_slot) = open_slot();
    rt_error err = { 0 };
    put("peak", "7");
    cr_assert(sandbox_cgroup_limit(&slot, UINT64_MAX, 64, &err), "%s", err.text);
    cr_expect_str_eq(text_of("limit"), "18446744073709551615");
    cr_expect_str_eq(text_of("max"), "64");
    cr_expect_str_eq(text_of("peak"), "0");
}

Test(cgroup, a_limit_that_cannot_be_written_is_an_error)
{
    cgroup_slot slot RT_CLEANUP(close_slot) = open_slot();
    rt_error err = { 0 };
    rt_closep(&slot.pids_max);
    cr_expect(!sandbox_cgroup_limit(&slot, 1 << 20, 64, &err));
    cr_expect_str_eq(err.text, "limit processes to 64: Bad file descriptor");
    rt_closep(&slot.memory_limit);
    cr_expect(!sandbox_cgroup_limit(&slot, 1 << 20, 64, &err));
    cr_expect_str_eq(err.text, "limit memory to 1048576 bytes: Bad file descriptor");
}

Test(cgroup, counters_are_read_by_name)
{
    cgroup_slot slot RT_CLEANUP(close_slot) = open_slot();
    cgroup_counts counts;
    put("peak", "123456\n");
    put("events", "low 0\noom 9\noom_kill_disable 3\noom_kill 2\n");
    put("pids", "max 5\n");
    sandbox_cgroup_read(&slot, &counts);
    cr_expect_eq(counts.peak_bytes, 123456);
    cr_expect_eq(counts.oom_kills, 2);
    cr_expect_eq(counts.pids_refused, 5);
}

Test(cgroup, counters_that_are_missing_or_senseless_are_zero)
{
    cgroup_slot slot RT_CLEANUP(close_slot) = open_slot();
    cgroup_counts counts = { 1, 1, 1 };
    put("events", "oom_kill\noom_killed 7\n");
    put("pids", "max\n\n\n");
    rt_closep(&slot.memory_peak);
    sandbox_cgroup_read(&slot, &counts);
    cr_expect_eq(counts.peak_bytes, 0);
    cr_expect_eq(counts.oom_kills, 0);
    cr_expect_eq(counts.pids_refused, 0);
}

Test(cgroup, a_process_joins_as_many_hierarchies_as_there_are)
{
    int fds[JAIL_CGROUPS_MAX];
    cgroup_slot both = { .procs = { 5, 6 } }, one = { .procs = { 5, -1 } },
                none = { .procs = { -1, -1 } };
    cr_expect_eq(sandbox_cgroup_procs(&both, fds), 2);
    cr_expect(fds[0] == 5 && fds[1] == 6);
    cr_expect_eq(sandbox_cgroup_procs(&one, fds), 1);
    cr_expect_eq(sandbox_cgroup_procs(&none, fds), 0);
}

Test(cgroup, removing_takes_every_slot_and_the_tree)
{
    cgroup_tree tree = { .kind = CGROUP_V1, .dir_count = 2, .slots = 3 };
    put_dir("memory/t/0");
    put_dir("memory/t/1");
    put_dir("memory/t/2");
    put_dir("pids/t/0");
    put_dir("pids/other");
    put_v1_tree(&tree);
    sandbox_cgroup_remove(&tree);
    cr_expect_neq(access(at("memory/t"), F_OK), 0);
    cr_expect_neq(access(at("pids/t"), F_OK), 0);
    cr_expect_eq(access(at("pids/other"), F_OK), 0);
    sandbox_cgroup_remove(&tree); /* "nothing" is accepted */
    sandbox_cgroup_remove(&(cgroup_tree){ 0 });
}

Test(cgroup, a_sweep_takes_what_the_dead_left_and_nothing_else)
{
    char living[64];
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    waitpid(dead, NULL, 0);
    char left[64];
    snprintf(left, sizeof(left), "memory/a/retort-%d/0", dead);
    snprintf(living, sizeof(living), "memory/a/retort-%d/0", getpid());
    put_dir(left);
    put_dir(living);
    put_dir("memory/retort-mine");
    put_dir("memory/retort-");
    put_dir("memory/.retort-2147483647");
    put_dir("memory/other/2147483647");
    sandbox_cgroup_sweep(top);
    *strrchr(left, '/') = '\0';
    cr_expect_neq(access(at(left), F_OK), 0);
    cr_expect_eq(access(at(living), F_OK), 0);
    cr_expect_eq(access(at("memory/retort-mine"), F_OK), 0);
    cr_expect_eq(access(at("memory/retort-"), F_OK), 0);
    cr_expect_eq(access(at("memory/.retort-2147483647"), F_OK), 0);
    cr_expect_eq(access(at("memory/other/2147483647"), F_OK), 0);
    sandbox_cgroup_sweep("/no/such/place");
}
