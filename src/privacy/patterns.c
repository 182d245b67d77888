/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patterns.c - patterns of the operator's own, matched by PCRE2.
 *
 * They come from a configuration, not from a run, and still may be bad: each match has a budget
 * of steps, and running out of it fails the scan. Letting the text pass would be the leak that
 * the pattern was there to stop.
 */
#include "privacy/privacy_internal.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

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
                                     PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C,
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

static bool scan_one(privacy_scan *scan, const rt_privacy_patterns *patterns, size_t k,
                     pcre2_match_data *match, rt_error *err)
{
    rt_str text = scan->text;
    size_t i = 0;
    while (i <= text.len && !scan->is_overfull) {
        int found = pcre2_match(patterns->codes[k], (PCRE2_SPTR)(text.ptr ? text.ptr : ""),
                                text.len, i, 0, match, patterns->limits);
        if (found == PCRE2_ERROR_NOMATCH)
            return true;
        if (found < 0)
            return rt_fail(err, RT_LIMIT, "pattern %s takes too long (PCRE2 says %d)",
                           patterns->names[k], found);
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(match);
        if (span[1] > span[0])
            privacy_add(scan, RT_PII_BUILTIN + (unsigned)k, span[0], span[1], 100);
        i = span[1] > i ? span[1] : i + 1;
    }
    return true;
}

bool privacy_patterns_scan(privacy_scan *scan, const rt_privacy_patterns *patterns, rt_error *err)
{
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    bool ok = match != NULL;
    if (!ok)
        return rt_fail(err, RT_SYSTEM, "PCRE2 has no memory");
    for (size_t k = 0; k < patterns->count && ok; k++)
        if (wants(scan, RT_PII_BUILTIN + (unsigned)k))
            ok = scan_one(scan, patterns, k, match, err);
    pcre2_match_data_free(match);
    return ok;
}
