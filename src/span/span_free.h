/* SPDX-License-Identifier: MIT */
/* span/span_free.h - the free spans: by length, by age, and by where they lie.
 *
 * Owns        struct span_free and the pool of records.
 * Invariants  clean spans never touch, nor do bare ones, nor warm ones of one node (they
 *             coalesce). The first and the last granule of a free span point to its record in the
 *             owner map, with bit 0 set; no other granule does.
 * Threads     under the SPAN lock; the sums are read without it.
 * Tests       tests/unit/span/span_heap_test.c, tests/model/
 */
#ifndef HAK_SPAN_SPAN_FREE_H
#define HAK_SPAN_SPAN_FREE_H

#include "os/node.h"
#include "region/meta.h"
#include "span/span_bins.h"

/* First what small processes write. */
struct span_free {
    struct list_link ages; /* of the warm ones, oldest first */
    _Atomic size_t warm_bytes;
    _Atomic size_t clean_bytes; /* and bare ones */
    _Atomic size_t bare_bytes;
    _Atomic uint64_t oldest_ms; /* when the oldest warm one was freed; 0: none */
    uint32_t epoch;             /* how often all free spans were abandoned */
    uint32_t warm_nodes;        /* bit n: node n has had warm spans */
    bool is_started;
    uint32_t spare_count;
    struct span *spare; /* records without granules, linked by `user` */
    struct span_bins clean;
    struct span_bins bare;
    struct span_bins warm[HAK_NODES_MOST]; /* by the node of their memory */
};
extern struct span_free hak_span_free;
extern struct meta_pool hak_span_pool;

void hak_span_free_start(void);

/* Makes `span` free, and part of a free neighbour of the same state where there is one: the record
 * is no longer the caller's. Warm, it goes to the end of the ages, or is as old as the longest
 * neighbour that it joins. */
void hak_span_free_insert(struct span *span);

/* Takes a free span off all lists. */
void hak_span_free_remove(struct span *span);

/* The free span that has an edge at `granule`; NULL: none. */
struct span *hak_span_free_at(size_t granule);

/* A record for the granules [first, first + count), in the state and age of `like`; NULL: no
 * memory. */
struct span *hak_span_record_like(const struct span *like, uint32_t first, uint32_t count);

/* Takes [first, first + count) out of the free span; what is left on both sides stays free, at its
 * place among the ages. NULL, and nothing has changed, when there is no memory for a record. */
struct span *hak_span_free_carve(struct span *span, uint32_t first, uint32_t count);

/* Keeps a record that no longer describes anything for the next one that is needed under the
 * lock. */
void hak_span_free_spare(struct span *record);

/* Takes neighbouring free spans, warm and clean, as one, so that resident memory of the node that
 * is too small on its own is used before untouched memory. NULL: there are none, or no memory for a
 * record. */
struct span *hak_span_free_take_mixed(uint32_t count, uint32_t node);

/* Abandons all free spans; the heap starts afresh. */
void hak_span_free_renew(void);

/* True when the bins, the ages and the owner map agree. */
bool hak_span_free_is_sound(void);

#endif
