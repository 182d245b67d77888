/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - JSON that comes out as it went in.
 *
 * Promise: RFC 8259, nothing more and nothing less, judged by the cases of JSONTestSuite. Numbers
 * keep their text, strings may hold NUL, and even a lone surrogate escape survives the round trip.
 * Input that is not valid UTF-8, too deep or too big is refused, with line and column.
 *
 *     rt_json doc;
 *     if (!rt_json_parse(text, &arena, &doc, err))      // "line 3, column 7: expected ',' or '}'"
 *         return rt_wrap(err, "request body");
 *     rt_str name = rt_json_str(rt_json_get(doc, RT_STR("name")));      // "" when there is none
 *
 *     rt_json_writer w;
 *     rt_json_begin(&w, &buf);
 *     rt_jw_object(&w);
 *     rt_jw_kstr(&w, "name", name);                     // commas come by themselves
 *     rt_jw_key(&w, RT_STR("tags"));
 *     rt_jw_array(&w);
 *     rt_jw_end(&w);
 *     rt_jw_end(&w);                                    // {"name":"...","tags":[]}
 *
 * A value is a pointer into its document, which lives in the arena given to the parser; pass it
 * by value. {NULL} is "absent": every accessor accepts it and answers with nothing, so a path
 * can be followed without a check at each step.
 */
#ifndef RT_BASE_JSON_H
#define RT_BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"

typedef struct rt_json {
    const struct rt_json_node *node;
} rt_json;

typedef enum rt_json_kind {
    RT_JSON_ABSENT,
    RT_JSON_NULL,
    RT_JSON_BOOL,
    RT_JSON_NUMBER,
    RT_JSON_STRING,
    RT_JSON_ARRAY,
    RT_JSON_OBJECT,
} rt_json_kind;

/* -- Reading ----------------------------------------------------------------------------------- */

#define RT_JSON_MAX_SIZE      ((size_t)256 << 20) /* bytes of text */
#define RT_JSON_MAX_DEPTH     512                 /* arrays and objects inside each other */
#define RT_JSON_DEPTH_CEILING 1000 /* no limit can be set higher: printing recurses */
#define RT_JSON_SIZE_CEILING  ((size_t)1 << 30)

typedef struct rt_json_limits {
    size_t max_size;    /* 0: RT_JSON_MAX_SIZE */
    unsigned max_depth; /* 0: RT_JSON_MAX_DEPTH */
} rt_json_limits;

/* The document is a copy: `text` may go away. RT_INVALID for bad JSON, RT_LIMIT for too much. */
bool rt_json_parse(rt_str text, rt_arena *arena, rt_json *out, rt_error *err);
bool rt_json_parse_limited(rt_str text, const rt_json_limits *limits, rt_arena *arena, rt_json *out,
                           rt_error *err);

/* -- Looking ----------------------------------------------------------------------------------- */

rt_json_kind rt_json_type(rt_json v);
const char *rt_json_type_name(rt_json v); /* "object", "null", ...; "absent" */

static inline bool rt_json_is_absent(rt_json v)
{
    return v.node == NULL;
}

rt_json rt_json_get(rt_json object, rt_str key); /* of duplicate keys, the last */
rt_json rt_json_get_c(rt_json object, const char *key);
rt_json rt_json_at(rt_json array, size_t i); /* walks: to visit all, iterate */
size_t rt_json_count(rt_json v);             /* elements or members, duplicates too */

/*
 * The text of a string, "" if it is none. UTF-8, but that a lone surrogate escape is kept as the
 * three bytes its code point would have (WTF-8); rt_utf8_valid() tells when that matters.
 */
rt_str rt_json_str(rt_json v);
rt_str rt_json_number(rt_json v);            /* the number as it was written, "" if it is none */
bool rt_json_i64(rt_json v, int64_t *out);   /* only if exactly an integer that fits: 12, 1.2e1 */
bool rt_json_double(rt_json v, double *out); /* nearest; false when it is no number or too big */
bool rt_json_bool(rt_json v, bool fallback);

/* Visits elements (with an empty key) or members, in the order of the text. */
typedef struct rt_json_iter {
    const struct rt_json_node *next, *end;
    bool is_object;
} rt_json_iter;

