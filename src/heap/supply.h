/* SPDX-License-Identifier: MIT */
/* heap/supply.h - granules for slabs: from the superslab pool, and superslabs for it from
 * the spans.
 *
 * Owns        nothing; it is the bridge between slab/ and span/, which do not see each other.
 * Invariants  a slab's tags are written after its record and cleared before it; if there is no
 *             memory, nothing changes. A sparse owner has a few blocks of many classes: were its
 *             slabs made of memory that is resident, or of huge pages, each would hold all of its
 *             pages for them. They share superslabs that were never used, in pages of their own.
 * Threads     the thread inside the slab's heap; the pool and the span heap lock themselves. The
 *             region's growth lock is held while superslabs are added.
 * Tests       tests/unit/heap/supply_test.c, tests/race/supply_race.c, tests/model/
 */
#ifndef HAK_HEAP_SUPPLY_H
#define HAK_HEAP_SUPPLY_H

#include "heap/limit.h"
#include "region/tag_map.h"
#include "slab/slab.h"
#include "slab/superslab_pool.h"
#include "span/large.h"
#include "stats/counters.h"

/* What the granules of a slab say (region/tag_map.h) while it belongs to `owner`. */
HAK_INLINE uint32_t hak_supply_tag(const struct slab *slab, const struct slab_owner *owner)
{
    return owner->is_private ? HAK_TAG_PRIVATE : hak_tag_of(slab->class_index);
}

/* The slab of a block in the window, which must be live; NULL when no slab is there. */
HAK_INLINE struct slab *hak_slab_at(const void *block)
{
    uint32_t granule = hak_granule_of(block);
    return hak_tag_is_slab(hak_tag_read(granule)) ? hak_owner_read(granule) : NULL;
}

/* A new slab of the class for `owner`, counted by what it was made of, in three steps: nobody asks
 * the kernel for memory while inside a heap. First, inside: of a superslab that is there; NULL:
 * there is none, or above the soft limit no warm one. */
struct slab *hak_supply_present(uint32_t class_index, struct slab_owner *owner,
                                struct stat_block *stats);

/* Second, outside: granules for a slab, of a superslab that is added if need be, for which free
 * memory may have to go back; none: out of memory. What a thread has in its hands when another one
 * forks, the child is without: granules that nobody has touched. */
struct pool_granules hak_supply_bring(uint32_t class_index, const struct slab_owner *owner,
                                      struct stat_block *stats);

/* Third, inside: the slab of them, which are no longer the caller's. NULL: there are none, or there
 * is no memory for its record. */
struct slab *hak_supply_make(uint32_t class_index, struct pool_granules *granules,
                             struct slab_owner *owner, struct stat_block *stats);

/* They were not needed. */
void hak_supply_give_up(struct pool_granules *granules);

/* Maps memory for the records of the next slabs before it is needed. Outside of heaps. */
void hak_supply_grow_records_ahead(void);

/* Whether the pool has no warm granules for a slab of the class, or none at all. */
bool hak_supply_is_cold(uint32_t class_index, const struct slab_owner *owner);
bool hak_supply_is_dry(uint32_t class_index, const struct slab_owner *owner);

/* Whether a pool that is not small has few granules left for slabs of the class. */
bool hak_supply_is_low(uint32_t class_index, const struct slab_owner *owner);

/* One thread adds a superslab then, so that others need not wait for the kernel. Outside of
 * heaps. */
void hak_supply_grow_ahead(uint32_t class_index, const struct slab_owner *owner,
                           struct stat_block *stats);

/* What is asked of the spans for a large block. */
HAK_INLINE struct large_request hak_supply_request(size_t bytes, size_t alignment,
                                                   enum large_content content)
{
    bool is_short = hak_limit_is_set() || hak_region_is_tight();
    return (struct large_request){.bytes = bytes,
                                  .alignment = alignment,
                                  .content = content,
                                  .room = is_short ? LARGE_PACKED : LARGE_ROOMY};
}

/* A large block within the limit, in a span that a cache had (NULL: another one). */
void *hak_supply_large(struct span *cached, const struct large_request *request);

/* Gives superslabs that are wholly free, but for one, back to the spans. */
void hak_supply_trim(void);

/* Touches free granules of superslabs, at most so many bytes; returns the bytes. */
size_t hak_supply_touch(size_t most_bytes);

/* Gives an unused slab's granules back. */
void hak_supply_retire(struct slab *slab);

#endif
