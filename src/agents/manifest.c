/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - an agent as a tool, in the words of those who would call it. */
#include "agents/agents_internal.h"

static const struct {
    const char *name;
    rt_manifest form;
} forms[] = { { "retort", RT_MANIFEST_RETORT },
              { "openai", RT_MANIFEST_OPENAI },
              { "anthropic", RT_MANIFEST_ANTHROPIC },
              { "mcp", RT_MANIFEST_MCP } };

bool rt_manifest_parse(rt_str name, rt_manifest *out, rt_error *err)
{
    for (size_t i = 0; i < RT_COUNT(forms); i++)
        if (rt_str_eq_c(name, forms[i].name)) {
            *out = forms[i].form;
            return true;
        }
    return rt_fail(err, RT_INVALID, "'format' must be one of: retort openai anthropic mcp");
}

rt_str rt_agent_tool_name(rt_str name, rt_arena *arena)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c + ('a' - 'A'));
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool continues = (c & 0xc0) == 0x80; /* the rest of a character that was counted */
        if (!continues)
            rt_buf_addc(&out, is_plain ? c : '-');
    }
    return rt_arena_str(arena, rt_buf_str(&out));
}

static void write_description(const rt_agent *agent, rt_json_writer *w)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text = agent->row.description;
    if (text.len == 0)
        text = rt_arena_printf(&arena, "%.*s code agent", RT_FMT(agent->row.name));
    rt_jw_kstr(w, "description", text);
}

/* A tool's arguments are an object to every client: any other input goes under one name. */
static void write_object_schema(const rt_agent *agent, const char *key, rt_json_writer *w)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json schema;
    bool is_given = agents_json_parse(agent->row.content.input_schema, &arena, &schema);
    bool is_object = rt_json_type(schema) == RT_JSON_OBJECT;
    rt_str type = rt_json_str(rt_json_get_c(schema, "type"));
    rt_jw_key(w, rt_str_of(key));
    if (is_object && rt_str_eq_c(type, "object")) {
        rt_jw_json(w, schema);
        return;
    }
    rt_json_iter it = rt_json_each(is_given && is_object ? schema : (rt_json){ 0 });
    rt_str name;
    rt_json value;
    rt_jw_object(w);
    rt_jw_kstr(w, "type", RT_STR("object"));
    while (rt_json_next(&it, &name, &value))
        if (!rt_str_eq_c(name, "type")) {
            rt_jw_key(w, name);
            rt_jw_json(w, value);
        }
    rt_jw_end(w);
}

static void write_retort(const rt_agent *agent, rt_json_writer *w)
{
    const rt_agent_content *c = &agent->row.content;
    rt_jw_kstr(w, "name", agent->row.name);
    write_description(agent, w);
    rt_jw_kraw(w, "inputSchema", c->input_schema.len ? c->input_schema : RT_STR("{}"));
    rt_jw_kraw(w, "outputSchema", c->output_schema.len ? c->output_schema : RT_STR("null"));
    rt_jw_kobject(w, "handler");
    rt_jw_kstr(w, "type", RT_STR("code_agent"));
    rt_jw_kstr(w, "agentId", agent->row.id);
    rt_jw_kstr(w, "version", agent->version);
    rt_jw_end(w);
}

static void write_openai(const rt_agent *agent, rt_json_writer *w)
{
    rt_jw_kstr(w, "type", RT_STR("function"));
    rt_jw_kobject(w, "function");
    rt_jw_kstr(w, "name", agent->row.tool_name);
    write_description(agent, w);
    write_object_schema(agent, "parameters", w);
    rt_jw_end(w);
}

static void write_anthropic(const rt_agent *agent, rt_json_writer *w)
{
    rt_jw_kstr(w, "name", agent->row.tool_name);
    write_description(agent, w);
    write_object_schema(agent, "input_schema", w);
}

/* MCP wants structured results to be objects. */
static void write_mcp(const rt_agent *agent, rt_json_writer *w)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json output;
    rt_jw_kstr(w, "name", agent->row.tool_name);
    rt_jw_kstr(w, "title", agent->row.name);
    write_description(agent, w);
    write_object_schema(agent, "inputSchema", w);
    if (agents_json_parse(agent->row.content.output_schema, &arena, &output) &&
        rt_str_eq_c(rt_json_str(rt_json_get_c(output, "type")), "object"))
        rt_jw_kjson(w, "outputSchema", output);
}

void rt_agent_write_manifest(const rt_agent *agent, rt_manifest form, rt_json_writer *w)
{
    rt_jw_object(w);
    switch (form) {
    case RT_MANIFEST_RETORT:
        write_retort(agent, w);
        break;
    case RT_MANIFEST_OPENAI:
        write_openai(agent, w);
        break;
    case RT_MANIFEST_ANTHROPIC:
        write_anthropic(agent, w);
        break;
    case RT_MANIFEST_MCP:
        write_mcp(agent, w);
        break;
    }
    rt_jw_end(w);
}
