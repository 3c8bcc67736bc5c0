/* SPDX-License-Identifier: MIT */
/* stats/snapshot_take.h - takes a snapshot.
 *
 * Owns        nothing.
 * Invariants  allocates nothing.
 * Threads     any, outside every heap and lock.
 * Tests       tests/unit/stats/snapshot_test.c, tests/preload/small_stacks.c
 */
#ifndef HAK_STATS_SNAPSHOT_TAKE_H
#define HAK_STATS_SNAPSHOT_TAKE_H

struct census;
struct snapshot;

/* The numbers of this moment, from all layers. `census` is what it needs for that: both are too
 * large for the stack of a small thread. */
void hak_snapshot_take(struct snapshot *snapshot, struct census *census);

/* Takes one that lies on no stack, and hands it to `use`. Where the kernel has no memory for it
 * (os/scratch.h) it does lie on the stack. */
typedef void snapshot_user(const struct snapshot *snapshot, void *context);
void hak_snapshot_show(snapshot_user *use, void *context);

/* Adds what /proc/self/smaps and status say of resident memory. */
void hak_snapshot_ask_kernel(struct snapshot *snapshot);
/* The same without what is hakmem's: the kernel need not walk memory for that. */
void hak_snapshot_ask_kernel_total(struct snapshot *snapshot);

#endif
