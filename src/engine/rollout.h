/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollout.h - who is in when only a part of the users is.
 *
 * Promise: the answer for a subject (a user, or a session without one) never changes by itself, is
 * the same on every node, and whoever is in at 10 % is in at 50 %.
 */
#ifndef RETORT_ENGINE_ROLLOUT_H
#define RETORT_ENGINE_ROLLOUT_H

#include "base/base.h"

/* `percent` from 0 (nobody) to 100 (everybody); more is 100. */
bool engine_rollout_includes(rt_str subject, unsigned percent);

#endif
