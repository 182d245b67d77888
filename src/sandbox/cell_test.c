/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test plays everybody else: the warden on the lease, the guest on the control socket and the
 * pipes, the cell's first process on the link.
 */
#include "sandbox/cell.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct stage {
    rt_cell *cell;
    int lease, control, in, out, err, link; /* our ends */
} stage;

static void raise_curtain(stage *s, uint64_t frame_bytes)
{
    int lease[2], control[2], in[2], out[2], err[2], link[2];
    signal(SIGPIPE, SIG_IGN); /* as main() does */
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lease), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link), 0);
    cr_assert_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC), 0);
    int granted[GRANT_FDS] = { [GRANT_CONTROL] = control[0],
                               [GRANT_STDIN] = in[1],
                               [GRANT_STDOUT] = out[0],
                               [GRANT_STDERR] = err[0],
                               [GRANT_LINK] = link[0] };
    *s = (stage){ .cell = sandbox_cell_new(lease[0], granted, frame_bytes),
                  .lease = lease[1],
                  .control = control[1],
                  .in = in[0],
                  .out = out[1],
                  .err = err[1],
                  .link = link[1] };
}

static void drop_curtain(stage *s)
{
    int *ends[] = { &s->lease, &s->control, &s->in, &s->out, &s->err, &s->link };
    rt_cell_close(s->cell);
    for (size_t i = 0; i < RT_COUNT(ends); i++)
        rt_closep(ends[i]);
}

#define STAGE(name, frame_bytes)                                                                   \
    stage name RT_CLEANUP(drop_curtain) = { 0 };                                                   \
    raise_curtain(&name, frame_bytes)

static void say(int fd, rt_str bytes)
{
    cr_assert_eq(write(fd, bytes.ptr, bytes.len), (ssize_t)bytes.len);
}

static void say_frame(int fd, rt_str text)
{
    uint32_t size = (uint32_t)text.len;
    say(fd, (rt_str){ (const char *)&size, sizeof(size) });
    say(fd, text);
}

static void say_link(const stage *s, uint32_t kind, rt_str body, int fd)
{
    char packet[4096];
    link_head head = { .kind = kind, .size = (uint32_t)body.len };
    memcpy(packet, &head, sizeof(head));
    memcpy(packet + sizeof(head), body.ptr, body.len);
    cr_assert_gt(jail_packet_send(s->link, packet, sizeof(head) + body.len, &fd, fd < 0 ? 0 : 1),
                 0);
}

static void say_exit(const stage *s, rt_cell_usage usage)
{
    lease_message message;
    memset(&message, 0, sizeof(message));
    message.kind = LEASE_EXIT;
    message.usage = usage;
    cr_assert_gt(jail_packet_send(s->lease, &message, sizeof(message), NULL, 0), 0);
}

static uint64_t soon(unsigned ms)
{
    return rt_now_ns() + ms * 1000000ull;
}

static rt_cell_event next(stage *s, unsigned ms)
{
    rt_cell_event event;
    rt_error err = { 0 };
    cr_assert(rt_cell_next(s->cell, soon(ms), &event, &err), "%s", err.text);
    return event;
}

static void expect_text(stage *s, rt_cell_event_kind kind, int stream, const char *text)
{
    rt_cell_event event = next(s, 5000);
    cr_assert_eq(event.kind, kind, "event %d where %d was expected", event.kind, kind);
    cr_expect_eq(event.stream, stream);
    cr_expect(rt_str_eq_c(event.text, text), "'%.*s' is not '%s'", RT_FMT(event.text), text);
}

static void expect_frame(stage *s, const char *text)
{
    expect_text(s, RT_CELL_FRAME, 0, text);
}

/* ---- frames ---- */

Test(cell, a_frame_may_come_byte_by_byte)
{
    STAGE(s, 0);
    static const char whole[] = "\x0c\0\0\0{\"op\":\"ok\"}\n";
    for (size_t i = 0; i + 1 < sizeof(whole) - 1; i++) {
        say(s.control, (rt_str){ whole + i, 1 });
        cr_assert_eq(next(&s, 1).kind, RT_CELL_TIME, "nothing is given out before byte %zu", i);
    }
    say(s.control, RT_STR("\n"));
    expect_frame(&s, "{\"op\":\"ok\"}\n");
}

