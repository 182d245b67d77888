/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - the catalogue: all skills and guides there are at one moment.
 *
 * Folders are walked in the order of names. One with a skill.yaml or a SKILL.md is a skill or a
 * guide (or both), and what lies deeper is its own business; any other is looked into. Each look
 * makes a mark of the names, sizes and times of the files; only when the mark is another one are
 * they read again. A catalogue never changes: who holds one may use it as long as he likes.
 */
#include "skills/skills_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX   8
#define FOLDERS_MAX 5000
#define NAMES_MAX   1000          /* in one folder */
#define LOOK_NS     1000000000ull /* how long a catalogue is good without another look */

/* -- Walking ----------------------------------------------------------------------------------- */

typedef struct place {
    const char *path;
    bool has_skill, has_guide, has_parts;
    uint64_t modified_ms; /* of skill.yaml or SKILL.md */
} place;

typedef struct walk {
    rt_arena *arena;
    void (*visit)(void *ctx, const place *at); /* may be NULL */
    void *ctx;
    uint64_t mark;
    size_t folders;
} walk;

static void mix(walk *w, uint64_t value)
{
    w->mark = (w->mark ^ value) * 0x9e3779b97f4a7c15ull;
    w->mark ^= w->mark >> 29;
}

static void mix_text(walk *w, const char *text)
{
    for (; *text; text++)
        mix(w, (unsigned char)*text);
}

static void note_file(walk *w, place *at, const char *name, const struct stat *st)
{
    bool is_skill = strcmp(name, "skill.yaml") == 0, is_guide = strcmp(name, "SKILL.md") == 0;
    at->has_skill |= is_skill;
    at->has_guide |= is_guide;
    at->has_parts |= strcmp(name, "schema.json") == 0 || strncmp(name, "handler.", 8) == 0;
    if (is_skill || is_guide)
        at->modified_ms =
            (uint64_t)st->st_mtim.tv_sec * 1000 + (uint64_t)st->st_mtim.tv_nsec / 1000000;
    mix_text(w, name);
    mix(w, (uint64_t)st->st_mtim.tv_sec * 1000000007u + (uint64_t)st->st_mtim.tv_nsec);
    mix(w, (uint64_t)st->st_size);
    mix(w, (uint64_t)st->st_ino);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names that are not hidden, in their order. */
static size_t list_names(const char *path, rt_arena *arena, const char **names)
{
    size_t count = 0;
    struct dirent *entry;
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir)) && count < NAMES_MAX)
        if (entry->d_name[0] != '.')
            names[count++] = rt_arena_copy(arena, rt_str_of(entry->d_name));
    if (dir)
        closedir(dir);
    qsort(names, count, sizeof(*names), by_name);
    return count;
}

static void walk_folder(walk *w, const char *path, unsigned depth)
{
    const char **names = rt_arena_alloc(w->arena, sizeof(*names) * NAMES_MAX);
    size_t count = list_names(path, w->arena, names), folders = 0;
    place at = { .path = path };
    struct stat st;
    mix_text(w, path);
    for (size_t i = 0; i < count; i++) {
        rt_str whole = rt_arena_printf(w->arena, "%s/%s", path, names[i]);
        if (stat(whole.ptr, &st) != 0)
            continue;
        if (S_ISREG(st.st_mode))
            note_file(w, &at, names[i], &st);
        else if (S_ISDIR(st.st_mode))
            names[folders++] = whole.ptr;
    }
    bool is_end = at.has_skill || at.has_guide;
    if ((is_end || at.has_parts) && depth > 0 && w->visit)
        w->visit(w->ctx, &at);
    for (size_t i = 0; i < folders && !is_end && depth < DEPTH_MAX; i++)
        if (w->folders++ < FOLDERS_MAX)
            walk_folder(w, names[i], depth + 1);
}

uint64_t skills_folders_mark(const rt_skills_config *config)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    walk w = { .arena = &arena, .mark = 1 };
    for (size_t i = 0; i < config->directory_count; i++)
        walk_folder(&w, config->directories[i].ptr, 0);
    return w.mark;
}

/* -- Loading ----------------------------------------------------------------------------------- */

/* One more place at the end of an array in the arena. */
static void *grow(rt_arena *arena, void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    size_t more = *room ? 2 * *room : 16;
    array = rt_arena_resize(arena, array, *room * size, more * size);
    *room = more;
    return array;
}

static void complain(catalogue *c, rt_str folder, rt_str reason)
{
    c->problems =
        grow(&c->arena, c->problems, c->problem_count, &c->problem_room, sizeof(*c->problems));
    c->problems[c->problem_count++] =
        (rt_skill_problem){ rt_arena_str(&c->arena, folder), rt_arena_str(&c->arena, reason) };
}

