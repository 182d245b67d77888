/* SPDX-License-Identifier: Apache-2.0 */
/*
 * installed.c - the models of one directory, a folder each.
 *
 * A model is tried, copied into a folder with a hidden name, tried there again, and only then the
 * folder gets its name: who looks sees all of a working model or nothing. One addition at a time
 * holds the directory's lock, so a hidden folder found by the next one belongs to nobody and is
 * removed. Copies are ours: nobody shortens a file that a server has mapped.
 */
#include "models/models_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES_MAX = 100, MODELS_MAX = 1000 };
#define ADDING ".adding"

typedef struct opened {
    rt_model *model;
    struct opened *next;
} opened;

struct rt_models {
    rt_arena arena; /* only of `directory`; threads ask */
    const char *directory;
    pthread_mutex_t lock; /* of what is open */
    opened *opened;
};

rt_models *rt_models_new(rt_str directory)
{
    rt_models *models = calloc(1, sizeof(*models));
    if (!models)
        rt_out_of_memory(sizeof(*models));
    models->directory = rt_arena_copy(&models->arena, directory);
    pthread_mutex_init(&models->lock, NULL);
    return models;
}

void rt_models_free(rt_models *models)
{
    if (!models)
        return;
    for (opened *one = models->opened, *next; one; one = next) {
        next = one->next;
        rt_model_close(one->model);
        free(one);
    }
    pthread_mutex_destroy(&models->lock);
    rt_arena_done(&models->arena);
    free(models);
}

void rt_models_freep(rt_models **models)
{
    rt_models_free(RT_TAKE(*models));
}

/* -- Names ------------------------------------------------------------------------------------- */

/* "sentence-transformers/all-MiniLM-L6-v2": what comes after the slash. */
static rt_str own_part(rt_str name)
{
    size_t from = name.len;
    while (from > 0 && name.ptr[from - 1] != '/')
        from--;
    return rt_str_slice(name, from, name.len);
}

static bool check_name(rt_str name, rt_error *err)
{
    bool is_good = name.len > 0 && name.len <= NAME_BYTES_MAX && name.ptr[0] != '.';
    for (size_t i = 0; i < name.len && is_good; i++) {
        char c = name.ptr[i];
        is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
    }
    return is_good || rt_fail(err, RT_INVALID,
                              "a model's name has 1 to %d letters, digits, '-', '_' and '.', and "
                              "does not begin with '.'; --name gives another",
                              NAME_BYTES_MAX);
}

static int by_bytes(const void *a, const void *b)
{
    return rt_str_cmp(*(const rt_str *)a, *(const rt_str *)b);
}

/* The folders that are there; a directory that is not has none. */
static bool list_names(const rt_models *models, rt_arena *arena, rt_str **out, size_t *count,
                       rt_error *err)
{
    DIR *folder = opendir(models->directory);
    struct dirent *entry;
    *out = rt_arena_alloc(arena, MODELS_MAX * sizeof(**out));
    *count = 0;
    if (!folder)
        return errno == ENOENT || rt_fail_errno(err, "open %s", models->directory);
    while ((entry = readdir(folder)) && *count < MODELS_MAX)
        if (check_name(rt_str_of(entry->d_name), NULL))
            (*out)[(*count)++] = rt_arena_str(arena, rt_str_of(entry->d_name));
    closedir(folder);
    qsort(*out, *count, sizeof(**out), by_bytes);
    return true;
}

