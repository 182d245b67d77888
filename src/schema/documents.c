/* SPDX-License-Identifier: Apache-2.0 */
/*
 * documents.c - the documents a schema can refer to: what in them is a schema, and its names.
 *
 * A document is walked once, from schema to schema along the keywords that hold schemas; what lies
 * under other keys is data, and an "$id" there means nothing. On the way each schema is checked
 * against the rules of its draft, its $id becomes a resource, its anchors are noted.
 */
#include "schema/schema_internal.h"

static void *grown(rt_arena *arena, void *items, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return items;
    size_t more = *cap ? *cap * 2 : 8;
    items = rt_arena_resize(arena, items, *cap * size, more * size);
    *cap = more;
    return items;
}

static uint64_t hash_uri(rt_str uri)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < uri.len; i++)
        hash = (hash ^ (uint8_t)uri.ptr[i]) * 0x100000001B3u;
    return hash;
}

bool schema_uri_find(const schema_compiler *c, rt_str uri, uint32_t *resource)
{
    uint64_t hash = hash_uri(uri);
    for (size_t i = 0; i < c->uri_count; i++)
        if (c->uris[i].hash == hash && rt_str_eq(c->uris[i].uri, uri)) {
            *resource = c->uris[i].resource;
            return true;
        }
    return false;
}

/* Of two resources with one URI, the first keeps it. */
static void name_resource(schema_compiler *c, rt_str uri, uint32_t resource)
{
    uint32_t other;
    if (schema_uri_find(c, uri, &other))
        return;
    c->uris = grown(&c->scratch, c->uris, c->uri_count, &c->uri_cap, sizeof(*c->uris));
    c->uris[c->uri_count++] = (schema_uri_name){ hash_uri(uri), uri, resource };
}

static uint32_t add_resource(schema_compiler *c, const schema_resource *resource)
{
    rt_schema *s = c->schema;
    s->resources =
        grown(c->arena, s->resources, s->resource_count, &c->resource_cap, sizeof(*s->resources));
    s->resources[s->resource_count] = *resource;
    name_resource(c, resource->uri, (uint32_t)s->resource_count);
    return (uint32_t)s->resource_count++;
}

static void add_anchor(schema_compiler *c, uint32_t resource, rt_str name, const node *target,
                       bool is_dynamic)
{
    schema_resource *r = &c->schema->resources[resource];
    schema_anchor *anchor = rt_arena_alloc(c->arena, sizeof(*anchor));
    *anchor = (schema_anchor){ r->anchors, name, target, NULL, is_dynamic };
    r->anchors = anchor;
}

/* -- Dialects ---------------------------------------------------------------------------------- */

static const rt_schema_document *given_document(const schema_compiler *c, rt_str uri)
{
    rt_str fragment, given;
    uri = schema_uri_without_fragment(uri, &fragment);
    for (size_t i = 0; i < c->options->document_count; i++) {
        given = schema_uri_without_fragment(c->options->documents[i].uri, &fragment);
        if (rt_str_eq(given, uri))
            return &c->options->documents[i];
    }
    return NULL;
}

static bool read_vocabularies(rt_json list, schema_dialect *out, rt_error *err)
{
    out->vocabularies = VOCAB_CORE;
    rt_json_iter it = rt_json_each(list);
    rt_str uri;
    rt_json is_needed;
    while (rt_json_next(&it, &uri, &is_needed)) {
        uint8_t vocabulary = schema_vocabulary_of(uri);
        if (!vocabulary && rt_json_bool(is_needed, false))
            return rt_fail(err, RT_UNSUPPORTED, "the vocabulary %.*s is not known", RT_FMT(uri));
        out->vocabularies |= vocabulary;
    }
    return true;
}

