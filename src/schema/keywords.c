/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keywords.c - which keywords each draft has, and what their values must be.
 *
 * One row per keyword and meaning. The rows say what the metaschemas say, so a schema is checked
 * against its metaschema by looking at the rows, and the answer names the keyword.
 */
#include "schema/schema_internal.h"

#include <pthread.h>

enum {
    D4 = 1 << RT_DRAFT_04,
    D6 = 1 << RT_DRAFT_06,
    D7 = 1 << RT_DRAFT_07,
    D19 = 1 << RT_DRAFT_2019_09,
    D20 = 1 << RT_DRAFT_2020_12,
    OLD = D4 | D6 | D7,
    NEW = D19 | D20,
    SINCE6 = D6 | D7 | NEW,
    SINCE7 = D7 | NEW,
    EVER = OLD | NEW,
};

typedef enum shape {
    ANYTHING,
    A_STRING,
    A_BOOLEAN,
    AN_ARRAY,
    A_NUMBER,
    A_STEP,
    A_COUNT,
    A_TYPE,
    NAMES, /* strings, all different */
    AN_ANCHOR,
    BOOLEANS, /* an object of them */
    A_SCHEMA,
    SCHEMAS,
    A_SCHEMA_MAP,
    A_SCHEMA_OR_SCHEMAS,
    A_SCHEMA_OR_NAMES_MAP,
    A_NAMES_MAP,
} shape;

#define NAME_SIZE 32 /* the longest and what schema_name_head() reads behind it */

