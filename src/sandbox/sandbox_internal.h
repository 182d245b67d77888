/*
 * sandbox_internal.h - what the files of this room share: messages between the processes, and the
 * parts a warden is made of.
 */
#ifndef RETORT_SANDBOX_INTERNAL_H
#define RETORT_SANDBOX_INTERNAL_H

#include <sys/types.h>

#include "base/base.h"
#include "guests/jail/jail.h"
#include "sandbox/sandbox.h"

#define CELL_UID        1000u /* inside a cell: the code */
#define CELL_ROOT       0u    /* inside a cell: its first process */
#define SLOT_IDS        16u   /* ids set aside per cell: its root, the code, spares for branches */
#define SLOT_FIRST_ID   1000u
#define HOUSE_IDS       65536u
#define SCRATCH_DEFAULT (64u << 20)
#define PACKET_MAX      16384

/* ---- cgroup.c: one cgroup per slot, made by the keeper while it has the right to ---- */

typedef enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 } cgroup_kind;

typedef struct cgroup_tree {
    cgroup_kind kind;
    char dirs[2][256]; /* ours: the memory hierarchy and the pids hierarchy (v2: the first only) */
    size_t dir_count;
    unsigned slots;
} cgroup_tree;

typedef struct cgroup_slot {
    int procs[2], memory_limit, memory_peak, memory_events, pids_max, pids_events;
} cgroup_slot;

typedef struct cgroup_counts {
    uint64_t peak_bytes, oom_kills, pids_refused;
} cgroup_counts;

/* Looks at the host below `mount_root` ("/sys/fs/cgroup") without changing anything. */
bool sandbox_cgroup_find(const char *mount_root, const char *own_cgroups, const char *name,
                         cgroup_tree *out, rt_error *err);
bool sandbox_cgroup_make(cgroup_tree *tree, unsigned slots, cgroup_slot *out, rt_error *err);
void sandbox_cgroup_remove(const cgroup_tree *tree); /* also what a dead keeper left behind */
void sandbox_cgroup_sweep(const char *mount_root);
bool sandbox_cgroup_limit(const cgroup_slot *slot, uint64_t memory_bytes, uint64_t processes,
                          rt_error *err);
void sandbox_cgroup_read(const cgroup_slot *slot, cgroup_counts *out);
/* The peak starts anew, and so does the difference to `before`. */
void sandbox_cgroup_count_anew(const cgroup_slot *slot, cgroup_counts *before);
size_t sandbox_cgroup_procs(const cgroup_slot *slot, int fds[JAIL_CGROUPS_MAX]);

/* ---- ids.c: who the house is on the host ---- */

typedef struct house_ids {
    enum { IDS_RANGE, IDS_SINGLE } kind;
    uint32_t host_first; /* of HOUSE_IDS, or the one id */
    bool has_helper;     /* the range comes from /etc/subuid and newuidmap writes the map */
} house_ids;

bool sandbox_ids_choose(house_ids *out, rt_error *err);
/* Writes one of the map files of a process: "uid_map", "gid_map", "setgroups". */
bool sandbox_ids_write(pid_t pid, const char *file, const char *text, rt_error *err);
bool sandbox_ids_apply(const house_ids *ids, pid_t house, rt_error *err);

/* ---- root.c: the file system a cell sees ---- */

typedef struct root_plan {
    const rt_root_entry *entries; /* shown in every root */
    size_t entry_count;
    const char *const *read_paths;
    size_t read_path_count;
} root_plan;

/*
 * The warden, once: leaves the host's tree for a frame from which roots are built. An entry comes
 * as a detached mount (the keeper may reach paths that the house may not) or as -1, by its path.
 */
bool sandbox_root_frame(const rt_root_entry *entries, const int *fds, size_t count, rt_error *err);
/* A nursery, in a mount namespace of its own: builds the root, moves into it, lets go of the
 * host's. */
bool sandbox_root_build(const root_plan *plan, rt_error *err);
/* In a cell, once its scratch is mounted: the read paths that lie on it. */
bool sandbox_root_show_late(const root_plan *plan, rt_error *err);
/* Refuses what must not be shown: relative paths, "..", /proc, /sys, /dev, the scratch directory.
 */
