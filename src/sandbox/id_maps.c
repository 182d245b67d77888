/*
 * id_maps.c - writes the id maps of a new process; apart from ids.c because nurseries, which know
 * nothing of the host's users, do it too.
 */
#include "sandbox/sandbox_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool sandbox_ids_write(pid_t pid, const char *file, const char *text, rt_error *err)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
    int fd RT_CLEANUP(rt_closep) = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return rt_fail_errno(err, "write %s", path);
    return true;
}
