/* SPDX-License-Identifier: MIT */
/* region/tag_map.h - from an address to the block's bin, in one load.
 *
 * Owns        the meaning of a tag, a byte for each granule: the bin of the class for slabs whose
 *             blocks any thread's bins take; else a value of HAK_BIN_LIMIT or more, for which free
 *             takes the slow path: a slab of a private heap, the start of a large block, memory of
 *             others. HAK_TAG_NONE is a bin that takes nothing.
 * Invariants  Only the holder of a slab's heap changes a live slab's tag. What a slab is beyond
 *             its tag is in its record.
 * Threads     relaxed loads and stores: a thread that may legally free a block got its address by a
 *             synchronisation of the program's own, which orders the tag as well.
 * Tests       tests/unit/region/tag_map_test.c
 */
#ifndef HAK_REGION_TAG_MAP_H
#define HAK_REGION_TAG_MAP_H

#include "base/size_class_table.h"
#include "region/region.h"

#define HAK_TAG_NONE 0u       /* no live block starts or lies here */
#define HAK_TAG_PRIVATE 0xfdu /* a slab of a private heap: frees into it never wait */
#define HAK_TAG_HOLE 0xfeu    /* inside the window but mapped by other code */
#define HAK_TAG_SPAN 0xffu    /* first granule of a span with a block, or kept for one */

/* Of a slab whose blocks any bin of the class takes. */
HAK_INLINE uint32_t hak_tag_of(uint32_t class_index)
{
    return HAK_BIN_OF_CLASS(class_index);
}

/* A slab of a shared heap: hak_tag_class says of which class. */
HAK_INLINE bool hak_tag_is_class(uint32_t tag)
{
    return tag - 1 < HAK_TAG_PRIVATE - 1;
}

/* A slab of any heap. */
HAK_INLINE bool hak_tag_is_slab(uint32_t tag)
{
    return tag - 1 < HAK_TAG_PRIVATE;
}

HAK_INLINE uint32_t hak_tag_class(uint32_t tag)
{
    return tag / HAK_BIN_SCALE - 1;
}

HAK_INLINE uint32_t hak_tag_read(size_t granule)
{
    return hak_load_relaxed(&hak_region.tags[granule]);
}

HAK_INLINE void hak_tag_write(size_t granule, size_t count, uint32_t tag)
{
    for (size_t i = 0; i < count; i++)
        hak_store_relaxed(&hak_region.tags[granule + i], (uint8_t)tag);
}

/* The record of a granule. What kind it is follows from the tag: slabs and spans with a tag have
 * one, and so have the first and last granule of a free span, for the holder of its set's lock. */
HAK_INLINE void *hak_owner_read(size_t granule)
{
    return hak_load_relaxed(&hak_region.owners[granule]);
}

HAK_INLINE void hak_owner_write(size_t granule, size_t count, void *record)
{
    for (size_t i = 0; i < count; i++)
        /* release: partner is the acquire in hardened/look_back.c */
        hak_store_release(&hak_region.owners[granule + i], record);
}

#endif
