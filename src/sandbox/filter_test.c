/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox_internal.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static denial_note note_of(int call)
{
    return (denial_note){ .call = call, .arch = seccomp_arch_native() };
}

static rt_denial explain(const denial_note *note)
{
    rt_denial out;
    memset(&out, '#', sizeof(out)); /* so that what is not terminated shows */
    sandbox_filter_explain(note, &out);
    return out;
}

static bool is_clean(const char *text, size_t size)
{
    size_t len = strnlen(text, size);
    for (size_t i = 0; i < len; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return len > 0 && len < size;
}

static void expect_clean(const rt_denial *d)
{
    cr_expect(is_clean(d->call, sizeof(d->call)));
    cr_expect(is_clean(d->rule, sizeof(d->rule)));
    cr_expect(is_clean(d->allow, sizeof(d->allow)));
    cr_expect_eq(d->call[strlen(d->call) - 1], ')', "%s", d->call);
    cr_expect_neq(d->allow[strlen(d->allow) - 1], ' ', "%s", d->allow);
}

static void expect_explained(const denial_note *note, const char *call, const char *rule)
{
    rt_denial d = explain(note);
    expect_clean(&d);
    cr_expect_str_eq(d.call, call);
    cr_expect_str_eq(d.rule, rule);
}

Test(filter, each_kind_is_a_sealed_program)
{
    for (int kind = 0; kind < FILTER_KINDS; kind++) {
        int fd RT_CLEANUP(rt_closep) = -1;
        rt_error err = { 0 };
        struct stat st;
        cr_assert(sandbox_filter_make((filter_kind)kind, &fd, &err), "%s", err.text);
        cr_assert_eq(fstat(fd, &st), 0);
        cr_expect_gt(st.st_size, 50 * (off_t)sizeof(struct sock_filter));
        cr_expect_leq(st.st_size, BPF_MAXINSNS * (off_t)sizeof(struct sock_filter));
        cr_expect_eq(st.st_size % (off_t)sizeof(struct sock_filter), 0);
        cr_expect_eq(write(fd, "x", 1), -1, "nobody changes it afterwards");
        cr_expect_eq(ftruncate(fd, 0), -1);
        cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
}

Test(filter, the_kinds_differ)
{
    int fds[FILTER_KINDS];
    char text[2][65536];
    ssize_t size[2];
    for (int i = 0; i < FILTER_KINDS; i++) {
        cr_assert(sandbox_filter_make((filter_kind)i, &fds[i], NULL));
        size[i] = pread(fds[i], text[i], sizeof(text[i]), 0);
        close(fds[i]);
    }
    cr_expect(size[0] != size[1] || memcmp(text[0], text[1], (size_t)size[0]) != 0);
}

Test(filter, a_socket_is_explained_by_its_family)
{
    denial_note note = note_of(SYS_socket);
    note.args[0] = AF_PACKET;
    expect_explained(&note, "socket(AF_PACKET)", "network: none");
    note.args[0] = AF_INET6;
    expect_explained(&note, "socket(AF_INET6)", "network: none");
    note.args[0] = 0xffffffffffffull;
    expect_explained(&note, "socket(another family)", "network: none");
}

Test(filter, a_connection_is_explained_by_its_address)
{
    denial_note note = note_of(SYS_connect);
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(443) };
    inet_pton(AF_INET, "192.0.2.1", &in.sin_addr);
    memcpy(note.address, &in, note.address_len = sizeof(in));
    expect_explained(&note, "connect(192.0.2.1:443)", "network: none");
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(65535) };
    memset(&in6.sin6_addr, 0xab, sizeof(in6.sin6_addr));
    memcpy(note.address, &in6, note.address_len = sizeof(in6));
    expect_explained(&note, "connect([abab:abab:abab:abab:abab:abab:abab:abab]:65535)",
                     "network: none");
    *(sa_family_t *)(void *)note.address = AF_UNIX;
    expect_explained(&note, "connect(a unix socket)", "network: none");
}

Test(filter, an_address_cut_short_is_left_out)
{
    denial_note note = note_of(SYS_connect);
    struct sockaddr_in in = { .sin_family = AF_INET };
    memcpy(note.address, &in, sizeof(in));
    for (note.address_len = 0; note.address_len < sizeof(in); note.address_len++)
        expect_explained(&note, "connect()", "network: none");
}

