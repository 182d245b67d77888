/*
 * runtimes_internal.h - what the files of this room share.
 */
#ifndef RETORT_RUNTIMES_INTERNAL_H
#define RETORT_RUNTIMES_INTERNAL_H

#include "runtimes/runtimes.h"

/* ---- yaml.c: small files of 'key: value' ---- */

enum { YAML_PLAIN = 1, YAML_LIST = 2, YAML_MAP = 4 };

typedef struct yaml_form {
    const char *what; /* the file, in errors */
    unsigned (*shapes)(rt_str key);
    /* Once for a plain value, for each of a list, and as NAME=VALUE for each of a map. */
    bool (*set)(void *ctx, rt_str key, rt_str value, size_t line, rt_error *err);
    bool (*open_list)(void *ctx, rt_str key, rt_error *err); /* may be NULL */
} yaml_form;

bool runtimes_yaml_read(rt_str yaml, const yaml_form *form, void *ctx, rt_arena *arena,
                        rt_error *err);

/* ---- language_file.c: a language that is a program of the host ---- */

#define LANGUAGE_WORDS_MAX 24
#define LANGUAGES_MAX      (RT_LANGUAGES_MAX - 8) /* from files */

typedef struct word_list {
    rt_str items[LANGUAGE_WORDS_MAX];
    size_t count;
} word_list;

typedef struct language_file {
    rt_language language;
    bool is_base64;   /* its code is no text, and comes in base64 */
    rt_str file;      /* the name its code is given: Main.java; empty: main.<ending> */
    word_list run;    /* {file}, {dir} and {program} stand for the code's places */
    word_list build;  /* what makes {program} of {file}; none: nothing is built */
    word_list waits;  /* instead of run: started ahead, gets its code on stdin (PROTOCOL.md) */
    word_list asks;   /* what says the version */
    word_list needs;  /* host paths that must be seen beyond the system's, with * at will */
    word_list places; /* directories where its programs are looked for first */
    rt_pair env[LANGUAGE_WORDS_MAX];
    size_t env_count;
    rt_str error;    /* a regular expression that finds message and line in stderr */
    word_list tries; /* refusals that every run of it meets, and that mean nothing */
    rt_str package;  /* of Debian */
} language_file;

bool runtimes_language_parse(rt_str yaml, rt_arena *arena, language_file *out, rt_error *err);

/* How a language runs in a cell: the zygote to fork, and what it needs. */
typedef struct guest_kind {
    const char *language;
    const char *zygote;
    /* Words in the code that ask for another zygote, one with these modules loaded already. */
    const char *const *heavy_words;
    const char *heavy_zygote;
    bool is_data_limited;        /* RLIMIT_DATA works: allocation fails in the user's own line */
    bool is_branched;            /* it keeps an interpreter that can be copied */
    bool has_modules;            /* a prelude is a module of its own, not text before the code */
    bool is_program;             /* a run starts a program */
    bool answers_by_output;      /* without an answer of its own, what it printed is one */
    const language_file *launch; /* what is started, when a file says so; NULL: the guest knows */
} guest_kind;

const guest_kind *runtimes_guest(rt_str language);
const rt_language *runtimes_language_at(size_t i); /* NULL past the last */
const rt_error *runtimes_languages_error(void);    /* a file that cannot be used, or NULL */
rt_str runtimes_zygote_for(const guest_kind *kind, const rt_run *run);

/* The calls of a run that are under way. */
typedef struct desk_calls {
    uint64_t pending[RT_DESK_PENDING_MAX]; /* their numbers */
    size_t count;
    uint64_t sent_bytes; /* in memory files */
    uint64_t paused_ns; /* since when the code waits for a person, or up to when that is counted; 0:
                           it does not */
} desk_calls;

/* One run in progress. */
typedef struct progress {
    const rt_run *run;
    rt_outcome *out;
    rt_arena *arena;
    rt_buf text[2]; /* stdout, stderr */
    rt_str answer;  /* the first result or error frame */
    uint64_t deadline_ns;
    bool was_timeout, was_flood, was_cancelled, was_frame_too_big;
    bool was_cpu_time; /* the time that ran out was the CPU's */
    unsigned pressed;  /* how often it was told to end */
    int64_t id;        /* of the run, to tell its answer from what an earlier one left */
    desk_calls calls;
    bool is_unheard; /* nobody takes the output any more */
    bool is_copy;    /* its session is for this run alone */
    rt_cell_usage usage;
} progress;

