/*
 * run.c - `retort run`: one piece of code, once or several times.
 *
 * Without --json the terminal sees what the code printed, as it comes, then its answer, then, on
 * stderr, what went wrong. With --json stdout gets one JSON object a run and nothing else.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CODE_READ_MAX  (64u << 20) /* read no further; the policy's own limit is far below */
#define STDIN_MAX      (64u << 20)
#define JSON_INPUT_MAX (256u << 20)
#define REPEAT_MAX     1000000
#define PARALLEL_MAX   1000

typedef struct options {
    const char *file, *code, *language, *out_dir, *name;
    rt_policy policy;
    rt_str input;
    bool has_input, is_input_text;
    int input_fd;
    bool has_input_fd, is_json, is_quiet;
    uint64_t repeat, pause_ms, parallel;
    int64_t pool;
    rt_arena *arena;
} options;

static void print_help(void)
{
    puts("Usage: retort run FILE|- [options]\n"
         "       retort run -l LANGUAGE -c CODE [options]\n\n"
         "Runs code in a fresh sealed cell and ends with the code's own exit status.\n\n"
         "  -c, --code CODE         the code itself instead of a file ('-' reads it from stdin)\n"
         "  -l, --language NAME     python, javascript, typescript or bash; else by the file's "
         "ending\n"
         "  -i, --input JSON|@FILE  the code's input: JSON, or a file (JSON if it is named .json, "
         "else text)\n"
         "  -p, --policy NAME|FILE  a preset ('retort policies') or a YAML file with the keys "
         "below\n"
         "      --json              print one JSON object instead of text\n"
         "      --out DIR           keep the files the code left in out/\n"
         "      --repeat N          after a first run, N more, each in a fresh cell; print the "
         "times\n"
         "      --pool N            keep up to N warm cells ready while repeating (default 4)\n"
         "      --parallel N        N of the repeats at a time (default 1)\n"
         "      --pause TIME        wait so long between the repeats\n\n"
         "Policy keys, each also a flag (--timeout 5s --memory 128M):");
    const rt_policy_key *key;
    for (size_t i = 0; (key = rt_policy_key_at(i)); i++)
        printf("      --%-12s %s\n", key->key, key->about);
    puts("\nWhat code sees: docs/languages.md. Exit status: the code's own; 124 time, 137 memory,\n"
         "2 the command line or the code could not be used, 3 this host cannot run cells.");
}

/* ---- arguments ---- */

static bool load_policy(options *o, const char *name, rt_error *err)
{
    const rt_policy *preset = rt_policy_preset(rt_str_of(name));
    rt_str yaml;
    if (preset) {
        o->policy = *preset;
        return true;
    }
    if (access(name, F_OK) != 0 && !strchr(name, '/') && !strchr(name, '.'))
        return rt_fail(err, RT_NOT_FOUND,
                       "there is no policy '%.60s'; 'retort policies' lists them", name);
    return (rt_read_file(name, 64u << 10, o->arena, &yaml, err) &&
            rt_policy_parse(yaml, o->arena, &o->policy, err)) ||
           rt_wrap(err, "%s", name);
}

static bool take_input(options *o, const char *text, rt_error *err)
{
    rt_json ignored;
    o->input_fd = -1;
    o->has_input_fd = o->has_input = false;
    if (text[0] != '@') {
        o->input = rt_str_of(text);
        o->has_input = true;
        return rt_json_parse(o->input, o->arena, &ignored, err) ||
               rt_wrap(err, "--input is not JSON");
    }
    struct stat st;
    o->input_fd = open(text + 1, O_RDONLY | O_CLOEXEC);
    if (o->input_fd < 0 || fstat(o->input_fd, &st) != 0)
        return rt_fail_errno(err, "--input %s", text);
    if (S_ISDIR(st.st_mode))
        return rt_fail(err, RT_INVALID, "--input %.100s is a directory", text);
    o->is_input_text = !rt_str_ends(rt_str_of(text), RT_STR(".json"));
    if (o->is_input_text) {
        o->has_input_fd = true; /* goes to the cell as it is, however large */
        return true;
    }
    bool ok = rt_read_fd(o->input_fd, JSON_INPUT_MAX, o->arena, &o->input, err) &&
              rt_json_parse(o->input, o->arena, &ignored, err);
    close(o->input_fd);
    o->input_fd = -1;
    o->has_input = true;
    return ok || rt_wrap(err, "--input %s", text);
}

