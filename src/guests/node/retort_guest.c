/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retort_guest.c - the Node-API addon with which Node.js becomes a zygote and then a cell.
 *
 *     const guest = require('./retort_guest.node');
 *     guest.announce(3, '{"language":"javascript"}');
 *     const control = guest.serve(3);           // returns in each sealed child
 *     const frame = guest.recv(control);        // a text, or { data, fds }; null at the end
 *
 * Node does not expect to be forked, so these things are repaired around it:
 *   - V8 marks its heap MADV_DONTFORK: serve() takes the mark off before the first fork. The zygote
 *     runs no JavaScript after that, so no new mapping appears.
 *   - The jail closes every descriptor, libuv's among them; libuv remembers their numbers and would
 *     later close whatever stands there. restore_descriptors() puts something at each number.
 *   - OpenSSL notices a fork by the process id, which can repeat in another pid namespace: without
 *     RAND_poll() two cells could share their random numbers.
 *   - A session's interpreter is copied while libuv may have a thread pool: the handlers that libuv
 *     registered for a fork (retort_fork.c remembers them) make it start another.
 *   - Node's own exit joins threads that a fork does not copy: exit() here leaves at once.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <node_api.h>

#include "guests/jail/jail.h"

#define HELD_FDS_MAX 128
#define OUT_OF_WAY   200 /* a descriptor number above any that libuv opened */

/* Of libuv and OpenSSL, which the node binary carries and exports; we have no headers for them. */
struct uv_loop_s;
struct uv_handle_s;
extern int uv_loop_fork(struct uv_loop_s *loop);
extern size_t uv_handle_size(int kind);
extern int uv_async_init(struct uv_loop_s *loop, struct uv_handle_s *handle,
                         void (*call)(struct uv_handle_s *));
extern int uv_async_send(struct uv_handle_s *handle);
extern int uv_poll_init(struct uv_loop_s *loop, struct uv_handle_s *handle, int fd);
extern int uv_poll_start(struct uv_handle_s *handle, int events,
                         void (*call)(struct uv_handle_s *, int status, int events));
extern int uv_poll_stop(struct uv_handle_s *handle);
extern void uv_ref(struct uv_handle_s *handle);
extern void uv_unref(struct uv_handle_s *handle);
extern int RAND_poll(void);
#define UV_ASYNC    1
#define UV_POLL     8
#define UV_READABLE 1

/* Of V8; both may be called from anywhere, signal handlers included. */
extern void *current_isolate(void) __asm__("_ZN2v87Isolate10GetCurrentEv");
extern void terminate_execution(void *isolate) __asm__("_ZN2v87Isolate18TerminateExecutionEv");
extern void cancel_termination(void *isolate) __asm__("_ZN2v87Isolate24CancelTerminateExecutionEv");

/* A descriptor that libuv has in the zygote and expects in the child. */
typedef struct held_fd {
    int fd;
    ino_t pipe;  /* which pipe it is an end of, or 0 */
    int pending; /* bytes that wait in that pipe: libuv's signal lock is a pipe with one byte */
} held_fd;

static held_fd held[HELD_FDS_MAX];
static size_t held_count;

static napi_value fail(napi_env env, const char *text)
{
    napi_throw_error(env, NULL, text);
    return NULL;
}

static bool take_args(napi_env env, napi_callback_info info, napi_value *args, size_t wanted)
{
    size_t count = wanted;
    if (napi_get_cb_info(env, info, &count, args, NULL, NULL) == napi_ok && count == wanted)
        return true;
    fail(env, "wrong number of arguments");
    return false;
}

static bool take_fd(napi_env env, napi_value value, int *out)
{
    int32_t fd;
    if (napi_get_value_int32(env, value, &fd) != napi_ok) {
        fail(env, "a descriptor is a number");
        return false;
    }
    *out = fd;
    return true;
}

/* The text of a JavaScript string, malloc'ed; NULL (and a pending exception) on failure. */
static char *take_text(napi_env env, napi_value value, size_t *len)
{
    if (napi_get_value_string_utf8(env, value, NULL, 0, len) != napi_ok) {
        fail(env, "a text is a string");
        return NULL;
    }
    char *text = malloc(*len + 1);
    if (!text)
        fail(env, "no memory for a message");
    else
        napi_get_value_string_utf8(env, value, text, *len + 1, len);
    return text;
}

