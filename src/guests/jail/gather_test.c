#include <criterion/criterion.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guests/jail/jail.h"

#define SIZE ((size_t)6 << 20)

static unsigned char expected(size_t i)
{
    return (unsigned char)(i * 31 >> 7);
}

Test(gather, memory_says_what_it_said_and_can_be_written)
{
    unsigned char *own =
        mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(own, MAP_FAILED);
    for (size_t i = 0; i < SIZE; i++)
        own[i] = expected(i);
    cr_assert_eq(mprotect(own + SIZE / 2, 4096, PROT_READ), 0); /* several mappings, not one */
    jail_gather();
    size_t wrong = 0;
    for (size_t i = 0; i < SIZE; i++)
        wrong += own[i] != expected(i);
    cr_expect_eq(wrong, 0);
    memset(own, 7, SIZE / 2);
    cr_expect_eq(own[SIZE / 2 - 1], 7);
    cr_expect_eq(own[SIZE / 2], expected(SIZE / 2));
}

Test(gather, memory_that_is_shared_stays_shared)
{
    char *shared = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(shared, MAP_FAILED);
    memset(shared, 1, SIZE);
    jail_gather();
    pid_t pid = jail_clone(0);
    if (pid == 0) {
        shared[SIZE - 1] = 2;
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_expect_eq(shared[SIZE - 1], 2);
}