static bool take_number(const char *text, uint64_t max, uint64_t *out, const char *name,
                        rt_error *err)
{
    if (!rt_str_to_u64(rt_str_of(text), out) || *out > max)
        return rt_fail(err, RT_INVALID, "%s needs a number from 0 to %llu", name,
                       (unsigned long long)max);
    return true;
}

/* A policy flag: --timeout 5s. Sets *is_one when it was one. */
static bool take_policy_flag(options *o, int argc, char **argv, int *i, bool *is_one, rt_error *err)
{
    const rt_policy_key *key;
    *is_one = false;
    for (size_t k = 0; (key = rt_policy_key_at(k)); k++) {
        char flag[40];
        snprintf(flag, sizeof(flag), "--%s", key->key);
        const char *value = cli_option(argc, argv, i, flag, err);
        if (err->code)
            return false;
        if (!value)
            continue;
        *is_one = true;
        return rt_policy_set(&o->policy, rt_str_of(key->key), rt_str_of(value), o->arena, err);
    }
    return true;
}

/* ---- one row per option that takes a value ---- */

static bool set_code(options *o, const char *value, rt_error *err)
{
    (void)err;
    o->code = value;
    return true;
}

static bool set_language(options *o, const char *value, rt_error *err)
{
    (void)err;
    o->language = value;
    return true;
}

static bool set_out(options *o, const char *value, rt_error *err)
{
    (void)err;
    o->out_dir = value;
    return true;
}

static bool set_name(options *o, const char *value, rt_error *err)
{
    (void)err;
    o->name = value;
    return true;
}

static bool set_repeat(options *o, const char *value, rt_error *err)
{
    return take_number(value, REPEAT_MAX, &o->repeat, "--repeat", err);
}

static bool set_parallel(options *o, const char *value, rt_error *err)
{
    return take_number(value, PARALLEL_MAX, &o->parallel, "--parallel", err);
}

static bool set_pool(options *o, const char *value, rt_error *err)
{
    uint64_t number;
    if (!take_number(value, RT_CELLS_MAX / 2, &number, "--pool", err))
        return false;
    o->pool = (int64_t)number;
    return true;
}

static bool set_pause(options *o, const char *value, rt_error *err)
{
    return rt_parse_duration_ms(rt_str_of(value), &o->pause_ms, err) || rt_wrap(err, "--pause");
}

static const struct {
    const char *full, *brief;
    bool (*set)(options *o, const char *value, rt_error *err);
} valued[] = {
    { "--code", "-c", set_code },         { "--language", "-l", set_language },
    { "--input", "-i", take_input },      { "--out", NULL, set_out },
    { "--name", NULL, set_name },         { "--repeat", NULL, set_repeat },
    { "--pool", NULL, set_pool },         { "--pause", NULL, set_pause },
    { "--parallel", NULL, set_parallel },
};

/* Sets *is_one when the argument was an option with a value. */
static bool take_valued(options *o, int argc, char **argv, int *i, bool *is_one, rt_error *err)
{
    *is_one = false;
    for (size_t n = 0; n < RT_COUNT(valued); n++) {
        const char *value = cli_option(argc, argv, i, valued[n].full, err);
        if (!value && !err->code && valued[n].brief)
            value = cli_option(argc, argv, i, valued[n].brief, err);
        if (err->code)
            return false;
        if (!value)
            continue;
        *is_one = true;
        return valued[n].set(o, value, err);
    }
    return true;
}

static bool take_argument(options *o, int argc, char **argv, int *i, rt_error *err)
{
    const char *arg = argv[*i];
    bool is_taken;
    if (strcmp(arg, "--json") == 0)
        return o->is_json = true;
    if (!take_valued(o, argc, argv, i, &is_taken, err) || is_taken)
        return !err->code;
    if (!take_policy_flag(o, argc, argv, i, &is_taken, err) || is_taken)
        return !err->code;
    if (arg[0] == '-' && arg[1] != '\0')
        return rt_fail(err, RT_INVALID, "unknown option %.60s; 'retort run --help' lists them",
                       arg);
    if (o->file)
        return rt_fail(err, RT_INVALID, "one file at a time: '%.60s' and '%.60s'", o->file, arg);
    o->file = arg;
    return true;
}

