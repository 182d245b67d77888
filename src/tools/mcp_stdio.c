/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_stdio.c - messages to and from a process, one a line.
 *
 * One thread per link (the porter) reads what the process says and writes what did not fit into its
 * pipe at once. Callers put a pending request on the list, write, and wait on a descriptor of their
 * own beside the one that cancels them; so a process that does not read, does not answer or never
 * stops talking delays nobody but those who asked it.
 *
 * What takes long is done by the callers: judging their answer, and answering what the server asks
 * back (an errand), which only makes sense while one of them waits.
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
    ERRANDS_MAX = 16,
    PROGRESS_KEPT = 16,
    LAST_WORDS = 2048, /* of standard error */
};
#define OUTBOX_MAX ((size_t)128 << 20)

typedef struct pending {
    uint64_t id;
    int wake;
    mcp_reply *reply;
    bool is_answered, is_broken;
    mcp_progress progress[PROGRESS_KEPT]; /* a ring: of too many, the oldest go */
    size_t progress_first, progress_count;
    struct pending *next;
} pending;

typedef struct stdio_link {
    mcp_link link;
    mcp_process process;
    pthread_t porter;
    int wake; /* of the porter */

    pthread_mutex_t lock; /* for what follows, up to the next line */
    pending *waiting;
    rt_buf outbox;
    size_t outbox_sent;
    rt_buf errands[ERRANDS_MAX]; /* requests of the server, as they came */
    size_t errand_count;
    bool is_shut;
    rt_error why; /* it is dead */

    rt_buf input; /* the porter's own, from here */
    size_t scanned;
    mcp_flood flood;
    char words[LAST_WORDS];
    size_t words_len;
} stdio_link;

/* -- Dying ------------------------------------------------------------------------------------- */

static void wake_all(stdio_link *s)
{
    for (pending *p = s->waiting; p; p = p->next)
        mcp_wake(p->wake);
}

static bool die(stdio_link *s, rt_code code, const char *why)
{
    pthread_mutex_lock(&s->lock);
    if (!s->link.is_dead)
        rt_fail(&s->why, code, "%s", why);
    s->link.is_dead = true;
    wake_all(s);
    pthread_mutex_unlock(&s->lock);
    return false;
}

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
    return die(s, RT_UNAVAILABLE, why);
}

/* -- What it says ------------------------------------------------------------------------------ */

/* One line; `whole` is the buffer it fills, which may be taken, or NULL. */
typedef struct line {
    rt_str text;
    rt_buf *whole;
} line;

static void deliver(pending *p, line *from, const rt_mcp_message *message)
{
    const char *old = from->text.ptr;
    mcp_reply *reply = p->reply;
    if (from->whole) {
        reply->text = *from->whole;
        *from->whole = (rt_buf){ .max = from->whole->max };
    } else {
        reply->text = (rt_buf){ .max = MCP_MESSAGE_MAX + 1 };
        rt_buf_add(&reply->text, from->text);
    }
    ptrdiff_t moved = reply->text.ptr - old;
    rt_str *views[] = { &reply->message.id, &reply->message.method, &reply->message.params,
                        &reply->message.result, &reply->message.error };
    reply->message = *message;
    for (size_t i = 0; i < RT_COUNT(views); i++)
        if (views[i]->len)
            views[i]->ptr += moved;
    p->is_answered = true;
    mcp_wake(p->wake);
}

/* Errors without an id are for the only one who asked, if there is but one. */
static pending *take_pending(stdio_link *s, const rt_mcp_message *m)
{
    bool is_for_any = m->kind == RT_MCP_ERROR && m->id.len == 0 && s->waiting && !s->waiting->next;
    for (pending **at = &s->waiting; *at; at = &(*at)->next) {
        pending *p = *at;
        if (!p->is_answered && (is_for_any || rt_mcp_id_is(m->id, p->id))) {
            *at = p->next;
            return p;
        }
    }
    return NULL;
}