Test(cell, two_frames_may_come_in_one_piece)
{
    STAGE(s, 0);
    say(s.control, RT_STR("\x03\0\0\0one\x03\0\0\0two\x00\0\0\0\x05\0\0\0th"));
    expect_frame(&s, "one");
    expect_frame(&s, "two");
    expect_frame(&s, "");
    say(s.control, RT_STR("ree"));
    expect_frame(&s, "three");
}

static void *say_long_frame(void *ctx)
{
    stage *s = ctx;
    char *text = malloc(1 << 20);
    memset(text, 'x', 1 << 20);
    say_frame(s->control, (rt_str){ text, 1 << 20 });
    free(text);
    return NULL;
}

Test(cell, a_frame_may_be_longer_than_any_socket_buffer)
{
    STAGE(s, 1 << 20);
    pthread_t guest;
    pthread_create(&guest, NULL, say_long_frame, &s);
    rt_cell_event event = next(&s, 5000);
    cr_expect_eq(event.kind, RT_CELL_FRAME);
    cr_expect_eq(event.text.len, 1 << 20);
    cr_expect_eq(event.text.ptr[(1 << 20) - 1], 'x');
    pthread_join(guest, NULL);
}

Test(cell, a_length_over_the_limit_is_refused_before_anything_is_kept)
{
    static const struct {
        uint32_t size;
        bool is_good;
    } cases[] = { { 100, true }, { 101, false }, { 0x7fffffff, false }, { 0xffffffff, false } };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        STAGE(s, 100);
        rt_cell_event event;
        rt_error err = { 0 };
        say(s.control, (rt_str){ (const char *)&cases[i].size, sizeof(uint32_t) });
        bool ok = rt_cell_next(s.cell, soon(5), &event, &err);
        cr_expect_eq(ok, cases[i].is_good);
        if (!ok)
            cr_expect_eq(err.code, RT_LIMIT, "%s", err.text);
    }
}

Test(cell, the_limit_holds_for_every_frame_and_not_only_for_the_first)
{
    STAGE(s, 10);
    rt_cell_event event;
    rt_error err = { 0 };
    say(s.control, RT_STR("\x0a\0\0\0"
                          "0123456789"
                          "\x0b\0\0\0"
                          "0123456789a"));
    expect_frame(&s, "0123456789");
    cr_expect(!rt_cell_next(s.cell, soon(1000), &event, &err));
    cr_expect_str_eq(err.text, "the answer has 11 bytes; at most 10 are allowed");
}

Test(cell, an_end_in_the_middle_of_a_frame_gives_no_frame)
{
    STAGE(s, 0);
    say(s.control, RT_STR("\x09\0\0\0half"));
    rt_closep(&s.control);
    say_exit(&s, (rt_cell_usage){ .wait_status = 256 });
    rt_cell_event event = next(&s, 5000);
    cr_expect_eq(event.kind, RT_CELL_EXIT);
    cr_expect_eq(event.usage.wait_status, 256);
}

/* ---- output, and the end ---- */

Test(cell, output_comes_with_its_stream)
{
    STAGE(s, 0);
    say(s.err, RT_STR("oh"));
    expect_text(&s, RT_CELL_OUTPUT, 2, "oh");
    say(s.out, RT_STR("\0\xff"));
    rt_cell_event event = next(&s, 5000);
    cr_expect(event.stream == 1 && rt_str_eq(event.text, RT_STR("\0\xff")));
}

Test(cell, the_exit_comes_last)
{
    STAGE(s, 0);
    rt_cell_event event;
    rt_error err = { 0 };
    say_exit(&s,
             (rt_cell_usage){ .cpu_us = 5, .memory_peak_bytes = 6, .was_out_of_processes = true });
    say(s.out, RT_STR("out"));
    say(s.err, RT_STR("err"));
    say_frame(s.control, RT_STR("{}"));
    unsigned seen = 0;
    while ((event = next(&s, 5000)).kind != RT_CELL_EXIT)
        seen += event.kind == RT_CELL_FRAME ? 100 : (unsigned)event.stream;
    cr_expect_eq(seen, 103, "both streams and the frame, once each");
    cr_expect_eq(event.usage.cpu_us, 5);
    cr_expect_eq(event.usage.memory_peak_bytes, 6);
    cr_expect(event.usage.was_out_of_processes && !event.usage.was_out_of_memory);
    cr_expect(!rt_cell_next(s.cell, soon(1000), &event, &err));
    cr_expect_eq(err.code, RT_INTERNAL, "it comes once");
}

