/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "models/models_internal.h"

static float *some(size_t count, unsigned seed)
{
    float *numbers = malloc((count + KERNEL_LANES) * sizeof(*numbers));
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)((seed = seed * 1103515245u + 12345u) >> 8) / (float)(1 << 23) - 1;
    return numbers;
}

static const kernels *all[2];

static void start(void)
{
    all[0] = kernels_portable();
    all[1] = kernels_best();
}

TestSuite(kernels, .init = start);

static void expect_product(const kernels *k, size_t rows, size_t inputs, size_t outputs)
{
    float *x RT_CLEANUP(rt_freep) = some(rows * inputs, 1);
    float *w RT_CLEANUP(rt_freep) = some(outputs * inputs, 2);
    float *bias RT_CLEANUP(rt_freep) = some(outputs, 3);
    float *out RT_CLEANUP(rt_freep) = some(rows * outputs + 1, 4);
    float after = out[rows * outputs];
    k->multiply(&(kernel_product){ .x = x,
                                   .w = w,
                                   .bias = bias,
                                   .out = out,
                                   .rows = rows,
                                   .inputs = inputs,
                                   .outputs = outputs,
                                   .x_stride = inputs,
                                   .w_stride = inputs,
                                   .out_stride = outputs,
                                   .scale = 0.5f });
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < outputs; j++) {
            double sum = 0;
            for (size_t n = 0; n < inputs; n++)
                sum += (double)x[i * inputs + n] * w[j * inputs + n];
            cr_assert_float_eq(out[i * outputs + j], sum / 2 + bias[j], 1e-4, "%s %zu %zu", k->name,
                               i, j);
        }
    cr_assert_eq(out[rows * outputs], after);
}

Test(kernels, products_of_any_number_of_rows)
{
    for (size_t k = 0; k < RT_COUNT(all); k++)
        for (size_t rows = 1; rows < 10; rows++)
            for (size_t outputs = 1; outputs < 9; outputs++)
                expect_product(all[k], rows, 8 * rows, outputs);
    for (size_t k = 0; k < RT_COUNT(all); k++)
        expect_product(all[k], 5, 1536, 200); /* more than one block */
}

Test(kernels, rows_are_combined_by_weights)
{
    for (size_t k = 0; k < RT_COUNT(all); k++)
        for (size_t rows = 1; rows < 7; rows++)
            for (size_t outputs = 8; outputs <= 40; outputs += 8) {
                size_t inputs = 3 * rows + 1;
                float *x RT_CLEANUP(rt_freep) = some(rows * inputs, 1);
                float *w RT_CLEANUP(rt_freep) = some(inputs * outputs, 2);
                float *out RT_CLEANUP(rt_freep) = some(rows * outputs, 3);
                all[k]->combine(&(kernel_product){ .x = x,
                                                   .w = w,
                                                   .out = out,
                                                   .rows = rows,
                                                   .inputs = inputs,
                                                   .outputs = outputs,
                                                   .x_stride = inputs,
                                                   .w_stride = outputs,
                                                   .out_stride = outputs });
                for (size_t i = 0; i < rows * outputs; i++) {
                    double sum = 0;
                    for (size_t n = 0; n < inputs; n++)
                        sum += (double)x[i / outputs * inputs + n] * w[n * outputs + i % outputs];
                    cr_assert_float_eq(out[i], sum, 1e-5);
                }
            }
}

Test(kernels, activations_are_exact_enough_everywhere)
{
    enum { COUNT = 4096 };
    float x[COUNT], given[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        given[i] = ((float)i - COUNT / 2) / 100;
    for (size_t k = 0; k < RT_COUNT(all); k++) {
        memcpy(x, given, sizeof(x));
        all[k]->activate[MODEL_GELU](x, COUNT);
        for (size_t i = 0; i < COUNT; i++)
            cr_assert_float_eq(x[i], 0.5 * given[i] * (1 + erf(given[i] / sqrt(2))), 2e-6, "%g",
                               (double)given[i]);
        memcpy(x, given, sizeof(x));
        all[k]->activate[MODEL_GELU_TANH](x, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            double v = given[i], u = sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
            cr_assert_float_eq(x[i], 0.5 * v * (1 + tanh(u)), 2e-6, "%g", v);
        }
    }
}

Test(kernels, softmax_of_any_length_sums_to_one)
{
    for (size_t k = 0; k < RT_COUNT(all); k++)
        for (size_t count = 1; count < 40; count++) {
            float row[48], sum = 0;
            for (size_t i = 0; i < count; i++)
                row[i] = (float)i * 7 - 100;
            all[k]->softmax(row, count);
            for (size_t i = 0; i < count; i++)
                sum += row[i];
            cr_assert_float_eq(sum, 1, 1e-6);
            cr_assert_float_eq(row[count - 1], count > 1 ? 1 / (1 + exp(-7)) : 1, 1e-3);
        }
}

Test(kernels, a_norm_has_mean_nought_and_variance_one)
{
    for (size_t k = 0; k < RT_COUNT(all); k++) {
        float *x RT_CLEANUP(rt_freep) = some(2 * 64, 5), *more RT_CLEANUP(rt_freep) = some(128, 6);
        float one[64], nought[64] = { 0 };
        double sum = 0, square = 0;
        for (size_t i = 0; i < 64; i++)
            one[i] = 1;
        all[k]->add_norm(x, more, &(norm){ one, nought }, 1e-12f, 2, 64);
        for (size_t i = 64; i < 128; i++) {
            sum += x[i];
            square += (double)x[i] * x[i];
        }
        cr_assert_float_eq(sum, 0, 1e-4);
        cr_assert_float_eq(square / 64, 1, 1e-4);
    }
}
