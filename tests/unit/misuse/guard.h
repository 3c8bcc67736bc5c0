/* SPDX-License-Identifier: MIT */
/* tests/unit/misuse/guard.h - blocks of the pools of guarded blocks, and their records.
 *
 * Owns        two traces: where each block here is allocated, and freed.
 * Invariants  none.
 * Threads     one.
 * Tests       those that include it.
 */
#ifndef TESTS_UNIT_MISUSE_GUARD_H
#define TESTS_UNIT_MISUSE_GUARD_H

#include "faults.h"
#include "misuse/guarded.h"
#include "process/start.h"

static const struct guarded_trace here = {{0x1234567, 0x2345678}, {12, {0x656d}}};
static const struct guarded_trace there = {{0x3456789}, {0}};

static inline void give(void *block)
{
    hak_guarded_give(block, &there);
}

/* The kernel refuses each call of the kind from now on. */
static inline void refuse_each(enum os_fault_kind kind)
{
    need_faults();
    CHECK(hak_process_start());
    fail_every(1, kind);
}

/* Of a block of 100 bytes that was given back both traces are known; the rest of its record. */
static inline struct guarded_view check_freed(char *block)
{
    struct guarded_view view;
    CHECK_REPORTS(give(block), "double free",
                  "block of 100 bytes, a guarded block, already free, allocated by thread 12 (me) "
                  "at 0x1234566 < 0x2345677, freed at 0x3456788\n");
    hak_guarded_look(block + 50, &view);
    CHECK_EQ(view.block, block);
    CHECK_EQ(view.bytes, 100);
    CHECK(view.state == GUARDED_FREE);
    CHECK_EQ(view.taken.addresses[1], 0x2345678);
    CHECK_EQ(view.given.addresses[0], 0x3456789);
    return view;
}

#endif
