/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.h - YAML as the JSON value it stands for.
 *
 * Promise: one document of maps, lists and scalars, by YAML 1.2's core rules: true and false, null
 * and ~, numbers as JSON writes them; everything else is text. What would be passed over in silence
 * or make a small file stand for a large one (a key twice, a second document, anchors, tags) is
 * refused, with its line.
 *
 *     rt_json doc;
 *     if (!rt_yaml_parse(text, &arena, &doc, err))      // "line 3: 'name' stands here twice"
 *         return rt_wrap(err, "skill.yaml");
 *
 * By libyaml. Policies and settings are read from its events instead (policy_yaml.c,
 * settings_yaml.c): they want the line of every value.
 */
#ifndef RT_BASE_YAML_H
#define RT_BASE_YAML_H

#include "base/json.h"

#define RT_YAML_MAX_SIZE  ((size_t)1 << 20)
#define RT_YAML_MAX_DEPTH 32
#define RT_YAML_MAX_KEYS  500 /* of one map */

/* An empty document is null. RT_INVALID, RT_LIMIT. */
bool rt_yaml_parse(rt_str text, rt_arena *arena, rt_json *out, rt_error *err);

#endif
