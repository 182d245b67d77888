/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_test.c - the official JSON-Schema-Test-Suite.
 *
 * Debian's libtest-json-schema-acceptance-perl carries it; RETORT_SCHEMA_SUITE points to another
 * copy (a directory with tests/ and remotes/). Every required case must pass; of the optional ones
 * and of those about formats a few are left out, each for the reason in `exceptions`. With
 * RETORT_SCHEMA_COUNTS set, the counts are printed.
 */
#include "schema/schema.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define DEBIAN_SUITE "/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance"
#define REMOTE_BASE  "http://localhost:1234"

enum { FILE_MAX = 1 << 22, REMOTES_MAX = 400, NAMES_MAX = 256 };

typedef struct suite {
    const char *directory;
    const char *draft; /* the directory's name */
    rt_schema_draft fallback;
    bool asserts_format;
    rt_arena arena;
    rt_schema_document remotes[REMOTES_MAX];
    size_t remote_count;
    size_t passed, failed, excepted;
} suite;

static const struct {
    const char *draft, *file, *group, *test; /* NULL: any */
    const char *why;
} exceptions[] = {
    { NULL, NULL, NULL, NULL, NULL },
};

static bool is_text(const char *wanted, rt_str found)
{
    return !wanted || rt_str_eq_c(found, wanted);
}

static bool is_excepted(const suite *s, const char *file, rt_str group, rt_str test)
{
    for (size_t i = 0; i < RT_COUNT(exceptions); i++)
        if (exceptions[i].why && is_text(exceptions[i].draft, rt_str_of(s->draft)) &&
            is_text(exceptions[i].file, rt_str_of(file)) && is_text(exceptions[i].group, group) &&
            is_text(exceptions[i].test, test))
            return true;
    return false;
}

static bool read_json(const char *path, rt_arena *arena, rt_json *out)
{
    rt_str text;
    rt_error err = { 0 };
    bool ok =
        rt_read_file(path, FILE_MAX, arena, &text, &err) && rt_json_parse(text, arena, out, &err);
    cr_expect(ok, "%s: %s", path, err.text);
    return ok;
}

static bool is_json_file(const char *name)
{
    return rt_str_ends(rt_str_of(name), RT_STR(".json"));
}

static void load_remotes(suite *s, const char *below)
{
    rt_str path = rt_arena_printf(&s->arena, "%s/remotes%s", s->directory, below);
    DIR *entries = opendir(path.ptr);
    if (!entries)
        return;
    for (struct dirent *e; (e = readdir(entries));) {
        rt_str name = rt_arena_printf(&s->arena, "%s/%s", below, e->d_name);
        rt_str file = rt_arena_printf(&s->arena, "%s/remotes%s", s->directory, name.ptr);
        struct stat info;
        if (e->d_name[0] == '.' || stat(file.ptr, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode))
            load_remotes(s, name.ptr);
        else if (is_json_file(e->d_name) && s->remote_count < REMOTES_MAX &&
                 read_json(file.ptr, &s->arena, &s->remotes[s->remote_count].root))
            s->remotes[s->remote_count++].uri =
                rt_arena_printf(&s->arena, REMOTE_BASE "%s", name.ptr);
    }
    closedir(entries);
}

static void judge(suite *s, const char *file, rt_str group, rt_json test, const rt_schema *schema,
                  const rt_error *err)
{
    rt_str name = rt_json_str(rt_json_get_c(test, "description"));
    bool is_valid = rt_json_bool(rt_json_get_c(test, "valid"), false);
    rt_schema_report report = { .arena = &s->arena };
    bool answer = schema && rt_schema_check(schema, rt_json_get_c(test, "data"), &report);
    if (schema && answer == is_valid && answer == (report.error_count == 0)) {
        s->passed++;
        return;
    }
    if (is_excepted(s, file, group, name)) {
        s->excepted++;
        return;
    }
    s->failed++;
    rt_str said = report.error_count ? report.errors[0].message : rt_str_of(err->text);
    cr_expect(false, "%s/%s: %.*s: %.*s: should be %s (%.*s)", s->draft, file, RT_FMT(group),
              RT_FMT(name), is_valid ? "good" : "bad", RT_FMT(said));
}