static napi_value number(napi_env env, int32_t value)
{
    napi_value result = NULL;
    napi_create_int32(env, value, &result);
    return result;
}

/* -- forking -------------------------------------------------------------------------------- */

/* Reads the map whole before changing anything: madvise() splits and merges what is being read. */
static bool let_heap_be_forked(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char *text = NULL;
    size_t size = 0;
    if (!maps)
        return false;
    ssize_t n = getdelim(&text, &size, '\0', maps);
    fclose(maps);
    for (char *line = n > 0 ? text : NULL; line && *line; line = strchr(line, '\n') + 1) {
        char *end;
        uintptr_t from = strtoull(line, &end, 16);
        uintptr_t to = strtoull(end + 1, NULL, 16);
        char *stop = strchr(line, '\n');
        char *ring = strstr(line, "[io_uring]");
        bool is_ring = ring && (!stop || ring < stop);
        /* Refused for [vvar] alone, which stays. A ring of libuv is memory that every child would
         * share with every other; libuv makes itself another, or does without. */
        madvise((void *)from, to - from, is_ring ? MADV_DONTFORK : MADV_DOFORK);
        if (!stop)
            break;
    }
    free(text);
    return n > 0;
}

/* Only what stands above the standard three and the orders: those the jail replaces itself. */
static bool remember_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return false;
    held_count = 0;
    for (struct dirent *entry; (entry = readdir(dir)) && held_count < HELD_FDS_MAX;) {
        int fd = atoi(entry->d_name);
        struct stat info;
        if (fd <= JAIL_CONTROL_FD || fd >= OUT_OF_WAY || fd == dirfd(dir) || fstat(fd, &info) != 0)
            continue;
        held_fd *one = &held[held_count++];
        *one = (held_fd){ .fd = fd, .pipe = S_ISFIFO(info.st_mode) ? info.st_ino : 0 };
        if (one->pipe && ioctl(fd, FIONREAD, &one->pending) != 0)
            one->pending = 0;
    }
    closedir(dir);
    return true;
}

static bool remake_pipe(int read_fd, int write_fd, int pending)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    int from = fcntl(ends[0], F_DUPFD_CLOEXEC, OUT_OF_WAY);
    int to = fcntl(ends[1], F_DUPFD_CLOEXEC, OUT_OF_WAY);
    close(ends[0]);
    close(ends[1]);
    /* libuv blocks on its lock pipe; the other kind it remakes by itself. */
    bool ok = fcntl(from, F_SETFL, 0) == 0 && fcntl(to, F_SETFL, 0) == 0 &&
              dup3(from, read_fd, O_CLOEXEC) == read_fd &&
              dup3(to, write_fd, O_CLOEXEC) == write_fd;
    for (int i = 0; ok && i < pending; i++)
        ok = write(write_fd, "", 1) == 1;
    close(from);
    close(to);
    return ok;
}

static bool remake_pipes(void)
{
    for (size_t i = 0; i < held_count; i++)
        for (size_t k = i + 1; k < held_count; k++) {
            held_fd *a = &held[i], *b = &held[k];
            /* Both ends see the bytes that wait; libuv opens the end it reads from first. */
            if (!a->pipe || a->pipe != b->pipe || a->pending == 0)
                continue;
            int low = a->fd < b->fd ? a->fd : b->fd, high = a->fd < b->fd ? b->fd : a->fd;
            if (!remake_pipe(low, high, a->pending))
                return false;
        }
    return true;
}

static void run_fork_handlers(void)
{
    void (*run)(void);
    *(void **)&run = dlsym(RTLD_DEFAULT, "retort_run_fork_handlers");
    if (run)
        run();
}

/*
 * Puts something at every number libuv remembers, lets it renew itself, takes the rest away. A live
 * interpreter has more to renew than a zygote.
 */
static bool restore_descriptors(int control, struct uv_loop_s *loop, bool was_live)
{
    struct stat own, now;
    if (fstat(control, &own) != 0)
        return false;
    for (size_t i = 0; i < held_count; i++)
        if (dup3(control, held[i].fd, O_CLOEXEC) < 0)
            return false;
    if (!remake_pipes())
        return false;
    if (was_live)
        run_fork_handlers();
    if (uv_loop_fork(loop) != 0)
        return false;
    for (size_t i = 0; i < held_count; i++)
        if (fstat(held[i].fd, &now) == 0 && now.st_dev == own.st_dev && now.st_ino == own.st_ino)
            close(held[i].fd);
    return remember_descriptors(); /* from now on these are libuv's, and others the user's */
}

