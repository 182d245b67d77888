/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - does the request make sense, and does it stay within what the operator allows?
 *
 * Nothing has been reserved yet: whoever fails here has cost nothing but this look.
 */
#include "engine/engine_internal.h"

static bool check_code(const passage *p, rt_error *err)
{
    rt_str code = p->request->code;
    if (rt_str_trim(code).len == 0)
        return rt_fail(err, RT_INVALID, "MISSING_CODE: 'code' is empty");
    if (code.len > p->policy.code_bytes)
        return rt_fail(err, RT_LIMIT, "the code has %zu bytes; at most %llu are allowed", code.len,
                       (unsigned long long)p->policy.code_bytes);
    if (!rt_utf8_valid(code))
        return rt_fail(err, RT_INVALID, "the code is not valid UTF-8");
    return true;
}

/* What the surface vouches for comes on top of what the operator lists. */
static void grant_paths(passage *p)
{
    const rt_request *r = p->request;
    rt_policy *policy = &p->policy;
    size_t count = policy->read_path_count + r->granted_path_count;
    if (r->granted_path_count == 0)
        return;
    rt_str *all = rt_arena_alloc(p->arena, count * sizeof(*all));
    for (size_t i = 0; i < count; i++)
        all[i] = i < policy->read_path_count ? policy->read_paths[i]
                                             : r->granted_paths[i - policy->read_path_count];
    policy->read_paths = all;
    policy->read_path_count = count;
    policy->files = policy->files == RT_FILES_NONE ? RT_FILES_SANDBOXED : policy->files;
}

/* What a session was opened with holds for its runs, unless they say otherwise. */
static bool resolve_policy(passage *p, rt_error *err)
{
    const rt_engine *e = p->engine;
    const rt_request *r = p->request;
    const rt_policy *preset = r->preset.len ? rt_policy_preset(r->preset) : &e->base_policy;
    rt_str language = r->language.len ? r->language : RT_STR("python");
    if (p->session.session) {
        preset = engine_session_policy(&p->session, &language);
        language = r->language.len ? r->language : language;
    }
    p->language = rt_language_find(language);
    if (!p->language)
        return rt_language_unknown(language, err);
    if (!preset)
        return rt_fail(err, RT_INTERNAL, "there is no preset '%.*s'", RT_FMT(r->preset));
    p->policy = *preset;
    if (!rt_json_is_absent(r->policy) && !rt_policy_read(r->policy, p->arena, &p->policy, err))
        return false;
    if (p->session.session) { /* these were settled when it was opened */
        p->policy.memory_bytes = preset->memory_bytes;
        p->policy.scratch_bytes = preset->scratch_bytes;
        p->policy.processes = preset->processes;
    }
    if (!rt_policy_within(&p->policy, &e->ceiling, err))
        return rt_wrap(err, "policy");
    grant_paths(p);
    return true;
}

void engine_hash(const rt_str *parts, size_t count, char out[RT_SHA256_HEX])
{
    rt_sha256_stream hash RT_CLEANUP(rt_sha256_done) = { 0 };
    uint8_t digest[RT_SHA256_SIZE];
    rt_sha256_init(&hash);
    for (size_t i = 0; i < count; i++) {
        uint64_t len = parts[i].len;
        rt_sha256_add(&hash, (rt_str){ (const char *)&len, sizeof(len) });
        rt_sha256_add(&hash, parts[i]);
    }
    rt_sha256_end(&hash, digest);
    rt_hex(out, digest, sizeof(digest));
}

/* With a prelude, the two in the order they run. */
static void hash_code(passage *p)
{
    rt_sha256_stream hash RT_CLEANUP(rt_sha256_done) = { 0 };
    uint8_t digest[RT_SHA256_SIZE];
    rt_sha256_init(&hash);
    rt_sha256_add(&hash, p->request->prelude.code);
    rt_sha256_add(&hash, p->request->code);
    rt_sha256_end(&hash, digest);
    rt_hex(p->code_hash, digest, sizeof(digest));
}

