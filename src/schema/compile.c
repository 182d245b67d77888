/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile.c - schemas become units, one after another.
 *
 * Nothing here recurses: who needs the unit of another schema gets it empty, and it is put in the
 * queue to be filled in. So schemas may refer to each other in circles, and only those that can be
 * reached are compiled. When the queue is empty, the anchors that dynamic references may jump to
 * are added, until there are no more.
 */
#include "schema/schema_internal.h"

#include <stdlib.h>

enum {
    ALIASES_MAX = 64,
    NARROW_ROUNDS = 4,
    SCALAR_KINDS =
        1 << RT_JSON_NULL | 1 << RT_JSON_BOOL | 1 << RT_JSON_NUMBER | 1 << RT_JSON_STRING,
};

/* Puts "<document>#/path/of/the/place: " before the error, unless it says already where it is. */
bool schema_place_fail(schema_compiler *c, const schema_place *place, rt_error *err)
{
    if (c->is_placed)
        return false;
    c->is_placed = true;
    rt_buf path RT_CLEANUP(rt_buf_done) = { 0 };
    if (place->document > 0)
        rt_buf_add(&path, c->schema->documents[place->document].uri);
    rt_buf_add(&path, RT_STR("#"));
    schema_pointer_add(&path, c->schema->documents[place->document].root, place->at);
    return rt_wrap(err, "%.*s", RT_FMT(rt_buf_str(&path)));
}

/* -- Finding units ----------------------------------------------------------------------------- */

static schema_unit *add_unit(schema_compiler *c, const schema_place *place)
{
    schema_unit *unit = rt_arena_alloc(c->arena, sizeof(*unit));
    unit->source = place->at;
    unit->document = place->document;
    unit->resource = place->resource;
    unit->allows = UINT64_MAX;
    if (c->unit_count == c->unit_cap) {
        size_t cap = c->unit_cap ? c->unit_cap * 2 : 64;
        c->units = rt_arena_resize(&c->scratch, c->units, c->unit_cap * sizeof(*c->units),
                                   cap * sizeof(*c->units));
        c->unit_cap = cap;
    }
    c->units[c->unit_count++] = unit;
    return unit;
}

/* A reference and nothing else that matters to a value. */
static bool is_alias(const schema_compiler *c, const schema_place *place, schema_words *words)
{
    const schema_resource *resource = &c->schema->resources[place->resource];
    schema_words_read(place->at, resource->dialect, words);
    if (!words->of[K_REF] || place->at == resource->root)
        return false;
    if (resource->dialect.draft <= RT_DRAFT_07)
        return true;
    for (schema_keyword k = 0; k < K_COUNT; k++)
        if (words->of[k] && k != K_REF && k != K_DEFS && k != K_DEFINITIONS && k != K_DEFAULT &&
            k != K_ANCHOR)
            return false;
    return true;
}

bool schema_unit_at(schema_compiler *c, schema_place place, schema_unit **out, rt_error *err)
{
    schema_unit **first = NULL;
    for (unsigned hops = 0; hops < ALIASES_MAX; hops++) {
        const schema_document *document = &c->schema->documents[place.document];
        schema_unit **slot = &document->units[place.at - document->root];
        if (!first)
            first = slot;
        schema_words words;
        if (!*slot && is_alias(c, &place, &words)) {
            schema_place target;
            if (!schema_ref_find(c, place.resource, rt_json_node_text(words.of[K_REF]), &target,
                                 err))
                return schema_place_fail(c, &place, err);
            /* Another resource has to be entered when it runs, for the dynamic scope. */
            if (target.resource == place.resource) {
                place = target;
                continue;
            }
        }
        if (!*slot)
            *slot = add_unit(c, &place);
        *out = *first = *slot;
        return true;
    }
    rt_fail(err, RT_INVALID, "$ref leads back to itself, or through more than %d others",
            ALIASES_MAX);
    return schema_place_fail(c, &place, err);
}

