/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels_body.h - the arithmetic in terms of `lanes`, LANES floats side by side, and `bits`, as
 * many integers; kernels.c includes it once for each target.
 *
 * No vector is passed to or from a function: without AVX there is no agreed way to do that.
 *
 * A sum is always made in the same order, whatever rows stand beside a row, so a text's vector does
 * not depend on its batch.
 */

#define LANES_AT(p)           (*(const lanes *)(p))
#define EACH(x)               ((lanes){ 0 } + (x))
#define CHOOSE(mask, yes, no) ((lanes)(((bits)(yes) & (mask)) | ((bits)(no) & ~(mask))))

/* -- Products ---------------------------------------------------------------------------------- */

/* The sums of four vectors, in a few steps of four at once; FOUR_OF() is the first. */
#define SUMS(a, b, c, d, out)                                                                      \
    do {                                                                                           \
        floats4 a_ = FOUR_OF(a), b_ = FOUR_OF(b), c_ = FOUR_OF(c), d_ = FOUR_OF(d);                \
        floats4 ab_ = PAIRS(a_, b_), cd_ = PAIRS(c_, d_);                                          \
        (out) = __builtin_shufflevector(ab_, cd_, 0, 1, 4, 5) +                                    \
                __builtin_shufflevector(ab_, cd_, 2, 3, 6, 7);                                     \
    } while (0)
#define PAIRS(a, b)                                                                                \
    (__builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7))

/*
 * Four rows of x by three of w: twelve sums, three of w and one of x are the sixteen registers
 * there are. A row past the end is the last one once more, and its result is not kept.
 */
KERNEL_TARGET static void KERNEL(tile)(const kernel_product *p, size_t i, size_t j)
{
    enum { ROWS = 4, COLUMNS = 3 };
    size_t rows = RT_MIN((size_t)ROWS, p->rows - i);
    size_t columns = RT_MIN((size_t)COLUMNS, p->outputs - j);
    const float *x = p->x + i * p->x_stride, *w = p->w + j * p->w_stride;
    const float *x1 = x + (rows > 1 ? p->x_stride : 0), *x2 = x1 + (rows > 2 ? p->x_stride : 0),
                *x3 = x2 + (rows > 3 ? p->x_stride : 0);
    const float *w1 = w + (columns > 1 ? p->w_stride : 0),
                *w2 = w1 + (columns > 2 ? p->w_stride : 0);
    lanes s00 = { 0 }, s01 = { 0 }, s02 = { 0 }, s10 = { 0 }, s11 = { 0 }, s12 = { 0 };
    lanes s20 = { 0 }, s21 = { 0 }, s22 = { 0 }, s30 = { 0 }, s31 = { 0 }, s32 = { 0 };
    for (size_t k = 0; k < p->inputs; k += LANES) {
        lanes a = LANES_AT(w + k), b = LANES_AT(w1 + k), c = LANES_AT(w2 + k);
        lanes r = LANES_AT(x + k);
        s00 += r * a, s01 += r * b, s02 += r * c;
        r = LANES_AT(x1 + k);
        s10 += r * a, s11 += r * b, s12 += r * c;
        r = LANES_AT(x2 + k);
        s20 += r * a, s21 += r * b, s22 += r * c;
        r = LANES_AT(x3 + k);
        s30 += r * a, s31 += r * b, s32 += r * c;
    }
    floats4 sums[COLUMNS];
    SUMS(s00, s10, s20, s30, sums[0]);
    SUMS(s01, s11, s21, s31, sums[1]);
    SUMS(s02, s12, s22, s32, sums[2]);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            p->out[(i + r) * p->out_stride + j + c] =
                sums[c][r] * p->scale + (p->bias ? p->bias[j + c] : 0);
}

