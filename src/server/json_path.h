/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_path.h - a part of a JSON document by its path.
 *
 *     $.rows[0].name    $['a key']    $.rows[2:5]    $.rows[-1]    $.rows[*].id    $.*
 *
 * A part of RFC 9535: names, indices, slices without a step, and all children. No filters and no
 * descent to any depth, so that the work is bounded by what is found.
 */
#ifndef RT_SERVER_JSON_PATH_H
#define RT_SERVER_JSON_PATH_H

#include "base/base.h"

#define JSON_PATH_STEPS_MAX   64
#define JSON_PATH_MATCHES_MAX 10000

/* What the path leads to, in the order of the text; nothing is no error. RT_INVALID says where the
 * path is wrong; RT_LIMIT: it leads to too much. */
bool json_path_find(rt_json root, rt_str path, rt_arena *arena, rt_json **out, size_t *count,
                    rt_error *err);

#endif
