/* SPDX-License-Identifier: Apache-2.0 */
#include "privacy/privacy.h"

#include <criterion/criterion.h>
#include <time.h>

/* "EMAIL:ann@x.org PHONE:555-123-4567": what a scan finds, in order. */
static const char *found_in(rt_str text, const rt_privacy_options *options)
{
    static rt_buf out;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_pii_spans spans;
    rt_error err = { 0 };
    rt_buf_reset(&out);
    cr_assert(rt_privacy_scan(text, options, &arena, &spans, &err), "%s", err.text);
    for (size_t i = 0; i < spans.count; i++) {
        rt_str value = rt_str_slice(text, spans.items[i].start, spans.items[i].end);
        rt_buf_addf(&out, "%s%s:", i ? " | " : "", rt_pii_name(spans.items[i].type, RT_PII_NAME));
        rt_buf_add(&out, value);
    }
    rt_buf_addc(&out, '\0');
    return out.ptr;
}

static void expect(const char *text, const char *wanted)
{
    const char *found = found_in(rt_str_of(text), NULL);
    cr_expect_str_eq(found, wanted, "in: %s\nfound:  %s\nwanted: %s", text, found, wanted);
}

static void expect_whole(const char *type, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        expect(texts[i], rt_arena_printf(&arena, "%s:%s", type, texts[i]).ptr);
    }
}

static void expect_nothing(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect(texts[i], "");
}

#define WHOLE(type, ...)                                                                           \
    expect_whole(type, (const char *const[]){ __VA_ARGS__ },                                       \
                 RT_COUNT(((const char *const[]){ __VA_ARGS__ })))
#define NOTHING(...)                                                                               \
    expect_nothing((const char *const[]){ __VA_ARGS__ },                                           \
                   RT_COUNT(((const char *const[]){ __VA_ARGS__ })))

Test(privacy_scan, finds_emails)
{
    WHOLE("EMAIL", "alice@example.com", "first.last+tag@mail.example.co.uk", "a_b-c@x-y.museum",
          "jürgen@müller.de");
    expect("<bob@corp.io>, 'eve@x.org'.", "EMAIL:bob@corp.io | EMAIL:eve@x.org");
    expect("mailto:jo@x.org?subject=a", "EMAIL:jo@x.org");
}

Test(privacy_scan, is_not_taken_in_by_what_has_an_at_sign)
{
    NOTHING("not-an-email", "test@", "@test.com", "user @domain.com", "git@github.com:org/repo.git",
            "lodash@4.17.21", "logo@2x.png", "getty@tty1.service", "root@localhost", "a@b", "@@",
            "@app.route('/x')");
}

Test(privacy_scan, finds_cards_by_issuer_and_checksum)
{
    WHOLE("CREDIT_CARD", "4532015112830366", "5425 2334 3010 9903", "4111-1111-1111-1111",
          "4242424242424242", "378282246310005", "3782 822463 10005", "30569309025904",
          "6011111111111117", "3530111333300000");
}

Test(privacy_scan, leaves_other_long_numbers_alone)
{
    NOTHING("1234567890123456", "0000000000000000", "4111111111111112", "4111 1111 1111 1112",
            "1700000000123", "x4532015112830366", "4532015112830366.5");
}

Test(privacy_scan, finds_social_security_numbers)
{
    WHOLE("SSN", "123-45-6789", "078-05-1120");
    expect("her social security number is 123456789.", "SSN:123456789");
    expect("SSN 219 09 9998", "SSN:219 09 9998");
}

Test(privacy_scan, knows_which_social_security_numbers_cannot_be)
{
    NOTHING("123-456-789", "12-34-5678", "000-12-3456", "666-12-3456", "912-12-3456", "123-00-4567",
            "123-45-0000", "123456789", "1123-45-6789", "123-45-67890", "123-45-6789-01");
}