static bool not_installed(const rt_models *models, rt_str name, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char hint[RT_NEAREST_HINT];
    rt_nearest near;
    rt_str *names;
    size_t count;
    rt_nearest_start(&near, name);
    if (!list_names(models, &arena, &names, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        rt_nearest_try(&near, names[i]);
    return rt_fail(err, RT_NOT_FOUND, "model %.*s is not installed%s",
                   RT_FMT(rt_str_slice(name, 0, NAME_BYTES_MAX)),
                   rt_nearest_hint(&near,
                                   count ? "; 'retort models list' shows those that are"
                                         : "; 'retort models add DIR' installs one",
                                   hint));
}

/* -- Finding ----------------------------------------------------------------------------------- */

static bool find_locked(rt_models *models, rt_str name, const rt_model **out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_model *model;
    for (const opened *one = models->opened; one; one = one->next)
        if (rt_str_eq_c(name, rt_model_name(one->model))) {
            *out = one->model;
            return true;
        }
    rt_str path = rt_arena_printf(&arena, "%s/%.*s", models->directory, RT_FMT(name));
    if (!check_name(name, NULL) || access(path.ptr, F_OK) != 0)
        return not_installed(models, name, err);
    if (!rt_model_open(path.ptr, &model, err))
        return rt_wrap(err, "model %.*s", RT_FMT(name));
    opened *one = calloc(1, sizeof(*one));
    if (!one)
        rt_out_of_memory(sizeof(*one));
    *one = (opened){ .model = model, .next = models->opened };
    models->opened = one;
    *out = model;
    return true;
}

bool rt_models_find(rt_models *models, rt_str name, const rt_model **out, rt_error *err)
{
    pthread_mutex_lock(&models->lock);
    bool ok = find_locked(models, own_part(name), out, err);
    pthread_mutex_unlock(&models->lock);
    return ok;
}

bool rt_models_list(rt_models *models, rt_arena *arena, rt_model_entry **out, size_t *count,
                    rt_error *err)
{
    rt_str *names;
    if (!list_names(models, arena, &names, count, err))
        return false;
    *out = rt_arena_alloc(arena, (*count + 1) * sizeof(**out));
    for (size_t i = 0; i < *count; i++) {
        rt_error problem = { 0 };
        (*out)[i] = (rt_model_entry){ .name = names[i] };
        if (!rt_models_find(models, names[i], &(*out)[i].model, &problem))
            (*out)[i].problem = rt_arena_str(arena, rt_str_of(problem.text));
    }
    return true;
}

/* -- Adding ------------------------------------------------------------------------------------ */

static bool make_directories(const char *path, rt_error *err)
{
    char part[PATH_MAX];
    if (strlen(path) >= sizeof(part))
        return rt_fail(err, RT_INVALID, "models.directory: the path is too long");
    memcpy(part, path, strlen(path) + 1);
    for (char *slash = part; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return rt_fail_errno(err, "make %s", part);
        *slash = '/';
    }
    return mkdir(part, 0755) == 0 || errno == EEXIST || rt_fail_errno(err, "make %s", part);
}

/* A folder of files and of folders with files, which is all we ever make. */
static void remove_folder(int at, const char *name, unsigned depth)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) != 0 && depth < 3)
            remove_folder(fd, entry->d_name, depth + 1);
    }
    if (folder)
        closedir(folder);
    else if (fd >= 0)
        close(fd);
    unlinkat(at, name, AT_REMOVEDIR);
}

static bool copy_bytes(int from, int to, rt_error *err)
{
    char piece[64 << 10];
    ssize_t n;
    while ((n = read(from, piece, sizeof(piece))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rt_fail_errno(err, "read");
        if (!rt_write_all(to, (rt_str){ piece, (size_t)n }, err))
            return false;
    }
    return fsync(to) == 0 || rt_fail_errno(err, "write");
}

/* A file that is not there is not copied; what is needed, the trial will miss. */
static bool copy_file(const char *from, const char *to, rt_error *err)
{
    struct stat file;
    int in RT_CLEANUP(rt_closep) = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in < 0 && errno == ENOENT)
        return true;
    if (in < 0 || fstat(in, &file) != 0)
        return rt_fail_errno(err, "open %s", from);
    if (!S_ISREG(file.st_mode))
        return rt_fail(err, RT_INVALID, "%s is no file", from);
    int out RT_CLEANUP(rt_closep) = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (out < 0)
        return rt_fail_errno(err, "make %s", to);
    return copy_bytes(in, out, err) || rt_wrap(err, "copy %s", from);
}

static bool copy_part(const char *from, const char *to, rt_str part, rt_arena *arena, rt_error *err)
{
    static const char *const files[] = {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "vocab.txt",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
        "modules.json",
        "LICENSE",
        "README.md",
    };
    const char *slash = part.len ? "/" : "";
    rt_str folder = rt_arena_printf(arena, "%s/%.*s", to, RT_FMT(part));
    if (mkdir(folder.ptr, 0755) != 0 && errno != EEXIST)
        return rt_fail_errno(err, "make %s", folder.ptr);
    for (size_t i = 0; i < RT_COUNT(files); i++) {
        rt_str source = rt_arena_printf(arena, "%s/%.*s%s%s", from, RT_FMT(part), slash, files[i]);
        rt_str copy = rt_arena_printf(arena, "%s/%.*s%s%s", to, RT_FMT(part), slash, files[i]);
        if (!copy_file(source.ptr, copy.ptr, err))
            return false;
    }
    return true;
}