static bool hear_response(stdio_link *s, line *from, const rt_mcp_message *m)
{
    pthread_mutex_lock(&s->lock);
    pending *p = take_pending(s, m);
    if (p)
        deliver(p, from, m);
    pthread_mutex_unlock(&s->lock);
    return p != NULL;
}

static void hear_progress(stdio_link *s, const mcp_progress *progress)
{
    pthread_mutex_lock(&s->lock);
    for (pending *p = s->waiting; p; p = p->next) {
        if (p->id != progress->token)
            continue;
        p->progress[(p->progress_first + p->progress_count) % PROGRESS_KEPT] = *progress;
        if (p->progress_count < PROGRESS_KEPT)
            p->progress_count++;
        else
            p->progress_first = (p->progress_first + 1) % PROGRESS_KEPT;
        mcp_wake(p->wake);
    }
    pthread_mutex_unlock(&s->lock);
}

static void post(stdio_link *s, rt_str body);

static void hear_request(stdio_link *s, rt_str text, const rt_mcp_message *m)
{
    rt_buf answer RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX };
    bool is_errand = !s->link.ears.answer(s->link.ears.ctx, m, false, &answer);
    pthread_mutex_lock(&s->lock);
    if (is_errand && s->waiting && s->errand_count < ERRANDS_MAX) {
        rt_buf *errand = &s->errands[s->errand_count++];
        *errand = (rt_buf){ .max = MCP_MESSAGE_MAX };
        rt_buf_add(errand, text);
        wake_all(s);
    } else {
        if (is_errand)
            rt_mcp_write_error(&answer, m->id, RT_MCP_INTERNAL_ERROR,
                               RT_STR("nobody here waits for this server"), RT_STR(""));
        post(s, rt_buf_str(&answer));
    }
    pthread_mutex_unlock(&s->lock);
}

/* What is no message may still say whom it was for. */
static bool hear_broken(stdio_link *s, rt_str text)
{
    rt_mcp_message m = { .kind = RT_MCP_RESULT, .id = rt_mcp_member(text, RT_STR("id")) };
    s->link.broken_count++;
    if (m.id.len == 0 || rt_mcp_member(text, RT_STR("method")).len)
        return false;
    pthread_mutex_lock(&s->lock);
    pending *p = take_pending(s, &m);
    if (p) {
        p->is_answered = p->is_broken = true;
        mcp_wake(p->wake);
    }
    pthread_mutex_unlock(&s->lock);
    return p != NULL;
}

/* True: it was an answer that somebody waited for. */
static bool hear_message(stdio_link *s, line *from)
{
    rt_mcp_message m;
    mcp_progress progress;
    if (!rt_mcp_message_scan(from->text, &m, NULL))
        return hear_broken(s, from->text);
    switch (m.kind) {
    case RT_MCP_RESULT:
    case RT_MCP_ERROR:
        return hear_response(s, from, &m);
    case RT_MCP_REQUEST:
        hear_request(s, from->text, &m);
        return false;
    case RT_MCP_NOTIFICATION:
        if (mcp_progress_read(&m, &progress))
            hear_progress(s, &progress);
        else
            s->link.ears.news(s->link.ears.ctx, &m);
        return false;
    }
    return false;
}

static bool hear_line(stdio_link *s, line *from)
{
    rt_str item, rest = rt_str_trim(from->text);
    size_t size = from->text.len;
    bool was_asked = false;
    if (rest.len == 0)
        return true;
    if (rest.ptr[0] == '[')
        while (rt_mcp_batch_next(&rest, &item))
            was_asked |= hear_message(s, &(line){ .text = item });
    else
        was_asked = hear_message(s, from);
    if (!was_asked && !mcp_flood_allows(&s->flood, rt_now_ns(), size))
        return die(s, RT_LIMIT, "it was cut off because it flooded us with what nobody asked for");
    return true;
}

