/*
 * retort_tool.c - calls a tool from a script.
 *
 *     retort-tool github:list_commits '{"limit": 3}'
 *     retort-tool github:list_commits limit=3 author=ada        # or --limit 3 --author ada
 *     … | retort-tool github:create_issue -                     # arguments from stdin
 *     retort-tool search "open a ticket"      retort-tool describe github:list_commits
 *     retort-tool list
 *
 * Prints the value as JSON and ends with 0. A tool that fails is said on stderr, status 1; a
 * command line that makes no sense, status 2. How a call travels is told in guests/program/relay.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "guests/jail/jail.h"
#include "guests/program/relay.h"

#define STDIN_MAX (64u << 20)

static int complain(int status, const char *text)
{
    fprintf(stderr, "retort-tool: %s\n", text);
    return status;
}

/* ---- arguments ---- */

/* limit=3 is a number, author=ada a text: what is JSON is taken as that. */
static void write_value(rt_json_writer *w, rt_str text, rt_arena *arena)
{
    rt_json value;
    if (rt_json_parse(text, arena, &value, &(rt_error){ 0 }))
        rt_jw_json(w, value);
    else
        rt_jw_str(w, text);
}

/* per-page, as flags are written, is per_page, as arguments are called. */
static void write_key(rt_json_writer *w, rt_str name, rt_arena *arena)
{
    char *key = rt_arena_copy(arena, name);
    for (char *c = key; *c; c++)
        *c = *c == '-' ? '_' : *c;
    rt_jw_key(w, rt_str_of(key));
}

/* name=value, --name=value, --name value, --name; how many words that took, 0: it is none. */
static int write_pair(rt_json_writer *w, int count, char **words, rt_arena *arena)
{
    rt_str rest = rt_str_of(words[0]), name;
    bool is_flag = rt_str_starts(rest, RT_STR("--"));
    const char *equals = strchr(words[0], '=');
    if (is_flag)
        rest = rt_str_slice(rest, 2, rest.len);
    if (rest.len == 0 || rest.ptr[0] == '=' || (!is_flag && !equals))
        return 0;
    if (equals) {
        rt_str_cut(&rest, '=', &name);
        write_key(w, name, arena);
        write_value(w, rt_str_of(equals + 1), arena);
        return 1;
    }
    write_key(w, rest, arena);
    bool has_value = count > 1 && strncmp(words[1], "--", 2) != 0;
    if (has_value)
        write_value(w, rt_str_of(words[1]), arena);
    else
        rt_jw_bool(w, true);
    return has_value ? 2 : 1;
}

static bool write_pairs(rt_json_writer *w, int count, char **words, rt_arena *arena, rt_error *err)
{
    rt_jw_object(w);
    for (int i = 0, n; i < count; i += n)
        if (!(n = write_pair(w, count - i, words + i, arena)))
            return rt_fail(err, RT_INVALID,
                           "'%s' is no argument; write '{\"name\": …}', name=value or --name value",
                           words[i]);
    rt_jw_end(w);
    return true;
}

static bool write_object(rt_json_writer *w, rt_str text, rt_arena *arena, rt_error *err)
{
    rt_json value;
    if (!rt_json_parse(text, arena, &value, err))
        return rt_wrap(err, "the arguments");
    if (rt_json_type(value) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "the arguments are to be a JSON object");
    rt_jw_json(w, value);
    return true;
}

static bool write_arguments(rt_json_writer *w, int count, char **words, rt_arena *arena,
                            rt_error *err)
{
    rt_str text;
    if (count == 1 && strcmp(words[0], "-") == 0)
        return rt_read_fd(STDIN_FILENO, STDIN_MAX, arena, &text, err) &&
               write_object(w, text, arena, err);
    if (count == 1 && rt_str_trim(rt_str_of(words[0])).len > 0 &&
        rt_str_trim(rt_str_of(words[0])).ptr[0] == '{')
        return write_object(w, rt_str_of(words[0]), arena, err);
    return write_pairs(w, count, words, arena, err);
}

/* search WORDS and describe NAME are tools of the daemon's own, with one argument that has a name.
 */
static bool write_own(rt_json_writer *w, const char *key, int count, char **words, rt_arena *arena,
                      rt_error *err)
{
    if (count < 1)
        return rt_fail(err, RT_INVALID, "say what: retort-tool %s …",
                       strcmp(key, "query") == 0 ? "search" : "describe");
    rt_jw_object(w);
    rt_jw_kstr(w, key, rt_str_of(words[0]));
    for (int i = 1, n; i < count; i += n)
        if (!(n = write_pair(w, count - i, words + i, arena)))
            return rt_fail(err, RT_INVALID, "'%s' is no argument", words[i]);
    rt_jw_end(w);
    return true;
}

