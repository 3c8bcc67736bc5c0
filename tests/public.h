/* SPDX-License-Identifier: MIT */
/* tests/public.h - public functions that must succeed.
 *
 * Owns        nothing.
 * Invariants  none.
 * Threads     any.
 * Tests       those that include it.
 */
#ifndef TESTS_PUBLIC_H
#define TESTS_PUBLIC_H

#include "check.h"

#include <hakmem/hakmem.h>

static inline hakmem_heap *new_heap(void)
{
    hakmem_heap *heap = hakmem_heap_new();
    CHECK(heap != NULL);
    return heap;
}

static inline struct hakmem_stats stats_now(void)
{
    struct hakmem_stats stats;
    CHECK_EQ(hakmem_stats_get(&stats, sizeof stats), 0);
    return stats;
}

static inline struct hakmem_heap_stats heap_stats_now(hakmem_heap *heap)
{
    struct hakmem_heap_stats stats;
    CHECK_EQ(hakmem_heap_stats_get(heap, &stats, sizeof stats), 0);
    return stats;
}

#endif
