/* SPDX-License-Identifier: Apache-2.0 */
#include "skills/skills_internal.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/fixture_test.h"

#define SCHEMA "{\"input\":{\"type\":\"object\"},\"output\":{\"type\":\"object\"}}"

typedef struct place {
    char path[64];
    rt_arena arena;
} place;

static void place_open(place *p)
{
    snprintf(p->path, sizeof(p->path), "/tmp/retort-skills-XXXXXX");
    cr_assert(mkdtemp(p->path));
}

static void place_done(place *p)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", p->path);
    cr_assert_eq(system(command), 0);
    rt_arena_done(&p->arena);
}

static void put(place *p, const char *folder, const char *name, const char *text)
{
    rt_str path = rt_arena_printf(&p->arena, "%s/%s", p->path, folder);
    for (char *at = (char *)(uintptr_t)path.ptr + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(path.ptr, 0755);
    }
    mkdir(path.ptr, 0755);
    FILE *file = fopen(rt_arena_printf(&p->arena, "%s/%s", path.ptr, name).ptr, "w");
    cr_assert(file);
    fputs(text, file);
    fclose(file);
}

static void put_skill(place *p, const char *folder, const char *name, const char *version)
{
    rt_str yaml = rt_arena_printf(
        &p->arena, "name: %s\nversion: %s\ndescription: d\nhandler: handler.run\n", name, version);
    put(p, folder, "skill.yaml", yaml.ptr);
    put(p, folder, "schema.json", SCHEMA);
    put(p, folder, "handler.py", "def run(): return {}");
}

static rt_skills *open_at(const place *p, rt_store *store)
{
    rt_str directory = rt_str_of(p->path);
    rt_skills_config config = { .store = store, .directories = &directory, .directory_count = 1 };
    rt_skills *skills = NULL;
    cr_assert(rt_skills_open(&config, &skills, NULL));
    return skills;
}

static size_t count_all(rt_skills *skills, rt_arena *arena)
{
    rt_skill *list;
    size_t count;
    cr_assert(rt_skills_list(skills, &(rt_skill_filter){ 0 }, arena, &list, &count, NULL));
    return count;
}

Test(skill_load, good_skills_load_and_broken_ones_are_named)
{
    place p RT_CLEANUP(place_done) = { 0 };
    place_open(&p);
    put_skill(&p, "one", "one", "1.0.0");
    put_skill(&p, "group/deeper/two", "two", "1.0.0");
    put_skill(&p, ".hidden", "hidden", "1.0.0");
    put_skill(&p, "no_handler", "no_handler", "1.0.0");
    unlink(rt_arena_printf(&p.arena, "%s/no_handler/handler.py", p.path).ptr);
    put_skill(&p, "no_schema", "no_schema", "1.0.0");
    unlink(rt_arena_printf(&p.arena, "%s/no_schema/schema.json", p.path).ptr);
    put_skill(&p, "twice", "one", "1.0.0");
    put(&p, "no_yaml", "handler.py", "x");
    put(&p, "bad_yaml", "skill.yaml", "name: [");
    rt_skills *skills RT_CLEANUP(rt_skills_closep) = open_at(&p, NULL);
    cr_expect_eq(count_all(skills, &p.arena), 2u);
    static const char *const reasons[][2] = {
        { "bad_yaml", "skill.yaml: line " },
        { "no_handler", "handler.py (or .js, .ts, .sh) is missing" },
        { "no_schema", "schema.json is missing" },
        { "no_yaml", "skill.yaml is missing" },
        { "twice", "one 1.0.0 was found before, in " },
    };
    rt_skill_problem *problems;
    cr_assert_eq(rt_skills_problems(skills, &p.arena, &problems), RT_COUNT(reasons));
    for (size_t i = 0; i < RT_COUNT(reasons); i++) {
        cr_expect(rt_str_ends(problems[i].folder, rt_str_of(reasons[i][0])), "%.*s",
                  RT_FMT(problems[i].folder));
        cr_expect(rt_str_starts(problems[i].reason, rt_str_of(reasons[i][1])), "%.*s",
                  RT_FMT(problems[i].reason));
    }
}

Test(skill_load, the_newest_version_is_meant_and_others_can_be_named)
{
    place p RT_CLEANUP(place_done) = { 0 };
    rt_skill s;
    rt_error err = { 0 };
    place_open(&p);
    put_skill(&p, "a", "x", "1.9.0");
    put_skill(&p, "b", "x", "1.10.0");
    rt_skills *skills RT_CLEANUP(rt_skills_closep) = open_at(&p, NULL);
    cr_expect_eq(count_all(skills, &p.arena), 1u);
    cr_assert(rt_skills_find(skills, RT_STR(""), RT_STR("x"), &p.arena, &s, &err), "%s", err.text);
    cr_expect(rt_str_eq_c(s.version, "1.10.0"));
    cr_assert(rt_skills_find(skills, RT_STR(""), RT_STR("x@1.9.0"), &p.arena, &s, &err));
    cr_expect(rt_str_eq_c(s.version, "1.9.0"));
    cr_expect(!rt_skills_find(skills, RT_STR(""), RT_STR("x@2.0.0"), &p.arena, &s, &err));
    cr_expect_str_eq(err.text, "Skill not found: x@2.0.0");
    cr_expect_eq(err.code, RT_NOT_FOUND);
}

