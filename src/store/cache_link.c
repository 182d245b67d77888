/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_link.c - a few connections to Redis that never keep anybody waiting for long.
 *
 * hiredis reads the replies; the socket is ours, because its calls wait per read, not per answer,
 * leave descriptors open across exec, and raise SIGPIPE. Every wait here ends at a deadline.
 *
 * Redis is up or away. Up, callers borrow idle connections and open new ones, up to CONNS_MAX. The
 * first failure makes it away: idle connections are closed, and nobody but the keeper, a thread,
 * asks it anything. The keeper waits (100 ms, then twice as long each time, up to 5 s), looks up
 * the host again, connects, and declares it up. So an outage costs one time-out to those who saw it
 * begin, and nothing to those who come later.
 *
 * The texts of errors are ours: what a server says may repeat the password it was given.
 */
#include "store/cache_internal.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNS_MAX      4
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS UINT64_C(5000)
#define MS             UINT64_C(1000000) /* in nanoseconds */
#define READ_BYTES     (64u << 10)
#define ELEMENTS_MAX   65536 /* of an array in a reply */
#define COMMANDS_BYTES ((size_t)1 << 30)

typedef struct peer {
    struct sockaddr_storage address;
    socklen_t len;
} peer;

struct store_conn {
    int fd;
    redisReader *reader;
    redisReplyObjectFunctions functions;
    void *(*create_array)(const redisReadTask *, int); /* hiredis's own */
    rt_buf out;
    uint64_t deadline_ns, outage; /* `outage`: how many there had been when it was opened */
    size_t reply_bytes;
};

struct store_link {
    store_link_config config;
    pthread_t keeper;
    pthread_mutex_t lock;
    pthread_cond_t freed;  /* for those who wait for a connection */
    pthread_cond_t outage; /* for the keeper: Redis is away, or the end has come */
    /* under the lock: */
    bool is_up, is_closing;
    uint64_t outages, failures;
    rt_error state;
    peer peer; /* where it was last reached */
    store_conn *idle[CONNS_MAX];
    size_t idle_count, open_count;
};

/* -- Talking ----------------------------------------------------------------------------------- */

static bool wait_for(const store_conn *conn, short events, rt_error *err)
{
    for (;;) {
        uint64_t now = rt_now_ns();
        if (now >= conn->deadline_ns)
            return rt_fail(err, RT_TIMEOUT, "no answer in time");
        uint64_t left = conn->deadline_ns - now;
        struct pollfd waiting = { .fd = conn->fd, .events = events };
        struct timespec limit = { (time_t)(left / (1000 * MS)), (long)(left % (1000 * MS)) };
        int ready = ppoll(&waiting, 1, &limit, NULL);
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return rt_fail_errno(err, "poll");
    }
}

static bool send_all(store_conn *conn, rt_error *err)
{
    rt_str rest = rt_buf_str(&conn->out);
    while (rest.len > 0) {
        ssize_t sent = send(conn->fd, rest.ptr, rest.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0)
            rest = rt_str_slice(rest, (size_t)sent, rest.len);
        else if (errno != EAGAIN && errno != EINTR)
            return rt_fail_errno(err, "send");
        else if (errno == EAGAIN && !wait_for(conn, POLLOUT, err))
            return false;
    }
    return true;
}

static bool receive_some(store_conn *conn, rt_error *err)
{
    char bytes[READ_BYTES];
    ssize_t got = recv(conn->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got == 0)
        return rt_fail(err, RT_UNAVAILABLE, "the connection was closed");
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        return rt_fail_errno(err, "receive");
    if (got < 0)
        return wait_for(conn, POLLIN, err);
    if (conn->reader->len - conn->reader->pos + (size_t)got > conn->reply_bytes)
        return rt_fail(err, RT_LIMIT, "an answer is longer than %zu bytes", conn->reply_bytes);
    if (redisReaderFeed(conn->reader, bytes, (size_t)got) != REDIS_OK)
        return rt_fail(err, RT_UNAVAILABLE, "an answer is not the protocol of Redis");
    return true;
}