Test(privacy_scan, finds_phones_of_many_countries)
{
    WHOLE("PHONE", "555-123-4567", "(555) 123-4567", "555.123.4567", "+1-555-123-4567",
          "1-800-555-0199", "+1 (555) 123-4567 x89", "+44 20 7946 0958", "+44 (0)20 7946 0958",
          "020 7946 0958", "01.23.45.67.89", "06 12 34 56 78", "+33612345678", "0049 30 1234567",
          "(030) 1234567", "+55 11 91234-5678", "(11) 91234-5678", "8 (495) 123-45-67",
          "090-1234-5678", "+86 138 1234 5678", "0171 1234567", "001-555-123-4567x123");
    expect("phone: 5551234567", "PHONE:5551234567");
    expect("<mobile>0612345678</mobile>", "PHONE:0612345678");
    expect("{\"phoneNumber\":\"612345678\"}", "PHONE:612345678");
}

Test(privacy_scan, leaves_dates_ids_and_amounts_alone)
{
    NOTHING("2023-10-05 14:30:00", "20231005143000", "05.10.2023 12:30", "order 123-456-7890",
            "978-3-16-148410-0", "1700000000", "40.712776, -74.005974", "$ 1 234 567 890",
            "12345-6789", "1.234.567,89", "550e8400-e29b-41d4-a716-446655440000",
            "112-1234567-1234567", "00 01 02 03 04 05 06 07", "v1.2.3-20231005", "10 20 30 40 50",
            "123.456.789-09", "8080:8080");
}

Test(privacy_scan, finds_addresses_of_the_internet)
{
    WHOLE("IP", "192.168.1.10", "8.8.4.200", "2001:db8::ff00:42:8329",
          "fe80:0:0:0:202:b3ff:fe1e:8329");
    expect("http://10.0.0.7:8080/x", "IP:10.0.0.7");
    NOTHING("version 1.2.3.4", "1.2.3", "1.2.3.4.5", "192.168.1.300", "127.0.0.1", "std::string",
            "12:30:45", "::", "255.255.255.0", "a::b");
}

Test(privacy_scan, finds_bank_accounts)
{
    WHOLE("IBAN", "DE89370400440532013000", "de89370400440532013000", "GB82 WEST 1234 5698 7654 32",
          "FR14 2004 1010 0505 0001 3M02 606", "NO9386011117947");
    NOTHING("DE89370400440532013001", "DE8937040044053201300", "XX89370400440532013000");
}

Test(privacy_scan, tells_urls_with_credentials_from_plain_ones)
{
    rt_privacy_options secret = { .min_score[RT_PII_URL] = RT_PRIVACY_URL_SECRET };
    rt_str both = RT_STR("postgres://bob:s3cr3t99@db.corp.com/x and https://www.foo-bar.com/a");
    cr_expect_str_eq(found_in(both, &secret), "URL:postgres://bob:s3cr3t99@db.corp.com/x");
    expect(both.ptr, "URL:postgres://bob:s3cr3t99@db.corp.com/x | URL:https://www.foo-bar.com/a");
    expect("see www.jones.net.", "URL:www.jones.net");
    NOTHING("http://localhost:8080/x", "xmlns=\"http://www.w3.org/2000/svg\"");
}

Test(privacy_scan, finds_keys_by_their_form)
{
    WHOLE("API_KEY", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7EXAMPLE",
          "sk_test_abcdefghijklmnopqrstuvwxyz123456", "xoxb-123456789012-abcdefGHIJKL",
          "AIzaSyA1234567890abcdefghijklmnopqrstuv",
          "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0");
    NOTHING("sk_short", "pk_", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk-learn",
            "sk_this_is_a_long_name_of_some_function_here");
    expect("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
           "API_KEY:-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----");
    NOTHING("-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----");
}

Test(privacy_scan, finds_secrets_by_the_name_beside_them)
{
    expect("password = \"hunter2!xY\"", "API_KEY:hunter2!xY");
    expect("DB_PASSWORD=s3cr3tPa55", "API_KEY:s3cr3tPa55");
    expect("api_key: 'a8f5f167f44f4964e6c998dee827110c'",
           "API_KEY:a8f5f167f44f4964e6c998dee827110c");
    expect("<password>Tr0ub4dor&amp3</password>", "API_KEY:Tr0ub4dor&amp3");
    expect("Authorization: Bearer 9f86d081884c7d659a2feaa0c55ad015",
           "API_KEY:9f86d081884c7d659a2feaa0c55ad015");
    expect("my password is Sup3rS3cret!", "API_KEY:Sup3rS3cret");
    NOTHING("password = getpass.getpass()", "token = request.headers['X-Token']",
            "api_key: ${API_KEY}", "password: ********", "secret_name = my-secret-name",
            "max_tokens: 4096", "primary_key: user_id_1234567890", "token_type: bearer12345678901",
            "sha256: a8f5f167f44f4964e6c998dee827110c");
}