/* What S4-04 hashes is the canonical text; of input that is no JSON, the text itself. */
static bool hash_input(passage *p, rt_error *err)
{
    const rt_request *r = p->request;
    rt_buf canonical RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json input = r->input_json;
    if (!r->has_input || r->is_input_text) {
        rt_sha256_hex(r->has_input ? r->input : RT_STR("{}"), p->input_hash);
        return true;
    }
    rt_buf_init(&canonical, RT_JSON_SIZE_CEILING);
    if (rt_json_is_absent(input) && !rt_json_parse(r->input, p->arena, &input, err))
        return rt_wrap(err, "input");
    rt_json_canonical(input, &canonical);
    if (!rt_buf_ok(&canonical, err))
        return rt_wrap(err, "input");
    rt_sha256_hex(rt_buf_str(&canonical), p->input_hash);
    return true;
}

static bool check_tool(passage *p, rt_error *err)
{
    rt_str id = p->request->tool_id;
    rt_sql_value values[] = { rt_sql_text(id) };
    rt_rows rows;
    if (id.len == 0)
        return true;
    if (!rt_sql_once(p->engine->config.store, RT_TX_READ, "SELECT 1 FROM tools WHERE id = $1",
                     values, 1, p->arena, &rows, err))
        return rt_wrap(err, "look up the tool");
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "Tool not found: %.*s", RT_FMT(id));
    return true;
}

/* Code can tell how its input was written (the order of members, none or an empty one), which the
 * hash on record does not. */
static rt_str describe_input(const passage *p)
{
    const rt_request *r = p->request;
    char hash[RT_SHA256_HEX];
    if (!r->has_input)
        return RT_STR("none");
    rt_sha256_hex(r->input, hash);
    return rt_arena_printf(p->arena, "%d %s", r->is_input_text, hash);
}

/* What else an answer depends on, as text for the hash. */
static rt_str describe_wishes(const passage *p)
{
    const rt_request *r = p->request;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    if (r->privacy.mode == RT_PRIVACY_OFF && rt_json_is_absent(r->input_schema) &&
        rt_json_is_absent(r->output_schema) && rt_json_is_absent(r->tools) && r->intent.len == 0 &&
        r->route.runtime.len == 0 && !r->route.is_long && !r->route.needs_sandbox)
        return (rt_str){ 0 };
    rt_buf_addf(&text, "%.*s %d %d ", RT_FMT(r->route.runtime), r->route.is_long,
                r->route.needs_sandbox);
    rt_buf_addf(&text, "%d %d %d ", (int)r->privacy.mode, r->privacy.is_stable,
                r->privacy.is_detokenized);
    rt_json_print(r->privacy.options, &text);
    rt_json_print(r->input_schema, &text);
    rt_json_print(r->output_schema, &text);
    rt_json_print(r->tools, &text);
    rt_buf_add(&text, r->intent);
    return rt_arena_str(p->arena, rt_buf_str(&text));
}

bool engine_check(passage *p, rt_error *err)
{
    const rt_request *r = p->request;
    if (r->session_id.len > 0 &&
        !rt_session_take(p->engine, &r->caller, r->session_id, &p->session, err))
        return false;
    if (!resolve_policy(p, err) || !check_code(p, err) || !check_tool(p, err) ||
        !engine_grant_read(p->engine, r, p->arena, &p->grant, err) || !hash_input(p, err))
        return false;
    hash_code(p);
    rt_str wishes = describe_wishes(p), sent = describe_input(p);
    rt_str parts[] = { rt_str_of(p->language->name),
                       rt_str_of(p->code_hash),
                       rt_str_of(p->input_hash),
                       rt_policy_fingerprint(&p->policy, p->arena),
                       wishes,
                       sent,
                       r->stdin_data,
                       r->name,
                       r->session_id,
                       r->caller.organisation_id };
    engine_hash(parts, RT_COUNT(parts), p->request_hash);
    return true;
}
