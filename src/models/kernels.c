/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - the arithmetic, for any machine and for those with AVX2 and FMA.
 *
 * kernels_body.h is compiled twice, with one text for both: eight floats side by side, which the
 * compiler puts into one register or into two. Who has what is asked when the program runs.
 */
#include "models/models_internal.h"

#include <math.h>

/* No alignment is promised: the numbers lie in a file, wherever its header ends. */
typedef float lanes __attribute__((vector_size(4 * KERNEL_LANES), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(4 * KERNEL_LANES), aligned(4), may_alias));
typedef float half_lanes __attribute__((vector_size(2 * KERNEL_LANES), aligned(4), may_alias));

#define KERNEL(name) portable_##name
#define KERNEL_TARGET
#define KERNEL_NAME "portable"
#include "models/kernels_body.h"
#undef KERNEL
#undef KERNEL_TARGET
#undef KERNEL_NAME

const kernels *kernels_portable(void)
{
    return &portable_kernels;
}

#ifdef __x86_64__

#define KERNEL(name)  avx2_##name
#define KERNEL_TARGET __attribute__((target("avx2,fma")))
#define KERNEL_NAME   "avx2"
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
