/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_fuzz.c - whatever comes out of a cell, in whatever pieces: no crash, no descriptor lost, no
 * waiting without end, and every event whole.
 *
 * The input is a list of deeds: one byte says who speaks (the guest on the control socket, its two
 * pipes, the first process on the link, with or without a descriptor, the warden on the lease; from
 * 120 on the daemon itself, that posts something), one how many bytes follow. After a deed of 128
 * and more the cell is asked for what happened.
 */
#include "sandbox/cell.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME_MAX = 512 };
enum deed { SPEAK, PRINT, COMPLAIN, LINK, LINK_FD, LEASE, CLOSE, FINISH, DEEDS, POST };

typedef struct stage {
    rt_cell *cell;
    int lease, control, in, out, err, link;
} stage;

static void open_stage(stage *s)
{
    int lease[2], control[2], in[2], out[2], err[2], link[2];
    int failed = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, lease) |
                 socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, control) |
                 socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, link) |
                 pipe2(in, O_NONBLOCK) | pipe2(out, O_NONBLOCK) | pipe2(err, O_NONBLOCK);
    assert(!failed);
    int granted[GRANT_FDS] = { control[0], in[1], out[0], err[0], link[0] };
    *s = (stage){ sandbox_cell_new(lease[0], granted, FRAME_MAX),
                  lease[1],
                  control[1],
                  in[0],
                  out[1],
                  err[1],
                  link[1] };
}

static void close_stage(stage *s)
{
    int *ends[] = { &s->lease, &s->control, &s->in, &s->out, &s->err, &s->link };
    rt_cell_close(s->cell);
    for (size_t i = 0; i < RT_COUNT(ends); i++)
        rt_closep(ends[i]);
}

static void say_lease(const stage *s, rt_str words)
{
    lease_message message;
    memset(&message, 0, sizeof(message));
    memcpy(&message, words.ptr, RT_MIN(words.len, sizeof(message)));
    /* Whole half of the time: the shortened ones must be passed over. */
    jail_packet_send(s->lease, &message, words.len % 2 ? sizeof(message) : words.len, NULL, 0);
}

static void act(stage *s, enum deed deed, rt_str words)
{
    int fd = STDIN_FILENO;
    switch (deed) {
    case SPEAK:
        (void)!write(s->control, words.ptr, words.len);
        break;
    case PRINT:
        (void)!write(s->out, words.ptr, words.len);
        break;
    case COMPLAIN:
        (void)!write(s->err, words.ptr, words.len);
        break;
    case LINK:
    case LINK_FD:
        jail_packet_send(s->link, words.ptr, words.len, &fd, deed == LINK_FD);
        break;
    case LEASE:
        say_lease(s, words);
        break;
    case CLOSE:
        rt_closep(words.len % 3 == 0 ? &s->control : words.len % 3 == 1 ? &s->link : &s->out);
        break;
    case POST:
        rt_cell_post(s->cell, words, rt_cell_has_post(s->cell) ? -1 : fd);
        break;
    default:
        rt_cell_finish(s->cell, NULL);
        break;
    }
}

static void check(const rt_cell_event *event)
{
    switch (event->kind) {
    case RT_CELL_FRAME:
        assert(event->text.ptr && event->text.len <= FRAME_MAX);
        break;
    case RT_CELL_OUTPUT:
        assert(event->text.len > 0 && (event->stream == 1 || event->stream == 2));
        break;
    case RT_CELL_DENIED:
        assert(memchr(event->denial.call, '\0', sizeof(event->denial.call)));
        assert(rt_utf8_valid(rt_str_of(event->denial.call)) && event->denial.rule[0] &&
               event->denial.allow[0]);
        break;
    case RT_CELL_EXIT:
    case RT_CELL_TIME:
    case RT_CELL_ATTEND:
        break;
    case RT_CELL_CANCELLED:
        assert(!"nobody cancels here");
    }
}

/* False when the cell is over, or its guest broke the rules. */
static bool hear(stage *s)
{
    rt_cell_event event;
    rt_error err = { 0 };
    do {
        if (!rt_cell_next(s->cell, rt_now_ns() + 100000, &event, &err)) {
            assert(err.code == RT_LIMIT || err.code == RT_INTERNAL);
            return false;
        }
        check(&event);
    } while (event.kind != RT_CELL_TIME && event.kind != RT_CELL_EXIT);
    return event.kind == RT_CELL_TIME;
}

static bool visit(void *ctx, const rt_artifact *a, rt_error *err)
{
    (void)ctx, (void)err;
    assert(a->name.ptr && a->fd >= 0);
    return true;
}

static int lowest_free(void)
{
    int fd = dup(STDIN_FILENO);
    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int before = lowest_free();
    stage s;
    signal(SIGPIPE, SIG_IGN);
    open_stage(&s);
    for (unsigned deeds = 0; size >= 2 && deeds < 64; deeds++) {
        size_t len = RT_MIN((size_t)data[1], size - 2);
        bool is_heard = data[0] >= 128;
        enum deed deed = data[0] % 128 < 120 ? (enum deed)(data[0] % DEEDS) : POST;
        act(&s, deed, (rt_str){ (const char *)data + 2, len });
        data += 2 + len;
        size -= 2 + len;
        if (is_heard && !hear(&s))
            break;
    }
    hear(&s);
    rt_closep(&s.link);
    rt_cell_artifacts(s.cell, visit, NULL, &(rt_error){ 0 });
    close_stage(&s);
    assert(lowest_free() == before);
    return 0;
}
