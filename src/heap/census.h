/* SPDX-License-Identifier: MIT */
/* heap/census.h - where the blocks of every class are, at this moment.
 *
 * Owns        struct census: for each class, over all heaps, its slabs, its used blocks, and which
 *             of the used ones are not the program's.
 * Invariants  exact when the other threads stand still, running or asleep, outside hakmem. A heap
 *             that cannot be entered within a few milliseconds, or a user heap that a thread is in,
 *             is counted without its lock: its published blocks count as the program's.
 * Threads     any. Heaps are entered one after the other; bins and quarantines are read while
 *             their threads work on them (heap/bins.h): a count may be wrong by what happens
 *             meanwhile.
 * Tests       tests/unit/heap/census_test.c, tests/race/api_race.c
 */
#ifndef HAK_HEAP_CENSUS_H
#define HAK_HEAP_CENSUS_H

#include "slab/size_class.h"
#include "stats/counters.h"

struct class_census {
    uint64_t slabs;
    uint64_t used;     /* blocks that are not free in a slab; of these are */
    uint64_t cached;   /* in bins */
    uint64_t withheld; /* in quarantine */
    uint64_t homeward; /* published, not collected yet */
    uint64_t taken;    /* blocks that ever left slabs */
    uint64_t popped;   /* blocks that ever were popped from bins */
};

struct census {
    struct class_census classes[HAK_ALL_CLASS_COUNT];
    uint64_t large_withheld_bytes; /* of the spans of large blocks in quarantine */
    uint64_t large_withheld_blocks;
    uint64_t closed_heaps; /* counted from outside */
};

void hak_census_take(struct census *census);

/* Blocks of each class that ever were popped from bins. Nothing is entered. */
void hak_census_popped(uint64_t popped[HAK_ALL_CLASS_COUNT]);

/* A counter of all heaps and caches together. Nothing is entered: in a signal handler, too. */
uint64_t hak_census_counter(enum hak_stat stat);

#endif
