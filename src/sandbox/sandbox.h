/*
 * sandbox.h - sealed cells, forked from warmed interpreters.
 *
 * Promise: what the spec does not grant, the code in a cell cannot reach. If a layer of isolation
 * cannot be set up, the cell does not start; there is no weaker mode to fall back to. When a cell,
 * the sandbox or the whole program ends, by whatever death, no process, mount, cgroup or file of it
 * stays behind.
 *
 *     rt_sandbox *sandbox RT_CLEANUP(rt_sandbox_closep) = NULL;
 *     rt_cell *cell RT_CLEANUP(rt_cell_closep) = NULL;
 *     if (!rt_sandbox_open(&config, &sandbox, err) || !rt_cell_start(sandbox, &spec, &cell, err))
 *         return false;
 *     rt_cell_send(cell, RT_STR("{\"op\":\"run\",…}"), NULL, 0, err);
 *     while (rt_cell_next(cell, deadline_ns, &event, err) && event.kind != RT_CELL_EXIT)
 *         …
 *
 * How: rt_sandbox_open() starts the keeper, which makes the cgroups and starts the warden, process
 * 1 of a pid namespace in a user namespace of its own. The warden has a nursery for each root (a
 * process that lives in the prepared file system) and a zygote for each interpreter. A cell is a
 * small first process, born in the nursery with namespaces of its own, and an interpreter forked by
 * the zygote into them. docs/architecture.md has the picture.
 *
 * One thread uses a cell at a time; rt_cell_cancel() may be called from any.
 */
#ifndef RETORT_SANDBOX_H
#define RETORT_SANDBOX_H

#include <sys/resource.h>

#include "base/base.h"

typedef struct rt_sandbox rt_sandbox;
typedef struct rt_cell rt_cell;

#define RT_ZYGOTE_NAME_MAX 32
#define RT_READ_PATHS_MAX  32
#define RT_WORKDIR         "/work" /* the scratch directory, as code sees it */
#define RT_CELLS_MAX       256

/* An interpreter that is warmed once and forked for each cell. */
typedef struct rt_zygote_spec {
    const char *name;        /* "python"; cells ask for it by this name */
    const char *const *argv; /* as seen inside the prepared root; NULL-terminated */
} rt_zygote_spec;

/* A host path that the prepared root shows, read-only. */
typedef struct rt_root_entry {
    const char *source;
    const char *target;
} rt_root_entry;

typedef struct rt_sandbox_config {
    const rt_zygote_spec *zygotes;
    size_t zygote_count;
    const rt_root_entry *root; /* beyond what every root has (docs/threat-model.md) */
    size_t root_count;
    const char *nursery;     /* guests/nursery as seen in the root; NULL: cells start slower */
    unsigned max_cells;      /* at once, warm ones included; 0: 64 */
    unsigned pool_max;       /* warm cells kept ready per kind; 0: none */
    bool is_cgroup_required; /* refuse to start where no memory cgroup can be written */
} rt_sandbox_config;

/* Call it before the program has a second thread. */
bool rt_sandbox_open(const rt_sandbox_config *config, rt_sandbox **out, rt_error *err);
void rt_sandbox_close(rt_sandbox *sandbox);
void rt_sandbox_closep(rt_sandbox **sandbox);

/* Waits until the zygote is warm, starting it if needed; `about` is what it says of itself (JSON).
 */
bool rt_sandbox_warm(rt_sandbox *sandbox, rt_str zygote, rt_arena *arena, rt_str *about,
                     rt_error *err);

/* Gives up every capability; for the daemon, once the sandbox is open. */
bool rt_sandbox_drop_privileges(rt_error *err);

typedef enum rt_file_access {
    RT_FILES_NONE,      /* no host path; a private scratch directory */
    RT_FILES_READ_ONLY, /* read_paths; nothing at all can be written */
    RT_FILES_SANDBOXED, /* read_paths, and the scratch directory */
} rt_file_access;

typedef struct rt_cell_spec {
    rt_str zygote;
    uint64_t memory_bytes;
    uint64_t cpu_ms; /* of all processes together; 0: unlimited */
    uint64_t processes;
    uint64_t scratch_bytes;
    rt_file_access files;
    const rt_str *read_paths; /* absolute; shown at the same place */
    size_t read_path_count;
    bool is_exec_denied;  /* no other program, no other process */
    uint64_t frame_bytes; /* the largest frame the guest may send; 0: 64 MiB */
    bool is_live;         /* it stays for several runs; see below */
    bool has_cancel_fd;   /* when cancel_fd becomes readable: as if rt_cell_cancel() were called, */
    int cancel_fd;        /* while the cell is waited for too (RT_CANCELLED). Borrowed. */
} rt_cell_spec;

bool rt_cell_start(rt_sandbox *sandbox, const rt_cell_spec *spec, rt_cell **out, rt_error *err);
void rt_cell_close(rt_cell *cell); /* kills what still runs in it */
void rt_cell_closep(rt_cell **cell);

/* The layers in force for this cell, as a JSON object; lives as long as the cell. */
rt_str rt_cell_attestation(const rt_cell *cell);

bool rt_cell_send(rt_cell *cell, rt_str json, const int *fds, size_t fd_count, rt_error *err);
/*
 * A frame that does not wait for the guest to read: what the socket does not take now goes out as
 * rt_cell_next() goes. While much of it waits the guest is not listened to either, so it cannot
 * make us hold more. A descriptor (-1: none; borrowed) may come with a frame only when nothing
 * waits. A guest that is gone gets nothing, and that is no error here: its end is told as always.
 */