Test(privacy_scan, finds_postal_addresses)
{
    WHOLE("ADDRESS", "123 Main Street", "123 Main St., Springfield, IL 62704",
          "9402 Peterson Drives Suite 22\nNew Mary, KY 12345", "12 rue de la Paix, 75002 Paris",
          "Hauptstraße 5, 10115 Berlin", "Calle Mayor 12, 28013 Madrid",
          "Flat 3, 12 High Street, London SW1A 1AA", "P.O. Box 123, Dover, DE 19901",
          "Keizersgracht 123, 1015 CJ Amsterdam", "Via Roma 5, 00184 Roma");
    NOTHING("2 minutes drive", "500 GB drive", "Windows 10 Hard Drive", "3 Google Drive",
            "the 3 way handshake", "chapter 3 The Long Road", "String 12", "in 2023 the street");
}

Test(privacy_scan, finds_addresses_of_many_countries)
{
    WHOLE("ADDRESS", "Petőfi Sándor utca 23., H-3844 Szerbkeresztúr",
          "Moravanská 18, 412 31 Zlaté Hory", "Via Roma, 12, 15074, Molare (AL)",
          "H.No. 756, Nagy Circle, Purnia-313650",
          "Rua Augusta, 1508, Consolação, 01304-001 São Paulo / SP", "Annabelbaan 6, 3760UM, Lith",
          "153 rue Nathalie Suite 474, Laval, QC B5C 3Y8",
          "Flat 39g\nDavies Square\nLeeds\nLS1 4AP", "Unit 0483 Box 5428\nDPO AE 12235",
          "Avenida da Liberdade, S/N, 1250-096 Lisboa", "г. Калач, ул. Мира, д. 5 стр. 6, 494127",
          "Haagan pappilankatu 976, 57568 Nokia",
          "Boulevard Campos 145 Edif. 759 , Depto. 859, San Benjamín, NAY 32542");
    expect("my new address is Horákova 98, 150 99 Chyše", "ADDRESS:Horákova 98, 150 99 Chyše");
    NOTHING("the address is 5 miles from here", "Transaction ID 08294-0619 failed",
            "500 GB hard drive, 16 GB memory", "Boise ID 83702-1234");
}

Test(privacy_scan, finds_secrets_in_a_sentence)
{
    expect("the API key for the weather service is 4f7d2a9b8c1e3f5a6b7c8d9e0f1a2b3c.",
           "API_KEY:4f7d2a9b8c1e3f5a6b7c8d9e0f1a2b3c");
    expect("log in with password kX9$pQ2w and wait", "API_KEY:kX9$pQ2w");
    NOTHING("csrf_token: 8d969eef6ecad3c29a3a629280e686cf",
            "key ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
            "cache key 12345, commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
            "the password must have 12 characters");
}

Test(privacy_scan, finds_what_only_context_tells)
{
    expect("DOB: 12/03/1985", "DATE_OF_BIRTH:12/03/1985");
    expect("born on March 3, 1990", "DATE_OF_BIRTH:March 3, 1990");
    expect("Passport number X1234567.", "PASSPORT:X1234567");
    expect("driver's license D1234567", "DRIVER_LICENSE:D1234567");
    NOTHING("due 12/03/1985", "driver version 535104", "license key 1234567");
}

Test(privacy_scan, hears_of_documents_in_several_languages)
{
    expect("D.O.B.: 26 November 1916", "DATE_OF_BIRTH:26 November 1916");
    expect("Reisepassnummer GHYYPF1V6", "PASSPORT:GHYYPF1V6");
    expect("DL: F255-921-50-094-0", "DRIVER_LICENSE:F255-921-50-094-0");
    expect("Führerschein-Nr. 0527982", "DRIVER_LICENSE:0527982");
    expect("GB70AFRN4697246808960", "IBAN:GB70AFRN4697246808960"); /* one too few, and well made */
    NOTHING("elf/tst-dl_find_object 28738", "Lottery numbers 04 11 23 35 42 49");
}

