/*
 * runtimes.h - run code of some language under a policy, here or elsewhere.
 *
 * Promise: execute() answers for every run, whatever the code does: with its value, or with an
 * error that names what went wrong in the user's own lines. It fails (returns false) only when the
 * run could not be had at all.
 *
 *     rt_runtime *local RT_CLEANUP(rt_runtime_closep) = NULL;
 *     if (!rt_local_open(&config, &local, err))
 *         return false;
 *     rt_run run = { .language = RT_STR("python"), .code = RT_STR("return 6 * 7"),
 *                    .policy = rt_policy_preset(RT_STR("default")) };
 *     rt_outcome outcome;
 *     if (local->execute(local, &run, &arena, &outcome, err))
 *         rt_outcome_write(&outcome, &json);
 *
 * A runtime has exactly three operations: execute, validate, languages. Local cells are one; a
 * remote service would be another; the placeholder answers "not implemented" in the right shape.
 * What the code sees inside a cell is described in docs/languages.md.
 */
#ifndef RETORT_RUNTIMES_H
#define RETORT_RUNTIMES_H

#include "base/base.h"
#include "privacy/privacy.h"
#include "sandbox/sandbox.h"

/* ---- policy: what a run may use ---- */

typedef enum rt_isolation {
    RT_ISOLATION_STANDARD, /* namespaces, seccomp, no capabilities, a limit on memory by some means
                            */
    RT_ISOLATION_STRICT,   /* also: memory by cgroup, ids of its own, Landlock; else refuse */
} rt_isolation;

typedef struct rt_pair {
    rt_str name, value;
} rt_pair;

typedef struct rt_policy {
    uint64_t wall_ms, cpu_ms;
    uint64_t memory_bytes, scratch_bytes;
    uint64_t output_bytes; /* stdout and stderr together; also the largest answer */
    uint64_t code_bytes;
    uint64_t processes;
    rt_file_access files;
    const rt_str *read_paths;
    size_t read_path_count;
    bool has_import_list; /* false: any import */
    const rt_str *imports;
    size_t import_count;
    const rt_pair *env;
    size_t env_count;
    bool is_exec_denied;
    rt_isolation isolation;
    rt_privacy_mode privacy; /* what becomes of personal data; the engine's to do */
} rt_policy;

/* A preset by name, or NULL. The first preset is "default". */
const rt_policy *rt_policy_preset(rt_str name);
const char *rt_policy_preset_name(size_t i); /* NULL past the last */
const char *rt_policy_preset_about(size_t i);

/* Sets one field from text, as a flag or a line of YAML gives it: "timeout", "5s". */
bool rt_policy_set(rt_policy *policy, rt_str key, rt_str value, rt_arena *arena, rt_error *err);

/* Reads a policy file (YAML); "extends" names the preset it starts from. */
bool rt_policy_parse(rt_str yaml, rt_arena *arena, rt_policy *out, rt_error *err);

/* From JSON: a preset's name, or an object of the same keys that refines *out (or the preset its
 * "extends" names). */
bool rt_policy_read(rt_json from, rt_arena *arena, rt_policy *out, rt_error *err);

/* A request may tighten what the operator allows and never loosen it. */
bool rt_policy_within(const rt_policy *policy, const rt_policy *ceiling, rt_error *err);

void rt_policy_write(const rt_policy *policy, rt_json_writer *w);

/* Bytes that two policies share only if they are the same, for hashing. */
rt_str rt_policy_fingerprint(const rt_policy *policy, rt_arena *arena);

/* One row per field, for --help and for documents. */
typedef struct rt_policy_key {
    const char *key, *about;
} rt_policy_key;
const rt_policy_key *rt_policy_key_at(size_t i); /* NULL past the last */

/* ---- a run ---- */

typedef bool (*rt_output_fn)(void *ctx, int stream, rt_str text); /* false: end the run */

/* Ends a run from another thread, whenever it comes: before the run started it never starts, after
 * it ended nothing happens. */
typedef struct rt_canceller {
    int wake; /* readable from then on */
} rt_canceller;

