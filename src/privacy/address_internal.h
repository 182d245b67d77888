/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address_internal.h - what the files about postal addresses share.
 */
#ifndef RT_PRIVACY_ADDRESS_INTERNAL_H
#define RT_PRIVACY_ADDRESS_INTERNAL_H

#include "privacy/privacy_internal.h"

static inline bool is_a(unsigned set, rt_str word)
{
    return privacy_vocabulary(word) & VOC(set);
}

/* A run of letters and digits, with the dots, dashes and apostrophes inside it. */
typedef struct address_word {
    size_t start, end;
    bool has_digit, is_title; /* is_title: begins with a capital, or outside ASCII */
} address_word;

/* The next word of the same line; false at a line's end or at other punctuation. */
bool address_next(rt_str text, size_t i, address_word *out);
bool address_previous(rt_str text, size_t i, address_word *out);

static inline rt_str address_text(rt_str text, const address_word *w)
{
    return rt_str_slice(text, w->start, w->end);
}

typedef struct tail {
    size_t end;
    bool is_hard;  /* has a postcode, a state, a country or a unit */
    bool has_code; /* the first of these */
} tail;

/* What follows a street: unit, town, state, postcode, country, on this line and the next ones. */
tail address_tail(rt_str text, size_t i);

/* Is a British, Canadian or Dutch-like code with letters at i? Returns its end, or i. */
size_t address_lettered_code(rt_str text, size_t i);

/* A street's name and how sure we are. */
typedef struct street {
    size_t end;
    int score; /* 0: there is none */
} street;

/* Where a street's name before `i` begins, as in "Berliner Straße [12]"; score 0: there is none. */
street address_street_before(rt_str text, size_t i);
/* Where "PO Box" or the like before the number begins, or SIZE_MAX. */
size_t address_box_begin(rt_str text, size_t i);

/* The score, and more when the words around speak of an address. */
int address_with_context(privacy_scan *scan, size_t start, size_t end, int score);

#endif
