/* SPDX-License-Identifier: MIT */
/* tests/unit/slab/size_class_test.c - every request and every offset, against plain arithmetic. */
#include "check.h"
#include "heap/cpu_cache.h"
#include "slab/size_class.h"

static const struct size_class *class_at(uint32_t index)
{
    return &hak_size_classes[index];
}

TEST(every_request_gets_the_smallest_class_that_fits)
{
    for (size_t bytes = 0; bytes <= HAK_CLASS_BYTES_MAX; bytes++) {
        uint32_t index = hak_class_of(bytes);
        CHECK(index < HAK_CLASS_COUNT);
        CHECK(class_at(index)->block_bytes >= bytes);
        CHECK(index == 0 || class_at(index - 1)->block_bytes < bytes);
    }
}

TEST(the_table_of_the_hot_path_agrees_with_the_rule)
{
    CHECK_EQ(hak_hot_sizes[0], 0); /* the slow way */
    for (size_t bytes = 1; bytes <= HAK_CLASS_HOT_BYTES_MAX; bytes++) {
        size_t index = hak_align_up(bytes, hak_hot_size_step) / hak_hot_size_step;
        CHECK_EQ(hak_hot_sizes[index], HAK_BIN_OF_CLASS(hak_class_of(bytes)));
    }
}

TEST(the_table_of_lines_finds_the_smallest_multiple_of_a_line)
{
    for (size_t bytes = HAK_CLASS_EVEN_BYTES_MAX + 1; bytes <= HAK_CLASS_BYTES_MAX; bytes++) {
        uint32_t index = hak_class_of(bytes);
        while (class_at(index)->block_bytes % HAK_CACHE_LINE_BYTES != 0)
            index++;
        CHECK_EQ(hak_bin_in_lines(bytes), HAK_BIN_OF_CLASS(index));
    }
}

TEST(classes_rise_from_8_bytes_to_128_kib)
{
    CHECK_EQ(class_at(0)->block_bytes, 8);
    CHECK_EQ(class_at(1)->block_bytes, 16);
    CHECK_EQ(class_at(HAK_CLASS_COUNT - 1)->block_bytes, 128 * HAK_KIB);
    for (uint32_t i = 1; i < HAK_CLASS_COUNT; i++)
        CHECK(class_at(i)->block_bytes > class_at(i - 1)->block_bytes);
}

TEST(waste_beyond_rounding_is_an_eighth_and_above_4_kib_a_fifth)
{
    for (size_t bytes = 1; bytes <= HAK_CLASS_BYTES_MAX; bytes++) {
        size_t block_bytes = class_at(hak_class_of(bytes))->block_bytes;
        bool is_even = block_bytes <= HAK_CLASS_EVEN_BYTES_MAX;
        size_t rounded = bytes <= 8 ? 8 : hak_align_up(bytes, is_even ? 16 : 64);
        size_t waste = hak_excess(block_bytes, rounded);
        CHECK(is_even ? waste * 8 <= block_bytes : waste * 5 <= block_bytes);
    }
}

TEST(a_power_of_two_with_a_header_takes_a_sixteenth_more)
{
    const uint32_t with_header[] = {4368, 8736, 17472};
    for (uint32_t i = 0; i < 3; i++) {
        const struct size_class *row = class_at(hak_class_of((4096u << i) + 16));
        CHECK_EQ(row->block_bytes, with_header[i]);
        CHECK(HAK_TINY || row->block_count == 15);
    }
}

TEST(blocks_are_aligned_to_16_from_the_second_class_on)
{
    for (uint32_t i = 1; i < HAK_CLASS_COUNT; i++)
        CHECK_EQ(class_at(i)->block_bytes % 16, 0);
}

TEST(a_slab_holds_its_blocks_within_its_granules)
{
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        const struct size_class *row = class_at(i);
        size_t slab_bytes = row->granule_count * HAK_GRANULE_BYTES;
        size_t block_count = hak_least(slab_bytes / row->block_bytes, HAK_SLAB_BLOCKS_MAX);
        CHECK(hak_is_power_of_two(row->granule_count));
        CHECK(row->granule_count <= HAK_SLAB_GRANULES_MAX);
        CHECK_EQ(row->block_count, block_count);
        CHECK(block_count >= 1);
        CHECK_EQ(row->word_count, (block_count + 63) / 64);
        CHECK(row->word_count <= 128);
    }
}