bool schema_unit_below(schema_compiler *c, const schema_unit *parent, const node *at,
                       schema_unit **out, rt_error *err)
{
    const schema_document *document = &c->schema->documents[parent->document];
    uint32_t known = document->places[at - document->root];
    schema_place place = { parent->document, known ? known - 1 : parent->resource, at };
    return schema_unit_at(c, place, out, err);
}

/* -- Types ------------------------------------------------------------------------------------- */

static unsigned kind_named(rt_str name, bool *is_integer)
{
    static const struct {
        const char *name;
        unsigned kinds;
    } types[] = {
        { "null", 1 << RT_JSON_NULL },      { "boolean", 1 << RT_JSON_BOOL },
        { "integer", 1 << RT_JSON_NUMBER }, { "number", 1 << RT_JSON_NUMBER },
        { "string", 1 << RT_JSON_STRING },  { "array", 1 << RT_JSON_ARRAY },
        { "object", 1 << RT_JSON_OBJECT },
    };
    *is_integer = rt_str_eq_c(name, "integer");
    for (size_t i = 0; i < RT_COUNT(types); i++)
        if (rt_str_eq_c(name, types[i].name))
            return types[i].kinds;
    return 0;
}

static void set_types(schema_unit *unit, const node *type)
{
    unit->types = KINDS_ALL;
    if (!type)
        return;
    bool has_integer = false, has_number = false, is_integer;
    const node *at = type->kind == RT_JSON_ARRAY ? type + 1 : type;
    const node *end = rt_json_node_after(type);
    for (unit->types = 0; at < end; at++) {
        unsigned kinds = kind_named(rt_json_node_text(at), &is_integer);
        unit->types |= (uint8_t)kinds;
        has_integer |= is_integer;
        has_number |= !is_integer && kinds == 1 << RT_JSON_NUMBER;
    }
    unit->wants_integer = has_integer && !has_number;
}

static uint8_t kinds_in(const node *array)
{
    unsigned kinds = 0;
    const node *end = rt_json_node_after(array);
    for (const node *at = array + 1; at < end; at = rt_json_node_after(at))
        kinds |= schema_kind_bit(at);
    return (uint8_t)kinds;
}

/* -- Checks ------------------------------------------------------------------------------------ */

typedef struct check_list {
    schema_check *checks;
    uint32_t count;
} check_list;

static schema_check *add_check(check_list *list, schema_op op, schema_keyword keyword)
{
    schema_check *check = &list->checks[list->count++];
    *check = (schema_check){ .op = op, .keyword = keyword };
    return check;
}

static const schema_names *texts_of(schema_compiler *c, const node *array)
{
    rt_str *texts = rt_arena_alloc_raw(&c->scratch, array->size * sizeof(*texts) + 1);
    size_t count = 0;
    const node *end = rt_json_node_after(array);
    for (const node *at = array + 1; at < end; at = rt_json_node_after(at))
        if (at->kind == RT_JSON_STRING)
            texts[count++] = rt_json_node_text(at);
    schema_names *names = rt_arena_alloc(c->arena, sizeof(*names));
    schema_names_build(names, texts, count, c->arena);
    return names;
}

static bool add_units(schema_compiler *c, const schema_unit *unit, const node *array,
                      schema_check *check, rt_error *err)
{
    schema_unit **units = rt_arena_alloc_raw(c->arena, array->size * sizeof(schema_unit *) + 1);
    const node *end = rt_json_node_after(array);
    size_t count = 0;
    for (const node *at = array + 1; at < end; at = rt_json_node_after(at))
        if (!schema_unit_below(c, unit, at, &units[count++], err))
            return false;
    check->units = units;
    check->unit_count = count;
    return true;
}

