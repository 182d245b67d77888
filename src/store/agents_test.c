/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fixture_test.h"

#include "store/agents.h"
#include "store/objects.h"

static const rt_agent_viewer ours = { { "local", 5 }, { "local", 5 } };
static const rt_agent_viewer theirs = { { "rival", 5 }, { "rival", 5 } };
static const rt_agent_viewer operator= { { 0 }, { 0 } };

static rt_agent_row an_agent(const char *id, const char *name)
{
    return (rt_agent_row){ .id = rt_str_of(id),
                           .organisation_id = RT_STR("local"),
                           .workspace_id = RT_STR("local"),
                           .user_id = RT_STR("ann"),
                           .name = rt_str_of(name),
                           .tool_name = rt_str_of(name),
                           .version = RT_STR("1.0.0"),
                           .created_ms = 1000,
                           .updated_ms = 1000,
                           .content = { .language = RT_STR("python"),
                                        .code = RT_STR("return 1"),
                                        .environment = RT_STR("sealed\0bytes") } };
}

static rt_agent_version version_of(const rt_agent_row *row, const char *id, const char *version)
{
    return (rt_agent_version){ .id = rt_str_of(id),
                               .code_agent_id = row->id,
                               .version = rt_str_of(version),
                               .created_ms = row->updated_ms,
                               .content = row->content };
}

static void add(rt_store *store, const rt_agent_row *row)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_agent_version first = version_of(row, rt_id_new("v", &arena).ptr, "1.0.0");
    cr_assert(rt_agent_add(store, row, &first, &err), "%s", err.text);
}

STORE_TEST(agent_rows, have_defaults_and_come_back)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_agent_row row = an_agent("agent_1", "adder"), out;
    add(store, &row);
    cr_assert(rt_agent_find(store, &ours, row.id, &arena, &out, &err), "%s", err.text);
    cr_assert(rt_str_eq(out.content.environment, row.content.environment));
    cr_assert(rt_str_eq_c(out.content.runtime, "vm2") && rt_str_eq_c(out.metadata, "{}"));
    cr_assert(rt_str_eq_c(out.content.packages, "[]") && rt_str_eq_c(out.changelog, "[]"));
    cr_assert(rt_str_eq_c(out.content.validation_type, "zod") && !out.is_public);
    cr_assert(rt_agent_used(store, row.id, &err) && rt_agent_used(store, row.id, &err));
    cr_assert(rt_agent_find_named(store, &ours, RT_STR("adder"), &arena, &out, &err));
    cr_assert_eq(out.usage_count, 2);
}

STORE_TEST(agent_rows, of_one_name_are_one)
{
    rt_error err = { 0 };
    rt_agent_row row = an_agent("agent_1", "adder"), other = an_agent("agent_2", "adder");
    rt_agent_version first = version_of(&other, "v_other", "1.0.0");
    add(store, &row);
    cr_assert(!rt_agent_add(store, &other, &first, &err));
    cr_assert_eq(err.code, RT_CONFLICT);
}

STORE_TEST(agent_rows, are_not_there_for_others)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 }, none = { 0 };
    rt_agent_row row = an_agent("agent_1", "adder"), out, *rows;
    rt_agent_viewer neighbour = { RT_STR("local"), RT_STR("other") };
    size_t count;
    add(store, &row);
    cr_assert(!rt_agent_find(store, &theirs, row.id, &arena, &out, &err));
    cr_assert(!rt_agent_find(store, &theirs, RT_STR("agent_none"), &arena, &out, &none));
    cr_assert(err.code == none.code && strcmp(err.text, none.text) == 0);
    cr_assert(!rt_agent_find(store, &neighbour, row.id, &arena, &out, &err));
    cr_assert(!rt_agent_find_named(store, &theirs, row.tool_name, &arena, &out, &err));
    rt_agent_filter filter = { .viewer = theirs };
    cr_assert(rt_agent_list(store, &filter, &arena, &rows, &count, &err) && count == 0);
    cr_assert(rt_agent_find(store, &operator, row.id, &arena, &out, &err), "%s", err.text);
    out.is_public = true;
    out.updated_ms = 1001;
    cr_assert(rt_agent_update(store, &out, 1000, NULL, &err), "%s", err.text);
    cr_assert(rt_agent_find(store, &theirs, row.id, &arena, &out, &err), "%s", err.text);
    cr_assert(rt_agent_list(store, &filter, &arena, &rows, &count, &err) && count == 1);
    cr_assert_eq(rows[0].content.code.len, 0);
    filter.is_own = true;
    cr_assert(rt_agent_list(store, &filter, &arena, &rows, &count, &err) && count == 0);
}

