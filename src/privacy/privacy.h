/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privacy.h - find personal data in text, put something else in its place, and put it back.
 *
 * Promise: a scan reads its text once and costs a few nanoseconds a byte, whatever the text; it
 * stores nothing and sends nothing. What a vault holds is in memory only: locked where the system
 * allows it, left out of core dumps and of forked children, and zeroed when the vault closes.
 *
 *     rt_privacy_vault *vault RT_CLEANUP(rt_privacy_vault_closep) = NULL;
 *     rt_privacy_mask mask = { .mode = RT_PRIVACY_TOKENS };
 *     rt_privacy_report found = { 0 };
 *     if (!rt_privacy_vault_open(&vault, err))
 *         return rt_wrap(err, "the vault");
 *     mask.vault = vault;
 *     if (!rt_privacy_mask_text(RT_STR("ask ann@example.org"), &mask, &body, &found, err))
 *         return rt_wrap(err, "the question");                  // body: "ask [EMAIL_1]"
 *     if (!rt_privacy_unmask_text(rt_buf_str(&body), vault, &answer, err))
 *         return rt_wrap(err, "the answer");                    // answer: "ask ann@example.org"
 *
 * How it judges: each candidate gets a score of 0 to 100 from its shape, its checksum and the
 * words around it, and counts from a threshold on (50 unless told otherwise).
 */
#ifndef RT_PRIVACY_PRIVACY_H
#define RT_PRIVACY_PRIVACY_H

#include "base/base.h"

/* -- Types ------------------------------------------------------------------------------------- */

/* The first five in the order in which S0 lists them; own patterns come after the last. */
typedef enum rt_pii_type {
    RT_PII_EMAIL,
    RT_PII_SSN,
    RT_PII_PHONE,
    RT_PII_CREDIT_CARD,
    RT_PII_ADDRESS,
    RT_PII_API_KEY,
    RT_PII_IP,
    RT_PII_IBAN,
    RT_PII_URL,
    RT_PII_DATE_OF_BIRTH,
    RT_PII_PASSPORT,
    RT_PII_DRIVER_LICENSE,
    RT_PII_PERSON,
    RT_PII_BUILTIN, /* how many there are, and the first of the patterns' own */
    RT_PII_MAX = 32,
} rt_pii_type;

#define RT_PII_BIT(type)     (UINT32_C(1) << (type))
#define RT_PII_ALL           (UINT32_MAX)
#define RT_PII_USUAL         (RT_PII_ALL & ~RT_PII_BIT(RT_PII_PERSON))
#define RT_PRIVACY_MIN_SCORE 50
#define RT_PRIVACY_URL_SECRET                                                                      \
    85 /* a URL at or above it carries credentials; below, it is plain                             \
        */

typedef enum rt_pii_style {
    RT_PII_NAME,   /* "CREDIT_CARD": scans, settings */
    RT_PII_STORED, /* "credit_card": records */
    RT_PII_CAMEL,  /* "creditCard": answers of S0 routes */
    RT_PII_REDACT, /* "CREDITCARD": in "[CREDITCARD_REDACTED]" */
    RT_PII_TOKEN,  /* "CARD": in "[CARD_1]" */
} rt_pii_style;

/* "" for a type that is not built in: such a name is in the patterns. */
const char *rt_pii_name(unsigned type, rt_pii_style style);

/* "EMAIL,phone,credit_card" as a set; RT_INVALID names the first that is none. */
bool rt_pii_types_parse(rt_str list, uint32_t *out, rt_error *err);

/* -- Own patterns ------------------------------------------------------------------------------ */

typedef struct rt_privacy_patterns rt_privacy_patterns;

#define RT_PRIVACY_PATTERNS_MAX     (RT_PII_MAX - RT_PII_BUILTIN)
#define RT_PRIVACY_PATTERN_SIZE_MAX 1024
#define RT_PRIVACY_MATCH_STEPS_MAX  100000 /* of PCRE2's own count, from one place on */
#define RT_PRIVACY_MATCH_MS_MAX     1000   /* of CPU time for all of them, and 1 more for each KB */

bool rt_privacy_patterns_new(rt_privacy_patterns **out, rt_error *err);
void rt_privacy_patterns_freep(rt_privacy_patterns **patterns);

