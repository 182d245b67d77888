/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refs.c - from a reference to the schema it means.
 *
 * A reference is a URI against the base of where it stands, and a fragment: nothing, a JSON
 * pointer or an anchor. The URI is looked up among what is loaded, then among the documents that
 * were given, then among the published metaschemas. There is no fourth place.
 */
#include "schema/schema_internal.h"

schema_anchor *schema_anchor_find(const schema_resource *resource, rt_str name)
{
    for (schema_anchor *a = resource->anchors; a; a = a->next)
        if (rt_str_eq(a->name, name))
            return a;
    return NULL;
}

static bool load_given(schema_compiler *c, size_t i, rt_error *err)
{
    const rt_schema_document *given = &c->options->documents[i];
    uint32_t number;
    rt_str fragment, uri = schema_uri_without_fragment(given->uri, &fragment);
    c->are_loaded[i] = true;
    if (rt_json_is_absent(given->root))
        return rt_fail(err, RT_INVALID, "the document %.*s is empty", RT_FMT(uri));
    if (!schema_document_add(c, uri, rt_json_copy(given->root, c->arena), &number, err))
        return rt_wrap(err, "%.*s", RT_FMT(uri));
    return true;
}

static bool load_metaschema(schema_compiler *c, rt_str uri, rt_str text, rt_error *err)
{
    rt_json root;
    uint32_t number;
    return rt_json_parse(text, c->arena, &root, err) &&
           schema_document_add(c, uri, root, &number, err);
}

/* A document found under this very URI; failing that all of them, as one may contain the URI. */
static bool load(schema_compiler *c, rt_str uri, rt_error *err)
{
    rt_str fragment;
    for (size_t i = 0; i < c->options->document_count; i++)
        if (!c->are_loaded[i] &&
            rt_str_eq(schema_uri_without_fragment(c->options->documents[i].uri, &fragment), uri))
            return load_given(c, i, err);
    rt_str text = schema_metaschema_text(uri);
    if (text.len)
        return load_metaschema(c, uri, text, err);
    for (size_t i = 0; i < c->options->document_count; i++)
        if (!c->are_loaded[i])
            load_given(c, i, NULL); /* a broken one is nobody's trouble before it is asked for */
    return true;
}

static bool find_resource(schema_compiler *c, rt_str uri, uint32_t *out, rt_error *err)
{
    if (schema_uri_find(c, uri, out))
        return true;
    if (!load(c, uri, err))
        return false;
    if (schema_uri_find(c, uri, out))
        return true;
    return rt_fail(err, RT_NOT_FOUND, "no document %.*s was given", RT_FMT(uri));
}

/* -- Pointers ---------------------------------------------------------------------------------- */

static rt_str unescaped(rt_str token, rt_arena *arena)
{
    if (!memchr(token.ptr, '~', token.len))
        return token;
    char *out = rt_arena_alloc_raw(arena, token.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < token.len; i++) {
        bool is_escape = token.ptr[i] == '~' && i + 1 < token.len &&
                         (token.ptr[i + 1] == '0' || token.ptr[i + 1] == '1');
        out[len++] = is_escape ? (token.ptr[++i] == '0' ? '~' : '/') : token.ptr[i];
    }
    return (rt_str){ out, len };
}

static const node *step_down(const node *at, rt_str token)
{
    uint64_t index;
    if (at->kind == RT_JSON_OBJECT)
        return rt_json_get((rt_json){ at }, token).node;
    bool is_index = at->kind == RT_JSON_ARRAY && rt_str_to_u64(token, &index) &&
                    (token.len == 1 || token.ptr[0] != '0');
    return is_index ? rt_json_at((rt_json){ at }, index).node : NULL;
}

static bool follow_pointer(schema_compiler *c, rt_str pointer, schema_place *place, rt_error *err)
{
    const schema_document *document = &c->schema->documents[place->document];
    rt_str rest = rt_str_slice(pointer, 1, pointer.len), token;
    while (rt_str_cut(&rest, '/', &token)) {
        const node *next = step_down(place->at, unescaped(token, &c->scratch));
        if (!next)
            return rt_fail(err, RT_NOT_FOUND, "there is nothing at #%.*s", RT_FMT(pointer));
        place->at = next;
        uint32_t known = document->places[next - document->root];
        if (known)
            place->resource = known - 1;
    }
    return true;
}

static bool follow_fragment(schema_compiler *c, rt_str fragment, schema_place *place, rt_error *err)
{
    rt_str text = schema_uri_decoded(fragment, &c->scratch);
    if (text.len == 0)
        return true;
    if (text.ptr[0] == '/')
        return follow_pointer(c, text, place, err);
    const schema_anchor *anchor = schema_anchor_find(&c->schema->resources[place->resource], text);
    if (!anchor)
        return rt_fail(err, RT_NOT_FOUND, "there is no anchor #%.*s", RT_FMT(text));
    place->at = anchor->target;
    return true;
}

bool schema_ref_find(schema_compiler *c, uint32_t from, rt_str ref, schema_place *out,
                     rt_error *err)
{
    rt_str fragment, uri = schema_uri_without_fragment(ref, &fragment);
    uint32_t resource = from;
    if (uri.len) {
        rt_str full = schema_uri_resolve(c->schema->resources[from].uri, uri, c->arena);
        if (!find_resource(c, full, &resource, err))
            return rt_wrap(err, "$ref %.*s", RT_FMT(ref));
    }
    const schema_resource *target = &c->schema->resources[resource];
    schema_place place = { target->document, resource, target->root };
    if (!follow_fragment(c, fragment, &place, err) || !schema_document_walk(c, &place, err))
        return rt_wrap(err, "$ref %.*s", RT_FMT(ref));
    /* The walk may have found that the place is a resource of its own. */
    const schema_document *document = &c->schema->documents[place.document];
    place.resource = document->places[place.at - document->root] - 1;
    *out = place;
    return true;
}