/* The model's own folder, and those of its modules. */
static bool copy_model(const char *from, const char *to, rt_arena *arena, rt_error *err)
{
    rt_str modules = { NULL, 0 };
    model_parts parts;
    bool is_normalized;
    rt_str path = rt_arena_printf(arena, "%s/modules.json", from);
    if (access(path.ptr, F_OK) == 0 && !rt_read_file(path.ptr, 1 << 20, arena, &modules, err))
        return false;
    if (!model_parts_read(modules, arena, &parts, &is_normalized, err) ||
        !copy_part(from, to, RT_STR(""), arena, err) ||
        !copy_part(from, to, parts.pooling, arena, err))
        return false;
    return parts.encoder.len == 0 || copy_part(from, to, parts.encoder, arena, err);
}

/* Before the copy, for what is missing is told best where it is missing; and after it. */
static bool try_model(const char *folder, rt_error *err)
{
    rt_model *model RT_CLEANUP(rt_model_closep) = NULL;
    rt_str texts[] = { RT_STR("The quick brown fox jumps over the lazy dog."), RT_STR("") };
    float *vectors RT_CLEANUP(rt_freep) = NULL;
    if (!rt_model_open(folder, &model, err))
        return false;
    vectors = malloc(RT_COUNT(texts) * rt_model_dims(model) * sizeof(*vectors));
    if (!vectors)
        rt_out_of_memory(rt_model_dims(model));
    return rt_model_embed(model, texts, RT_COUNT(texts), vectors, err);
}

/*
 * "all-MiniLM-L6-v2" of the folder's own name. In a Hugging Face cache a model lies in
 * models--sentence-transformers--all-MiniLM-L6-v2/snapshots/<hash>.
 */
static bool choose_name(const char *real, rt_str given, rt_arena *arena, rt_str *out, rt_error *err)
{
    rt_str rest = rt_str_of(real), part, before = { NULL, 0 }, last = { NULL, 0 };
    const rt_str cached = RT_STR("models--");
    rt_str cache = { NULL, 0 };
    while (rt_str_cut(&rest, '/', &part)) {
        if (rt_str_eq_c(part, "snapshots") && rt_str_starts(last, cached))
            cache = rt_str_slice(last, cached.len, last.len);
        before = last;
        last = part;
    }
    if (cache.len > 0 && rt_str_eq_c(before, "snapshots")) {
        ptrdiff_t at = rt_str_find(cache, RT_STR("--"));
        last = at < 0 ? cache : rt_str_slice(cache, (size_t)at + 2, cache.len);
    }
    *out = rt_arena_str(arena, given.len ? own_part(given) : last);
    return check_name(*out, err);
}

/* The finished folder takes its name; one that had it goes. */
static bool publish(int directory, rt_str name, bool replaces, rt_error *err)
{
    struct stat there;
    bool is_there = fstatat(directory, name.ptr, &there, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && !replaces)
        return rt_fail(err, RT_CONFLICT,
                       "model %s is installed already; --replace puts this one "
                       "in its place",
                       name.ptr);
    if (renameat2(directory, ADDING, directory, name.ptr,
                  is_there ? RENAME_EXCHANGE : RENAME_NOREPLACE) != 0)
        return rt_fail_errno(err, "name the folder %s", name.ptr);
    if (fsync(directory) != 0)
        return rt_fail_errno(err, "write the directory");
    return true;
}

static bool add_locked(const rt_models *models, const rt_model_addition *what, const char *real,
                       int directory, rt_str name, rt_arena *arena, rt_error *err)
{
    rt_str adding = rt_arena_printf(arena, "%s/" ADDING, models->directory);
    struct stat there;
    if (!what->replaces && fstatat(directory, name.ptr, &there, AT_SYMLINK_NOFOLLOW) == 0)
        return publish(directory, name, false, err); /* says so before the work, not after */
    remove_folder(directory, ADDING, 0);
    bool ok = try_model(real, err) && copy_model(real, adding.ptr, arena, err) &&
              try_model(adding.ptr, err) && publish(directory, name, what->replaces, err);
    remove_folder(directory, ADDING, 0); /* what failed, or was replaced */
    return ok;
}

bool rt_models_add(rt_models *models, const rt_model_addition *what, rt_arena *arena, rt_str *name,
                   rt_error *err)
{
    char real[PATH_MAX];
    if (!realpath(what->folder, real))
        return rt_fail_errno(err, "%s", what->folder);
    if (!choose_name(real, what->name, arena, name, err) ||
        !make_directories(models->directory, err))
        return false;
    int directory RT_CLEANUP(rt_closep) =
        open(models->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 || flock(directory, LOCK_EX) != 0)
        return rt_fail_errno(err, "open %s", models->directory);
    return add_locked(models, what, real, directory, *name, arena, err) ||
           rt_wrap(err, "add %s", name->ptr);
}
