/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privacy_bench.c - how fast personal data is found, beside PCRE2's JIT with one pattern after
 * another.
 *
 *     privacy-bench few LICENSE docs/http.md …      text with few matches
 *     privacy-bench full tests/privacy/people.txt   text full of them; [[TYPE:…]] marks are taken
 * off
 *
 * The files are joined and repeated to eight megabytes. Prints one JSON object: the best of several
 * rounds, in megabytes a second, and how much was found. The patterns of the peer are plain: they
 * find candidates, and judge nothing (no checksum, no word around).
 */
#include "privacy/privacy.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_BYTES ((size_t)8 << 20)
#define FILE_MAX   ((size_t)4 << 20)

enum { ROUNDS = 9 };

static const char *const patterns[] = {
    "[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}",
    "\\b\\d{3}-\\d{2}-\\d{4}\\b",
    "(?:\\+\\d{1,3}[ .-]?)?\\(?\\d{2,4}\\)?[ .-]?\\d{3,4}[ .-]?\\d{3,4}\\b",
    "\\b(?:\\d[ -]?){12,18}\\d\\b",
    "\\b(?:\\d{1,3}\\.){3}\\d{1,3}\\b",
    "\\b(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}\\b",
    "\\b[A-Z]{2}\\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\\b",
    "\\b(?:https?|ftp)://[^\\s\"'<>]+",
    "\\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{16,}\\b",
    "\\b(?:AKIA|ASIA)[A-Z0-9]{16}\\b",
    "\\bgh[pousr]_[A-Za-z0-9]{36}\\b",
    "\\bxox[baprs]-[A-Za-z0-9-]{10,}",
    "\\beyJ[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{10,}",
    "-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "(?i)\\b(?:password|passwd|secret|api[_-]?key|token)\\b[\"']?\\s*[:=]\\s*[\"']?[^\\s\"',;]{6,}",
    "\\b\\d{1,5} (?:[A-Z][a-z]+ "
    "){1,3}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Court|Blvd)\\b",
    "(?i)\\b(?:dob|born|birth)\\b.{0,20}?\\d{1,4}[/.-]\\d{1,2}[/.-]\\d{1,4}",
};

static rt_str take_marks_off(rt_str text, rt_arena *arena)
{
    char *out = rt_arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len;) {
        if (i + 2 < text.len && text.ptr[i] == '[' && text.ptr[i + 1] == '[') {
            const char *colon = memchr(text.ptr + i, ':', text.len - i);
            i = colon ? (size_t)(colon - text.ptr) + 1 : i + 2;
        } else if (i + 1 < text.len && text.ptr[i] == ']' && text.ptr[i + 1] == ']') {
            i += 2;
        } else {
            out[len++] = text.ptr[i++];
        }
    }
    return (rt_str){ out, len };
}

static rt_str read_all(int count, char **paths, rt_arena *arena)
{
    rt_buf joined RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    for (int i = 0; i < count; i++) {
        rt_str text;
        if (!rt_read_file(paths[i], FILE_MAX, arena, &text, &err)) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        rt_buf_add(&joined, take_marks_off(text, arena));
        rt_buf_addc(&joined, '\n');
    }
    rt_str once = rt_arena_str(arena, rt_buf_str(&joined));
    while (joined.len < TEXT_BYTES)
        rt_buf_add(&joined, once);
    return rt_arena_str(arena, rt_buf_str(&joined));
}

static size_t scan_ours(rt_str text)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_pii_spans spans;
    return rt_privacy_scan(text, NULL, &arena, &spans, NULL) ? spans.count : 0;
}

static pcre2_code *codes[RT_COUNT(patterns)];
static pcre2_match_data *match;

static void compile(void)
{
    int number;
    PCRE2_SIZE where;
    match = pcre2_match_data_create(1, NULL);
    for (size_t i = 0; i < RT_COUNT(patterns); i++) {
        codes[i] =
            pcre2_compile((PCRE2_SPTR)patterns[i], PCRE2_ZERO_TERMINATED, 0, &number, &where, NULL);
        if (!codes[i] || pcre2_jit_compile(codes[i], PCRE2_JIT_COMPLETE) != 0) {
            fprintf(stderr, "pattern %zu\n", i);
            exit(1);
        }
    }
}

static size_t scan_peer(rt_str text)
{
    size_t found = 0;
    for (size_t i = 0; i < RT_COUNT(patterns); i++)
        for (size_t at = 0;
             pcre2_jit_match(codes[i], (PCRE2_SPTR)text.ptr, text.len, at, 0, match, NULL) > 0;
             found++)
            at = pcre2_get_ovector_pointer(match)[1];
    return found;
}

/* Of this thread: others may be busy on the machine, and a core is what is asked about. */
static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void measure(const char *name, size_t (*scan)(rt_str), rt_str text, int rounds)
{
    uint64_t best = UINT64_MAX;
    size_t found = 0;
    for (int i = 0; i < rounds; i++) {
        uint64_t began = cpu_ns();
        found = scan(text);
        best = RT_MIN(best, cpu_ns() - began);
    }
    printf("\"%s\":%.1f,\"%s_found\":%zu", name, (double)text.len * 1e3 / (double)best, name,
           found);
}

int main(int argc, char **argv)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    if (argc < 3)
        return 2;
    rt_str text = read_all(argc - 2, argv + 2, &arena);
    compile();
    printf("{\"name\":\"%s\",\"bytes\":%zu,", argv[1], text.len);
    measure("ours", scan_ours, text, ROUNDS);
    printf(",");
    measure("pcre2", scan_peer, text, 2);
    printf("}\n");
    return 0;
}
