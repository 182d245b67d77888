/* SPDX-License-Identifier: Apache-2.0 */
#include "store/artifacts.h"

#include <criterion/criterion.h>

static void check(const char *name, rt_str head, const char *expected)
{
    const char *type = rt_content_type(rt_str_of(name), head);
    cr_assert_str_eq(type, expected, "%s is %s, not %s", name, type, expected);
}

Test(content_type, goes_by_the_ending_first)
{
    check("report.csv", RT_STR("\x89PNG\r\n\x1a\n"), "text/csv");
    check("REPORT.PDF", RT_STR(""), "application/pdf");
    check("a.tar.gz", RT_STR(""), "application/gzip");
    check("dir.csv/plain", RT_STR("words"), "text/plain");
    check("out/table.parquet", RT_STR(""), "application/vnd.apache.parquet");
}

Test(content_type, knows_every_ending_documents_may_have)
{
    static const char *const endings[] = {
        "pdf",  "doc",  "docx", "txt",    "rtf",   "csv", "xls",  "xlsx",  "ppt",     "pptx",
        "json", "xml",  "yaml", "yml",    "js",    "ts",  "py",   "java",  "cpp",     "c",
        "go",   "rs",   "jpg",  "jpeg",   "png",   "gif", "webp", "mp3",   "wav",     "ogg",
        "mp4",  "webm", "mov",  "html",   "css",   "svg", "md",   "ipynb", "parquet", "zip",
        "gz",   "tar",  "wasm", "ndjson", "jsonl", "log", "tsv",  "ico",
    };
    for (size_t i = 0; i < RT_COUNT(endings); i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_str name = rt_arena_printf(&arena, "x.%s", endings[i]);
        const char *type = rt_content_type(name, RT_STR("\0\1\2"));
        cr_assert_str_neq(type, "application/octet-stream", "%s", endings[i]);
    }
}

Test(content_type, looks_at_the_first_bytes_when_the_name_says_nothing)
{
    check("plot", RT_STR("\x89PNG\r\n\x1a\nrest"), "image/png");
    check("photo", RT_STR("\xff\xd8\xff\xe0"), "image/jpeg");
    check("anim", RT_STR("GIF89a.."), "image/gif");
    check("paper", RT_STR("%PDF-1.7"), "application/pdf");
    check("archive.unknown", RT_STR("PK\x03\x04"), "application/zip");
    check("", RT_STR("\x1f\x8b\x08"), "application/gzip");
}

Test(content_type, tells_text_from_bytes)
{
    check("notes", RT_STR("caf\xc3\xa9"), "text/plain");
    check("notes", RT_STR("cut off in a character: \xe6\x9d"), "text/plain");
    check("notes", RT_STR(""), "text/plain");
    check("notes", (rt_str){ NULL, 0 }, "text/plain");
    check("data", RT_STR("a\0b"), "application/octet-stream");
    check("data", RT_STR("\xff\xfe\xfd"), "application/octet-stream");
    check("data", RT_STR("\xe9"), "application/octet-stream");
    check("data", RT_STR("abc\x80"), "application/octet-stream");
}
