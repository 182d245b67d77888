/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guides.c - SKILL.md: a name and a description between two lines of dashes, then text for a model.
 *
 * Shown in three steps, so that a model reads only what it needs: name and description of all; the
 * text of one; a file that the text mentions. Files are opened below the guide's folder, by a way
 * on which no link and no ".." leads out.
 */
#include "skills/skills_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX 8

static bool is_guide_name(rt_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '_')
            return false;
    }
    return name.len > 0 && name.len <= RT_GUIDE_NAME_MAX;
}

/* The text between the first two lines of dashes; what follows is the body. */
static bool split(rt_str text, rt_str *front, size_t *body_at, rt_error *err)
{
    rt_str rest = text, line;
    size_t from = 0;
    if (rt_str_starts(rest, RT_STR("\xef\xbb\xbf")))
        rest = rt_str_slice(rest, 3, rest.len);
    for (size_t number = 0; rt_str_cut(&rest, '\n', &line); number++) {
        bool is_rule = rt_str_eq_c(rt_str_trim(line), "---");
        if (number == 0 && !is_rule)
            break;
        if (number == 0)
            from = (size_t)(line.ptr - text.ptr) + line.len + 1;
        if (number == 0 || !is_rule)
            continue;
        *front = rt_str_slice(text, from, (size_t)(line.ptr - text.ptr));
        *body_at = rest.ptr ? (size_t)(rest.ptr - text.ptr) : text.len;
        return true;
    }
    return rt_fail(err, RT_INVALID,
                   "SKILL.md must begin with name and description between lines "
                   "of ---");
}

bool skills_read_guide(rt_str text, rt_arena *arena, guide *out, rt_error *err)
{
    rt_str front;
    rt_json head;
    if (text.len > RT_GUIDE_BYTES_MAX || !rt_utf8_valid(text))
        return rt_fail(err, RT_INVALID, "SKILL.md must be UTF-8 text of at most %u KB",
                       RT_GUIDE_BYTES_MAX >> 10);
    if (!split(text, &front, &out->body_at, err))
        return false;
    if (!rt_yaml_parse(front, arena, &head, err))
        return rt_wrap(err, "SKILL.md");
    out->name = rt_json_str(rt_json_get_c(head, "name"));
    out->description = rt_json_str(rt_json_get_c(head, "description"));
    if (!is_guide_name(out->name))
        return rt_fail(err, RT_INVALID, "SKILL.md: 'name' must be 1 to %d of a-z, 0-9, '-' and '_'",
                       RT_GUIDE_NAME_MAX);
    if (out->description.len == 0 || rt_utf8_length(out->description) > RT_GUIDE_DESCRIPTION_MAX)
        return rt_fail(err, RT_INVALID, "SKILL.md: 'description' must have 1 to %d characters",
                       RT_GUIDE_DESCRIPTION_MAX);
    return true;
}

static const guide *find(const catalogue *c, rt_str name)
{
    for (size_t i = 0; i < c->guide_count; i++)
        if (rt_str_eq(c->guides[i].name, name))
            return &c->guides[i];
    return NULL;
}

static bool fail_unknown(rt_str name, rt_error *err)
{
    return rt_fail(err, RT_NOT_FOUND, "Guide not found: %.*s", (int)RT_MIN(name.len, (size_t)80),
                   name.ptr);
}

size_t rt_skills_guides(rt_skills *skills, rt_arena *arena, rt_guide **out)
{
    catalogue *c RT_CLEANUP(skills_catalogue_dropp) = skills_hold(skills, true);
    *out = rt_arena_alloc(arena, sizeof(**out) * RT_MAX(c->guide_count, (size_t)1));
    for (size_t i = 0; i < c->guide_count; i++)
        (*out)[i] = (rt_guide){ .name = rt_arena_str(arena, c->guides[i].name),
                                .description = rt_arena_str(arena, c->guides[i].description) };
    return c->guide_count;
}

/* Paths below the folder, without hidden ones and links. */
static void list_files(const char *folder, rt_str below, unsigned depth, rt_arena *arena,
                       rt_str *files, size_t *count)
{
    rt_str path = rt_arena_printf(arena, "%s/%.*s", folder, RT_FMT(below));
    DIR *dir = opendir(path.ptr);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) && *count < RT_GUIDE_FILES_MAX) {
        struct stat st;
        if (entry->d_name[0] == '.' ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        rt_str name =
            rt_arena_printf(arena, "%.*s%s%s", RT_FMT(below), below.len ? "/" : "", entry->d_name);
        if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
            list_files(folder, name, depth + 1, arena, files, count);
        else if (S_ISREG(st.st_mode) && rt_utf8_valid(name) && !rt_str_eq_c(name, "SKILL.md"))
            files[(*count)++] = name;
    }
    if (dir)
        closedir(dir);
}

static int by_name(const void *a, const void *b)
{
    return rt_str_cmp(*(const rt_str *)a, *(const rt_str *)b);
}

bool rt_skills_guide(rt_skills *skills, rt_str name, rt_arena *arena, rt_guide *out, rt_error *err)
{
    catalogue *c RT_CLEANUP(skills_catalogue_dropp) = skills_hold(skills, true);
    const guide *g = find(c, name);
    rt_str text;
    if (!g)
        return fail_unknown(name, err);
    int fd RT_CLEANUP(rt_closep) = -1;
    if (!skills_open_below(g->folder.ptr, RT_STR("SKILL.md"), &fd, err) ||
        !rt_read_fd(fd, RT_GUIDE_BYTES_MAX, arena, &text, err))
        return false;
    rt_str *files = rt_arena_alloc(arena, sizeof(*files) * RT_GUIDE_FILES_MAX);
    *out = (rt_guide){ .name = rt_arena_str(arena, g->name),
                       .description = rt_arena_str(arena, g->description),
                       .body = rt_str_slice(text, g->body_at, text.len),
                       .files = files };
    list_files(g->folder.ptr, RT_STR(""), 0, arena, files, &out->file_count);
    qsort(files, out->file_count, sizeof(*files), by_name);
    return true;
}

bool skills_open_below(const char *directory, rt_str path, int *fd, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                            .resolve =
                                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
    const char *name;
    if (!rt_str_to_path(path, &arena, &name, err))
        return false;
    int root RT_CLEANUP(rt_closep) = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return rt_fail_errno(err, "open the folder");
    int found = (int)syscall(SYS_openat2, root, name, &how, sizeof(how));
    if (found < 0)
        return rt_fail(err, RT_NOT_FOUND, "there is no file '%.*s' here",
                       (int)RT_MIN(path.len, (size_t)100), path.ptr);
    *fd = found;
    return true;
}

bool rt_skills_guide_file(rt_skills *skills, rt_str name, rt_str path, int *fd, uint64_t *size,
                          rt_error *err)
{
    catalogue *c RT_CLEANUP(skills_catalogue_dropp) = skills_hold(skills, false);
    const guide *g = find(c, name);
    struct stat st;
    int found RT_CLEANUP(rt_closep) = -1;
    if (!g)
        return fail_unknown(name, err);
    if (!skills_open_below(g->folder.ptr, path, &found, err))
        return false;
    bool is_hidden = rt_str_starts(path, RT_STR(".")) || rt_str_find(path, RT_STR("/.")) >= 0;
    if (is_hidden || fstat(found, &st) != 0 || !S_ISREG(st.st_mode))
        return rt_fail(err, RT_NOT_FOUND, "there is no file '%.*s' here",
                       (int)RT_MIN(path.len, (size_t)100), path.ptr);
    *size = (uint64_t)st.st_size;
    *fd = RT_TAKE_FD(found);
    return true;
}
