/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk.h - where the calls of one run go (rt_desk of runtimes.h), and what is left of them.
 *
 *     rt_desk *desk = engine_desk_open(p);
 *     runtime->execute(… .desk = desk …);
 *     engine_desk_close(desk, p->arena, &p->calls);   // ends those that are under way
 */
#ifndef RT_ENGINE_DESK_H
#define RT_ENGINE_DESK_H

#include "engine/engine_internal.h"

typedef struct engine_desk engine_desk;

rt_desk *engine_desk_open(passage *p);
void engine_desk_close(rt_desk *desk, rt_arena *arena, engine_desk_report *out);

#endif
