/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retort_fork.c - preloaded into Node.js: remembers what its libraries want done in a forked child.
 *
 * libuv and OpenSSL register handlers with pthread_atfork(), which fork() runs. A branch of a
 * session is made by a bare clone(), from outside; it asks for the handlers here. Without them
 * libuv would wait for a thread pool that only its parent has.
 */
#include <dlfcn.h>
#include <stddef.h>

#define HANDLERS_MAX 64

static void (*handlers[HANDLERS_MAX])(void);
static size_t handler_count;

/* What pthread_atfork() calls; every libc since 2003 has it. */
__attribute__((visibility("default"))) int
__register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso)
{
    int (*real)(void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "__register_atfork");
    if (child && handler_count < HANDLERS_MAX)
        handlers[handler_count++] = child;
    return real ? real(prepare, parent, child, dso) : 0;
}

__attribute__((visibility("default"))) void retort_run_fork_handlers(void)
{
    for (size_t i = 0; i < handler_count; i++) /* as fork() does: in the order of registration */
        handlers[i]();
}