static const struct row {
    char name[NAME_SIZE];
    schema_keyword keyword;
    uint8_t drafts;
    uint8_t vocabulary;
    shape value;
} rows[] = {
    { "$id", K_ID, SINCE6, VOCAB_CORE, A_STRING },
    { "id", K_OLD_ID, D4, VOCAB_CORE, A_STRING },
    { "$schema", K_SCHEMA, EVER, VOCAB_CORE, A_STRING },
    { "$ref", K_REF, EVER, VOCAB_CORE, A_STRING },
    { "$anchor", K_ANCHOR, NEW, VOCAB_CORE, AN_ANCHOR },
    { "$dynamicRef", K_DYNAMIC_REF, D20, VOCAB_CORE, A_STRING },
    { "$dynamicAnchor", K_DYNAMIC_ANCHOR, D20, VOCAB_CORE, AN_ANCHOR },
    { "$recursiveRef", K_RECURSIVE_REF, D19, VOCAB_CORE, A_STRING },
    { "$recursiveAnchor", K_RECURSIVE_ANCHOR, D19, VOCAB_CORE, A_BOOLEAN },
    { "$vocabulary", K_VOCABULARY, NEW, VOCAB_CORE, BOOLEANS },
    { "$defs", K_DEFS, EVER, VOCAB_CORE, A_SCHEMA_MAP },
    { "definitions", K_DEFINITIONS, EVER, VOCAB_CORE, A_SCHEMA_MAP },
    { "type", K_TYPE, EVER, VOCAB_VALIDATION, A_TYPE },
    { "enum", K_ENUM, EVER, VOCAB_VALIDATION, AN_ARRAY },
    { "const", K_CONST, SINCE6, VOCAB_VALIDATION, ANYTHING },
    { "multipleOf", K_MULTIPLE_OF, EVER, VOCAB_VALIDATION, A_STEP },
    { "minimum", K_MINIMUM, EVER, VOCAB_VALIDATION, A_NUMBER },
    { "maximum", K_MAXIMUM, EVER, VOCAB_VALIDATION, A_NUMBER },
    { "exclusiveMinimum", K_EXCLUSIVE_MINIMUM, SINCE6, VOCAB_VALIDATION, A_NUMBER },
    { "exclusiveMaximum", K_EXCLUSIVE_MAXIMUM, SINCE6, VOCAB_VALIDATION, A_NUMBER },
    { "exclusiveMinimum", K_EXCLUSIVE_MINIMUM, D4, VOCAB_VALIDATION, A_BOOLEAN },
    { "exclusiveMaximum", K_EXCLUSIVE_MAXIMUM, D4, VOCAB_VALIDATION, A_BOOLEAN },
    { "minLength", K_MIN_LENGTH, EVER, VOCAB_VALIDATION, A_COUNT },
    { "maxLength", K_MAX_LENGTH, EVER, VOCAB_VALIDATION, A_COUNT },
    { "pattern", K_PATTERN, EVER, VOCAB_VALIDATION, A_STRING },
    { "format", K_FORMAT, EVER, VOCAB_FORMAT | VOCAB_FORMAT_ASSERTION, A_STRING },
    { "contentEncoding", K_CONTENT_ENCODING, SINCE7, VOCAB_CONTENT, A_STRING },
    { "contentMediaType", K_CONTENT_MEDIA_TYPE, SINCE7, VOCAB_CONTENT, A_STRING },
    { "contentSchema", K_CONTENT_SCHEMA, NEW, VOCAB_CONTENT, A_SCHEMA },
    { "minItems", K_MIN_ITEMS, EVER, VOCAB_VALIDATION, A_COUNT },
    { "maxItems", K_MAX_ITEMS, EVER, VOCAB_VALIDATION, A_COUNT },
    { "uniqueItems", K_UNIQUE_ITEMS, EVER, VOCAB_VALIDATION, A_BOOLEAN },
    { "prefixItems", K_PREFIX_ITEMS, D20, VOCAB_APPLICATOR, SCHEMAS },
    { "items", K_ITEMS, OLD | D19, VOCAB_APPLICATOR, A_SCHEMA_OR_SCHEMAS },
    { "items", K_ITEMS, D20, VOCAB_APPLICATOR, A_SCHEMA },
    { "additionalItems", K_ADDITIONAL_ITEMS, OLD | D19, VOCAB_APPLICATOR, A_SCHEMA },
    { "contains", K_CONTAINS, SINCE6, VOCAB_APPLICATOR, A_SCHEMA },
    { "minContains", K_MIN_CONTAINS, NEW, VOCAB_VALIDATION, A_COUNT },
    { "maxContains", K_MAX_CONTAINS, NEW, VOCAB_VALIDATION, A_COUNT },
    { "unevaluatedItems", K_UNEVALUATED_ITEMS, D19, VOCAB_APPLICATOR, A_SCHEMA },
    { "unevaluatedItems", K_UNEVALUATED_ITEMS, D20, VOCAB_UNEVALUATED, A_SCHEMA },
    { "minProperties", K_MIN_PROPERTIES, EVER, VOCAB_VALIDATION, A_COUNT },
    { "maxProperties", K_MAX_PROPERTIES, EVER, VOCAB_VALIDATION, A_COUNT },
    { "required", K_REQUIRED, EVER, VOCAB_VALIDATION, NAMES },
    { "properties", K_PROPERTIES, EVER, VOCAB_APPLICATOR, A_SCHEMA_MAP },
    { "patternProperties", K_PATTERN_PROPERTIES, EVER, VOCAB_APPLICATOR, A_SCHEMA_MAP },
    { "additionalProperties", K_ADDITIONAL_PROPERTIES, EVER, VOCAB_APPLICATOR, A_SCHEMA },
    { "propertyNames", K_PROPERTY_NAMES, SINCE6, VOCAB_APPLICATOR, A_SCHEMA },
    { "unevaluatedProperties", K_UNEVALUATED_PROPERTIES, D19, VOCAB_APPLICATOR, A_SCHEMA },
    { "unevaluatedProperties", K_UNEVALUATED_PROPERTIES, D20, VOCAB_UNEVALUATED, A_SCHEMA },
    { "dependencies", K_DEPENDENCIES, EVER, VOCAB_APPLICATOR, A_SCHEMA_OR_NAMES_MAP },
    { "dependentRequired", K_DEPENDENT_REQUIRED, NEW, VOCAB_VALIDATION, A_NAMES_MAP },
    { "dependentSchemas", K_DEPENDENT_SCHEMAS, NEW, VOCAB_APPLICATOR, A_SCHEMA_MAP },
    { "allOf", K_ALL_OF, EVER, VOCAB_APPLICATOR, SCHEMAS },
    { "anyOf", K_ANY_OF, EVER, VOCAB_APPLICATOR, SCHEMAS },
    { "oneOf", K_ONE_OF, EVER, VOCAB_APPLICATOR, SCHEMAS },
    { "not", K_NOT, EVER, VOCAB_APPLICATOR, A_SCHEMA },
    { "if", K_IF, SINCE7, VOCAB_APPLICATOR, A_SCHEMA },
    { "then", K_THEN, SINCE7, VOCAB_APPLICATOR, A_SCHEMA },
    { "else", K_ELSE, SINCE7, VOCAB_APPLICATOR, A_SCHEMA },
    { "default", K_DEFAULT, EVER, VOCAB_META | VOCAB_ALL, ANYTHING },
};

