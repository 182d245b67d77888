/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_bench.c - how fast we parse, beside cJSON, in one run on one document.
 *
 * The document is made here: an array of commits as GitHub's API describes them, about 2.4 MB.
 * The two parsers take turns of ROUNDS rounds, so that a slow moment of the machine hits both and
 * no parser pays for the small blocks the other has freed; the best round of each counts. "parse"
 * includes releasing the document. Freed memory stays in the process, for both: otherwise half of
 * what is measured is the kernel handing out the same pages again.
 *
 *     gcc -O2 -std=gnu17 -D_GNU_SOURCE -Isrc bench/json_bench.c build/libbase.a \
 *         -lcjson -lcrypto -o build/json_bench && build/json_bench
 */
#include "base/base.h"

#include <cjson/cJSON.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { TARGET_SIZE = 2400000, TURNS = 4, ROUNDS = 15, KEEP_FREED = 1 << 28 };

static const char *const messages[] = {
    "Fix the race between close() and the reader\n\nThe reader kept a pointer into the buffer.",
    "Merge pull request #4711 from someone/quote-\"names\"",
    "Übersetzung: Größe und Maße korrigiert – danke an Jürgen",
    "docs: path is C:\\temp\\retort, not /tmp",
    "日本語のメッセージを追加する",
    "Update dependencies",
};

static void put_person(rt_json_writer *w, const char *key, unsigned i)
{
    rt_jw_kobject(w, key);
    rt_jw_kstr(w, "name", i % 3 ? RT_STR("Ada Lovelace") : RT_STR("J\u00fcrgen M\u00fcller"));
    rt_jw_kstr(w, "email", RT_STR("ada@users.noreply.example.com"));
    rt_jw_kstr(w, "date", RT_STR("2024-05-17T08:14:22Z"));
    rt_jw_end(w);
}

static void put_url(rt_json_writer *w, const char *key, const char *tail, const char *sha)
{
    char url[200];
    snprintf(url, sizeof(url), "https://api.example.com/repos/octo/widgets/%s/%s", tail, sha);
    rt_jw_kstr(w, key, rt_str_of(url));
}

static void put_user(rt_json_writer *w, const char *key, unsigned i)
{
    static const char *const urls[] = { "followers_url", "gists_url", "starred_url", "repos_url",
                                        "events_url" };
    if (i % 7 == 0) {
        rt_jw_knull(w, key);
        return;
    }
    rt_jw_kobject(w, key);
    rt_jw_kstr(w, "login", RT_STR("ada"));
    rt_jw_ku64(w, "id", 583231 + i);
    rt_jw_kstr(w, "node_id", RT_STR("MDQ6VXNlcjU4MzIzMQ=="));
    for (size_t u = 0; u < RT_COUNT(urls); u++)
        put_url(w, urls[u], "users", "ada{/gist_id}");
    rt_jw_kstr(w, "type", RT_STR("User"));
    rt_jw_kbool(w, "site_admin", false);
    rt_jw_end(w);
}

static void put_commit(rt_json_writer *w, unsigned i)
{
    char hash[RT_SHA256_HEX];
    rt_sha256_hex((rt_str){ (const char *)&i, sizeof(i) }, hash);
    hash[40] = '\0';
    rt_jw_object(w);
    rt_jw_kstr(w, "sha", rt_str_of(hash));
    rt_jw_kstr(w, "node_id", RT_STR("MDY6Q29tbWl0MjkxMzQ1NjoxMjM0NTY3ODkwYWJjZGVm"));
    rt_jw_kobject(w, "commit");
    put_person(w, "author", i);
    put_person(w, "committer", i + 1);
    rt_jw_kstr(w, "message", rt_str_of(messages[i % RT_COUNT(messages)]));
    rt_jw_kobject(w, "tree");
    rt_jw_kstr(w, "sha", rt_str_of(hash));
    put_url(w, "url", "git/trees", hash);
    rt_jw_end(w);
    rt_jw_ku64(w, "comment_count", i % 5);
    rt_jw_kobject(w, "verification");
    rt_jw_kbool(w, "verified", i % 2);
    rt_jw_kstr(w, "reason", RT_STR("unsigned"));
    rt_jw_knull(w, "signature");
    rt_jw_knull(w, "payload");
    rt_jw_end(w);
    rt_jw_end(w);
    put_url(w, "url", "commits", hash);
    put_url(w, "html_url", "commit", hash);
    put_url(w, "comments_url", "commits/comments", hash);
    put_user(w, "author", i);
    put_user(w, "committer", i + 3);
    rt_jw_karray(w, "parents");
    rt_jw_object(w);
    rt_jw_kstr(w, "sha", rt_str_of(hash));
    put_url(w, "url", "commits", hash);
    rt_jw_end(w);
    rt_jw_end(w);
    rt_jw_kobject(w, "stats");
    rt_jw_ku64(w, "additions", i * 7 % 1000);
    rt_jw_ku64(w, "deletions", i * 3 % 100);
    rt_jw_kdouble(w, "score", 0.25 + i * 0.125);
    rt_jw_end(w);
    rt_jw_end(w);
}

static void make_document(rt_buf *out)
{
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_array(&w);
    for (unsigned i = 0; out->len < TARGET_SIZE; i++)
        put_commit(&w, i);
    rt_jw_end(&w);
}

static bool parse_ours(rt_str text)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc;
    return rt_json_parse(text, &arena, &doc, NULL);
}

static bool parse_cjson(rt_str text)
{
    cJSON *doc = cJSON_ParseWithLength(text.ptr, text.len);
    bool ok = doc != NULL;
    cJSON_Delete(doc);
    return ok;
}

static double best_rate(rt_str text, bool (*parse)(rt_str), double best)
{
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = rt_now_ns();
        if (!parse(text)) {
            fputs("a parser refused the document\n", stderr);
            exit(1);
        }
        double rate = (double)text.len * 1e3 / (double)(rt_now_ns() - start);
        best = RT_MAX(rate, best);
    }
    return best;
}

int main(void)
{
    mallopt(M_MMAP_THRESHOLD, KEEP_FREED);
    mallopt(M_TRIM_THRESHOLD, KEEP_FREED);
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 }, pretty RT_CLEANUP(rt_buf_done) = { 0 };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc = { NULL };
    make_document(&text);
    if (rt_json_parse(rt_buf_str(&text), &arena, &doc, NULL))
        rt_json_print_pretty(doc, &pretty);
    const struct {
        const char *name;
        rt_str text;
    } documents[] = { { "compact", rt_buf_str(&text) }, { "pretty", rt_buf_str(&pretty) } };

    for (size_t d = 0; d < RT_COUNT(documents); d++) {
        double ours = 0, theirs = 0;
        for (int turn = 0; turn < TURNS; turn++) {
            ours = best_rate(documents[d].text, parse_ours, ours);
            theirs = best_rate(documents[d].text, parse_cjson, theirs);
        }
        printf("json parse %s, %zu bytes: retort %.0f MB/s, cJSON %.0f MB/s (%.1f times)\n",
               documents[d].name, documents[d].text.len, ours, theirs, ours / theirs);
    }
    return 0;
}