/* The policy comes first, so that flags before and after it both refine it. */
static bool take_policy(options *o, int argc, char **argv, rt_error *err)
{
    for (int i = 1; i < argc && !err->code; i++) {
        const char *name = cli_option(argc, argv, &i, "--policy", err);
        if (!name && !err->code)
            name = cli_option(argc, argv, &i, "-p", err);
        if (name && !load_policy(o, name, err))
            return false;
    }
    return !err->code;
}

static bool read_arguments(options *o, int argc, char **argv, rt_error *err)
{
    o->policy = *rt_policy_preset(RT_STR("default"));
    if (!take_policy(o, argc, argv, err))
        return false;
    for (int i = 1; i < argc; i++) {
        if (cli_option(argc, argv, &i, "--policy", err) || cli_option(argc, argv, &i, "-p", err))
            continue;
        if (!take_argument(o, argc, argv, &i, err))
            return false;
    }
    if (o->has_input_fd && o->parallel > 1)
        return rt_fail(err, RT_INVALID,
                       "--parallel does not go with an input file that is not JSON");
    if (!o->file && !o->code)
        return rt_fail(err, RT_INVALID,
                       "MISSING_CODE: give a file or -c CODE; 'retort run --help' says more");
    if (o->file && o->code)
        return rt_fail(err, RT_INVALID, "give a file or -c CODE, not both");
    return true;
}

/* ---- code ---- */

static rt_str base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return rt_str_of(slash ? slash + 1 : path);
}

/* A module is no text: it travels in base64. */
static bool wrap_module(options *o, rt_run *run, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    if (!rt_str_starts(run->code, RT_STR("\0asm")))
        return true;
    rt_base64(&text, run->code);
    run->code = rt_arena_str(o->arena, rt_buf_str(&text));
    return rt_buf_ok(&text, err);
}

static bool read_code(options *o, rt_run *run, rt_error *err)
{
    const rt_language *known = NULL;
    bool is_stdin =
        (o->file && strcmp(o->file, "-") == 0) || (o->code && strcmp(o->code, "-") == 0);
    if (is_stdin) {
        if (!rt_read_fd(STDIN_FILENO, CODE_READ_MAX, o->arena, &run->code, err))
            return rt_wrap(err, "read the code from stdin");
    } else if (o->code) {
        run->code = rt_str_of(o->code);
    } else {
        if (!rt_read_file(o->file, CODE_READ_MAX, o->arena, &run->code, err))
            return false;
        run->name = base_name(o->file);
        known = rt_language_of_file(run->name);
    }
    if (o->name)
        run->name = rt_str_of(o->name);
    run->language = o->language ? rt_str_of(o->language)
                    : known     ? rt_str_of(known->name)
                                : (rt_str){ 0 };
    if (run->language.len == 0)
        return rt_fail(err, RT_INVALID,
                       "which language? use -l python, -l javascript, -l typescript or -l bash; "
                       "'retort languages' lists them all");
    return wrap_module(o, run, err);
}

/* What comes on our stdin goes to the code's, if it is a pipe or a file and was not the code. */
static bool read_stdin(const options *o, rt_run *run, rt_error *err)
{
    struct stat st;
    bool is_code = (o->file && strcmp(o->file, "-") == 0) || (o->code && strcmp(o->code, "-") == 0);
    if (is_code || fstat(STDIN_FILENO, &st) != 0 || !(S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode)))
        return true;
    return rt_read_fd(STDIN_FILENO, STDIN_MAX, o->arena, &run->stdin_data, err) ||
           rt_wrap(err, "read stdin");
}

/* ---- showing ---- */

/* False when nobody reads any more: then the run is not wanted either. */
static bool show_output(void *ctx, int stream, rt_str text)
{
    (void)ctx;
    return rt_write_all(stream, text, NULL);
}

/* Text that code chose, in a line of ours: it must not move the cursor or colour the screen. */
static void print_plain(rt_str text, bool keeps_lines)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool is_harmless = (c >= ' ' && c != 0x7f) || (keeps_lines && (c == '\n' || c == '\t'));
        if (is_harmless)
            fputc(c, stderr);
        else
            fprintf(stderr, "\\x%02x", c);
    }
}

static void show_error(const rt_outcome *outcome)
{
    const rt_code_error *e = &outcome->error;
    if (e->stack.len > 0) {
        print_plain(rt_str_trim(e->stack), true);
        fputc('\n', stderr);
    }
    fputs("retort: ", stderr);
    print_plain(e->name.len ? e->name : e->type, false);
    if (e->line > 0)
        fprintf(stderr, " on line %lld", (long long)e->line);
    fputs(": ", stderr);
    print_plain(e->message, true);
    fputc('\n', stderr);
    if (e->hint.len > 0) {
        fputs("retort: ", stderr);
        print_plain(e->hint, false);
        fputc('\n', stderr);
    }
}

