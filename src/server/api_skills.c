/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_skills.c - /skills: list, look at, call and register skills, in the shapes that clients of
 * the Code Executor Service know; guides step by step; and what is on record of calls.
 *
 * A call that failed is answered with 200 and success false. Members nobody knows are passed over.
 */
#include "server/executions.h"
#include "server/server_internal.h"

#define TAGS_MAX 50

static bool room(const http_request *r, rt_skills **out, rt_error *err)
{
    *out = r->server->config.skills;
    return *out || rt_fail(err, RT_UNAVAILABLE, "Skill registry not initialized");
}

/* ---- looking ---- */

static bool list_skills(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str tags[TAGS_MAX];
    rt_skill_filter filter = { .organisation_id = http_scope(r),
                               .tags = tags,
                               .flag = http_query(r, "safety_flag") };
    rt_skills *skills;
    rt_skill *found;
    size_t count;
    rt_json_writer w;
    for (size_t i = 0; i < r->query_count && filter.tag_count < TAGS_MAX; i++)
        if (rt_str_eq_c(r->query[i].name, "tags"))
            tags[filter.tag_count++] = r->query[i].value;
    if (!room(r, &skills, err) || !rt_skills_list(skills, &filter, &r->arena, &found, &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "skills");
    for (size_t i = 0; i < count; i++)
        rt_skill_write(&found[i], &w);
    rt_jw_end(&w);
    rt_jw_ku64(&w, "total", count);
    rt_jw_end(&w);
    return true;
}

static bool find_skill(http_request *r, rt_skill *out, rt_error *err)
{
    rt_skills *skills;
    return room(r, &skills, err) &&
           rt_skills_find(skills, http_scope(r), http_param(r, "id"), &r->arena, out, err);
}

static bool get_skill(http_request *r, http_reply *reply, rt_error *err)
{
    rt_skill skill;
    rt_json_writer w;
    if (!find_skill(r, &skill, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_skill_write(&skill, &w);
    return true;
}

static bool get_schema(http_request *r, http_reply *reply, rt_error *err)
{
    rt_skill skill;
    rt_json_writer w;
    if (!find_skill(r, &skill, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "skill_name", skill.name);
    rt_jw_kstr(&w, "version", skill.version);
    rt_jw_kraw(&w, "input_schema", skill.input_schema);
    rt_jw_kraw(&w, "output_schema", skill.output_schema);
    rt_jw_end(&w);
    return true;
}

static bool list_problems(http_request *r, http_reply *reply, rt_error *err)
{
    rt_skills *skills;
    rt_skill_problem *problems;
    rt_json_writer w;
    if (!room(r, &skills, err))
        return false;
    size_t count = rt_skills_problems(skills, &r->arena, &problems);
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "problems");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "folder", problems[i].folder);
        rt_jw_kstr(&w, "reason", problems[i].reason);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

/* ---- calling ---- */

static const http_member call_members[] = {
    { "skill", HTTP_STRING, true },
    { "args", HTTP_OBJECT, true },
    { "request_id", HTTP_STRING | HTTP_NULL, false },
    { "actor_id", HTTP_STRING | HTTP_NULL, false },
    { "actor_type", HTTP_STRING | HTTP_NULL, false },
    { "metadata", HTTP_OBJECT | HTTP_NULL, false },
    { "approval_id", HTTP_STRING | HTTP_NULL, false },
    { "wait_for_approval", HTTP_BOOL | HTTP_NULL, false },
    { "privacy", HTTP_STRING | HTTP_OBJECT | HTTP_NULL, false },
};

/* Members we know must be what they are; others may be there. */
static bool check_members(rt_json body, const http_member *members, size_t count, rt_error *err)
{
    if (rt_json_type(body) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "the body must be a JSON object");
    for (size_t i = 0; i < count; i++) {
        rt_json value = rt_json_get_c(body, members[i].name);
        if (rt_json_is_absent(value) && members[i].is_required)
            return rt_fail(err, RT_INVALID, "'%s' is missing", members[i].name);
        if (!rt_json_is_absent(value) && !(members[i].kinds & HTTP_KIND(rt_json_type(value))))
            return rt_fail(err, RT_INVALID, "'%s' must not be of type %s", members[i].name,
                           rt_json_type_name(value));
    }
    return true;
}

static bool read_call(http_request *r, rt_skill_call *out, rt_error *err)
{
    rt_json body, wish;
    if (!http_json(r, &body, err) ||
        !check_members(body, call_members, RT_COUNT(call_members), err) ||
        !http_member_label(body, "skill", &out->skill, err) ||
        !http_member_label(body, "request_id", &out->request_id, err) ||
        !http_member_label(body, "actor_id", &out->actor_id, err) ||
        !http_member_label(body, "actor_type", &out->actor_type, err) ||
        !http_member_label(body, "approval_id", &out->approval_id, err))
        return false;
    out->args = rt_json_get_c(body, "args");
    out->waits_for_approval = rt_json_bool(rt_json_get_c(body, "wait_for_approval"), false);
    wish = rt_json_get_c(body, "privacy");
    return rt_json_type(wish) <= RT_JSON_NULL || rt_privacy_wish_read(wish, &out->privacy, err);
}

static bool execute_skill(http_request *r, http_reply *reply, rt_error *err)
{
    executions_attendance here = { .request = r, .canceller = { .wake = -1 } };
    rt_skill_call call = { .caller = &r->caller,
                           .trace = r->trace,
                           .canceller = &here.canceller,
                           .on_work = executions_attend,
                           .work_ctx = &here };
    rt_skill_result result;
    rt_skills *skills;
    if (!room(r, &skills, err) || !read_call(r, &call, err))
        return false;
    bool ok = rt_skills_execute(skills, &call, &r->arena, &result, err);
    executions_leave(&here);
    if (!ok)
        return false;
    http_reply_text(reply, 200, NULL, result.json);
    return true;
}

static bool register_skill(http_request *r, http_reply *reply, rt_error *err)
{
    rt_skills *skills;
    rt_json body;
    rt_skill skill;
    rt_json_writer w;
    if (!room(r, &skills, err) || !http_json(r, &body, err) ||
        !rt_skills_register(skills, &r->caller, body, &r->arena, &skill, err) ||
        !server_audit(r, "skill.register", skill.name, err))
        return false;
    http_reply_header(reply, "Location",
                      rt_arena_printf(&r->arena, "/skills/%.*s", RT_FMT(skill.name)));
    http_reply_json(reply, 201, &w);
    rt_skill_write(&skill, &w);
    return true;
}

/* ---- guides ---- */

static bool list_guides(http_request *r, http_reply *reply, rt_error *err)
{
    rt_skills *skills;
    rt_guide *guides;
    rt_json_writer w;
    if (!room(r, &skills, err))
        return false;
    size_t count = rt_skills_guides(skills, &r->arena, &guides);
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "guides");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "name", guides[i].name);
        rt_jw_kstr(&w, "description", guides[i].description);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_ku64(&w, "total", count);
    rt_jw_end(&w);
    return true;
}

static bool get_guide(http_request *r, http_reply *reply, rt_error *err)
{
    rt_skills *skills;
    rt_guide guide;
    rt_json_writer w;
    if (!room(r, &skills, err) ||
        !rt_skills_guide(skills, http_param(r, "name"), &r->arena, &guide, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "name", guide.name);
    rt_jw_kstr(&w, "description", guide.description);
    rt_jw_kstr(&w, "body", guide.body);
    rt_jw_karray(&w, "files");
    for (size_t i = 0; i < guide.file_count; i++)
        rt_jw_str(&w, guide.files[i]);
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

static bool get_guide_file(http_request *r, http_reply *reply, rt_error *err)
{
    rt_skills *skills;
    rt_str path = http_param(r, "path");
    if (!room(r, &skills, err) || !rt_skills_guide_file(skills, http_param(r, "name"), path,
                                                        &reply->fd, &reply->fd_size, err))
        return false;
    reply->has_fd = true;
    reply->status = 200;
    reply->content_type = "application/octet-stream";
    http_reply_attachment(r, reply, path);
    return true;
}

/* ---- provenance ---- */

static bool get_provenance(http_request *r, http_reply *reply, rt_error *err)
{
    rt_provenance link;
    rt_json_writer w;
    if (!rt_provenance_get(r->server->config.store, http_scope(r), http_param(r, "execution_id"),
                           &r->arena, &link, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_provenance_write(&link, &w);
    return true;
}

static bool list_provenance(http_request *r, http_reply *reply, rt_error *err)
{
    rt_provenance *links;
    size_t count;
    rt_json_writer w;
    if (!rt_provenance_list(r->server->config.store, http_scope(r), http_query(r, "actor_id"),
                            http_query(r, "skill"), (unsigned)http_query_u64(r, "limit", 50),
                            &r->arena, &links, &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "provenance");
    for (size_t i = 0; i < count; i++)
        rt_provenance_write(&links[i], &w);
    rt_jw_end(&w);
    rt_jw_ku64(&w, "total", count);
    rt_jw_end(&w);
    return true;
}

#define ROW(a_method, a_path, an_id, a_summary, a_role, an_action)                                 \
    .method = (a_method), .path = (a_path), .id = (an_id), .tag = "Skills",                        \
    .summary = (a_summary), .role = (a_role), .action = (an_action), .flags = HTTP_SKILL_ERRORS

const http_operation api_skill_rows[] = {
    { ROW("GET", "/skills/list", "listSkills", "List skills", RT_ROLE_VIEWER, "list skills"),
      .about = "The newest version of each. A skill matches that has any of the tags.",
      .parameters = HTTP_PARAMETERS(
          { "tags", HTTP_IN_QUERY, HTTP_TYPE_TEXTS, "with this tag; may be repeated", NULL, NULL, 1,
            100 },
          { "safety_flag", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "with this safety flag",
            "none pii_risk external_call side_effect file_system network_access", NULL, 0, 0 }),
      .responses = HTTP_RESPONSES({ 200, "SkillList", "The skills" }), .errors = "422",
      .handler = list_skills },
    { ROW("GET", "/skills/{id}", "getSkill", "A skill's metadata", RT_ROLE_VIEWER, "list skills"),
      .about = "By name, or name@version.",
      .responses = HTTP_RESPONSES({ 200, "Skill", "The skill" }), .errors = "404 422",
      .handler = get_skill },
    { ROW("GET", "/skills/{id}/schema", "getSkillSchema", "What a skill takes and gives",
          RT_ROLE_VIEWER, "list skills"),
      .responses = HTTP_RESPONSES({ 200, "SkillSchema", "Its schemas" }), .errors = "404 422",
      .handler = get_schema },
    { ROW("GET", "/skills/problems", "listSkillProblems", "Folders that hold no usable skill",
          RT_ROLE_ADMIN, "see the skills' folders"),
      .responses = HTTP_RESPONSES({ 200, "SkillProblems", "Each with its reason" }),
      .errors = "422", .handler = list_problems },
    { ROW("POST", "/skills/execute", "executeSkill", "Call a skill", RT_ROLE_MEMBER, "call skills"),
      .about =
          "Arguments and result are checked against the skill's schemas. A call that failed is "
          "answered with 200 and success false; every call leaves a provenance record. A skill "
          "that needs an approval answers with its approval_id: call again with it.",
      .request = "SkillExecuteRequest",
      .responses = HTTP_RESPONSES({ 200, "SkillExecution", "The call has ended" }),
      .errors = "409 422 499", .handler = execute_skill },
    { ROW("POST", "/skills/register", "registerSkill", "Register a skill, or a new version",
          RT_ROLE_ADMIN, "register skills"),
      .request = "SkillRegistration", .responses = HTTP_RESPONSES({ 201, "Skill", "Registered" }),
      .errors = "404 409 422", .handler = register_skill },
    { ROW("GET", "/skills/guides", "listGuides", "List guides (folders with a SKILL.md)",
          RT_ROLE_VIEWER, "list skills"),
      .responses = HTTP_RESPONSES({ 200, "GuideList", "Names and descriptions" }), .errors = "422",
      .handler = list_guides },
    { ROW("GET", "/skills/guides/{name}", "getGuide", "The text of a guide", RT_ROLE_VIEWER,
          "list skills"),
      .responses = HTTP_RESPONSES({ 200, "Guide", "Its text, and its files' names" }),
      .errors = "404 422", .handler = get_guide },
    { ROW("GET", "/skills/guides/{name}/files/{path*}", "getGuideFile", "A file of a guide",
          RT_ROLE_VIEWER, "list skills"),
      .responses = HTTP_RESPONSES({ 200, HTTP_BYTES, "The file" }), .errors = "404 422",
      .handler = get_guide_file },
    { ROW("GET", "/skills/provenance", "listSkillProvenance", "Calls on record", RT_ROLE_VIEWER,
          "read records"),
      .about = "Newest first, by actor or skill or both.",
      .parameters = HTTP_PARAMETERS(
          { "actor_id", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only calls of this actor", NULL, NULL, 1,
            255 },
          { "skill", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only calls of this skill", NULL, NULL, 1,
            255 },
          { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "at most so many", NULL, "50", 1, 500 }),
      .responses = HTTP_RESPONSES({ 200, "ProvenanceList", "Links of the chain" }), .errors = "422",
      .handler = list_provenance },
    { ROW("GET", "/skills/provenance/{execution_id}", "getSkillProvenance",
          "The provenance of a call", RT_ROLE_VIEWER, "read records"),
      .responses = HTTP_RESPONSES({ 200, "Provenance", "The link" }), .errors = "404 422",
      .handler = get_provenance },
    { 0 },
};
