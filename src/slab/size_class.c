/* SPDX-License-Identifier: MIT */
#include "slab/size_class.h"

#include "misuse/harden.h"
#include "os/os.h"

/* A slab is the smallest of 1, 2, 4, 8 granules that holds at least 2 blocks and wastes at most
 * 1/32 behind the last: small slabs empty, and an empty slab can serve any class. */
#define FITS(bytes, granules)                                                                      \
    (2 * (bytes) <= (granules) * HAK_GRANULE_BYTES &&                                              \
     (granules) * HAK_GRANULE_BYTES % (bytes) * 32 <= (granules) * HAK_GRANULE_BYTES)
#define GRANULES_WISHED(bytes)                                                                     \
    (FITS(bytes, 1) ? 1u : FITS(bytes, 2) ? 2u : FITS(bytes, 4) ? 4u : 8u)
#define GRANULES(bytes)                                                                            \
    (GRANULES_WISHED(bytes) < HAK_SLAB_GRANULES_MAX ? GRANULES_WISHED(bytes)                       \
                                                    : HAK_SLAB_GRANULES_MAX)
#define BLOCKS_FITTING(bytes) (GRANULES(bytes) * HAK_GRANULE_BYTES / (bytes))
#define BLOCKS(bytes)                                                                              \
    (BLOCKS_FITTING(bytes) < HAK_SLAB_BLOCKS_MAX ? BLOCKS_FITTING(bytes) : HAK_SLAB_BLOCKS_MAX)

#define CLASS_ROW(index, below, bytes)                                                             \
    [index] = {                                                                                    \
        .block_bytes = (bytes),                                                                    \
        .block_count = (uint16_t)BLOCKS(bytes),                                                    \
        .granule_count = (uint8_t)GRANULES(bytes),                                                 \
        .word_count = (uint8_t)((BLOCKS(bytes) + 63) / 64),                                        \
        .reciprocal = (((uint64_t)1 << HAK_RECIPROCAL_SHIFT) + (bytes) - 1) / (bytes),             \
    },

#define LONG_ROW(index, below, bytes) CLASS_ROW(HAK_CLASS_COUNT + (index), below, bytes)

const struct size_class hak_size_classes[HAK_ALL_CLASS_COUNT] = {CLASS_ROW(
    0, 0, 8) HAK_SIZE_CLASSES(CLASS_ROW) LONG_ROW(0, 0, 8) HAK_SIZE_CLASSES_EVEN(LONG_ROW)};

#define BIN_ROW(index, below, bytes) [(below) / 8 + 1 ...(bytes) / 8] = HAK_BIN_OF_CLASS(index),

const uint8_t hak_bin_of_eighth[HAK_CLASS_HOT_BYTES_MAX / 8 + 1] = {[0 ... 1] = HAK_BIN_OF_CLASS(0),
                                                                    HAK_SIZE_CLASSES_HOT(BIN_ROW)};

#define LINE_ROW(index, below, bytes)                                                              \
    [(below) / HAK_CACHE_LINE_BYTES + 1 ...(bytes) / HAK_CACHE_LINE_BYTES] =                       \
        HAK_BIN_OF_CLASS(index),

const uint8_t hak_bin_of_line[HAK_CLASS_BYTES_MAX / HAK_CACHE_LINE_BYTES + 1] = {
    HAK_SIZE_CLASSES_LINES(LINE_ROW)};

/* Above 4 KiB, the most that blocks of other sizes than powers of two are aligned to. */
#define ODD_ALIGNMENT_MOST 256
hak_static_assert(2 * ODD_ALIGNMENT_MOST == 512, "as the assembly has it");

#define CLASS_ASSERT(index, below, bytes)                                                          \
    hak_static_assert((bytes) % HAK_ORDINARY_ALIGNMENT == 0, "blocks are aligned");                \
    hak_static_assert((index) == 1 || (bytes) > 4096 || ((bytes) - ((below) + 16)) * 8 <= (bytes), \
                      "at most 12.5 % waste beyond rounding to 16");                               \
    hak_static_assert((bytes) <= 4096 || (bytes) % HAK_CACHE_LINE_BYTES == 0 ||                    \
                          (bytes) == HAK_CLASS_WITH_HEADER(below),                                 \
                      "an aligned request takes the next class at most");                          \
    hak_static_assert((bytes) <= 4096 || ((bytes) - ((below) + 64)) * 5 <= (bytes),                \
                      "at most 20 % waste beyond rounding to 64");                                 \
    hak_static_assert((bytes) <= 4096 || (bytes) % (2 * ODD_ALIGNMENT_MOST) != 0 ||                \
                          ((bytes) & ((bytes) - 1)) == 0,                                          \
                      "with more alignment only powers of two serve");                             \
    hak_static_assert(BLOCKS(bytes) >= 1, "a slab holds at least one block");
HAK_SIZE_CLASSES(CLASS_ASSERT)

hak_static_assert(HAK_BIN_LIMIT < 0xfd, "other tags than bins are above them");

uint32_t hak_class_of_aligned(size_t bytes, size_t alignment)
{
    /* A slab with guards begins a page behind a granule. */
    size_t most = hak_harden_has(HARDEN_GUARDS) ? hak_os_page_bytes() : HAK_GRANULE_BYTES;
    if (bytes > HAK_CLASS_BYTES_MAX || alignment > most)
        return HAK_CLASS_NONE;
    size_t least = hak_most(bytes, alignment);
    bool is_in_lines = least > HAK_CLASS_EVEN_BYTES_MAX && alignment > HAK_ORDINARY_ALIGNMENT;
    if (is_in_lines && alignment > ODD_ALIGNMENT_MOST)
        least = hak_power_of_two_up(least);
    uint32_t class_index =
        is_in_lines ? hak_bin_in_lines(least) / HAK_BIN_SCALE - 1 : hak_class_of(least);
    /* The largest class is aligned to all of these. */
    while ((hak_size_classes[class_index].block_bytes & (alignment - 1)) != 0)
        class_index++;
    return class_index;
}
