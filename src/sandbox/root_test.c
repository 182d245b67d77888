/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox_internal.h"

#include <criterion/criterion.h>
#include <limits.h>

static rt_code check(rt_str path)
{
    rt_error err = { 0 };
    bool ok = sandbox_root_check(path, &err);
    cr_expect_eq(ok, err.code == RT_OK);
    cr_expect(ok || rt_utf8_valid(rt_str_of(err.text)) || !rt_utf8_valid(path));
    return err.code;
}

static void expect_each(rt_code code, const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_expect_eq(check(rt_str_of(paths[i])), code, "%s", paths[i]);
}

Test(root, ordinary_absolute_paths_may_be_shown)
{
    static const char *const fine[] = {
        "/srv",     "/srv/data",     "/srv/data/", "/etc/ssl",      "/procfiles",     "/system/x",
        "/devices", "/workspace",    "/retort2",   "/srv/..data",   "/srv/a..b",      "/srv/...",
        "/tmp/x",   "/srv/ spaces ", "/a",         "/srv/\xC3\xA9", "/home/me/proc/1"
    };
    expect_each(RT_OK, fine, RT_COUNT(fine));
}

Test(root, a_path_is_absolute_and_below_the_top)
{
    static const char *const bad[] = { "", "/", "srv", "./srv", "../srv", "~", " /srv" };
    expect_each(RT_INVALID, bad, RT_COUNT(bad));
    cr_expect_eq(check((rt_str){ 0 }), RT_INVALID);
}

Test(root, a_nul_byte_cannot_hide_the_rest_of_a_path)
{
    cr_expect_eq(check(RT_STR("/srv\0/../proc")), RT_INVALID);
    cr_expect_eq(check(RT_STR("/srv/data\0")), RT_INVALID);
}

Test(root, a_path_does_not_climb)
{
    static const char *const bad[] = { "/srv/../proc", "/..",    "/srv/..",          "/srv/./x",
                                       "/./proc",      "/srv/.", "/../../etc/shadow" };
    expect_each(RT_DENIED, bad, RT_COUNT(bad));
}

Test(root, what_the_cell_has_of_its_own_is_not_covered_by_the_hosts)
{
    static const char *const bad[] = { "/proc",      "/proc/",       "/proc/1/root", "/sys",
                                       "/sys/fs",    "/dev",         "/dev/sda",     "/work",
                                       "/work/x",    "/retort",      "/retort/late", "/etc/passwd",
                                       "/etc/group", "/etc/passwd/", "/dev/shm" };
    expect_each(RT_DENIED, bad, RT_COUNT(bad));
}

/* mount(2) reads "//proc" as /proc. */
Test(root, doubled_slashes_do_not_hide_a_place)
{
    static const char *const bad[] = { "//proc", "//proc/1/root", "///sys", "/etc//passwd",
                                       "//dev//sda" };
    for (size_t i = 0; i < RT_COUNT(bad); i++)
        cr_expect_neq(check(rt_str_of(bad[i])), RT_OK, "%s", bad[i]);
}

Test(root, a_path_longer_than_the_kernel_takes_is_refused)
{
    static char path[3 * PATH_MAX];
    memset(path, 'x', sizeof(path));
    path[0] = '/';
    cr_expect_eq(check((rt_str){ path, sizeof(path) }), RT_INVALID);
    cr_expect_eq(check((rt_str){ path, PATH_MAX - 8 }), RT_INVALID);
    cr_expect_eq(check((rt_str){ path, PATH_MAX - 9 }), RT_OK);
}