Test(cell, a_guest_that_closed_everything_is_still_waited_for)
{
    STAGE(s, 0);
    rt_closep(&s.control);
    rt_closep(&s.out);
    rt_closep(&s.err);
    rt_closep(&s.in);
    cr_expect_eq(next(&s, 20).kind, RT_CELL_TIME);
    say_exit(&s, (rt_cell_usage){ 0 });
    cr_expect_eq(next(&s, 5000).kind, RT_CELL_EXIT);
}

Test(cell, a_warden_that_is_gone_took_the_cell_with_it)
{
    STAGE(s, 0);
    rt_closep(&s.lease);
    rt_cell_event event = next(&s, 5000);
    cr_expect_eq(event.kind, RT_CELL_EXIT);
    cr_expect_eq(event.usage.wait_status, SIGKILL);
}

Test(cell, senseless_words_on_the_lease_change_nothing)
{
    STAGE(s, 0);
    static const lease_message odd[] = { { .kind = 77 },
                                         { .kind = LEASE_GRANT },
                                         { .kind = LEASE_KILL } };
    for (size_t i = 0; i < RT_COUNT(odd); i++)
        jail_packet_send(s.lease, &odd[i], sizeof(odd[i]), NULL, 0);
    jail_packet_send(s.lease, &(uint32_t){ LEASE_EXIT }, sizeof(uint32_t), NULL, 0);
    cr_expect_eq(next(&s, 20).kind, RT_CELL_TIME);
}

Test(cell, a_full_scratch_is_known_whichever_word_comes_first)
{
    for (int is_list_first = 0; is_list_first < 2; is_list_first++) {
        STAGE(s, 0);
        static const list_end full = { .memory_peak = 8, .is_scratch_full = 1 };
        const rt_str list = { (const char *)&full, sizeof(full) };
        cr_assert(rt_cell_finish(s.cell, &(rt_error){ 0 }));
        if (is_list_first) {
            say_link(&s, LINK_LIST_END, list, -1);
            cr_expect_eq(next(&s, 5).kind, RT_CELL_TIME);
        }
        say_exit(&s, (rt_cell_usage){ 0 });
        if (!is_list_first)
            say_link(&s, LINK_LIST_END, list, -1);
        rt_cell_event event = next(&s, 5000);
        cr_expect_eq(event.kind, RT_CELL_EXIT);
        cr_expect(event.usage.was_out_of_scratch, "the list came %s",
                  is_list_first ? "first" : "last");
    }
}

/* ---- time ---- */

Test(cell, the_deadline_is_told_and_told_again)
{
    STAGE(s, 0);
    rt_cell_event event;
    uint64_t deadline = soon(20);
    cr_assert(rt_cell_next(s.cell, deadline, &event, &(rt_error){ 0 }));
    cr_expect_eq(event.kind, RT_CELL_TIME);
    cr_expect_geq(rt_now_ns(), deadline, "not before it passed");
    cr_assert(rt_cell_next(s.cell, deadline, &event, &(rt_error){ 0 }));
    cr_expect_eq(event.kind, RT_CELL_TIME);
}

typedef struct talker {
    int fd;
    rt_str words;
    atomic_bool is_done;
} talker;

static void *talk(void *ctx)
{
    talker *t = ctx;
    while (!t->is_done && write(t->fd, t->words.ptr, t->words.len) >= 0)
        ;
    return NULL;
}

/* Listens for at most three seconds, until an event that is not of `kind`. */
static rt_cell_event listen_past(stage *s, int fd, uint64_t deadline, rt_cell_event_kind kind,
                                 unsigned *late)
{
    static char many[60 * 1000];
    talker t = { .fd = fd, .words = { many, sizeof(many) } };
    pthread_t guest;
    rt_cell_event event = { 0 };
    rt_error err = { 0 };
    for (size_t i = 0; i < sizeof(many); i += 6)
        memcpy(many + i, "\x02\0\0\0{}", 6);
    pthread_create(&guest, NULL, talk, &t);
    uint64_t end = soon(3000);
    do {
        cr_assert(rt_cell_next(s->cell, deadline, &event, &err), "%s", err.text);
        *late += rt_now_ns() > deadline;
    } while (rt_now_ns() < end && event.kind == kind);
    t.is_done = true;
    rt_cell_close(RT_TAKE(s->cell)); /* unblocks the guest */
    pthread_join(guest, NULL);
    return event;
}

