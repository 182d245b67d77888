/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.h - whole files in, whole strings out.
 *
 * Promise: a read never takes in more than its maximum, and says so with RT_LIMIT; a write is
 * complete or failed. Interruptions and full pipes are waited out here.
 *
 *     rt_str text;
 *     if (!rt_read_file("/etc/retort.yaml", 1 << 20, &arena, &text, err))
 *         return rt_wrap(err, "configuration");
 */
#ifndef RT_BASE_IO_H
#define RT_BASE_IO_H

#include "base/arena.h"

/* Everything in the file, up to `max` bytes. A NUL byte follows the text, outside its length. */
bool rt_read_file(const char *path, size_t max, rt_arena *arena, rt_str *out, rt_error *err);

/* Everything until the end of file, up to `max` bytes; waits if the descriptor does not block. */
bool rt_read_fd(int fd, size_t max, rt_arena *arena, rt_str *out, rt_error *err);

/* All of `data`. Writing to a closed pipe still raises SIGPIPE unless the program ignores it. */
bool rt_write_all(int fd, rt_str data, rt_error *err);

#endif