void rt_cell_post(rt_cell *cell, rt_str json, int fd);
bool rt_cell_has_post(const rt_cell *cell);
/* While nothing that was posted waits, this descriptor's being readable is told (RT_CELL_ATTEND);
 * -1: none. Borrowed. */
void rt_cell_attend(rt_cell *cell, int fd);
/* What the code reads on stdin; written as rt_cell_next() goes, then closed. Borrowed until then.
 */
void rt_cell_feed(rt_cell *cell, rt_str data);
bool rt_cell_kill(rt_cell *cell, rt_error *err); /* everything in it; RT_CELL_EXIT follows */
/*
 * The guest has given its last answer: RT_CELL_EXIT follows at once, with what was used until now,
 * instead of after the process is taken down. Closing the cell does that behind our back.
 */
bool rt_cell_finish(rt_cell *cell, rt_error *err);
void rt_cell_cancel(rt_cell *cell); /* from any thread: rt_cell_next says CANCELLED */

typedef enum rt_cell_event_kind {
    RT_CELL_OUTPUT,    /* text on stdout or stderr */
    RT_CELL_FRAME,     /* a frame of the guest; see src/guests/PROTOCOL.md */
    RT_CELL_DENIED,    /* a system call was refused */
    RT_CELL_EXIT,      /* the guest ended; comes once, after all its output */
    RT_CELL_TIME,      /* the deadline passed */
    RT_CELL_CANCELLED, /* somebody called rt_cell_cancel() */
    RT_CELL_ATTEND,    /* all that was posted has gone out, or rt_cell_attend()'s is readable */
} rt_cell_event_kind;

/* What was refused, by which rule, and the least that would allow it. Texts are for people. */
typedef struct rt_denial {
    char call[96]; /* "connect(127.0.0.1:443)" */
    char rule[96]; /* "network: none" */
    char allow[160];
} rt_denial;

typedef struct rt_cell_usage {
    int wait_status; /* as wait(2) gives it */
    uint64_t cpu_us;
    uint64_t memory_peak_bytes;
    bool was_out_of_memory;
    bool was_out_of_processes;
    bool was_out_of_scratch;
    bool was_out_of_cpu;
} rt_cell_usage;

typedef struct rt_cell_event {
    rt_cell_event_kind kind;
    int stream;          /* OUTPUT: 1 or 2 */
    rt_str text;         /* OUTPUT, FRAME: good until the next call */
    rt_denial denial;    /* DENIED */
    rt_cell_usage usage; /* EXIT */
} rt_cell_event;

/* Waits for the next thing to happen in the cell. deadline_ns is on rt_now_ns()'s clock; 0: none.
 */
bool rt_cell_next(rt_cell *cell, uint64_t deadline_ns, rt_cell_event *event, rt_error *err);

/* A file the code left in out/: no link, nothing outside, however the code arranged it. */
typedef struct rt_artifact {
    rt_str name; /* relative to out/ */
    uint64_t size;
    int fd; /* for reading; the visitor does not own it */
} rt_artifact;

typedef bool (*rt_artifact_visit)(void *ctx, const rt_artifact *artifact, rt_error *err);

#define RT_ARTIFACTS_MAX 100

/* Visits what is in out/ when the guest ended, in the order of names; at most RT_ARTIFACTS_MAX. */
bool rt_cell_artifacts(rt_cell *cell, rt_artifact_visit visit, void *ctx, rt_error *err);

/* ---- live cells: one guest, many runs ---- */

/*
 * Before each run in a live cell: what slept since the last one wakes up, and CPU time, events and
 * files in out/ count anew. The run ends with rt_cell_finish() and RT_CELL_EXIT; everything in the
 * cell then sleeps, and uses no CPU time. More CPU time than `cpu_ms` is told as RT_CELL_TIME. When
 * cancel_fd becomes readable: RT_CELL_CANCELLED, once; -1: none.
 */
bool rt_cell_begin(rt_cell *cell, uint64_t cpu_ms, int cancel_fd, rt_error *err);
bool rt_cell_interrupt(rt_cell *cell, rt_error *err); /* SIGINT for the guest */
/* The guest has ended, with or without a run. Looks without waiting. */
bool rt_cell_is_over(rt_cell *cell);

/*
 * A copy of the live guest, its memory shared copy-on-write, with a copy of its files, in a cell of
 * its own. Between runs only. RT_CONFLICT, with what the guest says, when something of it cannot be
 * copied.
 */
bool rt_cell_branch(rt_cell *cell, rt_cell **out, rt_error *err);

/*
 * Files of the scratch directory, by paths relative to it that lead through no link. From any
 * thread, during a run too. A directory can be listed and removed; one on the way to a file that is
 * written is made.
 */
#define RT_CELL_FILES_MAX 10000 /* in one listing */

typedef struct rt_cell_file {
    rt_str path;
    uint64_t size, modified_ms;
    bool is_directory;
} rt_cell_file;

bool rt_cell_write_file(rt_cell *cell, rt_str path, rt_str data, rt_error *err);
bool rt_cell_read_file(rt_cell *cell, rt_str path, int *fd, uint64_t *size, rt_error *err);
bool rt_cell_list_files(rt_cell *cell, rt_str path, rt_arena *arena, rt_cell_file **files,
                        size_t *count, rt_error *err);
bool rt_cell_remove_file(rt_cell *cell, rt_str path, rt_error *err);

/* One line of `retort doctor`: a layer, whether this host has it, and what to do if not. */
typedef struct rt_layer {
    const char *name;
    enum { RT_LAYER_OK, RT_LAYER_FALLBACK, RT_LAYER_MISSING } state;
    char detail[200];
    char fix[240]; /* empty when there is nothing to mend */
} rt_layer;

size_t rt_sandbox_examine(rt_layer *layers, size_t max);

#endif