Test(cell, a_guest_that_never_falls_silent_cannot_talk_past_its_deadline)
{
    unsigned late = 0;
    STAGE(frames, 0);
    cr_expect_eq(listen_past(&frames, frames.control, soon(50), RT_CELL_FRAME, &late).kind,
                 RT_CELL_TIME);
    cr_expect_leq(late, 2, "%u events came late", late);
    STAGE(output, 0);
    late = 0;
    cr_expect_eq(listen_past(&output, output.out, soon(50), RT_CELL_OUTPUT, &late).kind,
                 RT_CELL_TIME);
    cr_expect_leq(late, 2, "%u events came late", late);
}

Test(cell, a_guest_that_talks_on_after_its_end_was_told_is_cut_off)
{
    unsigned late = 0;
    STAGE(s, 0);
    say_exit(&s, (rt_cell_usage){ .cpu_us = 7 });
    rt_cell_event event = listen_past(&s, s.control, 0, RT_CELL_FRAME, &late);
    cr_expect_eq(event.kind, RT_CELL_EXIT);
    cr_expect_eq(event.usage.cpu_us, 7);
}

static void *cancel_soon(void *cell)
{
    usleep(20000);
    rt_cell_cancel(cell);
    return NULL;
}

Test(cell, a_descriptor_that_becomes_readable_cancels)
{
    STAGE(s, 0);
    rt_cell_event event;
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    sandbox_cell_heed(s.cell, ends[0]);
    say(s.out, RT_STR("x"));
    event = next(&s, 1000);
    cr_expect_eq(event.kind, RT_CELL_OUTPUT);
    say(ends[1], RT_STR("!"));
    event = next(&s, 1000);
    cr_expect_eq(event.kind, RT_CELL_CANCELLED);
    close(ends[0]);
    close(ends[1]);
}

Test(cell, another_thread_can_cancel)
{
    STAGE(s, 0);
    pthread_t other;
    pthread_create(&other, NULL, cancel_soon, s.cell);
    rt_cell_event event;
    cr_assert(rt_cell_next(s.cell, 0, &event, &(rt_error){ 0 }), "with no deadline at all");
    cr_expect_eq(event.kind, RT_CELL_CANCELLED);
    pthread_join(other, NULL);
}

/* ---- to the guest ---- */

Test(cell, a_message_arrives_with_its_descriptors)
{
    STAGE(s, 0);
    int file RT_CLEANUP(rt_closep) = memfd_create("input", MFD_CLOEXEC);
    jail_frame got RT_CLEANUP(jail_frame_done) = { 0 };
    rt_error err = { 0 };
    cr_assert(rt_cell_send(s.cell, RT_STR("{\"op\":\"run\"}"), &file, 1, &err), "%s", err.text);
    cr_assert(jail_frame_recv(s.control, 100, &got, &err), "%s", err.text);
    cr_expect_str_eq(got.data, "{\"op\":\"run\"}");
    cr_expect_eq(got.fd_count, 1);
}

static size_t post_until_full(stage *s, rt_str text)
{
    size_t count = 0;
    while (!rt_cell_has_post(s->cell)) {
        rt_cell_post(s->cell, text, -1);
        cr_assert_lt(++count, 10000u);
    }
    return count;
}

static char thousand[1000];

/* The guest's next frame; the cell is asked to send when there is none yet. */
static jail_frame read_posted(stage *s, jail_reader *reader)
{
    jail_frame got;
    rt_error err = { 0 };
    if (!jail_reader_is_ready(reader))
        cr_assert_eq(next(s, 5000).kind, RT_CELL_ATTEND);
    cr_assert(jail_reader_next(reader, 2000, &got, &err), "%s", err.text);
    return got;
}

Test(cell, what_a_guest_does_not_read_yet_goes_out_later_whole_and_in_order)
{
    STAGE(s, 0);
    jail_reader reader = { .fd = s.control };
    memset(thousand, 'x', sizeof(thousand));
    size_t count = post_until_full(&s, (rt_str){ thousand, sizeof(thousand) });
    rt_cell_post(s.cell, RT_STR("last"), -1);
    for (size_t i = 0; i <= count; i++) {
        jail_frame got RT_CLEANUP(jail_frame_done) = read_posted(&s, &reader);
        cr_assert_eq(got.len, i < count ? sizeof(thousand) : 4);
    }
    cr_expect(!rt_cell_has_post(s.cell));
}