static void put_path(denial_note *note, rt_str path)
{
    note->address_len = (uint32_t)RT_MIN(path.len, sizeof(note->address));
    memcpy(note->address, path.ptr, note->address_len);
}

Test(filter, programs_and_mounts_are_explained_by_their_path)
{
    denial_note note = note_of(SYS_execve);
    put_path(&note, RT_STR("/bin/sh"));
    expect_explained(&note, "execve(/bin/sh)", "subprocess: deny");
    note = note_of(SYS_mount);
    put_path(&note, RT_STR("/mnt\0garbage"));
    expect_explained(&note, "mount(/mnt)", "mounts: never");
    note = note_of(SYS_chroot);
    expect_explained(&note, "chroot()", "mounts: never");
}

Test(filter, hostile_bytes_in_a_path_become_question_marks)
{
    denial_note note = note_of(SYS_execve);
    put_path(&note, RT_STR("/\x1b[2J\n\r\x7f\xff\xc3\xa9\"\\"));
    expect_explained(&note,
                     "execve(/?[2J?????"
                     "?\"\\)",
                     "subprocess: deny");
}

Test(filter, long_texts_end_well)
{
    static const int calls[] = { SYS_execve, SYS_execveat, SYS_mount, SYS_umount2, SYS_chroot };
    for (size_t i = 0; i < RT_COUNT(calls); i++) {
        denial_note note = note_of(calls[i]);
        memset(note.address, 'x', sizeof(note.address));
        note.address_len = sizeof(note.address);
        rt_denial d = explain(&note);
        expect_clean(&d);
        note.address_len = UINT32_MAX; /* a lie */
        d = explain(&note);
        expect_clean(&d);
    }
}

/* Whatever number comes: every text is whole, printable and terminated. */
Test(filter, every_call_there_is_has_an_explanation)
{
    for (int call = -3; call < 1200; call++) {
        denial_note note = note_of(call);
        memset(note.address, 0xff, sizeof(note.address));
        memset(note.args, 0xff, sizeof(note.args));
        note.address_len = sizeof(note.address);
        rt_denial d = explain(&note);
        expect_clean(&d);
    }
    denial_note note = note_of(SYS_connect);
    note.arch = 0xdeadbeef;
    rt_denial d = explain(&note);
    expect_clean(&d);
}

Test(filter, an_unknown_call_is_named_by_its_number)
{
    denial_note note = note_of(99999);
    expect_explained(&note, "system call 99999()", "system calls: allow-list");
}

Test(filter, each_group_of_calls_has_its_rule)
{
    static const struct {
        int call;
        const char *rule;
    } cases[] = {
        { SYS_unshare, "namespaces: never" }, { SYS_setns, "namespaces: never" },
        { SYS_ptrace, "debugging: never" },   { SYS_bpf, "kernel: never" },
        { SYS_reboot, "kernel: never" },      { SYS_shmget, "ipc: never" },
        { SYS_bind, "network: none" },        { SYS_clone, "subprocess: deny" },
        { SYS_umount2, "mounts: never" },     { SYS_name_to_handle_at, "system calls: allow-list" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        denial_note note = note_of(cases[i].call);
        rt_denial d = explain(&note);
        expect_clean(&d);
        cr_expect_str_eq(d.rule, cases[i].rule, "%s", d.call);
    }
}

/* No policy grants a namespace, so the advice must not be to allow subprocesses. */
Test(filter, a_clone_into_any_namespace_is_about_namespaces)
{
    static const uint64_t flags[] = { CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                      CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP };
    for (size_t i = 0; i < RT_COUNT(flags); i++) {
        denial_note note = note_of(SYS_clone);
        note.args[0] = flags[i] | 17;
        expect_explained(&note, "clone()", "namespaces: never");
    }
}

Test(filter, only_calls_with_something_to_show_are_looked_into)
{
    int arg = -7, len_arg = -7;
    cr_expect(sandbox_filter_wants_address(SYS_connect, &arg, &len_arg) && arg == 1 &&
              len_arg == 2);
    cr_expect(sandbox_filter_wants_address(SYS_sendto, &arg, &len_arg) && arg == 4 && len_arg == 5);
    cr_expect(sandbox_filter_wants_address(SYS_execve, &arg, &len_arg) && arg == 0 &&
              len_arg == -1);
    cr_expect(!sandbox_filter_wants_address(SYS_read, &arg, &len_arg));
    cr_expect(!sandbox_filter_wants_address(-1, &arg, &len_arg));
}