/* `name` is [A-Z][A-Z0-9_]{0,31} and none of ours; the pattern is PCRE2's, in UTF mode. */
bool rt_privacy_patterns_add(rt_privacy_patterns *patterns, rt_str name, rt_str regex,
                             unsigned *type, rt_error *err);
rt_str rt_privacy_patterns_name(const rt_privacy_patterns *patterns, unsigned type);

/* -- Scanning ---------------------------------------------------------------------------------- */

typedef struct rt_privacy_options {
    uint32_t types;                      /* 0: RT_PII_USUAL */
    unsigned char min_score[RT_PII_MAX]; /* 0: RT_PRIVACY_MIN_SCORE */
    const rt_privacy_patterns *patterns; /* may be NULL */
    rt_str label;                        /* what the text is called, e.g. its key: context */
    bool is_lenient; /* S0's rules too: any 16 digits are a card, any 10 a phone */
} rt_privacy_options;

typedef struct rt_pii_span {
    size_t start, end;             /* bytes */
    size_t start_point, end_point; /* code points */
    unsigned type, score;
} rt_pii_span;

typedef struct rt_pii_spans {
    rt_pii_span *items; /* in order, none overlaps another */
    size_t count;
} rt_pii_spans;

#define RT_PRIVACY_SPANS_MAX ((size_t)1 << 20)

/* Fails only with RT_LIMIT: too many spans, or an own pattern that takes too long. */
bool rt_privacy_scan(rt_str text, const rt_privacy_options *options, rt_arena *arena,
                     rt_pii_spans *out, rt_error *err);

/* Members of a JSON object that say how to scan, as every surface takes them; all are optional:
 *     "types": ["EMAIL", "PHONE"] or "EMAIL,PHONE"
 *     "min_score": 0.8, or by type {"PHONE": 0.8}
 *     "patterns": {"BADGE": "B-\\d{4}"}; such types are always looked for
 * `*patterns` is the caller's to free. RT_INVALID says which member is wrong and what it should be.
 */
bool rt_privacy_options_read(rt_json object, rt_privacy_options *out,
                             rt_privacy_patterns **patterns, rt_error *err);

/* A document's strings, each a text of its own: `path` is its JSON pointer, and positions count
 * from its beginning. Members named in `exempt` are passed over. */
typedef bool (*rt_privacy_found_in)(void *self, rt_str path, const rt_pii_span *span,
                                    rt_error *err);
bool rt_privacy_scan_json(rt_json doc, const rt_privacy_options *options, const rt_str *exempt,
                          size_t exempt_count, rt_privacy_found_in found, void *self,
                          rt_error *err);

/* Text that comes in pieces; positions count from its beginning. */
typedef struct rt_privacy_stream {
    const rt_privacy_options *options;
    rt_buf text;          /* what is not settled, and a little before it for context */
    size_t settled;       /* bytes of it that have been scanned */
    size_t bytes, points; /* what has left `text` */
} rt_privacy_stream;

typedef bool (*rt_privacy_found)(void *self, const rt_pii_span *span, rt_error *err);

#define RT_PRIVACY_SPAN_MAX ((size_t)16 << 10) /* bytes; a stream cannot see a longer one whole */

void rt_privacy_stream_init(rt_privacy_stream *stream, const rt_privacy_options *options);
void rt_privacy_stream_done(rt_privacy_stream *stream);
bool rt_privacy_stream_push(rt_privacy_stream *stream, rt_str piece, bool is_last,
                            rt_privacy_found found, void *self, rt_error *err);

/* -- The vault of a run or session ------------------------------------------------------------- */

typedef struct rt_privacy_vault rt_privacy_vault;

#define RT_PRIVACY_VAULT_BYTES_MAX  ((size_t)64 << 20)
#define RT_PRIVACY_VAULT_VALUES_MAX ((size_t)1 << 20)

