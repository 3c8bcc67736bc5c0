/* SPDX-License-Identifier: MIT */
/* slab/size_class.h - which block size serves which request.
 *
 * Owns        the constant tables made from the rule (base/size_class_table.h), and partitions.
 * Invariants  8, then steps of 16 to 128, then eight classes a doubling to 4 KiB (waste beyond
 *             rounding to 16 is at most 12.5 %), then four a doubling to 128 KiB, multiples of 64
 *             (beyond rounding to 64 at most 20 %), and up to 32 KiB one more for a power of two
 *             with a header. A class belongs to a partition. The classes up to HAK_CLASS_COUNT are
 *             the ordinary ones. Behind them come those of the long partition: for each class up to
 *             4 KiB a twin with blocks of the same size, in slabs and bins of its own, so that
 *             long-lived blocks do not pin the pages of short-lived ones. Everything that
 *             identifies a block by its slab or tag treats both alike. A class index is below 126,
 *             so that the scaled form that tags and the hot path use, HAK_BIN_OF_CLASS, fits the
 *             low byte of a tag.
 * Tests       tests/unit/slab/size_class_test.c
 */
#ifndef HAK_SLAB_SIZE_CLASS_H
#define HAK_SLAB_SIZE_CLASS_H

#include "base/bits.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "base/size_class_table.h"

#define HAK_CLASS_COUNT 72u
#define HAK_LONG_CLASS_COUNT 49u
#define HAK_ALL_CLASS_COUNT (HAK_CLASS_COUNT + HAK_LONG_CLASS_COUNT)
/* No class: a large block. */
#define HAK_CLASS_NONE HAK_ALL_CLASS_COUNT
#define HAK_CLASS_HOT_BYTES_MAX ((size_t)32768)
#define HAK_CLASS_BYTES_MAX ((size_t)131072)

/* No bin is as high. */
#define HAK_BIN_LIMIT HAK_BIN_OF_CLASS(HAK_ALL_CLASS_COUNT)

struct size_class {
    uint32_t block_bytes;
    uint16_t block_count;  /* blocks a slab holds */
    uint8_t granule_count; /* granules a slab takes */
    uint8_t word_count;    /* 64-bit words of its bitmaps */
    uint64_t reciprocal;   /* ceil(2^40 / block_bytes) */
};

extern const struct size_class hak_size_classes[HAK_ALL_CLASS_COUNT];

/* Bin of a request, by (bytes + 7) / 8, up to HAK_CLASS_HOT_BYTES_MAX. The hot path has one of its
 * own, which routes change (heap/cpu_cache.h). */
extern const uint8_t hak_bin_of_eighth[HAK_CLASS_HOT_BYTES_MAX / 8 + 1];

/* Bin of the smallest class above HAK_CLASS_EVEN_BYTES_MAX whose blocks are multiples of 64, by
 * (bytes + 63) / 64, up to HAK_CLASS_BYTES_MAX: of requests above HAK_CLASS_HOT_BYTES_MAX, and of
 * those that are aligned to more than HAK_ORDINARY_ALIGNMENT. For the hot path, too. */
extern const uint8_t hak_bin_of_line[HAK_CLASS_BYTES_MAX / HAK_CACHE_LINE_BYTES + 1];

#define HAK_RECIPROCAL_SHIFT 40

/* Index of the block that holds `offset` into a slab of the class. */
HAK_INLINE uint32_t hak_block_index(uint64_t reciprocal, size_t offset)
{
    return (uint32_t)((offset * reciprocal) >> HAK_RECIPROCAL_SHIFT);
}

HAK_INLINE uint32_t hak_bin_in_lines(size_t bytes)
{
    return hak_bin_of_line[(bytes + HAK_CACHE_LINE_BYTES - 1) / HAK_CACHE_LINE_BYTES];
}

/* The class that serves `bytes` <= HAK_CLASS_BYTES_MAX. */
HAK_INLINE uint32_t hak_class_of(size_t bytes)
{
    uint32_t bin = bytes <= HAK_CLASS_HOT_BYTES_MAX ? hak_bin_of_eighth[(bytes + 7) / 8]
                                                    : hak_bin_in_lines(bytes);
    return bin / HAK_BIN_SCALE - 1;
}

/* Up to here the classes are evenly spaced within each doubling: a multiple of a power of two is
 * served by a class that is one, too. They have twins in the long partition. */
#define HAK_CLASS_EVEN_BYTES_MAX ((size_t)4096)

/* The smallest class that serves `bytes` with blocks aligned to `alignment`, a power of two of at
 * most a granule; HAK_CLASS_NONE when no class does. Above HAK_CLASS_EVEN_BYTES_MAX blocks aligned
 * to more than HAK_ORDINARY_ALIGNMENT are multiples of 64. */
uint32_t hak_class_of_aligned(size_t bytes, size_t alignment);

/* What a request is placed with. */
enum hak_partition { PARTITION_ORDINARY, PARTITION_LONG, PARTITION_COUNT };

HAK_INLINE enum hak_partition hak_class_partition(uint32_t class_index)
{
    return class_index < HAK_CLASS_COUNT ? PARTITION_ORDINARY : PARTITION_LONG;
}

/* The ordinary class with blocks of the same size. */
HAK_INLINE uint32_t hak_class_ordinary(uint32_t class_index)
{
    return class_index < HAK_CLASS_COUNT ? class_index : class_index - HAK_CLASS_COUNT;
}

/* The twin of an ordinary class; the class itself where there is none. */
HAK_INLINE uint32_t hak_class_long(uint32_t class_index)
{
    return class_index < HAK_LONG_CLASS_COUNT ? class_index + HAK_CLASS_COUNT : class_index;
}

HAK_INLINE uint32_t hak_class_in(uint32_t class_index, enum hak_partition partition)
{
    return partition == PARTITION_LONG ? hak_class_long(class_index) : class_index;
}

/* Behind the largest class of its partition. */
HAK_INLINE uint32_t hak_class_end(uint32_t class_index)
{
    return class_index < HAK_CLASS_COUNT ? HAK_CLASS_COUNT : HAK_ALL_CLASS_COUNT;
}

#endif
