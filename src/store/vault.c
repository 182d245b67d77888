/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault.c - AES-256-GCM under a key in a file.
 *
 * A sealed text is: one byte of version, twelve random bytes (the nonce), the ciphertext, sixteen
 * bytes of tag. The version and the purpose are authenticated with it. Random nonces under one key
 * are safe for 2^32 texts; at a 64 KiB piece each, that is 256 TiB of artifacts.
 *
 * The key file is 64 hexadecimal digits. It is made complete under another name and then linked to
 * its own, so of several programs that start at once all read the same key.
 */
#include "store/store_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_SIZE   32
#define VERSION    1
#define NONCE_SIZE 12
#define TAG_SIZE   16
#define FILE_SIZE  (2 * KEY_SIZE + 1) /* the digits and a line end */
#define PIECE_MAX  (1 << 30)          /* libcrypto counts in int */

_Static_assert(1 + NONCE_SIZE + TAG_SIZE == STORE_SEAL_SIZE, "the parts of a seal");

struct rt_vault {
    uint8_t key[KEY_SIZE];
};

/* -- the key in memory ------------------------------------------------------------------------- */

/* Pages of its own, for they are locked and left out of dumps and children as a whole. */
static rt_vault *vault_new(void)
{
    rt_vault *vault =
        mmap(NULL, sizeof(*vault), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (vault == MAP_FAILED)
        rt_out_of_memory(sizeof(*vault));
    madvise(vault, sizeof(*vault), MADV_DONTDUMP);
    madvise(vault, sizeof(*vault), MADV_DONTFORK);
    mlock(vault, sizeof(*vault)); /* may be over a limit; then it may be swapped */
    return vault;
}

void rt_vault_close(rt_vault *vault)
{
    if (!vault)
        return;
    OPENSSL_cleanse(vault, sizeof(*vault));
    munmap(vault, sizeof(*vault));
}

void rt_vault_closep(rt_vault **vault)
{
    rt_vault_close(*vault);
    *vault = NULL;
}

/* -- the key in its file ----------------------------------------------------------------------- */

static bool write_key(const char *path, rt_error *err)
{
    uint8_t key[KEY_SIZE];
    char digits[FILE_SIZE + 1];
    rt_random_bytes(key, sizeof(key));
    rt_hex(digits, key, sizeof(key));
    digits[FILE_SIZE - 1] = '\n';
    int fd RT_CLEANUP(rt_closep) =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool done = fd >= 0 ? rt_write_all(fd, (rt_str){ digits, FILE_SIZE }, err)
                        : rt_fail_errno(err, "make %s", path);
    if (done && fsync(fd) != 0)
        done = rt_fail_errno(err, "write %s", path);
    OPENSSL_cleanse(key, sizeof(key));
    OPENSSL_cleanse(digits, sizeof(digits));
    return done;
}

/* A key that a loss of power takes away would take everything sealed with it along. */
static void sync_directory_of(const char *file, rt_arena *arena)
{
    char *directory = rt_arena_copy(arena, rt_str_of(file));
    char *slash = strrchr(directory, '/');
    if (slash)
        *(slash == directory ? slash + 1 : slash) = '\0';
    int fd RT_CLEANUP(rt_closep) =
        open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        fsync(fd);
}

static bool make_key_file(const char *path, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    uint8_t random[8];
    char suffix[2 * sizeof(random) + 1];
    rt_random_bytes(random, sizeof(random));
    rt_hex(suffix, random, sizeof(random));
    const char *fresh = rt_arena_printf(&arena, "%s.%s", path, suffix).ptr;
    bool done = store_make_directory_of(path, err) && write_key(fresh, err);
    if (done && link(fresh, path) != 0 && errno != EEXIST)
        done = rt_fail_errno(err, "make %s", path);
    unlink(fresh);
    if (done)
        sync_directory_of(path, &arena);
    return done;
}

static bool check_key_file(int fd, rt_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return rt_fail_errno(err, "look at it");
    if (!S_ISREG(st.st_mode))
        return rt_fail(err, RT_DENIED, "it is not a plain file");
    if (st.st_uid != geteuid())
        return rt_fail(err, RT_DENIED, "it belongs to user %u, and we are user %u",
                       (unsigned)st.st_uid, (unsigned)geteuid());
    if ((st.st_mode & 077) != 0)
        return rt_fail(err, RT_DENIED,
                       "its mode is %03o: others could have read the key; make it 600 if you are "
                       "sure that nobody has",
                       st.st_mode & 0777);
    return true;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

static bool parse_key(const char *digits, uint8_t key[KEY_SIZE])
{
    for (int i = 0; i < KEY_SIZE; i++) {
        int high = hex_digit(digits[2 * i]);
        int low = high < 0 ? -1 : hex_digit(digits[2 * i + 1]);
        if (low < 0)
            return false;
        key[i] = (uint8_t)(high << 4 | low);
    }
    return digits[FILE_SIZE - 1] == '\n' || digits[FILE_SIZE - 1] == '\0';
}

static bool read_key(int fd, rt_vault *vault, rt_error *err)
{
    char text[FILE_SIZE + 1] = { 0 }; /* one more, to notice a longer file */
    ssize_t size = pread(fd, text, sizeof(text), 0);
    bool done =
        size < 0 ? rt_fail_errno(err, "read it")
        : (size == FILE_SIZE || size == FILE_SIZE - 1) && parse_key(text, vault->key)
            ? true
            : rt_fail(err, RT_INVALID, "it does not hold %d hexadecimal digits", 2 * KEY_SIZE);
    OPENSSL_cleanse(text, sizeof(text));
    return done;
}

bool rt_vault_open(const char *key_file, rt_vault **out, rt_error *err)
{
    int fd RT_CLEANUP(rt_closep) = open(key_file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        if (!make_key_file(key_file, err))
            return rt_wrap(err, "the key file");
        fd = open(key_file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0)
        return rt_fail_errno(err, "the key file %s", key_file);
    rt_vault *vault RT_CLEANUP(rt_vault_closep) = vault_new();
    if (!check_key_file(fd, err) || !read_key(fd, vault, err))
        return rt_wrap(err, "the key file %s", key_file);
    *out = RT_TAKE(vault);
    return true;
}

/* -- sealing ----------------------------------------------------------------------------------- */

static void free_context(EVP_CIPHER_CTX **context)
{
    EVP_CIPHER_CTX_free(*context); /* wipes the expanded key too */
}

/* libcrypto fails here only without memory, or if we misuse it. */
static void must(int result)
{
    if (result != 1)
        rt_out_of_memory(0);
}

static void cipher(EVP_CIPHER_CTX *context, const char *in, size_t len, char *out)
{
    int written;
    for (size_t at = 0; at < len;) {
        size_t piece = RT_MIN(len - at, (size_t)PIECE_MAX);
        must(EVP_CipherUpdate(context, (uint8_t *)out + at, &written, (const uint8_t *)in + at,
                              (int)piece));
        at += piece;
    }
}

static EVP_CIPHER_CTX *context_new(const rt_vault *vault, rt_str purpose, const uint8_t *nonce,
                                   bool is_sealing)
{
    static const uint8_t version = VERSION;
    int written;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    must(context != NULL);
    must(EVP_CipherInit_ex(context, EVP_aes_256_gcm(), NULL, vault->key, nonce, is_sealing));
    must(EVP_CipherUpdate(context, NULL, &written, &version, 1));
    assert(purpose.len <= PIECE_MAX);
    if (purpose.len > 0)
        must(EVP_CipherUpdate(context, NULL, &written, (const uint8_t *)purpose.ptr,
                              (int)purpose.len));
    return context;
}

void store_seal(const rt_vault *vault, rt_str purpose, rt_str plain, char *sealed)
{
    uint8_t *nonce = (uint8_t *)sealed + 1;
    char *text = sealed + 1 + NONCE_SIZE;
    int written;
    sealed[0] = VERSION;
    rt_random_bytes(nonce, NONCE_SIZE);
    EVP_CIPHER_CTX *context RT_CLEANUP(free_context) = context_new(vault, purpose, nonce, true);
    cipher(context, plain.ptr, plain.len, text);
    must(EVP_CipherFinal_ex(context, (uint8_t *)text + plain.len, &written));
    must(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG_SIZE, text + plain.len));
}

bool store_unseal(const rt_vault *vault, rt_str purpose, rt_str sealed, char *plain, rt_error *err)
{
    if (sealed.len < STORE_SEAL_SIZE || sealed.ptr[0] != VERSION)
        return rt_fail(err, RT_DENIED, "this is not a sealed text");
    const uint8_t *nonce = (const uint8_t *)sealed.ptr + 1;
    const char *text = sealed.ptr + 1 + NONCE_SIZE;
    size_t len = sealed.len - STORE_SEAL_SIZE;
    uint8_t tag[TAG_SIZE];
    int written;
    memcpy(tag, text + len, sizeof(tag));
    EVP_CIPHER_CTX *context RT_CLEANUP(free_context) = context_new(vault, purpose, nonce, false);
    must(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, TAG_SIZE, tag));
    cipher(context, text, len, plain);
    if (EVP_CipherFinal_ex(context, (uint8_t *)plain + len, &written) == 1)
        return true;
    OPENSSL_cleanse(plain, len); /* it was deciphered before it could be judged */
    return rt_fail(err, RT_DENIED,
                   "a sealed text was changed, or sealed for another purpose or with another key");
}

rt_str rt_vault_seal(const rt_vault *vault, rt_str purpose, rt_str plain, rt_arena *arena)
{
    size_t len = plain.len + STORE_SEAL_SIZE;
    char *sealed = rt_arena_alloc_raw(arena, len + 1);
    store_seal(vault, purpose, plain, sealed);
    sealed[len] = '\0';
    return (rt_str){ sealed, len };
}

bool rt_vault_unseal(const rt_vault *vault, rt_str purpose, rt_str sealed, rt_arena *arena,
                     rt_str *plain, rt_error *err)
{
    size_t len = sealed.len < STORE_SEAL_SIZE ? 0 : sealed.len - STORE_SEAL_SIZE;
    char *text = rt_arena_alloc_raw(arena, len + 1);
    if (!store_unseal(vault, purpose, sealed, text, err))
        return false;
    text[len] = '\0';
    *plain = (rt_str){ text, len };
    return true;
}

/* -- secrets ----------------------------------------------------------------------------------- */

/* A NUL byte, which neither part can have, keeps ("a", "bc") and ("ab", "c") apart. */
static rt_str secret_purpose(rt_str organisation_id, rt_str name, rt_arena *arena)
{
    return rt_arena_printf(arena, "secret %.*s%c%.*s", RT_FMT(organisation_id), '\0', RT_FMT(name));
}

bool rt_secret_set(rt_store *store, const rt_vault *vault, rt_str organisation_id, rt_str name,
                   rt_str value, rt_error *err)
{
    if (name.len == 0 || name.len > RT_SECRET_NAME_MAX)
        return rt_fail(err, RT_INVALID, "a secret's name has 1 to %d bytes", RT_SECRET_NAME_MAX);
    if (value.len > RT_SECRET_BYTES_MAX)
        return rt_fail(err, RT_LIMIT, "a secret has at most %d bytes", RT_SECRET_BYTES_MAX);
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str purpose = secret_purpose(organisation_id, name, &arena);
    rt_sql_value row[] = { rt_sql_text(organisation_id), rt_sql_text(name),
                           rt_sql_bytes(rt_vault_seal(vault, purpose, value, &arena)),
                           rt_sql_i64((int64_t)rt_wall_ms()) };
    return rt_sql_once(store, RT_TX_WRITE,
                       "INSERT INTO secrets (organisation_id, name, sealed, created_ms, updated_ms)"
                       " VALUES ($1, $2, $3, $4, $4) ON CONFLICT (organisation_id, name)"
                       " DO UPDATE SET sealed = EXCLUDED.sealed, updated_ms = EXCLUDED.updated_ms",
                       row, RT_COUNT(row), NULL, NULL, err);
}

bool rt_secret_get(rt_store *store, const rt_vault *vault, rt_str organisation_id, rt_str name,
                   rt_arena *arena, rt_str *value, rt_error *err)
{
    rt_sql_value key[] = { rt_sql_text(organisation_id), rt_sql_text(name) };
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_READ,
                     "SELECT sealed FROM secrets WHERE organisation_id = $1 AND name = $2", key,
                     RT_COUNT(key), arena, &rows, err))
        return false;
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "there is no secret %.*s", RT_FMT(name));
    rt_str purpose = secret_purpose(organisation_id, name, arena);
    if (!rt_vault_unseal(vault, purpose, rt_rows_at(&rows, 0, 0).text, arena, value, err))
        return rt_wrap(err, "secret %.*s", RT_FMT(name));
    return true;
}

bool rt_secret_names(rt_store *store, rt_str organisation_id, rt_arena *arena, rt_str **names,
                     size_t *count, rt_error *err)
{
    rt_sql_value key = rt_sql_text(organisation_id);
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_READ,
                     "SELECT name FROM secrets WHERE organisation_id = $1 ORDER BY name COLLATE "
                     "\"C\"",
                     &key, 1, arena, &rows, err))
        return false;
    *names = rt_arena_alloc(arena, rows.count * sizeof(**names));
    *count = rows.count;
    for (size_t i = 0; i < rows.count; i++)
        (*names)[i] = rt_rows_at(&rows, i, 0).text;
    return true;
}

bool rt_secret_remove(rt_store *store, rt_str organisation_id, rt_str name, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value key[] = { rt_sql_text(organisation_id), rt_sql_text(name) };
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_WRITE,
                     "DELETE FROM secrets WHERE organisation_id = $1 AND name = $2", key,
                     RT_COUNT(key), &arena, &rows, err))
        return false;
    return rows.changed > 0 ? true
                            : rt_fail(err, RT_NOT_FOUND, "there is no secret %.*s", RT_FMT(name));
}