void runtimes_conclude(progress *p, const guest_kind *kind);

/* Makes what came out of a cell into an outcome (outcome.c). */
bool runtimes_read_result(rt_outcome *out, rt_str frame, rt_arena *arena, rt_error *err);
void runtimes_fail(rt_outcome *out, rt_status status, const char *type, const char *limit,
                   rt_str message, rt_str hint);
void runtimes_read_shell_error(rt_outcome *out, rt_arena *arena);
void runtimes_explain(rt_outcome *out, const rt_policy *policy, rt_arena *arena);

/* ---- desk.c: calls of code to tools ---- */

bool runtimes_is_call(const progress *p, rt_str frame);
void runtimes_desk_take(progress *p, rt_cell *cell, rt_str frame);
/* Sends the answers that are ready and has the cell attend to the next. */
void runtimes_desk_serve(progress *p, rt_cell *cell);
/* Until when to wait for the cell; moves p->deadline_ns by the time the code waits for a person. */
uint64_t runtimes_desk_deadline(progress *p);
/* Whether the time that passed was the run's own, and not only time to look at the desk again. */
bool runtimes_desk_is_out_of_time(progress *p);

/* A sealed memory file: one copy, no path, nothing that could change under the code. */
bool runtimes_memory_file(rt_str data, int *out, rt_error *err);

/* The program that checks code of a language, and the language it is itself written in. */
typedef struct checker {
    const char *language, *runs_in, *path; /* below the guests' directory */
} checker;
const checker *runtimes_checker(rt_str language);

/* What a frame has beyond the run: which of its descriptors are what, or -1. */
typedef struct request_extras {
    int64_t id;
    int input_index, stdin_index;
} request_extras;

/* What a policy says to a guest. */
void runtimes_write_request(rt_json_writer *w, const rt_run *run, const guest_kind *kind,
                            const request_extras *extras);

/* ---- templates.c: preludes ---- */

typedef struct templates templates;
templates *runtimes_templates_new(void);
void runtimes_templates_free(templates *t); /* before the sandbox is closed */
/* Gives the run what is known of its prelude (without `t`: nothing). Not NULL: a session of its own
 * to run in, in which the prelude was loaded; the caller closes it. */
rt_live *runtimes_use_prelude(templates *t, rt_runtime *local, rt_run *run, const guest_kind *kind,
                              rt_arena *arena);

/* Where the language has no modules, the prelude becomes part of the code. */
void runtimes_settle_prelude(rt_run *run, const guest_kind *kind, rt_arena *arena);
void runtimes_write_prelude(rt_json_writer *w, const rt_prelude *prelude);

rt_cell_spec runtimes_cell_spec(const rt_policy *policy, rt_str zygote);
bool runtimes_is_strict_enough(const rt_policy *policy, rt_str attestation, rt_arena *arena,
                               rt_error *err);

/* ---- live.c: sessions ---- */

/* The cell of a session, when it is this run's turn; every take is followed by a give. */
bool runtimes_live_take(rt_live *live, const guest_kind *kind, const rt_canceller *canceller,
                        rt_cell **cell, int64_t *id, rt_error *err);
void runtimes_live_give(rt_live *live);
bool runtimes_live_is_closing(rt_live *live);
rt_sandbox *runtimes_local_sandbox(rt_runtime *local);

/* ---- launch.c: languages that are programs of the host ---- */

/* Whether its programs are there, as cells would see them. */
bool runtimes_launch_find(const language_file *l, rt_error *err);
bool runtimes_launch_check(const guest_kind *kind, const rt_policy *policy, rt_error *err);
size_t runtimes_launch_needs(rt_arena *arena, rt_root_entry *out, size_t max);
size_t runtimes_launch_zygotes(rt_arena *arena, const char *launcher, rt_zygote_spec *out,
                               size_t max);
void runtimes_launch_write(rt_json_writer *w, const language_file *l);
/* Asked once in a cell, then remembered; empty: it does not say. */
rt_str runtimes_launch_version(rt_runtime *local, const guest_kind *kind, rt_arena *arena);
void runtimes_launch_explain(rt_outcome *out, const language_file *l, rt_arena *arena);
void runtimes_launch_forget(rt_outcome *out, const language_file *l); /* what it merely tries */
/* A run in a fresh cell, by a guest that need not be in the tables. */
bool runtimes_local_run(rt_runtime *local, const rt_run *run, const guest_kind *kind,
                        rt_arena *arena, rt_outcome *out, rt_error *err);

#endif
