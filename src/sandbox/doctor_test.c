/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox_internal.h"

#include <criterion/criterion.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whatever the host has: the first wrong line, or -1. */
static int first_wrong(void)
{
    rt_layer layers[16];
    memset(layers, '#', sizeof(layers));
    size_t count = rt_sandbox_examine(layers, RT_COUNT(layers));
    for (size_t i = 0; i < count; i++) {
        const rt_layer *l = &layers[i];
        bool is_whole = memchr(l->detail, '\0', sizeof(l->detail)) &&
                        memchr(l->fix, '\0', sizeof(l->fix)) &&
                        strlen(l->fix) + 1 < sizeof(l->fix) && rt_utf8_valid(rt_str_of(l->fix));
        if (!is_whole || !l->name[0] || !l->detail[0] ||
            (l->state == RT_LAYER_OK) != (l->fix[0] == '\0'))
            return (int)i;
    }
    return count >= 7 ? -1 : 99;
}

Test(doctor, each_line_says_what_there_is_and_how_to_mend_what_is_not)
{
    cr_expect_eq(first_wrong(), -1);
}

Test(doctor, somebody_without_any_right_gets_an_answer_too)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(50);
        int wrong = first_wrong();
        _exit(wrong < 0 ? 0 : wrong + 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    cr_expect_eq(status, 0, "line %d", WEXITSTATUS(status) - 1);
}

Test(doctor, no_more_lines_are_written_than_there_is_room_for)
{
    rt_layer layers[2];
    memset(layers, 0, sizeof(layers));
    cr_expect_eq(rt_sandbox_examine(layers, 1), 1);
    cr_expect_null(layers[1].name);
    cr_expect_eq(rt_sandbox_examine(layers, 0), 0);
}
