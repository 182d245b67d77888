/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>

#include "tools/search_internal.h"

static float likeness(const char *a, const char *b, size_t dims)
{
    float x[RT_EMBED_MAX], y[RT_EMBED_MAX];
    rt_embed(rt_str_of(a), x, dims);
    rt_embed(rt_str_of(b), y, dims);
    return search_dot(x, y, dims);
}

Test(embed, what_means_the_same_is_nearer_than_what_does_not)
{
    static const size_t sizes[] = { 64, 128, 384, 768, 1024 };
    for (size_t i = 0; i < RT_COUNT(sizes); i++) {
        float near = likeness("will it rain tomorrow", "weather forecast", sizes[i]);
        float far = likeness("will it rain tomorrow", "merge a pull request", sizes[i]);
        cr_assert_gt(near, far + 0.1f, "%zu: %g %g", sizes[i], near, far);
    }
}

Test(embed, a_name_nobody_knows_is_near_to_its_misspelling)
{
    float near = likeness("kubernetis", "kubernetes", 384),
          far = likeness("kubernetis", "zzyxqw", 384);
    cr_assert_gt(near, 0.4f);
    cr_assert_gt(near, far + 0.3f);
}

Test(embed, length_is_one_at_every_size)
{
    float out[RT_EMBED_MAX];
    for (size_t dims = 1; dims <= RT_EMBED_MAX; dims = dims * 2 + 1) {
        rt_embed(RT_STR("send an email to the team"), out, dims);
        cr_assert_float_eq(search_dot(out, out, dims), 1, 1e-4, "%zu", dims);
    }
}

Test(embed, a_text_without_words_is_zero)
{
    float out[384];
    rt_embed(RT_STR("the of … \xff"), out, 384);
    cr_assert_eq(search_dot(out, out, 384), 0);
}

Test(embed, the_same_text_gives_the_same_numbers)
{
    float a[384], b[384];
    rt_embed(RT_STR("Überweisung an Frau Müller"), a, 384);
    rt_embed(RT_STR("Überweisung an Frau Müller"), b, 384);
    cr_assert_arr_eq(a, b, sizeof(a));
}