Test(privacy_scan, looks_for_persons_only_when_asked)
{
    rt_privacy_options all = { .types = RT_PII_ALL };
    NOTHING("Mr. Smith met Anna Weber");
    cr_expect_str_eq(found_in(RT_STR("Mr. Smith met Anna Weber"), &all),
                     "PERSON:Smith | PERSON:Anna Weber");
}

Test(privacy_scan, looks_only_for_the_types_asked_for)
{
    rt_privacy_options emails = { .types = RT_PII_BIT(RT_PII_EMAIL) };
    cr_expect_str_eq(found_in(RT_STR("ann@x.org 555-123-4567"), &emails), "EMAIL:ann@x.org");
}

Test(privacy_scan, counts_positions_in_code_points)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_pii_spans spans;
    cr_assert(rt_privacy_scan(RT_STR("größe 🎈 ann@x.org"), NULL, &arena, &spans, NULL));
    cr_assert_eq(spans.count, 1);
    cr_expect_eq(spans.items[0].start_point, 8);
    cr_expect_eq(spans.items[0].end_point, 17);
    cr_expect_eq(spans.items[0].start, 13);
}

Test(privacy_scan, takes_a_label_for_context)
{
    rt_privacy_options phone = { .label = RT_STR("workPhone") },
                       pass = { .label = RT_STR("password") };
    cr_expect_str_eq(found_in(RT_STR("5551234567"), &phone), "PHONE:5551234567");
    cr_expect_str_eq(found_in(RT_STR("hunter2!x"), &pass), "API_KEY:hunter2!x");
}

Test(privacy_scan, survives_every_single_byte_and_the_empty_text)
{
    rt_privacy_options all = { .types = RT_PII_ALL };
    for (unsigned c = 0; c < 256; c++) {
        char text[3] = { (char)c, (char)c, '1' };
        found_in((rt_str){ text, 3 }, &all);
    }
    found_in((rt_str){ NULL, 0 }, &all);
}

/* Of this thread alone: others may be busy. */
static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds_for(const char *piece, size_t size)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    while (text.len < size)
        rt_buf_add(&text, rt_str_of(piece));
    double began = cpu_seconds();
    found_in(rt_buf_str(&text), NULL);
    return cpu_seconds() - began;
}

/* Eight times the text may take eight times as long, and some; not sixty-four times. */
Test(privacy_scan, stays_linear_on_hostile_text)
{
    static const char *const pieces[] = { "1-",
                                          "@a.",
                                          "a:",
                                          "[",
                                          "1 ",
                                          "12345 ",
                                          "eyJ",
                                          "://",
                                          "::1",
                                          "-----BEGIN ",
                                          "-----BEGIN PRIVATE KEY",
                                          "a@b.c",
                                          "12 Oak ",
                                          "password=",
                                          "\xC3" };
    for (size_t k = 0; k < RT_COUNT(pieces); k++) {
        double little = seconds_for(pieces[k], 64 << 10), much = seconds_for(pieces[k], 512 << 10);
        cr_expect_lt(much, little * 24 + 0.05, "%s: %f s, then %f s", pieces[k], little, much);
    }
}

Test(privacy_types, are_known_by_several_spellings)
{
    uint32_t types;
    rt_error err = { 0 };
    cr_assert(rt_pii_types_parse(RT_STR("EMAIL, credit_card,apiKey"), &types, &err));
    cr_expect_eq(types, RT_PII_BIT(RT_PII_EMAIL) | RT_PII_BIT(RT_PII_CREDIT_CARD) |
                            RT_PII_BIT(RT_PII_API_KEY));
    cr_assert(!rt_pii_types_parse(RT_STR("EMAIL,SHOES"), &types, &err));
    cr_expect_eq(err.code, RT_INVALID);
}

/* ---- own patterns ---- */

