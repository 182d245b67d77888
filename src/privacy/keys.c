/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - keys that tell by themselves what they are: a published prefix, a length, an alphabet.
 *
 * One row a format. A body with little surprise in it ("ghp_xxxxxxxx…") is an example, not a key.
 */
#include "privacy/privacy_internal.h"

#include <math.h>

typedef enum alphabet {
    ALNUM,  /* letters and digits */
    KEY,    /* and _ - */
    HEX,    /* hexadecimal digits */
    UPPER,  /* capitals and digits */
    BASE64, /* letters, digits, + / = _ - */
    DOTTED, /* KEY and dots */
} alphabet;

static const struct rule {
    const char *prefix;
    alphabet body;
    unsigned short min, max;
} rules[] = {
    /* code hosting */
    { "ghp_", ALNUM, 30, 255 },
    { "gho_", ALNUM, 30, 255 },
    { "ghu_", ALNUM, 30, 255 },
    { "ghs_", DOTTED, 30, 520 },
    { "ghr_", ALNUM, 30, 255 },
    { "github_pat_", KEY, 36, 255 },
    { "glpat-", DOTTED, 20, 300 },
    { "gldt-", KEY, 20, 64 },
    { "glptt-", KEY, 40, 64 },
    { "glrt-", DOTTED, 20, 64 },
    { "glrtr-", DOTTED, 20, 64 },
    { "glcbt-", KEY, 20, 64 },
    { "glft-", KEY, 20, 64 },
    { "glimt-", KEY, 20, 64 },
    { "glagent-", KEY, 40, 64 },
    { "gloas-", KEY, 40, 80 },
    { "glsoat-", KEY, 20, 64 },
    { "glffct-", KEY, 20, 64 },
    { "GR1348941", KEY, 20, 64 },
    { "ATBB", ALNUM, 32, 40 },
    { "ATATT3", BASE64, 100, 260 },
    { "ATCTT3", BASE64, 100, 260 },
    { "bkua_", HEX, 40, 40 },
    { "sgp_", DOTTED, 40, 80 },
    { "CCIPAT_", KEY, 40, 80 },
    /* clouds */
    { "AKIA", UPPER, 16, 16 },
    { "ASIA", UPPER, 16, 16 },
    { "ABIA", UPPER, 16, 16 },
    { "ACCA", UPPER, 16, 16 },
    { "A3T", UPPER, 17, 17 },
    { "ABSK", BASE64, 80, 260 },
    { "bedrock-api-key-", BASE64, 40, 400 },
    { "AIza", KEY, 35, 35 },
    { "GOCSPX-", KEY, 28, 28 },
    { "ya29.", KEY, 20, 600 },
    { "1//0", KEY, 30, 200 },
    { "LTAI", ALNUM, 12, 24 },
    { "AKID", ALNUM, 32, 36 },
    { "dop_v1_", HEX, 64, 64 },
    { "doo_v1_", HEX, 64, 64 },
    { "dor_v1_", HEX, 64, 64 },
    { "dapi", HEX, 32, 34 },
    { "nfp_", KEY, 36, 60 },
    { "vercel_", KEY, 24, 60 },
    { "vcp_", KEY, 40, 80 },
    { "sbp_", HEX, 40, 60 },
    { "sb_secret_", KEY, 20, 80 },
    { "fio-u-", BASE64, 40, 80 },
    { "fo1_", KEY, 40, 60 },
    { "FlyV1 fm2_", BASE64, 80, 900 },
    { "HRKU-", KEY, 36, 80 },
    { "tskey-", KEY, 20, 80 },
    { "pul-", HEX, 40, 40 },
    { "hvs.", KEY, 24, 160 },
    { "hvb.", KEY, 24, 300 },
    { "hvr.", KEY, 24, 160 },
    { "dp.pt.", ALNUM, 40, 50 },
    { "dp.st.", DOTTED, 40, 80 },
    { "dckr_pat_", KEY, 24, 60 },
    { "dckr_oat_", KEY, 24, 60 },
    { "ops_eyJ", BASE64, 100, 900 },
    { "AGE-SECRET-KEY-1", UPPER, 58, 58 },
    /* models */
    { "sk-ant-", KEY, 60, 140 },
    { "sk-proj-", KEY, 20, 220 },
    { "sk-svcacct-", KEY, 20, 220 },
    { "sk-admin-", KEY, 20, 220 },
    { "sk-or-v1-", HEX, 40, 64 },
    { "sk-lf-", KEY, 32, 40 },
    { "pk-lf-", KEY, 32, 40 },
    { "sk-", ALNUM, 20, 80 },
    { "hf_", ALNUM, 30, 40 },
    { "api_org_", ALNUM, 30, 40 },
    { "r8_", ALNUM, 36, 40 },
    { "gsk_", ALNUM, 48, 60 },
    { "pplx-", ALNUM, 40, 60 },
    { "xai-", ALNUM, 60, 90 },
    { "nvapi-", KEY, 50, 80 },
    { "tvly-", KEY, 28, 60 },
    { "lsv2_pt_", KEY, 36, 60 },
    { "lsv2_sk_", KEY, 36, 60 },
    { "jina_", ALNUM, 50, 70 },
    { "e2b_", HEX, 36, 44 },
    /* money */
    { "sk_live_", KEY, 10, 250 },
    { "sk_test_", KEY, 10, 250 },
    { "pk_live_", KEY, 10, 250 },
    { "pk_test_", KEY, 10, 250 },
    { "rk_live_", KEY, 10, 250 },
    { "rk_test_", KEY, 10, 250 },
    { "sk_", KEY, 32, 250 },
    { "pk_", KEY, 32, 250 },
    { "whsec_", BASE64, 20, 100 },
    { "sq0atp-", KEY, 22, 60 },
    { "sq0csp-", KEY, 40, 60 },
    { "EAAA", BASE64, 50, 100 },
    { "shpat_", HEX, 32, 32 },
    { "shpca_", HEX, 32, 32 },
    { "shppa_", HEX, 32, 32 },
    { "shpss_", HEX, 32, 32 },
    { "access_token$production$", HEX, 20, 70 },
    { "rzp_live_", ALNUM, 14, 24 },
    { "rzp_test_", ALNUM, 14, 24 },
    { "FLWSECK_TEST-", KEY, 12, 60 },
    { "FLWSECK-", KEY, 12, 60 },
    { "shippo_live_", HEX, 40, 40 },
    { "shippo_test_", HEX, 40, 40 },
    { "duffel_live_", KEY, 40, 50 },
    { "duffel_test_", KEY, 40, 50 },
    { "EZAK", ALNUM, 54, 54 },
    { "EZTK", ALNUM, 54, 54 },
    { "live_", ALNUM, 30, 64 },
    /* messages and work */
    { "xoxb-", KEY, 10, 120 },
    { "xoxp-", KEY, 10, 120 },
    { "xoxa-", KEY, 10, 120 },
    { "xoxr-", KEY, 10, 120 },
    { "xoxs-", KEY, 10, 120 },
    { "xoxo-", KEY, 10, 120 },
    { "xoxe-", KEY, 10, 250 },
    { "xoxe.xox", KEY, 40, 250 },
    { "xapp-", KEY, 20, 120 },
    { "SG.", DOTTED, 60, 80 },
    { "key-", HEX, 32, 32 },
    { "xkeysib-", KEY, 64, 90 },
    { "xsmtpsib-", KEY, 64, 90 },
    { "SK", HEX, 32, 32 },
    { "lin_api_", ALNUM, 32, 50 },
    { "ntn_", ALNUM, 40, 50 },
    { "secret_", ALNUM, 40, 50 },
    { "figd_", KEY, 36, 60 },
    { "PMAK-", KEY, 50, 64 },
    { "CFPAT-", KEY, 40, 50 },
    { "tfp_", KEY, 40, 64 },
    { "pat-na1-", KEY, 32, 40 },
    { "pat-eu1-", KEY, 32, 40 },
    { "EAAC", ALNUM, 50, 300 },
    { "EAAB", ALNUM, 50, 300 },
    { "IGQV", KEY, 50, 300 },
    { "sl.", KEY, 100, 200 },
    { "AAAAAAAAAAAAAAAAAAAAA", BASE64, 60, 120 },
    /* packages, monitoring, databases */
    { "npm_", ALNUM, 36, 36 },
    { "pypi-", KEY, 50, 260 },
    { "rubygems_", HEX, 48, 48 },
    { "oy2", ALNUM, 43, 43 },
    { "CLOJARS_", ALNUM, 60, 60 },
    { "AKCp", ALNUM, 60, 80 },
    { "cmVmdGtu", ALNUM, 50, 64 },
    { "NRAK-", UPPER, 27, 27 },
    { "NRII-", KEY, 32, 32 },
    { "NRJS-", HEX, 19, 19 },
    { "NRSP-", KEY, 30, 40 },
    { "glsa_", KEY, 40, 44 },
    { "glc_", BASE64, 32, 400 },
    { "sntrys_", BASE64, 50, 300 },
    { "sntryu_", HEX, 64, 64 },
    { "phc_", ALNUM, 40, 50 },
    { "phx_", ALNUM, 40, 50 },
    { "pscale_tkn_", DOTTED, 30, 70 },
    { "pscale_pw_", DOTTED, 30, 70 },
    { "pscale_oauth_", DOTTED, 30, 70 },
    { "pnu_", ALNUM, 36, 36 },
    { "rdme_", ALNUM, 70, 70 },
    { "rpa_", ALNUM, 40, 50 },
    { "mdb_sa_sk_", KEY, 40, 60 },
    { "patch_", ALNUM, 30, 60 },
    { "PRIVATE-TOKEN-", KEY, 20, 60 },
};

