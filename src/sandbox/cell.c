/*
 * cell.c - a cell as the daemon sees it: one queue of events from all its descriptors.
 *
 * Everything that comes out of the cell is hostile: frames are read bit by bit without ever waiting
 * for the rest of one, lengths are checked before they are believed, and a guest that stops reading
 * stops only its own run.
 */
#include "sandbox/cell.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK           65536
#define SEND_TIMEOUT_MS 10000
#define HELLO_MS        30000
#define LINK_MS         10000
#define BRANCH_MS       5000
#define POST_MAX        (256u << 10) /* with more to read than that, the guest must read first */
#define RALLY_MS        1            /* that a guest who was answered is listened to alone */
#define DRAIN_MS        1000 /* what still comes after the end was told; a guest may talk for ever */

struct rt_cell {
    int lease, control, in, out[2], link, cancel;
    int heeded;       /* somebody else's descriptor that cancels, or -1 */
    int attended;     /* somebody else's descriptor that the caller wants to know of, or -1 */
    rt_buf post;      /* frames for the guest that its socket has not taken yet */
    size_t post_gone; /* bytes of them that have gone */
    bool is_answered; /* something was posted, and went out at once */
    int post_fd;      /* goes with their first byte, or -1 */
    int door;         /* the link once more, for other threads: it stays open as long as the cell */
    rt_buf frame;     /* the frame being read, its length first */
    size_t frame_taken; /* bytes of it already given to the caller */
    char chunk[CHUNK];
    rt_str feed;
    bool has_exit, was_exit_told, was_out_of_memory, was_out_of_cpu;
    bool is_over;     /* the guest, and not only a run of it, has ended */
    bool is_cpu_told; /* in a live cell, that a run used too much CPU time is an event */
    bool is_live;
    bool is_falling_asleep;     /* it was told to rest and has not said that it does */
    uint64_t cpu_us;            /* used by earlier runs */
    uint64_t drained_ns;        /* once it has ended: when we stop listening */
    list_end watched;           /* what the first process saw */
    bool is_listing, is_listed; /* the files in out/ were asked for; have come */
    struct {
        char *name;
        uint64_t size;
        int fd;
    } files[RT_ARTIFACTS_MAX];
    size_t file_count;
    rt_cell_usage usage;
    rt_buf attestation;
    void (*when_idle)(void *ctx);
    void *idle_ctx;
};

