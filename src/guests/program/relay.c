/*
 * relay.c - see relay.h.
 *
 * Whatever speaks to us here is the user's code, and we are in its cell: nothing is at stake but
 * its own run. Still a call that is none gets an error, and nobody who falls silent holds up
 * others: what a program has to say comes whole, in a file.
 */
#include "guests/program/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guests/jail/jail.h"

#define OUT_OF_WAY 20 /* above the descriptors that bash gets by number */

static int move_away(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, OUT_OF_WAY);
    close(fd);
    return moved;
}

bool program_relay_open(relay *r, rt_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return rt_fail_errno(err, "socketpair");
    r->near = move_away(pair[0]);
    r->far = move_away(pair[1]);
    return r->near >= 0 && r->far >= 0 ? true : rt_fail_errno(err, "dup");
}

static void forget(relay *r, size_t i)
{
    rt_closep(&r->callers[i].reply);
    r->callers[i].number = 0;
    r->count--;
}

void program_relay_close(relay *r)
{
    rt_closep(&r->near);
    rt_closep(&r->far);
    for (size_t i = 0; i < RELAY_CALLS_MAX; i++)
        if (r->callers[i].number)
            forget(r, i);
}

/* ---- calls ---- */

static void refuse(int reply, const char *why)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "op", RT_STR("answer"));
    rt_jw_kobject(&w, "error");
    rt_jw_kstr(&w, "message", rt_str_of(why));
    rt_jw_end(&w);
    rt_jw_end(&w);
    jail_frame_send(reply, text.ptr, text.len, NULL, 0, NULL);
}

static bool read_call(const relay *r, int file, rt_arena *arena, rt_json *call, rt_error *err)
{
    struct stat st;
    rt_str text;
    uint64_t most = r->argument_max + 1024; /* beside the arguments stands the name */
    if (fstat(file, &st) != 0 || (uint64_t)st.st_size > most)
        return rt_fail(err, RT_LIMIT, "the arguments have more than the %llu bytes that fit",
                       (unsigned long long)r->argument_max);
    if (lseek(file, 0, SEEK_SET) != 0 || !rt_read_fd(file, (size_t)most, arena, &text, err))
        return false;
    return rt_json_parse(text, arena, call, err);
}

static void send_call(relay *r, rt_json call, size_t place)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "op", RT_STR("call"));
    rt_jw_ki64(&w, "id", r->run);
    rt_jw_ku64(&w, "call", r->callers[place].number);
    rt_jw_kjson(&w, "tool", rt_json_get_c(call, "tool"));
    rt_jw_kjson(&w, "arguments", rt_json_get_c(call, "arguments"));
    rt_jw_end(&w);
    jail_frame_send(r->control, text.ptr, text.len, NULL, 0, NULL);
}

static void take_call(relay *r)
{
    char byte;
    int fds[2] = { -1, -1 };
    size_t count = 0;
    ssize_t n = jail_packet_recv(r->near, &byte, 1, fds, 2, &count, MSG_DONTWAIT);
    int file RT_CLEANUP(rt_closep) = count > 0 ? fds[0] : -1;
    int reply RT_CLEANUP(rt_closep) = count > 1 ? fds[1] : -1;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_json call;
    if (n <= 0 || reply < 0)
        return;
    if (!read_call(r, file, &arena, &call, &err)) {
        refuse(reply, err.text);
        return;
    }
    size_t place = 0;
    while (r->callers[place].number)
        place++;
    r->callers[place].number = ++r->last;
    r->callers[place].reply = RT_TAKE_FD(reply);
    r->count++;
    send_call(r, call, place);
}

/* ---- answers ---- */

static void take_answer(relay *r)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json answer;
    int64_t number = 0, run = 0;
    jail_frame frame;
    if (!jail_frame_recv(r->control, JAIL_FRAME_MAX, &frame, NULL))
        _exit(0); /* the daemon is gone */
    if (rt_json_parse((rt_str){ frame.data, frame.len }, &arena, &answer, &(rt_error){ 0 }) &&
        rt_json_i64(rt_json_get_c(answer, "id"), &run) && run == r->run &&
        rt_json_i64(rt_json_get_c(answer, "call"), &number) && number > 0)
        for (size_t i = 0; i < RELAY_CALLS_MAX; i++)
            if (r->callers[i].number == (uint64_t)number) {
                jail_frame_send(r->callers[i].reply, frame.data, frame.len, frame.fds,
                                frame.fd_count, NULL);
                forget(r, i);
            }
    jail_frame_done(&frame);
}

static void heed(int signal)
{
    (void)signal; /* that it came is enough: it ends the waiting */
}

pid_t program_relay_wait(relay *r, pid_t pid, int *status)
{
    struct sigaction action = { .sa_handler = heed };
    sigset_t none;
    pid_t got;
    sigemptyset(&none);
    sigaction(SIGCHLD, &action, NULL);
    while ((got = waitpid(pid, status, WNOHANG)) == 0) {
        bool is_full = r->count == RELAY_CALLS_MAX;
        struct pollfd at[] = { { .fd = r->control, .events = POLLIN },
                               { .fd = is_full ? -1 : r->near, .events = POLLIN } };
        if (ppoll(at, RT_COUNT(at), NULL, &none) <= 0)
            continue;
        if (at[0].revents)
            take_answer(r);
        if (at[1].revents)
            take_call(r);
    }
    signal(SIGCHLD, SIG_DFL);
    return got;
}