static napi_value serve(napi_env env, napi_callback_info info)
{
    napi_value arg;
    int orders;
    struct uv_loop_s *loop = NULL;
    if (!take_args(env, info, &arg, 1) || !take_fd(env, arg, &orders))
        return NULL;
    if (napi_get_uv_event_loop(env, &loop) != napi_ok)
        return fail(env, "this Node.js has no event loop");
    if (!let_heap_be_forked() || !remember_descriptors())
        return fail(env, "serve: /proc/self cannot be read");
    int control = jail_serve(orders, &(jail_hooks){ 0 });
    if (RAND_poll() != 1 || !restore_descriptors(control, loop, false))
        _exit(125);
    return number(env, control);
}

static napi_value own_descriptors(napi_env env, napi_callback_info info)
{
    napi_value list;
    (void)info;
    napi_create_array(env, &list);
    for (size_t i = 0; i < held_count; i++)
        napi_set_element(env, list, (uint32_t)i, number(env, held[i].fd));
    return list;
}

/* ---- interrupts ---- */

static struct {
    napi_env env;
    napi_ref call;
    struct uv_handle_s *wake; /* the event loop may be asleep */
    void *isolate;
    volatile sig_atomic_t is_running;
} interrupts;

static void on_signal(int signal)
{
    int saved = errno;
    (void)signal;
    if (interrupts.is_running) {
        terminate_execution(interrupts.isolate);
        uv_async_send(interrupts.wake);
    }
    errno = saved;
}

static void catch_signal(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigaction(SIGINT, &action, NULL);
}

/* From the event loop, with no JavaScript on the stack. */
static void call_back(napi_env env, napi_ref call)
{
    napi_handle_scope scope;
    napi_value function, global, result;
    if (napi_open_handle_scope(env, &scope) != napi_ok)
        return;
    if (napi_get_reference_value(env, call, &function) == napi_ok &&
        napi_get_global(env, &global) == napi_ok)
        napi_make_callback(env, NULL, global, function, 0, NULL, &result);
    napi_close_handle_scope(env, scope);
}

static void on_wake(struct uv_handle_s *wake)
{
    (void)wake;
    cancel_termination(interrupts.isolate);
    if (interrupts.is_running)
        call_back(interrupts.env, interrupts.call);
}

static napi_value on_interrupt(napi_env env, napi_callback_info info)
{
    napi_value call;
    struct uv_loop_s *loop = NULL;
    if (!take_args(env, info, &call, 1))
        return NULL;
    interrupts.env = env;
    interrupts.isolate = current_isolate();
    interrupts.wake = calloc(1, uv_handle_size(UV_ASYNC));
    if (!interrupts.wake || napi_create_reference(env, call, 1, &interrupts.call) != napi_ok ||
        napi_get_uv_event_loop(env, &loop) != napi_ok ||
        uv_async_init(loop, interrupts.wake, on_wake) != 0)
        return fail(env, "interrupts cannot be had");
    uv_unref(interrupts.wake); /* waiting for an interrupt is nothing to wait for */
    catch_signal();
    return NULL;
}

static napi_value set_running(napi_env env, napi_callback_info info)
{
    napi_value arg;
    bool is_running = false;
    if (take_args(env, info, &arg, 1))
        napi_get_value_bool(env, arg, &is_running);
    interrupts.is_running = is_running;
    return NULL;
}

static napi_value replace_fd(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    int from, to;
    if (!take_args(env, info, args, 2) || !take_fd(env, args[0], &from) ||
        !take_fd(env, args[1], &to))
        return NULL;
    return dup2(from, to) == to ? NULL : fail(env, "a descriptor cannot be replaced");
}

/* Where the interpreter can be copied: false when a frame has come, true in a copy. */
static napi_value park(napi_env env, napi_callback_info info)
{
    napi_value arg, result = NULL;
    int control;
    struct uv_loop_s *loop = NULL;
    if (!take_args(env, info, &arg, 1) || !take_fd(env, arg, &control))
        return NULL;
    if (napi_get_uv_event_loop(env, &loop) != napi_ok || !let_heap_be_forked() ||
        !remember_descriptors())
        return fail(env, "park: the interpreter cannot be prepared");
    bool has_arrived = jail_park(control) == JAIL_ARRIVED;
    if (has_arrived) {
        if (RAND_poll() != 1 || !restore_descriptors(control, loop, true))
            _exit(125);
        if (interrupts.wake)
            catch_signal();
    }
    napi_get_boolean(env, has_arrived, &result);
    return result;
}