Test(cell, a_descriptor_waits_with_its_frame)
{
    STAGE(s, 0);
    int file RT_CLEANUP(rt_closep) = memfd_create("value", MFD_CLOEXEC);
    jail_reader reader = { .fd = s.control };
    size_t count = 0;
    memset(thousand, 'x', sizeof(thousand));
    for (; !rt_cell_has_post(s.cell); count++) {
        cr_assert_lt(count, 10000u);
        rt_cell_post(s.cell, (rt_str){ thousand, sizeof(thousand) }, file);
    }
    rt_cell_post(s.cell, RT_STR("behind"), -1);
    for (size_t i = 0; i <= count; i++) {
        jail_frame got RT_CLEANUP(jail_frame_done) = read_posted(&s, &reader);
        cr_assert_eq(got.len, i < count ? sizeof(thousand) : strlen("behind"));
        cr_assert_eq(got.fd_count, i < count ? 1 : 0, "frame %zu of %zu", i, count);
    }
}

Test(cell, when_all_has_gone_out_the_caller_is_told)
{
    STAGE(s, 0);
    char sink[65536];
    memset(thousand, 'x', sizeof(thousand));
    post_until_full(&s, (rt_str){ thousand, sizeof(thousand) });
    cr_expect_eq(next(&s, 0).kind, RT_CELL_TIME);
    while (recv(s.control, sink, sizeof(sink), MSG_DONTWAIT) > 0)
        ;
    cr_expect_eq(next(&s, 5000).kind, RT_CELL_ATTEND);
    cr_expect(!rt_cell_has_post(s.cell));
    cr_expect_eq(next(&s, 0).kind, RT_CELL_TIME, "and told once");
}

Test(cell, a_descriptor_can_be_attended_to_while_nothing_waits)
{
    STAGE(s, 0);
    int bell RT_CLEANUP(rt_closep) = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    rt_cell_attend(s.cell, bell);
    cr_expect_eq(next(&s, 5000).kind, RT_CELL_ATTEND);
    cr_expect_eq(next(&s, 5000).kind, RT_CELL_ATTEND, "as long as it is readable");
    memset(thousand, 'x', sizeof(thousand));
    post_until_full(&s, (rt_str){ thousand, sizeof(thousand) });
    cr_expect_eq(next(&s, 0).kind, RT_CELL_TIME, "the guest is to read first");
    rt_cell_attend(s.cell, -1);
    cr_expect_eq(next(&s, 0).kind, RT_CELL_TIME);
}

Test(cell, a_guest_that_does_not_read_is_not_heard_any_more)
{
    STAGE(s, 0);
    static char much[65536];
    for (int i = 0; i < 10; i++)
        rt_cell_post(s.cell, (rt_str){ much, sizeof(much) }, -1);
    say_frame(s.control, RT_STR("{}"));
    cr_expect_eq(next(&s, 0).kind, RT_CELL_TIME);
}

Test(cell, posting_to_a_guest_that_is_gone_is_no_error)
{
    STAGE(s, 0);
    memset(thousand, 'x', sizeof(thousand));
    post_until_full(&s, (rt_str){ thousand, sizeof(thousand) });
    rt_closep(&s.control);
    rt_cell_event event = next(&s, 5000);
    cr_expect_eq(event.kind, RT_CELL_ATTEND);
    rt_cell_post(s.cell, RT_STR("{}"), -1);
    cr_expect(!rt_cell_has_post(s.cell));
}

Test(cell, speaking_to_a_guest_that_is_gone_is_an_error)
{
    STAGE(s, 0);
    rt_error err = { 0 };
    rt_closep(&s.control);
    cr_expect(!rt_cell_send(s.cell, RT_STR("{}"), NULL, 0, &err));
    cr_expect_eq(err.sys_errno, EPIPE);
}

