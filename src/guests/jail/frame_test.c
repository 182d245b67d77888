/* SPDX-License-Identifier: Apache-2.0 */
#include "guests/jail/jail.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct wire {
    int a, b;
} wire;

static wire open_wire(int type)
{
    int ends[2];
    cr_assert_eq(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
    return (wire){ ends[0], ends[1] };
}

static void close_wire(wire *w)
{
    if (w->a >= 0)
        close(w->a);
    if (w->b >= 0)
        close(w->b);
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

#define WIRE(name, type) wire name RT_CLEANUP(close_wire) = open_wire(type)

Test(frame, what_is_sent_arrives)
{
    WIRE(w, SOCK_STREAM);
    jail_frame got RT_CLEANUP(jail_frame_done) = { 0 };
    rt_error err = { 0 };
    cr_assert(jail_frame_send(w.a, "{\"a\":\0\"}", 8, NULL, 0, &err), "%s", err.text);
    cr_assert(jail_frame_send(w.a, "", 0, NULL, 0, &err), "%s", err.text);
    cr_assert(jail_frame_recv(w.b, 100, &got, &err), "%s", err.text);
    cr_expect(got.len == 8 && memcmp(got.data, "{\"a\":\0\"}", 9) == 0, "with a NUL behind it");
    jail_frame_done(&got);
    cr_assert(jail_frame_recv(w.b, 100, &got, &err), "%s", err.text);
    cr_expect(got.len == 0 && got.data[0] == '\0');
}

enum { MUCH = 3 << 20 };

static void *send_much(void *fd)
{
    char *text = malloc(MUCH);
    memset(text, 'x', MUCH);
    jail_frame_send(*(int *)fd, text, MUCH, NULL, 0, NULL);
    free(text);
    return NULL;
}

Test(frame, a_long_one_arrives_in_pieces_and_whole)
{
    WIRE(w, SOCK_STREAM);
    jail_frame got RT_CLEANUP(jail_frame_done) = { 0 };
    pthread_t sender;
    pthread_create(&sender, NULL, send_much, &w.a);
    cr_assert(jail_frame_recv(w.b, MUCH, &got, &(rt_error){ 0 }));
    pthread_join(sender, NULL);
    cr_expect(got.len == MUCH && got.data[0] == 'x' && got.data[MUCH - 1] == 'x');
}

Test(frame, the_length_may_come_byte_by_byte)
{
    WIRE(w, SOCK_STREAM);
    jail_frame got RT_CLEANUP(jail_frame_done) = { 0 };
    pid_t pid = fork();
    if (pid == 0) {
        static const char words[] = "\x02\0\0\0ok";
        for (size_t i = 0; i < sizeof(words) - 1; i++) {
            (void)!write(w.a, words + i, 1);
            usleep(1000);
        }
        _exit(0);
    }
    close(w.a);
    w.a = -1;
    cr_assert(jail_frame_recv(w.b, 100, &got, &(rt_error){ 0 }));
    cr_expect_str_eq(got.data, "ok");
}

Test(frame, one_longer_than_allowed_is_refused_before_it_is_read)
{
    WIRE(w, SOCK_STREAM);
    jail_frame got = { 0 };
    rt_error err = { 0 };
    cr_assert_eq(write(w.a, "\xff\xff\xff\xff", 4), 4);
    cr_expect(!jail_frame_recv(w.b, 1000, &got, &err));
    cr_expect_eq(err.code, RT_LIMIT);
    cr_expect_null(got.data);
    cr_expect(!jail_frame_send(w.a, "", (size_t)JAIL_FRAME_MAX + 1, NULL, 0, &err));
    cr_expect_eq(err.code, RT_LIMIT);
}

Test(frame, the_end_is_told_from_a_failure)
{
    jail_frame got = { 0 };
    rt_error err = { 0 };
    WIRE(w, SOCK_STREAM);
    close(w.a);
    w.a = -1;
    cr_expect(!jail_frame_recv(w.b, 100, &got, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
    cr_expect(!jail_frame_recv(-1, 100, &got, &err));
    cr_expect_eq(err.sys_errno, EBADF);
}

Test(frame, an_end_in_the_middle_gives_nothing)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cuts[] = { { "\x05", 1 }, { "\x05\0\0", 3 }, { "\x05\0\0\0", 4 }, { "\x05\0\0\0four", 8 } };
    for (size_t i = 0; i < RT_COUNT(cuts); i++) {
        WIRE(w, SOCK_STREAM);
        jail_frame got = { 0 };
        rt_error err = { 0 };
        cr_assert_eq(write(w.a, cuts[i].bytes, cuts[i].len), (ssize_t)cuts[i].len);
        close(w.a);
        w.a = -1;
        cr_expect(!jail_frame_recv(w.b, 100, &got, &err));
        cr_expect_eq(err.code, RT_NOT_FOUND, "%s", err.text);
        cr_expect_null(got.data);
    }
}

Test(frame, speaking_to_nobody_is_an_error_and_no_signal)
{
    WIRE(w, SOCK_STREAM);
    rt_error err = { 0 };
    close(w.b);
    w.b = -1;
    cr_expect(!jail_frame_send(w.a, "x", 1, NULL, 0, &err));
    cr_expect_eq(err.sys_errno, EPIPE);
}

Test(frame, descriptors_ride_on_it_and_are_closed_with_it)
{
    unsigned before = open_descriptors();
    {
        WIRE(w, SOCK_STREAM);
        jail_frame got RT_CLEANUP(jail_frame_done) = { 0 };
        int fds[] = { 0, 1, 2 };
        cr_assert(jail_frame_send(w.a, "{}", 2, fds, 3, NULL));
        cr_assert(jail_frame_recv(w.b, 100, &got, &(rt_error){ 0 }));
        cr_assert_eq(got.fd_count, 3);
        for (size_t i = 0; i < 3; i++)
            cr_expect(fcntl(got.fds[i], F_GETFD) & FD_CLOEXEC,
                      "a program we start must not inherit it");
    }
    cr_expect_eq(open_descriptors(), before);
}

Test(frame, descriptors_nobody_asked_for_are_closed)
{
    unsigned before = open_descriptors();
    {
        WIRE(w, SOCK_SEQPACKET);
        int many[16] = { 0 }, got[2], byte = 0;
        size_t count;
        cr_expect_eq(jail_packet_send(w.a, "x", 1, many, 16), 1);
        cr_expect_eq(jail_packet_recv(w.b, &byte, 1, got, 2, &count, 0), 1);
        cr_assert_eq(count, 2);
        close(got[0]);
        close(got[1]);
        cr_expect_eq(jail_packet_send(w.a, "x", 1, many, 16), 1);
        cr_expect_eq(jail_packet_recv(w.b, &byte, 1, NULL, 0, &count, 0), 1);
        cr_expect_eq(count, 0);
        cr_expect_eq(jail_packet_send(w.a, "x", 1, many, 17), -1, "more than a packet carries");
        cr_expect_eq(errno, EINVAL);
    }
    cr_expect_eq(open_descriptors(), before);
}

Test(frame, descriptors_of_a_frame_that_is_refused_are_closed)
{
    unsigned before = open_descriptors();
    {
        WIRE(w, SOCK_STREAM);
        jail_frame got = { 0 };
        int fds[] = { 0, 1 };
        cr_assert(jail_frame_send(w.a, "0123456789", 10, fds, 2, NULL));
        cr_expect(!jail_frame_recv(w.b, 5, &got, &(rt_error){ 0 }));
        cr_expect_eq(got.fd_count, 0);
    }
    cr_expect_eq(open_descriptors(), before);
}

/* ---- a reader ---- */

static void expect_next(jail_reader *r, const char *text, size_t fd_count)
{
    jail_frame got RT_CLEANUP(jail_frame_done) = { 0 };
    rt_error err = { 0 };
    cr_assert(jail_reader_next(r, 10000, &got, &err), "%s", err.text);
    cr_expect_str_eq(got.data, text);
    cr_expect_eq(got.fd_count, fd_count);
}

Test(frame, a_reader_takes_several_at_a_time_and_gives_them_one_by_one)
{
    WIRE(w, SOCK_STREAM);
    jail_reader r = { .fd = w.b };
    rt_error err = { 0 };
    cr_expect(!jail_reader_is_ready(&r));
    for (int i = 0; i < 3; i++)
        cr_assert(jail_frame_send(w.a, "abc", (size_t)(i + 1), NULL, 0, &err), "%s", err.text);
    cr_expect(jail_reader_is_ready(&r) && !jail_reader_has_more(&r));
    expect_next(&r, "a", 0);
    cr_expect(jail_reader_is_ready(&r) && jail_reader_has_more(&r));
    expect_next(&r, "ab", 0);
    expect_next(&r, "abc", 0);
    cr_expect(!jail_reader_is_ready(&r) && !jail_reader_has_more(&r));
}

Test(frame, a_reader_gives_descriptors_to_the_frame_they_came_with)
{
    WIRE(w, SOCK_STREAM);
    jail_reader r = { .fd = w.b };
    unsigned before = open_descriptors();
    int two[] = { w.a, w.b };
    jail_frame_send(w.a, "none", 4, NULL, 0, NULL);
    jail_frame_send(w.a, "two", 3, two, 2, NULL);
    jail_frame_send(w.a, "none", 4, NULL, 0, NULL);
    jail_frame_send(w.a, "one", 3, two, 1, NULL);
    jail_frame_send(w.a, "one", 3, two, 1, NULL);
    expect_next(&r, "none", 0);
    expect_next(&r, "two", 2);
    expect_next(&r, "none", 0);
    expect_next(&r, "one", 1);
    expect_next(&r, "one", 1);
    cr_expect_eq(open_descriptors(), before);
}

Test(frame, a_reader_gets_a_long_one_whole_and_what_follows_it)
{
    WIRE(w, SOCK_STREAM);
    jail_reader r = { .fd = w.b };
    jail_frame got RT_CLEANUP(jail_frame_done) = { 0 };
    static char text[100000];
    memset(text, 'y', sizeof(text));
    jail_frame_send(w.a, "short", 5, NULL, 0, NULL);
    jail_frame_send(w.a, text, sizeof(text), &w.a, 1, NULL);
    jail_frame_send(w.a, "short", 5, NULL, 0, NULL);
    expect_next(&r, "short", 0);
    cr_assert(jail_reader_next(&r, sizeof(text), &got, NULL));
    cr_expect(got.len == sizeof(text) && memcmp(got.data, text, sizeof(text)) == 0);
    cr_expect_eq(got.fd_count, 1);
    expect_next(&r, "short", 0);
}

Test(frame, a_reader_may_get_everything_byte_by_byte)
{
    WIRE(w, SOCK_STREAM);
    jail_reader r = { .fd = w.b, .step = 1 };
    jail_frame_send(w.a, "first", 5, NULL, 0, NULL);
    jail_frame_send(w.a, "second", 6, &w.a, 1, NULL);
    expect_next(&r, "first", 0);
    expect_next(&r, "second", 1);
}

static void ignore(int signal)
{
    (void)signal;
}

Test(frame, a_signal_ends_the_waiting_of_a_reader)
{
    WIRE(w, SOCK_STREAM);
    jail_reader r = { .fd = w.b };
    jail_frame got;
    rt_error err = { 0 };
    struct sigaction action = { .sa_handler = ignore };
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 20000 }, { 0, 20000 } }, NULL);
    cr_expect(!jail_reader_next(&r, 100, &got, &err));
    cr_expect_eq(err.sys_errno, EINTR);
    setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
    jail_frame_send(w.a, "x", 1, NULL, 0, NULL);
    expect_next(&r, "x", 0);
}

