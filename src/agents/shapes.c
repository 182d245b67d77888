/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.c - agents and versions as JSON, in the shapes of the HTTP API. */
#include "agents/agents_internal.h"

static void write_text(rt_json_writer *w, const char *key, rt_str text)
{
    if (text.len > 0)
        rt_jw_kstr(w, key, text);
    else
        rt_jw_knull(w, key);
}

static void write_raw(rt_json_writer *w, const char *key, rt_str json, rt_str otherwise)
{
    rt_jw_kraw(w, key, json.len > 0 ? json : otherwise);
}

static void write_time(rt_json_writer *w, const char *key, uint64_t ms)
{
    char text[RT_ISO8601_SIZE];
    rt_iso8601_write(text, ms);
    rt_jw_kstr(w, key, rt_str_of(text));
}

static void write_content(const rt_agent_content *c, rt_json_writer *w)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_jw_kstr(w, "language", c->language);
    rt_jw_kstr(w, "runtime", c->runtime.len ? c->runtime : RT_STR("vm2"));
    rt_jw_kstr(w, "entryPoint", agents_entry_point(c, &arena));
    rt_jw_ku64(w, "codeBytes", c->code_bytes);
    write_text(w, "codeStoragePath", c->code_storage_path);
    write_raw(w, "inputSchema", c->input_schema, RT_STR("null"));
    write_raw(w, "outputSchema", c->output_schema, RT_STR("null"));
    rt_jw_kstr(w, "validationType", c->validation_type);
    write_raw(w, "packages", c->packages, RT_STR("[]"));
    write_raw(w, "tools", c->tools, RT_STR("[]"));
    write_raw(w, "policy", c->policy, RT_STR("null"));
    if (c->code.len > 0) {
        rt_jw_kstr(w, "code", c->code);
        write_raw(w, "files", c->files, RT_STR("{}"));
    }
}

static void write_row(const rt_agent_row *row, rt_str version, rt_json_writer *w)
{
    rt_jw_kstr(w, "id", row->id);
    rt_jw_kstr(w, "name", row->name);
    write_text(w, "description", row->description);
    rt_jw_kstr(w, "version", version);
    rt_jw_kstr(w, "toolName", row->tool_name);
    rt_jw_kstr(w, "organizationId", row->organisation_id);
    write_text(w, "workspaceId", row->workspace_id);
    write_text(w, "userId", row->user_id);
    rt_jw_kbool(w, "isPublic", row->is_public);
    rt_jw_ku64(w, "usageCount", row->usage_count);
    rt_jw_kbool(w, "deprecated", row->is_deprecated);
    write_text(w, "deprecation", row->deprecation);
    rt_jw_kbool(w, "isTool", row->is_tool);
    write_text(w, "toolVersion", row->tool_version);
    write_raw(w, "changelog", row->changelog, RT_STR("[]"));
    write_raw(w, "metadata", row->metadata, RT_STR("{}"));
    write_time(w, "createdAt", row->created_ms);
    write_time(w, "updatedAt", row->updated_ms);
    write_content(&row->content, w);
}

void rt_agent_row_write(const rt_agent_row *row, rt_json_writer *w)
{
    write_row(row, row->version, w);
}

void rt_agent_write(const rt_agent *agent, rt_json_writer *w)
{
    write_row(&agent->row, agent->version, w);
    rt_jw_kstr(w, "currentVersion", agent->row.version);
    rt_jw_key(w, RT_STR("environment"));
    if (rt_json_is_absent(agent->environment))
        rt_jw_raw(w, RT_STR("{}"));
    else
        rt_jw_json(w, agent->environment);
}

void rt_agent_version_write(const rt_agent_version *v, rt_json_writer *w)
{
    rt_jw_kstr(w, "id", v->id);
    rt_jw_kstr(w, "codeAgentId", v->code_agent_id);
    rt_jw_kstr(w, "version", v->version);
    write_text(w, "userId", v->user_id);
    write_text(w, "changelog", v->changelog);
    write_time(w, "createdAt", v->created_ms);
    write_content(&v->content, w);
}
