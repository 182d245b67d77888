/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "models/fixture_test.h"
#include "models/models_internal.h"

/* tests/models judges the numbers; this is about threads, names and what is left behind. */

enum { DIMS = MODELS_FIXTURE_DIMS };

static char root[] = "/tmp/retort-models-XXXXXX";
static rt_arena arena;

static const char *path_of(const char *name)
{
    return rt_arena_printf(&arena, "%s/%s", root, name).ptr;
}

static void make_folder(void)
{
    cr_assert(mkdtemp(root));
    models_fixture_make(path_of("tiny"));
}

static void remove_all(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", root);
    cr_expect_eq(system(command), 0);
    rt_arena_done(&arena);
}

TestSuite(models, .init = make_folder, .fini = remove_all);

Test(models, a_folder_without_modules_is_an_encoder_whose_tokens_are_averaged)
{
    rt_error err = { 0 };
    rt_model *model RT_CLEANUP(rt_model_closep) = NULL;
    cr_assert(rt_model_open(path_of("tiny/"), &model, &err), "%s", err.text);
    cr_expect_str_eq(rt_model_name(model), "tiny");
    cr_expect_str_eq(rt_model_kind(model), "bert");
    cr_expect_eq(rt_model_dims(model), DIMS);
    cr_expect_eq(rt_model_tokens(model), MODELS_FIXTURE_TOKENS);
    cr_expect(!rt_model_is_normalized(model));
}

typedef struct asking {
    const rt_model *model;
    float wanted[DIMS];
    bool is_wrong;
} asking;

static void *ask_often(void *ctx)
{
    asking *a = ctx;
    float out[3 * DIMS];
    rt_str texts[] = { RT_STR("b aab"), RT_STR("ab ba abba"), RT_STR("") };
    for (int i = 0; i < 200 && !a->is_wrong; i++)
        a->is_wrong = !rt_model_embed(a->model, texts, 3, out, NULL) ||
                      memcmp(out + DIMS, a->wanted, sizeof(a->wanted)) != 0;
    return NULL;
}

Test(models, many_threads_may_embed_with_one_model)
{
    rt_error err = { 0 };
    rt_models *models RT_CLEANUP(rt_models_freep) = rt_models_new(rt_str_of(root));
    pthread_t threads[4];
    asking a[4];
    const rt_model *model;
    rt_str text = RT_STR("ab ba abba");
    cr_assert(rt_models_find(models, RT_STR("tiny"), &model, &err), "%s", err.text);
    for (size_t i = 0; i < RT_COUNT(a); i++) {
        a[i] = (asking){ .model = model };
        cr_assert(rt_model_embed(model, &text, 1, a[i].wanted, &err), "%s", err.text);
        cr_assert_eq(pthread_create(&threads[i], NULL, ask_often, &a[i]), 0);
    }
    for (size_t i = 0; i < RT_COUNT(a); i++) {
        pthread_join(threads[i], NULL);
        cr_expect(!a[i].is_wrong);
    }
}

Test(models, both_kinds_of_arithmetic_agree)
{
    rt_error err = { 0 };
    rt_model *model RT_CLEANUP(rt_model_closep) = NULL;
    encoder e;
    cr_assert(rt_model_open(path_of("tiny"), &model, &err), "%s", err.text);
    float out[2][DIMS], room[1024];
    uint32_t ids[] = { 2, 4, 7, 5, 3 };
    size_t ends[] = { RT_COUNT(ids) };
    e = *model_encoder(model);
    cr_assert_leq(encoder_room(&e, RT_COUNT(ids)), RT_COUNT(room));
    for (size_t k = 0; k < 2; k++) {
        e.kernels = k ? kernels_best() : kernels_portable();
        encoder_run(&e, &(encoder_batch){ ids, ends, 1 }, room, out[k]);
    }
    for (size_t i = 0; i < DIMS; i++)
        cr_expect_float_eq(out[0][i], out[1][i], 1e-5);
}

Test(models, an_installed_model_is_a_copy_that_is_found_by_name)
{
    rt_error err = { 0 };
    rt_models *models RT_CLEANUP(rt_models_freep) = rt_models_new(rt_str_of(path_of("in/stalled")));
    const rt_model *model, *again;
    rt_model_entry *entries;
    size_t count;
    rt_str name;
    cr_assert(rt_models_list(models, &arena, &entries, &count, &err) && count == 0);
    cr_assert(!rt_models_find(models, RT_STR("tiny"), &model, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
    rt_model_addition what = { .folder = path_of("tiny"), .name = RT_STR("org/small") };
    cr_assert(rt_models_add(models, &what, &arena, &name, &err), "%s", err.text);
    cr_expect_str_eq(name.ptr, "small");
    cr_assert(!rt_models_add(models, &what, &arena, &name, &err));
    cr_expect_eq(err.code, RT_CONFLICT);
    what.replaces = true;
    cr_assert(rt_models_add(models, &what, &arena, &name, &err), "%s", err.text);
    cr_assert(rt_models_find(models, RT_STR("sentence-transformers/small"), &model, &err));
    cr_assert(rt_models_find(models, RT_STR("small"), &again, &err) && model == again);
    cr_assert(!rt_models_find(models, RT_STR("smal"), &again, &err));
    cr_expect(strstr(err.text, "did you mean small?"), "%s", err.text);
    cr_assert(!rt_models_find(models, RT_STR(".."), &again, &err));
    cr_assert(rt_models_list(models, &arena, &entries, &count, &err) && count == 1);
    cr_expect(rt_str_eq_c(entries[0].name, "small") && entries[0].model == model);
}
