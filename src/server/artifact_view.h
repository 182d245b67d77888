/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifact_view.h - parts of a large artifact for a reader with little room: lines, matches, one
 * branch of a JSON document.
 *
 * Promise: the artifact is read piece by piece and never held whole, but for JSON, which has a
 * limit of its own. What is found is bounded; the answer says where to go on.
 */
#ifndef RT_SERVER_ARTIFACT_VIEW_H
#define RT_SERVER_ARTIFACT_VIEW_H

#include "server/http.h"

#define VIEW_LINES_MAX   10000
#define VIEW_MATCHES_MAX 1000
#define VIEW_TEXT_MAX    (1u << 20)  /* bytes of lines in one answer */
#define VIEW_JSON_MAX    (64u << 20) /* bytes of a document a path is looked up in */
#define VIEW_EXCERPT     200         /* bytes shown before and after a match */

typedef struct view {
    rt_shelf *shelf;
    const rt_artifact_row *row;
    rt_arena *arena;
} view;

/* Each writes one JSON object. Lines are counted from 1. */
bool view_lines(const view *v, uint64_t line, uint64_t lines, rt_json_writer *w, rt_error *err);
bool view_search(const view *v, rt_str text, bool is_case_ignored, uint64_t from, uint64_t max,
                 rt_json_writer *w, rt_error *err);
bool view_json(const view *v, rt_str path, rt_json_writer *w, rt_error *err);

#endif