Test(skill_load, a_change_is_seen_at_the_next_look)
{
    place p RT_CLEANUP(place_done) = { 0 };
    place_open(&p);
    rt_skills *skills RT_CLEANUP(rt_skills_closep) = open_at(&p, NULL);
    cr_expect_eq(count_all(skills, &p.arena), 0u);
    put_skill(&p, "one", "one", "1.0.0");
    cr_expect_eq(count_all(skills, &p.arena), 1u);
    catalogue *held RT_CLEANUP(skills_catalogue_dropp) = skills_hold(skills, true);
    catalogue *again RT_CLEANUP(skills_catalogue_dropp) = skills_hold(skills, true);
    cr_expect_eq(held, again, "nothing has changed: nothing is read");
    put_skill(&p, "one", "one", "1.0.10");
    unlink(rt_arena_printf(&p.arena, "%s/one/schema.json", p.path).ptr);
    cr_expect_eq(count_all(skills, &p.arena), 0u);
    cr_expect_eq(held->skill_count, 1u, "who holds the old one may go on using it");
}

Test(skill_load, guides_and_skills_may_share_a_folder)
{
    place p RT_CLEANUP(place_done) = { 0 };
    rt_guide *guides, one;
    int fd RT_CLEANUP(rt_closep) = -1;
    uint64_t size;
    place_open(&p);
    put_skill(&p, "both", "both", "1.0.0");
    put(&p, "both", "SKILL.md", "---\nname: both\ndescription: d\n---\nbody");
    put(&p, "both/more", "notes.txt", "12345");
    rt_skills *skills RT_CLEANUP(rt_skills_closep) = open_at(&p, NULL);
    cr_expect_eq(count_all(skills, &p.arena), 1u);
    cr_assert_eq(rt_skills_guides(skills, &p.arena, &guides), 1u);
    cr_assert(rt_skills_guide(skills, RT_STR("both"), &p.arena, &one, NULL));
    cr_expect(rt_str_eq_c(one.body, "body"));
    cr_expect_eq(one.file_count, 4u);
    cr_assert(
        rt_skills_guide_file(skills, RT_STR("both"), RT_STR("more/notes.txt"), &fd, &size, NULL));
    cr_expect_eq(size, 5u);
    static const char *const out[] = { "../both/skill.yaml", "/etc/passwd", "more", "", "x",
                                       "more/../../x" };
    for (size_t i = 0; i < RT_COUNT(out); i++)
        cr_expect(
            !rt_skills_guide_file(skills, RT_STR("both"), rt_str_of(out[i]), &fd, &size, NULL),
            "%s", out[i]);
}

static bool register_text(rt_skills *skills, const char *organisation, const char *version,
                          rt_arena *arena, rt_error *err)
{
    rt_caller caller = { .organisation_id = rt_str_of(organisation), .user_id = RT_STR("alice") };
    rt_str text = rt_arena_printf(
        arena,
        "{\"name\":\"mine\",\"version\":\"%s\",\"description\":\"d\",\"handler_path\":"
        "\"handler.run\",\"handler_code\":\"def run(): return {}\",\"input_schema\":{},"
        "\"output_schema\":{},\"tags\":[\"t\"]}",
        version);
    rt_json request;
    rt_skill made;
    cr_assert(rt_json_parse(text, arena, &request, NULL));
    return rt_skills_register(skills, &caller, request, arena, &made, err);
}

STORE_TEST(skill_rows, a_registered_skill_stays_in_its_organisation_with_its_versions)
{
    place p RT_CLEANUP(place_done) = { 0 };
    rt_error err = { 0 };
    rt_skill s;
    place_open(&p);
    rt_skills *skills RT_CLEANUP(rt_skills_closep) = open_at(&p, store);
    cr_assert(register_text(skills, "local", "1.9.0", &p.arena, &err), "%s", err.text);
    cr_assert(register_text(skills, "local", "1.10.0", &p.arena, &err), "%s", err.text);
    cr_expect(!register_text(skills, "local", "1.9.0", &p.arena, &err));
    cr_expect_eq(err.code, RT_CONFLICT);
    rt_skills *later RT_CLEANUP(rt_skills_closep) = open_at(&p, store);
    cr_assert(rt_skills_find(later, RT_STR("local"), RT_STR("mine"), &p.arena, &s, &err), "%s",
              err.text);
    cr_expect(rt_str_eq_c(s.version, "1.10.0"));
    cr_expect(rt_str_eq_c(s.language, "python"));
    cr_expect_eq(s.folder.len, 0u);
    cr_expect(!rt_skills_find(later, RT_STR("others"), RT_STR("mine"), &p.arena, &s, NULL));
}

Test(skill_load, a_skeleton_is_a_skill)
{
    static const char *const languages[] = { "python", "javascript", "bash" };
    place p RT_CLEANUP(place_done) = { 0 };
    rt_error err = { 0 };
    rt_str folder;
    place_open(&p);
    for (size_t i = 0; i < RT_COUNT(languages); i++)
        cr_assert(rt_skill_skeleton(rt_str_of(p.path), rt_str_of(languages[i]),
                                    rt_str_of(languages[i]), &p.arena, &folder, &err),
                  "%s", err.text);
    rt_skills *skills RT_CLEANUP(rt_skills_closep) = open_at(&p, NULL);
    rt_skill_problem *problems;
    cr_expect_eq(rt_skills_problems(skills, &p.arena, &problems), 0u);
    cr_expect_eq(count_all(skills, &p.arena), 3u);
    cr_expect(!rt_skill_skeleton(rt_str_of(p.path), RT_STR("python"), RT_STR("python"), &p.arena,
                                 &folder, &err));
    cr_expect(!rt_skill_skeleton(rt_str_of(p.path), RT_STR("../x"), RT_STR("python"), &p.arena,
                                 &folder, &err));
}
