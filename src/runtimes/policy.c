/*
 * policy.c - the one policy struct: presets, limits, setting a field from text.
 *
 * The table `keys` is the only place that knows a field's name, kind and bounds; flags, YAML, JSON
 * and --help all read it.
 */
#include "runtimes/runtimes_internal.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KB 1024ull
#define MB (1024 * KB)
#define GB (1024 * MB)

/* What presets have in common. */
#define LIMITS(seconds, megabytes, code)                                                           \
    .wall_ms = (seconds)*1000, .cpu_ms = (seconds)*1000, .memory_bytes = (megabytes)*MB,           \
    .scratch_bytes = 256 * MB, .output_bytes = 10 * MB, .code_bytes = (code), .processes = 64,     \
    .files = RT_FILES_NONE

static const rt_str voice_imports[] = { { "math", 4 }, { "json", 4 }, { "datetime", 8 } };

static const struct {
    const char *name, *about;
    rt_policy policy;
} presets[] = {
    { "default",
      "30 s, 512 MB, no network, no host files, a private scratch directory",
      { LIMITS(30, 512, 1 * MB) } },
    { "quick", "as default, with 5 s: code agents", { LIMITS(5, 512, 1 * MB) } },
    { "voice",
      "5 s, 128 MB, imports math, json and datetime only",
      { LIMITS(5, 128, 1 * MB), .has_import_list = true, .imports = voice_imports,
        .import_count = RT_COUNT(voice_imports) } },
    { "code-mode",
      "as default, no subprocesses, code up to 100 KB: tool-calling agents",
      { LIMITS(30, 512, 100 * KB), .is_exec_denied = true } },
    { "small", "30 s, 128 MB: small modules", { LIMITS(30, 128, 1 * MB) } },
    { "long", "300 s, 2 GB: long jobs", { LIMITS(300, 2048, 1 * MB) } },
};

typedef enum key_kind { K_DURATION, K_BYTES, K_COUNT, K_CHOICE, K_FLAG, K_LIST, K_OTHER } key_kind;

typedef struct policy_key {
    rt_policy_key shown;
    key_kind kind;
    size_t offset;
    uint64_t min, max;
    const char *choices; /* "none read_only sandboxed": their order is the value */
} policy_key;

static const policy_key keys[] = {
    { { "timeout", "wall time of a run: 100ms to 300s" },
      K_DURATION,
      offsetof(rt_policy, wall_ms),
      100,
      300000,
      NULL },
    { { "cpu", "CPU time of all processes together: 100ms to 300s" },
      K_DURATION,
      offsetof(rt_policy, cpu_ms),
      100,
      300000,
      NULL },
    { { "memory", "memory of all processes together: 16M to 64G" },
      K_BYTES,
      offsetof(rt_policy, memory_bytes),
      16 * MB,
      64 * GB,
      NULL },
    { { "scratch", "size of the scratch directory, which counts as memory: 1M to 16G" },
      K_BYTES,
      offsetof(rt_policy, scratch_bytes),
      1 * MB,
      16 * GB,
      NULL },
    { { "output", "stdout and stderr together, and the answer: 1K to 60M" },
      K_BYTES,
      offsetof(rt_policy, output_bytes),
      1 * KB,
      60 * MB,
      NULL },
    { { "code_size", "size of the code: 1K to 16M" },
      K_BYTES,
      offsetof(rt_policy, code_bytes),
      1 * KB,
      16 * MB,
      NULL },
    { { "processes", "processes and threads at once: 1 to 4096" },
      K_COUNT,
      offsetof(rt_policy, processes),
      1,
      4096,
      NULL },
    { { "files", "host files: none, read_only (nothing can be written) or sandboxed" },
      K_CHOICE,
      offsetof(rt_policy, files),
      0,
      2,
      "none read_only sandboxed" },
    { { "subprocess", "allow or deny other programs and processes" },
      K_FLAG,
      offsetof(rt_policy, is_exec_denied),
      0,
      1,
      "allow deny" },
    { { "isolation", "standard, or strict: refuse where a layer has only a substitute" },
      K_CHOICE,
      offsetof(rt_policy, isolation),
      0,
      1,
      "standard strict" },
    { { "privacy", "what becomes of personal data: off, redact, tokens or partial (on a server)" },
      K_CHOICE,
      offsetof(rt_policy, privacy),
      0,
      3,
      "off redact tokens partial" },
    { { "read", "a host path the code may read, at the same place (a list in YAML)" },
      K_LIST,
      0,
      0,
      0,
      NULL },
    { { "imports", "modules Python code may import (a list in YAML); absent: any" },
      K_LIST,
      0,
      0,
      0,
      NULL },
    { { "env", "a variable NAME=VALUE the code sees (a map in YAML)" }, K_OTHER, 0, 0, 0, NULL },
    { { "network", "none: code has no network" }, K_OTHER, 0, 0, 0, NULL },
};