static void one_unit(schema_compiler *c, schema_check *check, schema_unit *target)
{
    schema_unit **units = rt_arena_alloc(c->arena, sizeof(*units));
    *units = target;
    check->units = units;
    check->unit_count = 1;
}

static bool add_ref(schema_compiler *c, const schema_unit *unit, const node *ref, check_list *list,
                    rt_error *err)
{
    schema_place target;
    schema_unit *found;
    if (!schema_ref_find(c, unit->resource, rt_json_node_text(ref), &target, err) ||
        !schema_unit_at(c, target, &found, err))
        return false;
    one_unit(c, add_check(list, OP_UNIT, K_REF), found);
    return true;
}

static void want_dynamic(schema_compiler *c, rt_str name)
{
    for (size_t i = 0; i < c->dynamic_count; i++)
        if (rt_str_eq(c->dynamic_names[i], name))
            return;
    if (c->dynamic_count == c->dynamic_cap) {
        size_t cap = c->dynamic_cap ? c->dynamic_cap * 2 : 8;
        c->dynamic_names = rt_arena_resize(&c->scratch, c->dynamic_names,
                                           c->dynamic_cap * sizeof(rt_str), cap * sizeof(rt_str));
        c->dynamic_cap = cap;
    }
    c->dynamic_names[c->dynamic_count++] = name;
    c->schema->has_dynamic = true;
}

/* Dynamic only where the place it leads to at first is itself a dynamic anchor of that name. */
static bool add_dynamic(schema_compiler *c, const schema_unit *unit, const node *ref,
                        schema_keyword keyword, check_list *list, rt_error *err)
{
    schema_place target;
    schema_unit *found;
    if (!schema_ref_find(c, unit->resource, rt_json_node_text(ref), &target, err) ||
        !schema_unit_at(c, target, &found, err))
        return false;
    rt_str name;
    schema_uri_without_fragment(rt_json_node_text(ref), &name);
    name = keyword == K_RECURSIVE_REF ? RT_STR("") : schema_uri_decoded(name, c->arena);
    const schema_resource *resource = &c->schema->resources[target.resource];
    bool is_dynamic = false;
    for (const schema_anchor *a = resource->anchors; a; a = a->next)
        is_dynamic |= a->is_dynamic && a->target == target.at && rt_str_eq(a->name, name);
    is_dynamic = is_dynamic && (keyword == K_RECURSIVE_REF || name.len > 0);
    schema_check *check = add_check(list, is_dynamic ? OP_DYNAMIC : OP_UNIT, keyword);
    one_unit(c, check, found);
    check->anchor = name;
    if (is_dynamic)
        want_dynamic(c, name);
    return true;
}

static bool add_all_of(schema_compiler *c, const schema_unit *unit, const node *array,
                       check_list *list, rt_error *err)
{
    const node *end = rt_json_node_after(array);
    for (const node *at = array + 1; at < end; at = rt_json_node_after(at)) {
        schema_unit *part;
        if (!schema_unit_below(c, unit, at, &part, err))
            return false;
        one_unit(c, add_check(list, OP_UNIT, K_ALL_OF), part);
    }
    return true;
}

static bool add_if(schema_compiler *c, const schema_unit *unit, const schema_words *words,
                   check_list *list, rt_error *err)
{
    static const schema_keyword keywords[] = { K_IF, K_THEN, K_ELSE };
    schema_unit **units = rt_arena_alloc(c->arena, RT_COUNT(keywords) * sizeof(*units));
    for (size_t i = 0; i < RT_COUNT(keywords); i++) {
        const node *schema = words->of[keywords[i]];
        if (schema && !schema_unit_below(c, unit, schema, &units[i], err))
            return false;
    }
    schema_check *check = add_check(list, OP_IF, K_IF);
    check->units = units;
    check->unit_count = RT_COUNT(keywords);
    return true;
}

