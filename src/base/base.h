/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.h - a tour of the ground floor.
 *
 * Promise: base knows nothing of what is built on it, keeps no state but the log's level and
 * who scrubs what leaves, and does not depend on the locale.
 *
 *     rt_arena arena RT_CLEANUP(rt_arena_done) = {0};
 *     rt_str text;
 *     rt_json doc;
 *     if (!rt_read_file(path, MAX_CONFIG, &arena, &text, err)
 *         || !rt_json_parse(text, &arena, &doc, err))
 *         return rt_wrap(err, "read %s", path);
 *
 * Start with error.h, str.h and arena.h; the other parts are made of these three.
 */
#ifndef RT_BASE_BASE_H
#define RT_BASE_BASE_H

#include "base/macros.h" /* cleanup, handing over, counting */
#include "base/error.h"  /* what went wrong */
#include "base/str.h"    /* views of text, UTF-8 */
#include "base/arena.h"  /* memory released all at once */
#include "base/buf.h"    /* text being built */
#include "base/units.h"  /* "128M", "1.5s" */
#include "base/nearest.h" /* "did you mean ...?" */
#include "base/clock.h"  /* now, and the time of day */
#include "base/id.h"     /* random bytes and names */
#include "base/log.h"    /* lines for the operator */
#include "base/io.h"     /* whole files */
#include "base/json.h"   /* JSON */
#include "base/outbound.h" /* what is sent to other services */
#include "base/hash.h"   /* hashing, for tables */
#include "base/sha256.h" /* hashing, for keeps; needs libcrypto */
#include "base/yaml.h"   /* YAML as JSON; needs libyaml */

#endif
