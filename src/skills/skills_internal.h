/* SPDX-License-Identifier: Apache-2.0 */
/* skills_internal.h - what the files of this room share. */
#ifndef RT_SKILLS_INTERNAL_H
#define RT_SKILLS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "skills/skills.h"

#define SKILL_YAML_MAX    (64u << 10)
#define SKILL_SCHEMA_MAX  (1u << 20)
#define SKILL_HANDLER_MAX (1u << 20)
#define SKILL_LIST_MAX    100 /* entries of tags, tools, read_paths */

/* -- read.c: one skill, from what its files say ------------------------------------------------ */

typedef struct skill {
    rt_skill shown;
    rt_str file;     /* "handler.py" */
    rt_str function; /* empty: the file itself answers */
    rt_str code;
    uint64_t numbers[3];               /* of the version */
    uint64_t timeout_ms, memory_bytes; /* 0: as usual */
    const rt_str *tools, *read_paths;
    size_t tool_count, read_path_count;
    rt_json metadata;
    rt_schema *input, *output; /* owned by the catalogue */
    size_t order;              /* in which it was found: the first of two equal ones counts */
} skill;

/* The members of skill.yaml (or of a registration). Texts live in `arena`. */
bool skills_read_metadata(rt_json metadata, rt_arena *arena, skill *out, rt_error *err);
/* schema.json: {"input", "output"}, or {"definitions"} that the metadata points into. */
bool skills_read_schemas(rt_json schemas, rt_arena *arena, skill *out, rt_error *err);
/* From two schemas of their own. */
bool skills_take_schemas(rt_json input, rt_json output, rt_arena *arena, skill *out, rt_error *err);
/* Does the text have what handler_path names? */
bool skills_check_handler(skill *s, rt_error *err);
void skills_skill_done(skill *s);
int skills_compare(const skill *a, const skill *b); /* by name, then the newest version first */

/* -- guides.c ---------------------------------------------------------------------------------- */

typedef struct guide {
    rt_str name, description, folder;
    size_t body_at; /* in SKILL.md */
} guide;

bool skills_read_guide(rt_str text, rt_arena *arena, guide *out, rt_error *err);

/* -- load.c: all skills at one moment, which never change afterwards --------------------------- */

typedef struct catalogue {
    atomic_uint refs;
    rt_arena arena;
    skill *skills; /* in the order of skills_compare() */
    size_t skill_count, skill_room;
    guide *guides; /* by name */
    size_t guide_count, guide_room;
    rt_skill_problem *problems;
    size_t problem_count, problem_room;
    uint64_t mark, registered; /* of the folders and of the store, as they were looked at */
} catalogue;

void skills_catalogue_dropp(catalogue **c);
const skill *skills_catalogue_find(const catalogue *c, rt_str organisation_id, rt_str name);
bool skills_is_newest(const catalogue *c, size_t i, rt_str organisation_id);

struct rt_skills {
    rt_skills_config config; /* its texts live in `arena` */
    rt_arena arena;
    pthread_mutex_t lock; /* of the catalogue's pointer, and for loading one at a time */
    catalogue *now;
    uint64_t looked_ns;
};

/* The catalogue, looked at again if `is_fresh` or if the last look was a while ago. */
catalogue *skills_hold(rt_skills *skills, bool is_fresh);
/* A number that changes when a file of a skill does; and loading. */
uint64_t skills_folders_mark(const rt_skills_config *config);
catalogue *skills_load(const rt_skills_config *config, uint64_t mark);
/* A file below a directory, whatever the path says: it cannot lead out. */
bool skills_open_below(const char *directory, rt_str path, int *fd, rt_error *err);

/* -- answer.c: the shapes of section 4 ----------------------------------------------------------
 */

typedef struct skill_log {
    uint64_t time_ms;
    const char *level;
    rt_str message, context; /* JSON object, or empty */
} skill_log;

#define SKILL_LOGS_MAX 12

/* One call on its way. */
typedef struct skill_passage {
    rt_skills *skills;
    const rt_skill_call *call;
    rt_arena *arena;
    const skill *skill; /* NULL: not found */
    rt_str id;
    uint64_t began_ns, began_ms;
    char inputs_hash[RT_SHA256_HEX], outputs_hash[RT_SHA256_HEX];
    rt_str canonical; /* of the arguments */
    rt_str value, error, tool_ids;
    rt_str approval_id; /* that was asked for */
    double elapsed_ms;
    skill_log logs[SKILL_LOGS_MAX];
    size_t log_count;
} skill_passage;

void skills_log(skill_passage *p, const char *level, const char *fmt, ...) RT_PRINTF(3, 4);
rt_str skills_actor(const skill_passage *p);
rt_str skills_actor_type(const skill_passage *p);
bool skills_write_answer(skill_passage *p, rt_skill_result *out, rt_error *err);

#endif