static bool receive_reply(store_conn *conn, redisReply **out, rt_error *err)
{
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(conn->reader, &reply) != REDIS_OK)
            return rt_fail(err, RT_UNAVAILABLE, "an answer is not the protocol of Redis");
        if (reply) {
            *out = reply;
            return true;
        }
        if (!receive_some(conn, err))
            return false;
    }
}

void store_conn_add(store_conn *conn, const rt_str *words, size_t count)
{
    rt_buf_addf(&conn->out, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        rt_buf_addf(&conn->out, "$%zu\r\n", words[i].len);
        rt_buf_add(&conn->out, words[i]);
        rt_buf_add(&conn->out, RT_STR("\r\n"));
    }
}

bool store_conn_ask(store_conn *conn, redisReply **replies, size_t count, rt_error *err)
{
    bool ok = rt_buf_ok(&conn->out, err) && send_all(conn, err);
    size_t received = 0;
    while (ok && received < count) {
        ok = receive_reply(conn, &replies[received], err);
        received += ok;
    }
    if (!ok) {
        while (received > 0)
            freeReplyObject(replies[--received]);
        memset(replies, 0, count * sizeof(*replies));
    }
    rt_buf_reset(&conn->out);
    return ok;
}

void store_conn_set_deadline(store_conn *conn, uint64_t deadline_ns)
{
    conn->deadline_ns = deadline_ns;
}

/* -- One connection ---------------------------------------------------------------------------- */

/* hiredis allocates an array by the number the server names, before any element is there. */
static void *create_bounded_array(const redisReadTask *task, int elements)
{
    store_conn *conn = task->privdata;
    return elements > ELEMENTS_MAX ? NULL : conn->create_array(task, elements);
}

static void conn_free(store_conn *conn)
{
    if (!conn)
        return;
    rt_closep(&conn->fd);
    if (conn->reader)
        redisReaderFree(conn->reader);
    rt_buf_done(&conn->out);
    free(conn);
}

static void conn_freep(store_conn **conn)
{
    conn_free(*conn);
}

static store_conn *conn_new(const store_link_config *config, uint64_t deadline_ns)
{
    store_conn *conn = calloc(1, sizeof(*conn));
    redisReader *reader = redisReaderCreate();
    if (!conn || !reader)
        rt_out_of_memory(sizeof(*conn));
    *conn = (store_conn){ .fd = -1,
                          .reader = reader,
                          .functions = *reader->fn,
                          .create_array = reader->fn->createArray,
                          .deadline_ns = deadline_ns,
                          .reply_bytes = config->reply_bytes };
    conn->functions.createArray = create_bounded_array;
    reader->fn = &conn->functions;
    reader->privdata = conn;
    rt_buf_init(&conn->out, COMMANDS_BYTES);
    return conn;
}

static bool dial(store_conn *conn, const peer *to, rt_error *err)
{
    const struct sockaddr *address = (const struct sockaddr *)&to->address;
    int failure = 0, on = 1;
    socklen_t size = sizeof(failure);
    conn->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (conn->fd < 0)
        return rt_fail_errno(err, "socket");
    if (connect(conn->fd, address, to->len) != 0) {
        if (errno != EINPROGRESS)
            return rt_fail_errno(err, "connect");
        if (!wait_for(conn, POLLOUT, err))
            return rt_wrap(err, "connect");
        getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &failure, &size);
        errno = failure;
        if (failure)
            return rt_fail_errno(err, "connect");
    }
    if (address->sa_family != AF_UNIX)
        setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return true;
}

static bool is_error(const redisReply *reply, const char *kind)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, kind, strlen(kind)) == 0;
}