static void keep_skill(catalogue *c, const skill *s)
{
    c->skills = grow(&c->arena, c->skills, c->skill_count, &c->skill_room, sizeof(*c->skills));
    c->skills[c->skill_count] = *s;
    c->skills[c->skill_count].order = c->skill_count;
    c->skill_count++;
}

static bool read_part(const char *folder, const char *name, size_t max, rt_arena *arena,
                      rt_str *out, rt_error *err)
{
    rt_str path = rt_arena_printf(arena, "%s/%s", folder, name);
    if (access(path.ptr, F_OK) != 0)
        return rt_fail(err, RT_NOT_FOUND, "%s is missing", name);
    rt_error why = { 0 };
    return rt_read_file(path.ptr, max, arena, out, &why) ||
           rt_fail(err, why.code, "%s cannot be read", name);
}

/* handler.py, handler.js, … where the metadata gives no ending. */
static bool read_code(const char *folder, rt_arena *arena, skill *s, rt_error *err)
{
    static const char *const endings[] = { ".py", ".js", ".ts", ".sh" };
    if (rt_language_of_file(s->file))
        return read_part(folder, s->file.ptr, SKILL_HANDLER_MAX, arena, &s->code, err);
    for (size_t i = 0; i < RT_COUNT(endings); i++) {
        rt_str name = rt_arena_printf(arena, "%.*s%s", RT_FMT(s->file), endings[i]);
        rt_str path = rt_arena_printf(arena, "%s/%s", folder, name.ptr);
        if (access(path.ptr, F_OK) != 0)
            continue;
        s->file = name;
        return read_part(folder, name.ptr, SKILL_HANDLER_MAX, arena, &s->code, err);
    }
    return rt_fail(err, RT_NOT_FOUND, "%.*s.py (or .js, .ts, .sh) is missing", RT_FMT(s->file));
}

static bool read_skill(const place *at, rt_arena *arena, skill *s, rt_error *err)
{
    rt_str yaml, json;
    rt_json metadata, schemas;
    if (!read_part(at->path, "skill.yaml", SKILL_YAML_MAX, arena, &yaml, err))
        return false;
    if (!rt_yaml_parse(yaml, arena, &metadata, err) ||
        !skills_read_metadata(metadata, arena, s, err))
        return rt_wrap(err, "skill.yaml");
    if (!read_part(at->path, "schema.json", SKILL_SCHEMA_MAX, arena, &json, err))
        return false;
    if (!rt_json_parse(json, arena, &schemas, err) || !skills_read_schemas(schemas, arena, s, err))
        return rt_wrap(err, "schema.json");
    s->shown.folder = rt_arena_str(arena, rt_str_of(at->path));
    s->shown.created_ms = at->modified_ms;
    return read_code(at->path, arena, s, err) && skills_check_handler(s, err);
}

static void load_guide(catalogue *c, const place *at)
{
    rt_str text, folder = rt_arena_str(&c->arena, rt_str_of(at->path));
    guide g = { .folder = folder };
    rt_error err = { 0 };
    if (!read_part(at->path, "SKILL.md", RT_GUIDE_BYTES_MAX, &c->arena, &text, &err) ||
        !skills_read_guide(text, &c->arena, &g, &err)) {
        complain(c, folder, rt_str_of(err.text));
        return;
    }
    for (size_t i = 0; i < c->guide_count; i++)
        if (rt_str_eq(c->guides[i].name, g.name)) {
            complain(c, folder, RT_STR("a guide of this name was found before"));
            return;
        }
    c->guides = grow(&c->arena, c->guides, c->guide_count, &c->guide_room, sizeof(*c->guides));
    c->guides[c->guide_count++] = g;
}

static void load_place(void *ctx, const place *at)
{
    catalogue *c = ctx;
    skill s = { 0 };
    rt_error err = { 0 };
    if (at->has_guide)
        load_guide(c, at);
    if (!at->has_skill && at->has_guide)
        return;
    if (read_skill(at, &c->arena, &s, &err)) {
        keep_skill(c, &s);
        return;
    }
    skills_skill_done(&s);
    complain(c, rt_str_of(at->path), rt_str_of(err.text));
}

/* -- Registered skills ------------------------------------------------------------------------- */

static bool read_row(const rt_skill_row *row, rt_arena *arena, skill *s, rt_error *err)
{
    rt_json metadata, input, output;
    if (!rt_json_parse(row->metadata, arena, &metadata, err) ||
        !rt_json_parse(row->input_schema, arena, &input, err) ||
        !rt_json_parse(row->output_schema, arena, &output, err) ||
        !skills_read_metadata(metadata, arena, s, err) ||
        !skills_take_schemas(input, output, arena, s, err))
        return false;
    s->file = row->handler_file;
    s->code = row->code;
    s->shown.organisation_id = row->organisation_id;
    s->shown.created_ms = row->created_ms;
    return skills_check_handler(s, err);
}

