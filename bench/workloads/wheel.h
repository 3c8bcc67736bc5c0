/* SPDX-License-Identifier: MIT */
/* bench/workloads/wheel.h - blocks that are freed when a wheel comes to their place.
 *
 * Owns        struct bench_wheel: at each place a list of blocks, with their records.
 * Invariants  both ends of a block are marked from bench_wheel_put to its free, which checks them.
 *             Wheel and records lie outside the allocator (memory.h).
 * Threads     one.
 * Tests       tests/tools/test_workloads.py
 */
#ifndef BENCH_WORKLOADS_WHEEL_H
#define BENCH_WORKLOADS_WHEEL_H

#include "memory.h"

#define BENCH_WHEEL_PLACES (1u << 24)

/* A block that is due, on the list of its place, by index + 1. */
struct bench_due {
    void *block;
    uint32_t size_bytes;
    uint32_t next;
};

struct bench_wheel {
    uint32_t *places;
    struct bench_due *records;
    uint32_t most, free, used; /* records */
    uint64_t live_bytes;
};

/* A wheel for so many live blocks. */
static inline void bench_wheel_start(struct bench_wheel *wheel, uint32_t most)
{
    *wheel = (struct bench_wheel){
        .places = bench_map(BENCH_WHEEL_PLACES, sizeof(*wheel->places)),
        .records = bench_map(most, sizeof(*wheel->records)),
        .most = most,
    };
}

static inline uint64_t bench_due_key(const struct bench_due *due)
{
    return bench_mix64((uintptr_t)due->block + due->size_bytes);
}

/* Frees what is due at the place. */
static inline void bench_wheel_free(struct bench_wheel *wheel, uint32_t place)
{
    uint32_t number = wheel->places[place];
    wheel->places[place] = 0;
    while (number != 0) {
        struct bench_due *due = &wheel->records[number - 1];
        bench_mark_check(due->block, due->size_bytes, bench_due_key(due));
        free(due->block);
        wheel->live_bytes -= due->size_bytes;
        uint32_t next = due->next;
        due->next = wheel->free;
        wheel->free = number;
        number = next;
    }
}

/* The block is due at the place; ends the run if there are too many. */
static inline void bench_wheel_put(struct bench_wheel *wheel, uint32_t place, void *block,
                                   uint32_t size_bytes)
{
    uint32_t number = wheel->free;
    if (number != 0) {
        wheel->free = wheel->records[number - 1].next;
    } else {
        if (wheel->used == wheel->most) {
            bench_fail("more than %u blocks are live", wheel->most);
        }
        number = ++wheel->used;
    }
    struct bench_due *due = &wheel->records[number - 1];
    *due = (struct bench_due){block, size_bytes, wheel->places[place]};
    bench_mark(block, size_bytes, bench_due_key(due));
    wheel->live_bytes += size_bytes;
    wheel->places[place] = number;
}

#endif
