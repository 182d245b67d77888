/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_test.h"
#include "store/tables_internal.h"

/* The hashes were computed with the recipe in audit.h, by Python 3.11. */
static const rt_provenance vector = {
    .execution_id = RT_STR("exec_1794713017123_9f86d081884c7d65"),
    .organisation_id = RT_STR("local"),
    .sequence = 1,
    .skill_name = RT_STR("r\u00e9sum\u00e9 \"x\" \U0001F600\x7f"),
    .skill_version = RT_STR("1.2.0"),
    .actor_id = RT_STR("alice"),
    .actor_type = RT_STR("user"),
    .actor_salt = RT_STR("000102030405060708090a0b0c0d0e0f"),
    .actor_commitment = RT_STR("7fee418a0486ea962378e5106d563a93cb674a559a07cf2bf8d884f1f3ebd1d4"),
    .code_hash = RT_STR("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    .inputs_hash = RT_STR("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    .tool_ids = RT_STR("[\"github:list_commits\"]"),
    .attestation = RT_STR("{\"level\":2,\"layers\":[\"user_ns\",\"seccomp\"],\"share\":5e-1}"),
    .timestamp = RT_STR("2026-11-15T03:23:37.123Z"),
    .execution_time_ms = 12,
    .error_salt = RT_STR("101112131415161718191a1b1c1d1e1f"),
    .error_commitment = RT_STR("3d3052fe831a42c613281e08d87e7fd68e485fc2754fb370ade796d9866b5706"),
    .previous_hash = RT_STR(STORE_FIRST_PREVIOUS_HASH),
};
static const char vector_hash[] =
    "70e520cccd44bdbd7cf8efe0aa149e65bc3a5834c2e5572c24ccaaa6111b3317";

Test(provenance, the_hash_is_the_one_that_python_computes)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    char hash[RT_SHA256_HEX];
    cr_assert(store_link_hash(&vector, &arena, hash, &err), "%s", err.text);
    cr_expect_str_eq(hash, vector_hash);
    store_commitment(vector.actor_salt, vector.actor_id, hash);
    cr_expect(rt_str_eq_c(vector.actor_commitment, hash));
    store_commitment(vector.error_salt, (rt_str){ 0 }, hash);
    cr_expect(rt_str_eq_c(vector.error_commitment, hash));
}

/* What is in the object but for six members, in canonical form, has the hash: as audit.h says. */
Test(provenance, the_written_record_can_be_verified_by_its_reader)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 }, kept RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf canonical RT_CLEANUP(rt_buf_done) = { 0 };
    rt_provenance link = vector;
    link.hash = rt_str_of(vector_hash);
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_provenance_write(&link, &w);
    rt_json record, value;
    cr_assert(rt_json_parse(rt_buf_str(&text), &arena, &record, &err), "%s", err.text);
    static const char *const unhashed[] = { "hash",          "actor_id",   "actor_salt",
                                            "error_message", "error_salt", "is_erased" };
    rt_json_begin(&w, &kept);
    rt_jw_object(&w);
    rt_json_iter it = rt_json_each(record);
    for (rt_str key; rt_json_next(&it, &key, &value);) {
        bool is_hashed = true;
        for (size_t i = 0; i < RT_COUNT(unhashed); i++)
            is_hashed = is_hashed && !rt_str_eq_c(key, unhashed[i]);
        if (is_hashed) {
            rt_jw_key(&w, key);
            rt_jw_json(&w, value);
        }
    }
    rt_jw_end(&w);
    cr_assert(rt_json_parse(rt_buf_str(&kept), &arena, &value, &err), "%s", err.text);
    rt_json_canonical(value, &canonical);
    char hash[RT_SHA256_HEX];
    rt_sha256_hex(rt_buf_str(&canonical), hash);
    cr_expect_str_eq(hash, vector_hash);
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(record, "hash")), vector_hash));
    cr_expect_eq(rt_json_type(rt_json_get_c(record, "error_message")), RT_JSON_NULL);
}

Test(provenance, json_that_reaches_beyond_its_field_has_no_hash)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    char hash[RT_SHA256_HEX];
    rt_provenance link = vector;
    link.tool_ids = RT_STR("[], \"skill_name\": \"x\"");
    cr_expect_not(store_link_hash(&link, &arena, hash, &err));
    cr_expect_eq(err.code, RT_INVALID);
}

STORE_TEST(provenance, a_run_leaves_a_link_that_holds_the_hash_of_the_one_before)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_execution_row row = sample_run("exec_1", "local");
    sample_record(store, &row);
    row.id = RT_STR("exec_2");
    row.user_id = (rt_str){ 0 };
    row.status = RT_STR("FAILED");
    row.error_message = RT_STR("division by zero");
    sample_record(store, &row);
    rt_provenance first, second;
    cr_assert(rt_provenance_get(store, RT_STR("local"), RT_STR("exec_1"), &arena, &first, &err));
    cr_assert(rt_provenance_get(store, RT_STR("local"), RT_STR("exec_2"), &arena, &second, &err));
    cr_expect(rt_str_eq_c(first.previous_hash, STORE_FIRST_PREVIOUS_HASH));
    cr_expect(rt_str_eq(second.previous_hash, first.hash));
    cr_expect_eq(second.sequence, 2);
    cr_expect(rt_str_eq_c(first.actor_id, "alice"));
    cr_expect(rt_str_eq_c(second.actor_id, "key_1"));
    cr_expect(rt_str_eq_c(first.timestamp, "2026-11-15T03:23:37.123Z"));
    cr_expect_eq(first.execution_time_ms, 12.5);
    cr_expect(first.success && !second.success);
    cr_expect(rt_str_eq_c(second.error_message, "division by zero"));
    cr_expect_not(
        rt_provenance_get(store, RT_STR("other"), RT_STR("exec_1"), &arena, &first, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
}

STORE_TEST(provenance, links_are_listed_by_actor_and_skill_newest_first)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    sample_record_many(store, "local", "a", 3);
    rt_execution_row row = sample_run("b1", "local");
    row.user_id = RT_STR("bob");
    row.skill_name = RT_STR("sum");
    sample_record(store, &row);
    const struct {
        rt_str actor_id, skill_name;
        unsigned limit;
        size_t count;
        const char *first;
    } cases[] = {
        { RT_STR(""), RT_STR(""), 0, 4, "b1" },         { RT_STR(""), RT_STR(""), 2, 2, "b1" },
        { RT_STR("alice"), RT_STR(""), 0, 3, "a3" },    { RT_STR(""), RT_STR("sum"), 0, 1, "b1" },
        { RT_STR("alice"), RT_STR("sum"), 0, 0, NULL },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_provenance *rows;
        size_t count;
        cr_assert(rt_provenance_list(store, RT_STR("local"), cases[i].actor_id, cases[i].skill_name,
                                     cases[i].limit, &arena, &rows, &count, &err),
                  "%s", err.text);
        cr_assert_eq(count, cases[i].count, "case %zu", i);
        cr_expect(count == 0 || rt_str_eq_c(rows[0].execution_id, cases[i].first), "case %zu", i);
    }
}