/* Any thread may use a vault; each share of it is closed once, and the last one wipes it. */
bool rt_privacy_vault_open(rt_privacy_vault **out, rt_error *err);
rt_privacy_vault *rt_privacy_vault_share(rt_privacy_vault *vault);
void rt_privacy_vault_closep(rt_privacy_vault **vault);
void rt_privacy_vault_wipe(rt_privacy_vault *vault); /* forgets all; it can be used again */
size_t rt_privacy_vault_count(rt_privacy_vault *vault);
bool rt_privacy_vault_is_locked(rt_privacy_vault *vault); /* none of it can be swapped out */

/* The number in the new token; with is_stable, an equal value's of that type. */
bool rt_privacy_vault_add(rt_privacy_vault *vault, unsigned type, rt_str value, bool is_stable,
                          size_t *number, rt_error *err);

/* The value is borrowed from the vault. RT_NOT_FOUND: it never gave out this token. */
bool rt_privacy_vault_get(rt_privacy_vault *vault, unsigned type, size_t number, rt_str *out,
                          rt_error *err);

/* -- Masking and unmasking --------------------------------------------------------------------- */

typedef enum rt_privacy_mode {
    RT_PRIVACY_OFF,
    RT_PRIVACY_REDACT,  /* [EMAIL_REDACTED]: for good */
    RT_PRIVACY_TOKENS,  /* [EMAIL_1]: the vault has the value */
    RT_PRIVACY_PARTIAL, /* j***@example.org, ************1111: for good */
} rt_privacy_mode;

bool rt_privacy_mode_parse(rt_str name, rt_privacy_mode *out, rt_error *err);

/*
 * Masking differs from scanning in its default for URLs: only those with credentials are masked,
 * since plain ones are what code works with. RT_PRIVACY_REDACT is lenient, as S0 was.
 */
typedef struct rt_privacy_mask {
    rt_privacy_mode mode;
    rt_privacy_options scan;
    rt_privacy_vault *vault; /* for RT_PRIVACY_TOKENS */
    bool is_stable;          /* equal values share a token */
    bool is_strict;          /* RT_PRIVACY_REDACT without being lenient */
    bool masks_keys;         /* of JSON: the names of members too */
    const rt_str *exempt;    /* of JSON: members whose values are left alone */
    size_t exempt_count;
} rt_privacy_mask;

/* What was found, never the values. Adds to what is there. */
typedef struct rt_privacy_report {
    size_t counts[RT_PII_MAX];
    size_t total;
} rt_privacy_report;

bool rt_privacy_mask_text(rt_str text, const rt_privacy_mask *mask, rt_buf *out,
                          rt_privacy_report *report, rt_error *err);

/* The document with its strings masked; all else stays, numbers in their own spelling. */
bool rt_privacy_mask_json(rt_json doc, const rt_privacy_mask *mask, rt_buf *out,
                          rt_privacy_report *report, rt_error *err);

/* Each token back to its value, in keys too. RT_NOT_FOUND: one that this vault did not give out. */
bool rt_privacy_unmask_text(rt_str text, rt_privacy_vault *vault, rt_buf *out, rt_error *err);
bool rt_privacy_unmask_json(rt_json doc, rt_privacy_vault *vault, rt_buf *out, rt_error *err);

/* What the strings of a document hold, and the tokens and redactions that stand for such data
 * already; a token counts when `vault` (may be NULL) gave it out. */
bool rt_privacy_count_json(rt_json doc, const rt_privacy_mask *mask, rt_privacy_report *report,
                           rt_error *err);

/* The types found, as a JSON array of names: ["email","creditCard"]. */
void rt_privacy_report_write(const rt_privacy_report *report, rt_pii_style style,
                             const rt_privacy_patterns *patterns, rt_json_writer *w);
/* With how many of each: {"email":2,"creditCard":1}. */
void rt_privacy_counts_write(const rt_privacy_report *report, rt_pii_style style,
                             const rt_privacy_patterns *patterns, rt_json_writer *w);

/* -- On the way out of the house ----------------------------------------------------------------
 */

/* An rt_outbound_scrub: what every other service gets (base/outbound.h). */
bool rt_privacy_scrub(rt_str json, const rt_str *exempt, size_t exempt_count, rt_buf *out,
                      rt_error *err);
/* An rt_log_scrub: up to `max` bytes of the line; returns how many. */
size_t rt_privacy_scrub_line(rt_str line, char *out, size_t max);

#endif
