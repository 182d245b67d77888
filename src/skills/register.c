/* SPDX-License-Identifier: Apache-2.0 */
/*
 * register.c - skills that come over the API, and the skeleton of a new one.
 *
 * What is registered is read by the same rules as a folder's files, and kept in the store as it was
 * sent: each version for ever, the newest is the one that a bare name means.
 */
#include "skills/skills_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* "my_skill/handler.py:function" names a file below one of the directories. */
static bool take_file(rt_skills *skills, rt_str path, rt_arena *arena, rt_str *code, rt_error *err)
{
    const char *colon = path.len ? memrchr(path.ptr, ':', path.len) : NULL;
    rt_str file = colon ? rt_str_slice(path, 0, (size_t)(colon - path.ptr)) : path;
    for (size_t i = 0; i < skills->config.directory_count; i++) {
        int fd RT_CLEANUP(rt_closep) = -1;
        if (skills_open_below(skills->config.directories[i].ptr, file, &fd, NULL))
            return rt_read_fd(fd, SKILL_HANDLER_MAX, arena, code, err) ||
                   rt_wrap(err, "handler_path");
    }
    return rt_fail(err, RT_INVALID,
                   "send the handler's text as handler_code, or name a file below a skills "
                   "directory in handler_path: there is no '%.*s'",
                   (int)RT_MIN(path.len, (size_t)80), path.ptr);
}

/* The metadata as skill.yaml would have it: handler_path without its folders. */
static bool make_metadata(rt_json request, rt_arena *arena, rt_json *out, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_iter it = rt_json_each(request);
    rt_str name;
    rt_json value;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    while (rt_json_next(&it, &name, &value)) {
        if (rt_str_eq_c(name, "handler_code") || rt_str_eq_c(name, "input_schema") ||
            rt_str_eq_c(name, "output_schema"))
            continue;
        rt_jw_key(&w, name);
        rt_str path = rt_json_str(value);
        const char *slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
        if (rt_str_eq_c(name, "handler_path") && slash)
            rt_jw_str(&w, rt_str_slice(path, (size_t)(slash - path.ptr) + 1, path.len));
        else
            rt_jw_json(&w, value);
    }
    rt_jw_end(&w);
    return rt_json_parse(rt_buf_str(&text), arena, out, err);
}

static bool read_registration(rt_skills *skills, rt_json request, rt_arena *arena, skill *s,
                              rt_error *err)
{
    rt_json code = rt_json_get_c(request, "handler_code"), metadata;
    rt_str path = rt_json_str(rt_json_get_c(request, "handler_path"));
    if (!make_metadata(request, arena, &metadata, err) ||
        !skills_read_metadata(metadata, arena, s, err) ||
        !skills_take_schemas(rt_json_get_c(request, "input_schema"),
                             rt_json_get_c(request, "output_schema"), arena, s, err))
        return false;
    if (s->read_path_count > 0)
        return rt_fail(err, RT_DENIED, "read_paths are for skills that lie in a folder");
    if (rt_json_type(code) == RT_JSON_STRING)
        s->code = rt_json_str(code);
    else if (!take_file(skills, path, arena, &s->code, err))
        return false;
    if (!rt_language_of_file(s->file))
        s->file = rt_arena_printf(arena, "%.*s.py", RT_FMT(s->file));
    if (s->code.len > SKILL_HANDLER_MAX)
        return rt_fail(err, RT_LIMIT, "a handler has at most %u bytes", SKILL_HANDLER_MAX);
    return skills_check_handler(s, err);
}

static rt_str print(rt_json value, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_print(value, &text);
    return rt_arena_str(arena, rt_buf_str(&text));
}

/* A folder's skill of the same version would hide it. */
static bool check_new(rt_skills *skills, const rt_caller *caller, const skill *s, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_skill found;
    rt_str name =
        rt_arena_printf(&arena, "%.*s@%.*s", RT_FMT(s->shown.name), RT_FMT(s->shown.version));
    if (rt_skills_find(skills, caller->organisation_id, name, &arena, &found, NULL))
        return rt_fail(err, RT_CONFLICT, "%.*s %.*s exists already; raise the version",
                       RT_FMT(s->shown.name), RT_FMT(s->shown.version));
    return true;
}

