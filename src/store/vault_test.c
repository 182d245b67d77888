/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fixture_test.h"
#include "store/vault.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct vault_fixture {
    store_fixture place;
    char key_file[128];
    rt_vault *vault;
    rt_arena arena;
    rt_error err;
} vault_fixture;

static void done(vault_fixture *at)
{
    rt_vault_closep(&at->vault);
    rt_arena_done(&at->arena);
    store_fixture_done(&at->place);
}

static void setup(vault_fixture *at)
{
    store_fixture_place(&at->place, "sqlite");
    snprintf(at->key_file, sizeof(at->key_file), "%s/keys/key", at->place.directory);
    cr_assert(rt_vault_open(at->key_file, &at->vault, &at->err), "%s", at->err.text);
}

#define VAULT_TEST(name)                                                                           \
    static void vault_##name(vault_fixture *at);                                                   \
    Test(vault, name)                                                                              \
    {                                                                                              \
        vault_fixture at RT_CLEANUP(done) = { 0 };                                                 \
        setup(&at);                                                                                \
        vault_##name(&at);                                                                         \
    }                                                                                              \
    static void vault_##name(vault_fixture *at)

VAULT_TEST(what_was_sealed_opens_again)
{
    static char long_text[200000];
    memset(long_text, 'x', sizeof(long_text));
    const rt_str texts[] = {
        RT_STR(""), RT_STR("a"), RT_STR("a\0b"), { long_text, sizeof(long_text) }
    };
    rt_vault *again RT_CLEANUP(rt_vault_closep) = NULL;
    cr_assert(rt_vault_open(at->key_file, &again, &at->err), "%s", at->err.text);
    for (size_t i = 0; i < RT_COUNT(texts); i++) {
        rt_str sealed = rt_vault_seal(at->vault, RT_STR("test"), texts[i], &at->arena), plain;
        cr_assert(rt_vault_unseal(again, RT_STR("test"), sealed, &at->arena, &plain, &at->err));
        cr_assert(rt_str_eq(plain, texts[i]));
        if (texts[i].len > 3)
            cr_assert_lt(rt_str_find(sealed, RT_STR("xxxx")), 0);
    }
}

VAULT_TEST(the_same_text_never_looks_the_same)
{
    rt_str one = rt_vault_seal(at->vault, RT_STR("p"), RT_STR("text"), &at->arena);
    rt_str two = rt_vault_seal(at->vault, RT_STR("p"), RT_STR("text"), &at->arena);
    cr_assert_eq(one.len, two.len);
    cr_assert(!rt_str_eq(one, two));
}

VAULT_TEST(a_change_of_any_byte_is_noticed)
{
    rt_str sealed = rt_vault_seal(at->vault, RT_STR("p"), RT_STR("some text"), &at->arena), plain;
    for (size_t i = 0; i < sealed.len; i++) {
        char *changed = rt_arena_copy(&at->arena, sealed);
        changed[i] ^= 1;
        cr_assert(!rt_vault_unseal(at->vault, RT_STR("p"), (rt_str){ changed, sealed.len },
                                   &at->arena, &plain, &at->err));
        cr_assert_eq(at->err.code, RT_DENIED);
        cr_assert(!rt_vault_unseal(at->vault, RT_STR("p"), rt_str_slice(sealed, 0, i), &at->arena,
                                   &plain, &at->err));
    }
}

VAULT_TEST(a_text_opens_only_for_its_purpose_and_with_its_key)
{
    rt_str sealed = rt_vault_seal(at->vault, RT_STR("answer"), RT_STR("text"), &at->arena), plain;
    cr_assert(!rt_vault_unseal(at->vault, RT_STR("secret"), sealed, &at->arena, &plain, &at->err));
    cr_assert(!rt_vault_unseal(at->vault, RT_STR(""), sealed, &at->arena, &plain, &at->err));
    char other[160];
    snprintf(other, sizeof(other), "%s.other", at->key_file);
    rt_vault *stranger RT_CLEANUP(rt_vault_closep) = NULL;
    cr_assert(rt_vault_open(other, &stranger, &at->err), "%s", at->err.text);
    cr_assert(!rt_vault_unseal(stranger, RT_STR("answer"), sealed, &at->arena, &plain, &at->err));
}

