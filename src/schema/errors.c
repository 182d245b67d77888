/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errors.c - what a failure is called: where, by which keyword, and a sentence for people.
 *
 * The sentence says what was expected and what was found, in the words of somebody who has the
 * value before him and not the schema: "/items/0/price must be at least 0, but is -1".
 */
#include "schema/schema_internal.h"

enum { QUOTE_MAX = 60, ENUM_SHOWN = 8 };

/* -- Paths ------------------------------------------------------------------------------------- */

static void add_token(rt_buf *out, rt_str key)
{
    rt_buf_addc(out, '/');
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] == '~')
            rt_buf_add(out, RT_STR("~0"));
        else if (key.ptr[i] == '/')
            rt_buf_add(out, RT_STR("~1"));
        else
            rt_buf_addc(out, key.ptr[i]);
    }
}

/* Down from the root, always into the child in which the target lies. */
void schema_pointer_add(rt_buf *out, const node *root, const node *target)
{
    const node *at = root;
    while (at != target && at->kind >= RT_JSON_ARRAY) {
        size_t key = at->kind == RT_JSON_OBJECT, i = 0;
        const node *child = at + 1;
        while (rt_json_node_after(child + key) <= target) {
            child = rt_json_node_after(child + key);
            i++;
        }
        if (key)
            add_token(out, rt_json_node_text(child));
        else
            rt_buf_addf(out, "/%zu", i);
        if (key && child == target)
            return; /* the key itself */
        at = child + key;
    }
}

/* -- Sentences --------------------------------------------------------------------------------- */

/* The value as JSON, or as much of it as a sentence bears. */
static void quote(rt_buf *out, const node *v)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&text, 4096);
    rt_json_print((rt_json){ v }, &text);
    rt_str shown = rt_buf_str(&text);
    if (!text.failed && shown.len <= QUOTE_MAX) {
        rt_buf_add(out, shown);
        return;
    }
    size_t end = RT_MIN((size_t)QUOTE_MAX, shown.len);
    while (end > 0 && ((uint8_t)shown.ptr[end] & 0xC0) == 0x80)
        end--;
    rt_buf_add(out, rt_str_slice(shown, 0, end));
    rt_buf_add(out, RT_STR("..."));
}

static const node *own(const schema_unit *u, schema_keyword keyword)
{
    return rt_json_get_c((rt_json){ u->source }, schema_keyword_name(keyword)).node;
}

static void add_kinds(rt_buf *out, const schema_unit *u)
{
    static const char *const names[] = {
        [RT_JSON_NULL] = "null",       [RT_JSON_BOOL] = "true or false",
        [RT_JSON_NUMBER] = "a number", [RT_JSON_STRING] = "a string",
        [RT_JSON_ARRAY] = "an array",  [RT_JSON_OBJECT] = "an object",
    };
    bool is_first = true;
    for (unsigned kind = RT_JSON_NULL; kind <= RT_JSON_OBJECT; kind++) {
        if (!(u->types >> kind & 1))
            continue;
        rt_buf_add(out, is_first ? RT_STR("") : RT_STR(" or "));
        bool is_integer = kind == RT_JSON_NUMBER && u->wants_integer;
        rt_buf_add(out, rt_str_of(is_integer ? "an integer" : names[kind]));
        is_first = false;
    }
}

static void add_found(rt_buf *out, const node *v)
{
    static const char *const names[] = {
        [RT_JSON_NULL] = "null",          [RT_JSON_BOOL] = "a boolean",
        [RT_JSON_NUMBER] = "the number ", [RT_JSON_STRING] = "a string",
        [RT_JSON_ARRAY] = "an array",     [RT_JSON_OBJECT] = "an object",
    };
    rt_buf_add(out, RT_STR(", but is "));
    rt_buf_add(out, rt_str_of(names[v->kind]));
    if (v->kind == RT_JSON_NUMBER)
        quote(out, v);
}

static void add_choices(rt_buf *out, const node *array)
{
    const node *end = rt_json_node_after(array);
    uint32_t i = 0;
    for (const node *at = array + 1; at < end; at = rt_json_node_after(at), i++) {
        if (i == ENUM_SHOWN) {
            rt_buf_addf(out, " and %u more", array->size - i);
            return;
        }
        rt_buf_add(out, i ? RT_STR(", ") : RT_STR(""));
        quote(out, at);
    }
}

