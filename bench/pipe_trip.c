/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe_trip.c - one byte to another process and back over two pipes: microseconds, the median.
 * Both share a core, where it is quickest: on two, the cores' sleep would be measured.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TRIPS = 20000 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void echo(int in, int out)
{
    char byte;
    while (read(in, &byte, 1) == 1)
        if (write(out, &byte, 1) != 1)
            break;
    _exit(0);
}

int main(void)
{
    static double took[TRIPS];
    int there[2], back[2];
    char byte = 'x';
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0 || pipe(there) != 0 || pipe(back) != 0)
        return 1;
    if (fork() == 0) {
        close(there[1]);
        echo(there[0], back[1]);
    }
    for (int i = 0; i < TRIPS; i++) {
        double began = now_us();
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            return 1;
        took[i] = now_us() - began;
    }
    qsort(took, TRIPS, sizeof(took[0]), by_size);
    printf("%.3f\n", took[TRIPS / 2]);
    return 0;
}
