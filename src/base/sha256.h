/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.h - SHA-256, at once or piece by piece.
 *
 * Promise: FIPS 180-4, by libcrypto. This and yaml.h are what needs a library.
 *
 *     char hex[RT_SHA256_HEX];
 *     rt_sha256_hex(RT_STR("abc"), hex);          // "ba7816bf..."
 *
 *     rt_sha256_stream hash RT_CLEANUP(rt_sha256_done) = {0};
 *     rt_sha256_init(&hash);
 *     while (next_piece(&piece))
 *         rt_sha256_add(&hash, piece);
 *     rt_sha256_end(&hash, digest);
 */
#ifndef RT_BASE_SHA256_H
#define RT_BASE_SHA256_H

#include "base/str.h"

#define RT_SHA256_SIZE 32
#define RT_SHA256_HEX  65 /* its digits and a terminator */

typedef struct rt_sha256_stream {
    void *context;
} rt_sha256_stream;

void rt_sha256(rt_str data, uint8_t out[RT_SHA256_SIZE]);
void rt_sha256_hex(rt_str data, char out[RT_SHA256_HEX]);

void rt_sha256_init(rt_sha256_stream *stream);
void rt_sha256_add(rt_sha256_stream *stream, rt_str data);
void rt_sha256_end(rt_sha256_stream *stream, uint8_t out[RT_SHA256_SIZE]); /* and releases it */
void rt_sha256_done(rt_sha256_stream *stream); /* for a stream that may not have reached its end */

#endif
