/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_internal.h - the program a schema becomes, and who makes and runs it.
 *
 *     documents.c  the documents a schema can refer to, what in them is a schema, and its names
 *     keywords.c   which keywords each draft has, and what their values must be
 *     refs.c       from a reference to the schema it means
 *     compile.c    a schema object becomes a unit (object.c, scalar.c: its rules)
 *     run.c        a unit looks at a value (run_object.c, run_array.c, run_scalar.c)
 *     errors.c     what a failure is called
 *
 * A unit is one schema, ready to run: the kinds of values it accepts without a further look, the
 * kinds it may accept, rules for each kind, and checks that concern every kind (allOf, $ref ...).
 * A reference and nothing else is no unit: whoever points to it points to its target.
 *
 * No paths are kept while running. A node's path is found when somebody asks for it, by walking
 * down from the root of its document to the place where the node lies.
 */
#ifndef RT_SCHEMA_INTERNAL_H
#define RT_SCHEMA_INTERNAL_H

#include "base/json_node.h"
#include "schema/schema.h"

typedef rt_json_node node;

/* -- Keywords ---------------------------------------------------------------------------------- */

typedef enum schema_keyword {
    K_ID,
    K_OLD_ID,
    K_SCHEMA,
    K_REF,
    K_ANCHOR,
    K_DYNAMIC_REF,
    K_DYNAMIC_ANCHOR,
    K_RECURSIVE_REF,
    K_RECURSIVE_ANCHOR,
    K_VOCABULARY,
    K_DEFS,
    K_DEFINITIONS,
    K_TYPE,
    K_ENUM,
    K_CONST,
    K_MULTIPLE_OF,
    K_MINIMUM,
    K_MAXIMUM,
    K_EXCLUSIVE_MINIMUM,
    K_EXCLUSIVE_MAXIMUM,
    K_MIN_LENGTH,
    K_MAX_LENGTH,
    K_PATTERN,
    K_FORMAT,
    K_CONTENT_ENCODING,
    K_CONTENT_MEDIA_TYPE,
    K_CONTENT_SCHEMA,
    K_MIN_ITEMS,
    K_MAX_ITEMS,
    K_UNIQUE_ITEMS,
    K_PREFIX_ITEMS,
    K_ITEMS,
    K_ADDITIONAL_ITEMS,
    K_CONTAINS,
    K_MIN_CONTAINS,
    K_MAX_CONTAINS,
    K_UNEVALUATED_ITEMS,
    K_MIN_PROPERTIES,
    K_MAX_PROPERTIES,
    K_REQUIRED,
    K_PROPERTIES,
    K_PATTERN_PROPERTIES,
    K_ADDITIONAL_PROPERTIES,
    K_PROPERTY_NAMES,
    K_UNEVALUATED_PROPERTIES,
    K_DEPENDENCIES,
    K_DEPENDENT_REQUIRED,
    K_DEPENDENT_SCHEMAS,
    K_ALL_OF,
    K_ANY_OF,
    K_ONE_OF,
    K_NOT,
    K_IF,
    K_THEN,
    K_ELSE,
    K_DEFAULT,
    K_FALSE, /* no keyword: the schema `false` */
    K_LIMIT, /* no keyword: the check was stopped */
    K_COUNT,
} schema_keyword;

enum {
    VOCAB_CORE = 1,
    VOCAB_APPLICATOR = 2,
    VOCAB_UNEVALUATED = 4,
    VOCAB_VALIDATION = 8,
    VOCAB_FORMAT = 16,
    VOCAB_FORMAT_ASSERTION = 32,
    VOCAB_CONTENT = 64,
    VOCAB_META = 128,
    VOCAB_ALL = VOCAB_CORE | VOCAB_APPLICATOR | VOCAB_UNEVALUATED | VOCAB_VALIDATION |
                VOCAB_FORMAT | VOCAB_CONTENT | VOCAB_META
};