TEST(the_index_of_a_block_is_exact_for_every_offset_of_every_class)
{
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        const struct size_class *row = class_at(i);
        size_t slab_bytes = row->granule_count * HAK_GRANULE_BYTES;
        for (size_t offset = 0; offset < slab_bytes; offset++)
            if (hak_block_index(row->reciprocal, offset) != offset / row->block_bytes)
                CHECK_EQ(hak_block_index(row->reciprocal, offset), offset / row->block_bytes);
        CHECK_EQ(hak_block_index(row->reciprocal, slab_bytes), slab_bytes / row->block_bytes);
    }
}

/* Above 4 KiB what is aligned to more than every block is takes multiples of a line. */
static bool serves(uint32_t index, size_t alignment)
{
    bool is_in_lines = class_at(index)->block_bytes > HAK_CLASS_EVEN_BYTES_MAX && alignment > 16;
    size_t least = is_in_lines ? hak_most(alignment, HAK_CACHE_LINE_BYTES) : alignment;
    return class_at(index)->block_bytes % least == 0;
}

TEST(an_aligned_request_gets_the_smallest_class_whose_blocks_are_aligned)
{
    for (size_t alignment = 1; alignment <= HAK_GRANULE_BYTES; alignment *= 2) {
        for (size_t bytes = 0; bytes <= HAK_CLASS_BYTES_MAX; bytes += bytes < 300 ? 1 : 61) {
            uint32_t index = hak_class_of_aligned(bytes, alignment);
            CHECK(index < HAK_CLASS_COUNT);
            CHECK(class_at(index)->block_bytes >= bytes);
            CHECK(serves(index, alignment));
            while (index-- > 0 && class_at(index)->block_bytes >= bytes)
                CHECK(!serves(index, alignment));
        }
    }
}

TEST(alignment_to_a_line_costs_at_most_a_quarter_above_4_kib)
{
    for (size_t alignment = 16; alignment <= HAK_CACHE_LINE_BYTES; alignment *= 2) {
        for (size_t bytes = HAK_CLASS_EVEN_BYTES_MAX + 1; bytes <= HAK_CLASS_BYTES_MAX; bytes++) {
            size_t block_bytes = class_at(hak_class_of_aligned(bytes, alignment))->block_bytes;
            CHECK(block_bytes <= bytes + bytes / 4 + HAK_CACHE_LINE_BYTES);
        }
    }
}

TEST(no_class_serves_alignments_above_a_granule_or_sizes_above_the_largest)
{
    CHECK_EQ(hak_class_of_aligned(1, 2 * HAK_GRANULE_BYTES), HAK_CLASS_NONE);
    CHECK_EQ(hak_class_of_aligned(HAK_CLASS_BYTES_MAX + 1, 16), HAK_CLASS_NONE);
    CHECK_EQ(hak_class_of_aligned(SIZE_MAX, 16), HAK_CLASS_NONE);
}

TEST(each_class_up_to_4_kib_has_a_twin_in_the_long_partition)
{
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        uint32_t twin = hak_class_long(i);
        CHECK_EQ(hak_class_partition(i), PARTITION_ORDINARY);
        CHECK_EQ(hak_class_ordinary(i), i);
        CHECK_EQ(hak_class_in(i, PARTITION_ORDINARY), i);
        CHECK_EQ(hak_class_in(i, PARTITION_LONG), twin);
        if (class_at(i)->block_bytes > HAK_CLASS_EVEN_BYTES_MAX) {
            CHECK_EQ(twin, i);
            continue;
        }
        CHECK(twin >= HAK_CLASS_COUNT && twin < HAK_ALL_CLASS_COUNT);
        CHECK_EQ(hak_class_partition(twin), PARTITION_LONG);
        CHECK_EQ(hak_class_ordinary(twin), i);
        CHECK_EQ(hak_class_long(twin), twin);
        CHECK_EQ(memcmp(class_at(i), class_at(twin), sizeof *class_at(i)), 0);
    }
    CHECK_EQ(hak_class_long(HAK_CLASS_NONE), HAK_CLASS_NONE);
}