static rt_arena table_arena; /* for the life of the program */
static schema_names table;
static uint8_t first_row[RT_COUNT(rows)]; /* of each name in the table */
static uint8_t row_of[K_COUNT];

static void build_table(void)
{
    rt_str names[RT_COUNT(rows)];
    size_t count = 0;
    for (size_t i = RT_COUNT(rows); i-- > 0;)
        row_of[rows[i].keyword] = (uint8_t)i;
    for (size_t i = 0; i < RT_COUNT(rows); i++)
        if (row_of[rows[i].keyword] == i) {
            first_row[count] = (uint8_t)i;
            names[count++] = rt_str_of(rows[i].name);
        }
    schema_names_build(&table, names, count, &table_arena);
}

static void need_table(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, build_table);
}

static const struct row *find_row(schema_keyword keyword, schema_dialect dialect)
{
    for (size_t i = row_of[keyword]; i < RT_COUNT(rows); i++)
        if (rows[i].keyword == keyword && rows[i].drafts >> dialect.draft & 1 &&
            rows[i].vocabulary & dialect.vocabularies)
            return &rows[i];
    return NULL;
}

const char *schema_keyword_name(schema_keyword keyword)
{
    need_table();
    if (keyword == K_FALSE)
        return "false";
    return keyword == K_LIMIT ? "limit" : rows[row_of[keyword]].name;
}

void schema_words_read(const node *object, schema_dialect dialect, schema_words *out)
{
    need_table();
    memset(out, 0, sizeof(*out));
    if (object->kind != RT_JSON_OBJECT)
        return;
    const node *end = rt_json_node_after(object);
    for (const node *at = object + 1; at < end; at = rt_json_node_after(at + 1)) {
        int32_t found = schema_names_find(&table, at->text, at->size);
        if (found < 0)
            continue;
        const struct row *row = find_row(rows[first_row[found]].keyword, dialect);
        if (row)
            out->of[row->keyword] = at + 1;
    }
}

/* -- What a value must be ---------------------------------------------------------------------- */

static bool is_schema(const node *v)
{
    return v->kind == RT_JSON_OBJECT || v->kind == RT_JSON_BOOL;
}

static bool are_all(const node *container, bool (*is_good)(const node *))
{
    size_t key = container->kind == RT_JSON_OBJECT;
    const node *end = rt_json_node_after(container);
    for (const node *at = container + 1; at < end; at = rt_json_node_after(at + key))
        if (!is_good(at + key))
            return false;
    return true;
}

static bool is_string(const node *v)
{
    return v->kind == RT_JSON_STRING;
}

static bool is_boolean(const node *v)
{
    return v->kind == RT_JSON_BOOL;
}

static bool is_names(const node *v)
{
    return v->kind == RT_JSON_ARRAY && are_all(v, is_string);
}

static bool is_schema_or_names(const node *v)
{
    return is_schema(v) || is_names(v);
}

