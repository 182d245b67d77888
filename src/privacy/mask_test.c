/* SPDX-License-Identifier: Apache-2.0 */
#include "privacy/privacy.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include <stdio.h>

typedef struct desk {
    rt_privacy_vault *vault;
    rt_privacy_mask mask;
    rt_privacy_report report;
    rt_arena arena;
    rt_buf out;
} desk;

static desk desk_open(rt_privacy_mode mode)
{
    desk d = { .mask = { .mode = mode } };
    cr_assert(rt_privacy_vault_open(&d.vault, NULL));
    d.mask.vault = d.vault;
    return d;
}

static void desk_close(desk *d)
{
    rt_privacy_vault_closep(&d->vault);
    rt_arena_done(&d->arena);
    rt_buf_done(&d->out);
}

static void expect_text(desk *d, const char *text, const char *wanted)
{
    rt_error err = { 0 };
    rt_buf_reset(&d->out);
    cr_assert(rt_privacy_mask_text(rt_str_of(text), &d->mask, &d->out, &d->report, &err), "%s",
              err.text);
    cr_expect(rt_str_eq_c(rt_buf_str(&d->out), wanted), "%.*s", RT_FMT(rt_buf_str(&d->out)));
}

static rt_json parse(desk *d, rt_str text)
{
    rt_json doc;
    rt_error err = { 0 };
    cr_assert(rt_json_parse(text, &d->arena, &doc, &err), "%s", err.text);
    return doc;
}

static void expect_json(desk *d, const char *text, const char *wanted)
{
    rt_error err = { 0 };
    rt_buf_reset(&d->out);
    cr_assert(rt_privacy_mask_json(parse(d, rt_str_of(text)), &d->mask, &d->out, &d->report, &err),
              "%s", err.text);
    cr_expect(rt_str_eq_c(rt_buf_str(&d->out), wanted), "%.*s", RT_FMT(rt_buf_str(&d->out)));
}

Test(privacy_mask, redacts_with_the_names_of_s0)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_REDACT);
    expect_json(
        &d, "{\"name\":\"John Doe\",\"email\":\"john@example.com\",\"ssn\":\"123-45-6789\"}",
        "{\"name\":\"John Doe\",\"email\":\"[EMAIL_REDACTED]\",\"ssn\":\"[SSN_REDACTED]\"}");
    rt_json_writer w;
    rt_buf_reset(&d.out);
    rt_json_begin(&w, &d.out);
    rt_privacy_report_write(&d.report, RT_PII_CAMEL, NULL, &w);
    cr_expect(rt_str_eq_c(rt_buf_str(&d.out), "[\"email\",\"ssn\"]"));
    expect_json(&d,
                "{\"phone\":\"555-123-4567\",\"cc\":\"4111 1111 1111 1111\",\"addr\":\"123 Main "
                "Street\"}",
                "{\"phone\":\"[PHONE_REDACTED]\",\"cc\":\"[CREDITCARD_REDACTED]\",\"addr\":"
                "\"[ADDRESS_REDACTED]\"}");
}

Test(privacy_mask, redacts_any_sixteen_digits_and_ten_as_s0_did)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_REDACT);
    expect_text(&d, "1234567890123456", "[CREDITCARD_REDACTED]");
    expect_text(&d, "1234-5678-9012-3456", "[CREDITCARD_REDACTED]");
    expect_text(&d, "5552345678", "[PHONE_REDACTED]");
    expect_text(&d, "12 elm road", "[ADDRESS_REDACTED]");
}

Test(privacy_mask, gives_tokens_with_the_names_of_s2)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_TOKENS);
    expect_text(&d,
                "Contact Alice at alice@example.com or call 555-123-4567. Her SSN is 123-45-6789 "
                "and card number is 4532015112830366. API Key: "
                "sk_test_abcdefghijklmnopqrstuvwxyz123456",
                "Contact Alice at [EMAIL_1] or call [PHONE_1]. Her SSN is [SSN_1] and card number "
                "is [CARD_1]. API Key: [APIKEY_1]");
    expect_text(&d, "1-800-555-0199", "1-[PHONE_2]");
    expect_text(&d, "1234567890123456 0000000000000000", "1234567890123456 0000000000000000");
    expect_text(&d, "sk_short pk_ test@ @test.com 12-34-5678",
                "sk_short pk_ test@ @test.com 12-34-5678");
}