rt_json_iter rt_json_each(rt_json v);
bool rt_json_next(rt_json_iter *it, rt_str *key, rt_json *value); /* key may be NULL */

/*
 * The same value: the order of members does not matter, of duplicate keys the last counts, and
 * numbers are equal by exact decimal value (1.0 and 1e0 are, 0.1 and 0.10000000000000001 are not).
 */
bool rt_json_equal(rt_json a, rt_json b);

/* Values that are equal have one hash; who does not know the key cannot make others collide. */
typedef struct rt_hash_key rt_hash_key;
uint64_t rt_json_hash(rt_json v, const rt_hash_key *key);

/* The same value in memory of its own: the document it came from may go away. */
rt_json rt_json_copy(rt_json v, rt_arena *arena);

/*
 * Numbers as what they are written as, exactly, whatever their size. Both must be numbers. An
 * exponent of more than 17 digits is as good as infinite.
 */
int rt_json_compare(rt_json a, rt_json b);         /* <0, 0, >0 */
bool rt_json_is_integer(rt_json v);                /* 1.0 and 1e3 are; false for other kinds */
bool rt_json_is_multiple(rt_json v, rt_json step); /* step is above 0; of at most 64 digits */
#define RT_JSON_STEP_DIGITS 64
bool rt_json_is_step(rt_json v); /* a number that can be one */

/* -- Writing ----------------------------------------------------------------------------------- */

void rt_json_print(rt_json v, rt_buf *out);        /* compact, duplicates and all; absent: null */
void rt_json_print_pretty(rt_json v, rt_buf *out); /* two spaces a level */

/*
 * The text to hash: exactly what Python's json.dumps(json.loads(text), sort_keys=True) gives.
 * Two texts of one value in Python have one canonical form; numbers with a fraction or an exponent
 * are doubles here, so this form alone is not lossless.
 */
void rt_json_canonical(rt_json v, rt_buf *out);

/*
 * A writer puts JSON into a buffer piece by piece. A wrong order of calls (a value without a key
 * in an object, an end too many) is our own mistake, and asserted. Failure is the buffer's.
 */
#define RT_JW_MAX_DEPTH 1024 /* deeper, the buffer fails */

typedef struct rt_json_writer {
    rt_buf *buf;
    unsigned depth;
    bool needs_comma, has_key;
    uint64_t is_object[RT_JW_MAX_DEPTH / 64]; /* one bit per open level */
} rt_json_writer;

void rt_json_begin(rt_json_writer *w, rt_buf *buf);

void rt_jw_object(rt_json_writer *w);
void rt_jw_array(rt_json_writer *w);
void rt_jw_end(rt_json_writer *w); /* closes the latest of the two */
void rt_jw_key(rt_json_writer *w, rt_str key);

void rt_jw_str(rt_json_writer *w, rt_str text); /* what is not valid UTF-8 becomes U+FFFD */
void rt_jw_i64(rt_json_writer *w, int64_t number);
void rt_jw_u64(rt_json_writer *w, uint64_t number);
void rt_jw_double(rt_json_writer *w,
                  double number); /* shortest that reads back; not finite: null */
void rt_jw_bool(rt_json_writer *w, bool truth);
void rt_jw_null(rt_json_writer *w);
void rt_jw_raw(rt_json_writer *w, rt_str json_text); /* one value, already JSON; not checked */
void rt_jw_json(rt_json_writer *w, rt_json v);       /* absent: null */

/* A key and its value in one call. */
void rt_jw_kstr(rt_json_writer *w, const char *key, rt_str text);
void rt_jw_ki64(rt_json_writer *w, const char *key, int64_t number);
void rt_jw_ku64(rt_json_writer *w, const char *key, uint64_t number);
void rt_jw_kdouble(rt_json_writer *w, const char *key, double number);
void rt_jw_kbool(rt_json_writer *w, const char *key, bool truth);
void rt_jw_knull(rt_json_writer *w, const char *key);
void rt_jw_kraw(rt_json_writer *w, const char *key, rt_str json_text);
void rt_jw_kjson(rt_json_writer *w, const char *key, rt_json v);
void rt_jw_kobject(rt_json_writer *w, const char *key);
void rt_jw_karray(rt_json_writer *w, const char *key);

#endif
