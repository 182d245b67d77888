/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patterns.c - patterns of the operator's own, matched by PCRE2.
 *
 * A pattern may be bad, by mistake or on purpose. PCRE2 counts steps from each place on anew, so
 * that alone does not bound a search: a text is searched in windows of places where a match may
 * begin, with a look at the clock between them. Running out of either budget fails the scan.
 * Letting the text pass would be the leak that the pattern was there to stop.
 */
#include "privacy/privacy_internal.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <time.h>

#define WINDOW_BYTES ((size_t)4 << 10)

struct rt_privacy_patterns {
    size_t count;
    char names[RT_PRIVACY_PATTERNS_MAX][PRIVACY_NAME_MAX + 1];
    pcre2_code *codes[RT_PRIVACY_PATTERNS_MAX];
    pcre2_match_context *limits;
};

bool rt_privacy_patterns_new(rt_privacy_patterns **out, rt_error *err)
{
    rt_privacy_patterns *patterns = calloc(1, sizeof(*patterns));
    if (!patterns)
        rt_out_of_memory(sizeof(*patterns));
    patterns->limits = pcre2_match_context_create(NULL);
    if (!patterns->limits) {
        free(patterns);
        return rt_fail(err, RT_SYSTEM, "PCRE2 has no memory");
    }
    pcre2_set_match_limit(patterns->limits, RT_PRIVACY_MATCH_STEPS_MAX);
    pcre2_set_depth_limit(patterns->limits, 10000);
    pcre2_set_heap_limit(patterns->limits, 16 * 1024);
    *out = patterns;
    return true;
}

void rt_privacy_patterns_freep(rt_privacy_patterns **patterns)
{
    rt_privacy_patterns *p = RT_TAKE(*patterns);
    if (!p)
        return;
    for (size_t i = 0; i < p->count; i++)
        pcre2_code_free(p->codes[i]);
    pcre2_match_context_free(p->limits);
    free(p);
}

static bool is_good_name(const rt_privacy_patterns *patterns, rt_str name)
{
    if (name.len == 0 || name.len > PRIVACY_NAME_MAX || !is_class(name.ptr[0], IS_UPPER))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!is_class(name.ptr[i], IS_UPPER | IS_DIGIT) && name.ptr[i] != '_')
            return false;
    for (unsigned type = 0; type < RT_PII_BUILTIN; type++)
        if (rt_str_eq_c(name, rt_pii_name(type, RT_PII_NAME)) ||
            rt_str_eq_c(name, rt_pii_name(type, RT_PII_TOKEN)))
            return false;
    for (size_t i = 0; i < patterns->count; i++)
        if (rt_str_eq_c(name, patterns->names[i]))
            return false;
    return true;
}

bool rt_privacy_patterns_add(rt_privacy_patterns *patterns, rt_str name, rt_str regex,
                             unsigned *type, rt_error *err)
{
    int number = 0;
    PCRE2_SIZE where = 0;
    if (patterns->count == RT_PRIVACY_PATTERNS_MAX)
        return rt_fail(err, RT_LIMIT, "at most %d own patterns", RT_PRIVACY_PATTERNS_MAX);
    if (!is_good_name(patterns, name))
        return rt_fail(err, RT_INVALID,
                       "'%.*s' cannot name a pattern: capitals, digits and '_', "
                       "and not in use",
                       (int)RT_MIN(name.len, (size_t)40), name.ptr);
    if (regex.len == 0 || regex.len > RT_PRIVACY_PATTERN_SIZE_MAX)
        return rt_fail(err, RT_LIMIT, "pattern %.*s: 1 to %d bytes", RT_FMT(name),
                       RT_PRIVACY_PATTERN_SIZE_MAX);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)regex.ptr, regex.len,
                                     PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C |
                                         PCRE2_USE_OFFSET_LIMIT,
                                     &number, &where, NULL);
    if (!code) {
        char why[120];
        pcre2_get_error_message(number, (PCRE2_UCHAR *)why, sizeof(why));
        return rt_fail(err, RT_INVALID, "pattern %.*s: at %zu: %s", RT_FMT(name), where, why);
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* if it cannot, it is matched without */
    memcpy(patterns->names[patterns->count], name.ptr, name.len);
    patterns->codes[patterns->count] = code;
    *type = RT_PII_BUILTIN + (unsigned)patterns->count++;
    return true;
}

rt_str rt_privacy_patterns_name(const rt_privacy_patterns *patterns, unsigned type)
{
    if (type < RT_PII_BUILTIN)
        return rt_str_of(rt_pii_name(type, RT_PII_NAME));
    if (!patterns || type - RT_PII_BUILTIN >= patterns->count)
        return RT_STR("");
    return rt_str_of(patterns->names[type - RT_PII_BUILTIN]);
}

/* Of this thread: a busy machine is no fault of the pattern's. */
static uint64_t cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

typedef struct search {
    const rt_privacy_patterns *patterns;
    pcre2_match_context *limits;
    pcre2_match_data *match;
    uint64_t deadline_ms;
} search;

static void search_done(search *s)
{
    pcre2_match_data_free(s->match);
    pcre2_match_context_free(s->limits);
}

/* The first match that begins in i..end-1. 1: found, 0: none, -1: it failed. */
static int find_in(const search *s, size_t k, rt_str text, size_t i, size_t end, rt_error *err)
{
    pcre2_set_offset_limit(s->limits, end - 1);
    int found = pcre2_match(s->patterns->codes[k], (PCRE2_SPTR)(text.ptr ? text.ptr : ""), text.len,
                            i, 0, s->match, s->limits);
    if (found == PCRE2_ERROR_NOMATCH)
        return 0;
    if (found >= 0)
        return 1;
    rt_fail(err, RT_LIMIT, "pattern %s takes too long (PCRE2 says %d)", s->patterns->names[k],
            found);
    return -1;
}

static bool scan_one(privacy_scan *scan, const search *s, size_t k, rt_error *err)
{
    rt_str text = scan->text;
    for (size_t i = 0, next; i < text.len && !scan->is_overfull; i = next) {
        next = RT_MIN(text.len, i + WINDOW_BYTES);
        int found = find_in(s, k, text, i, next, err);
        if (found < 0)
            return false;
        if (found > 0) {
            const PCRE2_SIZE *span = pcre2_get_ovector_pointer(s->match);
            if (span[1] > span[0])
                privacy_add(scan, RT_PII_BUILTIN + (unsigned)k, span[0], span[1], 100);
            next = RT_MAX(span[1], span[0] + 1);
        }
        while (next < text.len && ((unsigned char)text.ptr[next] & 0xC0) == 0x80)
            next++;
        if (cpu_ms() > s->deadline_ms)
            return rt_fail(err, RT_LIMIT, "pattern %s takes too long on %zu bytes",
                           s->patterns->names[k], text.len);
    }
    return true;
}

bool privacy_patterns_scan(privacy_scan *scan, const rt_privacy_patterns *patterns, rt_error *err)
{
    search s RT_CLEANUP(search_done) = {
        .patterns = patterns,
        .limits = pcre2_match_context_copy(patterns->limits),
        .match = pcre2_match_data_create(1, NULL),
        .deadline_ms = cpu_ms() + RT_PRIVACY_MATCH_MS_MAX + (scan->text.len >> 10),
    };
    if (!s.limits || !s.match)
        return rt_fail(err, RT_SYSTEM, "PCRE2 has no memory");
    for (size_t k = 0; k < patterns->count; k++)
        if (wants(scan, RT_PII_BUILTIN + (unsigned)k) && !scan_one(scan, &s, k, err))
            return false;
    return true;
}