Test(privacy_mask, gives_each_occurrence_its_own_token_unless_asked)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_TOKENS);
    expect_text(&d, "a@x.org b@x.org a@x.org", "[EMAIL_1] [EMAIL_2] [EMAIL_3]");
    rt_privacy_vault_wipe(d.vault);
    d.mask.is_stable = true;
    expect_text(&d, "a@x.org b@x.org a@x.org", "[EMAIL_1] [EMAIL_2] [EMAIL_1]");
    cr_expect_eq(rt_privacy_vault_count(d.vault), 2);
}

Test(privacy_mask, hides_parts)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_PARTIAL);
    expect_text(&d, "john@example.com", "j***@example.com");
    expect_text(&d, "4111-1111-1111-1111", "****-****-****-1111");
    expect_text(&d, "123-45-6789", "***-**-6789");
    expect_text(&d, "Hauptstraße 5, 10115 Berlin", "*********** *, ***** ******");
}

Test(privacy_mask, leaves_everything_alone_when_off)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_OFF);
    expect_text(&d, "john@example.com", "john@example.com");
    expect_json(&d, "[\"john@example.com\"]", "[\"john@example.com\"]");
    cr_expect_eq(d.report.total, 0);
}

Test(privacy_mask, leaves_plain_urls_and_takes_those_with_credentials)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_TOKENS);
    expect_text(&d, "https://www.foo-bar.com/a and ftp://me:s3cr3t9@foo-bar.com",
                "https://www.foo-bar.com/a and [URL_1]");
}

Test(privacy_mask, survives_the_way_there_and_back)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_TOKENS);
    rt_buf back RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    const char *text = "{\"users\":[{\"email\":\"a@x.org\",\"age\":41.50,\"tags\":[\"ring "
                       "555-123-4567 \\u00e9\",null,true]},{}],\"n\":-0}";
    rt_buf_reset(&d.out);
    rt_json doc = parse(&d, rt_str_of(text));
    cr_assert(rt_privacy_mask_json(doc, &d.mask, &d.out, &d.report, &err));
    cr_expect(rt_str_find(rt_buf_str(&d.out), RT_STR("a@x.org")) < 0);
    cr_expect_eq(d.report.counts[RT_PII_EMAIL], 1);
    cr_expect_eq(d.report.counts[RT_PII_PHONE], 1);
    cr_assert(rt_privacy_unmask_json(parse(&d, rt_buf_str(&d.out)), d.vault, &back, &err), "%s",
              err.text);
    cr_expect(rt_json_equal(doc, parse(&d, rt_buf_str(&back))));
}

Test(privacy_mask, goes_by_the_names_of_members)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_TOKENS);
    rt_str exempt[] = { RT_STR("id") };
    d.mask.exempt = exempt;
    d.mask.exempt_count = 1;
    expect_json(&d, "{\"id\":\"a@x.org\",\"phone\":\"5551234567\",\"password\":\"hunter2!x\"}",
                "{\"id\":\"a@x.org\",\"phone\":\"[PHONE_1]\",\"password\":\"[APIKEY_1]\"}");
    expect_json(&d, "{\"b@x.org\":1}", "{\"b@x.org\":1}");
    d.mask.masks_keys = true;
    expect_json(&d, "{\"b@x.org\":1}", "{\"[EMAIL_1]\":1}");
}

Test(privacy_mask, puts_values_back_wherever_code_has_put_tokens)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_TOKENS);
    rt_buf back RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    expect_text(&d, "a@x.org b@x.org", "[EMAIL_1] [EMAIL_2]");
    cr_assert(rt_privacy_unmask_json(parse(&d, RT_STR("{\"[EMAIL_2]\":[\"x[EMAIL_1]y\"]}")),
                                     d.vault, &back, &err));
    cr_expect(rt_str_eq_c(rt_buf_str(&back), "{\"b@x.org\":[\"xa@x.orgy\"]}"));
}

Test(privacy_mask, refuses_tokens_it_never_gave)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_TOKENS);
    rt_buf back RT_CLEANUP(rt_buf_done) = { 0 };
    static const char *const foreign[] = { "[EMAIL_9]", "[EMAIL_0]", "[PHONE_1]",
                                           "[EMAIL_18446744073709551615]" };
    expect_text(&d, "a@x.org", "[EMAIL_1]");
    for (size_t i = 0; i < RT_COUNT(foreign); i++) {
        rt_error err = { 0 };
        cr_expect(!rt_privacy_unmask_text(rt_str_of(foreign[i]), d.vault, &back, &err));
        cr_expect_eq(err.code, RT_NOT_FOUND);
    }
    rt_buf_reset(&back);
    cr_assert(
        rt_privacy_unmask_text(RT_STR("[INFO_1] [x] [EMAIL_] [EMAIL_x]["), d.vault, &back, NULL));
    cr_expect(rt_str_eq_c(rt_buf_str(&back), "[INFO_1] [x] [EMAIL_] [EMAIL_x]["));
}

