#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes unicode_tables.h: what unicode.c knows of characters, from Python's unicodedata.

    python3 src/models/unicode_tables.py > src/models/unicode_tables.h
"""

import sys
import unicodedata

EVERYTHING = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def kind(c):
    """As BERT's tokenizer sees it. Tab, line feed and carriage return count as spaces, not as control."""
    char, category = chr(c), unicodedata.category(chr(c))
    if char in "\t\n\r":
        return "UNICODE_SPACE"
    if c in (0, 0xFFFD) or category in ("Cc", "Cf", "Co"):
        return "UNICODE_CONTROL"
    if category in ("Zs", "Zl", "Zp"):
        return "UNICODE_SPACE"
    if category[0] == "P" or (c < 128 and category[0] == "S"):
        return "UNICODE_PUNCTUATION"
    return "UNICODE_MARK" if category == "Mn" else None


def ranges(value):
    """[first, last, value] of neighbours that have the same one."""
    found = []
    for c in EVERYTHING:
        one = value(c)
        if one is None:
            continue
        if found and found[-1][1] == c - 1 and found[-1][2] == one:
            found[-1][1] = c
        else:
            found.append([c, c, one])
    return found


def lowered():
    """[first, last, step, by]: capitals that stand next to each other, or every second one."""
    found = []
    for c in EVERYTHING:
        low = chr(c).lower()
        if low == chr(c) or len(low) > 1:  # U+0130 is told apart in unicode.c
            continue
        by = ord(low) - c
        last = found[-1] if found else None
        if last and last[3] == by and c - last[1] in (1, 2) and (last[0] == last[1] or c - last[1] == last[2]):
            last[1], last[2] = c, c - last[1]
        else:
            found.append([c, c, 1, by])
    return found


def bare(c):
    """The canonical decomposition without its accents; None where there is nothing to do."""
    if 0xAC00 <= c <= 0xD7A3:
        return None  # Hangul is worked out
    whole = unicodedata.normalize("NFD", chr(c))
    left = [ord(x) for x in whole if unicodedata.category(x) != "Mn"]
    return left if whole != chr(c) and left else None


def print_rows(head, rows):
    print(f"{head} = {{")
    line = "   "
    for row in rows:
        if len(line) + len(row) + 2 > 100:
            print(line)
            line = "   "
        line += f" {row},"
    print(f"{line}\n}};\n")


def main():
    print("/* SPDX-License-Identifier: Apache-2.0 */\n/*\n"
          f" * unicode_tables.h - made by unicode_tables.py of Unicode {unicodedata.unidata_version}; "
          "not for editing.\n */\n/* clang-format off */")
    print_rows("static const struct { uint32_t first, last; uint8_t kind; } kinds[]",
               [f"{{ 0x{a:X}, 0x{b:X}, {k} }}" for a, b, k in ranges(kind)])
    print_rows("static const struct { uint32_t first, last; uint8_t step; int32_t by; } capitals[]",
               [f"{{ 0x{a:X}, 0x{b:X}, {step}, {by} }}" for a, b, step, by in lowered()])
    pool, rows = [], []
    for c in EVERYTHING:
        to = bare(c)
        if to:
            rows.append(f"{{ 0x{c:X}, {len(pool)}, {len(to)} }}")
            pool += to
    print_rows("static const struct { uint32_t from; uint16_t at, count; } accented[]", rows)
    print_rows("static const uint32_t letters[]", [f"0x{c:X}" for c in pool])
    print("/* clang-format on */")


sys.exit(main())