static bool add_not(schema_compiler *c, const schema_unit *unit, const node *schema,
                    check_list *list, rt_error *err)
{
    schema_unit *found;
    if (!schema_unit_below(c, unit, schema, &found, err))
        return false;
    one_unit(c, add_check(list, OP_NOT, K_NOT), found);
    return true;
}

static bool add_references(schema_compiler *c, const schema_unit *unit, const schema_words *words,
                           check_list *list, rt_error *err)
{
    const node *dynamic = words->of[K_DYNAMIC_REF], *recursive = words->of[K_RECURSIVE_REF];
    return (!words->of[K_REF] || add_ref(c, unit, words->of[K_REF], list, err)) &&
           (!dynamic || add_dynamic(c, unit, dynamic, K_DYNAMIC_REF, list, err)) &&
           (!recursive || add_dynamic(c, unit, recursive, K_RECURSIVE_REF, list, err));
}

static bool add_applicators(schema_compiler *c, const schema_unit *unit, const schema_words *words,
                            check_list *list, rt_error *err)
{
    const node *any = words->of[K_ANY_OF], *one = words->of[K_ONE_OF];
    return (!words->of[K_ALL_OF] || add_all_of(c, unit, words->of[K_ALL_OF], list, err)) &&
           (!any || add_units(c, unit, any, add_check(list, OP_ANY_OF, K_ANY_OF), err)) &&
           (!one || add_units(c, unit, one, add_check(list, OP_ONE_OF, K_ONE_OF), err)) &&
           (!words->of[K_NOT] || add_not(c, unit, words->of[K_NOT], list, err)) &&
           (!words->of[K_IF] || add_if(c, unit, words, list, err));
}

static bool compile_checks(schema_compiler *c, schema_unit *unit, const schema_words *words,
                           rt_error *err)
{
    enum { OTHERS_MAX = 10 };
    size_t all = words->of[K_ALL_OF] ? words->of[K_ALL_OF]->size : 0;
    bool has_any = all > 0;
    for (schema_keyword k = K_ENUM; k <= K_CONST; k++)
        has_any |= words->of[k] != NULL;
    for (schema_keyword k = K_ALL_OF; k <= K_IF; k++)
        has_any |= words->of[k] != NULL;
    if (!has_any && !words->of[K_REF] && !words->of[K_DYNAMIC_REF] && !words->of[K_RECURSIVE_REF])
        return true;
    check_list list = { rt_arena_alloc_raw(c->arena, (all + OTHERS_MAX) * sizeof(schema_check)),
                        0 };
    if (words->of[K_ENUM]) {
        schema_check *check = add_check(&list, OP_ENUM, K_ENUM);
        check->value = words->of[K_ENUM];
        check->texts = texts_of(c, check->value);
        unit->kinds &= kinds_in(check->value);
    }
    if (words->of[K_CONST]) {
        add_check(&list, OP_CONST, K_CONST)->value = words->of[K_CONST];
        unit->kinds &= (uint8_t)schema_kind_bit(words->of[K_CONST]);
    }
    if (!add_references(c, unit, words, &list, err) || !add_applicators(c, unit, words, &list, err))
        return false;
    unit->checks = list.checks;
    unit->check_count = list.count;
    return true;
}

/* -- Units ------------------------------------------------------------------------------------- */

static void set_accepts(schema_unit *unit)
{
    unsigned accepts = unit->check_count ? 0 : unit->kinds;
    if (unit->object || unit->unevaluated_properties)
        accepts &= ~(1u << RT_JSON_OBJECT);
    if (unit->array || unit->unevaluated_items)
        accepts &= ~(1u << RT_JSON_ARRAY);
    if (unit->string)
        accepts &= ~(1u << RT_JSON_STRING);
    if (unit->number || unit->wants_integer)
        accepts &= ~(1u << RT_JSON_NUMBER);
    unit->accepts = (uint8_t)accepts;
}

