/*
 * cell.h - the daemon's handle of a cell, for sandbox.c.
 */
#ifndef RETORT_SANDBOX_CELL_H
#define RETORT_SANDBOX_CELL_H

#include "sandbox/sandbox_internal.h"

/* Takes the lease and the descriptors of a grant. */
rt_cell *sandbox_cell_new(int lease, const int fds[GRANT_FDS], uint64_t frame_bytes);

/* A live cell's files can be asked for from now on. */
bool sandbox_cell_open_door(rt_cell *cell, rt_error *err);

/* From now on this descriptor's being readable cancels, too; -1: none. Borrowed. */
void sandbox_cell_heed(rt_cell *cell, int cancel_fd);

/*
 * Calls this once, when the cell is first waited for: what can wait until the guest has its order.
 * `ctx` is malloc'ed and freed with the cell.
 */
void sandbox_cell_when_idle(rt_cell *cell, void (*call)(void *ctx), void *ctx);

/* Asks for a branch; its lease's far end is borrowed. */
bool sandbox_cell_ask_branch(rt_cell *cell, int far_lease, rt_error *err);
/* Has the guest get ready for it; then, whatever came of it, `sandbox_cell_rest` puts it to sleep.
 */
bool sandbox_cell_ready_branch(rt_cell *cell, rt_error *err);
void sandbox_cell_rest(rt_cell *cell);
uint64_t sandbox_cell_frame_bytes(const rt_cell *cell);

/* Waits for the guest's hello and puts the attestation together from both sides' words. */
bool sandbox_cell_greet(rt_cell *cell, rt_str granted, rt_error *err);

#endif
