/* SPDX-License-Identifier: MIT */
#include "base/bits.h"
#include "misuse/sampled_guard.h"
#include "region/mappings.h"
#include "unit/misuse/guard.h"

/* hakmem's own constructor reads it later. */
__attribute__((constructor(102))) static void guard(void)
{
    setenv("HAKMEM_GUARD_RATE", "1M", 1);
}

static char *take(size_t bytes, size_t alignment)
{
    CHECK(hak_process_start());
    return hak_sampled_guard_take(bytes, alignment, &here);
}

static size_t slots_that_fit(size_t bytes)
{
    CHECK(hak_process_start());
    size_t pages_bytes = hak_align_up(bytes, hak_os_page_bytes());
    return hak_least(HAK_SAMPLED_GUARD_SLOTS, HAK_SAMPLED_GUARD_BYTES_MOST / pages_bytes);
}

TEST(a_block_is_zero_aligned_and_ends_at_the_guard)
{
    static const size_t alignments[] = {16, 64, 1024, 4096};
    for (size_t i = 0; i < 4; i++) {
        for (size_t bytes = 0; bytes <= hak_sampled_guard_slot_bytes(); bytes = bytes * 2 + 1) {
            char *block = take(bytes, alignments[i]);
            CHECK(block != NULL && (size_t)block % alignments[i] == 0);
            CHECK(hak_guarded_holds(block) && hak_guarded_is_live(block));
            CHECK_EQ(hak_guarded_usable_bytes(block, "test"), bytes);
            CHECK_BYTES(block, bytes, 0);
            memset(block, 'x', bytes);
            size_t placed = hak_align_up(bytes == 0 ? 1 : bytes, alignments[i]);
            CHECK_FAULTS(((volatile char *)block)[placed] = 1);
            give(block);
            CHECK(!hak_guarded_is_live(block));
            CHECK_FAULTS(*(volatile char *)block);
        }
    }
}

TEST(what_no_slot_can_have_does_not_fit)
{
    CHECK(hak_process_start());
    CHECK(hak_sampled_guard_fits(0, 1));
    CHECK(hak_sampled_guard_fits(hak_sampled_guard_slot_bytes(), hak_os_page_bytes()));
    CHECK(!hak_sampled_guard_fits(hak_sampled_guard_slot_bytes() + 1, 16));
    CHECK(!hak_sampled_guard_fits(16, 2 * hak_os_page_bytes()));
}

/* As many blocks as there is room for, and no more. */
static void take_all(char **blocks, size_t bytes)
{
    size_t most = slots_that_fit(bytes);
    for (size_t i = 0; i < most; i++)
        CHECK((blocks[i] = take(bytes, 16)) != NULL);
    CHECK(take(bytes, 16) == NULL);
}

TEST(when_all_slots_are_taken_there_is_no_block_until_one_is_freed)
{
    size_t most = slots_that_fit(1);
    char *blocks[HAK_SAMPLED_GUARD_SLOTS];
    take_all(blocks, 1);
    CHECK_EQ(hak_guarded_sum().count, most);
    CHECK_EQ(hak_guarded_sum().bytes, most);
    give(blocks[most / 2]);
    CHECK((blocks[most / 2] = take(1, 16)) != NULL);
    CHECK(take(1, 16) == NULL);
    for (size_t i = 0; i < most; i++)
        give(blocks[i]);
    CHECK_EQ(hak_guarded_sum().count, 0);
    CHECK_EQ(hak_guarded_sum().bytes, 0);
    take_all(blocks, hak_sampled_guard_slot_bytes()); /* their bytes are free again, too */
}

TEST(slots_are_used_again_oldest_first)
{
    char *blocks[HAK_SAMPLED_GUARD_SLOTS];
    for (size_t i = 0; i < HAK_SAMPLED_GUARD_SLOTS; i++) {
        CHECK((blocks[i] = take(16, 16)) != NULL); /* no slot was used before */
        for (size_t j = 0; j < i; j++)
            CHECK(blocks[j] != blocks[i]);
        give(blocks[i]);
    }
    for (size_t i = 0; i < 3 * HAK_SAMPLED_GUARD_SLOTS; i++) {
        char *block = take(16, 16);
        CHECK_EQ(block, blocks[i % HAK_SAMPLED_GUARD_SLOTS]);
        give(block);
    }
}

TEST(a_freed_block_is_reported_with_both_stacks)
{
    char *block = take(100, 16);
    give(block);
    check_freed(block);
    CHECK_ABORTS(hak_guarded_usable_bytes(block, "invalid realloc"), "hakmem: invalid realloc:");
}

TEST(what_is_written_around_a_block_is_seen_when_it_is_freed)
{
    char *block = take(20, 16);
    for (size_t i = 20; i < 32; i++) {
        CHECK_ABORTS((block[i] = 0, give(block)), "hakmem: overflow: pointer 0x");
        CHECK_ABORTS((block[i] = 1, give(block)), "behind this guarded block were overwritten");
    }
    for (size_t i = 1; i <= 128; i++)
        CHECK_ABORTS((block[-(ptrdiff_t)i] = 0, give(block)), "hakmem: underflow: pointer 0x");
    CHECK_ABORTS(give(block + 16), "hakmem: invalid free: pointer 0x");
    give(block);
}

TEST(an_address_in_a_guard_belongs_to_the_nearer_block)
{
    char *first = take(16, 16), *second = take(16, 16);
    if (first > second) {
        char *other = first;
        first = second;
        second = other;
    }
    struct guarded_view view;
    hak_guarded_look(first + 16, &view);
    CHECK_EQ(view.block, first);
    hak_guarded_look(first + 16 + hak_os_page_bytes() - 1, &view);
    CHECK_EQ(view.block, second);
}

TEST(where_the_kernel_refuses_there_are_ordinary_blocks_and_nothing_is_lost)
{
    char *block = take(16, 16);
    give(block);
    refuse_each(FAULT_PROTECT);
    for (size_t i = 0; i < 2 * HAK_SAMPLED_GUARD_SLOTS; i++)
        CHECK(take(16, 16) == NULL);
    hak_os_fault_every(0);
    CHECK_EQ(hak_guarded_sum().bytes, 0);
    char *blocks[HAK_SAMPLED_GUARD_SLOTS];
    take_all(blocks, hak_sampled_guard_slot_bytes());
}

TEST(memory_that_the_kernel_does_not_take_back_is_still_zeroed)
{
    refuse_each(FAULT_ADVISE);
    for (size_t i = 0; i < 2 * HAK_SAMPLED_GUARD_SLOTS; i++) {
        char *block = take(1000, 16);
        CHECK(block != NULL);
        CHECK_BYTES(block, 1000, 0);
        memset(block, 'x', 1000);
        give(block);
    }
}

TEST(without_room_for_mappings_no_block_is_guarded)
{
    CHECK(hak_process_start());
    uint32_t most = hak_mappings_most() - hak_mappings_count();
    CHECK(hak_mappings_take(most));
    CHECK(take(16, 16) == NULL);
    hak_mappings_give(most);
    CHECK(take(16, 16) != NULL);
}