static bool judge_greeting(const redisReply *reply, rt_code code, const char *what, rt_error *err)
{
    if (is_error(reply, "LOADING"))
        return rt_fail(err, RT_UNAVAILABLE, "it is still loading its data");
    if (is_error(reply, "NOAUTH"))
        return rt_fail(err, RT_DENIED, "it wants a password, and the URL has none");
    if (reply->type == REDIS_REPLY_ERROR)
        return rt_fail(err, code, "it refused %s", what);
    return true;
}

/* AUTH and SELECT where needed, and PING, which shows whether that was enough: one round trip. */
static bool greet(store_conn *conn, const store_redis_url *url, rt_error *err)
{
    rt_str user = rt_str_of(url->user), password = rt_str_of(url->password);
    char db[16];
    snprintf(db, sizeof(db), "%u", url->db);
    const struct {
        bool is_needed;
        rt_str words[3];
        size_t word_count;
        rt_code code;
        const char *what;
    } steps[] = {
        { user.len, { RT_STR("AUTH"), user, password }, 3, RT_DENIED, "the user or the password" },
        { password.len && !user.len, { RT_STR("AUTH"), password }, 2, RT_DENIED, "the password" },
        { url->db, { RT_STR("SELECT"), rt_str_of(db) }, 2, RT_UNAVAILABLE, "the database" },
        { true, { RT_STR("PING") }, 1, RT_UNAVAILABLE, "to serve" },
    };
    redisReply *replies[RT_COUNT(steps)] = { 0 };
    size_t count = 0, next = 0;
    for (size_t i = 0; i < RT_COUNT(steps); i++) {
        if (steps[i].is_needed)
            store_conn_add(conn, steps[i].words, steps[i].word_count);
        count += steps[i].is_needed;
    }
    bool ok = store_conn_ask(conn, replies, count, err);
    explicit_bzero(conn->out.ptr, conn->out.cap); /* the password */
    for (size_t i = 0; i < RT_COUNT(steps); i++)
        if (ok && steps[i].is_needed)
            ok = judge_greeting(replies[next++], steps[i].code, steps[i].what, err);
    for (size_t i = 0; i < count; i++)
        if (replies[i])
            freeReplyObject(replies[i]);
    return ok;
}

static bool conn_open(const store_link_config *config, const peer *to, uint64_t deadline_ns,
                      store_conn **out, rt_error *err)
{
    store_conn *conn RT_CLEANUP(conn_freep) = conn_new(config, deadline_ns);
    if (!dial(conn, to, err) || !greet(conn, &config->url, err))
        return false;
    *out = RT_TAKE(conn);
    return true;
}

/* Nothing may be waiting on an idle connection: if something is, it is the end of it. */
static bool is_alive(const store_conn *conn)
{
    struct pollfd look = { .fd = conn->fd, .events = POLLIN };
    return poll(&look, 1, 0) == 0;
}

/* -- Finding it -------------------------------------------------------------------------------- */

static bool open_unix(store_link *link, uint64_t deadline_ns, peer *to, store_conn **out,
                      rt_error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    _Static_assert(sizeof(address.sun_path) >= sizeof(link->config.url.path), "a path fits");
    memcpy(address.sun_path, link->config.url.path, sizeof(link->config.url.path));
    *to = (peer){ .len = sizeof(address) };
    memcpy(&to->address, &address, sizeof(address));
    return conn_open(&link->config, to, deadline_ns, out, err);
}

static void free_addresses(struct addrinfo **list)
{
    if (*list)
        freeaddrinfo(*list);
}

