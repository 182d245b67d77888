/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.c - one call of a skill, from its arguments to its record.
 *
 * The order stands in rt_skills_execute(): find, permit, approve, run, conclude. The run itself is
 * the engine's, and so is its record; what never came that far (no such skill, not allowed, no
 * approval) is recorded here, and so is what C code upstairs answered.
 */
#include "skills/skills_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define OUTPUT_SHOWN 2000 /* bytes of what a handler printed, in the log */

static bool fail(skill_passage *p, const char *fmt, ...) RT_PRINTF(2, 3);

/* The call failed; returns false. */
static bool fail(skill_passage *p, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    p->error = rt_arena_vprintf(p->arena, fmt, args);
    va_end(args);
    return false;
}

static rt_str name_of(const skill_passage *p)
{
    return p->skill ? p->skill->shown.name : p->call->skill;
}

/* -- The record of what the engine has not seen ------------------------------------------------ */

static bool record(skill_passage *p, const char *error_type, rt_error *err)
{
    const rt_caller *c = p->call->caller;
    rt_execution_row row = {
        .id = p->id,
        .organisation_id = c->organisation_id,
        .workspace_id = c->workspace_id,
        .user_id = p->call->actor_id.len ? p->call->actor_id : c->user_id,
        .key_id = c->key_id,
        .actor_type = skills_actor_type(p),
        .surface = p->call->surface,
        .skill_name = name_of(p),
        .skill_version = p->skill ? p->skill->shown.version : RT_STR("unknown"),
        .language = p->skill ? p->skill->shown.language : RT_STR("none"),
        .runtime = error_type ? RT_STR("none") : RT_STR("native"),
        .status = error_type ? RT_STR("FAILED") : RT_STR("SUCCESS"),
        .error_type = rt_str_of(error_type),
        .error_message = rt_str_slice(p->error, 0, 500),
        .input_hash = rt_str_of(p->inputs_hash),
        .output_hash = rt_str_of(p->outputs_hash),
        .input_bytes = p->canonical.len,
        .output_bytes = p->value.len,
        .duration_us = (rt_now_ns() - p->began_ns) / 1000,
        .created_ms = p->began_ms,
        .started_ms = p->began_ms,
        .finished_ms = rt_wall_ms(),
    };
    return !p->skills->config.store || rt_execution_record(p->skills->config.store, &row, err) ||
           rt_wrap(err, "record the call");
}

/* -- May it be called? ------------------------------------------------------------------------- */

static bool is_allowed(const skill_passage *p)
{
    const rt_skills_config *config = &p->skills->config;
    for (size_t i = 0; i < config->allowed_count; i++)
        if (rt_str_eq_c(config->allowed[i], "*") ||
            rt_str_eq(config->allowed[i], p->skill->shown.name))
            return true;
    return false;
}

static bool permit(skill_passage *p)
{
    static const struct {
        unsigned flag;
        const char *does;
    } outside[] = { { RT_SKILL_EXTERNAL_CALL, "makes external calls (external_call)" },
                    { RT_SKILL_NETWORK_ACCESS, "needs the network (network_access)" } };
    for (size_t i = 0; i < RT_COUNT(outside); i++)
        if ((p->skill->shown.flags & outside[i].flag) && !is_allowed(p))
            return fail(p,
                        "%.*s %s and is not allowed to here; an operator allows it with "
                        "skills.allow_external: [%.*s]",
                        RT_FMT(p->skill->shown.name), outside[i].does,
                        RT_FMT(p->skill->shown.name));
    return true;
}

static bool needs_approval(const skill_passage *p)
{
    const rt_skill *s = &p->skill->shown;
    bool has_effect = (s->flags & RT_SKILL_SIDE_EFFECT) && !p->skills->config.is_approval_off;
    return !p->call->is_approved && (s->requires_approval || has_effect);
}

