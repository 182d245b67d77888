/*
 * gather.c - has a warmed process lie in memory so that copies of it are cheap.
 *
 * A fork copies the page tables of what the process has written to, an exit takes them down, entry
 * by entry: for an interpreter that is half the cost of a child. Where the same memory lies in huge
 * pages, one entry stands for 512. A child that writes to one splits the entry, not the page, and
 * copies 4 KB as ever.
 */
#include "guests/jail/jail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((uintptr_t)2 << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

typedef struct mapping {
    uintptr_t from, to;
    bool is_own; /* private, and no file's */
} mapping;

/* "from-to rwxp offset device inode      name" */
static bool read_mapping(const char *line, mapping *out)
{
    unsigned long from, to, inode;
    char mode[5];
    if (sscanf(line, "%lx-%lx %4s %*x %*s %lu", &from, &to, mode, &inode) != 4)
        return false;
    *out = (mapping){ .from = from, .to = to, .is_own = mode[3] == 'p' && inode == 0 };
    return true;
}

/* Where the kernel cannot or may not, all is as it was: nothing depends on it. */
static void collapse(const mapping *m)
{
    uintptr_t from = (m->from + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1), to = m->to & ~(HUGE_PAGE - 1);
    for (; from < to; from += HUGE_PAGE)
        madvise((void *)from, HUGE_PAGE, MADV_COLLAPSE);
}

void jail_gather(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char *text = NULL;
    size_t size = 0;
    mapping m;
    if (!maps)
        return;
    ssize_t n = getdelim(&text, &size, '\0', maps); /* whole: collapsing may change the map */
    fclose(maps);
    for (char *line = n > 0 ? text : NULL; line && *line; line = strchr(line, '\n') + 1)
        if (read_mapping(line, &m) && m.is_own)
            collapse(&m);
    free(text);
}