Test(cell, stdin_is_written_as_the_guest_reads_and_then_closed)
{
    STAGE(s, 0);
    static char much[300000], got[300001];
    memset(much, 'i', sizeof(much));
    rt_cell_feed(s.cell, (rt_str){ much, sizeof(much) });
    fcntl(s.in, F_SETFL, O_NONBLOCK);
    size_t total = 0;
    for (int i = 0; i < 1000; i++) {
        next(&s, 1);
        ssize_t n = read(s.in, got + total, sizeof(got) - total);
        if (n == 0)
            break;
        total += n > 0 ? (size_t)n : 0;
    }
    cr_expect_eq(total, sizeof(much));
    cr_expect_eq(read(s.in, got, 1), 0, "then its end");
}

Test(cell, a_guest_that_closes_its_stdin_is_not_written_to)
{
    STAGE(s, 0);
    rt_cell_feed(s.cell, RT_STR("unread"));
    rt_closep(&s.in);
    cr_expect_eq(next(&s, 10).kind, RT_CELL_TIME);
}

Test(cell, the_warden_is_asked_for_an_end_and_for_an_account)
{
    STAGE(s, 0);
    lease_message got = { 0 };
    size_t none;
    cr_assert(rt_cell_kill(s.cell, &(rt_error){ 0 }));
    jail_packet_recv(s.lease, &got, sizeof(got), NULL, 0, &none, 0);
    cr_expect_eq(got.kind, LEASE_KILL);
    cr_assert(rt_cell_finish(s.cell, &(rt_error){ 0 }));
    jail_packet_recv(s.lease, &got, sizeof(got), NULL, 0, &none, 0);
    cr_expect_eq(got.kind, LEASE_DONE);
    rt_closep(&s.lease);
    rt_error err = { 0 };
    cr_expect(!rt_cell_kill(s.cell, &err) && !rt_cell_finish(s.cell, &err));
}

/* ---- the link ---- */

Test(cell, a_denial_is_explained)
{
    STAGE(s, 0);
    denial_note note = { .call = SYS_unshare, .arch = 0xc000003e };
    say_link(&s, LINK_DENIAL, (rt_str){ (const char *)&note, sizeof(note) }, -1);
    rt_cell_event event = next(&s, 5000);
    cr_expect_eq(event.kind, RT_CELL_DENIED);
    cr_expect_str_eq(event.denial.call, "unshare()");
    cr_expect_str_eq(event.denial.rule, "namespaces: never");
}

Test(cell, packets_that_make_no_sense_are_dropped)
{
    STAGE(s, 0);
    static const char junk[1500];
    for (uint32_t kind = 0; kind < 12; kind++)
        if (kind != LINK_MEMORY)
            say_link(&s, kind,
                     (rt_str){ junk, kind == LINK_DENIAL ? sizeof(denial_note) - 1 : 1500 }, -1);
    cr_expect_eq(next(&s, 10).kind, RT_CELL_TIME);
    jail_packet_send(s.link, "abc", 3, NULL, 0); /* shorter than a head */
    cr_expect_eq(next(&s, 10).kind, RT_CELL_TIME);
    say_exit(&s, (rt_cell_usage){ 0 });
    cr_expect_eq(next(&s, 1000).kind, RT_CELL_EXIT);
}

Test(cell, a_watcher_without_a_cgroup_can_say_that_memory_ran_out)
{
    STAGE(s, 0);
    say_link(&s, LINK_MEMORY, RT_STR(""), -1);
    cr_expect_eq(next(&s, 5).kind, RT_CELL_TIME);
    say_exit(&s, (rt_cell_usage){ .wait_status = 9 });
    cr_expect(next(&s, 5000).usage.was_out_of_memory);
}

typedef struct listing {
    char names[512];
    uint64_t bytes;
    unsigned count;
} listing;

static bool note_file(void *ctx, const rt_artifact *a, rt_error *err)
{
    listing *l = ctx;
    char content[8];
    (void)err;
    snprintf(l->names + strlen(l->names), sizeof(l->names) - strlen(l->names), "%.*s=%.*s ",
             RT_FMT(a->name), (int)pread(a->fd, content, sizeof(content), 0), content);
    l->bytes += a->size;
    l->count++;
    return true;
}

static void say_file(const stage *s, const char *name, const char *content)
{
    char body[1200];
    uint64_t size = strlen(content);
    int fd RT_CLEANUP(rt_closep) = memfd_create("file", MFD_CLOEXEC);
    say(fd, rt_str_of(content));
    memcpy(body, &size, sizeof(size));
    size_t len = strlen(name);
    memcpy(body + sizeof(size), name, len);
    say_link(s, LINK_FILE, (rt_str){ body, sizeof(size) + len }, fd);
}