void rt_canceller_init(rt_canceller *c);
void rt_canceller_done(rt_canceller *c); /* when the run has ended and no thread can cancel it */
void rt_canceller_cancel(rt_canceller *c);
bool rt_canceller_is_cancelled(const rt_canceller *c);

/*
 * Where the calls of running code go: to tools, upstairs. take() begins a call and does not wait;
 * next() gives an answer that is ready, perhaps at once. When there is none yet, fd becomes
 * readable as soon as there is; it may be -1 until the first take(), and is read again after each.
 * Calls run side by side, and answers come in any order; those the run does not wait for any more
 * are its owner's to drop. While paused() is true the code waits for a person, and its time limit
 * with it. All of it is called from the thread that executes the run.
 */
#define RT_DESK_PENDING_MAX 64 /* calls of one run under way at a time; more are errors */

typedef struct rt_desk_call {
    uint64_t number;  /* the code's own, to tell answers apart; no two pending calls share one */
    rt_str tool;      /* "github:listCommits" as the code wrote it; also "tools:search" … */
    rt_str arguments; /* a JSON object; like the tool it is good until take() returns */
} rt_desk_call;

typedef struct rt_desk_answer {
    uint64_t number;
    bool is_error;
    rt_str value;      /* JSON; good until the next call of next() */
    rt_str error_type; /* what the code catches: "MCPToolError"; empty means that */
    rt_str error_text; /* "Tool error in 'github:list_commits': …" */
    rt_str tool;       /* which it was, by its own name; empty: as it was called */
    rt_str original;   /* what the tool itself said; may be empty */
} rt_desk_answer;

typedef struct rt_desk {
    int fd;
    void (*take)(struct rt_desk *self, const rt_desk_call *call);
    bool (*next)(struct rt_desk *self, rt_arena *arena, rt_desk_answer *out); /* false: none now */
    bool (*paused)(struct rt_desk *self); /* may be NULL: never */
    /* Whose tools the code may name, as a JSON array: ["github","jira","my-server"]. Each guest
     * makes its language's names of them; which tools they have is asked when one is called. */
    rt_str servers;
} rt_desk;

/*
 * A module of the code's own, loaded before the code runs and found under its name: `import
 * handler` in Python, a variable `handler` with what it exports in JavaScript; in bash it stands
 * before the code. It runs without the input, so what it does may be shared by later runs of the
 * same prelude: templates.c says how.
 */
typedef struct rt_prelude {
    rt_str code;     /* empty: none */
    rt_str name;     /* "handler.py" */
    rt_str compiled; /* what templates.c has instead of the code; empty from callers */
} rt_prelude;

typedef struct rt_run {
    rt_str language;
    rt_str code;
    rt_prelude prelude;
    rt_str name; /* of the file the code came from; empty: main.<ending> */
    const rt_policy *policy;
    rt_str input; /* JSON text, or plain text */
    bool has_input, is_input_text;
    int input_fd; /* instead of input, when has_input_fd: read from here to its end */
    bool has_input_fd;
    rt_str stdin_data;
    struct rt_live *live;    /* run in this session (live.h) instead of a fresh cell; NULL: fresh */
    rt_canceller *canceller; /* so that another thread can end the run; may be NULL */
    rt_desk *desk;           /* takes the calls of the code; NULL: it has no tools */
    rt_output_fn on_output;  /* called as output comes; may be NULL */
    void *output_ctx;
} rt_run;

typedef enum rt_status {
    RT_STATUS_SUCCESS,
    RT_STATUS_FAILED,
    RT_STATUS_TIMEOUT,
    RT_STATUS_MEMORY_ERROR,
    RT_STATUS_CANCELLED,
} rt_status;

typedef struct rt_code_error {
    rt_str type; /* SyntaxError RuntimeError TimeoutError MemoryError PermissionError
                    ResourceLimitError */
    rt_str name; /* the language's own: ValueError */
    rt_str message;
    rt_str stack;
    rt_str limit;         /* the policy key that was exceeded, if one was */
    rt_str hint;          /* what to do */
    int64_t line, column; /* 0: unknown */
    int64_t status;       /* what the guest ends with because of it; 0: unknown */
} rt_code_error;