/* A draft, or a metaschema among the documents that says which vocabularies it uses. */
static bool find_dialect(const schema_compiler *c, rt_str uri, schema_dialect *out, rt_error *err)
{
    rt_schema_draft draft = schema_draft_of(uri);
    if (rt_str_find(uri, RT_STR("json-schema.org/draft-03/")) >= 0)
        return rt_fail(err, RT_UNSUPPORTED, "draft-03 is older than what is understood here");
    if (draft) {
        *out = (schema_dialect){ (uint8_t)draft, VOCAB_ALL };
        return true;
    }
    const rt_schema_document *meta = given_document(c, uri);
    if (!meta)
        return true;
    rt_schema_draft base = schema_draft_of(rt_json_str(rt_json_get_c(meta->root, "$schema")));
    if (base)
        *out = (schema_dialect){ (uint8_t)base, VOCAB_ALL };
    rt_json list = rt_json_get_c(meta->root, "$vocabulary");
    return rt_json_type(list) != RT_JSON_OBJECT || out->draft < RT_DRAFT_2019_09 ||
           read_vocabularies(list, out, err);
}

/* -- Walking ----------------------------------------------------------------------------------- */

static bool is_old(schema_dialect dialect)
{
    return dialect.draft <= RT_DRAFT_07;
}

static const node *id_of(const schema_words *words)
{
    return words->of[K_ID] ? words->of[K_ID] : words->of[K_OLD_ID];
}

/* What "$id" makes of the place: a resource of its own, in old drafts perhaps only an anchor. */
static bool enter_id(schema_compiler *c, schema_place *place, const node *id, rt_error *err)
{
    const schema_resource *outer = &c->schema->resources[place->resource];
    schema_dialect dialect = outer->dialect;
    rt_str fragment, uri = schema_uri_without_fragment(rt_json_node_text(id), &fragment);
    if (fragment.len && !is_old(dialect))
        return rt_fail(err, RT_INVALID, "$id must not have a fragment; $anchor names a place");
    if (uri.len == 0 && fragment.len) {
        add_anchor(c, place->resource, fragment, place->at, false);
        return true;
    }
    rt_json own = rt_json_get_c((rt_json){ place->at }, "$schema");
    if (!find_dialect(c, rt_json_str(own), &dialect, err))
        return false;
    rt_str full = schema_uri_resolve(outer->uri, uri, c->arena);
    if (place->at == outer->root) { /* of a document: it is a second name for it */
        c->schema->resources[place->resource].uri = full;
        name_resource(c, full, place->resource);
    } else {
        schema_resource inner = { full, place->document, place->at, dialect, NULL };
        place->resource = add_resource(c, &inner);
    }
    if (fragment.len)
        add_anchor(c, place->resource, fragment, place->at, false);
    return true;
}

static void note_anchors(schema_compiler *c, const schema_place *place, const schema_words *words)
{
    const node *anchor = words->of[K_ANCHOR], *dynamic = words->of[K_DYNAMIC_ANCHOR];
    const node *recursive = words->of[K_RECURSIVE_ANCHOR];
    if (anchor)
        add_anchor(c, place->resource, rt_json_node_text(anchor), place->at, false);
    if (dynamic)
        add_anchor(c, place->resource, rt_json_node_text(dynamic), place->at, true);
    if (recursive && recursive->is_true)
        add_anchor(c, place->resource, RT_STR(""), place->at, true);
}

static bool walk(schema_compiler *c, schema_place place, unsigned depth, rt_error *err);

static bool walk_all(schema_compiler *c, schema_place place, const node *container, unsigned depth,
                     rt_error *err)
{
    size_t key = container->kind == RT_JSON_OBJECT;
    const node *end = rt_json_node_after(container);
    for (const node *at = container + 1; at < end; at = rt_json_node_after(at + key)) {
        place.at = at + key;
        bool is_names = container->kind == RT_JSON_OBJECT && place.at->kind == RT_JSON_ARRAY;
        if (!is_names && !walk(c, place, depth, err))
            return false;
    }
    return true;
}