Test(cell, files_are_listed_when_asked_for)
{
    STAGE(s, 0);
    listing l = { 0 };
    rt_error err = { 0 };
    char order[64];
    size_t none;
    cr_assert(rt_cell_finish(s.cell, &err));
    cr_expect_eq(jail_packet_recv(s.link, order, sizeof(order), NULL, 0, &none, 0),
                 sizeof(link_head) + sizeof(uint32_t));
    cr_expect_eq(((link_head *)(void *)order)->kind, LINK_LIST);
    say_file(&s, "a.txt", "one");
    say_file(&s, "b/c.txt", "three");
    say_link(&s, LINK_LIST_END, RT_STR("\0"), -1);
    cr_assert(rt_cell_artifacts(s.cell, note_file, &l, &err), "%s", err.text);
    cr_expect_str_eq(l.names, "a.txt=one b/c.txt=three ");
    cr_expect_eq(l.bytes, 8);
}

Test(cell, files_without_a_name_or_a_descriptor_are_dropped)
{
    STAGE(s, 0);
    listing l = { 0 };
    rt_error err = { 0 };
    say_link(&s, LINK_FILE, RT_STR("12345678name"), -1);
    say_file(&s, "", "nameless");
    say_link(&s, LINK_FILE, RT_STR("123"), STDIN_FILENO);
    say_file(&s, "good", "1");
    say_link(&s, LINK_LIST_END, RT_STR("\0"), -1);
    cr_assert(rt_cell_artifacts(s.cell, note_file, &l, &err), "%s", err.text);
    cr_expect_str_eq(l.names, "good=1 ");
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void *say_too_many(void *ctx)
{
    for (int i = 0; i < RT_ARTIFACTS_MAX + 20; i++)
        say_file(ctx, "f", "x");
    say_link(ctx, LINK_LIST_END, RT_STR("\0"), -1);
    return NULL;
}

Test(cell, more_files_than_the_most_are_not_kept_nor_leaked)
{
    unsigned before = open_descriptors();
    {
        STAGE(s, 0);
        listing l = { 0 };
        pthread_t init;
        pthread_create(&init, NULL, say_too_many, &s);
        cr_assert(rt_cell_artifacts(s.cell, note_file, &l, &(rt_error){ 0 }));
        pthread_join(init, NULL);
        cr_expect_eq(l.count, RT_ARTIFACTS_MAX);
    }
    cr_expect_eq(open_descriptors(), before);
}

Test(cell, a_descriptor_on_a_packet_too_short_is_closed)
{
    unsigned before = open_descriptors();
    {
        STAGE(s, 0);
        int fd = STDIN_FILENO;
        jail_packet_send(s.link, "abc", 3, &fd, 1);
        cr_expect_eq(next(&s, 10).kind, RT_CELL_TIME);
    }
    cr_expect_eq(open_descriptors(), before);
}

Test(cell, a_first_process_that_is_gone_has_no_files)
{
    STAGE(s, 0);
    listing l = { 0 };
    rt_closep(&s.link);
    cr_expect(rt_cell_artifacts(s.cell, note_file, &l, &(rt_error){ 0 }));
    cr_expect_eq(l.count, 0);
}

static bool refuse(void *ctx, const rt_artifact *a, rt_error *err)
{
    (void)ctx, (void)a;
    return rt_fail(err, RT_CANCELLED, "enough");
}

Test(cell, a_visitor_may_stop)
{
    STAGE(s, 0);
    rt_error err = { 0 };
    say_file(&s, "a", "");
    say_link(&s, LINK_LIST_END, RT_STR("\0"), -1);
    cr_expect(!rt_cell_artifacts(s.cell, refuse, NULL, &err));
    cr_expect_str_eq(err.text, "enough");
}

/* ---- the hello ---- */

#define SPACES "\"user\":1,\"pid\":1,\"mnt\":1,\"ipc\":1,\"uts\":1,\"net\":1"
#define SEALED                                                                                     \
    "\"uid\":1000,\"gid\":1000,\"capabilities\":\"none\",\"no_new_privs\":true,"                   \
    "\"seccomp\":\"filter\",\"landlock\":true"

static rt_error greet(const char *hello, char *attestation, size_t size)
{
    STAGE(s, 0);
    rt_error err = { 0 };
    say_frame(s.control, rt_str_of(hello));
    bool ok = sandbox_cell_greet(s.cell, RT_STR("\"memory\":{\"by\":\"cgroup\"}"), &err);
    cr_expect_eq(ok, err.code == RT_OK);
    snprintf(attestation, size, "%.*s", RT_FMT(rt_cell_attestation(s.cell)));
    return err;
}

Test(cell, a_sealed_guest_is_attested_in_the_words_of_both_sides)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char text[1024];
    rt_json doc;
    rt_error err =
        greet("{\"op\":\"hello\",\"layers\":{" SEALED ",\"ns\":{" SPACES "}}}", text, sizeof(text));
    cr_assert_eq(err.code, RT_OK, "%s", err.text);
    cr_assert(rt_json_parse(rt_str_of(text), &arena, &doc, &err), "%s: %s", err.text, text);
    cr_expect_eq(rt_json_count(rt_json_get_c(doc, "namespaces")), 6);
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(doc, "seccomp")), "filter"));
    cr_expect(
        rt_str_eq_c(rt_json_str(rt_json_get_c(rt_json_get_c(doc, "memory"), "by")), "cgroup"));
}

