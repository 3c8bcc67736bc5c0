/* SPDX-License-Identifier: MIT */
#include "base/bits.h"
#include "conf/conf.h"
#include "misuse/fence.h"
#include "policy/policy_table.h"
#include "region/mappings.h"
#include "unit/misuse/guard.h"

/* hakmem's own constructor reads them later. */
__attribute__((constructor(102))) static void fence(void)
{
    setenv("HAKMEM_FENCE", "all", 1);
    setenv("HAKMEM_FENCE_QUARANTINE", "1M", 1);
}

static char *take(size_t bytes, size_t alignment)
{
    CHECK(hak_process_start());
    return hak_fence_take(&(struct fence_request){bytes, alignment, 7}, &here);
}

static size_t page_bytes(void)
{
    CHECK(hak_process_start());
    return hak_os_page_bytes();
}

TEST(a_block_is_zero_aligned_and_alone_on_its_pages)
{
    static const size_t alignments[] = {0, 1, 8, 16, 64, 4096, 65536, 1 << 21};
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        for (size_t bytes = 1; bytes < 3000000; bytes = bytes * 3 + 1) {
            char *block = take(bytes, alignments[i]);
            size_t alignment = hak_most(alignments[i], bytes <= 8 ? 8 : 16);
            CHECK(block != NULL && (size_t)block % alignment == 0);
            CHECK(hak_fence_holds(block) && hak_guarded_holds(block));
            CHECK(hak_guarded_is_live(block));
            CHECK_EQ(hak_guarded_usable_bytes(block, "test"), bytes);
            CHECK_BYTES(block, bytes, 0);
            memset(block, 'x', bytes);
            size_t page = page_bytes();
            char *end = (char *)hak_align_up((uintptr_t)block + bytes, page);
            CHECK(alignment >= page || (size_t)(end - block) - bytes < alignment);
            CHECK_FAULTS(*(volatile char *)end = 1);
            give(block);
            CHECK(!hak_guarded_is_live(block));
            CHECK_FAULTS(*(volatile char *)block);
        }
    }
    CHECK_EQ(hak_fence_live_bytes(), 0);
    CHECK_EQ(hak_fence_live_count(), 0);
}

TEST(a_freed_block_is_reported_with_both_stacks)
{
    char *block = take(100, 16);
    give(block);
    CHECK_EQ(check_freed(block).form, 7);
}

TEST(every_byte_around_a_block_on_its_page_is_verified)
{
    size_t page = page_bytes();
    char *block = take(20, 16);
    for (size_t i = 20; i < 32; i++)
        CHECK_ABORTS((block[i] = 0, give(block)), "hakmem: overflow: pointer 0x");
    for (size_t i = 1; i <= page - 32; i += i < 200 ? 1 : 300)
        CHECK_ABORTS((block[-(ptrdiff_t)i] = 0, give(block)), "hakmem: underflow: pointer 0x");
    give(block);
}

TEST(a_run_is_used_again_when_the_quarantine_has_more_than_its_bytes)
{
    size_t run_bytes = HAK_FENCE_UNIT_PAGES * page_bytes();
    char *first = take(16, 16);
    CHECK(first != NULL);
    give(first);
    size_t count = 0;
    for (bool is_again = false; !is_again; count++) {
        char *block = take(16, 16);
        is_again = block == first;
        struct guarded_view view;
        hak_guarded_look(block, &view);
        CHECK_EQ(view.given.addresses[0], 0);
        give(block);
        CHECK(count <= HAK_MIB / run_bytes + 1);
    }
    CHECK(count > HAK_MIB / run_bytes);
}

TEST(other_sizes_do_not_take_its_place_and_it_keeps_its_record)
{
    char *block = take(16, 16);
    give(block);
    for (int i = 0; i < 1000; i++)
        give(take(100000, 16));
    struct guarded_view view;
    hak_guarded_look(block, &view);
    CHECK_EQ(view.block, block);
    CHECK_EQ(view.given.addresses[0], 0x3456789);
}

TEST(address_space_in_use_stays_in_proportion)
{
    for (int i = 0; i < 100; i++)
        for (size_t bytes = 1; bytes < 5000000; bytes = bytes * 2 + 1)
            give(take(bytes, 16));
    CHECK(hak_fence_used_bytes() < 100 * HAK_MIB);
}

TEST(no_run_is_lost_when_many_are_freed_at_once)
{
    enum { COUNT = 300 };
    char *blocks[COUNT];
    size_t run_bytes = HAK_FENCE_UNIT_PAGES * page_bytes();
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < COUNT; i++)
            CHECK((blocks[i] = take(16, 16)) != NULL);
        for (int i = 0; i < COUNT; i++)
            give(blocks[i]);
    }
    CHECK(hak_fence_used_bytes() <= HAK_MIB + (2 * COUNT + 2) * run_bytes);
}