/* Some rows of w stay in the second cache while all of x goes by. */
KERNEL_TARGET static void KERNEL(multiply)(const kernel_product *p)
{
    enum { BLOCK_FLOATS = 64 << 10 };
    size_t block = RT_MAX(BLOCK_FLOATS / p->inputs / 3, (size_t)1) * 3;
    for (size_t from = 0; from < p->outputs; from += block)
        for (size_t i = 0; i < p->rows; i += 4)
            for (size_t j = from; j < RT_MIN(from + block, p->outputs); j += 3)
                KERNEL(tile)(p, i, j);
}

/* Four rows by two vectors of columns; those past the end are the last ones once more. */
KERNEL_TARGET static void KERNEL(combine)(const kernel_product *p)
{
    for (size_t i = 0; i < p->rows; i += 4) {
        const float *x = p->x + i * p->x_stride;
        size_t r1 = RT_MIN((size_t)1, p->rows - i - 1), r2 = RT_MIN((size_t)2, p->rows - i - 1),
               r3 = RT_MIN((size_t)3, p->rows - i - 1);
        for (size_t j = 0; j < p->outputs; j += 2 * LANES) {
            size_t j1 = RT_MIN(j + LANES, p->outputs - LANES);
            lanes s00 = { 0 }, s01 = { 0 }, s10 = { 0 }, s11 = { 0 };
            lanes s20 = { 0 }, s21 = { 0 }, s30 = { 0 }, s31 = { 0 };
            for (size_t k = 0; k < p->inputs; k++) {
                lanes a = LANES_AT(p->w + k * p->w_stride + j),
                      b = LANES_AT(p->w + k * p->w_stride + j1);
                s00 += x[k] * a, s01 += x[k] * b;
                s10 += x[r1 * p->x_stride + k] * a, s11 += x[r1 * p->x_stride + k] * b;
                s20 += x[r2 * p->x_stride + k] * a, s21 += x[r2 * p->x_stride + k] * b;
                s30 += x[r3 * p->x_stride + k] * a, s31 += x[r3 * p->x_stride + k] * b;
            }
            float *out = p->out + i * p->out_stride;
            *(lanes *)(out + j) = s00, *(lanes *)(out + j1) = s01;
            out = p->out + (i + r1) * p->out_stride;
            *(lanes *)(out + j) = s10, *(lanes *)(out + j1) = s11;
            out = p->out + (i + r2) * p->out_stride;
            *(lanes *)(out + j) = s20, *(lanes *)(out + j1) = s21;
            out = p->out + (i + r3) * p->out_stride;
            *(lanes *)(out + j) = s30, *(lanes *)(out + j1) = s31;
        }
    }
}

/* -- Rows -------------------------------------------------------------------------------------- */

KERNEL_TARGET static float KERNEL(sum)(const lanes *v)
{
    floats4 four = FOUR_OF(*v);
    return (four[0] + four[1]) + (four[2] + four[3]);
}

KERNEL_TARGET static void KERNEL(add_norm)(float *x, const float *more, const norm *n,
                                           float epsilon, size_t rows, size_t width)
{
    for (size_t i = 0; i < rows; i++, x += width) {
        lanes total = { 0 }, square = { 0 };
        for (size_t k = 0; k < width; k += LANES) {
            lanes v = LANES_AT(x + k);
            if (more)
                v += LANES_AT(more + i * width + k);
            *(lanes *)(x + k) = v;
            total += v;
        }
        lanes mean = EACH(KERNEL(sum)(&total) / (float)width);
        for (size_t k = 0; k < width; k += LANES) {
            lanes v = LANES_AT(x + k) - mean;
            square += v * v;
        }
        lanes by = EACH(1 / sqrtf(KERNEL(sum)(&square) / (float)width + epsilon));
        for (size_t k = 0; k < width; k += LANES)
            *(lanes *)(x + k) =
                (LANES_AT(x + k) - mean) * by * LANES_AT(n->weight + k) + LANES_AT(n->bias + k);
    }
}

