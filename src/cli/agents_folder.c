/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agents_folder.c - an agent in a folder: what `retort agents push` reads and `pull` writes.
 *
 *     invoices/
 *         agent.yaml         name, language, schemas, packages … as the API has them
 *         main.py            the entry point
 *         lib/dates.py       whatever else it is made of
 *
 * Secrets never leave the store: an agent.yaml has ******** in their place, which a push takes for
 * the value that is there. Files whose names begin with a dot are nobody's business here.
 */
#include "cli/agents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 8
#define FILES_MAX 200

/* ---- reading ---- */

typedef struct gathering {
    rt_arena *arena;
    rt_json_writer w;
    size_t count, bytes;
} gathering;

static bool add_file(gathering *g, const char *path, rt_str name, rt_error *err)
{
    rt_str text;
    if (++g->count > FILES_MAX)
        return rt_fail(err, RT_LIMIT, "an agent has at most %d files", FILES_MAX);
    if (!rt_read_file(path, RT_AGENT_CODE_MAX, g->arena, &text, err))
        return false;
    if (!rt_utf8_valid(text))
        return rt_fail(err, RT_INVALID, "%s is no text; an agent is made of text files", path);
    rt_jw_key(&g->w, name);
    rt_jw_str(&g->w, text);
    return true;
}

static bool gather(gathering *g, const char *folder, rt_str prefix, unsigned depth, rt_error *err);

static bool take_entry(gathering *g, const char *folder, rt_str prefix, const struct dirent *entry,
                       unsigned depth, rt_error *err)
{
    rt_str path = rt_arena_printf(g->arena, "%s/%s", folder, entry->d_name);
    rt_str name = rt_arena_printf(g->arena, "%.*s%s", RT_FMT(prefix), entry->d_name);
    struct stat st;
    if (entry->d_name[0] == '.' || rt_str_eq_c(name, CLI_AGENT_FILE) ||
        strcmp(entry->d_name, "__pycache__") == 0 || strcmp(entry->d_name, "node_modules") == 0)
        return true;
    if (lstat(path.ptr, &st) != 0)
        return rt_fail_errno(err, "look at %s", path.ptr);
    if (S_ISDIR(st.st_mode))
        return gather(g, path.ptr, rt_arena_printf(g->arena, "%.*s/", RT_FMT(name)), depth + 1,
                      err);
    return !S_ISREG(st.st_mode) || add_file(g, path.ptr, name, err);
}

static void close_directory(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

static bool gather(gathering *g, const char *folder, rt_str prefix, unsigned depth, rt_error *err)
{
    DIR *dir RT_CLEANUP(close_directory) = opendir(folder);
    const struct dirent *entry;
    if (!dir)
        return rt_fail_errno(err, "open %s", folder);
    if (depth > DEPTH_MAX)
        return rt_fail(err, RT_LIMIT, "%s is more than %d folders deep", folder, DEPTH_MAX);
    while ((entry = readdir(dir)))
        if (!take_entry(g, folder, prefix, entry, depth, err))
            return false;
    return true;
}

bool cli_agent_folder_read(const char *folder, rt_arena *arena, rt_json *out, rt_error *err)
{
    rt_buf body RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str path = rt_arena_printf(arena, "%s/%s", folder, CLI_AGENT_FILE), text, name;
    gathering g = { .arena = arena };
    rt_json head, value;
    if (!rt_read_file(path.ptr, RT_YAML_MAX_SIZE, arena, &text, err))
        return false;
    if (!rt_yaml_parse(text, arena, &head, err))
        return rt_wrap(err, "%s", path.ptr);
    if (rt_json_type(head) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "%s must be a map: name, language …", path.ptr);
    rt_json_iter it = rt_json_each(head);
    rt_json_begin(&g.w, &body);
    rt_jw_object(&g.w);
    while (rt_json_next(&it, &name, &value)) {
        if (rt_str_eq_c(name, "version")) /* for readers: a push makes the next one */
            continue;
        rt_jw_key(&g.w, name);
        rt_jw_json(&g.w, value);
    }
    rt_jw_kobject(&g.w, "files");
    if (!gather(&g, folder, RT_STR(""), 0, err))
        return false;
    rt_jw_end(&g.w);
    rt_jw_end(&g.w);
    return rt_buf_ok(&body, err) && rt_json_parse(rt_buf_str(&body), arena, out, err);
}

/* ---- YAML, as people would write it ---- */

/* Letters, digits and a few signs that mean nothing to YAML. */
static bool is_plain(rt_str text)
{
    static const char *const words[] = { "true", "false", "null", "yes", "no", "on", "off" };
    bool has_letter = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        has_letter |= is_letter;
        if (!is_letter && !(i > 0 && ((c >= '0' && c <= '9') || strchr(" ./-", c))))
            return false;
    }
    for (size_t i = 0; i < RT_COUNT(words); i++)
        if (rt_str_eq_c(text, words[i]))
            return false;
    return has_letter && text.ptr[text.len - 1] != ' ';
}

static void write_scalar(rt_json value, rt_buf *out)
{
    if (rt_json_type(value) == RT_JSON_STRING && is_plain(rt_json_str(value)))
        rt_buf_add(out, rt_json_str(value));
    else
        rt_json_print(value, out); /* JSON is YAML */
}

