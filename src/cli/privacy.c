/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privacy.c - `retort privacy`: personal data in text, found or masked, nothing kept.
 *
 * Standard input or a file in, standard output out. With --jsonl each line is a JSON value of its
 * own, answered by one line; an error names the line and ends the command.
 */
#include "cli/cli.h"
#include "privacy/privacy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEXT_MAX       ((size_t)256 << 20)
#define LINE_MAX_BYTES ((size_t)64 << 20)

static const char usage[] =
    "Usage: retort privacy scan [--jsonl] [--types LIST] [--min-score N] [FILE]\n"
    "       retort privacy mask [--jsonl] [--types LIST] [--mode redact|tokens|partial] "
    "[--stable]\n"
    "                           [--keys] [FILE]\n\n"
    "Reads FILE or standard input.\n\n"
    "scan answers {\"spans\": [{\"start\", \"end\", \"type\", \"score\"}]}, positions in code "
    "points:\n"
    "one line for the whole text, or with --jsonl one per line, each line being {\"text\": …}.\n"
    "mask writes the text with personal data replaced; with --jsonl each line is any JSON value,\n"
    "whose strings are masked (and with --keys the names of its members).\n\n"
    "  --types LIST       e.g. EMAIL,PHONE (default: all but PERSON). Also CREDIT_CARD, SSN,\n"
    "                     ADDRESS, IP, IBAN, URL, API_KEY, DATE_OF_BIRTH, PASSPORT,\n"
    "                     DRIVER_LICENSE, PERSON\n"
    "  --pattern NAME=RE  a pattern of your own (PCRE2); may be repeated\n"
    "  --min-score N      from 0 to 1 (default 0.5)\n"
    "  --stable           equal values share a token\n";

typedef struct privacy_job {
    bool is_mask, is_jsonl;
    const char *file;
    rt_privacy_mask mask; /* its `scan` serves both */
    rt_privacy_patterns *patterns;
    rt_buf out;
} privacy_job;

static void job_done(privacy_job *job)
{
    rt_privacy_patterns_freep(&job->patterns);
    rt_buf_done(&job->out);
}

/* ---- one text ---- */