Test(frame, packets_keep_their_bounds)
{
    WIRE(w, SOCK_SEQPACKET);
    char got[8];
    size_t count = 9;
    jail_packet_send(w.a, "one", 3, NULL, 0);
    jail_packet_send(w.a, "three", 5, NULL, 0);
    cr_expect_eq(jail_packet_recv(w.b, got, sizeof(got), NULL, 0, &count, 0), 3);
    cr_expect_eq(count, 0);
    cr_expect_eq(jail_packet_recv(w.b, got, 2, NULL, 0, &count, 0), 2,
                 "what does not fit is dropped");
    cr_expect_eq(jail_packet_recv(w.b, got, sizeof(got), NULL, 0, &count, MSG_DONTWAIT), -1);
    cr_expect_eq(errno, EAGAIN);
}

Test(frame, who_leaves_goes_when_nobody_listens_any_more)
{
    int pair[2], status = -1;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    pid_t pid = jail_clone(0);
    if (pid == 0) {
        close(pair[0]);
        jail_leave(pair[1], 7);
    }
    close(pair[1]);
    cr_assert_eq(write(pair[0], "late", 4), 4);
    cr_expect_eq(waitpid(pid, &status, WNOHANG), 0, "it has left while somebody listened");
    close(pair[0]);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}
