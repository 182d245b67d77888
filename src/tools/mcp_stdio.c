/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_stdio.c - messages to and from a process, one a line.
 *
 * One thread per link (the porter) reads what the process says and writes what did not fit into its
 * pipe at once. Callers write and wait by their inbox; so a process that does not read, does not
 * answer or never stops talking delays nobody but those who asked it.
 *
 * The lock guards what is between its line and the next. Once dead, a link stays dead; the process
 * is ended by close().
 */
#include "tools/mcp_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    READ_SIZE = 64 << 10,
    MOVE_FROM = 64 << 10, /* longer lines are handed over, shorter ones copied */
    LAST_WORDS = 2048,    /* of standard error */
};
#define OUTBOX_MAX ((size_t)128 << 20)

typedef struct stdio_link {
    mcp_link link;
    mcp_process process;
    mcp_inbox inbox;
    pthread_t porter;
    int wake; /* of the porter */

    pthread_mutex_t lock; /* for what follows, up to the next line */
    rt_buf outbox;
    size_t outbox_sent;
    bool is_shut;

    rt_buf input; /* the porter's own, from here */
    size_t scanned;
    char words[LAST_WORDS];
    size_t words_len;
} stdio_link;

/* -- Dying ------------------------------------------------------------------------------------- */

static void keep_words(stdio_link *s, rt_str words)
{
    if (words.len > LAST_WORDS)
        words = rt_str_slice(words, words.len - LAST_WORDS, words.len);
    size_t kept = RT_MIN(s->words_len, LAST_WORDS - words.len);
    memmove(s->words, s->words + s->words_len - kept, kept);
    memcpy(s->words + kept, words.ptr, words.len);
    s->words_len = kept + words.len;
}

