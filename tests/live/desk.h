/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk.h - a desk for tests: whatever the server, these tools behave as their names say.
 *
 *     echo        {"tool":…,"arguments":…} at once, from take() itself
 *     bench:ping  null, with as little ado as can be: for bench/
 *     fail        an error at once
 *     huge        {"bytes":n}: a text of so many bytes
 *     slow        {"ms":n,"value":…}: its value, from a thread, later
 *     gate        {"n":n}: an answer to each when n of them are waiting, so they must be side by
 * side approve     {"ms":n}: a person takes that long; the run's clock should stand still never no
 * answer anything else: an error that says the tool is unknown
 */
#ifndef TESTS_LIVE_DESK_H
#define TESTS_LIVE_DESK_H

#include "runtimes/runtimes.h"

typedef struct test_desk test_desk;
test_desk *test_desk_new(rt_str servers);
rt_desk *test_desk_face(test_desk *desk);
void test_desk_free(test_desk *desk); /* waits for its threads */

#endif
