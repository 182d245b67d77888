/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.c - SHA-256 by libcrypto's EVP interface, which picks the fastest code for the machine.
 *
 * Hashing bytes in memory cannot fail but for lack of memory, so these functions have no error to
 * report: if libcrypto disagrees, we abort.
 */
#include "base/sha256.h"

#include <openssl/evp.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/id.h"

static void must(int ok)
{
    if (ok != 1)
        rt_out_of_memory(sizeof(uint8_t[RT_SHA256_SIZE]));
}

/* Found once: looking the algorithm up takes longer than hashing a short text. */
static const EVP_MD *algorithm;

static void find_algorithm(void)
{
    algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    must(algorithm != NULL);
}

static const EVP_MD *sha256(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_algorithm);
    return algorithm;
}

void rt_sha256(rt_str data, uint8_t out[RT_SHA256_SIZE])
{
    must(EVP_Digest(data.len ? data.ptr : "", data.len, out, NULL, sha256(), NULL));
}

void rt_sha256_hex(rt_str data, char out[RT_SHA256_HEX])
{
    uint8_t digest[RT_SHA256_SIZE];
    rt_sha256(data, digest);
    rt_hex(out, digest, sizeof(digest));
}

void rt_sha256_init(rt_sha256_stream *stream)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    must(context != NULL);
    must(EVP_DigestInit_ex(context, sha256(), NULL));
    stream->context = context;
}

void rt_sha256_add(rt_sha256_stream *stream, rt_str data)
{
    if (data.len)
        must(EVP_DigestUpdate(stream->context, data.ptr, data.len));
}

void rt_sha256_end(rt_sha256_stream *stream, uint8_t out[RT_SHA256_SIZE])
{
    must(EVP_DigestFinal_ex(stream->context, out, NULL));
    rt_sha256_done(stream);
}

void rt_sha256_done(rt_sha256_stream *stream)
{
    EVP_MD_CTX_free(stream->context);
    stream->context = NULL;
}
