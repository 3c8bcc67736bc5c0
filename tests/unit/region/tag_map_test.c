/* SPDX-License-Identifier: MIT */
/* tests/unit/region/tag_map_test.c - what a tag word says, and that no two meanings meet. */
#include "base/bits.h"
#include "check.h"
#include "os/os.h"
#include "region/tag_map.h"
#include "slab/size_class.h"

#define ID_COUNT 600
static uint32_t heap_ids[ID_COUNT];

/* The first ones, some in between, and the last. */
static void choose_ids(void)
{
    uint32_t id = HAK_HEAP_ID_FIRST;
    for (uint32_t i = 0; i < ID_COUNT - 1; i++) {
        heap_ids[i] = id;
        for (uint32_t k = i < ID_COUNT / 2 ? 0 : 8000; k > 0; k--)
            id = hak_heap_id_after(id);
        id = hak_heap_id_after(id);
    }
    heap_ids[ID_COUNT - 1] = HAK_HEAP_ID_LAST;
}

static bool is_bin(uint32_t tag, uint32_t heap_id)
{
    return (tag & hak_tag_others(heap_id)) < HAK_BIN_LIMIT;
}

TEST(there_are_millions_of_heap_ids_and_each_has_half_of_its_bits_set)
{
    uint32_t count = 1;
    for (uint32_t id = HAK_HEAP_ID_FIRST; id != HAK_HEAP_ID_LAST; count++) {
        uint32_t next = hak_heap_id_after(id);
        CHECK(next > id);
        CHECK_EQ(hak_bit_count(next), 12);
        id = next;
    }
    CHECK_EQ(count, 2704156); /* 24 over 12 */
}

TEST(a_tag_gives_back_its_class)
{
    choose_ids();
    for (size_t i = 0; i < ID_COUNT; i++)
        for (uint32_t class_index = 0; class_index < HAK_CLASS_COUNT; class_index++) {
            uint32_t tag = hak_tag_of(heap_ids[i], class_index);
            uint32_t private_tag = hak_tag_of_private(heap_ids[i], class_index);
            CHECK(hak_tag_is_slab(tag));
            CHECK(hak_tag_is_slab(private_tag));
            CHECK_EQ(hak_tag_class(tag), class_index);
            CHECK_EQ(hak_tag_class(private_tag), class_index);
            CHECK(tag != private_tag);
        }
    CHECK(!hak_tag_is_slab(HAK_TAG_NONE));
    CHECK(!hak_tag_is_slab(HAK_TAG_SPAN));
    CHECK(!hak_tag_is_slab(HAK_TAG_HOLE));
}

TEST(a_tag_says_whether_frees_of_its_blocks_may_wait)
{
    for (uint32_t class_index = 0; class_index < HAK_CLASS_COUNT; class_index++) {
        CHECK_EQ(hak_tag_may_wait(hak_tag_of(HAK_HEAP_ID_FIRST, class_index)),
                 class_index <= HAK_WAITING_CLASS_MAX);
        CHECK(!hak_tag_may_wait(hak_tag_of_private(HAK_HEAP_ID_FIRST, class_index)));
    }
    CHECK(!hak_tag_may_wait(HAK_TAG_NONE));
    CHECK(!hak_tag_may_wait(HAK_TAG_SPAN));
    CHECK(!hak_tag_may_wait(HAK_TAG_HOLE));
}

TEST(a_heaps_bins_take_its_own_blocks_and_those_of_common_classes)
{
    choose_ids();
    for (size_t i = 0; i < ID_COUNT; i++)
        for (size_t k = 0; k < ID_COUNT; k++) {
            uint32_t class_index = (uint32_t)(i + k) % HAK_CLASS_COUNT;
            CHECK_EQ(is_bin(hak_tag_of(heap_ids[k], class_index), heap_ids[i]),
                     i == k || HAK_CLASS_IS_COMMON(class_index));
        }
}

TEST(a_bin_that_a_tag_leads_to_is_that_of_its_class)
{
    choose_ids();
    for (uint32_t class_index = 0; class_index < HAK_CLASS_COUNT; class_index++)
        for (size_t i = 0; i < ID_COUNT; i++)
            CHECK_EQ(hak_tag_of(heap_ids[i], class_index) & hak_tag_others(heap_ids[i]),
                     HAK_BIN_OF_CLASS(class_index));
    for (size_t i = 0; i < ID_COUNT; i++)
        CHECK_EQ(HAK_TAG_NONE & hak_tag_others(heap_ids[i]), 0);
}

TEST(no_bin_takes_blocks_of_private_heaps_or_what_is_no_small_block)
{
    choose_ids();
    for (size_t i = 0; i < ID_COUNT; i++) {
        for (size_t k = 0; k < ID_COUNT; k++) {
            uint32_t class_index = (uint32_t)(i + k) % HAK_CLASS_COUNT;
            if (i != k)
                CHECK(!is_bin(hak_tag_of_private(heap_ids[k], class_index), heap_ids[i]));
        }
        CHECK(!is_bin(HAK_TAG_SPAN, heap_ids[i]));
        CHECK(!is_bin(HAK_TAG_HOLE, heap_ids[i]));
    }
}

TEST(a_write_reaches_its_granules_and_no_others)
{
    hak_os_start();
    CHECK(hak_region_start());
    CHECK(hak_region_grow(4).count >= 4);
    int record;
    hak_tag_write(1, 2, 77);
    hak_owner_write(1, 2, &record);
    for (uint32_t i = 0; i < 4; i++) {
        bool is_inside = i == 1 || i == 2;
        CHECK_EQ(hak_tag_read(i), is_inside ? 77 : HAK_TAG_NONE);
        CHECK_EQ(hak_owner_read(i), is_inside ? &record : NULL);
    }
}