Test(privacy_mask, gives_own_patterns_their_names)
{
    desk d RT_CLEANUP(desk_close) = desk_open(RT_PRIVACY_TOKENS);
    rt_privacy_patterns *own RT_CLEANUP(rt_privacy_patterns_freep) = NULL;
    rt_buf back RT_CLEANUP(rt_buf_done) = { 0 };
    unsigned type;
    cr_assert(rt_privacy_patterns_new(&own, NULL));
    cr_assert(rt_privacy_patterns_add(own, RT_STR("STAFF_ID"), RT_STR("S\\d{5}"), &type, NULL));
    d.mask.scan.patterns = own;
    expect_text(&d, "S12345 came", "[STAFF_ID_1] came");
    cr_assert(rt_privacy_unmask_text(RT_STR("[STAFF_ID_1]"), d.vault, &back, NULL));
    cr_expect(rt_str_eq_c(rt_buf_str(&back), "S12345"));
}

/* ---- the vault ---- */

Test(privacy_vault, keeps_values_by_type_and_number)
{
    rt_privacy_vault *vault RT_CLEANUP(rt_privacy_vault_closep) = NULL;
    rt_str value;
    size_t number;
    cr_assert(rt_privacy_vault_open(&vault, NULL));
    for (size_t i = 1; i <= 5000; i++) {
        char text[32];
        snprintf(text, sizeof(text), "value %zu", i);
        cr_assert(rt_privacy_vault_add(vault, i % 2, rt_str_of(text), true, &number, NULL));
        cr_assert_eq(number, (i + 1) / 2);
    }
    cr_assert(rt_privacy_vault_get(vault, 1, 7, &value, NULL));
    cr_expect(rt_str_eq_c(value, "value 13"));
    cr_assert(rt_privacy_vault_add(vault, 1, RT_STR("value 13"), true, &number, NULL));
    cr_expect_eq(number, 7);
    cr_expect_eq(rt_privacy_vault_count(vault), 5000);
}

Test(privacy_vault, forgets_when_wiped)
{
    rt_privacy_vault *vault RT_CLEANUP(rt_privacy_vault_closep) = NULL;
    rt_str value;
    size_t number;
    cr_assert(rt_privacy_vault_open(&vault, NULL));
    cr_assert(rt_privacy_vault_add(vault, 0, RT_STR("x"), false, &number, NULL));
    rt_privacy_vault_wipe(vault);
    cr_expect_eq(rt_privacy_vault_count(vault), 0);
    cr_expect(!rt_privacy_vault_get(vault, 0, 1, &value, NULL));
    cr_assert(rt_privacy_vault_add(vault, 0, RT_STR("y"), false, &number, NULL));
    cr_expect_eq(number, 1);
}

Test(privacy_vault, takes_large_values_and_knows_its_limit)
{
    rt_privacy_vault *vault RT_CLEANUP(rt_privacy_vault_closep) = NULL;
    rt_error err = { 0 };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    size_t number, size = RT_PRIVACY_VAULT_BYTES_MAX / 4;
    rt_str big = { rt_arena_alloc(&arena, size), size };
    cr_assert(rt_privacy_vault_open(&vault, NULL));
    for (unsigned i = 0; i < 4; i++)
        cr_assert(rt_privacy_vault_add(vault, 0, big, false, &number, &err));
    cr_expect(!rt_privacy_vault_add(vault, 0, big, false, &number, &err));
    cr_expect_eq(err.code, RT_LIMIT);
}

/* The kernel's own word for it: dd is "not in dumps", dc "not in children". */
Test(privacy_vault, lives_in_memory_that_is_not_dumped_and_not_inherited)
{
    rt_privacy_vault *vault RT_CLEANUP(rt_privacy_vault_closep) = NULL;
    rt_str value;
    size_t number;
    char line[512];
    bool is_ours = false, is_kept_out = false;
    cr_assert(rt_privacy_vault_open(&vault, NULL));
    cr_assert(rt_privacy_vault_add(vault, 0, RT_STR("x"), false, &number, NULL));
    cr_assert(rt_privacy_vault_get(vault, 0, 1, &value, NULL));
    FILE *maps = fopen("/proc/self/smaps", "re");
    cr_assert(maps);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            is_ours = (unsigned long)value.ptr >= low && (unsigned long)value.ptr < high;
        else if (is_ours && strncmp(line, "VmFlags:", 8) == 0)
            is_kept_out = strstr(line, " dd") && strstr(line, " dc");
    }
    fclose(maps);
    cr_expect(is_kept_out);
}