static void load_rows(const rt_skills_config *config, catalogue *c)
{
    rt_skill_row *rows;
    size_t count;
    rt_error err = { 0 };
    if (!config->store)
        return;
    if (!rt_skill_mark(config->store, &c->registered, &err) ||
        !rt_skill_rows(config->store, &c->arena, &rows, &count, &err)) {
        complain(c, RT_STR("the store"), rt_str_of(err.text));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        skill s = { 0 };
        err = (rt_error){ 0 };
        if (read_row(&rows[i], &c->arena, &s, &err)) {
            keep_skill(c, &s);
            continue;
        }
        skills_skill_done(&s);
        complain(c, rows[i].name, rt_str_of(err.text));
    }
}

static int by_rank(const void *a, const void *b)
{
    const skill *x = a, *y = b;
    int order = skills_compare(x, y);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* Of two with one name and version, the first that was found stays. */
static void drop_doubles(catalogue *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->skill_count; i++) {
        skill *s = &c->skills[i];
        if (kept == 0 || skills_compare(&c->skills[kept - 1], s) != 0) {
            c->skills[kept++] = *s;
            continue;
        }
        rt_str first = c->skills[kept - 1].shown.folder;
        complain(c, s->shown.folder,
                 rt_arena_printf(&c->arena,
                                 "%.*s %.*s was found before, in %.*s; raise the version",
                                 RT_FMT(s->shown.name), RT_FMT(s->shown.version), RT_FMT(first)));
        skills_skill_done(s);
    }
    c->skill_count = kept;
}

static int by_guide(const void *a, const void *b)
{
    return rt_str_cmp(((const guide *)a)->name, ((const guide *)b)->name);
}

catalogue *skills_load(const rt_skills_config *config, uint64_t mark)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    catalogue *c = calloc(1, sizeof(*c));
    if (!c)
        rt_out_of_memory(sizeof(*c));
    atomic_init(&c->refs, 1);
    walk w = { .arena = &arena, .visit = load_place, .ctx = c };
    for (size_t i = 0; i < config->directory_count; i++)
        walk_folder(&w, config->directories[i].ptr, 0);
    load_rows(config, c);
    if (c->skill_count > 0)
        qsort(c->skills, c->skill_count, sizeof(*c->skills), by_rank);
    drop_doubles(c);
    if (c->guide_count > 0)
        qsort(c->guides, c->guide_count, sizeof(*c->guides), by_guide);
    c->mark = mark; /* as it was before the files were read: a change meanwhile is seen next time */
    return c;
}

void skills_catalogue_dropp(catalogue **at)
{
    catalogue *c = *at;
    *at = NULL;
    if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
        return;
    for (size_t i = 0; i < c->skill_count; i++)
        skills_skill_done(&c->skills[i]);
    rt_arena_done(&c->arena);
    free(c);
}

/* -- Holding ----------------------------------------------------------------------------------- */

catalogue *skills_hold(rt_skills *skills, bool is_fresh)
{
    pthread_mutex_lock(&skills->lock);
    uint64_t now = rt_now_ns(), registered = 0;
    if (!skills->now || is_fresh || now - skills->looked_ns > LOOK_NS) {
        uint64_t mark = skills_folders_mark(&skills->config);
        if (skills->config.store && !rt_skill_mark(skills->config.store, &registered, NULL))
            registered = skills->now ? skills->now->registered : 0; /* what we know still holds */
        if (!skills->now || skills->now->mark != mark || skills->now->registered != registered) {
            skills_catalogue_dropp(&skills->now);
            skills->now = skills_load(&skills->config, mark);
        }
        skills->looked_ns = now;
    }
    catalogue *held = skills->now;
    atomic_fetch_add(&held->refs, 1);
    pthread_mutex_unlock(&skills->lock);
    return held;
}

static bool is_visible(const skill *s, rt_str organisation_id)
{
    return s->shown.organisation_id.len == 0 || organisation_id.len == 0 ||
           rt_str_eq(s->shown.organisation_id, organisation_id);
}

const skill *skills_catalogue_find(const catalogue *c, rt_str organisation_id, rt_str name)
{
    rt_str version = name, wanted;
    rt_str_cut(&version, '@', &wanted);
    for (size_t i = 0; i < c->skill_count; i++) {
        const skill *s = &c->skills[i];
        if (rt_str_eq(s->shown.name, wanted) && is_visible(s, organisation_id) &&
            (!version.ptr || rt_str_eq(s->shown.version, version)))
            return s;
    }
    return NULL;
}

/* Versions of one name stand side by side, the newest first. */
bool skills_is_newest(const catalogue *c, size_t i, rt_str organisation_id)
{
    const skill *s = &c->skills[i];
    if (!is_visible(s, organisation_id))
        return false;
    while (i-- > 0 && rt_str_eq(c->skills[i].shown.name, s->shown.name))
        if (is_visible(&c->skills[i], organisation_id))
            return false;
    return true;
}
