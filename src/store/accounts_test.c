/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_test.h"

static rt_key create(rt_store *store, const rt_key_spec *spec, rt_arena *arena, rt_str *secret)
{
    rt_error err = { 0 };
    rt_key key = { 0 };
    cr_assert(rt_key_create(store, spec, arena, &key, secret, &err), "%s", err.text);
    return key;
}

static const rt_key_spec acme_spec = {
    .name = RT_STR("ci"),
    .organisation = RT_STR("acme"),
    .workspace = RT_STR("build"),
    .user = RT_STR("robot-1"),
    .role = RT_ROLE_MEMBER,
    .rate_per_minute = 60,
    .budget_usd_month = 12.5,
};

STORE_TEST(accounts, a_new_key_makes_its_places_and_is_found_by_its_secret)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str secret;
    rt_key made = create(store, &acme_spec, &arena, &secret), found;
    cr_expect_eq(secret.len, 46);
    cr_expect(rt_str_starts(secret, RT_STR("rt_")));
    cr_expect(rt_str_eq(made.prefix, rt_str_slice(secret, 0, 10)));
    cr_assert(rt_key_find(store, secret, &arena, &found, &err), "%s", err.text);
    cr_expect(rt_str_eq(found.id, made.id));
    cr_expect(rt_str_eq_c(found.organisation_id, "acme"));
    cr_expect(rt_str_eq_c(found.workspace_id, "build"));
    cr_expect(rt_str_eq_c(found.user_id, "robot-1"));
    cr_expect_eq(found.role, RT_ROLE_MEMBER);
    cr_expect_eq(found.rate_per_minute, 60);
    cr_expect_eq(found.budget_usd_month, 12.5);
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM organisations"), 2);
    create(store, &acme_spec, &arena, &secret); /* a second one of the same places */
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM organisations"), 2);
}

STORE_TEST(accounts, the_store_does_not_hold_the_secret)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str secret;
    rt_rows rows;
    create(store, &acme_spec, &arena, &secret);
    cr_assert(
        rt_sql_once(store, RT_TX_READ, "SELECT * FROM api_keys", NULL, 0, &arena, &rows, &err));
    for (size_t i = 0; i < rows.columns; i++)
        cr_expect_lt(rt_str_find(rt_rows_at(&rows, 0, i).text, rt_str_slice(secret, 10, 46)), 0);
}

STORE_TEST(accounts, without_places_a_key_is_of_the_local_ones)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str secret;
    rt_key key = create(store, &(rt_key_spec){ .role = RT_ROLE_OWNER }, &arena, &secret);
    cr_expect(rt_str_eq_c(key.organisation_id, RT_LOCAL_ORGANISATION));
    cr_expect(rt_str_eq_c(key.user_id, RT_LOCAL_USER));
}

STORE_TEST(accounts, names_that_cannot_be_ids_are_refused_with_the_rule)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    const rt_key_spec specs[] = {
        { .role = RT_ROLE_NONE },
        { .role = RT_ROLE_ADMIN, .organisation = RT_STR("Acme") },
        { .role = RT_ROLE_ADMIN, .organisation = RT_STR("-acme") },
        { .role = RT_ROLE_ADMIN, .workspace = RT_STR("a b") },
        { .role = RT_ROLE_ADMIN, .user = RT_STR("bob@example.com") },
        { .role = RT_ROLE_ADMIN,
          .user = RT_STR("a123456789012345678901234567890123456789012345678901234567890123") },
        { .role = RT_ROLE_ADMIN, .name = RT_STR("two\nlines") },
        { .role = RT_ROLE_ADMIN, .budget_usd_month = -1 },
    };
    for (size_t i = 0; i < RT_COUNT(specs); i++) {
        rt_error err = { 0 };
        rt_key key;
        rt_str secret;
        cr_expect_not(rt_key_create(store, &specs[i], &arena, &key, &secret, &err), "case %zu", i);
        cr_expect_eq(err.code, RT_INVALID, "case %zu", i);
    }
}

STORE_TEST(accounts, a_key_that_is_unknown_revoked_or_expired_is_denied_alike)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str revoked, expired, secret;
    rt_key_spec spec = acme_spec;
    rt_key key = create(store, &spec, &arena, &revoked), found;
    cr_expect_not(rt_key_revoke(store, RT_STR("local"), key.id, 5, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
    cr_assert(rt_key_revoke(store, RT_STR("acme"), key.id, 5, &err), "%s", err.text);
    cr_assert(rt_key_revoke(store, RT_STR(""), key.id, 6, &err), "%s", err.text);
    spec.expires_ms = rt_wall_ms() - 1;
    create(store, &spec, &arena, &expired);
    spec.expires_ms = rt_wall_ms() + 3600000;
    create(store, &spec, &arena, &secret);
    const rt_str denied[] = { revoked, expired, RT_STR(""), RT_STR("rt_x"),
                              RT_STR("rt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA") };
    for (size_t i = 0; i < RT_COUNT(denied); i++) {
        cr_expect_not(rt_key_find(store, denied[i], &arena, &found, &err), "case %zu", i);
        cr_expect_eq(err.code, RT_DENIED);
        cr_expect_str_eq(err.text, "the key is not valid");
    }
    cr_expect(rt_key_find(store, secret, &arena, &found, &err));
    uint64_t working;
    cr_assert(rt_key_count(store, &working, &err), "%s", err.text);
    cr_expect_eq(working, 1);
    cr_expect_eq(sample_number(store, "SELECT MAX(revoked_ms) FROM api_keys"), 5);
}

STORE_TEST(accounts, keys_are_listed_per_organisation_with_their_last_use)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str secret;
    rt_key *rows, key = create(store, &acme_spec, &arena, &secret);
    size_t count;
    create(store, &(rt_key_spec){ .role = RT_ROLE_VIEWER }, &arena, &secret);
    cr_assert(rt_key_touch(store, key.id, 70, &err), "%s", err.text);
    cr_assert(rt_key_touch(store, key.id, 60, &err), "%s", err.text); /* came late */
    cr_assert(rt_key_list(store, RT_STR("acme"), &arena, &rows, &count, &err), "%s", err.text);
    cr_assert_eq(count, 1);
    cr_expect(rt_str_eq_c(rows[0].name, "ci"));
    cr_expect_eq(rows[0].last_used_ms, 70);
    cr_assert(rt_key_list(store, RT_STR(""), &arena, &rows, &count, &err), "%s", err.text);
    cr_expect_eq(count, 2);
}

Test(accounts, roles_have_names)
{
    rt_role role;
    rt_error err = { 0 };
    cr_expect(rt_role_parse(RT_STR("admin"), &role, &err) && role == RT_ROLE_ADMIN);
    cr_expect_str_eq(rt_role_name(RT_ROLE_VIEWER), "viewer");
    cr_expect_not(rt_role_parse(RT_STR("none"), &role, &err));
    cr_expect_not(rt_role_parse(RT_STR("root"), &role, &err));
}