bool rt_skills_register(rt_skills *skills, const rt_caller *caller, rt_json request,
                        rt_arena *arena, rt_skill *out, rt_error *err)
{
    skill s RT_CLEANUP(skills_skill_done) = { 0 };
    if (!skills->config.store)
        return rt_fail(err, RT_UNAVAILABLE, "there is no store to keep skills in");
    if (!read_registration(skills, request, arena, &s, err) || !check_new(skills, caller, &s, err))
        return false;
    rt_skill_row row = { .organisation_id = caller->organisation_id,
                         .name = s.shown.name,
                         .version = s.shown.version,
                         .metadata = print(s.metadata, arena),
                         .input_schema = s.shown.input_schema,
                         .output_schema = s.shown.output_schema,
                         .handler_file = s.file,
                         .code = s.code,
                         .created_by = caller->user_id.len ? caller->user_id : caller->key_id,
                         .created_ms = rt_wall_ms() };
    if (!rt_skill_add(skills->config.store, &row, err))
        return false;
    *out = s.shown;
    out->organisation_id = row.organisation_id;
    out->created_ms = row.created_ms;
    return true;
}

/* -- A new skill ------------------------------------------------------------------------------- */

static const struct {
    const char *language, *file, *code;
} skeletons[] = {
    { "python", "handler.py",
      "\"\"\"Counts words. Replace this with what your skill does.\"\"\"\n\n\n"
      "def run(text: str, minimum: int = 1) -> dict:\n"
      "    words = [word for word in text.split() if len(word) >= minimum]\n"
      "    return {\"words\": len(words)}\n" },
    { "javascript", "handler.js",
      "// Counts words. Replace this with what your skill does.\n"
      "exports.run = ({ text, minimum }) => ({\n"
      "  words: text.split(/\\s+/).filter((word) => word.length >= minimum).length,\n"
      "});\n" },
    { "bash", "handler.sh",
      "# Counts words. Replace this with what your skill does.\n"
      "run() {\n"
      "    local count=0 word\n"
      "    for word in $INPUT_text; do\n"
      "        [ \"${#word}\" -ge \"$INPUT_minimum\" ] && count=$((count + 1))\n"
      "    done\n"
      "    RESULT=\"{\\\"words\\\": $count}\"\n"
      "}\n" },
};

static const char skeleton_yaml[] = "name: %.*s\n"
                                    "version: 1.0.0\n"
                                    "description: Counts the words of a text.\n"
                                    "safety_flags:\n"
                                    "  - none\n"
                                    "requires_approval: false\n"
                                    "handler: handler.run\n"
                                    "tags:\n"
                                    "  - text\n";

static const char skeleton_schema[] =
    "{\n"
    "  \"input\": {\n"
    "    \"$schema\": \"http://json-schema.org/draft-07/schema#\",\n"
    "    \"type\": \"object\",\n"
    "    \"properties\": {\n"
    "      \"text\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 100000},\n"
    "      \"minimum\": {\"type\": \"integer\", \"minimum\": 1, \"default\": 1}\n"
    "    },\n"
    "    \"required\": [\"text\"],\n"
    "    \"additionalProperties\": false\n"
    "  },\n"
    "  \"output\": {\n"
    "    \"$schema\": \"http://json-schema.org/draft-07/schema#\",\n"
    "    \"type\": \"object\",\n"
    "    \"properties\": {\"words\": {\"type\": \"integer\", \"minimum\": 0}},\n"
    "    \"required\": [\"words\"],\n"
    "    \"additionalProperties\": false\n"
    "  }\n"
    "}\n";

static bool write_file(rt_str folder, const char *name, rt_str text, rt_arena *arena, rt_error *err)
{
    rt_str path = rt_arena_printf(arena, "%.*s/%s", RT_FMT(folder), name);
    int fd RT_CLEANUP(rt_closep) =
        open(path.ptr, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return rt_fail_errno(err, "write %s", path.ptr);
    return rt_write_all(fd, text, err);
}

bool rt_skill_skeleton(rt_str directory, rt_str name, rt_str language, rt_arena *arena,
                       rt_str *folder, rt_error *err)
{
    const rt_language *known = rt_language_find(language);
    rt_str yaml = rt_arena_printf(arena, skeleton_yaml, RT_FMT(name));
    skill s = { 0 };
    rt_json metadata;
    size_t i = 0;
    while (i < RT_COUNT(skeletons) && !(known && strcmp(known->name, skeletons[i].language) == 0))
        i++;
    if (i == RT_COUNT(skeletons))
        return rt_fail(err, RT_INVALID, "a skill is written in python, javascript or bash");
    if (!rt_yaml_parse(yaml, arena, &metadata, err) ||
        !skills_read_metadata(metadata, arena, &s, err))
        return false;
    *folder = rt_arena_printf(arena, "%.*s/%.*s", RT_FMT(directory), RT_FMT(name));
    mkdir(rt_arena_copy(arena, directory), 0755);
    if (mkdir(folder->ptr, 0755) != 0)
        return rt_fail_errno(err, "make %s", folder->ptr);
    return write_file(*folder, "skill.yaml", yaml, arena, err) &&
           write_file(*folder, "schema.json", rt_str_of(skeleton_schema), arena, err) &&
           write_file(*folder, skeletons[i].file, rt_str_of(skeletons[i].code), arena, err);
}