static bool compile_unit(schema_compiler *c, schema_unit *unit, rt_error *err)
{
    if (unit->source->kind == RT_JSON_BOOL) {
        unit->types = KINDS_ALL;
        unit->accepts = unit->kinds = unit->source->is_true ? KINDS_ALL : 0;
        return true;
    }
    schema_words words;
    schema_dialect dialect = c->schema->resources[unit->resource].dialect;
    schema_words_read(unit->source, dialect, &words);
    if (words.of[K_REF] && dialect.draft <= RT_DRAFT_07) {
        const node *ref = words.of[K_REF]; /* before 2019, alone */
        memset(&words, 0, sizeof(words));
        words.of[K_REF] = ref;
    }
    set_types(unit, words.of[K_TYPE]);
    unit->kinds = unit->types;
    if (!schema_object_compile(c, unit, &words, err) ||
        !schema_array_compile(c, unit, &words, err) ||
        !schema_string_compile(c, unit, &words, err) ||
        !schema_number_compile(c, unit, &words, err) || !compile_checks(c, unit, &words, err))
        return false;
    set_accepts(unit);
    return true;
}

static bool compile_queue(schema_compiler *c, rt_error *err)
{
    while (c->filled < c->unit_count) {
        schema_unit *unit = c->units[c->filled++];
        if (!compile_unit(c, unit, err)) {
            schema_place place = { unit->document, unit->resource, unit->source };
            return schema_place_fail(c, &place, err);
        }
    }
    return true;
}

static bool add_dynamic_targets(schema_compiler *c, rt_error *err)
{
    for (size_t r = 0; r < c->schema->resource_count; r++)
        for (size_t i = 0; i < c->dynamic_count; i++)
            for (schema_anchor *a = c->schema->resources[r].anchors; a; a = a->next) {
                schema_place place = { c->schema->resources[r].document, (uint32_t)r, a->target };
                bool is_wanted =
                    a->is_dynamic && !a->unit && rt_str_eq(a->name, c->dynamic_names[i]);
                if (is_wanted && !schema_unit_at(c, place, &a->unit, err))
                    return false;
            }
    return true;
}

/* What all of a check's units together leave to a value. */
typedef struct outline {
    uint8_t kinds;
    uint64_t needs, allows;
} outline;

static outline outline_of(const schema_check *check)
{
    outline out = { 0, UINT64_MAX, 0 };
    for (size_t k = 0; k < check->unit_count; k++) {
        const schema_unit *unit = check->units[k];
        out.kinds |= unit->kinds;
        if (!(unit->kinds >> RT_JSON_OBJECT & 1))
            continue;
        out.needs &= unit->needs;
        out.allows |= unit->allows;
    }
    return out;
}

static bool narrow_unit(schema_unit *unit)
{
    schema_unit before = *unit;
    for (uint32_t i = 0; i < unit->check_count; i++) {
        const schema_check *check = &unit->checks[i];
        if (check->op != OP_UNIT && check->op != OP_ANY_OF && check->op != OP_ONE_OF)
            continue;
        outline some = outline_of(check);
        unit->kinds &= some.kinds;
        if (!(unit->kinds >> RT_JSON_OBJECT & 1))
            continue;
        unit->needs |= some.needs;
        unit->allows &= some.allows;
    }
    return unit->kinds != before.kinds || unit->needs != before.needs ||
           unit->allows != before.allows;
}

/*
 * What a unit's references and alternatives demand becomes its own demand. A few rounds are enough
 * to skip most alternatives by a look at the value's kind and keys.
 */
static void narrow_units(const schema_compiler *c)
{
    bool has_changed = true;
    for (unsigned round = 0; round < NARROW_ROUNDS && has_changed; round++) {
        has_changed = false;
        for (size_t i = c->unit_count; i-- > 0;)
            has_changed |= narrow_unit(c->units[i]);
    }
}