static void set_nonblocking(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

rt_cell *sandbox_cell_new(int lease, const int fds[GRANT_FDS], uint64_t frame_bytes)
{
    rt_cell *cell = calloc(1, sizeof(*cell));
    if (!cell)
        rt_out_of_memory(sizeof(*cell));
    cell->lease = lease;
    cell->control = fds[GRANT_CONTROL];
    cell->in = fds[GRANT_STDIN];
    cell->out[0] = fds[GRANT_STDOUT];
    cell->out[1] = fds[GRANT_STDERR];
    cell->link = fds[GRANT_LINK];
    cell->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    cell->heeded = cell->attended = cell->post_fd = -1;
    cell->door = -1;
    uint64_t most = frame_bytes ? frame_bytes : JAIL_FRAME_MAX;
    rt_buf_init(&cell->frame, (size_t)most + sizeof(uint32_t) + CHUNK);
    set_nonblocking(cell->control);
    set_nonblocking(cell->in);
    set_nonblocking(cell->out[0]);
    set_nonblocking(cell->out[1]);
    return cell;
}

bool sandbox_cell_open_door(rt_cell *cell, rt_error *err)
{
    cell->door = fcntl(cell->link, F_DUPFD_CLOEXEC, 3);
    return cell->door >= 0 ? true : rt_fail_errno(err, "dup");
}

void sandbox_cell_heed(rt_cell *cell, int cancel_fd)
{
    cell->heeded = cancel_fd;
}

void sandbox_cell_when_idle(rt_cell *cell, void (*call)(void *ctx), void *ctx)
{
    cell->when_idle = call;
    cell->idle_ctx = ctx;
}

static void forget_files(rt_cell *cell)
{
    for (size_t i = 0; i < cell->file_count; i++) {
        rt_closep(&cell->files[i].fd);
        free(cell->files[i].name);
    }
    cell->file_count = 0;
}

void rt_cell_close(rt_cell *cell)
{
    if (!cell)
        return;
    int *fds[] = { &cell->lease, &cell->control, &cell->in,   &cell->out[0], &cell->out[1],
                   &cell->link,  &cell->cancel,  &cell->door, &cell->post_fd };
    for (size_t i = 0; i < RT_COUNT(fds); i++)
        rt_closep(fds[i]);
    forget_files(cell);
    rt_buf_done(&cell->frame);
    rt_buf_done(&cell->post);
    rt_buf_done(&cell->attestation);
    free(cell->idle_ctx);
    free(cell);
}

void rt_cell_closep(rt_cell **cell)
{
    rt_cell_close(*cell);
}

rt_str rt_cell_attestation(const rt_cell *cell)
{
    return rt_buf_str(&cell->attestation);
}

/* ---- to the guest ---- */

static bool wait_writable(int fd, rt_error *err)
{
    struct pollfd polled = { .fd = fd, .events = POLLOUT };
    int n;
    do
        n = poll(&polled, 1, SEND_TIMEOUT_MS);
    while (n < 0 && errno == EINTR);
    return n > 0 ? true : rt_fail(err, RT_TIMEOUT, "the guest does not read what it is sent");
}

static void forget_post(rt_cell *cell)
{
    rt_buf_reset(&cell->post);
    cell->post_gone = 0;
    rt_closep(&cell->post_fd);
}

/* A frame with a descriptor goes by itself: its reader tells by that whose the descriptor is. */
static size_t next_piece(const rt_cell *cell)
{
    uint32_t size;
    if (cell->post_fd < 0)
        return cell->post.len - cell->post_gone;
    memcpy(&size, cell->post.ptr, sizeof(size)); /* of which nothing has gone */
    return sizeof(size) + size;
}

/* Sends what the socket takes. A guest that is gone needs nothing any more. */
static void send_post(rt_cell *cell)
{
    while (cell->post.len > 0) {
        ssize_t n = jail_packet_send(cell->control, cell->post.ptr + cell->post_gone,
                                     next_piece(cell), &cell->post_fd, cell->post_fd >= 0 ? 1 : 0);
        if (n < 0 && errno == EAGAIN)
            return;
        cell->post_gone += n < 0 ? 0 : (size_t)n;
        rt_closep(&cell->post_fd);
        if (n < 0 || cell->post_gone == cell->post.len)
            forget_post(cell);
    }
}

bool rt_cell_has_post(const rt_cell *cell)
{
    return cell->post.len > 0;
}

void rt_cell_attend(rt_cell *cell, int fd)
{
    cell->attended = fd;
}

void rt_cell_post(rt_cell *cell, rt_str json, int fd)
{
    uint32_t size = (uint32_t)json.len;
    size_t gone = 0;
    assert(fd < 0 || !rt_cell_has_post(cell));
    if (!rt_cell_has_post(cell)) {
        ssize_t n = jail_frame_begin(cell->control, json.ptr, json.len, &fd, fd >= 0 ? 1 : 0);
        if (n < 0 && errno != EAGAIN)
            return;
        gone = n < 0 ? 0 : (size_t)n;
        cell->is_answered = gone == sizeof(size) + json.len;
        if (cell->is_answered)
            return;
        cell->post_fd = gone == 0 && fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
        cell->post_gone = gone;
    }
    rt_buf_add(&cell->post, (rt_str){ (const char *)&size, sizeof(size) });
    rt_buf_add(&cell->post, json);
}

bool rt_cell_send(rt_cell *cell, rt_str json, const int *fds, size_t fd_count, rt_error *err)
{
    uint32_t size = (uint32_t)json.len;
    ssize_t n;
    if (json.len > JAIL_FRAME_MAX)
        return rt_fail(err, RT_LIMIT, "a message of %zu bytes; at most %u are allowed", json.len,
                       JAIL_FRAME_MAX);
    for (send_post(cell); rt_cell_has_post(cell); send_post(cell))
        if (!wait_writable(cell->control, err))
            return false;
    while ((n = jail_frame_begin(cell->control, json.ptr, json.len, fds, fd_count)) < 0) {
        if (errno != EAGAIN)
            return rt_fail_errno(err, "speak to the guest");
        if (!wait_writable(cell->control, err))
            return false;
    }
    if ((size_t)n == sizeof(size) + json.len)
        return true;
    rt_buf_add(&cell->post, (rt_str){ (const char *)&size, sizeof(size) });
    rt_buf_add(&cell->post, json);
    cell->post_gone = (size_t)n;
    for (; rt_cell_has_post(cell); send_post(cell))
        if (!wait_writable(cell->control, err))
            return false;
    return true;
}

void rt_cell_feed(rt_cell *cell, rt_str data)
{
    cell->feed = data;
    if (data.len == 0)
        rt_closep(&cell->in);
}

static void write_feed(rt_cell *cell)
{
    ssize_t n = write(cell->in, cell->feed.ptr, cell->feed.len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    rt_cell_feed(cell,
                 n < 0 ? (rt_str){ "", 0 } : rt_str_slice(cell->feed, (size_t)n, cell->feed.len));
}

bool rt_cell_kill(rt_cell *cell, rt_error *err)
{
    lease_message message = { .kind = LEASE_KILL };
    if (jail_packet_send(cell->lease, &message, sizeof(message), NULL, 0) < 0)
        return rt_fail_errno(err, "ask for the end of a cell");
    return true;
}

void rt_cell_cancel(rt_cell *cell)
{
    (void)!write(cell->cancel, &(uint64_t){ 1 }, sizeof(uint64_t));
}

static bool say_link(rt_cell *cell, link_kind kind, const void *body, uint32_t size)
{
    char order[64];
    link_head head = { .kind = kind, .size = size };
    memcpy(order, &head, sizeof(head));
    memcpy(order + sizeof(head), body, size);
    return cell->link >= 0 && jail_packet_send(cell->link, order, sizeof(head) + size, NULL, 0) > 0;
}

static void ask_for_files(rt_cell *cell)
{
    uint32_t most = RT_ARTIFACTS_MAX;
    if (cell->is_listing)
        return;
    cell->is_listing = true;
    cell->is_listed = !say_link(cell, LINK_LIST, &most, sizeof(most));
}

bool rt_cell_finish(rt_cell *cell, rt_error *err)
{
    lease_message message = { .kind = LEASE_DONE };
    ask_for_files(cell);
    if (jail_packet_send(cell->lease, &message, sizeof(message), NULL, 0) < 0)
        return rt_fail_errno(err, "ask what a cell has used");
    return true;
}

/* ---- from the guest ---- */

/* A whole frame, if one is there; what was given out before is dropped first. */
static bool take_frame(rt_cell *cell, rt_str *out, rt_error *err)
{
    uint32_t size;
    rt_buf *buf = &cell->frame;
    if (cell->frame_taken > 0) {
        buf->len -= cell->frame_taken;
        memmove(buf->ptr, buf->ptr + cell->frame_taken, buf->len);
        cell->frame_taken = 0;
    }
    *out = (rt_str){ 0 };
    if (buf->len < sizeof(size))
        return true;
    memcpy(&size, buf->ptr, sizeof(size));
    if (size > buf->max - sizeof(size) - CHUNK)
        return rt_fail(err, RT_LIMIT, "the answer has %u bytes; at most %zu are allowed", size,
                       buf->max - sizeof(size) - CHUNK);
    if (buf->len < sizeof(size) + size)
        return true;
    *out = (rt_str){ buf->ptr + sizeof(size), size };
    cell->frame_taken = sizeof(size) + size;
    return true;
}

static void read_control(rt_cell *cell)
{
    ssize_t n = read(cell->control, cell->chunk, sizeof(cell->chunk));
    if (n > 0)
        rt_buf_add(&cell->frame, (rt_str){ cell->chunk, (size_t)n });
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        rt_closep(&cell->control);
}

static bool read_output(rt_cell *cell, int i, rt_cell_event *event)
{
    ssize_t n = read(cell->out[i], cell->chunk, sizeof(cell->chunk));
    if (n > 0) {
        *event = (rt_cell_event){ .kind = RT_CELL_OUTPUT,
                                  .stream = i + 1,
                                  .text = { cell->chunk, (size_t)n } };
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        rt_closep(&cell->out[i]);
    return false;
}

/* A packet of the cell's first process; its descriptor, if any, is the caller's. */
static ssize_t read_link(rt_cell *cell, void *body, size_t size, link_head *head, int *fd)
{
    char packet[2048];
    size_t count = 0;
    *fd = -1;
    ssize_t n = jail_packet_recv(cell->link, packet, sizeof(packet), fd, 1, &count, MSG_DONTWAIT);
    if (n < (ssize_t)sizeof(*head)) {
        if (n >= 0 || errno != EAGAIN)
            rt_closep(&cell->link);
        return -1;
    }
    memcpy(head, packet, sizeof(*head));
    size_t got = (size_t)n - sizeof(*head);
    memcpy(body, packet + sizeof(*head), RT_MIN(got, size));
    return (ssize_t)RT_MIN(got, size);
}

static void keep_file(rt_cell *cell, const char *body, size_t size, int fd)
{
    if (cell->file_count >= RT_ARTIFACTS_MAX || size <= sizeof(uint64_t) || fd < 0) {
        rt_closep(&fd);
        return;
    }
    memcpy(&cell->files[cell->file_count].size, body, sizeof(uint64_t));
    cell->files[cell->file_count].name = strndup(body + sizeof(uint64_t), size - sizeof(uint64_t));
    cell->files[cell->file_count++].fd = fd;
}

static bool hear_link(rt_cell *cell, rt_cell_event *event)
{
    char body[1024];
    link_head head;
    int fd;
    ssize_t n = read_link(cell, body, sizeof(body), &head, &fd);
    if (n < 0) {
        rt_closep(&fd);
        cell->is_listed |= cell->link < 0;
        return false;
    }
    if (head.kind == LINK_FILE) {
        keep_file(cell, body, (size_t)n, fd);
        return false;
    }
    rt_closep(&fd);
    if (head.kind == LINK_LIST_END) {
        list_end end = { 0 };
        memcpy(&end, body, RT_MIN((size_t)n, sizeof(end)));
        cell->is_listed = true;
        cell->watched = end;
    }
    if (head.kind == LINK_RESTED)
        cell->is_falling_asleep = false;
    if (head.kind == LINK_MEMORY)
        cell->was_out_of_memory = true;
    if (head.kind == LINK_CPU)
        cell->was_out_of_cpu = true;
    if (head.kind != LINK_DENIAL || n != (ssize_t)sizeof(denial_note))
        return false;
    denial_note note;
    memcpy(&note, body, sizeof(note));
    *event = (rt_cell_event){ .kind = RT_CELL_DENIED };
    sandbox_filter_explain(&note, &event->denial);
    return true;
}

static void hear_lease(rt_cell *cell)
{
    lease_message message;
    size_t none;
    ssize_t n =
        jail_packet_recv(cell->lease, &message, sizeof(message), NULL, 0, &none, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n == (ssize_t)sizeof(message) &&
        (message.kind == LEASE_EXIT || message.kind == LEASE_USED)) {
        cell->usage = message.usage;
        cell->has_exit = true;
        cell->is_over = message.kind == LEASE_EXIT;
    } else if (n <= 0) { /* the warden is gone, and the cell with it */
        cell->usage = (rt_cell_usage){ .wait_status = 9 };
        cell->has_exit = cell->is_over = true;
        rt_closep(&cell->lease);
    }
    cell->drained_ns = rt_now_ns() + DRAIN_MS * 1000000ull;
}

enum {
    AT_CONTROL,
    AT_OUT,
    AT_ERR,
    AT_LINK,
    AT_LEASE,
    AT_CANCEL,
    AT_HEEDED,
    AT_ATTENDED,
    AT_IN,
    AT_COUNT
};

/* A guest that does not read what it is sent is not heard, until it does. */
static short control_events(const rt_cell *cell)
{
    return (short)((cell->post.len - cell->post_gone < POST_MAX ? POLLIN : 0) |
                   (cell->post.len > 0 ? POLLOUT : 0));
}

/* The guest's socket, both ways; true when all that was posted has gone out. */
static bool serve_control(rt_cell *cell, short events)
{
    bool had_post = rt_cell_has_post(cell);
    if (events & POLLOUT)
        send_post(cell);
    if (events & ~POLLOUT)
        read_control(cell);
    if (cell->control < 0)
        forget_post(cell);
    return had_post && !rt_cell_has_post(cell);
}

static int time_left_ms(uint64_t deadline_ns)
{
    if (deadline_ns == 0)
        return -1;
    uint64_t now = rt_now_ns();
    return now >= deadline_ns ? 0 : (int)RT_MIN((deadline_ns - now + 999999) / 1000000, 3600000ull);
}

/*
 * Who has been answered mostly asks again at once, and to wait for one descriptor costs a
 * microsecond less than to wait for all of them. Not while another answer may come: it would have
 * to wait too.
 */
static int wait_for_any(rt_cell *cell, struct pollfd *at, uint64_t deadline_ns)
{
    bool is_rally = cell->is_answered && cell->attended < 0;
    cell->is_answered = false;
    int n = is_rally ? poll(&at[AT_CONTROL], 1, RALLY_MS) : 0;
    return n != 0 ? n : poll(at, AT_COUNT, time_left_ms(deadline_ns));
}

/* Looks once at everything; true when there is an event. After the exit it does not wait. */
static bool look(rt_cell *cell, uint64_t deadline_ns, rt_cell_event *event, bool *is_quiet)
{
    struct pollfd at[AT_COUNT] = {
        [AT_CONTROL] = { .fd = cell->control, .events = control_events(cell) },
        [AT_OUT] = { .fd = cell->out[0], .events = POLLIN },
        [AT_ERR] = { .fd = cell->out[1], .events = POLLIN },
        [AT_LINK] = { .fd = cell->link, .events = POLLIN },
        [AT_LEASE] = { .fd = cell->has_exit ? -1 : cell->lease, .events = POLLIN },
        [AT_CANCEL] = { .fd = cell->cancel, .events = POLLIN },
        [AT_HEEDED] = { .fd = cell->heeded, .events = POLLIN },
        [AT_ATTENDED] = { .fd = cell->post.len ? -1 : cell->attended, .events = POLLIN },
        [AT_IN] = { .fd = cell->feed.len ? cell->in : -1, .events = POLLOUT },
    };
    bool is_over = cell->has_exit && (cell->is_listed || !cell->is_listing);
    int n = is_over ? poll(at, AT_COUNT, 0) : wait_for_any(cell, at, deadline_ns);
    *is_quiet = n == 0;
    if (n <= 0)
        return false;
    if (at[AT_CANCEL].revents || at[AT_HEEDED].revents) {
        cell->heeded = -1; /* once is enough */
        (void)!read(cell->cancel, &(uint64_t){ 0 }, sizeof(uint64_t));
        *event = (rt_cell_event){ .kind = RT_CELL_CANCELLED };
        return true;
    }
    if (at[AT_IN].revents)
        write_feed(cell);
    bool is_sent = at[AT_CONTROL].revents && serve_control(cell, at[AT_CONTROL].revents);
    if (at[AT_LEASE].revents)
        hear_lease(cell);
    if (is_sent || at[AT_ATTENDED].revents) {
        *event = (rt_cell_event){ .kind = RT_CELL_ATTEND };
        return true;
    }
    if (at[AT_LINK].revents && hear_link(cell, event))
        return true;
    if (at[AT_OUT].revents && read_output(cell, 0, event))
        return true;
    return at[AT_ERR].revents && read_output(cell, 1, event);
}

static bool tell_exit(rt_cell *cell, rt_cell_event *event, rt_error *err)
{
    if (cell->was_exit_told)
        return rt_fail(err, RT_INTERNAL, "the cell has ended already");
    cell->was_exit_told = true;
    *event = (rt_cell_event){ .kind = RT_CELL_EXIT, .usage = cell->usage };
    event->usage.cpu_us -= RT_MIN(cell->cpu_us, event->usage.cpu_us);
    cell->cpu_us = cell->usage.cpu_us;
    event->usage.was_out_of_memory |= cell->was_out_of_memory;
    event->usage.was_out_of_cpu |= cell->was_out_of_cpu;
    event->usage.was_out_of_scratch = cell->watched.is_scratch_full;
    if (cell->watched.memory_peak)
        event->usage.memory_peak_bytes = cell->watched.memory_peak;
    return true;
}

/* Time is looked at before everything else: a guest that never falls silent must not outrun it. */
bool rt_cell_next(rt_cell *cell, uint64_t deadline_ns, rt_cell_event *event, rt_error *err)
{
    if (cell->when_idle)
        cell->when_idle(cell->idle_ctx);
    cell->when_idle = NULL;
    for (bool is_quiet = false;;) {
        rt_str frame;
        bool is_over = cell->has_exit && (cell->is_listed || !cell->is_listing);
        if (is_over && (is_quiet || rt_now_ns() >= cell->drained_ns))
            return tell_exit(cell, event, err);
        bool is_out_of_cpu = cell->is_live && cell->was_out_of_cpu && !cell->is_cpu_told;
        if (!is_over && ((deadline_ns && rt_now_ns() >= deadline_ns) || is_out_of_cpu)) {
            *event = (rt_cell_event){ .kind = RT_CELL_TIME };
            event->usage.was_out_of_cpu = cell->is_cpu_told = is_out_of_cpu;
            return true;
        }
        if (!take_frame(cell, &frame, err))
            return false;
        if (frame.ptr) {
            *event = (rt_cell_event){ .kind = RT_CELL_FRAME, .text = frame };
            return true;
        }
        if (look(cell, deadline_ns, event, &is_quiet))
            return true;
    }
}

/* ---- the hello ---- */

static const char *const space_kinds[] = { "user", "pid", "mnt", "ipc", "uts", "net" };
static int64_t own_spaces[RT_COUNT(space_kinds)]; /* ours do not change: read once */

static void read_own_spaces(void)
{
    for (size_t i = 0; i < RT_COUNT(space_kinds); i++) {
        char path[64];
        struct stat st;
        snprintf(path, sizeof(path), "/proc/self/ns/%s", space_kinds[i]);
        own_spaces[i] = stat(path, &st) == 0 ? (int64_t)st.st_ino : 0;
    }
}

/* What the guest read back from the kernel must be what was asked for; else nothing runs. */
static bool check_layers(rt_json layers, rt_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *const *kinds = space_kinds;
    rt_json spaces = rt_json_get_c(layers, "ns");
    pthread_once(&once, read_own_spaces);
    for (size_t i = 0; i < RT_COUNT(space_kinds); i++) {
        int64_t inode = 0;
        if (!rt_json_i64(rt_json_get_c(spaces, kinds[i]), &inode) || inode <= 0 ||
            own_spaces[i] == 0 || inode == own_spaces[i])
            return rt_fail(err, RT_UNAVAILABLE, "the cell has no %s namespace of its own",
                           kinds[i]);
    }
    if (!rt_str_eq_c(rt_json_str(rt_json_get_c(layers, "capabilities")), "none") ||
        !rt_str_eq_c(rt_json_str(rt_json_get_c(layers, "seccomp")), "filter") ||
        !rt_json_bool(rt_json_get_c(layers, "no_new_privs"), false))
        return rt_fail(err, RT_UNAVAILABLE,
                       "capabilities, seccomp or no_new_privs are not in force");
    return true;
}

static void write_attestation(rt_cell *cell, rt_json layers, rt_str granted)
{
    static const char *const copied[] = { "uid",          "gid",     "capabilities",
                                          "no_new_privs", "seccomp", "landlock" };
    rt_buf *out = &cell->attestation;
    rt_json_writer w;
    rt_buf_add(out, RT_STR("{\"namespaces\":[\"user\",\"pid\",\"mnt\",\"ipc\",\"uts\",\"net\"],"));
    for (size_t i = 0; i < RT_COUNT(copied); i++) {
        rt_json_begin(&w, out);
        rt_buf_addf(out, "\"%s\":", copied[i]);
        rt_jw_json(&w, rt_json_get_c(layers, copied[i]));
        rt_buf_addc(out, ',');
    }
    rt_buf_add(out, granted);
    rt_buf_addc(out, '}');
}

bool sandbox_cell_greet(rt_cell *cell, rt_str granted, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_cell_event event;
    rt_json hello;
    uint64_t deadline = rt_now_ns() + HELLO_MS * 1000000ull;
    if (!rt_cell_next(cell, deadline, &event, err))
        return false;
    if (event.kind == RT_CELL_CANCELLED)
        return rt_fail(err, RT_CANCELLED, "cancelled");
    if (event.kind != RT_CELL_FRAME)
        return rt_fail(err, RT_UNAVAILABLE, "the guest ended or hung before it was sealed");
    if (!rt_json_parse(event.text, &arena, &hello, err))
        return false;
    rt_str op = rt_json_str(rt_json_get_c(hello, "op"));
    if (rt_str_eq_c(op, "unsealed"))
        return rt_fail(err, RT_UNAVAILABLE, "%.*s",
                       RT_FMT(rt_json_str(rt_json_get_c(hello, "message"))));
    rt_json layers = rt_json_get_c(hello, "layers");
    if (!rt_str_eq_c(op, "hello") || !check_layers(layers, err))
        return err->code ? false : rt_fail(err, RT_UNAVAILABLE, "the guest said no hello");
    write_attestation(cell, layers, granted);
    return rt_buf_ok(&cell->attestation, err);
}

/* ---- artifacts ---- */

bool rt_cell_artifacts(rt_cell *cell, rt_artifact_visit visit, void *ctx, rt_error *err)
{
    rt_cell_event ignored;
    ask_for_files(cell);
    while (!cell->is_listed) {
        struct pollfd polled = { .fd = cell->link, .events = POLLIN };
        if (poll(&polled, 1, LINK_MS) <= 0)
            return rt_fail(err, RT_TIMEOUT, "the cell does not list its files");
        hear_link(cell, &ignored);
    }
    for (size_t i = 0; i < cell->file_count; i++) {
        rt_artifact file = { .name = rt_str_of(cell->files[i].name),
                             .size = cell->files[i].size,
                             .fd = cell->files[i].fd };
        if (!visit(ctx, &file, err))
            return false;
    }
    return true;
}

/* ---- live cells ---- */

bool rt_cell_is_over(rt_cell *cell)
{
    if (!cell->is_over && cell->lease >= 0)
        hear_lease(cell);
    return cell->is_over;
}

/* A run that began before all were stopped could be stopped half, and never be continued whole. */
static bool await_sleep(rt_cell *cell)
{
    rt_cell_event ignored;
    struct pollfd polled = { .fd = cell->link, .events = POLLIN };
    while (cell->is_falling_asleep && cell->link >= 0 && poll(&polled, 1, LINK_MS) > 0)
        hear_link(cell, &ignored);
    return !cell->is_falling_asleep;
}

bool rt_cell_begin(rt_cell *cell, uint64_t cpu_ms, int cancel_fd, rt_error *err)
{
    if (!await_sleep(cell) || rt_cell_is_over(cell) || cell->link < 0)
        return rt_fail(err, RT_CONFLICT, "the session has ended");
    forget_files(cell);
    cell->is_live = true;
    cell->has_exit = cell->was_exit_told = cell->is_listing = cell->is_listed = false;
    cell->was_out_of_memory = cell->was_out_of_cpu = cell->is_cpu_told = false;
    cell->watched = (list_end){ 0 };
    cell->heeded = cancel_fd;
    if (!say_link(cell, LINK_BEGIN, &cpu_ms, sizeof(cpu_ms)))
        return rt_fail(err, RT_CONFLICT, "the session has ended");
    return true;
}

bool rt_cell_interrupt(rt_cell *cell, rt_error *err)
{
    lease_message message = { .kind = LEASE_INTERRUPT };
    if (jail_packet_send(cell->lease, &message, sizeof(message), NULL, 0) < 0)
        return rt_fail_errno(err, "interrupt a run");
    return true;
}

/* ---- branches ---- */

uint64_t sandbox_cell_frame_bytes(const rt_cell *cell)
{
    return cell->frame.max - sizeof(uint32_t) - CHUNK;
}

bool sandbox_cell_ask_branch(rt_cell *cell, int far_lease, rt_error *err)
{
    lease_message message = { .kind = LEASE_BRANCH };
    if (jail_packet_send(cell->lease, &message, sizeof(message), &far_lease, 1) < 0)
        return rt_fail_errno(err, "ask for a branch");
    return true;
}

/* The guest's word on whether it can be copied: {"op":"ready"}, or an error that names what cannot.
 */
static bool read_readiness(rt_str text, bool *is_ready, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json reply;
    if (!rt_json_parse(text, &arena, &reply, err))
        return false;
    rt_str op = rt_json_str(rt_json_get_c(reply, "op"));
    rt_str message = rt_json_str(rt_json_get_c(reply, "message"));
    *is_ready = rt_str_eq_c(op, "ready");
    if (rt_str_eq_c(op, "error"))
        return rt_fail(err, RT_CONFLICT, "%.*s", (int)RT_MIN(message.len, (size_t)220),
                       message.ptr);
    return true; /* anything else is left over from the last run */
}

bool sandbox_cell_ready_branch(rt_cell *cell, rt_error *err)
{
    uint64_t deadline = rt_now_ns() + BRANCH_MS * 1000000ull;
    bool is_ready = false;
    if (!rt_cell_send(cell, RT_STR("{\"op\":\"branch\",\"id\":0}"), NULL, 0, err))
        return false;
    while (!is_ready) {
        rt_cell_event event;
        if (!rt_cell_next(cell, deadline, &event, err))
            return false;
        if (event.kind == RT_CELL_EXIT)
            return rt_fail(err, RT_CONFLICT, "the session has ended");
        if (event.kind == RT_CELL_TIME)
            return rt_fail(err, RT_TIMEOUT, "the interpreter does not get ready to be copied");
        if (event.kind == RT_CELL_FRAME && !read_readiness(event.text, &is_ready, err))
            return false;
    }
    return true;
}

void sandbox_cell_rest(rt_cell *cell)
{
    cell->is_falling_asleep = say_link(cell, LINK_REST, "", 0);
}

/* ---- files of the scratch directory ---- */

/* One order and its reply, on a line of their own: a run may be under way meanwhile. */
static bool order_file(rt_cell *cell, file_op op, rt_str path, int data, file_reply *reply, int *fd,
                       rt_error *err)
{
    char packet[sizeof(link_head) + sizeof(file_order) + FILE_PATH_MAX];
    file_order order = { .op = op, .path_len = (uint32_t)path.len };
    link_head head = { .kind = LINK_DO, .size = (uint32_t)(sizeof(order) + path.len) };
    int pair[2];
    size_t count = 0;
    if (!sandbox_files_check(path, op == FILE_LIST, err))
        return false;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return rt_fail_errno(err, "socketpair");
    int near RT_CLEANUP(rt_closep) = pair[0], far RT_CLEANUP(rt_closep) = pair[1];
    memcpy(packet, &head, sizeof(head));
    memcpy(packet + sizeof(head), &order, sizeof(order));
    if (path.len > 0)
        memcpy(packet + sizeof(head) + sizeof(order), path.ptr, path.len);
    if (jail_packet_send(cell->door, packet, sizeof(head) + head.size, (int[]){ far, data },
                         data >= 0 ? 2 : 1) < 0)
        return rt_fail(err, RT_CONFLICT, "the session has ended");
    rt_closep(&far); /* so that the end of the cell is the end of our waiting */
    *fd = -1;
    if (jail_packet_recv(near, reply, sizeof(*reply), fd, 1, &count, 0) != (ssize_t)sizeof(*reply))
        return rt_fail(err, RT_CONFLICT, "the session has ended");
    if (reply->error.code) {
        rt_closep(fd);
        *err = reply->error;
        return false;
    }
    return true;
}

bool rt_cell_write_file(rt_cell *cell, rt_str path, rt_str data, rt_error *err)
{
    file_reply reply;
    int none;
    int file RT_CLEANUP(rt_closep) = memfd_create("file", MFD_CLOEXEC);
    if (file < 0)
        return rt_fail_errno(err, "memfd_create");
    return rt_write_all(file, data, err) &&
           order_file(cell, FILE_WRITE, path, file, &reply, &none, err);
}

bool rt_cell_read_file(rt_cell *cell, rt_str path, int *fd, uint64_t *size, rt_error *err)
{
    file_reply reply;
    if (!order_file(cell, FILE_READ, path, -1, &reply, fd, err))
        return false;
    *size = reply.size;
    return *fd >= 0 ? true : rt_fail(err, RT_INTERNAL, "a file came without a descriptor");
}

bool rt_cell_remove_file(rt_cell *cell, rt_str path, rt_error *err)
{
    file_reply reply;
    int none;
    return order_file(cell, FILE_REMOVE, path, -1, &reply, &none, err);
}

static int by_path(const void *a, const void *b)
{
    return rt_str_cmp(((const rt_cell_file *)a)->path, ((const rt_cell_file *)b)->path);
}

/* The list was written by our own first process, but from what code has arranged: check it. */
static size_t read_entries(rt_str bytes, rt_cell_file *files)
{
    size_t count = 0;
    file_entry entry;
    while (count < RT_CELL_FILES_MAX && bytes.len >= sizeof(entry)) {
        memcpy(&entry, bytes.ptr, sizeof(entry));
        bytes = rt_str_slice(bytes, sizeof(entry), bytes.len);
        if (entry.path_len > bytes.len)
            break;
        files[count++] = (rt_cell_file){ .path = rt_str_slice(bytes, 0, entry.path_len),
                                         .size = entry.size,
                                         .modified_ms = entry.modified_ms,
                                         .is_directory = entry.is_directory != 0 };
        bytes = rt_str_slice(bytes, entry.path_len, bytes.len);
    }
    return count;
}

bool rt_cell_list_files(rt_cell *cell, rt_str path, rt_arena *arena, rt_cell_file **files,
                        size_t *count, rt_error *err)
{
    file_reply reply;
    rt_str bytes;
    int fd RT_CLEANUP(rt_closep) = -1;
    if (!order_file(cell, FILE_LIST, path, -1, &reply, &fd, err))
        return false;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return rt_fail_errno(err, "read a list of files");
    if (!rt_read_fd(fd, (size_t)reply.size, arena, &bytes, err))
        return false;
    size_t most = RT_MIN((size_t)reply.size / sizeof(file_entry), (size_t)RT_CELL_FILES_MAX);
    *files = rt_arena_alloc(arena, (most + 1) * sizeof(**files));
    *count = read_entries(bytes, *files);
    qsort(*files, *count, sizeof(**files), by_path);
    return true;
}