typedef struct rt_file {
    rt_str name;
    rt_str data; /* empty when it was over the budget; size tells */
    uint64_t size;
    bool is_cut;
    rt_str handle; /* where the bytes are kept instead of here; empty: here */
} rt_file;

#define RT_DENIALS_MAX 16

typedef struct rt_outcome {
    rt_str id;
    rt_status status;
    rt_str language, runtime;
    bool has_value;
    rt_str value;         /* JSON text */
    bool is_parsed;       /* false: the value is stdout as plain text */
    bool is_value_output; /* the value is what stdout said, so a terminal has seen it already */
    rt_str out, err;      /* what was kept of stdout and stderr */
    uint64_t out_bytes, err_bytes; /* how much there was */
    bool has_error;
    rt_code_error error;
    int exit_code;
    rt_denial denials[RT_DENIALS_MAX];
    size_t denial_count;
    uint64_t denials_seen;
    rt_file *artifacts;
    size_t artifact_count;
    uint64_t wall_us, start_us, cpu_us, memory_peak_bytes;
    rt_str attestation; /* JSON object */
    rt_str detail;      /* JSON object with more fields to show, or empty */
} rt_outcome;

const char *rt_status_name(rt_status status);
void rt_outcome_write(const rt_outcome *outcome, rt_json_writer *w);
void rt_outcome_write_members(const rt_outcome *outcome,
                              rt_json_writer *w); /* into an open object */

void rt_base64(rt_buf *out, rt_str data); /* as files and modules travel in JSON */

#define RT_LANGUAGES_MAX  64
#define RT_LANGUAGES_OURS 6 /* the first ones have a guest of their own, which listing warms */

typedef struct rt_language {
    const char *name;
    const char *aliases; /* " js nodejs ": space on both sides of each */
    const char *ending;
    rt_str about;    /* what it is, in a few words; may be empty */
    bool is_program; /* its runs start a program: not with 'subprocess: deny' */
    bool is_available;
    rt_str version, detail; /* detail: why it is not available, and what to do */
} rt_language;

typedef struct rt_verdict {
    bool is_implemented;
    bool is_safe;
    rt_str risks; /* JSON array of {line, kind, message} */
} rt_verdict;

/* ---- runtimes ---- */

typedef struct rt_runtime rt_runtime;
struct rt_runtime {
    const char *name;
    bool (*execute)(rt_runtime *self, const rt_run *run, rt_arena *arena, rt_outcome *out,
                    rt_error *err);
    bool (*validate)(rt_runtime *self, rt_str code, rt_str language, rt_arena *arena,
                     rt_verdict *out, rt_error *err);
    size_t (*languages)(rt_runtime *self, rt_arena *arena, rt_language *out, size_t max);
    void (*close)(rt_runtime *self);
};

void rt_runtime_closep(rt_runtime **runtime);

typedef struct rt_local_config {
    const char *guests_dir;    /* NULL: beside the program */
    const char *python, *node; /* NULL: found by themselves */
    unsigned max_cells, pool_max;
    bool is_cgroup_required;
} rt_local_config;

/* Cells on this machine. Call it before the program has a second thread. */
bool rt_local_open(const rt_local_config *config, rt_runtime **out, rt_error *err);

/* Where the local runtime would find its interpreters; for doctor. Empty: not found. */
void rt_local_find(const rt_local_config *config, rt_arena *arena, rt_str *guests, rt_str *python,
                   rt_str *node);

/* Answers {"status":"not_implemented",…} to everything; for callers that are ready before we are.
 */
rt_runtime *rt_placeholder_open(void);

/*
 * The language of a file by its ending, or of a name or alias; NULL when there is none. Beside
 * those we have guests for there are those of languages/NAME.yaml beside the program and in the
 * directory that RETORT_LANGUAGES names (docs/languages.md).
 */
const rt_language *rt_language_find(rt_str name);
const rt_language *rt_language_of_file(rt_str path);
/* Text that changes when a program that runs the language does; empty: a guest of ours runs it. */
rt_str rt_language_mark(const rt_language *language, rt_arena *arena);
bool rt_language_unknown(rt_str name, rt_error *err); /* the error that lists what there is */

#include "runtimes/live.h" /* sessions */

#endif
