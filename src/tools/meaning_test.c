/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/fixture_test.h"
#include "tools/tools_internal.h"

enum { DIMS = MODELS_FIXTURE_DIMS };

static char root[] = "/tmp/retort-meaning-XXXXXX";
static rt_model *model;

static void open_model(void)
{
    char folder[64];
    rt_error err = { 0 };
    cr_assert(mkdtemp(root));
    snprintf(folder, sizeof(folder), "%s/tiny", root);
    models_fixture_make(folder);
    cr_assert(rt_model_open(folder, &model, &err), "%s", err.text);
}

static void remove_model(void)
{
    char command[128];
    rt_model_closep(&model);
    snprintf(command, sizeof(command), "rm -rf %s", root);
    cr_expect_eq(system(command), 0);
}

TestSuite(meaning, .init = open_model, .fini = remove_model);

static void expect_vectors(const rt_embedder *e, const rt_str *texts, size_t count)
{
    float got[8 * DIMS], wanted[8 * DIMS];
    e->embed(e->ctx, RT_EMBED_DOCUMENTS, texts, count, got);
    cr_assert(rt_model_embed(model, texts, count, wanted, NULL));
    cr_assert_arr_eq(got, wanted, count * DIMS * sizeof(*got));
}

Test(meaning, tools_that_stay_keep_their_vectors_and_new_ones_get_theirs)
{
    tools_meaning *meaning = tools_meaning_new(model);
    const rt_embedder *e = tools_meaning_embedder(meaning);
    const rt_str first[] = { RT_STR("a b"), RT_STR("bb"), RT_STR("") };
    const rt_str second[] = { RT_STR("new: ab"), RT_STR("bb"), RT_STR("bb"), RT_STR("a b") };
    cr_assert_eq(e->dims, DIMS);
    expect_vectors(e, first, RT_COUNT(first));
    expect_vectors(e, first, RT_COUNT(first));
    expect_vectors(e, second, RT_COUNT(second));
    expect_vectors(e, first, RT_COUNT(first));
    tools_meaning_free(meaning);
}

Test(meaning, without_a_model_there_is_no_embedder)
{
    cr_assert_null(tools_meaning_embedder(tools_meaning_new(NULL)));
    tools_meaning_free(NULL);
}

Test(meaning, a_registry_with_a_model_searches_by_it)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    rt_tool_hit hits[4];
    cr_assert(rt_tools_open(&(rt_tools_config){ .model = model }, &tools, &err), "%s", err.text);
    cr_assert_eq(rt_tools_search(tools, RT_STR("a b"), &arena, hits, 4), 0);
}
