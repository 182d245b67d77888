/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cache_internal.h"

#include <criterion/criterion.h>

Test(cache_url, each_form_is_read)
{
    static const struct {
        const char *text, *host, *path, *user, *password;
        unsigned port, db;
    } rows[] = {
        { "redis://cache", "cache", "", "", "", 6379, 0 },
        { "redis://cache/", "cache", "", "", "", 6379, 0 },
        { "redis://cache:7000/3", "cache", "", "", "", 7000, 3 },
        { "redis://cache?db=4", "cache", "", "", "", 6379, 4 },
        { "redis://:secret@10.0.0.1:7000", "10.0.0.1", "", "", "secret", 7000, 0 },
        { "redis://me:s%40c%2fr%3At@cache/1", "cache", "", "me", "s@c/r:t", 6379, 1 },
        { "redis://me:a@b/c@cache/1", "cache", "", "me", "a@b/c", 6379, 1 },
        { "redis://me:a:b@cache", "cache", "", "me", "a:b", 6379, 0 },
        { "redis://[::1]:7000/2", "::1", "", "", "", 7000, 2 },
        { "redis://[::1]", "::1", "", "", "", 6379, 0 },
        { "unix:///run/redis.sock", "", "/run/redis.sock", "", "", 0, 0 },
        { "unix:///run/a%20b@c.sock?db=2", "", "/run/a b@c.sock", "", "", 0, 2 },
        { "unix://me:secret@/run/redis.sock", "", "/run/redis.sock", "me", "secret", 0, 0 },
    };
    for (size_t i = 0; i < RT_COUNT(rows); i++) {
        store_redis_url url = { 0 };
        rt_error err = { 0 };
        cr_assert(store_redis_url_parse(rt_str_of(rows[i].text), &url, &err), "%s: %s",
                  rows[i].text, err.text);
        cr_expect_str_eq(url.host, rows[i].host, "%s", rows[i].text);
        cr_expect_str_eq(url.path, rows[i].path, "%s", rows[i].text);
        cr_expect_str_eq(url.user, rows[i].user, "%s", rows[i].text);
        cr_expect_str_eq(url.password, rows[i].password, "%s", rows[i].text);
        cr_expect_eq(url.port, rows[i].port, "%s: %u", rows[i].text, url.port);
        cr_expect_eq(url.db, rows[i].db, "%s: %u", rows[i].text, url.db);
    }
}

Test(cache_url, nonsense_is_refused_and_never_repeated)
{
    static const char *const texts[] = {
        "",
        "cache:6379",
        "http://hunter2@cache",
        "redis://",
        "redis://hunter2@cache",
        "redis://me:@cache",
        "redis://:hunter2@",
        "redis://:hunter2@cache:port",
        "redis://:hunter2@cache:65536",
        "redis://:hunter2@cache:0",
        "redis://:hunter2@cache:",
        "redis://:hunter2@cache/65536",
        "redis://:hunter2@cache/db",
        "redis://:hunter2%zz@cache",
        "redis://:hunter2%4",
        "redis://:hunter2%4@cache",
        "redis://:hunter2%00@cache",
        "redis://:hunter2?@cache",
        "redis://[::1",
        "redis://[::1]hunter2",
        "unix://",
        "unix:///",
        "unix://run/redis.sock",
        "unix://hunter2@/run/redis.sock",
        "unix:///run/redis.sock?hunter2=1",
        "unix:///run/redis.sock?db=-1",
        "unix:///"
        "a-path-so-long-that-it-does-not-fit-into-the-address-of-a-socket-which-has-room-for"
        "-a-hundred-and-seven-bytes-and-no-more",
    };
    for (size_t i = 0; i < RT_COUNT(texts); i++) {
        store_redis_url url = { .port = 77 };
        rt_error err = { 0 };
        cr_expect(!store_redis_url_parse(rt_str_of(texts[i]), &url, &err), "%s", texts[i]);
        cr_expect_eq(err.code, RT_INVALID, "%s", texts[i]);
        cr_expect(!strstr(err.text, "hunter2"), "%s", err.text);
        cr_expect(strstr(err.text, "the Redis URL: ") == err.text, "%s", err.text);
        cr_expect_eq(url.port, 77, "written only on success");
    }
}

Test(cache_url, tls_is_refused_clearly)
{
    rt_error err = { 0 };
    cr_expect(
        !store_redis_url_parse(RT_STR("rediss://:hunter2@cache"), &(store_redis_url){ 0 }, &err));
    cr_expect_eq(err.code, RT_UNSUPPORTED);
    cr_expect(strstr(err.text, "TLS") && !strstr(err.text, "hunter2"), "%s", err.text);
}