static bool walk_below(schema_compiler *c, schema_place place, const schema_words *words,
                       bool only_definitions, unsigned depth, rt_error *err)
{
    for (schema_keyword k = 0; k < K_COUNT; k++) {
        const node *value = words->of[k];
        schema_holds holds = value ? schema_keyword_holds(k) : HOLDS_NO_SCHEMA;
        if (holds == HOLDS_NO_SCHEMA || (only_definitions && k != K_DEFS && k != K_DEFINITIONS))
            continue;
        bool is_one = holds == HOLDS_SCHEMA ||
                      (holds == HOLDS_SCHEMA_OR_SCHEMAS && value->kind != RT_JSON_ARRAY);
        schema_place child = { place.document, place.resource, value };
        if (is_one ? !walk(c, child, depth + 1, err) : !walk_all(c, place, value, depth + 1, err))
            return false;
    }
    return true;
}

static bool fail_at(schema_compiler *c, schema_place place, const schema_words *words,
                    schema_keyword keyword, rt_error *err)
{
    if (words && words->of[keyword])
        place.at = words->of[keyword];
    return schema_place_fail(c, &place, err);
}

static bool walk(schema_compiler *c, schema_place place, unsigned depth, rt_error *err)
{
    if (depth > RT_SCHEMA_NESTING_MAX)
        return rt_fail(err, RT_LIMIT, "schemas are nested deeper than %d levels",
                       RT_SCHEMA_NESTING_MAX);
    schema_document *document = &c->schema->documents[place.document];
    uint32_t *mark = &document->places[place.at - document->root];
    if (*mark)
        return true;
    if (place.at->kind != RT_JSON_OBJECT && place.at->kind != RT_JSON_BOOL) {
        rt_fail(err, RT_INVALID, "must be a schema: an object, true or false");
        return fail_at(c, place, NULL, K_ID, err);
    }
    *mark = place.resource + 1;
    schema_words words;
    schema_words_read(place.at, c->schema->resources[place.resource].dialect, &words);
    schema_keyword bad = K_ID;
    bool is_shadowed = words.of[K_REF] && is_old(c->schema->resources[place.resource].dialect);
    const node *id = id_of(&words);
    bool has_id = id && id->kind == RT_JSON_STRING && (!is_shadowed || place.at == document->root);
    if (has_id && !enter_id(c, &place, id, err))
        return fail_at(c, place, &words, words.of[K_ID] ? K_ID : K_OLD_ID, err);
    if (has_id) { /* perhaps another dialect */
        *mark = place.resource + 1;
        schema_words_read(place.at, c->schema->resources[place.resource].dialect, &words);
    }
    if (!schema_words_check(&words, c->schema->resources[place.resource].dialect, &bad, err))
        return fail_at(c, place, &words, bad, err);
    note_anchors(c, &place, &words);
    return walk_below(c, place, &words, is_shadowed, depth, err);
}

bool schema_document_walk(schema_compiler *c, const schema_place *from, rt_error *err)
{
    return walk(c, *from, 0, err);
}

bool schema_document_add(schema_compiler *c, rt_str uri, rt_json root, uint32_t *out, rt_error *err)
{
    rt_schema *s = c->schema;
    size_t count = (size_t)(rt_json_node_after(root.node) - root.node);
    c->node_count += count;
    if (c->node_count > RT_SCHEMA_NODES_MAX)
        return rt_fail(err, RT_LIMIT, "the schema and what it refers to have more than %zu values",
                       RT_SCHEMA_NODES_MAX);
    s->documents =
        grown(c->arena, s->documents, s->document_count, &c->document_cap, sizeof(*s->documents));
    uint32_t number = (uint32_t)s->document_count++;
    s->documents[number] = (schema_document){
        .uri = rt_arena_str(c->arena, uri),
        .root = root.node,
        .places = rt_arena_alloc(c->arena, count * sizeof(uint32_t)),
        .units = rt_arena_alloc(c->arena, count * sizeof(schema_unit *)),
    };
    schema_resource resource = { s->documents[number].uri, number, root.node, c->dialect, NULL };
    if (!find_dialect(c, rt_json_str(rt_json_get_c(root, "$schema")), &resource.dialect, err))
        return rt_wrap(err, "#/$schema");
    if (number == 0)
        c->dialect = resource.dialect;
    *out = number;
    schema_place place = { number, add_resource(c, &resource), root.node };
    return schema_document_walk(c, &place, err);
}
