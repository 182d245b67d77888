/* SPDX-License-Identifier: Apache-2.0 */
/*
 * person.c - names of persons, a type that must be asked for.
 *
 * Without a model this is a guess: a common first name or a title, and capitalised words after
 * it. It finds many, misses many, and takes some streets and firms for people.
 */
#include "privacy/privacy_internal.h"

static size_t name_end(rt_str text, size_t i)
{
    while (i < text.len && (is_class(text.ptr[i], IS_LETTER | IS_HIGH) ||
                            (is_one_of(text.ptr[i], "'-") && is_class(at(text, i + 1), IS_LETTER))))
        i++;
    return i;
}

/* Up to three more capitalised words, initials included: where the last one ends. */
static size_t surname_end(rt_str text, size_t end)
{
    for (unsigned k = 0; k < 3; k++) {
        size_t i = end;
        if (at(text, i) == '.' && at(text, i + 1) == ' ')
            i++;
        if (at(text, i) != ' ' || !is_class(at(text, i + 1), IS_UPPER))
            break;
        size_t next = name_end(text, i + 1);
        if (next - i < 3 && at(text, next) != '.')
            break;
        end = next;
    }
    return end;
}

size_t privacy_person(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    size_t end = name_end(text, i);
    rt_str word = rt_str_slice(text, i, end);
    uint32_t known = privacy_vocabulary(word);
    bool is_titled = known & VOC(SET_TITLE);
    if (!is_titled && !(known & VOC(SET_FIRST_NAME)))
        return end;
    size_t start = i, last = surname_end(text, end);
    if (is_titled) {
        start = end + (at(text, end) == '.');
        start += at(text, start) == ' ';
        if (last <= start)
            return end;
    }
    int score = is_titled ? 82 : last > end ? 76 : 55;
    return privacy_add(scan, RT_PII_PERSON, start, last, score) ? last : end;
}
