/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "server/guard.h"

static const rt_str origins[] = { { "https://app.example.com", 23 } };
static const rt_str hosts[] = { { "retort.internal", 15 } };

static const guard_rules local = { .is_local = true,
                                   .allowed_origins = origins,
                                   .allowed_origin_count = 1,
                                   .allowed_hosts = hosts,
                                   .allowed_host_count = 1 };
static const guard_rules open = { .public_url = { "https://retort.example.com", 26 } };

typedef struct visit_case {
    const char *host, *origin, *site;
    bool is_page, is_let_in;
} visit_case;

static void try_all(const guard_rules *rules, const visit_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const visit_case *c = &cases[i];
        rt_error err = { 0 };
        guard_visit visit = { rt_str_of(c->host), rt_str_of(c->origin), rt_str_of(c->site),
                              c->is_page };
        cr_expect_eq(guard_check(rules, &visit, &err), c->is_let_in, "host %s origin %s site %s",
                     c->host, c->origin, c->site);
        cr_expect_eq(err.code, c->is_let_in ? RT_OK : RT_DENIED);
    }
}

Test(guard, without_keys_only_this_machine_is_answered)
{
    static const visit_case cases[] = {
        { "localhost", NULL, NULL, false, true },
        { "localhost:8002", NULL, NULL, false, true },
        { "LocalHost:1", NULL, NULL, false, true },
        { "127.0.0.1:8002", NULL, NULL, false, true },
        { "127.9.8.7", NULL, NULL, false, true },
        { "[::1]", NULL, NULL, false, true },
        { "[::1]:8002", NULL, NULL, false, true },
        { "retort.internal:80", NULL, NULL, false, true },
        { NULL, NULL, NULL, false, false },
        { "", NULL, NULL, false, false },
        { "evil.example", NULL, NULL, false, false },
        { "localhost.evil.example", NULL, NULL, false, false },
        { "127.0.0.1.evil.example", NULL, NULL, false, false },
        { "evil.example:127.0.0.1", NULL, NULL, false, false },
        { "localhost@evil.example", NULL, NULL, false, false },
        { "127.0.0.1:", NULL, NULL, false, false },
        { "127.0.0.1:99999", NULL, NULL, false, false },
        { "128.0.0.1", NULL, NULL, false, false },
        { "0.0.0.0:8002", NULL, NULL, false, false },
        { "[::]:8002", NULL, NULL, false, false },
        { "[::1", NULL, NULL, false, false },
        { "[::1]x", NULL, NULL, false, false },
        { "0x7f000001", NULL, NULL, false, false },
        { "localhost:8002:80", NULL, NULL, false, false },
    };
    try_all(&local, cases, RT_COUNT(cases));
}

Test(guard, a_foreign_page_does_not_get_in)
{
    static const visit_case cases[] = {
        { "localhost:8002", "http://localhost:8002", NULL, false, true },
        { "localhost:8002", "http://localhost:8002", "same-origin", false, true },
        { "localhost", "http://localhost", NULL, false, true },
        { "localhost", "http://localhost:80", NULL, false, true },
        { "localhost", "https://localhost", NULL, false, true },
        { "localhost:8002", "https://app.example.com", "cross-site", false, true },
        { "localhost:8002", "HTTPS://App.Example.com", "cross-site", false, true },
        { "localhost:8002", NULL, "same-origin", false, true },
        { "localhost:8002", NULL, "none", false, true },
        { "localhost:8002", NULL, "cross-site", true, true },
        { "localhost:8002", NULL, "cross-site", false, false },
        { "localhost:8002", "http://localhost:3000", "same-site", false, false },
        { "localhost:8002", "http://127.0.0.1:8002", NULL, false, false },
        { "localhost:8002", "https://evil.example", NULL, true, false },
        { "localhost:8002", "https://app.example.com.evil.example", NULL, false, false },
        { "localhost:8002", "https://app.example.com:444", NULL, false, false },
        { "localhost:8002", "http://app.example.com", NULL, false, false },
        { "localhost:8002", "null", NULL, false, false },
        { "localhost:8002", "", NULL, false, false },
        { "localhost:8002", "file://", NULL, false, false },
        { "localhost:8002", "chrome-extension://abc", NULL, false, false },
        { "localhost:8002", "://localhost:8002", NULL, false, false },
        { "evil.example", "http://evil.example", NULL, false, false },
    };
    try_all(&local, cases, RT_COUNT(cases));
}

Test(guard, with_keys_any_name_will_do_and_foreign_pages_still_do_not)
{
    static const visit_case cases[] = {
        { "anything.example", NULL, NULL, false, true },
        { "10.0.0.5:8002", "http://10.0.0.5:8002", NULL, false, true },
        { "10.0.0.5:8002", "https://retort.example.com", NULL, false, true },
        { "retort.example.com", "https://retort.example.com:443", NULL, false, true },
        { "10.0.0.5:8002", "http://retort.example.com", NULL, false, false },
        { "10.0.0.5:8002", "https://evil.example", NULL, false, false },
    };
    try_all(&open, cases, RT_COUNT(cases));
}

Test(guard, pages_of_allowed_origins_may_read_answers)
{
    cr_expect(guard_is_allowed_origin(&local, RT_STR("https://app.example.com")));
    cr_expect(!guard_is_allowed_origin(&local, RT_STR("http://localhost:8002")));
    cr_expect(!guard_is_allowed_origin(&local, (rt_str){ 0 }));
}