bool sandbox_root_check(rt_str path, rt_error *err);

/* ---- filter.c: the system calls a cell may make ---- */

typedef enum filter_kind { FILTER_FULL, FILTER_NO_EXEC, FILTER_KINDS } filter_kind;

bool sandbox_filter_make(filter_kind kind, int *memory_file, rt_error *err);
/* What init saw, as the daemon is told of it. */
typedef struct denial_note {
    int32_t call;
    uint32_t arch;
    uint64_t args[6];
    uint8_t address[128]; /* what a sockaddr or path argument pointed to */
    uint32_t address_len;
} denial_note;
void sandbox_filter_explain(const denial_note *note, rt_denial *out);
bool sandbox_filter_wants_address(int call, int *arg, int *len_arg);

/* ---- files.c: the scratch directory, from outside ---- */

#define FILE_PATH_MAX 4096
#define FILE_LIST_MAX RT_CELL_FILES_MAX

/* One of a listing; its path follows. */
typedef struct file_entry {
    uint64_t size, modified_ms;
    uint32_t is_directory, path_len;
} file_entry;

bool sandbox_files_check(rt_str path, bool may_be_empty, rt_error *err);
/* Beneath the directory and through no link; never waits. -1 with errno. */
int sandbox_files_open(int root, const char *path, int flags);
bool sandbox_files_write(int root, const char *path, int data, uid_t owner, rt_error *err);
int sandbox_files_read(int root, const char *path, uint64_t *size, rt_error *err);
/* A memory file of entries, in no order. */
int sandbox_files_list(int root, const char *path, uint64_t *size, rt_error *err);
bool sandbox_files_remove(int root, const char *path, rt_error *err);
/* Everything in one scratch directory into another, where it belongs to this user. */
bool sandbox_files_copy(int from, int to, uid_t uid, gid_t gid, rt_error *err);

/* ---- init.c: the first process of a cell; nursery.c: where it is born ---- */

/* "Give birth to a cell's first process" or, with argv, to a zygote. One packet to a nursery. */
typedef struct birth_order {
    uint32_t serial;
    uint32_t is_zygote;
    uint32_t house_id; /* the slot's first id in the house; its root, then the code */
    uint32_t has_range;
    uint64_t scratch_bytes;
    uint32_t is_scratch_readonly;
    uint32_t argv_bytes; /* NUL-separated text behind this struct */
} birth_order;

typedef struct birth_reply {
    uint32_t serial;
    int32_t pid;
    rt_error error; /* when pid is -1 */
} birth_reply;

/* Builds the root, and serves orders there: as `program`, a path in the root, or as we are. */
_Noreturn void sandbox_nursery_main(int orders, const root_plan *plan, const char *program);
_Noreturn void sandbox_nursery_serve(int orders, const root_plan *plan);
_Noreturn void sandbox_init_main(const birth_order *order, const root_plan *plan, int link,
                                 int porch);

/* On the link between a cell's first process and whoever holds the cell. */
typedef enum link_kind {
    LINK_READY,    /* init: mounts are in place */
    LINK_FAILED,   /* init: they are not; an rt_error follows */
    LINK_DENIAL,   /* init: a denial_note follows */
    LINK_LIST,     /* holder: what is in out/? (uint32_t most); in a live cell: what is new there,
                      and everything rests until the next LINK_BEGIN */
    LINK_FILE,     /* init: one file: uint64_t size, name, with a descriptor */
    LINK_LIST_END, /* init: that was all; a list_end */
    LINK_WATCH,    /* holder: what to watch over; a watch_order */
    LINK_MEMORY,   /* init: more memory than that; the cell was killed */
    LINK_CPU,      /* init: more CPU time than that; the cell was killed, unless it is live */
    LINK_BEGIN,    /* holder: a run begins in a live cell; uint64_t of CPU time it may use, in ms */
    LINK_REST,     /* holder: nothing more for now; a live cell sleeps */
    LINK_RESTED,   /* init: it does */
    LINK_DO,       /* holder: something with a file; a file_order and its path, with a socket for
                      the file_reply and, to write, a memory file */
} link_kind;

