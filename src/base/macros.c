/* SPDX-License-Identifier: Apache-2.0 */
/*
 * macros.c - the two functions that RT_CLEANUP is used with most.
 */
#include "base/macros.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void rt_closep(int *fd)
{
    /* Cleanup runs after the return value was computed, but callers may still look at errno. */
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

void rt_freep(void *pointer)
{
    /* `pointer` is a T ** for some T; memcpy reads it without claiming to know which. */
    void *block;
    memcpy(&block, pointer, sizeof(block));
    free(block);
    memset(pointer, 0, sizeof(block));
}