/* False: no more will come. */
static bool read_errors(stdio_link *s)
{
    char bytes[READ_SIZE];
    ssize_t got = read(s->process.errors, bytes, sizeof(bytes));
    if (got > 0)
        keep_words(s, (rt_str){ bytes, (size_t)got });
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* The last line it wrote that says something. */
static rt_str last_line(const stdio_link *s)
{
    rt_str words = rt_str_trim((rt_str){ s->words, s->words_len });
    const char *newline = words.len ? memrchr(words.ptr, '\n', words.len) : NULL;
    return newline ? rt_str_slice(words, (size_t)(newline - words.ptr) + 1, words.len) : words;
}

static bool die_of_end(stdio_link *s)
{
    char end[64], why[300], shown[MCP_SHOWN_SIZE];
    mcp_process_epitaph(&s->process, end, sizeof(end));
    read_errors(s);
    rt_str line = last_line(s);
    if (line.len)
        snprintf(why, sizeof(why), "%s; it said: %s", end, mcp_show(line, shown));
    else
        snprintf(why, sizeof(why), "%s", end);
    return mcp_inbox_die(&s->inbox, RT_UNAVAILABLE, why);
}

/* -- What it says ------------------------------------------------------------------------------ */

/* The first `len` bytes of the input are a line to hand over. What is behind it is the new input.
 */
static bool take_long_line(stdio_link *s, size_t len)
{
    rt_buf whole = s->input;
    s->input = (rt_buf){ .max = whole.max };
    s->scanned = 0;
    rt_buf_add(&s->input, (rt_str){ whole.ptr + len + 1, whole.len - len - 1 });
    bool is_good = mcp_inbox_hear(&s->inbox, (rt_str){ whole.ptr, len }, &whole);
    rt_buf_done(&whole);
    return is_good;
}

/* Short lines are heard where they lie, and moved out of the way together. */
static bool take_lines(stdio_link *s)
{
    size_t from = 0;
    for (;;) {
        char *start = s->input.ptr + from;
        size_t skip = from ? 0 : s->scanned, left = s->input.len - from;
        char *newline = left > skip ? memchr(start + skip, '\n', left - skip) : NULL;
        if (!newline) {
            memmove(s->input.ptr, start, left);
            s->input.len = s->scanned = left;
            return true;
        }
        size_t len = (size_t)(newline - start);
        if (len >= MOVE_FROM) {
            memmove(s->input.ptr, start, left);
            s->input.len = left;
            from = 0;
            if (!take_long_line(s, len))
                return false;
        } else {
            if (!mcp_inbox_hear(&s->inbox, (rt_str){ start, len }, NULL))
                return false;
            from += len + 1;
            s->scanned = 0;
        }
    }
}

static bool read_output(stdio_link *s)
{
    size_t size = RT_MAX((size_t)READ_SIZE, RT_MIN(s->input.len, (size_t)1 << 20));
    size_t room = MCP_MESSAGE_MAX + 1 - RT_MIN(s->input.len, MCP_MESSAGE_MAX + 1);
    if (room == 0)
        return mcp_inbox_die(&s->inbox, RT_LIMIT,
                             "it was cut off because it sent a line of more than 64 MiB");
    char *at = rt_buf_reserve(&s->input, RT_MIN(size, room));
    ssize_t got = read(s->process.out, at, RT_MIN(size, room));
    if (got > 0) {
        s->input.len += (size_t)got;
        return take_lines(s);
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? true : die_of_end(s);
}

/* -- What we say ------------------------------------------------------------------------------- */

/* Under the lock. What the pipe does not take at once is left to the porter. */
static void flush(stdio_link *s)
{
    while (s->outbox_sent < s->outbox.len) {
        ssize_t put =
            write(s->process.in, s->outbox.ptr + s->outbox_sent, s->outbox.len - s->outbox_sent);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return; /* full; or closed, as the porter will see by the process's end */
        s->outbox_sent += (size_t)put;
    }
    s->outbox_sent = 0;
    rt_buf_reset(&s->outbox);
    if (s->outbox.cap > READ_SIZE)
        rt_buf_done(&s->outbox);
}

static void post(stdio_link *s, rt_str body)
{
    rt_buf_add(&s->outbox, body);
    rt_buf_addc(&s->outbox, '\n');
    flush(s);
    if (s->outbox.len)
        mcp_wake(s->wake);
}

/* -- The porter -------------------------------------------------------------------------------- */

static bool porter_step(stdio_link *s, bool *hears_errors)
{
    pthread_mutex_lock(&s->lock);
    bool has_mail = s->outbox.len > 0, is_over = s->is_shut;
    pthread_mutex_unlock(&s->lock);
    if (is_over)
        return mcp_inbox_die(&s->inbox, RT_UNAVAILABLE, "it was stopped");
    struct pollfd fds[] = {
        { .fd = s->process.out, .events = POLLIN },
        { .fd = *hears_errors ? s->process.errors : -1, .events = POLLIN },
        { .fd = has_mail ? s->process.in : -1, .events = POLLOUT },
        { .fd = s->wake, .events = POLLIN },
    };
    if (poll(fds, RT_COUNT(fds), -1) < 0)
        return errno == EINTR ? true : mcp_inbox_die(&s->inbox, RT_SYSTEM, "poll() failed");
    if (fds[3].revents)
        mcp_calm(s->wake);
    if (fds[1].revents)
        *hears_errors = read_errors(s);
    if (fds[2].revents) {
        if (fds[2].revents & POLLERR)
            return die_of_end(s);
        pthread_mutex_lock(&s->lock);
        flush(s);
        pthread_mutex_unlock(&s->lock);
    }
    return fds[0].revents ? read_output(s) : true;
}

static void *porter_run(void *arg)
{
    stdio_link *s = arg;
    bool hears_errors = true;
    while (porter_step(s, &hears_errors))
        ;
    s->link.ears.lost(s->link.ears.ctx);
    return NULL;
}

/* -- Asking ------------------------------------------------------------------------------------ */

static bool stdio_tell(mcp_link *link, rt_str method, rt_str body, uint64_t deadline_ns,
                       rt_error *err)
{
    stdio_link *s = (stdio_link *)link;
    (void)method, (void)deadline_ns;
    pthread_mutex_lock(&s->lock);
    bool fits = body.len + 1 <= OUTBOX_MAX - s->outbox.len;
    if (fits)
        post(s, body);
    pthread_mutex_unlock(&s->lock);
    return fits || rt_fail(err, RT_UNAVAILABLE, "it does not read what it is sent");
}

static bool stdio_ask(mcp_link *link, mcp_ask *ask, mcp_reply *reply, rt_error *err)
{
    stdio_link *s = (stdio_link *)link;
    mcp_pending p;
    if (!mcp_inbox_begin(&s->inbox, &p, ask->id, reply, err))
        return false;
    ask->was_sent = stdio_tell(link, ask->method, ask->body, ask->deadline_ns, err);
    bool is_good = ask->was_sent && mcp_inbox_await(&s->inbox, &p, ask, err);
    mcp_inbox_end(&s->inbox, &p);
    if (!is_good)
        mcp_reply_done(reply); /* it may have come at the last moment */
    return is_good;
}

static void stdio_settle(mcp_link *link, const rt_mcp_version *version)
{
    (void)link, (void)version; /* every line is alike */
}

static void stdio_listen(mcp_link *link, rt_str request)
{
    if (request.len)
        stdio_tell(link, RT_STR("subscriptions/listen"), request, 0, &(rt_error){ 0 });
}

/* -- Opening and closing ----------------------------------------------------------------------- */

static void stdio_shut(mcp_link *link)
{
    stdio_link *s = (stdio_link *)link;
    pthread_mutex_lock(&s->lock);
    s->is_shut = true;
    pthread_mutex_unlock(&s->lock);
    mcp_wake(s->wake);
}

static void stdio_close(mcp_link *link, bool is_patient)
{
    stdio_link *s = (stdio_link *)link;
    stdio_shut(link);
    pthread_join(s->porter, NULL);
    mcp_process_stop(&s->process, is_patient);
    mcp_inbox_done(&s->inbox);
    rt_buf_done(&s->input);
    rt_buf_done(&s->outbox);
    pthread_mutex_destroy(&s->lock);
    rt_closep(&s->wake);
    free(s);
}

static const mcp_link_kind stdio_kind = {
    .name = "stdio",
    .ask = stdio_ask,
    .tell = stdio_tell,
    .settle = stdio_settle,
    .listen = stdio_listen,
    .shut = stdio_shut,
    .close = stdio_close,
};

bool mcp_stdio_open(const rt_mcp_config *config, const mcp_ears *ears, mcp_link **out,
                    rt_error *err)
{
    mcp_process process;
    if (!mcp_process_start(config, &process, err))
        return false;
    stdio_link *s = calloc(1, sizeof(*s));
    if (!s)
        rt_out_of_memory(sizeof(*s));
    s->link = (mcp_link){ .kind = &stdio_kind, .config = config, .ears = *ears };
    mcp_inbox_init(&s->inbox, &s->link);
    s->process = process;
    s->input.max = MCP_MESSAGE_MAX + 2 + READ_SIZE;
    s->outbox.max = OUTBOX_MAX + READ_SIZE;
    pthread_mutex_init(&s->lock, NULL);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int code = s->wake < 0 ? errno : pthread_create(&s->porter, NULL, porter_run, s);
    if (code != 0) {
        mcp_process_stop(&s->process, false);
        rt_closep(&s->wake);
        mcp_inbox_done(&s->inbox);
        pthread_mutex_destroy(&s->lock);
        free(s);
        errno = code;
        return rt_fail_errno(err, "a thread for it");
    }
    *out = &s->link;
    return true;
}