/* One approval is for one call: this skill with these arguments, by whoever has its id. */
static bool approve(skill_passage *p, rt_error *err)
{
    rt_engine *engine = p->skills->config.engine;
    const rt_skill *s = &p->skill->shown;
    rt_error why = { 0 };
    rt_question question = {
        .caller = p->call->caller,
        .execution_id = p->id,
        .operation =
            rt_arena_printf(p->arena, "skills:%.*s@%.*s", RT_FMT(s->name), RT_FMT(s->version)),
        .reason = s->requires_approval ? RT_STR("the skill requires approval")
                                       : RT_STR("the skill has side effects"),
        .arguments = p->canonical,
    };
    if (!needs_approval(p))
        return true;
    skills_log(p, "WARNING", "Skill %.*s requires approval", RT_FMT(s->name));
    if (p->call->approval_id.len > 0)
        return rt_engine_redeem(engine, &question, p->call->approval_id, &why) ||
               fail(p, "%s", why.text);
    if (p->call->waits_for_approval)
        return rt_engine_ask(engine, &question, p->call->canceller, &why) ||
               fail(p, "%s", why.text);
    rt_approval_row row;
    if (!rt_engine_propose(engine, &question, p->arena, &row, err))
        return false;
    p->approval_id = row.id;
    return fail(p,
                "Skill %.*s requires approval; when %.*s is approved, call again with "
                "approval_id",
                RT_FMT(s->name), RT_FMT(row.id));
}

/* -- Running ----------------------------------------------------------------------------------- */

/* How a handler is called, in its language; the module was loaded before. */
static void write_code(const skill_passage *p, rt_request *r)
{
    const skill *s = p->skill;
    bool is_python = rt_str_eq_c(s->shown.language, "python");
    rt_str function = s->function;
    const rt_language *language = rt_language_find(s->shown.language);
    r->language = s->shown.language;
    r->name = RT_STR("call");
    r->prelude.code = s->code;
    r->prelude.name = rt_arena_printf(p->arena, "handler.%s", language->ending);
    if (is_python)
        r->code =
            rt_arena_printf(p->arena, "import handler\nhandler.%.*s(**inputs)", RT_FMT(function));
    else if (!rt_str_eq_c(s->shown.language, "bash"))
        r->code = rt_arena_printf(p->arena, "handler.%.*s(inputs)", RT_FMT(function));
    else if (function.len > 0)
        r->code = function;
    else {
        r->code = s->code;
        r->name = r->prelude.name;
        r->prelude = (rt_prelude){ 0 };
    }
}

static bool write_policy(const skill_passage *p, rt_json *out, rt_error *err)
{
    const skill *s = p->skill;
    uint64_t ms = s->timeout_ms ? s->timeout_ms : p->skills->config.timeout_ms;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_addf(&text, "{\"timeout\":\"%llums\",\"cpu\":\"%llums\"", (unsigned long long)ms,
                (unsigned long long)ms);
    if (s->memory_bytes)
        rt_buf_addf(&text, ",\"memory\":\"%llu\"", (unsigned long long)s->memory_bytes);
    rt_buf_addc(&text, '}');
    return rt_json_parse(rt_buf_str(&text), p->arena, out, err);
}

/* The tools skill.yaml names, and no others. */
static bool write_tools(const skill_passage *p, rt_json *out, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_array(&w);
    for (size_t i = 0; i < p->skill->tool_count; i++)
        rt_jw_str(&w, p->skill->tools[i]);
    rt_jw_end(&w);
    return rt_json_parse(rt_buf_str(&text), p->arena, out, err);
}

static rt_privacy_wish choose_privacy(const skill_passage *p)
{
    rt_privacy_wish wish = p->call->privacy;
    if (!(p->skill->shown.flags & RT_SKILL_PII_RISK))
        return wish;
    if (wish.mode == RT_PRIVACY_OFF)
        wish.mode = p->skills->config.privacy;
    wish.is_noted = true;
    return wish;
}

/* Its own folder, and what skill.yaml names: both were put there by the operator. */
static void grant_files(const skill_passage *p, rt_request *r)
{
    const skill *s = p->skill;
    if (!(s->shown.flags & RT_SKILL_FILE_SYSTEM) || s->shown.folder.len == 0)
        return;
    rt_str *paths = rt_arena_alloc(p->arena, sizeof(*paths) * (s->read_path_count + 1));
    paths[0] = s->shown.folder;
    for (size_t i = 0; i < s->read_path_count; i++)
        paths[i + 1] = s->read_paths[i];
    r->granted_paths = paths;
    r->granted_path_count = s->read_path_count + 1;
}

