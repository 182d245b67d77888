/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.c - embed_text by an installed model; without one, the skill's own handler answers.
 *
 * A model's weights are large and mapped once by this process: no cell could load them in the time
 * of a call, and none needs to, since a model has no code of its own.
 */
#include "skills/skills_internal.h"

static rt_str describe(const rt_model *model, rt_str name, rt_str text, const float *vector,
                       bool is_normalized, rt_arena *arena)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    size_t dims = rt_model_dims(model);
    rt_json_begin(&w, &out);
    rt_jw_object(&w);
    rt_jw_karray(&w, "embedding");
    for (size_t i = 0; i < dims; i++)
        rt_jw_double(&w, (double)vector[i]);
    rt_jw_end(&w);
    rt_jw_ku64(&w, "dimension", dims);
    rt_jw_kstr(&w, "model_used", name);
    rt_jw_ku64(&w, "text_length", rt_utf8_length(text));
    rt_jw_kbool(&w, "normalized", is_normalized);
    rt_jw_end(&w);
    return rt_arena_str(arena, rt_buf_str(&out));
}

static bool embed(void *ctx, rt_json args, rt_arena *arena, bool *is_mine, rt_str *result,
                  rt_error *err)
{
    rt_str text = rt_json_str(rt_json_get_c(args, "text"));
    rt_str name = rt_json_str(rt_json_get_c(args, "model"));
    bool is_normalized = rt_json_bool(rt_json_get_c(args, "normalize"), true);
    const rt_model *model;
    *is_mine = ctx && rt_models_find(ctx, name, &model, NULL);
    if (!*is_mine)
        return true;
    float *vector = rt_arena_alloc(arena, sizeof(*vector) * rt_model_dims(model));
    if (!rt_model_embed(model, &text, 1, vector, err))
        return rt_wrap(err, "embed_text");
    if (is_normalized)
        rt_vector_normalize(vector, rt_model_dims(model));
    *result =
        describe(model, name, text, vector, is_normalized || rt_model_is_normalized(model), arena);
    return true;
}

rt_skill_native rt_skills_embedder(rt_models *models)
{
    return (rt_skill_native){ .name = "embed_text", .answer = embed, .ctx = models };
}
