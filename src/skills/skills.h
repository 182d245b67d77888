/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skills.h - trusted procedures: a folder with metadata, schemas and a handler, called by name.
 *
 * Promise: what goes into a handler and what comes out fits the skill's schemas; the handler runs
 * in a fresh cell with what its safety flags allow and nothing more; every call, also one that was
 * refused, leaves a provenance record whose hashes anyone can work out. A skill that cannot be used
 * is named with the reason, and the others work. Folders may change while we run.
 *
 *     rt_skills *skills RT_CLEANUP(rt_skills_closep) = NULL;
 *     if (!rt_skills_open(&config, &skills, err))
 *         return false;
 *     rt_skill_call call = { .caller = &caller, .skill = RT_STR("text_summarize"), .args = args };
 *     rt_skill_result result;
 *     if (rt_skills_execute(skills, &call, &arena, &result, err))
 *         send(result.json);
 *
 * A folder is skills/<name>/{skill.yaml, schema.json, handler.py|handler.js|handler.sh}, nested as
 * deep as one likes; docs/skills.md says what stands in them. A folder with a SKILL.md alone is a
 * guide: text for a model, shown step by step, run by nobody. Skills come from folders, and from
 * rt_skills_register(), which keeps them in the store. Any thread may call.
 */
#ifndef RT_SKILLS_SKILLS_H
#define RT_SKILLS_SKILLS_H

#include "base/base.h"
#include "engine/engine.h"
#include "models/models.h"
#include "tools/tools.h"

typedef struct rt_skills rt_skills;

/* -- Skills ------------------------------------------------------------------------------------ */

typedef enum rt_skill_flag {
    RT_SKILL_PII_RISK = 1 << 0,       /* what it handles may be personal: marked in the record */
    RT_SKILL_EXTERNAL_CALL = 1 << 1,  /* calls tools; only where the operator allows it */
    RT_SKILL_SIDE_EFFECT = 1 << 2,    /* each call needs an approval */
    RT_SKILL_FILE_SYSTEM = 1 << 3,    /* may read its own folder and its read_paths */
    RT_SKILL_NETWORK_ACCESS = 1 << 4, /* only where the operator allows it */
} rt_skill_flag;

typedef struct rt_skill {
    rt_str name, version, description;
    unsigned flags;
    bool requires_approval;
    rt_str input_schema, output_schema; /* JSON */
    rt_str handler_path;                /* "handler.summarize": file and function */
    rt_str language;                    /* python, javascript, typescript, bash */
    const rt_str *tags;
    size_t tag_count;
    rt_str folder;          /* where it was found; empty: it was registered */
    rt_str organisation_id; /* whose it is, when it was registered */
    uint64_t created_ms;
} rt_skill;

/* "none", "pii_risk" …; NULL past the last. The first has no bit. */
const char *rt_skill_flag_name(size_t i, unsigned *flag);
void rt_skill_write(const rt_skill *s, rt_json_writer *w); /* one object, as the API shows it */

/* What is called on behalf of a skill instead of its handler: C code upstairs. *is_mine false: the
 * handler shall answer. *result is JSON. */
typedef struct rt_skill_native {
    const char *name;
    bool (*answer)(void *ctx, rt_json args, rt_arena *arena, bool *is_mine, rt_str *result,
                   rt_error *err);
    void *ctx;
} rt_skill_native;

/* embed_text by the models that are installed; `models` outlives the room. */
rt_skill_native rt_skills_embedder(rt_models *models);

typedef struct rt_skills_config {
    rt_engine *engine; /* NULL for those who only look */
    rt_store *store;   /* NULL: none are registered, and nothing is on record */
    const rt_str *directories;
    size_t directory_count;
    const rt_str *allowed; /* skills that may call outside; "*": all */
    size_t allowed_count;
    bool is_approval_off;    /* side effects need no approval (requires_approval still does) */
    rt_privacy_mode privacy; /* of skills with pii_risk; off: noted in the record only */
    uint64_t timeout_ms;     /* of skills that name none; 0: 30 s */
    const rt_skill_native *natives; /* copied */
    size_t native_count;
} rt_skills_config;

bool rt_skills_open(const rt_skills_config *config, rt_skills **out, rt_error *err);
void rt_skills_close(rt_skills *skills);
void rt_skills_closep(rt_skills **skills);

/* -- Looking: whatever lies in the folders now ------------------------------------------------- */

