/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - the arithmetic, for any machine and for those with AVX2 and FMA.
 *
 * kernels_body.h is compiled twice: with four floats side by side, which every machine has
 * registers for, and with eight. Which it will be is asked when the program runs.
 */
#include "models/models_internal.h"

#include <math.h>

/* No alignment is promised: the numbers lie in a file, wherever its header ends. */
#define VECTOR(count) __attribute__((vector_size(4 * (count)), aligned(4), may_alias))
typedef float floats4 VECTOR(4);
typedef int32_t bits4 VECTOR(4);

#define KERNEL(name) portable_##name
#define KERNEL_TARGET
#define KERNEL_NAME "portable"
#define LANES       4
#define FOUR_OF(a)  (a)
#define lanes       floats4
#define bits        bits4
#include "models/kernels_body.h"
#undef KERNEL
#undef KERNEL_TARGET
#undef KERNEL_NAME
#undef LANES
#undef FOUR_OF
#undef lanes
#undef bits

const kernels *kernels_portable(void)
{
    return &portable_kernels;
}

#ifdef __x86_64__

typedef float floats8 VECTOR(8);
typedef int32_t bits8 VECTOR(8);

#define KERNEL(name)  avx2_##name
#define KERNEL_TARGET __attribute__((target("avx2,fma")))
#define KERNEL_NAME   "avx2"
#define LANES         8
#define FOUR_OF(a)                                                                                 \
    (__builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7))
#define lanes floats8
#define bits  bits8
#include "models/kernels_body.h"

const kernels *kernels_best(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &avx2_kernels
                                                                           : &portable_kernels;
}

#else

const kernels *kernels_best(void)
{
    return &portable_kernels;
}

#endif
