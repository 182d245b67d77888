/*
 * frame.c - framed messages on a stream socket, and packets with descriptors.
 *
 * A frame is a length (four bytes, the machine's own order: both ends are this machine) and that
 * many bytes of JSON. Descriptors ride on the length. A peer inside a cell is hostile: the length
 * is checked before anything is allocated, and descriptors we did not ask for are closed.
 */
#include "guests/jail/jail.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS_MAX 16

static ssize_t send_parts(int fd, struct iovec *parts, size_t count, const int *fds,
                          size_t fd_count)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * FDS_MAX)];
    } control;
    struct msghdr msg = { .msg_iov = parts, .msg_iovlen = count };
    if (fd_count > FDS_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (fd_count > 0) {
        memset(&control, 0, sizeof(control));
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&msg);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(rights), fds, sizeof(int) * fd_count);
    }
    ssize_t n;
    do
        n = sendmsg(fd, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

ssize_t jail_packet_send(int fd, const void *data, size_t len, const int *fds, size_t fd_count)
{
    struct iovec part = { .iov_base = (void *)data, .iov_len = len };
    return send_parts(fd, &part, 1, fds, fd_count);
}

static size_t take_fds(struct msghdr *msg, int *fds, size_t fds_max)
{
    size_t count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t sent = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < sent; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (count < fds_max)
                fds[count++] = fd;
            else
                close(fd);
        }
    }
    return count;
}

static ssize_t recv_once(int fd, void *data, size_t len, int *fds, size_t fds_max, size_t *fd_count,
                         int flags)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * FDS_MAX)];
    } control;
    struct iovec part = { .iov_base = data, .iov_len = len };
    struct msghdr msg = { .msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = &control,
                          .msg_controllen = sizeof(control) };
    ssize_t n = recvmsg(fd, &msg, flags | MSG_CMSG_CLOEXEC);
    *fd_count = n < 0 ? 0 : take_fds(&msg, fds, fds_max);
    return n;
}

ssize_t jail_packet_recv(int fd, void *data, size_t len, int *fds, size_t fds_max, size_t *fd_count,
                         int flags)
{
    ssize_t n;
    do
        n = recv_once(fd, data, len, fds, fds_max, fd_count, flags);
    while (n < 0 && errno == EINTR);
    return n;
}

static bool send_rest(int fd, const char *data, size_t len, rt_error *err)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rt_fail_errno(err, "send a frame");
        data += n;
        len -= (size_t)n;
    }
    return true;
}

ssize_t jail_frame_begin(int fd, const char *data, size_t len, const int *fds, size_t fd_count)
{
    uint32_t size = (uint32_t)len;
    struct iovec parts[] = { { .iov_base = &size, .iov_len = sizeof(size) },
                             { .iov_base = (void *)data, .iov_len = len } };
    if (len > JAIL_FRAME_MAX) {
        errno = EMSGSIZE;
        return -1;
    }
    return send_parts(fd, parts, 2, fds, fd_count);
}

bool jail_frame_send(int fd, const char *data, size_t len, const int *fds, size_t fd_count,
                     rt_error *err)
{
    uint32_t size = (uint32_t)len;
    if (len > JAIL_FRAME_MAX)
        return rt_fail(err, RT_LIMIT, "a message of %zu bytes; at most %u are allowed", len,
                       JAIL_FRAME_MAX);
    ssize_t n = jail_frame_begin(fd, data, len, fds, fd_count);
    if (n <= 0)
        return rt_fail_errno(err, "send a frame");
    size_t gone = (size_t)n;
    if (gone < sizeof(size)) {
        if (!send_rest(fd, (char *)&size + gone, sizeof(size) - gone, err))
            return false;
        gone = sizeof(size);
    }
    return send_rest(fd, data + (gone - sizeof(size)), len - (gone - sizeof(size)), err);
}