Test(privacy_patterns, find_what_the_operator_says)
{
    rt_privacy_patterns *own RT_CLEANUP(rt_privacy_patterns_freep) = NULL;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_pii_spans spans;
    rt_error err = { 0 };
    unsigned type;
    cr_assert(rt_privacy_patterns_new(&own, &err));
    cr_assert(rt_privacy_patterns_add(own, RT_STR("BADGE"), RT_STR("B-\\d{4}"), &type, &err));
    rt_privacy_options options = { .patterns = own };
    cr_assert(rt_privacy_scan(RT_STR("badge B-1234"), &options, &arena, &spans, &err));
    cr_assert_eq(spans.count, 1);
    cr_expect_eq(spans.items[0].type, type);
    cr_expect(rt_str_eq_c(rt_privacy_patterns_name(own, type), "BADGE"));
}

Test(privacy_patterns, refuse_bad_names_and_bad_patterns)
{
    rt_privacy_patterns *own RT_CLEANUP(rt_privacy_patterns_freep) = NULL;
    rt_error err = { 0 };
    unsigned type;
    cr_assert(rt_privacy_patterns_new(&own, &err));
    cr_expect(!rt_privacy_patterns_add(own, RT_STR("EMAIL"), RT_STR("x"), &type, &err));
    cr_expect(!rt_privacy_patterns_add(own, RT_STR("lower"), RT_STR("x"), &type, &err));
    cr_expect(!rt_privacy_patterns_add(own, RT_STR("OPEN"), RT_STR("(x"), &type, &err));
    cr_expect(rt_privacy_patterns_add(own, RT_STR("TWICE"), RT_STR("x"), &type, &err));
    cr_expect(!rt_privacy_patterns_add(own, RT_STR("TWICE"), RT_STR("y"), &type, &err));
}

Test(privacy_patterns, that_run_away_fail_the_scan)
{
    rt_privacy_patterns *own RT_CLEANUP(rt_privacy_patterns_freep) = NULL;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_pii_spans spans;
    rt_error err = { 0 };
    unsigned type;
    cr_assert(rt_privacy_patterns_new(&own, &err));
    cr_assert(rt_privacy_patterns_add(own, RT_STR("BAD"), RT_STR("(a+)+$"), &type, &err));
    rt_privacy_options options = { .patterns = own };
    cr_assert(!rt_privacy_scan(RT_STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"),
                               &options, &arena, &spans, &err));
    cr_expect_eq(err.code, RT_LIMIT);
}

/* ---- streams ---- */

typedef struct heard {
    size_t count;
    rt_pii_span first, last;
} heard;

static bool hear(void *self, const rt_pii_span *span, rt_error *err)
{
    heard *h = self;
    (void)err;
    if (h->count++ == 0)
        h->first = *span;
    h->last = *span;
    return true;
}

Test(privacy_stream, finds_what_lies_across_a_border_wherever_it_is)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_pii_spans spans;
    for (unsigned i = 0; i < 9000; i++)
        rt_buf_addf(&text, "é line %u by ann%u@x.org, phone 555-123-%04u\n", i, i, i % 10000);
    cr_assert(rt_privacy_scan(rt_buf_str(&text), NULL, &arena, &spans, NULL));
    static const size_t steps[] = { 1000, 4099, 65536, 1 << 20 };
    for (size_t k = 0; k < RT_COUNT(steps); k++) {
        rt_privacy_stream stream RT_CLEANUP(rt_privacy_stream_done);
        heard h = { 0 };
        rt_privacy_stream_init(&stream, NULL);
        for (size_t i = 0; i < text.len; i += steps[k])
            cr_assert(rt_privacy_stream_push(&stream,
                                             rt_str_slice(rt_buf_str(&text), i, i + steps[k]),
                                             i + steps[k] >= text.len, hear, &h, NULL));
        cr_expect_eq(h.count, spans.count, "step %zu: %zu of %zu", steps[k], h.count, spans.count);
        cr_expect_eq(h.last.start_point, spans.items[spans.count - 1].start_point);
        cr_expect_eq(h.last.end, spans.items[spans.count - 1].end);
    }
}
