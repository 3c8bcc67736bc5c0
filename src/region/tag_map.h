/* SPDX-License-Identifier: MIT */
/* region/tag_map.h - address -> whose bin takes the block, in one load.
 *
 * Owns        the meaning of a tag word: `heap id << 8 | bin` for a granule of a slab whose blocks
 *             only the owner's bins take, the bin alone where anybody's do (common classes,
 *             base/limits.h), and one more in a private heap, which always has its id. Other
 *             granules: HAK_TAG_NONE, whose bin takes nothing, HAK_TAG_SPAN and HAK_TAG_HOLE.
 *             Heap ids are the words of 24 bits of which half are set.
 * Invariants  A thread asks `tag & others < HAK_BIN_LIMIT`, where others has all bits but its own
 *             id's. No word with half of its bits set has all its set bits in another one, so no
 *             other heap's tag passes; a tag without an id always does.
 *             Only the owner inside its gate, or who claimed it, changes the tag of a live slab.
 *             A tag may leave a bin while blocks of the slab sit in a thread cache: nobody infers
 *             "nothing cached" from a tag.
 * Threads     relaxed loads and stores: a thread that may legally free a block got its address by a
 *             synchronisation of the program's own, which orders the tag as well.
 * Tests       tests/unit/region/tag_map_test.c
 */
#ifndef HAK_REGION_TAG_MAP_H
#define HAK_REGION_TAG_MAP_H

#include "region/region.h"

#define HAK_TAG_HEAP_SHIFT 8
#define HAK_HEAP_ID_FIRST 0x000fffu
#define HAK_HEAP_ID_LAST 0xfff000u

#define HAK_TAG_NONE 0u            /* no live block starts or lies here */
#define HAK_TAG_SPAN 0xffffff01u   /* first granule of a live span */
#define HAK_TAG_HOLE 0xffffff03u   /* inside the window but mapped by somebody else */
#define HAK_TAG_OTHERS 0xffffffffu /* what a thread without a heap calls others' */

#define HAK_TAG_PRIVATE 1u /* beside a heap: it is private, and frees into its slabs never wait */

/* The heap id after `id`: the next larger word with as many bits set. After the last one it is no
 * heap id, but larger. */
HAK_INLINE uint32_t hak_heap_id_after(uint32_t id)
{
    uint32_t lowest = id & -id;
    uint32_t carried = id + lowest;
    return carried | ((id ^ carried) / lowest) >> 2;
}

/* The bits that no tag has whose blocks the heap's bins take. */
HAK_INLINE uint32_t hak_tag_others(uint32_t heap_id)
{
    return ~(heap_id << HAK_TAG_HEAP_SHIFT);
}

/* Of a slab that only its owner's bins take blocks of. */
HAK_INLINE uint32_t hak_tag_of_owned(uint32_t heap_id, uint32_t class_index)
{
    return heap_id << HAK_TAG_HEAP_SHIFT | HAK_BIN_OF_CLASS(class_index);
}

/* Of a slab of a thread's heap. */
HAK_INLINE uint32_t hak_tag_of(uint32_t heap_id, uint32_t class_index)
{
    return hak_tag_of_owned(HAK_CLASS_IS_COMMON(class_index) ? 0 : heap_id, class_index);
}

HAK_INLINE uint32_t hak_tag_of_private(uint32_t heap_id, uint32_t class_index)
{
    return hak_tag_of_owned(heap_id, class_index) | HAK_TAG_PRIVATE;
}

HAK_INLINE bool hak_tag_is_slab(uint32_t tag)
{
    return tag - 1 < (HAK_TAG_SPAN & ~0xffu) - 1;
}

/* Of a slab's tag. */
HAK_INLINE uint32_t hak_tag_class(uint32_t tag)
{
    return (uint8_t)tag / HAK_BIN_SCALE - 1;
}

/* Whether frees of another heap's blocks with this tag may wait. */
HAK_INLINE bool hak_tag_may_wait(uint32_t tag)
{
    uint8_t bin = (uint8_t)tag;
    uint8_t turned = (uint8_t)(bin >> 1 | bin << 7); /* HAK_TAG_PRIVATE is on top */
    return (uint8_t)(turned - 1) <= HAK_WAITING_CLASS_MAX;
}

HAK_INLINE uint32_t hak_tag_read(size_t granule)
{
    return hak_load_relaxed(&hak_region.tags[granule]);
}

HAK_INLINE void hak_tag_write(size_t granule, size_t count, uint32_t tag)
{
    for (size_t i = 0; i < count; i++)
        hak_store_relaxed(&hak_region.tags[granule + i], tag);
}

/* The record of a granule. What kind it is follows from the tag: slabs and live spans have one, and
 * so have the first and last granule of a free span (read under the SPAN lock only). */
HAK_INLINE void *hak_owner_read(size_t granule)
{
    return hak_load_relaxed(&hak_region.owners[granule]);
}

HAK_INLINE void hak_owner_write(size_t granule, size_t count, void *record)
{
    for (size_t i = 0; i < count; i++)
        hak_store_relaxed(&hak_region.owners[granule + i], record);
}

#endif
