/*
 * nursery.c - the nursery as a program of its own: small, so that what it forks is small too.
 *
 *     retort-nursery [READ-PATH...]        with its orders on descriptor 3
 *
 * Started by a nursery that has built its root (sandbox/nursery.c). It is also every cell's first
 * process, which it forks.
 */
#include <fcntl.h>

#include "sandbox/sandbox_internal.h"

#define ORDERS_FD 3

int main(int argc, char **argv)
{
    root_plan plan = { .read_paths = (const char *const *)argv + 1,
                       .read_path_count = argc > 1 ? (size_t)argc - 1 : 0 };
    fcntl(ORDERS_FD, F_SETFD, FD_CLOEXEC);
    sandbox_nursery_serve(ORDERS_FD, &plan);
}