/* The first `len` bytes of the input are a line to hand over. What is behind it is the new input.
 */
static bool take_long_line(stdio_link *s, size_t len)
{
    rt_buf whole = s->input;
    s->input = (rt_buf){ .max = whole.max };
    s->scanned = 0;
    rt_buf_add(&s->input, (rt_str){ whole.ptr + len + 1, whole.len - len - 1 });
    bool is_good = hear_line(s, &(line){ .text = { whole.ptr, len }, .whole = &whole });
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
            if (!hear_line(s, &(line){ .text = { start, len } }))
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
        return die(s, RT_LIMIT, "it was cut off because it sent a line of more than 64 MiB");
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

static bool post_checked(stdio_link *s, rt_str body, rt_error *err)
{
    if (s->link.is_dead) {
        *err = s->why;
        return false;
    }
    if (body.len + 1 > OUTBOX_MAX - s->outbox.len)
        return rt_fail(err, RT_UNAVAILABLE, "it does not read what it is sent");
    post(s, body);
    return true;
}

/* -- The porter -------------------------------------------------------------------------------- */

static bool porter_step(stdio_link *s, bool *hears_errors)
{
    pthread_mutex_lock(&s->lock);
    bool has_mail = s->outbox.len > 0, is_over = s->is_shut;
    pthread_mutex_unlock(&s->lock);
    if (is_over)
        return die(s, RT_UNAVAILABLE, "it was stopped");
    struct pollfd fds[] = {
        { .fd = s->process.out, .events = POLLIN },
        { .fd = *hears_errors ? s->process.errors : -1, .events = POLLIN },
        { .fd = has_mail ? s->process.in : -1, .events = POLLOUT },
        { .fd = s->wake, .events = POLLIN },
    };
    if (poll(fds, RT_COUNT(fds), -1) < 0)
        return errno == EINTR ? true : die(s, RT_SYSTEM, "poll() failed");
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

static void forget(stdio_link *s, pending *p)
{
    for (pending **at = &s->waiting; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            return;
        }
}

/* The answer is ours: say so, and whatever is to be said before it. */
static void tell_progress(stdio_link *s, pending *p, mcp_ask *ask)
{
    pthread_mutex_lock(&s->lock);
    while (p->progress_count) {
        mcp_progress progress = p->progress[p->progress_first];
        p->progress_first = (p->progress_first + 1) % PROGRESS_KEPT;
        p->progress_count--;
        pthread_mutex_unlock(&s->lock);
        mcp_ask_extend(ask);
        if (ask->on_progress)
            ask->on_progress(ask->progress_ctx, progress.done, progress.total,
                             rt_str_of(progress.message));
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
}

static bool take_errand(stdio_link *s, rt_buf *out)
{
    pthread_mutex_lock(&s->lock);
    bool has_errand = s->errand_count > 0;
    if (has_errand) {
        *out = s->errands[0];
        memmove(s->errands, s->errands + 1, --s->errand_count * sizeof(*s->errands));
    }
    pthread_mutex_unlock(&s->lock);
    return has_errand;
}

static void run_errands(stdio_link *s)
{
    rt_buf errand;
    while (take_errand(s, &errand)) {
        rt_buf answer RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX };
        rt_mcp_message m;
        if (rt_mcp_message_scan(rt_buf_str(&errand), &m, NULL) &&
            s->link.ears.answer(s->link.ears.ctx, &m, true, &answer)) {
            pthread_mutex_lock(&s->lock);
            post_checked(s, rt_buf_str(&answer), &(rt_error){ 0 });
            pthread_mutex_unlock(&s->lock);
        }
        rt_buf_done(&errand);
    }
}

static void call_off(stdio_link *s, const mcp_ask *ask, const char *reason)
{
    rt_buf body RT_CLEANUP(rt_buf_done) = { 0 };
    if (ask->is_not_cancellable)
        return;
    rt_buf_addf(&body,
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                "\"params\":{\"requestId\":%llu,\"reason\":\"%s\"}}",
                (unsigned long long)ask->id, reason);
    pthread_mutex_lock(&s->lock);
    post_checked(s, rt_buf_str(&body), &(rt_error){ 0 });
    pthread_mutex_unlock(&s->lock);
}

/* Whether it is over, one way or the other. */
static bool look(stdio_link *s, pending *p, rt_error *err, bool *is_good)
{
    pthread_mutex_lock(&s->lock);
    *is_good = p->is_answered && !p->is_broken;
    bool is_over = p->is_answered || s->link.is_dead;
    if (p->is_broken)
        rt_fail(err, RT_INVALID, "its answer is no JSON");
    else if (is_over && !p->is_answered)
        *err = s->why;
    pthread_mutex_unlock(&s->lock);
    return is_over;
}

static bool await(stdio_link *s, pending *p, mcp_ask *ask, rt_error *err)
{
    bool is_good;
    for (;;) {
        mcp_woken woken = mcp_wait(p->wake, ask->cancel_fd, ask->deadline_ns);
        mcp_calm(p->wake);
        tell_progress(s, p, ask);
        if (look(s, p, err, &is_good))
            return is_good;
        run_errands(s);
        if (woken == MCP_WOKEN_BY_SECOND) {
            call_off(s, ask, "the caller has cancelled it");
            return rt_fail(err, RT_CANCELLED, "the call was cancelled");
        }
        if (rt_now_ns() >= ask->deadline_ns) {
            call_off(s, ask, "it took too long");
            return rt_fail(err, RT_TIMEOUT,
                           "it did not answer in time; raise timeout_ms if it needs longer");
        }
    }
}

static bool stdio_ask(mcp_link *link, mcp_ask *ask, mcp_reply *reply, rt_error *err)
{
    stdio_link *s = (stdio_link *)link;
    pending p = { .id = ask->id, .reply = reply, .wake = -1 };
    p.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p.wake < 0)
        return rt_fail_errno(err, "a descriptor to wait on");
    pthread_mutex_lock(&s->lock);
    ask->was_sent = post_checked(s, ask->body, err);
    if (ask->was_sent) {
        p.next = s->waiting;
        s->waiting = &p;
    }
    pthread_mutex_unlock(&s->lock);
    bool is_good = ask->was_sent && await(s, &p, ask, err);
    pthread_mutex_lock(&s->lock);
    forget(s, &p);
    pthread_mutex_unlock(&s->lock);
    if (!is_good)
        mcp_reply_done(reply); /* it may have come at the last moment */
    close(p.wake);
    return is_good;
}

static bool stdio_tell(mcp_link *link, rt_str method, rt_str body, uint64_t deadline_ns,
                       rt_error *err)
{
    stdio_link *s = (stdio_link *)link;
    (void)method, (void)deadline_ns;
    pthread_mutex_lock(&s->lock);
    bool is_good = post_checked(s, body, err);
    pthread_mutex_unlock(&s->lock);
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

/* -- Opening and closing
 * --------------------------------------------------------------------------- */

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
    for (size_t i = 0; i < s->errand_count; i++)
        rt_buf_done(&s->errands[i]);
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
    s->process = process;
    s->input.max = MCP_MESSAGE_MAX + 2 + READ_SIZE;
    s->outbox.max = OUTBOX_MAX + READ_SIZE;
    pthread_mutex_init(&s->lock, NULL);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int code = s->wake < 0 ? errno : pthread_create(&s->porter, NULL, porter_run, s);
    if (code != 0) {
        mcp_process_stop(&s->process, false);
        rt_closep(&s->wake);
        pthread_mutex_destroy(&s->lock);
        free(s);
        errno = code;
        return rt_fail_errno(err, "a thread for it");
    }
    *out = &s->link;
    return true;
}
