/* SPDX-License-Identifier: MIT */
/* tests/unit/region/tag_map_test.c - what a tag says, and that no two meanings meet. */
#include "base/bits.h"
#include "check.h"
#include "os/os.h"
#include "region/tag_map.h"
#include "slab/size_class.h"

TEST(a_tag_gives_back_its_class_and_leads_to_its_bin)
{
    for (uint32_t class_index = 0; class_index < HAK_ALL_CLASS_COUNT; class_index++) {
        uint32_t tag = hak_tag_of(class_index);
        CHECK(hak_tag_is_slab(tag) && hak_tag_is_class(tag));
        CHECK_EQ(hak_tag_class(tag), class_index);
        CHECK_EQ(tag, HAK_BIN_OF_CLASS(class_index));
        CHECK(tag < HAK_BIN_LIMIT);
    }
}

TEST(other_tags_lead_to_no_bin)
{
    CHECK_EQ(HAK_TAG_NONE, 0); /* whose bin is empty and full */
    CHECK(HAK_TAG_PRIVATE >= HAK_BIN_LIMIT);
    CHECK(HAK_TAG_SPAN >= HAK_BIN_LIMIT);
    CHECK(HAK_TAG_HOLE >= HAK_BIN_LIMIT);
}

TEST(slabs_are_told_from_what_is_none)
{
    CHECK(hak_tag_is_slab(HAK_TAG_PRIVATE) && !hak_tag_is_class(HAK_TAG_PRIVATE));
    CHECK(!hak_tag_is_slab(HAK_TAG_NONE) && !hak_tag_is_class(HAK_TAG_NONE));
    CHECK(!hak_tag_is_slab(HAK_TAG_SPAN) && !hak_tag_is_class(HAK_TAG_SPAN));
    CHECK(!hak_tag_is_slab(HAK_TAG_HOLE) && !hak_tag_is_class(HAK_TAG_HOLE));
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
