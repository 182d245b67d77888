/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - is this JSON what the schema says it should be?
 *
 * Promise: JSON Schema draft-07, 2019-09 and 2020-12 (and 04 and 06) by their specifications,
 * judged by the official test suite. Numbers are compared exactly as written, lengths count code
 * points, patterns are ECMA-262's. A reference is looked up in the documents the caller gave and
 * in the published metaschemas, never in the network. A schema owns all it needs, can be used by
 * many threads at once, and a value that is good is checked without allocating memory. Whatever
 * the schema and the value, a check ends soon: steps, depth and the steps of a pattern have limits.
 *
 *     rt_schema *schema RT_CLEANUP(rt_schema_freep) = NULL;
 *     if (!rt_schema_new(doc, NULL, &schema, err))     // "#/properties/age/minimum: must be a
 *         return rt_wrap(err, "input schema");         //  number, but is a string"
 *     rt_schema_report report = { .arena = &arena };
 *     if (!rt_schema_check(schema, input, &report))
 *         puts(report.errors[0].message);              // "/age must be at least 18, but is 12"
 */
#ifndef RT_SCHEMA_SCHEMA_H
#define RT_SCHEMA_SCHEMA_H

#include "base/base.h"

typedef struct rt_schema rt_schema;

typedef enum rt_schema_draft {
    RT_DRAFT_DEFAULT, /* 2020-12 */
    RT_DRAFT_04,
    RT_DRAFT_06,
    RT_DRAFT_07,
    RT_DRAFT_2019_09,
    RT_DRAFT_2020_12,
} rt_schema_draft;

/* A document that references may lead to. */
typedef struct rt_schema_document {
    rt_str uri; /* where it would be found; what its own "$id" says counts too */
    rt_json root;
} rt_schema_document;

typedef struct rt_schema_options {
    rt_schema_draft draft; /* of schemas whose "$schema" is missing or not known */
    rt_str base_uri;       /* where the schema came from, if it does not say */
    const rt_schema_document *documents;
    size_t document_count;
    bool asserts_format;  /* a string must have the "format" it is said to have */
    bool ignores_content; /* draft-07: contentEncoding and contentMediaType demand nothing */
    uint64_t max_steps;   /* of one check; 0: RT_SCHEMA_STEPS_MAX. More for large values */
} rt_schema_options;

#define RT_SCHEMA_NODES_MAX    ((size_t)4 << 20)    /* values in a schema's documents together */
#define RT_SCHEMA_NESTING_MAX  200                  /* schemas inside each other */
#define RT_SCHEMA_STEPS_MAX    ((uint64_t)10 << 20) /* schemas tried in one check */
#define RT_SCHEMA_DEPTH_MAX    400 /* schemas being tried at one time: up to 300 KB of stack */
#define RT_SCHEMA_PATTERN_MAX  ((size_t)16 << 10) /* bytes of a pattern */
#define RT_SCHEMA_MATCH_STEPS  1000000            /* of one pattern on one string */
#define RT_SCHEMA_PATTERNS_MS  1000  /* for all patterns of a check that need an engine */
#define RT_SCHEMA_DEFAULTS_MAX 10000 /* put into one value */
#define RT_SCHEMA_ERRORS_MAX   64    /* in a report, if it names no other number */

/*
 * Make a checker of a schema. Where the schema breaks the rules of its draft the error says where
 * and how; RT_NOT_FOUND for a reference that leads nowhere, RT_UNSUPPORTED for a vocabulary or a
 * pattern we do not know, RT_LIMIT for too much. `options` may be NULL.
 */
bool rt_schema_new(rt_json schema, const rt_schema_options *options, rt_schema **out,
                   rt_error *err);
void rt_schema_free(rt_schema *schema);
void rt_schema_freep(rt_schema **schema);

/* One thing that is wrong with a value. */
typedef struct rt_schema_error {
    rt_str instance_path; /* a JSON pointer: "/items/0/price"; "" is the whole value */
    rt_str schema_path;   /* "#/properties/items/..."; with its URI in another document */
    rt_str keyword;       /* "minimum" */
    rt_str message;       /* "/items/0/price must be at least 0, but is -1" */
} rt_schema_error;

typedef struct rt_schema_report {
    rt_arena *arena;   /* where the errors live; set by the caller */
    size_t max_errors; /* 0: RT_SCHEMA_ERRORS_MAX */
    rt_schema_error *errors;
    size_t error_count;
    bool is_stopped; /* a limit was reached: whether the value is good is not known */
} rt_schema_report;

/* `report` may be NULL from those who only want to know. */
bool rt_schema_check(const rt_schema *schema, rt_json value, rt_schema_report *report);

/* {"valid":...,"errors":[{"instance_path","schema_path","keyword","message"}...]} */
void rt_schema_report_write(const rt_schema_report *report, rt_json_writer *w);

/*
 * The value with the schema's "default"s put where a property is missing: those of properties and
 * items, also through $ref and allOf, but not those of alternatives. What was there stays as it is.
 */
bool rt_schema_add_defaults(const rt_schema *schema, rt_json value, rt_arena *arena, rt_json *out,
                            rt_error *err);

/* Does the text have this format? True for formats nobody knows. */
bool rt_schema_format_matches(rt_str format, rt_str text);

#endif
