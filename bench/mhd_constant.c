/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mhd_constant.c - the limit of our HTTP library: it takes a body, throws it away, and answers a
 * constant of the size given.
 *
 *     build/mhd-constant 1008            prints its port, ends with its standard input
 *
 * epoll, one thread a core, the library's shortcuts on: the fastest it has.
 */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX (1u << 20)

static struct MHD_Response *constant;

static enum MHD_Result answer(void *self, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **state)
{
    (void)self, (void)url, (void)method, (void)version, (void)data;
    if (!*state || *size > 0) { /* the headers are there, or a part of the body */
        *state = constant;
        *size = 0;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, constant);
}

int main(int argc, char **argv)
{
    char byte, text[ANSWER_MAX];
    size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    if (size > sizeof(text))
        return 2;
    memset(text, 'x', size);
    constant = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(constant, "Content-Type", "application/json; charset=utf-8");
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO, 0, NULL, NULL, answer, NULL,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)sysconf(_SC_NPROCESSORS_ONLN), MHD_OPTION_END);
    if (!daemon)
        return perror("start the server"), 1;
    printf("%u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    MHD_stop_daemon(daemon);
    MHD_destroy_response(constant);
    return 0;
}