static void expect_refused(const char *hello, const char *why)
{
    char text[1024];
    rt_error err = greet(hello, text, sizeof(text));
    cr_expect_neq(err.code, RT_OK, "%s", hello);
    cr_expect(strstr(err.text, why), "'%s' does not say '%s'", err.text, why);
    cr_expect_str_eq(text, "", "nothing is attested");
}

Test(cell, a_guest_without_a_namespace_of_its_own_is_refused)
{
    struct stat st;
    char hello[512];
    expect_refused("{\"op\":\"hello\",\"layers\":{" SEALED ",\"ns\":{\"user\":1}}}",
                   "no pid namespace");
    expect_refused("{\"op\":\"hello\",\"layers\":{" SEALED "}}", "no user namespace");
    expect_refused("{\"op\":\"hello\",\"layers\":{" SEALED ",\"ns\":{\"user\":0}}}",
                   "no user namespace");
    cr_assert_eq(stat("/proc/self/ns/net", &st), 0);
    snprintf(hello, sizeof(hello),
             "{\"op\":\"hello\",\"layers\":{" SEALED ",\"ns\":{" SPACES ",\"net\":%lu}}}",
             (unsigned long)st.st_ino);
    expect_refused(hello, "no net namespace of its own"); /* it is ours */
}

Test(cell, a_guest_that_is_not_fully_sealed_is_refused)
{
#define HELLO(caps, nnp, seccomp)                                                                  \
    "{\"op\":\"hello\",\"layers\":{\"capabilities\":" caps ",\"no_new_privs\":" nnp                \
    ",\"seccomp\":" seccomp ",\"ns\":{" SPACES "}}}"
    static const char *const hellos[] = {
        HELLO("\"some\"", "true", "\"filter\""), HELLO("\"none\"", "false", "\"filter\""),
        HELLO("\"none\"", "true", "\"off\""),    HELLO("null", "true", "\"filter\""),
        HELLO("\"none\"", "1", "\"filter\""),    HELLO("[\"none\"]", "true", "\"filter\""),
    };
    for (size_t i = 0; i < RT_COUNT(hellos); i++)
        expect_refused(hellos[i], "not in force");
}

Test(cell, a_guest_that_could_not_seal_itself_says_why)
{
    expect_refused(
        "{\"op\":\"unsealed\",\"message\":\"join the cell: setns: Operation not permitted\"}",
        "join the cell: setns: Operation not permitted");
}

Test(cell, other_first_words_are_no_hello)
{
    expect_refused("{\"op\":\"result\",\"layers\":{}}", "said no hello");
    expect_refused("[]", "said no hello");
    expect_refused("", "");
    expect_refused("hello", "");
}

Test(cell, a_guest_that_ends_before_its_hello_is_refused)
{
    STAGE(s, 0);
    rt_error err = { 0 };
    say_exit(&s, (rt_cell_usage){ .wait_status = 256 });
    cr_expect(!sandbox_cell_greet(s.cell, RT_STR(""), &err));
    cr_expect_eq(err.code, RT_UNAVAILABLE);
}