static bool is_schemas(const node *v)
{
    return v->kind == RT_JSON_ARRAY && v->size > 0 && are_all(v, is_schema);
}

static bool is_type_name(const node *v)
{
    static const char *const names[] = { "null",  "boolean", "integer", "number",
                                         "array", "object",  "string" };
    for (size_t i = 0; i < RT_COUNT(names); i++)
        if (v->kind == RT_JSON_STRING && rt_str_eq_c(rt_json_node_text(v), names[i]))
            return true;
    return false;
}

static bool is_anchor(const node *v)
{
    if (v->kind != RT_JSON_STRING || v->size == 0)
        return false;
    for (uint32_t i = 0; i < v->size; i++) {
        char c = v->text[i], lower = c | 0x20;
        bool is_letter = (lower >= 'a' && lower <= 'z') || c == '_';
        bool is_other = (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':';
        if (!is_letter && (i == 0 || !is_other))
            return false;
    }
    return true;
}

static bool is_count(const node *v)
{
    return rt_json_is_integer((rt_json){ v }) && v->text[0] != '-';
}

static bool is_map(const node *v, bool (*is_good)(const node *))
{
    return v->kind == RT_JSON_OBJECT && are_all(v, is_good);
}

static bool fits(const node *v, shape wanted)
{
    switch (wanted) {
    case ANYTHING:
        return true;
    case A_STRING:
        return is_string(v);
    case A_BOOLEAN:
        return is_boolean(v);
    case AN_ARRAY:
        return v->kind == RT_JSON_ARRAY;
    case A_NUMBER:
        return v->kind == RT_JSON_NUMBER;
    case A_STEP:
        return rt_json_is_step((rt_json){ v });
    case A_COUNT:
        return is_count(v) ||
               (v->kind == RT_JSON_NUMBER && rt_str_eq_c(rt_json_node_text(v), "-0"));
    case A_TYPE:
        return is_type_name(v) ||
               (v->kind == RT_JSON_ARRAY && v->size > 0 && are_all(v, is_type_name));
    case NAMES:
        return is_names(v);
    case AN_ANCHOR:
        return is_anchor(v);
    case BOOLEANS:
        return is_map(v, is_boolean);
    case A_SCHEMA:
        return is_schema(v);
    case SCHEMAS:
        return is_schemas(v);
    case A_SCHEMA_MAP:
        return is_map(v, is_schema);
    case A_SCHEMA_OR_SCHEMAS:
        return is_schema(v) || (v->kind == RT_JSON_ARRAY && are_all(v, is_schema));
    case A_SCHEMA_OR_NAMES_MAP:
        return is_map(v, is_schema_or_names);
    case A_NAMES_MAP:
        return is_map(v, is_names);
    }
    return false;
}

static const char *const descriptions[] = {
    [ANYTHING] = "anything",
    [A_STRING] = "a string",
    [A_BOOLEAN] = "true or false",
    [AN_ARRAY] = "an array",
    [A_NUMBER] = "a number",
    [A_STEP] = "a number above 0 of at most 64 digits",
    [A_COUNT] = "a whole number from 0 up",
    [A_TYPE] = "one of null, boolean, integer, number, string, array, object, or an array of these",
    [NAMES] = "an array of strings",
    [AN_ANCHOR] = "a name of letters, digits, '-', '_' and '.'",
    [BOOLEANS] = "an object whose values are true or false",
    [A_SCHEMA] = "a schema: an object, true or false",
    [SCHEMAS] = "an array of one or more schemas",
    [A_SCHEMA_MAP] = "an object whose values are schemas",
    [A_SCHEMA_OR_SCHEMAS] = "a schema or an array of schemas",
    [A_SCHEMA_OR_NAMES_MAP] = "an object whose values are schemas or arrays of strings",
    [A_NAMES_MAP] = "an object whose values are arrays of strings",
};

bool schema_words_check(const schema_words *words, schema_dialect dialect, schema_keyword *bad,
                        rt_error *err)
{
    for (schema_keyword k = 0; k < K_COUNT; k++) {
        if (!words->of[k])
            continue;
        const struct row *row = find_row(k, dialect);
        if (!row || fits(words->of[k], row->value))
            continue;
        *bad = k;
        if (k == K_ITEMS && words->of[k]->kind == RT_JSON_ARRAY)
            return rt_fail(err, RT_INVALID,
                           "must be a schema; an array of schemas is called prefixItems since "
                           "2020-12 (older drafts are told by \"$schema\")");
        return rt_fail(err, RT_INVALID, "must be %s", descriptions[row->value]);
    }
    return true;
}

schema_holds schema_keyword_holds(schema_keyword keyword)
{
    static const schema_holds by_shape[] = {
        [A_SCHEMA] = HOLDS_SCHEMA,
        [SCHEMAS] = HOLDS_SCHEMAS,
        [A_SCHEMA_MAP] = HOLDS_SCHEMA_MAP,
        [A_SCHEMA_OR_SCHEMAS] = HOLDS_SCHEMA_OR_SCHEMAS,
        [A_SCHEMA_OR_NAMES_MAP] = HOLDS_SCHEMA_OR_NAMES_MAP,
        [A_NAMES_MAP] = HOLDS_NO_SCHEMA,
    };
    return keyword < K_FALSE ? by_shape[rows[row_of[keyword]].value] : HOLDS_NO_SCHEMA;
}

/* -- Drafts and vocabularies ------------------------------------------------------------------- */

static rt_str without_scheme(rt_str uri)
{
    rt_str fragment;
    uri = schema_uri_without_fragment(uri, &fragment);
    if (rt_str_starts(uri, RT_STR("https://")))
        return rt_str_slice(uri, 8, uri.len);
    return rt_str_starts(uri, RT_STR("http://")) ? rt_str_slice(uri, 7, uri.len) : uri;
}

rt_schema_draft schema_draft_of(rt_str uri)
{
    static const struct {
        const char *uri;
        rt_schema_draft draft;
    } drafts[] = {
        { "json-schema.org/draft-04/schema", RT_DRAFT_04 },
        { "json-schema.org/draft-06/schema", RT_DRAFT_06 },
        { "json-schema.org/draft-07/schema", RT_DRAFT_07 },
        { "json-schema.org/draft/2019-09/schema", RT_DRAFT_2019_09 },
        { "json-schema.org/draft/2020-12/schema", RT_DRAFT_2020_12 },
        { "json-schema.org/schema", RT_DRAFT_2020_12 },
    };
    for (size_t i = 0; i < RT_COUNT(drafts); i++)
        if (rt_str_eq_c(without_scheme(uri), drafts[i].uri))
            return drafts[i].draft;
    return RT_DRAFT_DEFAULT;
}

uint8_t schema_vocabulary_of(rt_str uri)
{
    static const struct {
        const char *name;
        uint8_t vocabulary;
    } known[] = {
        { "core", VOCAB_CORE },
        { "applicator", VOCAB_APPLICATOR },
        { "unevaluated", VOCAB_UNEVALUATED },
        { "validation", VOCAB_VALIDATION },
        { "meta-data", VOCAB_META },
        { "format", VOCAB_FORMAT },
        { "format-annotation", VOCAB_FORMAT },
        { "format-assertion", VOCAB_FORMAT_ASSERTION },
        { "content", VOCAB_CONTENT },
    };
    static const char *const bases[] = { "https://json-schema.org/draft/2019-09/vocab/",
                                         "https://json-schema.org/draft/2020-12/vocab/" };
    for (size_t b = 0; b < RT_COUNT(bases); b++)
        if (rt_str_starts(uri, rt_str_of(bases[b])))
            for (size_t i = 0; i < RT_COUNT(known); i++)
                if (rt_str_eq_c(rt_str_slice(uri, strlen(bases[b]), uri.len), known[i].name))
                    return known[i].vocabulary;
    return 0;
}
