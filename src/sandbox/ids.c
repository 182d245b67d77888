/*
 * ids.c - the user and group ids of the house.
 *
 * As root we take a block of ids that no account has; as an ordinary user we take the block that
 * /etc/subuid grants (newuidmap writes it for us); where neither can be had, the house is the user
 * alone, and the attestation says so. Cells get ids of their own within the house.
 */
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT_FIRST_ID 0x70000000u /* above what accounts, subuid and systemd hand out */
#define ROOT_BLOCKS   1024u

/* "name:first:count" or "uid:first:count", a block big enough for the house. */
static bool find_sub_range(const char *file, const char *name, uint32_t *first)
{
    char text[8192], uid[16];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    snprintf(uid, sizeof(uid), "%u", getuid());
    rt_str rest = rt_str_of(text), line;
    while (rt_str_cut(&rest, '\n', &line)) {
        rt_str who, from, count;
        uint64_t a, b;
        if (rt_str_cut(&line, ':', &who) && rt_str_cut(&line, ':', &from) &&
            rt_str_cut(&line, ':', &count) && (rt_str_eq_c(who, name) || rt_str_eq_c(who, uid)) &&
            rt_str_to_u64(from, &a) && rt_str_to_u64(count, &b) && b >= HOUSE_IDS &&
            a <= UINT32_MAX) {
            *first = (uint32_t)a;
            return true;
        }
    }
    return false;
}

static bool is_program(const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/usr/bin/%s", name);
    return access(path, X_OK) == 0;
}

bool sandbox_ids_choose(house_ids *out, rt_error *err)
{
    (void)err;
    if (geteuid() == 0) {
        uint32_t block = (uint32_t)getpid() % ROOT_BLOCKS;
        *out = (house_ids){ .kind = IDS_RANGE, .host_first = ROOT_FIRST_ID + block * HOUSE_IDS };
        return true;
    }
    struct passwd *me = getpwuid(getuid());
    uint32_t users, groups;
    if (me && is_program("newuidmap") && is_program("newgidmap") &&
        find_sub_range("/etc/subuid", me->pw_name, &users) &&
        find_sub_range("/etc/subgid", me->pw_name, &groups) && users == groups) {
        *out = (house_ids){ .kind = IDS_RANGE, .host_first = users, .has_helper = true };
        return true;
    }
    *out = (house_ids){ .kind = IDS_SINGLE, .host_first = geteuid() };
    return true;
}

static bool run_helper(const char *program, pid_t pid, const house_ids *ids, rt_error *err)
{
    char who[16], first[16], count[16];
    snprintf(who, sizeof(who), "%d", pid);
    snprintf(first, sizeof(first), "%u", ids->host_first);
    snprintf(count, sizeof(count), "%u", HOUSE_IDS);
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, who, "0", first, count, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        return rt_fail(err, RT_UNAVAILABLE, "%s could not map the ids of /etc/subuid", program);
    return true;
}

bool sandbox_ids_apply(const house_ids *ids, pid_t house, rt_error *err)
{
    char map[64];
    unsigned count = ids->kind == IDS_RANGE ? HOUSE_IDS : 1;
    if (ids->has_helper)
        return run_helper("/usr/bin/newuidmap", house, ids, err) &&
               run_helper("/usr/bin/newgidmap", house, ids, err);
    snprintf(map, sizeof(map), "0 %u %u\n", ids->host_first, count);
    if (!sandbox_ids_write(house, "uid_map", map, err))
        return false;
    if (ids->kind == IDS_SINGLE) {
        /* The kernel wants this before an unprivileged group map. */
        if (!sandbox_ids_write(house, "setgroups", "deny", err))
            return false;
        snprintf(map, sizeof(map), "0 %u 1\n", getegid());
    }
    return sandbox_ids_write(house, "gid_map", map, err);
}