static bool fill_request(const skill_passage *p, rt_caller *caller, rt_request *r, rt_error *err)
{
    const rt_skill_call *call = p->call;
    const skill *s = p->skill;
    rt_buf input RT_CLEANUP(rt_buf_done) = { 0 };
    *caller = *call->caller;
    caller->actor_type = skills_actor_type(p);
    rt_buf_init(&input, RT_JSON_SIZE_CEILING);
    rt_json_print(call->args, &input);
    *r = (rt_request){ .caller = *caller,
                       .surface = call->surface,
                       .id = p->id,
                       .input = rt_arena_str(p->arena, rt_buf_str(&input)),
                       .has_input = true,
                       .input_json = call->args,
                       .input_checker = s->input,
                       .output_checker = s->output,
                       .adds_defaults = true,
                       .privacy = choose_privacy(p),
                       .user_id = call->actor_id,
                       .skill_name = s->shown.name,
                       .skill_version = s->shown.version,
                       .budget_bytes = RT_JSON_SIZE_CEILING,
                       .is_nested = call->is_nested,
                       .trace = call->trace,
                       .canceller = call->canceller,
                       .on_work = call->on_work,
                       .work_ctx = call->work_ctx };
    write_code(p, r);
    grant_files(p, r);
    return rt_buf_ok(&input, err) && write_policy(p, &r->policy, err) &&
           write_tools(p, &r->tools, err);
}

/* -- What came back ---------------------------------------------------------------------------- */

/* The engine says what does not fit after this. */
static rt_str without_preamble(rt_str message)
{
    ptrdiff_t at = rt_str_find(message, RT_STR("schema: "));
    return at < 0 ? message : rt_str_slice(message, (size_t)at + 8, message.len);
}

static void describe_error(skill_passage *p, rt_json answer, rt_status status)
{
    rt_json error = rt_json_get_c(answer, "error");
    rt_str name = rt_json_str(rt_json_get_c(error, "name"));
    rt_str message = rt_json_str(rt_json_get_c(error, "message"));
    rt_str called = p->skill->shown.name;
    uint64_t ms = p->skill->timeout_ms ? p->skill->timeout_ms : p->skills->config.timeout_ms;
    int64_t line = 0;
    if (rt_str_eq_c(name, "INPUT_VALIDATION_ERROR")) {
        message = without_preamble(message);
        fail(p, "Input validation failed for %.*s: %.*s", RT_FMT(called), RT_FMT(message));
        skills_log(p, "ERROR", "Input validation failed: %.*s", RT_FMT(message));
        return;
    }
    if (rt_str_eq_c(name, "OUTPUT_VALIDATION_ERROR"))
        fail(p, "Output validation failed for %.*s: %.*s", RT_FMT(called),
             RT_FMT(without_preamble(message)));
    else if (status == RT_STATUS_TIMEOUT)
        fail(p, "Execution exceeded timeout of %gs", (double)ms / 1000);
    else if (rt_json_i64(rt_json_get_c(error, "line"), &line) && line > 0)
        fail(p, "Handler execution failed: %.*s%s%.*s (line %lld)", RT_FMT(name),
             name.len ? ": " : "", RT_FMT(message), (long long)line);
    else
        fail(p, "Handler execution failed: %.*s%s%.*s", RT_FMT(name), name.len ? ": " : "",
             RT_FMT(message));
    skills_log(p, "ERROR", "Execution failed: %.*s", RT_FMT(p->error));
}

/* What a handler prints is no answer, but who looks for its mistakes wants to see it. */
static void log_output(skill_passage *p, rt_json answer)
{
    rt_str out = rt_json_str(rt_json_get_c(answer, "stdout"));
    rt_str text = rt_json_str(rt_json_get_c(answer, "stderr"));
    rt_buf context RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    bool is_shell = rt_str_eq_c(p->skill->shown.language, "bash");
    if ((out.len == 0 || is_shell) && text.len == 0)
        return;
    skills_log(p, "INFO", "Handler output");
    rt_json_begin(&w, &context);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "stdout", rt_str_slice(out, 0, OUTPUT_SHOWN));
    rt_jw_kstr(&w, "stderr", rt_str_slice(text, 0, OUTPUT_SHOWN));
    rt_jw_end(&w);
    p->logs[p->log_count - 1].context = rt_arena_str(p->arena, rt_buf_str(&context));
}