typedef struct rt_skill_filter {
    rt_str organisation_id; /* registered skills of this one; empty: of all */
    const rt_str *tags;     /* any of them; none: all skills */
    size_t tag_count;
    rt_str flag; /* "pii_risk"; empty: any */
} rt_skill_filter;

/* The newest version of each, by name. */
bool rt_skills_list(rt_skills *skills, const rt_skill_filter *filter, rt_arena *arena,
                    rt_skill **out, size_t *count, rt_error *err);
/* "name", or "name@1.0.0". RT_NOT_FOUND: "Skill not found: x". */
bool rt_skills_find(rt_skills *skills, rt_str organisation_id, rt_str name, rt_arena *arena,
                    rt_skill *out, rt_error *err);
size_t rt_skills_count(rt_skills *skills); /* without looking at the folders again */

/* What could not be used, and why. */
typedef struct rt_skill_problem {
    rt_str folder, reason;
} rt_skill_problem;
size_t rt_skills_problems(rt_skills *skills, rt_arena *arena, rt_skill_problem **out);

/* -- Guides: folders in the public Agent Skills format ----------------------------------------- */

#define RT_GUIDE_NAME_MAX        64
#define RT_GUIDE_DESCRIPTION_MAX 1024
#define RT_GUIDE_BYTES_MAX       (500u << 10) /* of a SKILL.md */
#define RT_GUIDE_FILES_MAX       500

typedef struct rt_guide {
    rt_str name, description;
    rt_str body;         /* only from rt_skills_guide() */
    const rt_str *files; /* paths below its folder; the same */
    size_t file_count;
} rt_guide;

size_t rt_skills_guides(rt_skills *skills, rt_arena *arena, rt_guide **out);
bool rt_skills_guide(rt_skills *skills, rt_str name, rt_arena *arena, rt_guide *out, rt_error *err);
/* Opened for reading; the caller closes it. No path leads out of the guide's folder. */
bool rt_skills_guide_file(rt_skills *skills, rt_str name, rt_str path, int *fd, uint64_t *size,
                          rt_error *err);

/* -- Calling ----------------------------------------------------------------------------------- */

typedef struct rt_skill_call {
    const rt_caller *caller;
    rt_str surface; /* empty: "skills" */
    rt_str skill;
    rt_json args; /* an object */
    rt_str request_id, actor_id, actor_type;
    rt_str approval_id; /* of a call that needed one; see rt_engine_propose() */
    bool waits_for_approval;
    bool is_approved;        /* whoever calls us has asked already: a tool's gate */
    rt_privacy_wish privacy; /* what the caller wants; the skill may demand more */
    bool is_nested;          /* made by a run that has a slot */
    rt_trace trace;
    rt_canceller *canceller; /* as in rt_request */
    void (*on_work)(void *ctx);
    void *work_ctx;
} rt_skill_call;

typedef struct rt_skill_result {
    bool is_success;
    rt_str execution_id;
    rt_str value; /* JSON; empty on failure */
    rt_str error_message;
    rt_str json; /* the whole answer, one object; see docs/skills.md */
} rt_skill_result;

/* A call that failed is an answer like any other. False only when there is none: the caller may not
 * call, or there is no room. */
bool rt_skills_execute(rt_skills *skills, const rt_skill_call *call, rt_arena *arena,
                       rt_skill_result *out, rt_error *err);

/* -- Registering ------------------------------------------------------------------------------- */

/*
 * `request` has the members of skill.yaml, input_schema and output_schema, handler_path, and
 * handler_code with the handler's text. Without handler_code, handler_path names a file below one
 * of the directories, whose text is taken. RT_CONFLICT: this version exists.
 */
bool rt_skills_register(rt_skills *skills, const rt_caller *caller, rt_json request,
                        rt_arena *arena, rt_skill *out, rt_error *err);

/* A folder with a skill that works: skill.yaml, schema.json and a handler. */
bool rt_skill_skeleton(rt_str directory, rt_str name, rt_str language, rt_arena *arena,
                       rt_str *folder, rt_error *err);

/* -- Skills as tools: "skills:text_summarize" ---------------------------------------------------
 */

#define RT_SKILLS_PROVIDER "skills"

/* `caller` is who such calls are made as; copied by the provider. */
bool rt_skills_provider(rt_skills *skills, const rt_caller *caller, rt_provider **out,
                        rt_error *err);

#endif