static bool is_short(rt_json value)
{
    rt_json_kind kind = rt_json_type(value);
    return (kind != RT_JSON_OBJECT && kind != RT_JSON_ARRAY) || rt_json_count(value) == 0;
}

static void write_yaml(rt_json value, unsigned depth, rt_buf *out)
{
    rt_json_iter it = rt_json_each(value);
    bool is_map = rt_json_type(value) == RT_JSON_OBJECT;
    rt_str key;
    rt_json item;
    while (rt_json_next(&it, &key, &item)) {
        rt_buf_addf(out, "%*s", (int)(2 * depth), "");
        if (!is_map) {
            rt_buf_addc(out, '-');
        } else if (is_plain(key)) {
            rt_buf_addf(out, "%.*s:", RT_FMT(key));
        } else {
            rt_json_writer w;
            rt_json_begin(&w, out);
            rt_jw_str(&w, key);
            rt_buf_addc(out, ':');
        }
        rt_buf_addc(out, is_short(item) ? ' ' : '\n');
        if (is_short(item)) {
            write_scalar(item, out);
            rt_buf_addc(out, '\n');
        } else {
            write_yaml(item, depth + 1, out);
        }
    }
}

/* What the agent says of itself, without what is a default or in a file. */
static bool head_of(const rt_agent *agent, rt_arena *arena, rt_json *out, rt_error *err)
{
    static const char *const shown[] = { "name",           "description", "language",
                                         "version",        "entryPoint",  "inputSchema",
                                         "outputSchema",   "packages",    "tools",
                                         "policy",         "environment", "isPublic",
                                         "validationType", "deprecated",  "metadata" };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 }, head RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json whole;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_agent_write(agent, &w);
    rt_jw_end(&w);
    if (!rt_json_parse(rt_buf_str(&text), arena, &whole, err))
        return false;
    rt_json_begin(&w, &head);
    rt_jw_object(&w);
    for (size_t i = 0; i < RT_COUNT(shown); i++) {
        rt_json value = rt_json_get_c(whole, shown[i]);
        bool is_default = rt_json_type(value) <= RT_JSON_NULL ||
                          (rt_json_type(value) == RT_JSON_BOOL && !rt_json_bool(value, true)) ||
                          (rt_json_type(value) >= RT_JSON_ARRAY && rt_json_count(value) == 0);
        if (!is_default)
            rt_jw_kjson(&w, shown[i], value);
    }
    rt_jw_end(&w);
    return rt_buf_ok(&head, err) && rt_json_parse(rt_buf_str(&head), arena, out, err);
}

/* ---- writing ---- */

static bool write_file(const char *folder, rt_str name, rt_str text, rt_arena *arena, rt_error *err)
{
    rt_str path = rt_arena_printf(arena, "%s/%.*s", folder, RT_FMT(name));
    char *writable = rt_arena_copy(arena, path);
    for (char *slash = writable + strlen(folder); (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (mkdir(writable, 0755) != 0 && errno != EEXIST)
            return rt_fail_errno(err, "make %s", writable);
    }
    int fd RT_CLEANUP(rt_closep) =
        open(path.ptr, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return rt_fail_errno(err, "write %s", path.ptr);
    return rt_write_all(fd, text, err) || rt_wrap(err, "write %s", path.ptr);
}

static void remove_gone(const char *folder, rt_json before, rt_json files, rt_str entry,
                        rt_arena *arena)
{
    rt_json_iter it = rt_json_each(rt_json_get_c(before, "files"));
    rt_str name;
    rt_json text;
    while (rt_json_next(&it, &name, &text))
        if (!rt_str_eq(name, entry) && rt_json_is_absent(rt_json_get(files, name)))
            unlink(rt_arena_printf(arena, "%s/%.*s", folder, RT_FMT(name)).ptr);
}

bool cli_agent_folder_write(const char *folder, const rt_agent *agent, rt_arena *arena,
                            rt_error *err)
{
    rt_buf yaml RT_CLEANUP(rt_buf_done) = { 0 };
    const rt_agent_content *c = &agent->row.content;
    rt_json head, files = { 0 }, before = { 0 }, text;
    rt_str name;
    if (!head_of(agent, arena, &head, err))
        return false;
    rt_str entry = rt_json_str(rt_json_get_c(head, "entryPoint"));
    if (c->files.len > 0 && !rt_json_parse(c->files, arena, &files, err))
        return false;
    if (cli_agent_folder_read(folder, arena, &before, &(rt_error){ 0 }))
        remove_gone(folder, before, files, entry, arena);
    write_yaml(head, 0, &yaml);
    if (!rt_buf_ok(&yaml, err) ||
        !write_file(folder, RT_STR(CLI_AGENT_FILE), rt_buf_str(&yaml), arena, err) ||
        !write_file(folder, entry, c->code, arena, err))
        return false;
    rt_json_iter it = rt_json_each(files);
    while (rt_json_next(&it, &name, &text))
        if (!write_file(folder, name, rt_json_str(text), arena, err))
            return false;
    return true;
}