static void log_hash(skill_passage *p, const char *what, const char *hash)
{
    skills_log(p, "INFO", "%s hash: %.16s...", what, hash);
}

static rt_str print(rt_json value, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_print(value, &text);
    return rt_arena_str(arena, rt_buf_str(&text));
}

static void copy_hash(char to[RT_SHA256_HEX], rt_str from)
{
    snprintf(to, RT_SHA256_HEX, "%.*s", RT_FMT(from));
}

static bool read_answer(skill_passage *p, const rt_answer *answer, rt_error *err)
{
    rt_json doc, tools;
    if (!rt_json_parse(answer->json, p->arena, &doc, err))
        return rt_wrap(err, "the engine's answer");
    tools = rt_json_get_c(doc, "tool_ids");
    if (rt_json_type(tools) == RT_JSON_ARRAY)
        p->tool_ids = print(tools, p->arena);
    rt_str error_name = rt_json_str(rt_json_get_c(rt_json_get_c(doc, "error"), "name"));
    bool is_refused = rt_str_eq_c(error_name, "INPUT_VALIDATION_ERROR");
    if (!is_refused) {
        log_hash(p, "Input", p->inputs_hash);
        skills_log(p, "INFO", "Executing skill: %.*s", RT_FMT(p->skill->shown.name));
        log_output(p, doc);
    }
    if (answer->status != RT_STATUS_SUCCESS) {
        describe_error(p, doc, answer->status);
        return true;
    }
    skills_log(p, "INFO", "Validating outputs");
    copy_hash(p->outputs_hash, rt_json_str(rt_json_get_c(rt_json_get_c(doc, "hashes"), "output")));
    p->value = print(rt_json_get_c(doc, "result"), p->arena);
    return true;
}

/* -- Natives ----------------------------------------------------------------------------------- */

static bool fits(skill_passage *p, const rt_schema *schema, rt_json value, const char *what)
{
    rt_schema_report report = { .arena = p->arena, .max_errors = 1 };
    if (rt_schema_check(schema, value, &report))
        return true;
    rt_str why = report.error_count ? report.errors[0].message : RT_STR("a limit was reached");
    return fail(p, "%s validation failed for %.*s: %.*s", what, RT_FMT(p->skill->shown.name),
                RT_FMT(why));
}

static void hash_value(skill_passage *p, rt_json value)
{
    rt_buf canonical RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&canonical, RT_JSON_SIZE_CEILING);
    rt_json_canonical(value, &canonical);
    rt_sha256_hex(rt_buf_str(&canonical), p->outputs_hash);
}

/* *is_mine: C code has answered, or the arguments do not fit. */
static bool run_native(skill_passage *p, bool *is_mine, rt_error *err)
{
    const rt_skills_config *config = &p->skills->config;
    const rt_skill_native *native = NULL;
    rt_json args = p->call->args, value;
    rt_str text;
    for (size_t i = 0; i < config->native_count && !native; i++)
        if (rt_str_eq_c(p->skill->shown.name, config->natives[i].name) &&
            p->skill->shown.organisation_id.len == 0)
            native = &config->natives[i];
    if (!native || !rt_schema_check(p->skill->input, args, NULL))
        return true; /* the engine says what does not fit */
    if (!rt_schema_add_defaults(p->skill->input, args, p->arena, &args, err) ||
        !native->answer(native->ctx, args, p->arena, is_mine, &text, err))
        return false;
    if (!*is_mine)
        return true;
    if (!rt_json_parse(text, p->arena, &value, err))
        return rt_wrap(err, "the answer of %s", native->name);
    log_hash(p, "Input", p->inputs_hash);
    skills_log(p, "INFO", "Executing skill: %.*s", RT_FMT(p->skill->shown.name));
    skills_log(p, "INFO", "Validating outputs");
    if (!fits(p, p->skill->output, value, "Output"))
        return record(p, "ValidationError", err);
    p->value = print(value, p->arena);
    hash_value(p, value);
    return record(p, NULL, err);
}

/* -- The order of events ----------------------------------------------------------------------- */