static void run_group(suite *s, const char *file, rt_json group)
{
    rt_schema_options options = {
        .draft = s->fallback,
        .documents = s->remotes,
        .document_count = s->remote_count,
        .asserts_format = s->asserts_format,
    };
    rt_schema *schema RT_CLEANUP(rt_schema_freep) = NULL;
    rt_error err = { 0 };
    rt_schema_new(rt_json_get_c(group, "schema"), &options, &schema, &err);
    rt_json_iter it = rt_json_each(rt_json_get_c(group, "tests"));
    rt_json test;
    while (rt_json_next(&it, NULL, &test))
        judge(s, file, rt_json_str(rt_json_get_c(group, "description")), test, schema, &err);
}

static void run_directory(suite *s, const char *below)
{
    rt_str path = rt_arena_printf(&s->arena, "%s/tests/%s%s", s->directory, s->draft, below);
    DIR *entries = opendir(path.ptr);
    if (!entries)
        return;
    for (struct dirent *e; (e = readdir(entries));) {
        if (!is_json_file(e->d_name))
            continue;
        rt_json groups, group;
        rt_str file = rt_arena_printf(&s->arena, "%s/%s", path.ptr, e->d_name);
        if (!read_json(file.ptr, &s->arena, &groups))
            continue;
        rt_json_iter it = rt_json_each(groups);
        while (rt_json_next(&it, NULL, &group))
            run_group(s, e->d_name, group);
    }
    closedir(entries);
}

/* Runs one directory of one draft; at least `least` cases must be there. */
static void run_suite(const char *draft, rt_schema_draft fallback, const char *below, size_t least)
{
    suite *s = calloc(1, sizeof(*s));
    s->directory = getenv("RETORT_SCHEMA_SUITE");
    if (!s->directory)
        s->directory = DEBIAN_SUITE;
    s->draft = draft;
    s->fallback = fallback;
    s->asserts_format = strstr(below, "format") != NULL;
    load_remotes(s, "");
    if (s->remote_count == 0) {
        free(s);
        cr_skip_test("the suite is not there: 'make setup' installs it");
    }
    run_directory(s, below);
    if (getenv("RETORT_SCHEMA_COUNTS"))
        printf("%-12s %-17s %4zu passed, %zu failed, %zu left out\n", draft, below, s->passed,
               s->failed, s->excepted);
    cr_expect(s->passed >= least, "only %zu cases of %s%s passed", s->passed, draft, below);
    rt_arena_done(&s->arena);
    free(s);
}

Test(schema_suite, draft_07_required)
{
    run_suite("draft7", RT_DRAFT_07, "", 850);
}

Test(schema_suite, draft_07_optional)
{
    run_suite("draft7", RT_DRAFT_07, "/optional", 100);
}

Test(schema_suite, draft_07_formats)
{
    run_suite("draft7", RT_DRAFT_07, "/optional/format", 400);
}

Test(schema_suite, draft_2019_09_required)
{
    run_suite("draft2019-09", RT_DRAFT_2019_09, "", 1150);
}

Test(schema_suite, draft_2019_09_optional)
{
    run_suite("draft2019-09", RT_DRAFT_2019_09, "/optional", 100);
}

Test(schema_suite, draft_2019_09_formats)
{
    run_suite("draft2019-09", RT_DRAFT_2019_09, "/optional/format", 450);
}

Test(schema_suite, draft_2020_12_required)
{
    run_suite("draft2020-12", RT_DRAFT_2020_12, "", 1150);
}

Test(schema_suite, draft_2020_12_optional)
{
    run_suite("draft2020-12", RT_DRAFT_2020_12, "/optional", 100);
}

Test(schema_suite, draft_2020_12_formats)
{
    run_suite("draft2020-12", RT_DRAFT_2020_12, "/optional/format", 450);
}

Test(schema_suite, draft_06_required)
{
    run_suite("draft6", RT_DRAFT_06, "", 700);
}

Test(schema_suite, draft_04_required)
{
    run_suite("draft4", RT_DRAFT_04, "", 500);
}