/* The kinds of values a check is sure to let through. */
static unsigned kinds_passed(const schema_check *check)
{
    unsigned kinds = 0;
    if (check->op == OP_UNIT || check->op == OP_ANY_OF)
        for (size_t i = 0; i < check->unit_count; i++)
            kinds |= check->units[i]->accepts;
    return kinds;
}

/*
 * "A number or an expression": where an alternative takes all numbers, so does the unit. Only of
 * scalars: what others have evaluated in an object matters even if one alternative takes it.
 */
static bool widen_unit(schema_unit *unit)
{
    unsigned kinds = unit->kinds & SCALAR_KINDS;
    if (unit->string)
        kinds &= ~(1u << RT_JSON_STRING);
    if (unit->number || unit->wants_integer)
        kinds &= ~(1u << RT_JSON_NUMBER);
    for (uint32_t i = 0; i < unit->check_count; i++)
        kinds &= kinds_passed(&unit->checks[i]);
    bool has_changed = (kinds & ~unit->accepts) != 0;
    unit->accepts |= (uint8_t)kinds;
    return has_changed;
}

static void widen_units(const schema_compiler *c)
{
    bool has_changed = true;
    for (unsigned round = 0; round < NARROW_ROUNDS && has_changed; round++) {
        has_changed = false;
        for (size_t i = c->unit_count; i-- > 0;)
            has_changed |= widen_unit(c->units[i]);
    }
}

static void finish_units(schema_compiler *c)
{
    for (size_t i = 0; i < c->unit_count; i++) {
        schema_unit *unit = c->units[i];
        if (unit->check_count == 1 && unit->checks[0].op == OP_ENUM && !unit->string)
            unit->texts = unit->checks[0].texts;
    }
}

static bool compile_all(schema_compiler *c, rt_json root, rt_error *err)
{
    uint32_t number;
    rt_str fragment, base = schema_uri_without_fragment(c->options->base_uri, &fragment);
    if (!schema_document_add(c, base, rt_json_copy(root, c->arena), &number, err))
        return false;
    schema_place place = { number, 0, c->schema->documents[number].root };
    if (!schema_unit_at(c, place, &c->schema->root, err))
        return false;
    do {
        if (!compile_queue(c, err) || !add_dynamic_targets(c, err))
            return false;
    } while (c->filled < c->unit_count);
    narrow_units(c);
    widen_units(c);
    finish_units(c);
    return true;
}

bool rt_schema_new(rt_json root, const rt_schema_options *options, rt_schema **out, rt_error *err)
{
    static const rt_schema_options none;
    rt_error own = { 0 };
    err = err ? err : &own;
    if (rt_json_is_absent(root))
        return rt_fail(err, RT_INVALID, "there is no schema");
    options = options ? options : &none;
    rt_schema *schema RT_CLEANUP(rt_schema_freep) = calloc(1, sizeof(*schema));
    if (!schema)
        rt_out_of_memory(sizeof(*schema));
    rt_random_bytes(&schema->hash_key, sizeof(schema->hash_key));
    schema->max_steps = options->max_steps ? options->max_steps : RT_SCHEMA_STEPS_MAX;
    rt_schema_draft draft = options->draft ? options->draft : RT_DRAFT_2020_12;
    schema_compiler c = {
        .schema = schema,
        .arena = &schema->arena,
        .options = options,
        .dialect = { (uint8_t)draft, VOCAB_ALL },
    };
    c.are_loaded = rt_arena_alloc(&c.scratch, options->document_count + 1);
    bool ok = compile_all(&c, root, err);
    rt_arena_done(&c.scratch);
    if (!ok)
        return false;
    *out = RT_TAKE(schema);
    return true;
}

void rt_schema_free(rt_schema *schema)
{
    if (!schema)
        return;
    schema_patterns_free(schema);
    rt_arena_done(&schema->arena);
    free(schema);
}

void rt_schema_freep(rt_schema **schema)
{
    rt_schema_free(*schema);
    *schema = NULL;
}