/* Rules by their first two bytes: the first of each, and the next after each; 0 ends. */
static unsigned char first_rule[256], next_rule[RT_COUNT(rules) + 1];
_Static_assert(RT_COUNT(rules) < 255, "their numbers fit a byte");

static unsigned char bucket_of(const char *two)
{
    return (unsigned char)(two[0] * 31 + two[1]);
}

static bool is_in(alphabet body, char c)
{
    switch (body) {
    case ALNUM:
        return is_class(c, IS_ALNUM);
    case HEX:
        return is_class(c, IS_HEX);
    case UPPER:
        return is_class(c, IS_UPPER | IS_DIGIT);
    case BASE64:
        return is_class(c, IS_KEY) || c == '=';
    case DOTTED:
        return is_class(c, IS_ALNUM) || c == '_' || c == '-' || c == '.';
    default:
        return is_class(c, IS_ALNUM) || c == '_' || c == '-';
    }
}

void privacy_mark_keys(void)
{
    privacy_mark("eyJ");
    for (size_t i = RT_COUNT(rules); i-- > 0;) {
        char three[3];
        unsigned char bucket = bucket_of(rules[i].prefix);
        next_rule[i + 1] = first_rule[bucket];
        first_rule[bucket] = (unsigned char)(i + 1);
        memcpy(three, rules[i].prefix, 3);
        if (rules[i].prefix[2]) {
            privacy_mark(three);
            continue;
        }
        for (unsigned c = 1; c < 256; c++) { /* a prefix of two: any third that fits the body */
            three[2] = (char)c;
            if (is_in(rules[i].body, (char)c))
                privacy_mark(three);
        }
    }
}

