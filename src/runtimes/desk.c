/*
 * desk.c - calls of running code: from the guest's frames to the desk, and the answers back.
 *
 * Code can write what it likes on the control socket. A frame that is no call of this run is passed
 * over; of those that are, so many may be under way and no more. Answers go out one by one, the
 * next when the guest has taken the last, so code that does not read costs no memory here. When the
 * run ends, what is under way is left to the desk's owner.
 */
#include "runtimes/runtimes_internal.h"

#include <string.h>

#define CALL_HEAD        "{\"op\":\"call\","
#define TOOL_MAX         512 /* "server:tool", whatever either may be called */
#define FILES_PER_MEMORY 4   /* times the memory limit: what tools may answer in memory files */
#define INLINE_MAX       (64u << 10) /* above it, a value travels in a memory file */
#define LOOK_NS          100000000ull /* how often the desk is asked whether a person is waited for */
#define ERROR_TYPE       "MCPToolError"
#define TOO_MANY         "too many calls at once; at most 64 may be under way, so await some first"
#define BAD_CALL         "a call names a tool and brings an object of arguments"
#define TOO_LONG         "the arguments are longer than the policy's output limit; pass less"

bool runtimes_is_call(const progress *p, rt_str frame)
{
    return p->run->desk && rt_str_starts(frame, RT_STR(CALL_HEAD));
}

/* ---- answers ---- */

static void write_error(rt_json_writer *w, const rt_desk_answer *a)
{
    rt_jw_kobject(w, "error");
    rt_jw_kstr(w, "type", a->error_type.len ? a->error_type : RT_STR(ERROR_TYPE));
    rt_jw_kstr(w, "message", a->error_text);
    if (a->tool.len)
        rt_jw_kstr(w, "tool", a->tool);
    if (a->original.len)
        rt_jw_kstr(w, "original", a->original);
    rt_jw_end(w);
}

/* Memory files are ours until the code lets go of them, which it need not. */
static bool may_send(progress *p, size_t bytes, rt_error *err)
{
    uint64_t most = p->run->policy->memory_bytes * FILES_PER_MEMORY;
    if (bytes > most - RT_MIN(p->calls.sent_bytes, most))
        return rt_fail(err, RT_LIMIT, "tools have answered more than %llu bytes to this run",
                       (unsigned long long)most);
    p->calls.sent_bytes += bytes;
    return true;
}

static void post_answer(progress *p, rt_cell *cell, const rt_desk_answer *a)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_error err = { 0 };
    rt_desk_answer failed = { .number = a->number, .is_error = true };
    int file RT_CLEANUP(rt_closep) = -1;
    bool is_large = !a->is_error && a->value.len > INLINE_MAX;
    if (is_large &&
        !(may_send(p, a->value.len, &err) && runtimes_memory_file(a->value, &file, &err))) {
        failed.error_text = rt_str_of(err.text);
        a = &failed;
    }
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "op", RT_STR("answer"));
    rt_jw_ki64(&w, "id", p->id);
    rt_jw_ku64(&w, "call", a->number);
    if (a->is_error)
        write_error(&w, a);
    else if (file >= 0)
        rt_jw_ki64(&w, "value_fd", 0);
    else
        rt_jw_kraw(&w, "value", a->value.len ? a->value : RT_STR("null"));
    rt_jw_end(&w);
    rt_cell_post(cell, rt_buf_str(&text), file);
}

static void refuse(progress *p, rt_cell *cell, uint64_t number, rt_str tool, const char *why)
{
    rt_desk_answer answer = { .number = number,
                              .is_error = true,
                              .error_text = rt_str_of(why),
                              .tool = rt_str_slice(tool, 0, TOOL_MAX),
                              .original = rt_str_of(why) };
    post_answer(p, cell, &answer);
}

static size_t find_call(const desk_calls *calls, uint64_t number)
{
    size_t i = 0;
    while (i < calls->count && calls->pending[i] != number)
        i++;
    return i;
}

void runtimes_desk_serve(progress *p, rt_cell *cell)
{
    rt_desk *desk = p->run->desk;
    desk_calls *calls = &p->calls;
    if (!desk)
        return;
    if (p->answer.len > 0)
        calls->count = 0; /* the code is done; whoever of it still waits will not be told */
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_desk_answer answer = { 0 };
    while (calls->count > 0 && !rt_cell_has_post(cell) && desk->next(desk, &arena, &answer)) {
        size_t i = find_call(calls, answer.number);
        if (i < calls->count) {
            calls->pending[i] = calls->pending[--calls->count];
            post_answer(p, cell, &answer);
        }
        answer = (rt_desk_answer){ 0 };
    }
    rt_cell_attend(cell, calls->count > 0 ? desk->fd : -1);
}

/* ---- calls ---- */

/* Whose frame it is: one of another run, or that repeats a number, is nobody's. */
static bool read_numbers(const progress *p, rt_json frame, uint64_t *number)
{
    int64_t id = 0, call = -1;
    if (!rt_json_i64(rt_json_get_c(frame, "id"), &id) || id != p->id ||
        !rt_json_i64(rt_json_get_c(frame, "call"), &call) || call < 0)
        return false;
    *number = (uint64_t)call;
    return find_call(&p->calls, *number) == p->calls.count;
}

void runtimes_desk_take(progress *p, rt_cell *cell, rt_str text)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf printed RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json frame;
    uint64_t number;
    if (!rt_json_parse(text, &arena, &frame, &(rt_error){ 0 }) || !read_numbers(p, frame, &number))
        return;
    rt_str tool = rt_json_str(rt_json_get_c(frame, "tool"));
    rt_json arguments = rt_json_get_c(frame, "arguments");
    if (tool.len == 0 || tool.len > TOOL_MAX || rt_json_type(arguments) != RT_JSON_OBJECT) {
        refuse(p, cell, number, tool, BAD_CALL);
        return;
    }
    if (p->calls.count >= RT_DESK_PENDING_MAX) {
        refuse(p, cell, number, tool, TOO_MANY);
        return;
    }
    rt_json_print(arguments, &printed);
    if (!rt_buf_ok(&printed, NULL) || printed.len > p->run->policy->output_bytes) {
        refuse(p, cell, number, tool, TOO_LONG);
        return;
    }
    p->calls.pending[p->calls.count++] = number;
    p->run->desk->take(
        p->run->desk,
        &(rt_desk_call){ .number = number, .tool = tool, .arguments = rt_buf_str(&printed) });
}

/* ---- time ---- */

/* Moves the deadline by what was spent waiting for a person since the last look. */
static bool is_paused(progress *p, uint64_t now)
{
    rt_desk *desk = p->run->desk;
    desk_calls *calls = &p->calls;
    if (calls->paused_ns)
        p->deadline_ns += now - calls->paused_ns;
    bool is_waiting = desk && calls->count > 0 && desk->paused && desk->paused(desk);
    calls->paused_ns = is_waiting ? now : 0;
    return is_waiting;
}

static bool is_desk_watched(const progress *p)
{
    return (p->calls.count > 0 || p->calls.paused_ns) && p->pressed == 0 && p->answer.len == 0;
}

uint64_t runtimes_desk_deadline(progress *p)
{
    if (!is_desk_watched(p))
        return p->deadline_ns;
    uint64_t now = rt_now_ns(), soon = now + LOOK_NS;
    return is_paused(p, now) ? soon : RT_MIN(p->deadline_ns, soon);
}

bool runtimes_desk_is_out_of_time(progress *p)
{
    if (!is_desk_watched(p))
        return true;
    uint64_t now = rt_now_ns();
    return !is_paused(p, now) && now >= p->deadline_ns;
}