static napi_value is_ahead(napi_env env, napi_callback_info info)
{
    napi_value result = NULL;
    (void)info;
    napi_get_boolean(env, jail_is_ahead(), &result);
    return result;
}

static napi_value announce(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    int fd;
    size_t len;
    if (!take_args(env, info, args, 2) || !take_fd(env, args[0], &fd))
        return NULL;
    char *about = take_text(env, args[1], &len);
    if (!about)
        return NULL;
    rt_error err = { 0 };
    bool ok = jail_announce(fd, about, &err);
    free(about);
    return ok ? NULL : fail(env, err.text);
}

/* -- frames --------------------------------------------------------------------------------- */

/* The text alone, or { data, fds }: most frames bring nothing, and are many. */
static napi_value frame_value(napi_env env, jail_frame *frame)
{
    napi_value object, data, fds;
    if (napi_create_string_utf8(env, frame->data, frame->len, &data) != napi_ok)
        return fail(env, "no memory for a message");
    if (frame->fd_count == 0)
        return data;
    if (napi_create_object(env, &object) != napi_ok || napi_create_array(env, &fds) != napi_ok)
        return fail(env, "no memory for a message");
    for (size_t i = 0; i < frame->fd_count; i++)
        napi_set_element(env, fds, (uint32_t)i, number(env, frame->fds[i]));
    frame->fd_count = 0; /* JavaScript owns them now */
    napi_set_named_property(env, object, "data", data);
    napi_set_named_property(env, object, "fds", fds);
    return object;
}

/* A guest has one socket to read; its number never changes. */
static jail_reader reader = { .fd = -1 };

static napi_value has_more(napi_env env, napi_callback_info info)
{
    napi_value result = NULL;
    (void)info;
    napi_get_boolean(env, jail_reader_has_more(&reader), &result);
    return result;
}

static napi_value recv_frame(napi_env env, napi_callback_info info)
{
    napi_value arg, result = NULL;
    if (!take_args(env, info, &arg, 1) || !take_fd(env, arg, &reader.fd))
        return NULL;
    jail_frame frame = { 0 };
    rt_error err;
    bool ok;
    do {
        err = (rt_error){ 0 };
        ok = jail_reader_next(&reader, JAIL_FRAME_MAX, &frame, &err);
    } while (!ok && err.sys_errno == EINTR);
    if (!ok) {
        if (err.code != RT_NOT_FOUND)
            return fail(env, err.text);
        napi_get_null(env, &result);
        return result;
    }
    result = frame_value(env, &frame);
    jail_frame_done(&frame);
    return result;
}

static napi_value send_frame(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    int fd;
    size_t len;
    if (!take_args(env, info, args, 2) || !take_fd(env, args[0], &fd))
        return NULL;
    char *text = take_text(env, args[1], &len);
    if (!text)
        return NULL;
    rt_error err = { 0 };
    bool ok = jail_frame_send(fd, text, len, NULL, 0, &err);
    free(text);
    return ok ? NULL : fail(env, err.text);
}

/* -- waiting for answers in the event loop ---------------------------------------------------- */

static struct {
    napi_env env;
    napi_ref call;
    struct uv_handle_s *poll; /* of the control socket */
} answers;

static void on_readable(struct uv_handle_s *poll, int status, int events)
{
    (void)poll, (void)status, (void)events;
    reader.is_told = true;
    call_back(answers.env, answers.call);
    reader.is_told = false;
}

/* libuv makes the socket non-blocking, for those who read it as libuv does; we read whole frames.
 */
static bool make_poll(napi_env env, int control)
{
    struct uv_loop_s *loop = NULL;
    if (answers.poll)
        return true;
    struct uv_handle_s *poll = calloc(1, uv_handle_size(UV_POLL));
    if (!poll || napi_get_uv_event_loop(env, &loop) != napi_ok ||
        uv_poll_init(loop, poll, control) != 0 || fcntl(control, F_SETFL, 0) != 0)
        return false;
    answers.env = env;
    answers.poll = poll;
    return true;
}