static bool begin(skill_passage *p, rt_error *err)
{
    rt_buf canonical RT_CLEANUP(rt_buf_done) = { 0 };
    const rt_skill_call *call = p->call;
    rt_buf_init(&canonical, RT_JSON_SIZE_CEILING);
    if (rt_json_type(call->args) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "'args' must be an object");
    if (!rt_request_label(call->skill) || call->skill.len == 0)
        return rt_fail(err, RT_INVALID, "'skill' must be the name of a skill");
    if (call->caller->role < RT_ROLE_MEMBER)
        return rt_fail(err, RT_DENIED,
                       "You do not have permission to call skills; ask for a key "
                       "with the role member");
    rt_json_canonical(call->args, &canonical);
    if (!rt_buf_ok(&canonical, err))
        return rt_wrap(err, "args");
    p->canonical = rt_arena_str(p->arena, rt_buf_str(&canonical));
    p->id = rt_uuid_new(p->arena);
    rt_sha256_hex(p->canonical, p->inputs_hash);
    return true;
}

/* What the skill or its caller brought about is an answer; that there is no room now is none. */
static bool is_answer(rt_code code)
{
    return code == RT_INVALID || code == RT_DENIED || code == RT_NOT_FOUND || code == RT_LIMIT ||
           code == RT_UNSUPPORTED;
}

static bool run(skill_passage *p, rt_error *err)
{
    rt_caller caller;
    rt_request request;
    rt_answer answer;
    bool is_mine = false;
    if (!run_native(p, &is_mine, err))
        return false;
    if (is_mine)
        return true;
    if (!fill_request(p, &caller, &request, err))
        return false;
    if (rt_engine_execute(p->skills->config.engine, &request, p->arena, &answer, err))
        return read_answer(p, &answer, err);
    if (!is_answer(err->code))
        return false;
    fail(p, "%s", err->text);
    skills_log(p, "ERROR", "Execution failed: %s", err->text);
    *err = (rt_error){ 0 };
    return record(p, "ExecutionError", err);
}

/* What keeps a call from being run at all; true: nothing does. */
static bool may_run(skill_passage *p, rt_error *err)
{
    if (!p->skill) {
        rt_str name = p->call->skill;
        skills_log(p, "ERROR", "Execution failed: Skill not found: %.*s", RT_FMT(name));
        return fail(p, "Skill not found: %.*s", RT_FMT(name));
    }
    skills_log(p, "INFO", "Validating inputs for %.*s", RT_FMT(p->skill->shown.name));
    if (permit(p) && approve(p, err))
        return true;
    skills_log(p, "ERROR", "Execution failed: %.*s", RT_FMT(p->error));
    return false;
}

static void finish(skill_passage *p)
{
    p->elapsed_ms = round((double)(rt_now_ns() - p->began_ns) / 1e4) / 100;
    if (p->error.len > 0)
        return;
    log_hash(p, "Output", p->outputs_hash);
    skills_log(p, "INFO", "Execution completed in %.2fms", p->elapsed_ms);
}

bool rt_skills_execute(rt_skills *skills, const rt_skill_call *asked, rt_arena *arena,
                       rt_skill_result *out, rt_error *err)
{
    rt_skill_call call = *asked;
    rt_error problem = { 0 };
    call.surface = call.surface.len ? call.surface : RT_STR("skills");
    skill_passage p = { .skills = skills,
                        .call = &call,
                        .arena = arena,
                        .began_ns = rt_now_ns(),
                        .began_ms = rt_wall_ms() };
    if (!begin(&p, err))
        return false;
    catalogue *c RT_CLEANUP(skills_catalogue_dropp) = skills_hold(skills, false);
    p.skill = skills_catalogue_find(c, call.caller->organisation_id, call.skill);
    if (!p.skill) { /* it may have come a moment ago */
        skills_catalogue_dropp(&c);
        c = skills_hold(skills, true);
        p.skill = skills_catalogue_find(c, call.caller->organisation_id, call.skill);
    }
    bool may = may_run(&p, &problem);
    bool ok =
        may ? run(&p, &problem) : problem.code == RT_OK && record(&p, "PermissionError", &problem);
    if (!ok) {
        *err = problem;
        return false;
    }
    finish(&p);
    return skills_write_answer(&p, out, err);
}