TEST(a_run_is_no_more_than_a_quarter_larger_than_what_it_is_for)
{
    size_t unit = HAK_FENCE_UNIT_PAGES * page_bytes();
    for (size_t units = 1; units < 1000; units = units * 2 + 1) {
        size_t before = hak_fence_used_bytes();
        CHECK(take(units * unit - page_bytes(), 16) != NULL);
        CHECK(hak_fence_used_bytes() - before >= units * unit);
        CHECK(hak_fence_used_bytes() - before <= units * unit * 5 / 4);
        before = hak_fence_used_bytes();
        CHECK(take((units + 2) * unit - page_bytes(), 16) != NULL);
        CHECK(hak_fence_used_bytes() - before <= (units + 2) * unit * 5 / 4);
    }
}

TEST(an_address_between_two_blocks_belongs_to_the_nearer)
{
    size_t page = page_bytes();
    char *first = take(page, 16), *second = take(page, 16);
    CHECK_EQ(second - first, (ptrdiff_t)(HAK_FENCE_UNIT_PAGES * page));
    struct guarded_view view;
    hak_guarded_look(first + page, &view);
    CHECK_EQ(view.block, first);
    hak_guarded_look(second - 1, &view);
    CHECK_EQ(view.block, second);
    hak_guarded_look(first - 1, &view); /* where no run is */
    CHECK_EQ(view.block, first);
    hak_guarded_look(second + 2 * page, &view);
    CHECK_EQ(view.block, second);
    hak_guarded_look(second + 200 * page, &view);
    CHECK_EQ(view.block, 0);
}

TEST(each_live_block_is_one_mapping_and_freed_ones_are_none)
{
    char *blocks[100];
    CHECK(hak_process_start());
    uint32_t before = hak_mappings_count();
    for (int i = 0; i < 100; i++)
        blocks[i] = take(i == 0 ? 0 : (size_t)i * 1000, 16);
    CHECK_EQ(hak_mappings_count() - before, 99);
    for (int i = 0; i < 100; i++)
        give(blocks[i]);
    CHECK_EQ(hak_mappings_count(), before);
}

TEST(near_the_bound_of_mappings_a_sample_is_fenced)
{
    enum { TRIES = 4000 };
    static char *blocks[TRIES];
    CHECK(hak_process_start());
    uint32_t most = (uint32_t)(hak_os_mappings_most() / 4 * 3);
    uint32_t nearly = most - most / 8;
    uint32_t taken = 0, before = hak_mappings_count();
    while (hak_mappings_count() < nearly && hak_mappings_take_for_fence(0))
        taken++;
    int fenced = 0;
    for (int i = 0; i < TRIES; i++)
        fenced += (blocks[i] = take(16, 16)) != NULL;
    CHECK(fenced > TRIES / 20 && fenced < TRIES / 2);
    CHECK(hak_mappings_count() < most);
    for (int i = 0; i < TRIES; i++)
        if (blocks[i] != NULL)
            give(blocks[i]);
    hak_mappings_give(taken);
    CHECK_EQ(hak_mappings_count(), before);
    for (int i = 0; i < 100; i++) {
        blocks[i] = take(16, 16);
        CHECK(blocks[i] != NULL);
    }
}

static void take_until_none(void)
{
    while (hak_mappings_take_for_fence(0))
        continue;
    for (int i = 0; i < 5; i++)
        CHECK(take(16, 16) == NULL);
    abort();
}

TEST(that_is_told)
{
    CHECK_ABORTS(take_until_none(),
                 "hakmem: fence: 0 blocks are fenced, and few of the kernel's mappings "
                 "(vm.max_map_count) are left: from now on only a sample is fenced\n");
}

TEST(where_the_kernel_refuses_there_are_ordinary_blocks_and_nothing_is_lost)
{
    char *block = take(16, 16);
    give(block);
    uint32_t before = hak_mappings_count();
    refuse_each(FAULT_MAP);
    for (int i = 0; i < 10; i++)
        CHECK(take(16, 16) == NULL);
    hak_os_fault_every(0);
    CHECK_EQ(hak_fence_live_count(), 0);
    CHECK_EQ(hak_mappings_count(), before);
    CHECK(take(16, 16) != NULL);
}

TEST(with_a_limit_no_block_is_fenced)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.limit_bytes, HAK_GIB);
    CHECK(take(16, 16) == NULL);
    hak_store_relaxed(&hak_policy.limit_bytes, 0);
    CHECK(take(16, 16) != NULL);
}

TEST(what_others_have_mapped_is_stepped_over)
{
    size_t unit = HAK_FENCE_UNIT_PAGES * page_bytes();
    char *block = take(16, 16);
    char *next = (char *)hak_align_down((uintptr_t)block, page_bytes()) + unit;
    CHECK(hak_os_map(next, page_bytes()) == OS_MAPPED);
    *next = 'x';
    char *second = take(16, 16);
    CHECK(second != NULL && (second < next || second >= next + unit));
    CHECK_EQ(*next, 'x');
}

TEST(no_block_is_fenced_after_a_freeze)
{
    char *block = take(16, 16);
    hak_guarded_freeze();
    CHECK(take(16, 16) == NULL);
    give(block);
}