/* The addresses of the host are tried in turn, all before one deadline. */
static bool open_tcp(store_link *link, uint64_t deadline_ns, peer *to, store_conn **out,
                     rt_error *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    struct addrinfo *list RT_CLEANUP(free_addresses) = NULL;
    char port[16];
    snprintf(port, sizeof(port), "%u", link->config.url.port);
    int failure = getaddrinfo(link->config.url.host, port, &hints, &list);
    if (failure)
        return rt_fail(err, RT_UNAVAILABLE, "look up the host: %s", gai_strerror(failure));
    for (struct addrinfo *at = list; at; at = at->ai_next) {
        *to = (peer){ .len = at->ai_addrlen };
        memcpy(&to->address, at->ai_addr, at->ai_addrlen);
        /* What one address refuses for the password, the next would refuse too. */
        if (conn_open(&link->config, to, deadline_ns, out, err))
            return true;
        if (err->code == RT_DENIED)
            return false;
    }
    return false;
}

/* No lock is held: this may take as long as the resolver. */
static bool find_and_open(store_link *link, peer *to, store_conn **out, rt_error *err)
{
    bool is_unix = link->config.url.host[0] == '\0';
    uint64_t deadline_ns = rt_now_ns() + link->config.timeout_ms * MS;
    if (!(is_unix ? open_unix : open_tcp)(link, deadline_ns, to, out, err))
        return rt_wrap(err, "Redis");
    return true;
}

/* -- The keeper -------------------------------------------------------------------------------- */

static void unlockp(store_link **held)
{
    pthread_mutex_unlock(&(*held)->lock);
}

static store_link *lock(store_link *link)
{
    pthread_mutex_lock(&link->lock);
    return link;
}

/* The lock is held. False once the time is over. */
static bool wait_until(store_link *link, pthread_cond_t *what, uint64_t until_ns)
{
    struct timespec until = { (time_t)(until_ns / (1000 * MS)), (long)(until_ns % (1000 * MS)) };
    return pthread_cond_timedwait(what, &link->lock, &until) != ETIMEDOUT;
}

/* One attempt. Whether Redis is up now. */
static bool try_to_return(store_link *link)
{
    store_conn *conn = NULL;
    peer to = { 0 };
    rt_error err = { 0 };
    bool ok = find_and_open(link, &to, &conn, &err);
    store_link *held RT_CLEANUP(unlockp) = lock(link);
    if (!ok) {
        held->failures++;
        held->state = err;
        return false;
    }
    conn->outage = held->outages;
    held->peer = to;
    held->state = (rt_error){ 0 };
    held->is_up = true;
    held->idle[held->idle_count++] = conn; /* away means none idle, so there is room */
    held->open_count++;
    return true;
}

/* Until Redis is away, and then for the pause. False when there is nothing more to do. */
static bool wait_for_outage(store_link *link, uint64_t pause_ms)
{
    store_link *held RT_CLEANUP(unlockp) = lock(link);
    while (held->is_up && !held->is_closing)
        pthread_cond_wait(&held->outage, &held->lock);
    uint64_t until_ns = rt_now_ns() + pause_ms * MS;
    while (!held->is_closing && wait_until(held, &held->outage, until_ns))
        ;
    return !held->is_closing;
}

static void *keep(void *argument)
{
    store_link *link = argument;
    uint64_t pause_ms = BACKOFF_MIN_MS;
    while (wait_for_outage(link, pause_ms)) {
        if (!try_to_return(link)) {
            pause_ms = RT_MIN(pause_ms * 2, BACKOFF_MAX_MS);
            continue;
        }
        pause_ms = BACKOFF_MIN_MS;
        link->config.on_return(link->config.context, link);
    }
    return NULL;
}

/* -- The link ---------------------------------------------------------------------------------- */

static void close_idle(store_link *link)
{
    while (link->idle_count > 0) {
        conn_free(link->idle[--link->idle_count]);
        link->open_count--;
    }
}

static void link_free(store_link *link)
{
    close_idle(link);
    pthread_cond_destroy(&link->freed);
    pthread_cond_destroy(&link->outage);
    pthread_mutex_destroy(&link->lock);
    explicit_bzero(&link->config, sizeof(link->config));
    free(link);
}

