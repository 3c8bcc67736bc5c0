/* SPDX-License-Identifier: MIT */
#define MEMBERS "exact"
#include "../../attack/hardened.h"
#include "misuse/mark.h"

TEST(a_mark_holds_all_properties_of_a_block)
{
    struct mark mark = {.bytes = HAK_WINDOW_BYTES_MAX,
                        .generation = 1023,
                        .state = MARK_CLEARED,
                        .kind = MARK_NEW_ARRAY,
                        .alignment_shift = 41,
                        .is_guarded = true};
    struct mark read = hak_mark_unpack(hak_mark_pack(mark));
    CHECK_EQ(read.bytes, mark.bytes);
    CHECK_EQ(read.generation, mark.generation);
    CHECK_EQ(read.state, mark.state);
    CHECK_EQ(read.kind, mark.kind);
    CHECK_EQ(read.alignment_shift, mark.alignment_shift);
    CHECK(read.is_guarded);
    CHECK_EQ(hak_mark_unpack(0).state, MARK_NONE);
}

TEST(generations_begin_again_and_touch_nothing_else)
{
    struct mark mark = {.bytes = 5, .generation = 1024, .state = MARK_LIVE};
    struct mark read = hak_mark_unpack(hak_mark_pack(mark));
    CHECK_EQ(read.generation, 0);
    CHECK_EQ(read.bytes, 5);
}

TEST(a_block_has_a_mark_and_what_was_never_marked_has_none)
{
    char *block = take_some(100);
    uint64_t word = hak_load_relaxed(hak_mark_at(block));
    CHECK_EQ(hak_mark_unpack(word).state, MARK_LIVE);
    CHECK_EQ(hak_mark_unpack(word).bytes, 100);
    CHECK(hak_mark_is_still(hak_mark_at(block), word));
    hak_free(block);
    CHECK(!hak_mark_is_still(hak_mark_at(block), word));
    CHECK(hak_mark_at((char *)hak_region.base + hak_region.window_bytes - 64) == NULL);
}