static bool recv_all(int fd, char *data, size_t len, rt_error *err)
{
    while (len > 0) {
        ssize_t n = recv(fd, data, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rt_fail_errno(err, "receive a frame");
        if (n == 0)
            return rt_fail(err, RT_NOT_FOUND, "the peer closed in the middle of a frame");
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Where the last frame starts of those that lie in [from, to). */
static size_t last_start(const jail_reader *r)
{
    size_t at = r->from;
    uint32_t size;
    while (r->to - at >= sizeof(size)) {
        memcpy(&size, r->data + at, sizeof(size));
        if (r->to - at - sizeof(size) <= size)
            break;
        at += sizeof(size) + size;
    }
    return at;
}

/*
 * With what came ahead used up: one look at the socket, for whatever is there. Who sleeps in a
 * receive is woken for nothing when the peer has read what we sent, because there is room again;
 * poll() is woken by what it asks for alone, and that saves more than it costs.
 */
static bool fill(jail_reader *r, rt_error *err)
{
    size_t count = 0;
    size_t most = r->step ? r->step : sizeof(r->data);
    struct pollfd polled = { .fd = r->fd, .events = POLLIN };
    if (!r->is_told && r->fd >= 0 && poll(&polled, 1, -1) < 0)
        return rt_fail_errno(err, "await a frame");
    r->is_told = false;
    ssize_t n = recv_once(r->fd, r->data, most, r->fds, JAIL_FRAME_FDS_MAX, &count, 0);
    if (n < 0)
        return rt_fail_errno(err, "receive a frame");
    if (n == 0)
        return rt_fail(err, RT_NOT_FOUND, "the peer closed the connection");
    r->from = 0;
    r->to = (size_t)n;
    r->fd_count = count;
    r->fds_at = last_start(r);
    return true;
}

static void take_descriptors(jail_reader *r, size_t at, jail_frame *frame)
{
    if (r->fd_count == 0 || at != r->fds_at)
        return;
    memcpy(frame->fds, r->fds, sizeof(r->fds));
    frame->fd_count = r->fd_count;
    r->fd_count = 0;
}

/* What came ahead first, then the rest from the socket; never more than that rest. */
static bool read_rest(jail_reader *r, char *data, size_t len, rt_error *err)
{
    size_t ready = r->to - r->from < len ? r->to - r->from : len;
    memcpy(data, r->data + r->from, ready);
    r->from += ready;
    return recv_all(r->fd, data + ready, len - ready, err);
}

bool jail_reader_is_ready(const jail_reader *r)
{
    struct pollfd polled = { .fd = r->fd, .events = POLLIN };
    return jail_reader_has_more(r) || poll(&polled, 1, 0) > 0;
}

bool jail_reader_next(jail_reader *r, size_t max, jail_frame *out, rt_error *err)
{
    jail_frame frame = { 0 };
    uint32_t size = 0;
    if (r->from == r->to && !fill(r, err))
        return false;
    take_descriptors(r, r->from, &frame);
    bool ok = read_rest(r, (char *)&size, sizeof(size), err);
    if (ok && size > max)
        ok = rt_fail(err, RT_LIMIT, "a message of %u bytes; at most %zu are allowed", size, max);
    if (ok && !(frame.data = malloc((size_t)size + 1)))
        ok = rt_fail(err, RT_LIMIT, "no memory for a message of %u bytes", size);
    if (ok && (ok = read_rest(r, frame.data, size, err))) {
        frame.len = size;
        frame.data[size] = '\0';
        *out = frame;
        return true;
    }
    jail_frame_done(&frame);
    return false;
}

/* A reader that is made for one frame may read no further. */
bool jail_frame_recv(int fd, size_t max, jail_frame *out, rt_error *err)
{
    jail_reader r = { .fd = fd, .step = sizeof(uint32_t) };
    rt_error problem;
    bool ok;
    do {
        problem = (rt_error){ 0 };
        ok = jail_reader_next(&r, max, out, &problem);
    } while (!ok && problem.sys_errno == EINTR);
    if (!ok && err)
        *err = problem;
    return ok;
}

_Noreturn void jail_leave(int control, int status)
{
    char ignored[4096];
    while (recv(control, ignored, sizeof(ignored), 0) > 0 || errno == EINTR)
        errno = 0;
    _exit(status);
}

void jail_frame_done(jail_frame *frame)
{
    free(frame->data);
    for (size_t i = 0; i < frame->fd_count; i++)
        close(frame->fds[i]);
    *frame = (jail_frame){ 0 };
}
