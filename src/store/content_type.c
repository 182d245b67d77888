/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content_type.c - what a file is: by its name's ending, else by its first bytes.
 *
 * The ending goes first because it is what people mean: a .csv is text/csv whatever it begins with.
 */
#include "store/artifacts.h"

#include <strings.h>

#define ENDING_MAX 8

static const struct {
    char ending[ENDING_MAX];
    const char *type;
} endings[] = {
    /* documents */
    { "pdf", "application/pdf" },
    { "doc", "application/msword" },
    { "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
    { "xls", "application/vnd.ms-excel" },
    { "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
    { "ppt", "application/vnd.ms-powerpoint" },
    { "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
    { "odt", "application/vnd.oasis.opendocument.text" },
    { "ods", "application/vnd.oasis.opendocument.spreadsheet" },
    { "rtf", "application/rtf" },
    { "epub", "application/epub+zip" },
    /* text and data */
    { "txt", "text/plain" },
    { "log", "text/plain" },
    { "md", "text/markdown" },
    { "csv", "text/csv" },
    { "tsv", "text/tab-separated-values" },
    { "html", "text/html" },
    { "htm", "text/html" },
    { "css", "text/css" },
    { "json", "application/json" },
    { "jsonl", "application/x-ndjson" },
    { "ndjson", "application/x-ndjson" },
    { "geojson", "application/geo+json" },
    { "ipynb", "application/x-ipynb+json" },
    { "xml", "application/xml" },
    { "yaml", "application/yaml" },
    { "yml", "application/yaml" },
    { "toml", "application/toml" },
    { "parquet", "application/vnd.apache.parquet" },
    { "arrow", "application/vnd.apache.arrow.file" },
    { "npy", "application/x-npy" },
    { "sqlite", "application/vnd.sqlite3" },
    { "db", "application/vnd.sqlite3" },
    /* code */
    { "js", "text/javascript" },
    { "mjs", "text/javascript" },
    { "ts", "text/typescript" },
    { "py", "text/x-python" },
    { "java", "text/x-java" },
    { "c", "text/x-c" },
    { "h", "text/x-c" },
    { "cpp", "text/x-c++" },
    { "go", "text/x-go" },
    { "rs", "text/x-rust" },
    { "sh", "text/x-shellscript" },
    { "sql", "application/sql" },
    { "wasm", "application/wasm" },
    /* pictures, sound, films */
    { "jpg", "image/jpeg" },
    { "jpeg", "image/jpeg" },
    { "png", "image/png" },
    { "gif", "image/gif" },
    { "webp", "image/webp" },
    { "svg", "image/svg+xml" },
    { "bmp", "image/bmp" },
    { "tif", "image/tiff" },
    { "tiff", "image/tiff" },
    { "ico", "image/x-icon" },
    { "mp3", "audio/mpeg" },
    { "wav", "audio/wav" },
    { "ogg", "audio/ogg" },
    { "mp4", "video/mp4" },
    { "webm", "video/webm" },
    { "mov", "video/quicktime" },
    /* archives */
    { "zip", "application/zip" },
    { "gz", "application/gzip" },
    { "tgz", "application/gzip" },
    { "tar", "application/x-tar" },
    { "bz2", "application/x-bzip2" },
    { "xz", "application/x-xz" },
    { "zst", "application/zstd" },
    { "7z", "application/x-7z-compressed" },
};

static const struct {
    rt_str magic;
    const char *type;
} beginnings[] = {
    { { "\x89PNG\r\n\x1a\n", 8 }, "image/png" },
    { { "\xff\xd8\xff", 3 }, "image/jpeg" },
    { { "GIF87a", 6 }, "image/gif" },
    { { "GIF89a", 6 }, "image/gif" },
    { { "%PDF-", 5 }, "application/pdf" },
    { { "PK\x03\x04", 4 }, "application/zip" },
    { { "PK\x05\x06", 4 }, "application/zip" }, /* an empty one */
    { { "\x1f\x8b", 2 }, "application/gzip" },
    { { "\0asm", 4 }, "application/wasm" },
    { { "SQLite format 3\0", 16 }, "application/vnd.sqlite3" },
    { { "PAR1", 4 }, "application/vnd.apache.parquet" },
};

static const char *type_of_ending(rt_str name)
{
    for (size_t i = name.len; i > 0 && name.ptr[i - 1] != '/'; i--) {
        if (name.ptr[i - 1] != '.')
            continue;
        rt_str ending = rt_str_slice(name, i, name.len);
        for (size_t k = 0; k < RT_COUNT(endings); k++)
            if (strnlen(endings[k].ending, ENDING_MAX) == ending.len &&
                strncasecmp(endings[k].ending, ending.ptr, ending.len) == 0)
                return endings[k].type;
        return NULL;
    }
    return NULL;
}

/* How many bytes at the end begin a character that the head was cut off in. */
static size_t unfinished(rt_str head)
{
    for (size_t n = 1; n <= 3 && n < head.len; n++) {
        uint8_t c = (uint8_t)head.ptr[head.len - n];
        if ((c & 0xc0) == 0x80)
            continue;
        size_t whole = c < 0xc2 || c > 0xf4 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        return whole > n ? n : 0;
    }
    return 0;
}

static bool is_text(rt_str head)
{
    rt_str whole = rt_str_slice(head, 0, head.len - unfinished(head));
    return whole.len == 0 || (!memchr(whole.ptr, '\0', whole.len) && rt_utf8_valid(whole));
}

const char *rt_content_type(rt_str name, rt_str head)
{
    const char *type = type_of_ending(name);
    if (type)
        return type;
    for (size_t i = 0; i < RT_COUNT(beginnings); i++)
        if (rt_str_starts(head, beginnings[i].magic))
            return beginnings[i].type;
    return is_text(head) ? "text/plain" : "application/octet-stream";
}