enum { LOGS = 1024 };
static double times_log[LOGS]; /* n log2 n */

void privacy_entropy_learn(void)
{
    for (unsigned n = 2; n < LOGS; n++)
        times_log[n] = n * log2(n);
}

static double weighted(size_t n)
{
    return n < LOGS ? times_log[n] : (double)n * log2((double)n);
}

double privacy_entropy(rt_str s)
{
    unsigned counts[256] = { 0 };
    double bits = weighted(s.len);
    for (size_t i = 0; i < s.len; i++)
        counts[(unsigned char)s.ptr[i]]++;
    for (size_t i = 0; i < s.len; i++) {
        unsigned *count = &counts[(unsigned char)s.ptr[i]];
        bits -= weighted(*count);
        *count = 0; /* once for each byte there is */
    }
    return s.len ? bits / (double)s.len : 0;
}

/* ---- JSON web tokens ---- */

static size_t segment_end(rt_str text, size_t i)
{
    size_t end = i;
    while (end < text.len && end - i < 8192 && is_in(KEY, text.ptr[end]))
        end++;
    return end;
}

static size_t web_token_end(rt_str text, size_t i)
{
    size_t head = segment_end(text, i);
    if (head - i < 14 || at(text, head) != '.')
        return i;
    size_t body = segment_end(text, head + 1);
    if (body - head < 10)
        return i;
    return at(text, body) == '.' ? segment_end(text, body + 1) : body;
}

/* ---- the table ---- */

static size_t rule_end(const struct rule *rule, rt_str text, size_t i)
{
    size_t len = strlen(rule->prefix), body = i + len, end = body;
    if (body > text.len || memcmp(text.ptr + i, rule->prefix, len) != 0)
        return i;
    while (end < text.len && end - body <= rule->max && is_in(rule->body, text.ptr[end]))
        end++;
    while (end > body && (text.ptr[end - 1] == '.' || text.ptr[end - 1] == '-'))
        end--;
    if (end - body < rule->min || end - body > rule->max || is_class(at(text, end), IS_ALNUM))
        return i;
    return privacy_entropy(rt_str_slice(text, body, end)) >= 2.6 ? end : i;
}

/* "sk_the_name_of_some_variable…" is words, not a key. */
static bool is_words(rt_str key)
{
    size_t digits = 0, breaks = 0;
    for (size_t i = 0; i < key.len; i++) {
        digits += is_class(key.ptr[i], IS_DIGIT);
        breaks += key.ptr[i] == '_' || key.ptr[i] == '-';
    }
    return digits == 0 && breaks >= 3;
}

size_t privacy_prefixed(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    char prior = before(scan, i);
    if (!wants(scan, RT_PII_API_KEY) || is_class(prior, IS_WORD) || prior == '_' ||
        (prior == '-' && i > 1 && is_class(text.ptr[i - 2], IS_ALNUM)))
        return i;
    if (rt_str_starts(rt_str_slice(text, i, i + 3), RT_STR("eyJ"))) {
        size_t end = web_token_end(text, i);
        return end > i && privacy_add(scan, RT_PII_API_KEY, i, end, 94) ? end : i;
    }
    if (i + 2 > text.len)
        return i;
    for (unsigned k = first_rule[bucket_of(text.ptr + i)]; k; k = next_rule[k]) {
        size_t end = rule_end(&rules[k - 1], text, i);
        if (end > i && !is_words(rt_str_slice(text, i, end)) &&
            privacy_add(scan, RT_PII_API_KEY, i, end, 95))
            return end;
    }
    return i;
}
