/* SPDX-License-Identifier: Apache-2.0 */
/*
 * macros.h - the few macros every file may use.
 *
 * Promise: each one is smaller than what it replaces, and none hides control flow.
 *
 *     int fd RT_CLEANUP(rt_closep) = open(path, O_RDONLY | O_CLOEXEC);
 *     char *line RT_CLEANUP(rt_freep) = NULL;
 *     *out = RT_TAKE_FD(fd);          // the caller closes it now, we do not
 */
#ifndef RT_BASE_MACROS_H
#define RT_BASE_MACROS_H

#define RT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Call fn(&variable) when the variable goes out of scope. */
#define RT_CLEANUP(fn) __attribute__((cleanup(fn)))

/* Let the compiler check the arguments at `args` against the printf format at `fmt`. */
#define RT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Hand a pointer, or a descriptor, over to somebody else and leave "nothing" behind. */
#define RT_TAKE(pointer)                                                                           \
    (__extension__({                                                                               \
        __auto_type rt_taken_ = (pointer);                                                         \
        (pointer) = NULL;                                                                          \
        rt_taken_;                                                                                 \
    }))
#define RT_TAKE_FD(fd)                                                                             \
    (__extension__({                                                                               \
        int rt_taken_fd_ = (fd);                                                                   \
        (fd) = -1;                                                                                 \
        rt_taken_fd_;                                                                              \
    }))

#define RT_MIN(a, b)                                                                               \
    (__extension__({                                                                               \
        __auto_type rt_min_a_ = (a);                                                               \
        __auto_type rt_min_b_ = (b);                                                               \
        rt_min_a_ < rt_min_b_ ? rt_min_a_ : rt_min_b_;                                             \
    }))
#define RT_MAX(a, b)                                                                               \
    (__extension__({                                                                               \
        __auto_type rt_max_a_ = (a);                                                               \
        __auto_type rt_max_b_ = (b);                                                               \
        rt_max_a_ > rt_max_b_ ? rt_max_a_ : rt_max_b_;                                             \
    }))

/* For RT_CLEANUP on a descriptor: closes it unless it is negative. errno survives. */
void rt_closep(int *fd);

/* For RT_CLEANUP on a heap pointer of any type: `pointer` is the address of the variable. */
void rt_freep(void *pointer);

#endif
