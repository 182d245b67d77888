/*
 * warden.h - the parts of the warden: its loop, its zygotes, its cells.
 *
 * One thread, one loop, no blocking call but epoll_wait(). Everything it waits for is a `source`
 * inside the thing it belongs to; handlers move that thing one step on and call warden_pump(),
 * which is the only place that decides what to start next.
 *
 * A cell's way:  FREE → BIRTH (nursery asked) → WAITS (for a warm zygote) → FORK (zygote asked) →
 * MOUNTS (until its first process has set up, if it has not by then) → READY (in the pool) → LEASED
 * → DYING → FREE. A live one waits for its mounts before WAITS, and goes from FORK, where it got
 * its twin, over DELIVERY (midwife asked); so does a branch, from WAITS.
 */
#ifndef RETORT_SANDBOX_WARDEN_H
#define RETORT_SANDBOX_WARDEN_H

#include "sandbox/sandbox_internal.h"

#define ROOTS_MAX   32
#define SHAPES_MAX  64
#define ZYGOTES_MAX 32

typedef struct warden warden;

typedef struct source {
    void (*handle)(warden *w, struct source *s);
    void *owner;
    int fd;
} source;

/* A prepared root and the nursery in it. */
typedef struct root {
    enum { ROOT_FREE, ROOT_BUILDING, ROOT_BUILT, ROOT_FAILED } state;
    source orders, death;
    pid_t pid;
    char *paths; /* NUL-separated read paths: its key */
    size_t paths_bytes;
    uint64_t used_ns;
    rt_error error;
} root;

typedef struct zygote {
    enum { ZYGOTE_COLD, ZYGOTE_BORN, ZYGOTE_WARM, ZYGOTE_FAILED } state;
    const rt_zygote_spec *spec;
    source orders, death, errors;
    pid_t pid;
    int far_orders, far_errors; /* until the nursery has them */
    char about[512];
    char last_words[400]; /* the tail of what it wrote to stderr while warming */
    size_t last_words_len;
    rt_error error;
} zygote;

/* What is fixed when a cell is made; cells of one shape are interchangeable. */
typedef struct shape {
    bool is_used;
    zygote *zygote;
    root *root;
    uint64_t scratch_bytes;
    bool is_scratch_readonly;
    filter_kind filter;
    bool is_live;    /* its cells stay for many runs; none is made ahead */
    unsigned target; /* how many to keep ready: one more at each miss, one less while idle */
    unsigned taken_this_tick, low_ticks;
    uint64_t used_ns;
} shape;

typedef enum cell_state {
    CELL_FREE,
    CELL_BIRTH,
    CELL_MOUNTS,
    CELL_WAITS,
    CELL_FORK,
    CELL_DELIVERY,
    CELL_READY,
    CELL_LEASED,
    CELL_DYING,
    CELL_GHOST, /* over, but branches of it live: what they share of its memory counts here */
} cell_state;

/* What its holder was promised. */
typedef struct allowance {
    uint64_t memory_bytes, cpu_ms, processes;
} allowance;

typedef struct waiter waiter;

typedef struct cell {
    cell_state state;
    unsigned slot;
    shape *shape;
    source link, init_death, main_death, twin_death, lease;
    int porch;                                  /* our end: given to each process that enters */
    pid_t init_pid, main_pid, twin_pid;         /* the twin: see midwife.c */
    bool is_forking, is_bearing, is_delivering; /* an order is under way: its answer must come */
    int daemon_fds[GRANT_FDS];                  /* the daemon's ends, until they are granted */
    int guest_fds[JAIL_ORDER_FDS_MAX];
    bool is_mounted;
    bool has_forked;  /* its interpreter; it may have died since */
    bool is_finished; /* what it used has been told */
    cgroup_counts before;
    allowance allowed;
    waiter *heir;          /* of a branch that is being made: who will have it */
    struct cell *ancestor; /* the cell it is a branch of, if it is one */
    unsigned heirs;        /* slots that are taken by branches of it */
    rt_error error;
} cell;

/* A request that has not got its cell yet. */
struct waiter {
    waiter *next;
    shape *shape;   /* a cell of it, or NULL: */
    zygote *zygote; /* word that this is warm */
    source lease;
    allowance allowed;
    bool is_early; /* asked ahead: everybody else comes first */
    /* of a branch: */
    cell *origin; /* what is to be copied */
    cell *made;   /* where to, once there is room */
    bool may_go;  /* the source is ready */
};

struct warden {
    const warden_setup *setup;
    int epoll;
    source daemon, keeper, tick, refill;
    source midwife, midwife_death; /* she is started when first wanted */
    pid_t midwife_pid;
    uint64_t refill_ns;    /* no cell is made ahead before this */
    root roots[ROOTS_MAX]; /* the first one is the plain one, where zygotes live */
    zygote zygotes[ZYGOTES_MAX];
    size_t zygote_count;
    shape shapes[SHAPES_MAX];
    cell *cells;
    unsigned cell_count;
    waiter *first_waiter, **last_waiter;
    waiter *first_branch; /* those that have no cell yet */
    unsigned waiter_count;
    int filters[FILTER_KINDS];
    uint32_t serial;
};

bool warden_watch(warden *w, source *s, int fd, void (*handle)(warden *, source *), void *owner);
int warden_unwatch(warden *w, source *s); /* stops watching; the descriptor is the caller's */
void warden_forget(warden *w, source *s); /* stops watching and closes */
void warden_pump(warden *w);
bool warden_has_waiter(const warden *w, const shape *s);      /* one that is not early */
bool warden_has_room_to_live(const warden *w, rt_error *err); /* for one more session */
/* A cell of this shape could not be made: whoever waited longest for one is told why. */
void warden_shape_failed(warden *w, shape *s, const rt_error *why);

/* roots and zygotes (zygotes.c) */
root *warden_root_get(warden *w, const char *paths, size_t paths_bytes, rt_error *err);
void warden_zygote_want(warden *w, zygote *z);
zygote *warden_zygote_find(warden *w, const char *name);
bool warden_birth(warden *w, root *r, const birth_order *order, const char *argv, const int *fds);

/* cells (cells.c) */
cell *warden_cell_make(warden *w, shape *s); /* NULL: not now */
jail_order warden_jail_order(const warden *w, const cell *c, int fds[JAIL_ORDER_FDS_MAX]);
bool warden_main_adopt(warden *w, cell *c, pid_t pid);
void warden_cell_fork(warden *w, cell *c);
void warden_cell_grant(warden *w, cell *c, waiter *who);
void warden_cell_end(warden *w, cell *c);
void warden_cell_born(warden *w, const birth_reply *reply);
void warden_cell_forked(warden *w, const jail_order_reply *reply);
void warden_lease_fail(int lease, const rt_error *err);

/* live cells (lives.c) */
void warden_cell_deliver(warden *w, cell *c);
void warden_cell_branch(warden *w, cell *origin, int lease);
void warden_branches_start(warden *w);
void warden_give_up_one(warden *w, const shape *for_whom); /* makes room, if it can be made */
/* A branch could not be made: whoever wanted it is told. */
void warden_disinherit(warden *w, cell *c, const rt_error *why);
bool warden_twin_adopt(warden *w, cell *c, pid_t pid);
void warden_twin_kill(cell *c);
/* A cell is over: true when its slot must stay taken for the sake of its branches. */
bool warden_keeps_ghost(cell *c);

#endif