typedef struct schema_dialect {
    uint8_t draft; /* rt_schema_draft */
    uint8_t vocabularies;
} schema_dialect;

/* The values of a schema object's keywords, as far as the dialect knows them. */
typedef struct schema_words {
    const node *of[K_COUNT];
} schema_words;

void schema_words_read(const node *object, schema_dialect dialect, schema_words *out);
const char *schema_keyword_name(schema_keyword keyword);

/* Are the values what the draft's metaschema wants? `bad` is the keyword that is not. */
bool schema_words_check(const schema_words *words, schema_dialect dialect, schema_keyword *bad,
                        rt_error *err);

/* Which values of a keyword are schemas themselves. */
typedef enum schema_holds {
    HOLDS_NO_SCHEMA,
    HOLDS_SCHEMA,
    HOLDS_SCHEMAS,    /* an array */
    HOLDS_SCHEMA_MAP, /* an object */
    HOLDS_SCHEMA_OR_SCHEMAS,
    HOLDS_SCHEMA_OR_NAMES_MAP,
} schema_holds;

schema_holds schema_keyword_holds(schema_keyword keyword);

/* "http://json-schema.org/draft-07/schema#": 07; RT_DRAFT_DEFAULT if unknown. */
rt_schema_draft schema_draft_of(rt_str uri);
uint8_t schema_vocabulary_of(rt_str uri); /* VOCAB_..., 0 if unknown */

/* -- Names: a table from texts of a document to small numbers -----------------------------------
 */

typedef struct schema_name {
    uint64_t head, tail; /* the first and last eight bytes, zero where there are none */
    rt_str text;
} schema_name;

typedef struct schema_names {
    uint64_t seed;
    unsigned shift;
    uint32_t mask;
    uint32_t *slots; /* index + 1 into names; 0: free */
    schema_name *names;
    uint32_t count;
} schema_names;

void schema_names_build(schema_names *table, const rt_str *texts, size_t count, rt_arena *arena);