static bool write_call(rt_json_writer *w, int count, char **words, rt_arena *arena, rt_error *err)
{
    static const struct {
        const char *word, *tool, *key;
    } own[] = { { "search", "tools:search", "query" },
                { "describe", "tools:describe", "name" },
                { "list", "tools:list", NULL } };
    rt_jw_object(w);
    for (size_t i = 0; i < RT_COUNT(own); i++)
        if (strcmp(words[0], own[i].word) == 0) {
            rt_jw_kstr(w, "tool", rt_str_of(own[i].tool));
            rt_jw_key(w, RT_STR("arguments"));
            bool ok = own[i].key ? write_own(w, own[i].key, count - 1, words + 1, arena, err)
                                 : write_pairs(w, count - 1, words + 1, arena, err);
            if (ok)
                rt_jw_end(w);
            return ok;
        }
    rt_jw_kstr(w, "tool", rt_str_of(words[0]));
    rt_jw_key(w, RT_STR("arguments"));
    if (!write_arguments(w, count - 1, words + 1, arena, err))
        return false;
    rt_jw_end(w);
    return true;
}

/* ---- the call ---- */

static bool ask(rt_str call, jail_frame *answer, rt_error *err)
{
    int pair[2], type;
    int file RT_CLEANUP(rt_closep) = memfd_create("call", MFD_CLOEXEC);
    if (getsockopt(RELAY_FD, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof(type) }) != 0)
        return rt_fail(err, RT_DENIED, "this run has no tools");
    if (file < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return rt_fail_errno(err, "make a call");
    int near RT_CLEANUP(rt_closep) = pair[0], far RT_CLEANUP(rt_closep) = pair[1];
    if (!rt_write_all(file, call, err))
        return false;
    if (jail_packet_send(RELAY_FD, "", 1, (int[]){ file, far }, 2) != 1)
        return rt_fail(err, RT_CONFLICT, "the run has ended");
    rt_closep(&far); /* so that the end of the run is the end of our waiting */
    if (!jail_frame_recv(near, JAIL_FRAME_MAX, answer, err))
        return rt_fail(err, RT_CONFLICT, "the run has ended");
    return true;
}

static int print_file(int fd)
{
    char chunk[65536];
    rt_error err = { 0 };
    ssize_t n;
    lseek(fd, 0, SEEK_SET);
    while ((n = read(fd, chunk, sizeof(chunk))) > 0)
        if (!rt_write_all(STDOUT_FILENO, (rt_str){ chunk, (size_t)n }, &err))
            return complain(1, err.text);
    return rt_write_all(STDOUT_FILENO, RT_STR("\n"), &err) ? 0 : 1;
}

static int print_answer(const jail_frame *frame, rt_arena *arena)
{
    rt_json answer;
    rt_error err = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { .max = JAIL_FRAME_MAX };
    int64_t index = 0;
    if (!rt_json_parse((rt_str){ frame->data, frame->len }, arena, &answer, &err))
        return complain(1, err.text);
    rt_json error = rt_json_get_c(answer, "error");
    if (!rt_json_is_absent(error)) {
        rt_str message = rt_json_str(rt_json_get_c(error, "message"));
        fprintf(stderr, "retort-tool: %.*s\n", RT_FMT(message));
        return 1;
    }
    if (rt_json_i64(rt_json_get_c(answer, "value_fd"), &index))
        return index >= 0 && (size_t)index < frame->fd_count ? print_file(frame->fds[index]) : 1;
    rt_json_print(rt_json_get_c(answer, "value"), &text);
    rt_buf_addc(&text, '\n');
    return rt_write_all(STDOUT_FILENO, rt_buf_str(&text), &err) ? 0 : complain(1, err.text);
}

int main(int argc, char **argv)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf call RT_CLEANUP(rt_buf_done) = { .max = STDIN_MAX };
    rt_error err = { 0 };
    rt_json_writer w;
    jail_frame answer = { 0 };
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        fputs("usage: retort-tool SERVER:TOOL ['{\"name\": …}' | name=value … | -]\n"
              "       retort-tool search WORDS | describe SERVER:TOOL | list\n",
              stderr);
        return 2;
    }
    rt_json_begin(&w, &call);
    if (!write_call(&w, argc - 1, argv + 1, &arena, &err) || !rt_buf_ok(&call, &err))
        return complain(2, err.text);
    if (!ask(rt_buf_str(&call), &answer, &err))
        return complain(1, err.text);
    int status = print_answer(&answer, &arena);
    jail_frame_done(&answer);
    return status;
}
