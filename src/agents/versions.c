/* SPDX-License-Identifier: Apache-2.0 */
/* versions.c - version numbers: three whole numbers, "1.4.0". */
#include "agents/agents_internal.h"

#define PART_MAX 999999999

bool agents_semver_parse(rt_str text, agents_semver *out)
{
    rt_str piece;
    for (size_t i = 0; i < RT_COUNT(out->part); i++) {
        if (!rt_str_cut(&text, '.', &piece) || piece.len == 0 ||
            (piece.len > 1 && piece.ptr[0] == '0') || !rt_str_to_u64(piece, &out->part[i]) ||
            out->part[i] > PART_MAX)
            return false;
    }
    return text.ptr == NULL;
}

int agents_semver_cmp(agents_semver a, agents_semver b)
{
    for (size_t i = 0; i < RT_COUNT(a.part); i++)
        if (a.part[i] != b.part[i])
            return a.part[i] < b.part[i] ? -1 : 1;
    return 0;
}

rt_str agents_semver_next_minor(rt_str version, rt_arena *arena)
{
    agents_semver v;
    if (!agents_semver_parse(version, &v))
        return RT_STR("1.0.0");
    return rt_arena_printf(arena, "%llu.%llu.0", (unsigned long long)v.part[0],
                           (unsigned long long)v.part[1] + 1);
}