/* How a sentence begins, and what its end shows besides the keyword's own value. */
typedef enum ending {
    PLAIN,
    SHOWS_VALUE,
    SHOWS_COUNT,
    SHOWS_LENGTH,
    SHOWS_DETAIL,
    NO_LIMIT
} ending;

static const struct {
    const char *begins;
    ending ending;
} sentences[K_COUNT] = {
    [K_MULTIPLE_OF] = { "must be a multiple of ", SHOWS_VALUE },
    [K_MINIMUM] = { "must be at least ", SHOWS_VALUE },
    [K_MAXIMUM] = { "must be at most ", SHOWS_VALUE },
    [K_EXCLUSIVE_MINIMUM] = { "must be more than ", SHOWS_VALUE },
    [K_EXCLUSIVE_MAXIMUM] = { "must be less than ", SHOWS_VALUE },
    [K_MIN_LENGTH] = { "is too short: its length must be at least ", SHOWS_LENGTH },
    [K_MAX_LENGTH] = { "is too long: its length must be at most ", SHOWS_LENGTH },
    [K_PATTERN] = { "must match the pattern ", SHOWS_VALUE },
    [K_FORMAT] = { "must have the format ", SHOWS_VALUE },
    [K_CONTENT_ENCODING] = { "must be text in the encoding ", PLAIN },
    [K_CONTENT_MEDIA_TYPE] = { "must contain ", PLAIN },
    [K_MIN_ITEMS] = { "has too few items: at least ", SHOWS_COUNT },
    [K_MAX_ITEMS] = { "has too many items: at most ", SHOWS_COUNT },
    [K_MIN_PROPERTIES] = { "has too few properties: at least ", SHOWS_COUNT },
    [K_MAX_PROPERTIES] = { "has too many properties: at most ", SHOWS_COUNT },
    [K_MAX_CONTAINS] = { "has too many items of the kind \"contains\" describes: at most ", PLAIN },
    [K_CONST] = { "must be ", SHOWS_VALUE },
    [K_UNIQUE_ITEMS] = { "must not have equal items; twice there is ", SHOWS_DETAIL },
    [K_REQUIRED] = { "must have the property ", SHOWS_DETAIL },
    [K_ADDITIONAL_PROPERTIES] = { "must not have the property ", SHOWS_DETAIL },
    [K_UNEVALUATED_PROPERTIES] = { "must not have the property ", SHOWS_DETAIL },
    [K_PROPERTY_NAMES] = { "must not have a property named ", SHOWS_DETAIL },
    [K_ITEMS] = { "has more items than it may: ", SHOWS_DETAIL },
    [K_ADDITIONAL_ITEMS] = { "has more items than it may: ", SHOWS_DETAIL },
    [K_UNEVALUATED_ITEMS] = { "has an item it must not have: ", SHOWS_DETAIL },
    [K_DEPENDENCIES] = { "must, with what it has, also have the property ", SHOWS_DETAIL },
    [K_DEPENDENT_REQUIRED] = { "must, with what it has, also have the property ", SHOWS_DETAIL },
    [K_NOT] = { "is just what the schema under \"not\" describes", NO_LIMIT },
    [K_FALSE] = { "must not be there", NO_LIMIT },
    [K_LIMIT] = { "could not be checked: the schema asks for more than the limit of ", NO_LIMIT },
};

static void add_ending(rt_buf *out, ending how, const node *v)
{
    if (how == SHOWS_VALUE) {
        rt_buf_add(out, RT_STR(", but is "));
        quote(out, v);
    } else if (how == SHOWS_COUNT) {
        rt_buf_addf(out, ", not %u", v->size);
    } else if (how == SHOWS_LENGTH) {
        rt_buf_addf(out, ", not %zu", rt_utf8_length(rt_json_node_text(v)));
    }
}

static void add_contains(rt_buf *out, const schema_unit *u)
{
    uint64_t min = u->array->min_contains;
    rt_buf_addf(out, "must contain at least %llu item%s that \"contains\" describes",
                (unsigned long long)min, min == 1 ? "" : "s");
}