/*
 * e to the power of v: 2 to the power of a whole number, times e to the power of what is left,
 * which is less than 0.35 and needs six terms. Adding 1.5 * 2^23 rounds.
 */
KERNEL_TARGET static inline void KERNEL(exponential)(lanes *v)
{
    lanes x = *v;
    x = CHOOSE(x > -87.0f, x, EACH(-87.0f));
    x = CHOOSE(x < 88.0f, x, EACH(88.0f));
    lanes whole = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    lanes r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    lanes p =
        ((((r * (1.0f / 720) + 1.0f / 120) * r + 1.0f / 24) * r + 1.0f / 6) * r + 0.5f) * r * r +
        r + 1;
    *v = p * (lanes)((__builtin_convertvector(whole, bits) + 127) << 23);
}

KERNEL_TARGET static void KERNEL(softmax)(float *row, size_t count)
{
    lanes total = { 0 };
    float most = row[0];
    for (size_t k = 1; k < count; k++)
        most = RT_MAX(most, row[k]);
    for (size_t k = count; k % LANES != 0; k++)
        row[k] = -INFINITY;
    for (size_t k = 0; k < count; k += LANES) {
        lanes v = LANES_AT(row + k) - most;
        bits is_real = v > -87.0f; /* what is past the end counts for nothing */
        KERNEL(exponential)(&v);
        v = (lanes)((bits)v & is_real);
        *(lanes *)(row + k) = v;
        total += v;
    }
    lanes by = EACH(1 / KERNEL(sum)(&total));
    for (size_t k = 0; k < count; k += LANES)
        *(lanes *)(row + k) = LANES_AT(row + k) * by;
}

/*
 * x/2 (1 + erf(x / sqrt 2)), by formula 7.1.26 of Abramowitz and Stegun: with z = |x| / sqrt 2 and
 * q = 1 - erf(z), it is x - x q / 2, or x q / 2 below nought. The error is 1.5e-7 of x.
 */
KERNEL_TARGET static void KERNEL(gelu)(float *x, size_t count)
{
    for (size_t k = 0; k < count; k += LANES) {
        lanes v = LANES_AT(x + k);
        lanes z = (lanes)((bits)v & 0x7FFFFFFF) * 0.707106781f;
        lanes t = 1 / (z * 0.3275911f + 1);
        lanes q = -z * z;
        KERNEL(exponential)(&q);
        q *= ((((t * 1.061405429f - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t +
              0.254829592f) *
             t;
        lanes part = v * q * 0.5f;
        *(lanes *)(x + k) = CHOOSE(v > 0, v - part, part);
    }
}

/* x/2 (1 + tanh u) is x - x / (1 + exp 2u). */
KERNEL_TARGET static void KERNEL(gelu_tanh)(float *x, size_t count)
{
    for (size_t k = 0; k < count; k += LANES) {
        lanes v = LANES_AT(x + k);
        lanes u = (v * v * v * 0.044715f + v) * (2 * 0.7978845608f);
        KERNEL(exponential)(&u);
        *(lanes *)(x + k) = v - v / (u + 1);
    }
}

KERNEL_TARGET static void KERNEL(relu)(float *x, size_t count)
{
    for (size_t k = 0; k < count; k += LANES) {
        lanes v = LANES_AT(x + k);
        *(lanes *)(x + k) = CHOOSE(v > 0, v, EACH(0));
    }
}

static const kernels KERNEL(kernels) = {
    .name = KERNEL_NAME,
    .multiply = KERNEL(multiply),
    .combine = KERNEL(combine),
    .add_norm = KERNEL(add_norm),
    .softmax = KERNEL(softmax),
    .activate = { [MODEL_GELU] = KERNEL(gelu),
                  [MODEL_GELU_TANH] = KERNEL(gelu_tanh),
                  [MODEL_RELU] = KERNEL(relu) },
};

#undef LANES_AT
#undef EACH
#undef CHOOSE
#undef SUMS
#undef PAIRS