typedef struct link_head {
    uint32_t kind;
    uint32_t size;
} link_head;

typedef struct watch_order {
    uint64_t memory_bytes; /* 0: a cgroup does it */
    uint64_t cpu_ms;       /* 0: unlimited */
} watch_order;

typedef enum file_op { FILE_WRITE, FILE_READ, FILE_LIST, FILE_REMOVE } file_op;

typedef struct file_order {
    uint32_t op;
    uint32_t path_len;
} file_order;

/* With a descriptor when something was to be read or listed. */
typedef struct file_reply {
    rt_error error; /* its code is 0 when all went well */
    uint64_t size;
} file_reply;

typedef struct list_end {
    uint64_t memory_peak; /* 0 where a cgroup counts */
    uint64_t is_scratch_full;
} list_end;

/* ---- midwife.c: live guests and their branches ---- */

/* "Make the guest of this cell." The descriptors are those of the jail_order. */
typedef struct midwife_order {
    jail_order jail;
    int32_t init;   /* the first process of the cell */
    int32_t twin;   /* what to make it from */
    int32_t source; /* for a branch: the guest whose twin that is; else 0 */
    int32_t source_init;
} midwife_order;

typedef struct midwife_reply {
    uint32_t serial;
    int32_t guest, twin; /* or -1, and: */
    rt_error error;
} midwife_reply;

_Noreturn void sandbox_midwife_main(int orders);

/* ---- warden.c and its parts ---- */

typedef enum warden_op { WARDEN_CELL, WARDEN_WARM } warden_op;

/* On the socket from the daemon; the lease's far end comes with it. */
typedef struct warden_request {
    uint32_t op;
    char zygote[RT_ZYGOTE_NAME_MAX];
    uint64_t memory_bytes, cpu_ms, processes, scratch_bytes;
    uint32_t files;
    uint32_t is_exec_denied;
    uint32_t is_early;    /* nobody waits for it yet */
    uint32_t is_live;     /* it will serve many runs */
    uint32_t paths_bytes; /* NUL-separated read paths behind this struct */
} warden_request;

/* On a lease. The daemon's end closing means: the cell is over. */
typedef enum lease_kind {
    LEASE_GRANT,
    LEASE_FAIL,
    LEASE_EXIT, /* the guest ended, or was done: what it used */
    LEASE_USED, /* of a live cell: what its guest has used until now */
    LEASE_WARM,
    LEASE_KILL,      /* daemon: end everything in the cell */
    LEASE_DONE,      /* daemon: it has answered; what did it use? */
    LEASE_INTERRUPT, /* daemon: SIGINT for the guest */
    LEASE_BRANCH,    /* daemon: a cell for a branch of this one; with the lease it will have */
    LEASE_GO,        /* daemon, on that lease: the guest is ready to be copied */
} lease_kind;

typedef struct lease_message {
    uint32_t kind;
    union {
        rt_error error;
        rt_cell_usage usage;
        char text[2048]; /* GRANT: attestation; WARM: what the zygote says of itself */
    };
} lease_message;

enum grant_fd { GRANT_CONTROL, GRANT_STDIN, GRANT_STDOUT, GRANT_STDERR, GRANT_LINK, GRANT_FDS };

/* The keeper's main(), reached through `retort` re-executing itself with this name. */
extern char
    sandbox_keeper_name[]; /* defined beside the constructor, so that linking one links both */
int sandbox_keeper_main(int daemon_socket);

typedef struct warden_setup {
    int daemon; /* SEQPACKET to the daemon */
    int keeper; /* a pipe that ends when the keeper does */
    const rt_sandbox_config *config;
    const int *entry_fds;
    const cgroup_tree *cgroups;
    const cgroup_slot *slots;
    const house_ids *ids;
    bool has_landlock;
} warden_setup;

_Noreturn void sandbox_warden_main(const warden_setup *setup);

/* The configuration as it travels to the keeper. */
bool sandbox_config_pack(const rt_sandbox_config *config, rt_buf *out, rt_error *err);
bool sandbox_config_unpack(rt_str packed, rt_arena *arena, rt_sandbox_config *out, rt_error *err);

int sandbox_landlock_version(void);

#endif