const rt_policy_key *rt_policy_key_at(size_t i)
{
    return i < RT_COUNT(keys) ? &keys[i].shown : NULL;
}

const rt_policy *rt_policy_preset(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(presets); i++)
        if (rt_str_eq_c(name, presets[i].name))
            return &presets[i].policy;
    return NULL;
}

const char *rt_policy_preset_name(size_t i)
{
    return i < RT_COUNT(presets) ? presets[i].name : NULL;
}

const char *rt_policy_preset_about(size_t i)
{
    return i < RT_COUNT(presets) ? presets[i].about : NULL;
}

/* ---- setting one field ---- */

static bool fail_unknown(rt_str key, rt_error *err)
{
    rt_nearest near;
    char hint[RT_NEAREST_HINT];
    rt_nearest_start(&near, key);
    for (size_t i = 0; i < RT_COUNT(keys); i++)
        rt_nearest_try(&near, rt_str_of(keys[i].shown.key));
    return rt_fail(err, RT_INVALID, "policy: unknown key '%.*s'%s",
                   (int)RT_MIN(key.len, (size_t)40), key.ptr,
                   rt_nearest_hint(&near, "; 'retort run --help' lists the keys there are", hint));
}

static bool parse_amount(const policy_key *k, rt_str value, uint64_t *out, rt_error *err)
{
    bool ok = k->kind == K_DURATION ? rt_parse_duration_ms(value, out, err)
              : k->kind == K_BYTES  ? rt_parse_bytes(value, out, err)
                                    : rt_str_to_u64(value, out);
    if (!ok && k->kind == K_COUNT)
        rt_fail(err, RT_INVALID, "'%.*s' is not a whole number", (int)RT_MIN(value.len, (size_t)40),
                value.ptr);
    if (ok && (*out < k->min || *out > k->max))
        ok = rt_fail(err, RT_INVALID, "'%.*s' is out of range", (int)RT_MIN(value.len, (size_t)40),
                     value.ptr);
    return ok ? true : rt_wrap(err, "policy: %s (%s)", k->shown.key, k->shown.about);
}

static bool parse_choice(const policy_key *k, rt_str value, int *out, rt_error *err)
{
    rt_str rest = rt_str_of(k->choices), word;
    for (int i = 0; rt_str_cut(&rest, ' ', &word); i++)
        if (rt_str_eq(word, value)) {
            *out = i;
            return true;
        }
    return rt_fail(err, RT_INVALID, "policy: %s is '%.*s'; it must be one of: %s", k->shown.key,
                   (int)RT_MIN(value.len, (size_t)40), value.ptr, k->choices);
}

static void append(rt_arena *arena, const rt_str **list, size_t *count, rt_str item)
{
    rt_str *grown = rt_arena_alloc(arena, sizeof(*grown) * (*count + 1));
    if (*count)
        memcpy(grown, *list, sizeof(*grown) * *count);
    grown[(*count)++] = rt_arena_str(arena, item);
    *list = grown;
}

