/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture_test.h - a folder with the smallest model there can be: BERT, one layer, the words a and
 * b.
 */
#ifndef RT_MODELS_FIXTURE_TEST_H
#define RT_MODELS_FIXTURE_TEST_H

#include "models/models.h"

enum { MODELS_FIXTURE_DIMS = 16, MODELS_FIXTURE_TOKENS = 10 };

void models_fixture_make(const char *folder); /* which is not there yet */

#endif
