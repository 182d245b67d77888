/* SPDX-License-Identifier: Apache-2.0 */
/*
 * house.c - opens what the settings name, in the order things stand on each other.
 */
#include "cli/house.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool make_directory(rt_str path, rt_error *err)
{
    char part[4096];
    if (path.len >= sizeof(part))
        return rt_fail(err, RT_INVALID, "data_dir: the path is too long");
    memcpy(part, path.ptr, path.len);
    part[path.len] = '\0';
    for (char *slash = part + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return rt_fail_errno(err, "make %s", part);
    }
    if (mkdir(part, 0700) != 0 && errno != EEXIST)
        return rt_fail_errno(err, "make %s", part);
    return true;
}

/* Nodes that share a database must not take each other's runs for their own after a restart. */
static rt_str name_node(cli_house *h)
{
    const rt_settings *s = &h->settings;
    char mark[RT_SHA256_HEX];
    if (!rt_str_eq_c(cli_settings_source(s, "node.name"), "default"))
        return s->node.name;
    rt_sha256_hex(s->data_dir, mark);
    return rt_arena_printf(&h->arena, "%.*s-%.6s", RT_FMT(s->node.name), mark);
}

bool cli_house_read(cli_house *h, int *argc, char **argv, rt_error *err)
{
    if (!cli_settings_load(argc, argv, &h->arena, &h->settings, err))
        return false;
    rt_log_level_set(h->settings.is_debug ? RT_LOG_DEBUG : h->settings.log.level);
    rt_log_json_set(h->settings.log.format == CLI_LOG_JSON);
    h->node = name_node(h);
    for (size_t i = 0; i < h->settings.warnings.count; i++)
        rt_log(RT_LOG_WARN, "%.*s", RT_FMT(h->settings.warnings.items[i]));
    return true;
}

bool cli_house_lock(cli_house *h, rt_error *err)
{
    rt_str path = rt_arena_printf(&h->arena, "%.*s/lock", RT_FMT(h->settings.data_dir));
    if (!make_directory(h->settings.data_dir, err))
        return false;
    int fd = open(path.ptr, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return rt_fail_errno(err, "open %s", path.ptr);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return rt_fail(err, RT_CONFLICT,
                       "another server uses %.*s; stop it, or choose another --data-dir",
                       RT_FMT(h->settings.data_dir));
    }
    return true;
}

bool cli_house_exists(cli_house *h, rt_error *err)
{
    rt_str url = h->settings.database.url, mark = RT_STR("sqlite://");
    if (!rt_str_starts(url, mark))
        return true;
    const char *path = rt_arena_copy(&h->arena, rt_str_slice(url, mark.len, url.len));
    if (access(path, F_OK) != 0)
        return rt_fail(err, RT_NOT_FOUND, "there are no records at %s; is --data-dir right?", path);
    return true;
}

bool cli_house_open_store(cli_house *h, rt_error *err)
{
    const rt_settings *s = &h->settings;
    rt_store_config config = { .url = s->database.url,
                               .connections = (unsigned)s->database.connections,
                               .is_sync_full = s->database.sync == CLI_SYNC_FULL };
    return (make_directory(s->data_dir, err) && rt_store_open(&config, &h->store, err)) ||
           rt_wrap(err, "open the store");
}

bool cli_house_open(cli_house *h, rt_error *err)
{
    const rt_settings *s = &h->settings;
    rt_str key = rt_arena_printf(&h->arena, "%.*s/vault.key", RT_FMT(s->data_dir));
    rt_str shelf = rt_arena_printf(&h->arena, "%.*s/artifacts", RT_FMT(s->data_dir));
    rt_str objects = rt_arena_printf(&h->arena, "%.*s/objects", RT_FMT(s->data_dir));
    if (!cli_house_open_store(h, err) || !rt_store_migrate(h->store, NULL, NULL, err) ||
        !rt_vault_open(key.ptr, &h->vault, err))
        return false;
    h->objects = (rt_objects){ objects.ptr, h->vault };
    rt_shelf_config config = { .store = h->store,
                               .vault = h->vault,
                               .directory = shelf.ptr,
                               .host = h->node,
                               .max_bytes = s->artifacts.max_bytes,
                               .ttl_ms = s->artifacts.ttl_ms };
    return rt_shelf_open(&config, &h->shelf, err) || rt_wrap(err, "open the artifacts");
}

rt_models *cli_house_models(cli_house *h)
{
    if (!h->models)
        h->models = rt_models_new(h->settings.models.directory);
    return h->models;
}

void cli_house_close(cli_house *h)
{
    rt_models_free(h->models);
    rt_shelf_close(h->shelf);
    rt_vault_close(h->vault);
    rt_store_close(h->store);
    rt_arena_done(&h->arena);
}