/* A link leads where it leads on the host: what is granted, and shown, is that place. */
static bool add_read_path(rt_policy *p, rt_str value, rt_arena *arena, rt_error *err)
{
    const char *path;
    char real[PATH_MAX];
    if (!rt_str_to_path(value, arena, &path, err))
        return rt_wrap(err, "policy: read");
    if (!realpath(path, real))
        return rt_fail_errno(err, "policy: read path '%.100s'", path);
    append(arena, &p->read_paths, &p->read_path_count, rt_str_of(real));
    if (p->files == RT_FILES_NONE)
        p->files = RT_FILES_SANDBOXED; /* naming a path is asking for it */
    return true;
}

static bool add_env(rt_policy *p, rt_str value, rt_arena *arena, rt_error *err)
{
    rt_str rest = value, name;
    if (!memchr(value.ptr, '=', value.len) || !rt_str_cut(&rest, '=', &name) || name.len == 0 ||
        memchr(value.ptr, '\0', value.len))
        return rt_fail(err, RT_INVALID, "policy: env needs NAME=VALUE");
    rt_pair *grown = rt_arena_alloc(arena, sizeof(*grown) * (p->env_count + 1));
    if (p->env_count)
        memcpy(grown, p->env, sizeof(*grown) * p->env_count);
    grown[p->env_count++] =
        (rt_pair){ rt_arena_str(arena, name),
                   rt_arena_str(arena, rt_str_slice(value, name.len + 1, value.len)) };
    p->env = grown;
    return true;
}

static bool set_other(rt_policy *p, rt_str key, rt_str value, rt_arena *arena, rt_error *err)
{
    if (rt_str_eq_c(key, "read"))
        return add_read_path(p, value, arena, err);
    if (rt_str_eq_c(key, "env"))
        return add_env(p, value, arena, err);
    if (rt_str_eq_c(key, "imports")) {
        rt_str rest = value, word;
        p->has_import_list = true;
        while (rt_str_cut(&rest, ',', &word))
            if (rt_str_trim(word).len > 0)
                append(arena, &p->imports, &p->import_count, rt_str_trim(word));
        return true;
    }
    if (!rt_str_eq_c(value, "none"))
        return rt_fail(err, RT_UNSUPPORTED, "policy: network can only be none");
    return true;
}

bool rt_policy_set(rt_policy *policy, rt_str key, rt_str value, rt_arena *arena, rt_error *err)
{
    for (size_t i = 0; i < RT_COUNT(keys); i++) {
        const policy_key *k = &keys[i];
        char *field = (char *)policy + k->offset;
        uint64_t amount = 0;
        int choice = 0;
        if (!rt_str_eq_c(key, k->shown.key))
            continue;
        if (k->kind == K_LIST || k->kind == K_OTHER)
            return set_other(policy, key, value, arena, err);
        if (k->kind == K_CHOICE || k->kind == K_FLAG) {
            if (!parse_choice(k, value, &choice, err))
                return false;
            if (k->kind == K_FLAG)
                *(bool *)field = choice != 0;
            else
                *(int *)field = choice;
            return true;
        }
        if (!parse_amount(k, value, &amount, err))
            return false;
        *(uint64_t *)field = amount;
        return true;
    }
    return fail_unknown(key, err);
}

/* ---- comparing and showing ---- */

static bool is_listed(rt_str item, const rt_str *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rt_str_eq(item, list[i]))
            return true;
    return false;
}