/* watch(fd, function): called whenever a frame waits; watch(fd, null): no more. */
static napi_value watch(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    napi_valuetype type = napi_null;
    int control;
    if (!take_args(env, info, args, 2) || !take_fd(env, args[0], &control) ||
        napi_typeof(env, args[1], &type) != napi_ok)
        return NULL;
    if (!make_poll(env, control))
        return fail(env, "the control socket cannot be watched");
    if (answers.call)
        napi_delete_reference(env, answers.call);
    answers.call = NULL;
    if (type != napi_function)
        uv_poll_stop(answers.poll);
    else if (napi_create_reference(env, args[1], 1, &answers.call) != napi_ok ||
             uv_poll_start(answers.poll, UV_READABLE, on_readable) != 0)
        return fail(env, "the control socket cannot be watched");
    return NULL;
}

/* Whether the event loop should stay for the sake of an answer. */
static napi_value set_awaited(napi_env env, napi_callback_info info)
{
    napi_value arg;
    bool is_awaited = false;
    if (!take_args(env, info, &arg, 1) || !answers.poll)
        return NULL;
    napi_get_value_bool(env, arg, &is_awaited);
    (is_awaited ? uv_ref : uv_unref)(answers.poll);
    return NULL;
}

/* The text in a memory file, without a copy of the bytes beside it. */
static napi_value read_text(napi_env env, napi_callback_info info)
{
    napi_value arg, text = NULL;
    int fd;
    struct stat st;
    if (!take_args(env, info, &arg, 1) || !take_fd(env, arg, &fd))
        return NULL;
    if (fstat(fd, &st) != 0 || st.st_size <= 0)
        return fail(env, "a memory file cannot be read");
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return fail(env, "there is not enough memory for this");
    bool ok = napi_create_string_utf8(env, bytes, (size_t)st.st_size, &text) == napi_ok;
    munmap(bytes, (size_t)st.st_size);
    return ok ? text : fail(env, "the value is too long for a string");
}

/* -- the process ---------------------------------------------------------------------------- */

static napi_value limit(napi_env env, napi_callback_info info)
{
    napi_value args[5];
    int64_t values[5];
    if (!take_args(env, info, args, 5))
        return NULL;
    for (int i = 0; i < 5; i++)
        if (napi_get_value_int64(env, args[i], &values[i]) != napi_ok || values[i] < 0)
            return fail(env, "a limit is a number that is not negative");
    jail_limits limits = { .cpu_seconds = (uint64_t)values[0],
                           .data_bytes = (uint64_t)values[1],
                           .file_bytes = (uint64_t)values[2],
                           .processes = (uint64_t)values[3],
                           .descriptors = (uint64_t)values[4] };
    rt_error err = { 0 };
    return jail_limit(&limits, &err) ? NULL : fail(env, err.text);
}

static napi_value own_pid(napi_env env, napi_callback_info info)
{
    (void)info;
    return number(env, getpid());
}

static napi_value exit_now(napi_env env, napi_callback_info info)
{
    napi_value arg;
    int32_t status = 0;
    if (!take_args(env, info, &arg, 1) || napi_get_value_int32(env, arg, &status) != napi_ok)
        status = 1;
    _exit(status);
}

static napi_value leave(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    int fd = -1;
    int32_t status = 0;
    if (!take_args(env, info, args, 2) || !take_fd(env, args[0], &fd) ||
        napi_get_value_int32(env, args[1], &status) != napi_ok)
        status = 1;
    jail_leave(fd, status);
}

NAPI_MODULE_INIT()
{
    static const struct {
        const char *name;
        napi_callback call;
    } functions[] = {
        { "serve", serve },
        { "announce", announce },
        { "recv", recv_frame },
        { "hasMore", has_more },
        { "send", send_frame },
        { "watch", watch },
        { "setAwaited", set_awaited },
        { "readText", read_text },
        { "limit", limit },
        { "pid", own_pid },
        { "exit", exit_now },
        { "leave", leave },
        { "isAhead", is_ahead },
        { "park", park },
        { "ownDescriptors", own_descriptors },
        { "replace", replace_fd },
        { "setRunning", set_running },
        { "onInterrupt", on_interrupt },
    };
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        napi_value function;
        if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].call, NULL,
                                 &function) != napi_ok ||
            napi_set_named_property(env, exports, functions[i].name, function) != napi_ok)
            return NULL;
    }
    return exports;
}