static void add_sentence(rt_buf *out, const schema_run *r, const schema_unit *u,
                         schema_keyword keyword, const node *v, const node *detail)
{
    const node *limit = own(u, keyword);
    switch (keyword) {
    case K_TYPE:
        rt_buf_add(out, RT_STR("must be "));
        add_kinds(out, u);
        add_found(out, v);
        return;
    case K_ENUM:
        rt_buf_add(out, RT_STR("must be one of "));
        add_choices(out, limit);
        add_ending(out, SHOWS_VALUE, v);
        return;
    case K_CONTAINS:
        add_contains(out, u);
        return;
    case K_ANY_OF:
        rt_buf_addf(out, "matches none of the %u alternatives of \"anyOf\"", limit->size);
        return;
    case K_ONE_OF:
        rt_buf_addf(out,
                    "must match exactly one of the %u alternatives of \"oneOf\", but matches %s",
                    limit->size, detail ? "more" : "none");
        return;
    default:
        break;
    }
    rt_buf_add(out, rt_str_of(sentences[keyword].begins));
    if (keyword == K_LIMIT)
        rt_buf_addf(out, "%s", r->stopped ? r->stopped : "steps");
    if (sentences[keyword].ending == NO_LIMIT)
        return;
    const node *shown = sentences[keyword].ending == SHOWS_DETAIL || !limit ? detail : limit;
    if (detail && shown == limit && detail->kind == RT_JSON_NUMBER)
        shown = detail; /* draft-04: the number stands under another keyword */
    if (shown)
        quote(out, shown);
    add_ending(out, sentences[keyword].ending, v);
}

/* -- Reports ----------------------------------------------------------------------------------- */

static rt_schema_error *next_error(rt_schema_report *report)
{
    size_t max = report->max_errors ? report->max_errors : RT_SCHEMA_ERRORS_MAX;
    if (report->error_count == max)
        return NULL;
    if (!report->errors)
        report->errors = rt_arena_alloc(report->arena, max * sizeof(*report->errors));
    return &report->errors[report->error_count++];
}

static rt_str kept(schema_run *r)
{
    rt_str text = rt_arena_str(r->report->arena, rt_buf_str(r->text));
    rt_buf_reset(r->text);
    return text;
}

static rt_str schema_path(schema_run *r, const schema_unit *u, schema_keyword keyword)
{
    const schema_document *document = &r->schema->documents[u->document];
    if (u->document > 0)
        rt_buf_add(r->text, document->uri);
    rt_buf_addc(r->text, '#');
    schema_pointer_add(r->text, document->root, u->source);
    if (keyword < K_FALSE)
        rt_buf_addf(r->text, "/%s", schema_keyword_name(keyword));
    return kept(r);
}

static __attribute__((noinline)) void record(schema_run *r, const schema_unit *u,
                                             schema_keyword keyword, const node *v,
                                             const node *detail)
{
    rt_schema_error *error = next_error(r->report);
    if (!error)
        return;
    rt_buf_reset(r->text);
    schema_pointer_add(r->text, r->root, v);
    error->instance_path = kept(r);
    error->keyword = rt_str_of(schema_keyword_name(keyword));
    error->schema_path = schema_path(r, u, keyword);
    rt_buf_add(r->text, error->instance_path.len ? error->instance_path : RT_STR("the value"));
    rt_buf_addc(r->text, ' ');
    add_sentence(r->text, r, u, keyword, v, detail);
    error->message = kept(r);
}

bool schema_miss(schema_run *r, const schema_unit *u, schema_keyword keyword, const node *v,
                 const node *detail)
{
    if (r->report)
        record(r, u, keyword, v, detail);
    return false;
}

void rt_schema_report_write(const rt_schema_report *report, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kbool(w, "valid", report->error_count == 0 && !report->is_stopped);
    rt_jw_karray(w, "errors");
    for (size_t i = 0; i < report->error_count; i++) {
        const rt_schema_error *error = &report->errors[i];
        rt_jw_object(w);
        rt_jw_kstr(w, "instance_path", error->instance_path);
        rt_jw_kstr(w, "keyword", error->keyword);
        rt_jw_kstr(w, "schema_path", error->schema_path);
        rt_jw_kstr(w, "message", error->message);
        rt_jw_end(w);
    }
    rt_jw_end(w);
    rt_jw_end(w);
}
