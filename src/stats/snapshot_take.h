/* SPDX-License-Identifier: MIT */
/* stats/snapshot_take.h - takes a snapshot.
 *
 * Owns        nothing.
 * Invariants  allocates nothing.
 * Threads     any, outside every heap and lock.
 * Tests       tests/unit/stats/snapshot_test.c
 */
#ifndef HAK_STATS_SNAPSHOT_TAKE_H
#define HAK_STATS_SNAPSHOT_TAKE_H

struct snapshot;

/* The numbers of this moment, from all layers. */
void hak_snapshot_take(struct snapshot *snapshot);

/* Adds what /proc/self/smaps and status say of resident memory. */
void hak_snapshot_ask_kernel(struct snapshot *snapshot);
/* The same without what is hakmem's: the kernel need not walk memory for that. */
void hak_snapshot_ask_kernel_total(struct snapshot *snapshot);

#endif