bool store_link_open(const store_link_config *config, store_link **out, rt_error *err)
{
    store_link *link = calloc(1, sizeof(*link));
    pthread_condattr_t attributes;
    if (!link)
        rt_out_of_memory(sizeof(*link));
    link->config = *config;
    pthread_mutex_init(&link->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&link->freed, &attributes);
    pthread_cond_init(&link->outage, &attributes);
    pthread_condattr_destroy(&attributes);
    try_to_return(link);
    errno = pthread_create(&link->keeper, NULL, keep, link);
    if (errno) {
        link_free(link);
        return rt_fail_errno(err, "start a thread");
    }
    *out = link;
    return true;
}

void store_link_close(store_link *link)
{
    if (!link)
        return;
    lock(link)->is_closing = true;
    pthread_cond_signal(&link->outage);
    pthread_mutex_unlock(&link->lock);
    pthread_join(link->keeper, NULL);
    link_free(link);
}

bool store_link_is_up(store_link *link)
{
    store_link *held RT_CLEANUP(unlockp) = lock(link);
    return held->is_up;
}

rt_error store_link_state(store_link *link)
{
    store_link *held RT_CLEANUP(unlockp) = lock(link);
    return held->state;
}

uint64_t store_link_failures(store_link *link)
{
    store_link *held RT_CLEANUP(unlockp) = lock(link);
    return held->failures;
}

/*
 * A connection to use; or leave to open one to *to; or neither, and it is a miss. Half the time is
 * for waiting until one is free: with less than the other half left, asking would only look like
 * an outage.
 */
static store_conn *take_idle(store_link *link, uint64_t deadline_ns, peer *to, uint64_t *outage)
{
    store_link *held RT_CLEANUP(unlockp) = lock(link);
    while (held->is_up) {
        if (held->idle_count > 0) {
            store_conn *conn = held->idle[--held->idle_count];
            if (is_alive(conn))
                return conn;
            conn_free(conn); /* Redis closes what is idle for long: no outage */
            held->open_count--;
        } else if (held->open_count < CONNS_MAX) {
            held->open_count++;
            *to = held->peer;
            *outage = held->outages;
            return NULL;
        } else if (!wait_until(held, &held->freed,
                               deadline_ns - link->config.timeout_ms * MS / 2)) {
            return NULL;
        }
    }
    return NULL;
}

/* It went wrong, in a connection that `outage` outages had come before. The lock is held. */
static void declare_away(store_link *link, uint64_t outage, const rt_error *failure)
{
    link->failures++;
    if (outage != link->outages)
        return; /* an old story: it has been back since */
    link->outages++;
    link->is_up = false;
    link->state = *failure;
    close_idle(link);
    pthread_cond_broadcast(&link->freed);
    pthread_cond_signal(&link->outage);
}

store_conn *store_link_take(store_link *link, uint64_t deadline_ns)
{
    peer to = { 0 };
    uint64_t outage = 0;
    rt_error err = { 0 };
    store_conn *conn = take_idle(link, deadline_ns, &to, &outage);
    if (!conn && to.len == 0)
        return NULL;
    if (!conn && !conn_open(&link->config, &to, deadline_ns, &conn, &err)) {
        rt_wrap(&err, "Redis");
        store_link *held RT_CLEANUP(unlockp) = lock(link);
        held->open_count--;
        declare_away(held, outage, &err);
        return NULL;
    }
    if (to.len)
        conn->outage = outage;
    store_conn_set_deadline(conn, deadline_ns);
    return conn;
}

void store_link_give(store_link *link, store_conn *conn, const rt_error *failure)
{
    store_link *held RT_CLEANUP(unlockp) = lock(link);
    if (failure)
        declare_away(held, conn->outage, failure);
    if (held->is_up && conn->outage == held->outages && held->idle_count < CONNS_MAX) {
        held->idle[held->idle_count++] = conn;
    } else {
        held->open_count--;
        conn_free(conn);
    }
    pthread_cond_signal(&held->freed);
}
