/* SPDX-License-Identifier: MIT */
/* tests/unit/region/tag_map_test.c - what a tag word says, and that no two meanings meet. */
#include "check.h"
#include "os/os.h"
#include "region/tag_map.h"
#include "slab/size_class.h"

static const uint32_t heap_ids[] = {1, 2, 255, 256, 0x123456, HAK_HEAP_ID_MOST};
#define ID_COUNT (sizeof heap_ids / sizeof *heap_ids)

TEST(a_tag_gives_back_its_heap_and_its_bin)
{
    for (size_t i = 0; i < ID_COUNT; i++)
        for (uint32_t class_index = 0; class_index < HAK_CLASS_COUNT; class_index++) {
            uint32_t tag = hak_tag_of(heap_ids[i], class_index);
            CHECK_EQ(hak_tag_heap(tag), heap_ids[i]);
            CHECK_EQ(tag & HAK_TAG_BIN_MASK, class_index * HAK_BIN_SCALE);
        }
}

TEST(a_tag_says_whether_frees_of_its_blocks_may_wait)
{
    for (uint32_t class_index = 0; class_index < HAK_CLASS_COUNT; class_index++) {
        uint32_t tag = hak_tag_of(7, class_index);
        CHECK_EQ(hak_tag_class(tag), class_index);
        CHECK_EQ(hak_tag_may_wait(tag), class_index <= HAK_WAITING_CLASS_MAX);
        CHECK(!hak_tag_may_wait(tag | HAK_TAG_PRIVATE));
        CHECK_EQ(hak_tag_class(tag | HAK_TAG_PRIVATE), class_index);
        CHECK_EQ(hak_tag_heap(tag | HAK_TAG_PRIVATE), 7);
    }
}

TEST(only_a_heaps_own_tags_look_like_bins_to_it)
{
    for (size_t i = 0; i < ID_COUNT; i++) {
        uint32_t own = hak_tag_of(heap_ids[i], 0);
        for (size_t k = 0; k < ID_COUNT; k++)
            for (uint32_t class_index = 0; class_index < HAK_CLASS_COUNT; class_index++)
                CHECK_EQ((hak_tag_of(heap_ids[k], class_index) ^ own) < HAK_BIN_LIMIT, i == k);
        CHECK((HAK_TAG_NONE ^ own) >= HAK_BIN_LIMIT);
        CHECK((HAK_TAG_SPAN ^ own) >= HAK_BIN_LIMIT);
        CHECK((HAK_TAG_HOLE ^ own) >= HAK_BIN_LIMIT);
    }
}

TEST(no_tag_looks_like_a_bin_to_a_thread_without_a_heap)
{
    for (size_t i = 0; i < ID_COUNT; i++)
        for (uint32_t class_index = 0; class_index < HAK_CLASS_COUNT; class_index++)
            CHECK((hak_tag_of(heap_ids[i], class_index) ^ HAK_TAG_NO_HEAP) >= HAK_BIN_LIMIT);
    CHECK((HAK_TAG_NONE ^ HAK_TAG_NO_HEAP) >= HAK_BIN_LIMIT);
    CHECK((HAK_TAG_SPAN ^ HAK_TAG_NO_HEAP) >= HAK_BIN_LIMIT);
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
