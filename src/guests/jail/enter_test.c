/* SPDX-License-Identifier: Apache-2.0 */
/* What can be shown of it outside a cell: limits, the description, and a refusal at the first step.
 */
#include "base/json.h"
#include "guests/jail/jail.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

static bool is_at(int kind, rlim_t soft, rlim_t hard)
{
    struct rlimit now;
    return getrlimit((__rlimit_resource_t)kind, &now) == 0 && now.rlim_cur == soft &&
           now.rlim_max == hard;
}

Test(enter, limits_are_laid_on_and_nought_leaves_them)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit before, after;
        getrlimit(RLIMIT_NPROC, &before);
        if (!jail_limit(&(jail_limits){ .cpu_seconds = 5, .file_bytes = 4096, .descriptors = 64 },
                        NULL))
            _exit(1);
        getrlimit(RLIMIT_NPROC, &after);
        _exit(is_at(RLIMIT_CPU, 5, 6) && is_at(RLIMIT_FSIZE, 4096, 4096) &&
                      is_at(RLIMIT_NOFILE, 64, 64) && before.rlim_cur == after.rlim_cur
                  ? 0
                  : 2);
    }
    cr_expect_eq(status_of(pid), 0);
}

Test(enter, a_limit_never_rises)
{
    pid_t pid = fork();
    if (pid == 0) {
        bool ok = jail_limit(&(jail_limits){ .descriptors = 64 }, NULL) &&
                  jail_limit(&(jail_limits){ .descriptors = 1000 }, NULL);
        _exit(ok && is_at(RLIMIT_NOFILE, 64, 64) ? 0 : 1);
    }
    cr_expect_eq(status_of(pid), 0);
}

Test(enter, the_description_is_what_the_kernel_says)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char text[640];
    rt_json doc;
    rt_error err = { 0 };
    struct stat st;
    int64_t number = -1;
    jail_describe(text, sizeof(text), false);
    cr_assert(rt_json_parse(rt_str_of(text), &arena, &doc, &err), "%s: %s", err.text, text);
    cr_expect(rt_json_i64(rt_json_get_c(doc, "uid"), &number) && number == (int64_t)getuid());
    cr_expect(rt_json_i64(rt_json_get_c(doc, "pid"), &number) && number == getpid());
    cr_expect(!rt_json_bool(rt_json_get_c(doc, "landlock"), true));
    cr_assert_eq(stat("/proc/self/ns/net", &st), 0);
    cr_expect(rt_json_i64(rt_json_get_c(rt_json_get_c(doc, "ns"), "net"), &number) &&
              number == (int64_t)st.st_ino);
    cr_expect_eq(rt_json_count(rt_json_get_c(doc, "ns")), 7);
}

Test(enter, a_cell_that_is_none_is_refused_and_the_step_is_named)
{
    int fds[JAIL_FD_CGROUP + 1];
    rt_error err = { 0 };
    jail_order order = { .uid = 1000, .cgroup_count = 1, .workdir = "/" };
    for (size_t i = 0; i < RT_COUNT(fds); i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    cr_expect(!jail_enter(&order, fds, &err), "a cgroup that cannot be written to");
    cr_expect(strstr(err.text, "join the cgroups: write cgroup.procs"), "%s", err.text);
    for (size_t i = 0; i < RT_COUNT(fds); i++)
        close(fds[i]);
}