VAULT_TEST(the_key_file_is_for_its_owner_alone)
{
    struct stat st;
    cr_assert_eq(stat(at->key_file, &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0600);
    cr_assert_eq(st.st_size, 65);
    static const mode_t refused[] = { 0640, 0604, 0610, 0601, 0666 };
    for (size_t i = 0; i < RT_COUNT(refused); i++) {
        rt_vault *vault = NULL;
        chmod(at->key_file, refused[i]);
        cr_assert(!rt_vault_open(at->key_file, &vault, &at->err));
        cr_assert_eq(at->err.code, RT_DENIED);
        cr_assert_eq(stat(at->key_file, &st), 0);
        cr_assert_eq(st.st_mode & 0777, refused[i], "a refused file is not repaired");
    }
}

VAULT_TEST(a_link_or_a_broken_key_file_is_refused)
{
    static const char *const contents[] = {
        "", "0123", "zz23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n\n"
    };
    char path[160];
    for (size_t i = 0; i < RT_COUNT(contents); i++) {
        rt_vault *vault = NULL;
        snprintf(path, sizeof(path), "%s.broken%zu", at->key_file, i);
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        cr_assert(rt_write_all(fd, rt_str_of(contents[i]), &at->err));
        close(fd);
        cr_assert(!rt_vault_open(path, &vault, &at->err), "%zu", i);
        cr_assert_eq(at->err.code, RT_INVALID, "%s", at->err.text);
    }
    rt_vault *vault = NULL;
    snprintf(path, sizeof(path), "%s.link", at->key_file);
    cr_assert_eq(symlink(at->key_file, path), 0);
    cr_assert(!rt_vault_open(path, &vault, &at->err));
}

typedef struct opener {
    const char *key_file;
    pthread_barrier_t *gun;
    rt_vault *vault;
} opener;

static void *open_vault(void *ctx)
{
    opener *self = ctx;
    rt_error err = { 0 };
    pthread_barrier_wait(self->gun);
    rt_vault_open(self->key_file, &self->vault, &err);
    return NULL;
}

VAULT_TEST(all_who_start_at_once_have_the_same_key)
{
    enum { OPENERS = 8 };
    char path[160];
    snprintf(path, sizeof(path), "%s/others/key", at->place.directory);
    pthread_barrier_t gun;
    pthread_barrier_init(&gun, NULL, OPENERS);
    opener openers[OPENERS];
    pthread_t threads[OPENERS];
    for (size_t i = 0; i < OPENERS; i++) {
        openers[i] = (opener){ path, &gun, NULL };
        pthread_create(&threads[i], NULL, open_vault, &openers[i]);
    }
    for (size_t i = 0; i < OPENERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&gun);
    for (size_t i = 0; i < OPENERS; i++) {
        cr_assert(openers[i].vault);
        rt_str plain,
            sealed = rt_vault_seal(openers[0].vault, RT_STR("p"), RT_STR("x"), &at->arena);
        cr_assert(
            rt_vault_unseal(openers[i].vault, RT_STR("p"), sealed, &at->arena, &plain, &at->err),
            "%s", at->err.text);
    }
    for (size_t i = 0; i < OPENERS; i++)
        rt_vault_close(openers[i].vault);
}

/* -- secrets --------------------------------------------------------------------------------------
 */

static rt_vault *vault_at(const store_fixture *where)
{
    char path[128];
    rt_error err = { 0 };
    rt_vault *vault = NULL;
    snprintf(path, sizeof(path), "%s/key", where->directory);
    cr_assert(rt_vault_open(path, &vault, &err), "%s", err.text);
    return vault;
}

STORE_TEST(secrets, a_secret_is_set_read_replaced_and_removed)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_vault *vault RT_CLEANUP(rt_vault_closep) = vault_at(where);
    rt_error err = { 0 };
    rt_str value, *names, local = RT_STR("local"), token = RT_STR("github-token");
    size_t count;
    cr_assert(rt_secret_set(store, vault, local, token, RT_STR("one"), &err), "%s", err.text);
    cr_assert(rt_secret_set(store, vault, local, token, RT_STR("two\0three"), &err));
    cr_assert(rt_secret_set(store, vault, local, RT_STR("Another"), RT_STR("x"), &err));
    cr_assert(rt_secret_get(store, vault, local, token, &arena, &value, &err), "%s", err.text);
    cr_assert(rt_str_eq(value, RT_STR("two\0three")));
    cr_assert(rt_secret_names(store, local, &arena, &names, &count, &err), "%s", err.text);
    cr_assert_eq(count, 2);
    cr_assert(rt_str_eq_c(names[0], "Another") && rt_str_eq(names[1], token));
    cr_assert(rt_secret_remove(store, local, token, &err), "%s", err.text);
    cr_assert(!rt_secret_remove(store, local, token, &err));
    cr_assert_eq(err.code, RT_NOT_FOUND);
    cr_assert(!rt_secret_get(store, vault, local, token, &arena, &value, &err));
    cr_assert_eq(err.code, RT_NOT_FOUND);
}

