/* SPDX-License-Identifier: MIT */
/* span/span_free.h - the free spans: by length, by age, and by where they lie.
 *
 * Owns        struct span_set, and struct span_free with the pool of records. A set has warm spans
 *             of its own and a lock for them; all else that is free is set 0's.
 * Invariants  clean spans never touch, nor do bare ones, nor warm ones of one set and node (they
 *             coalesce). The first and the last granule of a free span point to its record in the
 *             owner map, with bit 0 set and its set from bit 1 on; no other granule does. So a
 *             thread knows without a look at its record that a neighbour is of another set, whose
 *             lock guards the record.
 * Threads     a set and its spans under its lock, clean and bare ones under that of set 0, which is
 *             SPAN; the sums are read without it.
 * Tests       tests/unit/span/span_heap_test.c, tests/model/
 */
#ifndef HAK_SPAN_SPAN_FREE_H
#define HAK_SPAN_SPAN_FREE_H

#include "os/node.h"
#include "region/meta.h"
#include "span/span_bins.h"
#include "span/span_lock.h"

struct span_set {
    HAK_CACHE_ALIGNED struct list_link ages; /* of the warm spans, oldest first */
    _Atomic size_t warm_bytes;
    _Atomic uint64_t oldest_ms; /* when the oldest was freed; 0: there is none */
    uint32_t epoch;             /* how often all free spans were abandoned */
    uint32_t warm_nodes;        /* bit n: node n has had warm spans */
    bool is_started;
    uint32_t spare_count;
    struct span *spare;            /* records without granules, linked by `user` */
    _Atomic uint64_t take_count;   /* how often it served */
    _Atomic uint64_t served_count; /* that the big cache was not told of */
    _Atomic uint64_t served_bytes;
    struct span_bins warm[HAK_NODES_MOST]; /* by the node of their memory */
};

/* First what small processes write: up to the first bins of set 0 it lies on one page. */
struct span_free {
    alignas(4096) struct meta_pool records;
    _Atomic size_t clean_bytes; /* and bare ones */
    _Atomic size_t bare_bytes;
    _Atomic uint32_t last_set; /* those behind it were never used */
    struct span_bins clean;
    struct span_set sets[HAK_SPAN_SETS];
    struct span_bins bare;
};
extern struct span_free hak_span_free;

/* The set is used from now on. */
void hak_span_free_start(uint32_t set);

/* How many there are to look at. */
HAK_INLINE uint32_t hak_span_set_count(void)
{
    return hak_load_relaxed(&hak_span_free.last_set) + 1;
}

/* Makes `span` free, and part of a free neighbour of the same state where there is one: the record
 * is no longer the caller's. Warm, it goes to the end of the ages, or is as old as the longest
 * neighbour that it joins. */
void hak_span_free_insert(struct span *span);

/* Takes a free span off all lists. */
void hak_span_free_remove(struct span *span);

/* Longer spans are set 0's. */
#define HAK_SPAN_SET_GRANULES_MOST 17u

/* The free span of the set that has an edge at `granule`; NULL: none. */
struct span *hak_span_free_at(size_t granule, uint32_t set);

/* The same of any set, all of whose locks are held. */
struct span *hak_span_free_anywhere_at(size_t granule);

/* A record for the granules [first, first + count), in the state and age of `like`; NULL: no
 * memory. */
struct span *hak_span_record_like(const struct span *like, uint32_t first, uint32_t count);

/* Takes [first, first + count) out of the free span; what is left on both sides stays free, at its
 * place among the ages. NULL, and nothing has changed, when there is no memory for a record. */
struct span *hak_span_free_carve(struct span *span, uint32_t first, uint32_t count);

/* Takes a fit out of the best of these spans; NULL: none has room, or no memory for a record. */
HAK_INLINE struct span *hak_span_free_take(struct span_bins *bins, struct span_fit fit)
{
    struct span *span = hak_span_bins_find(bins, fit);
    return span == NULL ? NULL : hak_span_free_carve(span, hak_span_place(span, fit), fit.count);
}

/* Keeps a record that no longer describes anything for the next one that is needed under the
 * lock. */
void hak_span_free_spare(struct span *record);

/* Lengthens the used span by the first granules of the free one behind it. False: no memory for a
 * record. */
HAK_INLINE bool hak_span_free_append(struct span *span, struct span *behind, uint32_t more)
{
    struct span *taken = hak_span_free_carve(behind, behind->first, more);
    if (taken == NULL)
        return false;
    span->count += more;
    hak_span_free_spare(taken);
    return true;
}

/* Takes neighbouring free spans, warm ones of the set and clean ones, as one, so that resident
 * memory of the node that is too small on its own is used before untouched memory. NULL: there are
 * none, or no memory for a record. Both locks are held. */
struct span *hak_span_free_take_mixed(uint32_t count, uint32_t set, uint32_t node);

/* Makes the set's spans set 0's, where they join their neighbours. False: it has none. Both locks
 * are held. */
bool hak_span_free_drain(uint32_t set);

/* Abandons all free spans of the set, and of 0 clean and bare ones; it starts afresh. */
void hak_span_free_renew(uint32_t set);

/* Warm bytes of all sets. Set 0 comes last: what has gone there meanwhile counts twice rather than
 * not at all. */
HAK_INLINE size_t hak_span_free_warm_bytes(void)
{
    size_t bytes = 0;
    for (uint32_t set = hak_span_set_count() - 1; HAK_UNLIKELY(set != 0); set--)
        bytes += hak_load_relaxed(&hak_span_free.sets[set].warm_bytes);
    return bytes + hak_load_relaxed(&hak_span_free.sets[0].warm_bytes);
}

/* The set whose oldest span was freed first, not after `before_ms`: a hint, where there are
 * several. HAK_SPAN_SETS: there is none. */
uint32_t hak_span_free_oldest_set(uint64_t before_ms);

/* True when the bins, the ages and the owner map agree. All locks are held. */
bool hak_span_free_is_sound(void);

#endif
