/* SPDX-License-Identifier: MIT */
/* region/tag_map.h - address -> who owns it, in one load.
 *
 * Owns        the meaning of a tag word: `heap id << 8 | bin` for a granule of a slab, where a bin
 *             is twice the class index, and one more in a private heap. Heap id 0 belongs to
 *             nobody: its low byte is one of HAK_TAG_*.
 * Invariants  only the owner inside its gate, or who claimed it, changes the tag of a live slab.
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
#define HAK_TAG_BIN_MASK 0xffu
#define HAK_HEAP_ID_MOST 0xfffffeu /* 0 is nobody, 0xffffff the states without a heap */

#define HAK_TAG_NONE 0u /* no live block starts or lies here */
#define HAK_TAG_SPAN 1u /* first granule of a live span */
#define HAK_TAG_HOLE 2u /* inside the window but mapped by somebody else */
#define HAK_TAG_NO_HEAP 0xffffffffu

HAK_INLINE uint32_t hak_tag_of(uint32_t heap_id, uint32_t class_index)
{
    return heap_id << HAK_TAG_HEAP_SHIFT | class_index * 2u;
}

#define HAK_TAG_PRIVATE 1u /* beside a heap: it is private, and frees into its slabs never wait */

HAK_INLINE uint32_t hak_tag_heap(uint32_t tag)
{
    return tag >> HAK_TAG_HEAP_SHIFT;
}

/* Of a tag with a heap. */
HAK_INLINE uint32_t hak_tag_class(uint32_t tag)
{
    return (tag & HAK_TAG_BIN_MASK) / 2;
}

/* Whether frees of blocks of this class may wait, in a heap that is not private. */
HAK_INLINE bool hak_tag_may_wait(uint32_t tag)
{
    uint8_t bin = (uint8_t)tag;
    uint8_t class_index = (uint8_t)(bin >> 1 | bin << 7); /* with HAK_TAG_PRIVATE on top */
    return class_index <= HAK_WAITING_CLASS_MAX;
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
