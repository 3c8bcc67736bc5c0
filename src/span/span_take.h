/* SPDX-License-Identifier: MIT */
/* span/span_take.h - which free span serves a request, of which set (docs/adr/0061-span-sets.md).
 *
 * Owns        nothing.
 * Invariants  warm memory comes before memory that nobody has used: first that of the request's own
 *             set, then that of set 0, then that of the other sets. A request that is too long for
 *             a set first makes all sets' spans set 0's, where they join. What is taken is of the
 *             request's set, and goes back there.
 * Threads     any; it takes the locks itself (span/span_lock.h).
 * Tests       tests/unit/span/span_set_test.c, tests/unit/span/span_heap_test.c,
 *             tests/race/span_race.c
 */
#ifndef HAK_SPAN_SPAN_TAKE_H
#define HAK_SPAN_SPAN_TAKE_H

#include "span/span.h"

/* A used span, of as many granules as wished if these are clean; *is_zero tells whether it reads as
 * zero. NULL: nothing that is mapped and free fits. */
struct span *hak_span_take_free(struct span_fit fit, uint32_t wished_count, uint32_t set,
                                bool *is_zero);

/* Makes all sets' spans set 0's, where they join. False: they have none. */
bool hak_span_join_sets(void);

/* How many spans, and of how many bytes, sets have served from kept memory beyond those that the
 * statistics have counted. */
uint64_t hak_span_sets_served(uint64_t *bytes);

/* The NUMA node from which the calling thread's first touch takes memory. */
uint32_t hak_span_own_node(void);

#endif
