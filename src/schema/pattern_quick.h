/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_quick.h - what patterns.c and pattern_quick.c share.
 */
#ifndef RT_SCHEMA_PATTERN_QUICK_H
#define RT_SCHEMA_PATTERN_QUICK_H

#include "schema/schema_internal.h"

/* What a set says of characters that are not ASCII. */
typedef enum quick_beyond {
    BEYOND_NONE,
    BEYOND_ALL,
    BEYOND_BUT_LINES, /* all but U+2028 and U+2029 */
    BEYOND_ASK,       /* the engine knows */
} quick_beyond;

typedef struct quick_set {
    uint64_t ascii[2];
    quick_beyond beyond;
} quick_set;

typedef struct quick_item {
    quick_set set;
    uint32_t min, max;
} quick_item;

enum { QUICK_ITEMS = 24 };

typedef struct quick_pattern {
    quick_item items[QUICK_ITEMS];
    uint32_t count;
    bool is_at_start, is_at_end; /* ^ and $ */
    bool is_suffix, is_anywhere;
    bool may_ask; /* an engine is needed for some texts */
} quick_pattern;

typedef enum quick_answer { QUICK_NO, QUICK_YES, QUICK_ASK } quick_answer;

/* False when the pattern is not of that kind (or no pattern at all). */
bool schema_quick_read(rt_str text, quick_pattern *out);
quick_answer schema_quick_match(const quick_pattern *pattern, rt_str text);

#endif