static void write_spans(const privacy_job *job, const rt_pii_spans *spans, rt_buf *out)
{
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_karray(&w, "spans");
    for (size_t i = 0; i < spans->count; i++) {
        const rt_pii_span *span = &spans->items[i];
        rt_jw_object(&w);
        rt_jw_ku64(&w, "start", span->start_point);
        rt_jw_ku64(&w, "end", span->end_point);
        rt_jw_kstr(&w, "type", rt_privacy_patterns_name(job->patterns, span->type));
        rt_jw_kdouble(&w, "score", span->score / 100.0);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_end(&w);
}

static bool scan_text(privacy_job *job, rt_str text, rt_arena *arena, rt_error *err)
{
    rt_pii_spans spans;
    if (!rt_privacy_scan(text, &job->mask.scan, arena, &spans, err))
        return false;
    write_spans(job, &spans, &job->out);
    rt_buf_addc(&job->out, '\n');
    return true;
}

static bool mask_with(privacy_job *job, bool is_json, rt_str text, rt_json doc, rt_error *err)
{
    rt_privacy_vault *vault RT_CLEANUP(rt_privacy_vault_closep) = NULL;
    rt_privacy_mask mask = job->mask;
    if (!rt_privacy_vault_open(&vault, err))
        return false;
    mask.vault = vault;
    return is_json ? rt_privacy_mask_json(doc, &mask, &job->out, NULL, err)
                   : rt_privacy_mask_text(text, &mask, &job->out, NULL, err);
}

static bool do_line(privacy_job *job, rt_str line, rt_arena *arena, rt_error *err)
{
    rt_json doc;
    if (!rt_json_parse(line, arena, &doc, err))
        return false;
    if (job->is_mask) {
        bool ok = mask_with(job, true, RT_STR(""), doc, err);
        rt_buf_addc(&job->out, '\n');
        return ok;
    }
    rt_json text = rt_json_get_c(doc, "text");
    if (rt_json_type(text) != RT_JSON_STRING)
        return rt_fail(err, RT_INVALID, "expected an object with a string \"text\"");
    return scan_text(job, rt_json_str(text), arena, err);
}

/* ---- input and output ---- */

static bool flush(privacy_job *job, size_t least, rt_error *err)
{
    if (!rt_buf_ok(&job->out, err))
        return false;
    if (job->out.len < least)
        return true;
    bool ok = rt_write_all(STDOUT_FILENO, rt_buf_str(&job->out), err);
    rt_buf_reset(&job->out);
    return ok;
}

static bool do_lines(privacy_job *job, FILE *in, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *line RT_CLEANUP(rt_freep) = NULL;
    size_t capacity = 0, number = 0;
    ssize_t len;
    while ((len = getline(&line, &capacity, in)) >= 0) {
        rt_str text = rt_str_trim((rt_str){ line, (size_t)len });
        number++;
        if (text.len == 0)
            continue;
        if (text.len > LINE_MAX_BYTES)
            return rt_fail(err, RT_LIMIT, "line %zu: longer than %zu bytes", number,
                           LINE_MAX_BYTES);
        if (!do_line(job, text, &arena, err))
            return rt_wrap(err, "line %zu", number);
        if (!flush(job, 64 << 10, err))
            return false;
        rt_arena_reset(&arena);
    }
    return flush(job, 0, err);
}

static bool do_whole(privacy_job *job, int fd, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text;
    if (!rt_read_fd(fd, TEXT_MAX, &arena, &text, err))
        return false;
    bool ok = job->is_mask ? mask_with(job, false, text, (rt_json){ NULL }, err)
                           : scan_text(job, text, &arena, err);
    return ok && flush(job, 0, err);
}

static bool do_job(privacy_job *job, rt_error *err)
{
    int fd RT_CLEANUP(rt_closep) = -1;
    rt_buf_init(&job->out, 4 * TEXT_MAX);
    if (job->file) {
        fd = open(job->file, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return rt_fail_errno(err, "open %s", job->file);
    }
    if (!job->is_jsonl)
        return do_whole(job, fd < 0 ? STDIN_FILENO : fd, err);
    FILE *in = fd < 0 ? stdin : fdopen(fd, "r");
    if (!in)
        return rt_fail_errno(err, "read %s", job->file);
    bool ok = do_lines(job, in, err);
    if (fd >= 0) {
        (void)RT_TAKE_FD(fd); /* the stream owns it */
        fclose(in);
    }
    return ok;
}

/* ---- arguments ---- */

static bool take_pattern(privacy_job *job, const char *text, rt_error *err)
{
    rt_str rest = rt_str_of(text), name;
    unsigned type;
    rt_str_cut(&rest, '=', &name);
    if (!job->patterns && !rt_privacy_patterns_new(&job->patterns, err))
        return false;
    job->mask.scan.patterns = job->patterns;
    return rt_privacy_patterns_add(job->patterns, name, rest, &type, err);
}

static bool take_score(privacy_job *job, const char *text, rt_error *err)
{
    char *end;
    double score = strtod(text, &end);
    if (*end || end == text || !(score >= 0.01 && score <= 1))
        return rt_fail(err, RT_INVALID, "--min-score is a number from 0.01 to 1, not '%.20s'",
                       text);
    memset(job->mask.scan.min_score, (int)(score * 100 + 0.5), sizeof(job->mask.scan.min_score));
    return true;
}

static bool take_types(privacy_job *job, const char *text, rt_error *err)
{
    uint32_t types;
    if (!rt_pii_types_parse(rt_str_of(text), &types, err))
        return false;
    job->mask.scan.types = types | ~(RT_PII_BIT(RT_PII_BUILTIN) - 1); /* and own patterns */
    return true;
}

static bool take_mode(privacy_job *job, const char *text, rt_error *err)
{
    return rt_privacy_mode_parse(rt_str_of(text), &job->mask.mode, err);
}

static bool take_argument(privacy_job *job, int argc, char **argv, int *i, rt_error *err)
{
    static const struct {
        const char *name;
        bool (*take)(privacy_job *, const char *, rt_error *);
    } options[] = {
        { "--types", take_types },
        { "--min-score", take_score },
        { "--mode", take_mode },
        { "--pattern", take_pattern },
    };
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        { "--jsonl", &job->is_jsonl },
        { "--stable", &job->mask.is_stable },
        { "--keys", &job->mask.masks_keys },
    };
    for (size_t k = 0; k < RT_COUNT(flags); k++)
        if (strcmp(argv[*i], flags[k].name) == 0)
            return *flags[k].flag = true;
    for (size_t k = 0; k < RT_COUNT(options); k++) {
        const char *value = cli_option(argc, argv, i, options[k].name, err);
        if (value)
            return options[k].take(job, value, err);
        if (err->code)
            return false;
    }
    if (argv[*i][0] == '-' || job->file)
        return rt_fail(err, RT_INVALID, "unknown option %.60s; 'retort privacy --help' lists them",
                       argv[*i]);
    job->file = argv[*i];
    return true;
}

int cli_privacy(int argc, char **argv)
{
    privacy_job job RT_CLEANUP(job_done) = { .mask = { .mode = RT_PRIVACY_REDACT } };
    rt_error err = { 0 };
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return EXIT_GOOD;
        }
    if (argc < 2 || (strcmp(argv[1], "scan") != 0 && strcmp(argv[1], "mask") != 0)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    job.is_mask = argv[1][0] == 'm';
    for (int i = 2; i < argc; i++)
        if (!take_argument(&job, argc, argv, &i, &err))
            return cli_complain(&err);
    return do_job(&job, &err) ? EXIT_GOOD : cli_complain(&err);
}