static inline uint64_t schema_load8(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

/* Texts of documents only: up to 8 bytes behind a short one are read. */
static inline uint64_t schema_name_head(const char *text, size_t len)
{
    uint64_t word = schema_load8(text);
    return len >= 8 ? word : word & ((UINT64_C(1) << len * 8) - 1);
}

static inline uint64_t schema_name_tail(const char *text, size_t len)
{
    return len > 8 ? schema_load8(text + len - 8) : 0;
}

static inline uint64_t schema_name_hash(uint64_t head, uint64_t tail, const char *text, size_t len)
{
    uint64_t hash = (head + len) * 0x9E3779B97F4A7C15u ^ tail * 0xC2B2AE3D27D4EB4Fu;
    for (size_t i = 8; i + 8 < len; i += 8)
        hash = (hash ^ schema_load8(text + i)) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

/* A bit for a key. Keys share bits, so bits can only tell that a key is not there. */
static inline uint64_t schema_key_bit(const char *text, size_t len)
{
    uint64_t hash = (schema_name_head(text, len) + len) * 0x9E3779B97F4A7C15u;
    return UINT64_C(1) << (hash >> 58);
}

/* The number of the name, or -1. */
static inline int32_t schema_names_find(const schema_names *table, const char *text, size_t len)
{
    uint64_t head = schema_name_head(text, len), tail = schema_name_tail(text, len);
    uint64_t hash = schema_name_hash(head, tail, text, len);
    for (uint32_t slot = (uint32_t)(hash * table->seed >> table->shift);; slot++) {
        uint32_t index = table->slots[slot & table->mask];
        if (index == 0)
            return -1;
        const schema_name *name = &table->names[index - 1];
        if (name->head == head && name->tail == tail && name->text.len == len &&
            (len <= 16 || memcmp(name->text.ptr + 8, text + 8, len - 16) == 0))
            return (int32_t)(index - 1);
    }
}

/* -- Units ------------------------------------------------------------------------------------- */

typedef struct schema_unit schema_unit;
typedef struct schema_pattern schema_pattern;

typedef struct schema_property {
    schema_unit *unit;  /* NULL: not among "properties", only required */
    const node *schema; /* as it stands in "properties" */
    int32_t required;   /* its bit among the required ones, or -1 */
} schema_property;

typedef struct schema_pattern_property {
    const schema_pattern *pattern;
    schema_unit *unit;
} schema_pattern_property;

typedef struct schema_dependent {
    const node *key;
    const node *names; /* an array of names that must be there too, or NULL */
    schema_unit *unit;
    schema_keyword keyword;
} schema_dependent;

typedef struct schema_object_rules {
    schema_names names;
    schema_property *properties; /* by their number in names */
    uint32_t required_count;
    uint64_t required_mask; /* of up to 64 */
    const schema_pattern_property *patterns;
    size_t pattern_count;
    schema_unit *additional, *property_names;
    const schema_dependent *dependents;
    size_t dependent_count;
    uint64_t min, max;
    schema_keyword additional_keyword;
    bool has_names, has_member_rules;
    bool is_plain; /* of member rules, only properties, required and additional */
} schema_object_rules;

typedef struct schema_array_rules {
    schema_unit *const *prefix;
    size_t prefix_count;
    schema_unit *rest; /* of the items behind the prefix */
    schema_unit *contains;
    uint64_t min_contains, max_contains;
    uint64_t min, max;
    bool is_unique;
    bool contains_marks; /* 2020-12: what contains accepts is evaluated */
    schema_keyword rest_keyword;
} schema_array_rules;

typedef struct schema_bound {
    schema_keyword keyword;
    const node *limit;
    bool is_small;
    int64_t small;
} schema_bound;

typedef struct schema_number_rules {
    schema_bound bounds[4];
    unsigned bound_count;
    const node *step;
    int64_t small_step; /* or 0 */
} schema_number_rules;

typedef bool (*schema_format)(rt_str text);

typedef struct schema_string_rules {
    uint64_t min, max;
    const schema_pattern *pattern;
    schema_format format;
    bool is_base64, is_json;
} schema_string_rules;

typedef enum schema_op {
    OP_UNIT, /* $ref, and each of allOf */
    OP_DYNAMIC,
    OP_ENUM,
    OP_CONST,
    OP_ANY_OF,
    OP_ONE_OF,
    OP_NOT,
    OP_IF,
} schema_op;

typedef struct schema_check {
    schema_op op;
    schema_keyword keyword;
    schema_unit *const *units; /* if: the condition, then, else (both may be NULL) */
    size_t unit_count;
    const node *value;         /* of enum and const */
    const schema_names *texts; /* the strings among an enum */
    rt_str anchor;             /* of a dynamic reference */
} schema_check;

struct schema_unit {
    uint8_t accepts; /* kinds of values (1 << rt_json_kind) that need no further look */
    uint8_t kinds;   /* kinds that have a chance */
    uint8_t types;   /* kinds that "type" allows */
    bool wants_integer;
    bool has_tracking; /* unevaluatedItems or -Properties that need to know what was evaluated */
    uint32_t resource;
    uint32_t check_count;
    uint64_t needs, allows; /* of objects: bits of keys that must, and of all that may be there */
    const schema_object_rules *object;
    const schema_array_rules *array;
    const schema_string_rules *string;
    const schema_number_rules *number;
    schema_check *checks;
    const schema_names *texts; /* of strings nothing more is asked than to be one of these */
    schema_unit *unevaluated_items, *unevaluated_properties;
    const node *source; /* the schema itself */
    uint32_t document;
};

enum { KINDS_ALL = 0x7E };

static inline unsigned schema_kind_bit(const node *v)
{
    return 1u << v->kind;
}

/* -- Documents --------------------------------------------------------------------------------- */

typedef struct schema_anchor {
    struct schema_anchor *next;
    rt_str name; /* "" is what $recursiveAnchor declares */
    const node *target;
    schema_unit *unit; /* of a dynamic one, once it is needed */
    bool is_dynamic;
} schema_anchor;

/* What a URI names: a document, or a part of one that has an $id of its own. */
typedef struct schema_resource {
    rt_str uri;
    uint32_t document;
    const node *root;
    schema_dialect dialect;
    schema_anchor *anchors;
} schema_resource;

typedef struct schema_document {
    rt_str uri; /* where it was found */
    const node *root;
    uint32_t *places;    /* of each node that is a schema: its resource + 1 */
    schema_unit **units; /* of each node that has one */
} schema_document;

typedef struct schema_uri_name {
    uint64_t hash;
    rt_str uri;
    uint32_t resource;
} schema_uri_name;

struct rt_schema {
    rt_arena arena;
    schema_unit *root;
    schema_document *documents;
    size_t document_count;
    schema_resource *resources;
    size_t resource_count;
    schema_pattern *patterns; /* all, to be freed */
    rt_hash_key hash_key;
    uint64_t max_steps;
    bool has_dynamic;
};

/* -- Compiling --------------------------------------------------------------------------------- */

typedef struct schema_compiler {
    rt_schema *schema;
    rt_arena *arena; /* the schema's */
    rt_arena scratch;
    const rt_schema_options *options;
    schema_dialect dialect; /* of documents that do not say */
    size_t node_count;
    size_t document_cap, resource_cap;
    schema_uri_name *uris;
    size_t uri_count, uri_cap;
    schema_unit **units; /* all; those from `filled` on are still empty */
    size_t unit_count, unit_cap, filled;
    rt_str *dynamic_names; /* anchors that dynamic references look for */
    size_t dynamic_count, dynamic_cap;
    bool *are_loaded; /* of options->documents */
    bool is_placed;   /* the error says where it is */
} schema_compiler;

/* A schema in a document. */
typedef struct schema_place {
    uint32_t document, resource;
    const node *at;
} schema_place;

/* documents.c */
bool schema_document_add(schema_compiler *c, rt_str uri, rt_json root, uint32_t *out,
                         rt_error *err);
bool schema_document_walk(schema_compiler *c, const schema_place *from, rt_error *err);
bool schema_uri_find(const schema_compiler *c, rt_str uri, uint32_t *resource);

/* refs.c */
bool schema_ref_find(schema_compiler *c, uint32_t from, rt_str ref, schema_place *out,
                     rt_error *err);
schema_anchor *schema_anchor_find(const schema_resource *resource, rt_str name);

/* uri.c */
rt_str schema_uri_resolve(rt_str base, rt_str ref, rt_arena *arena);
rt_str schema_uri_decoded(rt_str text, rt_arena *arena); /* %41 is A */
rt_str schema_uri_without_fragment(rt_str uri, rt_str *fragment);

/* metaschemas.c: the text of a published metaschema, empty if it is none. */
rt_str schema_metaschema_text(rt_str uri);

/* compile.c */
bool schema_unit_at(schema_compiler *c, schema_place place, schema_unit **out, rt_error *err);
bool schema_unit_below(schema_compiler *c, const schema_unit *parent, const node *at,
                       schema_unit **out, rt_error *err);
bool schema_place_fail(schema_compiler *c, const schema_place *place, rt_error *err);

/* object.c, scalar.c: the rules for one kind */
bool schema_object_compile(schema_compiler *c, schema_unit *unit, const schema_words *words,
                           rt_error *err);
bool schema_array_compile(schema_compiler *c, schema_unit *unit, const schema_words *words,
                          rt_error *err);
bool schema_string_compile(schema_compiler *c, schema_unit *unit, const schema_words *words,
                           rt_error *err);
bool schema_number_compile(schema_compiler *c, schema_unit *unit, const schema_words *words,
                           rt_error *err);

/* A count in a schema: 3, 3.0; what does not fit is as good as the largest number. */
uint64_t schema_count_of(const node *number, uint64_t fallback);
bool schema_small_of(const node *number, int64_t *out); /* plain digits that fit */

/* patterns.c */
bool schema_pattern_new(rt_schema *schema, rt_str text, const schema_pattern **out, rt_error *err);
void schema_patterns_free(rt_schema *schema);
bool schema_pattern_translate(rt_str text, rt_buf *out, rt_error *err); /* to PCRE2's syntax */
bool schema_pattern_is_valid(rt_str text);

/* formats.c */
schema_format schema_format_named(rt_str name); /* NULL: not known */
bool schema_format_hostname(rt_str text);
bool schema_format_idn_hostname(rt_str text);
bool schema_format_email(rt_str text);
bool schema_format_idn_email(rt_str text);
bool schema_format_ipv4(rt_str text);
bool schema_format_ipv6(rt_str text);
bool schema_format_uri(rt_str text);
bool schema_format_uri_reference(rt_str text);
bool schema_format_iri(rt_str text);
bool schema_format_iri_reference(rt_str text);
bool schema_format_uri_template(rt_str text);
bool schema_format_date(rt_str text);
bool schema_format_time(rt_str text);
bool schema_format_date_time(rt_str text);
bool schema_format_duration(rt_str text);

/* -- Running ----------------------------------------------------------------------------------- */

typedef struct schema_scope {
    uint32_t resource;
    const struct schema_scope *outer;
} schema_scope;

/* Which children of a value were evaluated: a bit each. */
typedef struct schema_marks {
    uint64_t *bits;
    size_t word_count;
} schema_marks;

enum { SCRATCH_WORDS = 96, MATCH_BYTES = 512, KEYS_CACHED = 16 };

typedef struct schema_keys {
    const node *object;
    uint64_t bits; /* of its keys */
} schema_keys;

typedef struct schema_run {
    const rt_schema *schema;
    int64_t steps_left;
    unsigned depth;
    const char *stopped; /* which limit was reached, or NULL */
    const schema_scope *scope;
    const node *root;
    rt_schema_report *report; /* NULL: nobody asks why */
    rt_buf *text;             /* for messages */
    schema_keys keys[KEYS_CACHED];
    size_t scratch_used;
    uint64_t scratch[SCRATCH_WORDS];
    void *match_data;
    uint64_t match_began; /* when the first pattern was matched */
    size_t match_count, match_used;
    _Alignas(16) char match_memory[MATCH_BYTES];
} schema_run;

bool schema_run_unit(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks);
bool schema_run_object(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks);
bool schema_run_array(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks);
bool schema_run_string(schema_run *r, const schema_unit *u, const node *v);
bool schema_run_number(schema_run *r, const schema_unit *u, const node *v);
bool schema_run_quietly(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks);
bool schema_run_charge(schema_run *r, uint64_t steps); /* false: too many */
void schema_run_stop(schema_run *r, const char *limit);
bool schema_pattern_matches(schema_run *r, const schema_pattern *pattern, rt_str text);
void schema_pattern_run_done(schema_run *r);

static inline bool schema_run_child(schema_run *r, const schema_unit *u, const node *v)
{
    return u->accepts & schema_kind_bit(v) || schema_run_unit(r, u, v, NULL);
}

uint64_t *schema_words_take(schema_run *r, size_t count); /* zeroed */
void schema_words_give(schema_run *r, uint64_t *words, size_t count);

static inline void schema_mark(schema_marks *marks, size_t i)
{
    if (marks)
        marks->bits[i / 64] |= UINT64_C(1) << i % 64;
}

static inline bool schema_is_marked(const schema_marks *marks, size_t i)
{
    return marks->bits[i / 64] >> i % 64 & 1;
}

/*
 * errors.c: puts it on record if somebody asks why; returns false. `detail` is the key or the item
 * it is about, when it is not the value itself.
 */
bool schema_miss(schema_run *r, const schema_unit *u, schema_keyword keyword, const node *v,
                 const node *detail);
void schema_pointer_add(rt_buf *out, const node *root, const node *target);

#endif