/* A text answers as itself, everything else as JSON. */
static void show_value(const rt_outcome *outcome, rt_arena *arena)
{
    rt_json value;
    if (!outcome->has_value || outcome->is_value_output || rt_str_eq_c(outcome->value, "null"))
        return;
    if (outcome->out.len > 0 && outcome->out.ptr[outcome->out.len - 1] != '\n')
        putchar('\n');
    if (rt_json_parse(outcome->value, arena, &value, &(rt_error){ 0 }) &&
        rt_json_type(value) == RT_JSON_STRING)
        printf("%.*s\n", RT_FMT(rt_json_str(value)));
    else
        printf("%.*s\n", RT_FMT(outcome->value));
    fflush(stdout);
}

static bool make_parents(const char *path, rt_error *err)
{
    char part[4096];
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = part + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return rt_fail_errno(err, "make %s", part);
    }
    return true;
}

static bool is_plain_name(rt_str name)
{
    rt_str rest = name, part;
    if (name.len == 0 || name.ptr[0] == '/' || memchr(name.ptr, '\0', name.len))
        return false;
    while (rt_str_cut(&rest, '/', &part))
        if (part.len == 0 || rt_str_eq_c(part, "..") || rt_str_eq_c(part, "."))
            return false;
    return true;
}

static bool save_artifact(const options *o, const rt_file *f, rt_error *err)
{
    char path[4096];
    if (!is_plain_name(f->name))
        return rt_fail(err, RT_DENIED, "an artifact's name leads elsewhere");
    snprintf(path, sizeof(path), "%s/%.*s", o->out_dir, RT_FMT(f->name));
    if (!make_parents(path, err))
        return false;
    int fd RT_CLEANUP(rt_closep) =
        open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return rt_fail_errno(err, "write %s", path);
    return rt_write_all(fd, f->data, err);
}

static void show_artifacts(const options *o, const rt_outcome *outcome)
{
    for (size_t i = 0; i < outcome->artifact_count; i++) {
        const rt_file *f = &outcome->artifacts[i];
        rt_error err = { 0 };
        if (o->out_dir && !f->is_cut && !save_artifact(o, f, &err)) {
            fprintf(stderr, "retort: %s\n", err.text);
            continue;
        }
        if (o->is_json && !f->is_cut)
            continue;
        fputs("retort: artifact ", stderr);
        print_plain(f->name, false);
        fprintf(stderr, " (%llu bytes)%s\n", (unsigned long long)f->size,
                f->is_cut    ? " is too large to bring back"
                : o->out_dir ? ""
                             : "; keep it with --out DIR");
    }
}

static void show_outcome(const options *o, const rt_outcome *outcome, rt_arena *arena)
{
    if (o->is_json) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { .max = 512u << 20 };
        rt_json_writer w;
        rt_json_begin(&w, &text);
        rt_outcome_write(outcome, &w);
        rt_buf_addc(&text, '\n');
        rt_write_all(STDOUT_FILENO, rt_buf_str(&text), NULL);
    } else {
        show_value(outcome, arena);
        if (outcome->has_error)
            show_error(outcome);
    }
    show_artifacts(o, outcome);
}

/* ---- repeating ---- */

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void show_times(const options *o, uint64_t *us, size_t count, size_t failed,
                       uint64_t total_ns)
{
    qsort(us, count, sizeof(*us), by_size);
    double p50 = (double)us[count / 2] / 1000, p95 = (double)us[count * 95 / 100] / 1000,
           p99 = (double)us[count * 99 / 100] / 1000, each = (double)count * 1e9 / (double)total_ns;
    if (o->is_json)
        printf("{\"runs\":%zu,\"failed\":%zu,\"p50_ms\":%.3f,\"p95_ms\":%.3f,\"p99_ms\":%.3f,"
               "\"per_second\":%.1f}\n",
               count, failed, p50, p95, p99, each);
    else
        fprintf(stderr,
                "%zu runs, %zu failed: p50 %.2f ms, p95 %.2f ms, p99 %.2f ms, %.0f a second\n",
                count, failed, p50, p95, p99, each);
}