STORE_TEST(secrets, a_secret_moved_to_another_name_does_not_open)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_vault *vault RT_CLEANUP(rt_vault_closep) = vault_at(where);
    rt_error err = { 0 };
    rt_str value;
    cr_assert(rt_secret_set(store, vault, RT_STR("local"), RT_STR("a"), RT_STR("x"), &err));
    cr_assert(rt_sql_once(store, RT_TX_WRITE, "UPDATE secrets SET name = 'b'", NULL, 0, NULL, NULL,
                          &err));
    cr_assert(!rt_secret_get(store, vault, RT_STR("local"), RT_STR("b"), &arena, &value, &err));
    cr_assert_eq(err.code, RT_DENIED);
}

STORE_TEST(secrets, an_organisation_sees_only_its_own)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_vault *vault RT_CLEANUP(rt_vault_closep) = vault_at(where);
    rt_error err = { 0 };
    rt_str value;
    cr_assert(rt_secret_set(store, vault, RT_STR("local"), RT_STR("a"), RT_STR("x"), &err));
    cr_assert(!rt_secret_get(store, vault, RT_STR("other"), RT_STR("a"), &arena, &value, &err));
    cr_assert_eq(err.code, RT_NOT_FOUND);
    cr_assert(!rt_secret_remove(store, RT_STR("other"), RT_STR("a"), &err));
    cr_assert(!rt_secret_set(store, vault, RT_STR("other"), RT_STR("a"), RT_STR("x"), &err));
    cr_assert_eq(err.code, RT_CONFLICT);
}

STORE_TEST(secrets, sizes_are_limited)
{
    rt_vault *vault RT_CLEANUP(rt_vault_closep) = vault_at(where);
    static char big[RT_SECRET_BYTES_MAX + 1];
    rt_error err = { 0 };
    rt_str local = RT_STR("local"), largest = { big, RT_SECRET_BYTES_MAX };
    cr_assert(rt_secret_set(store, vault, local, RT_STR("a"), largest, &err), "%s", err.text);
    largest.len++;
    cr_assert(!rt_secret_set(store, vault, local, RT_STR("a"), largest, &err));
    cr_assert_eq(err.code, RT_LIMIT);
    cr_assert(!rt_secret_set(store, vault, local, RT_STR(""), RT_STR("x"), &err));
    cr_assert(!rt_secret_set(store, vault, local, (rt_str){ big, RT_SECRET_NAME_MAX + 1 },
                             RT_STR("x"), &err));
    cr_assert_eq(err.code, RT_INVALID);
}