bool rt_policy_within(const rt_policy *p, const rt_policy *top, rt_error *err)
{
    for (size_t i = 0; i < RT_COUNT(keys); i++) {
        const policy_key *k = &keys[i];
        if (k->kind > K_COUNT)
            continue;
        uint64_t asked = *(const uint64_t *)((const char *)p + k->offset);
        uint64_t most = *(const uint64_t *)((const char *)top + k->offset);
        if (asked > most)
            return rt_fail(err, RT_DENIED, "%s: %llu asked, the operator allows %llu", k->shown.key,
                           (unsigned long long)asked, (unsigned long long)most);
    }
    if (p->files > top->files)
        return rt_fail(err, RT_DENIED, "files: more access asked than the operator allows");
    for (size_t i = 0; i < p->read_path_count; i++)
        if (!is_listed(p->read_paths[i], top->read_paths, top->read_path_count))
            return rt_fail(err, RT_DENIED, "read: '%.*s' is not among the operator's read paths",
                           (int)RT_MIN(p->read_paths[i].len, (size_t)100), p->read_paths[i].ptr);
    if (top->has_import_list && !p->has_import_list)
        return rt_fail(err, RT_DENIED, "imports: the operator allows only some");
    for (size_t i = 0; top->has_import_list && i < p->import_count; i++)
        if (!is_listed(p->imports[i], top->imports, top->import_count))
            return rt_fail(err, RT_DENIED, "imports: '%.*s' is not among the operator's",
                           (int)RT_MIN(p->imports[i].len, (size_t)60), p->imports[i].ptr);
    if (top->is_exec_denied && !p->is_exec_denied)
        return rt_fail(err, RT_DENIED, "subprocess: the operator denies it");
    if (p->isolation < top->isolation)
        return rt_fail(err, RT_DENIED, "isolation: the operator asks for strict");
    return true;
}

static void write_list(rt_json_writer *w, const char *key, const rt_str *list, size_t count)
{
    rt_jw_karray(w, key);
    for (size_t i = 0; i < count; i++)
        rt_jw_str(w, list[i]);
    rt_jw_end(w);
}

void rt_policy_write(const rt_policy *p, rt_json_writer *w)
{
    static const char *const files[] = { "none", "read_only", "sandboxed" };
    static const char *const modes[] = { "off", "redact", "tokens", "partial" };
    rt_jw_object(w);
    rt_jw_ku64(w, "timeout_ms", p->wall_ms);
    rt_jw_ku64(w, "cpu_ms", p->cpu_ms);
    rt_jw_ku64(w, "memory_bytes", p->memory_bytes);
    rt_jw_ku64(w, "scratch_bytes", p->scratch_bytes);
    rt_jw_ku64(w, "output_bytes", p->output_bytes);
    rt_jw_ku64(w, "code_size_bytes", p->code_bytes);
    rt_jw_ku64(w, "processes", p->processes);
    rt_jw_kstr(w, "files", rt_str_of(files[p->files]));
    write_list(w, "read", p->read_paths, p->read_path_count);
    if (p->has_import_list)
        write_list(w, "imports", p->imports, p->import_count);
    rt_jw_kstr(w, "subprocess", rt_str_of(p->is_exec_denied ? "deny" : "allow"));
    rt_jw_kstr(w, "network", RT_STR("none"));
    rt_jw_kstr(w, "isolation",
               rt_str_of(p->isolation == RT_ISOLATION_STRICT ? "strict" : "standard"));
    rt_jw_kstr(w, "privacy", rt_str_of(modes[p->privacy]));
    rt_jw_end(w);
}

/* ---- for hashing ---- */

static void add_number(rt_buf *out, uint64_t n)
{
    rt_buf_add(out, (rt_str){ (const char *)&n, sizeof(n) });
}

static void add_text(rt_buf *out, rt_str text)
{
    add_number(out, text.len);
    rt_buf_add(out, text);
}

rt_str rt_policy_fingerprint(const rt_policy *p, rt_arena *arena)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    const uint64_t numbers[] = { p->wall_ms,         p->cpu_ms,       p->memory_bytes,
                                 p->scratch_bytes,   p->output_bytes, p->code_bytes,
                                 p->processes,       p->files,        p->has_import_list,
                                 p->is_exec_denied,  p->isolation,    p->privacy,
                                 p->read_path_count, p->import_count, p->env_count };
    rt_buf_add(&out, (rt_str){ (const char *)numbers, sizeof(numbers) });
    for (size_t i = 0; i < p->read_path_count; i++)
        add_text(&out, p->read_paths[i]);
    for (size_t i = 0; i < p->import_count; i++)
        add_text(&out, p->imports[i]);
    for (size_t i = 0; i < p->env_count; i++) {
        add_text(&out, p->env[i].name);
        add_text(&out, p->env[i].value);
    }
    return rt_arena_str(arena, rt_buf_str(&out));
}