/* What the threads of a repeated run share; `next` is the only thing they write together. */
typedef struct repetition {
    const options *o;
    rt_runtime *local;
    const rt_run *run;
    uint64_t *us;
    atomic_size_t next, failed;
    rt_error error; /* the first one; whoever sets has_error wrote it */
    atomic_bool has_error;
} repetition;

static bool run_once(repetition *r, size_t i, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_outcome outcome;
    uint64_t before = rt_now_ns();
    if (r->run->has_input_fd)
        lseek(r->run->input_fd, 0, SEEK_SET);
    if (!r->local->execute(r->local, r->run, &arena, &outcome, err))
        return false;
    r->us[i] = (rt_now_ns() - before) / 1000;
    if (outcome.status != RT_STATUS_SUCCESS)
        atomic_fetch_add(&r->failed, 1);
    return true;
}

static void *repeat_some(void *ctx)
{
    repetition *r = ctx;
    size_t i;
    while (!r->has_error && (i = atomic_fetch_add(&r->next, 1)) < r->o->repeat) {
        rt_error err = { 0 };
        if (!run_once(r, i, &err) && !atomic_exchange(&r->has_error, true))
            r->error = err;
        nanosleep(&(struct timespec){ .tv_sec = (time_t)(r->o->pause_ms / 1000),
                                      .tv_nsec = (long)(r->o->pause_ms % 1000) * 1000000 },
                  NULL);
    }
    return NULL;
}

static int repeat(options *o, rt_runtime *local, rt_run *run)
{
    pthread_t threads[PARALLEL_MAX];
    size_t count = 0, wanted = o->parallel ? (size_t)o->parallel : 1;
    repetition r = { .o = o, .local = local, .run = run };
    r.us = calloc(o->repeat, sizeof(*r.us));
    if (!r.us)
        rt_out_of_memory(o->repeat * sizeof(*r.us));
    run->on_output = NULL;
    /* The first run starts the runtime; it is not one of those that are timed. */
    if (!run_once(&r, 0, &r.error)) {
        free(r.us);
        return cli_complain(&r.error);
    }
    r.failed = 0;
    uint64_t began = rt_now_ns();
    while (count + 1 < wanted && pthread_create(&threads[count], NULL, repeat_some, &r) == 0)
        count++;
    repeat_some(&r);
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    int status = r.failed ? EXIT_FAILED : EXIT_GOOD;
    if (r.has_error)
        status = cli_complain(&r.error);
    else
        show_times(o, r.us, (size_t)o->repeat, r.failed, rt_now_ns() - began);
    free(r.us);
    return status;
}

static int exit_status(const rt_outcome *outcome)
{
    switch (outcome->status) {
    case RT_STATUS_TIMEOUT:
        return 124;
    case RT_STATUS_MEMORY_ERROR:
        return 137;
    default:
        return outcome->exit_code;
    }
}

int cli_run(int argc, char **argv)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    options o = { .arena = &arena, .input_fd = -1, .pool = -1 };
    rt_run run = { .on_output = show_output };
    rt_outcome outcome;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return EXIT_GOOD;
        }
    if (!read_arguments(&o, argc, argv, &err) || !read_code(&o, &run, &err) ||
        !read_stdin(&o, &run, &err))
        return cli_complain(&err);
    if (o.policy.privacy != RT_PRIVACY_OFF) {
        rt_fail(&err, RT_UNSUPPORTED,
                "--privacy: masking is the server's work; start 'retort serve' and send the code "
                "to /v1/executions");
        return cli_complain(&err);
    }
    if (o.is_json)
        run.on_output = NULL;
    run.policy = &o.policy;
    run.input = o.input;
    run.has_input = o.has_input;
    run.is_input_text = o.is_input_text;
    run.input_fd = o.input_fd;
    run.has_input_fd = o.has_input_fd;
    rt_local_config config = { .max_cells = o.repeat ? 64 : 2,
                               .pool_max = o.repeat ? (o.pool < 0 ? 4 : (unsigned)o.pool) : 0 };
    cli_local_config(&config);
    rt_runtime *local RT_CLEANUP(rt_runtime_closep) = NULL;
    if (!rt_local_open(&config, &local, &err) || !rt_sandbox_drop_privileges(&err))
        return cli_complain(&err);
    if (o.repeat)
        return repeat(&o, local, &run);
    if (!local->execute(local, &run, &arena, &outcome, &err))
        return cli_complain(&err);
    show_outcome(&o, &outcome, &arena);
    return exit_status(&outcome);
}