STORE_TEST(agent_rows, change_with_their_version_or_not_at_all)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_agent_row row = an_agent("agent_1", "adder"), out;
    rt_agent_version again, *versions, one;
    size_t count;
    add(store, &row);
    row.version = RT_STR("1.1.0");
    row.updated_ms = 2000;
    row.content.code = RT_STR("return 2");
    again = version_of(&row, "v2", "1.0.0");
    cr_assert(!rt_agent_update(store, &row, 1000, &again, &err));
    cr_assert(err.code == RT_CONFLICT && strstr(err.text, "1.0.0 exists"));
    cr_assert(rt_agent_find(store, &ours, row.id, &arena, &out, &err));
    cr_assert(rt_str_eq_c(out.version, "1.0.0"));
    again.version = row.version;
    cr_assert(rt_agent_update(store, &row, 1000, &again, &err), "%s", err.text);
    cr_assert(!rt_agent_update(store, &row, 1000, NULL, &err));
    cr_assert(err.code == RT_CONFLICT && strstr(err.text, "meanwhile"));
    cr_assert(rt_agent_version_list(store, row.id, &arena, &versions, &count, &err));
    cr_assert(count == 2 && rt_str_eq_c(versions[0].version, "1.1.0"));
    cr_assert(rt_agent_version_find(store, row.id, RT_STR("1.0.0"), &arena, &one, &err));
    cr_assert(rt_str_eq_c(one.content.code, "return 1"));
    cr_assert(rt_agent_remove(store, row.id, &err), "%s", err.text);
    cr_assert(!rt_agent_version_find(store, row.id, RT_STR("1.0.0"), &arena, &one, &err));
}

STORE_TEST(agent_rows, are_served_by_their_organisation)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_agent_server row = { .organisation_id = RT_STR("local"),
                            .name = RT_STR("figures"),
                            .agents = RT_STR("[{\"id\":\"a\"}]"),
                            .created_ms = 1,
                            .updated_ms = 1 },
                    out;
    cr_assert(rt_agent_server_put(store, &row, &err), "%s", err.text);
    row.agents = RT_STR("[]");
    row.protocol = RT_STR("stdio");
    cr_assert(rt_agent_server_put(store, &row, &err), "%s", err.text);
    cr_assert(rt_agent_server_find(store, &ours, row.name, &arena, &out, &err), "%s", err.text);
    cr_assert(rt_str_eq_c(out.agents, "[]") && rt_str_eq_c(out.protocol, "stdio"));
    cr_assert(!rt_agent_server_find(store, &theirs, row.name, &arena, &out, &err));
}

Test(objects, lie_sealed_and_come_back)
{
    store_fixture where RT_CLEANUP(store_fixture_done) = { 0 };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_vault *vault RT_CLEANUP(rt_vault_closep) = NULL;
    rt_error err = { 0 };
    rt_str text, path = RT_STR("code-agents/agent_1/1.0.0.txt");
    store_fixture_open(&where, "sqlite");
    rt_str key = rt_arena_printf(&arena, "%s/key", where.directory);
    rt_str folder = rt_arena_printf(&arena, "%s/objects", where.directory);
    cr_assert(rt_vault_open(key.ptr, &vault, &err), "%s", err.text);
    rt_objects objects = { folder.ptr, vault };
    cr_assert(rt_objects_put(&objects, path, RT_STR("print(1)"), &err), "%s", err.text);
    cr_assert(rt_objects_get(&objects, path, 100, &arena, &text, &err), "%s", err.text);
    cr_assert(rt_str_eq_c(text, "print(1)"));
    rt_str file = rt_arena_printf(&arena, "%s/%.*s", folder.ptr, RT_FMT(path));
    cr_assert(rt_read_file(file.ptr, 1000, &arena, &text, &err));
    cr_assert_lt(rt_str_find(text, RT_STR("print")), 0);
    rt_objects_remove(&objects, path);
    cr_assert(!rt_objects_get(&objects, path, 100, &arena, &text, &err));
    cr_assert_eq(err.code, RT_NOT_FOUND);
    cr_assert(!rt_objects_put(&objects, RT_STR("../x"), RT_STR(""), &err));
    cr_assert(!rt_objects_put(&objects, RT_STR("a/.b"), RT_STR(""), &err));
    cr_assert(!rt_objects_put(&objects, RT_STR("/etc/x"), RT_STR(""), &err));
}
