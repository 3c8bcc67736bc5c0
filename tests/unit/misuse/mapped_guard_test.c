/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "base/bits.h"
#include "hakmem/hakmem.h"
#include "misuse/mapped_guard.h"
#include "region/mappings.h"
#include "unit/misuse/guard.h"

static char *take(size_t bytes, size_t alignment)
{
    CHECK(hak_process_start());
    return hak_mapped_guard_take(bytes, alignment, &here);
}

TEST(a_block_is_zero_aligned_and_ends_at_the_guard)
{
    static const size_t alignments[] = {0, 1, 16, 64, 4096, 65536, 1 << 21};
    uint32_t mappings = hak_mappings_count();
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        for (size_t bytes = 1; bytes < 3000000; bytes = bytes * 3 + 1) {
            size_t alignment = hak_most(alignments[i], 1);
            char *block = take(bytes, alignments[i]);
            CHECK(block != NULL && (size_t)block % alignment == 0);
            CHECK(hak_guarded_holds(block) && hak_guarded_is_live(block));
            CHECK_EQ(hak_guarded_usable_bytes(block, "test"), bytes);
            CHECK_BYTES(block, bytes, 0);
            memset(block, 'x', bytes);
            CHECK_FAULTS(((volatile char *)block)[hak_align_up(bytes, alignment)] = 1);
            give(block);
            CHECK(!hak_guarded_holds(block) && !hak_guarded_is_live(block));
            CHECK_FAULTS(*(volatile char *)block);
        }
    }
    CHECK_EQ(hak_mapped_guards_used, 0);
    CHECK_EQ(hak_mappings_count(), mappings);
}

TEST(a_program_frees_resizes_and_measures_it_like_any_block)
{
    char *block = take(40000, 16);
    memset(block, 'x', 40000);
    CHECK_EQ(hak_malloc_usable_size(block), 40000);
    CHECK_EQ(hakmem_object_size(block + 100), 39900);
    char *grown = hak_realloc(block, 100000);
    CHECK(grown != NULL && !hak_guarded_holds(grown) && grown[0] == 'x' && grown[39999] == 'x');
    CHECK_EQ(hak_mapped_guards_used, 0);
    hak_free(grown);
    hak_free(take(40000, 16));
    CHECK_EQ(hak_mapped_guards_used, 0);
}

TEST(when_all_records_are_taken_there_is_no_block_until_one_is_freed)
{
    char *blocks[HAK_MAPPED_GUARDS];
    for (size_t i = 0; i < HAK_MAPPED_GUARDS; i++) {
        CHECK((blocks[i] = take(20000 + i, 16)) != NULL);
        memset(blocks[i], (int)i, 20000 + i);
    }
    CHECK(take(20000, 16) == NULL);
    struct guarded_sums sums = hak_guarded_sum();
    CHECK_EQ(sums.count, HAK_MAPPED_GUARDS);
    CHECK_EQ(sums.bytes,
             20000 * HAK_MAPPED_GUARDS + HAK_MAPPED_GUARDS * (HAK_MAPPED_GUARDS - 1) / 2);
    give(blocks[5]);
    CHECK((blocks[5] = take(20005, 16)) != NULL);
    CHECK_BYTES(blocks[5], 20005, 0);
    memset(blocks[5], 5, 20005);
    CHECK(take(20000, 16) == NULL);
    for (size_t i = 0; i < HAK_MAPPED_GUARDS; i++) {
        CHECK_EQ(hak_malloc_usable_size(blocks[i]), 20000 + i);
        CHECK_EQ(blocks[i][0], i);
        CHECK_EQ(blocks[i][19999 + i], i);
        give(blocks[i]);
    }
    CHECK_EQ(hak_mapped_guards_used, 0);
}

TEST(misuse_of_a_live_block_is_reported)
{
    char *block = take(20001, 16);
    CHECK_ABORTS((block[20001] = 0, give(block)), "hakmem: overflow: pointer 0x");
    CHECK_ABORTS((block[-1] = 0, give(block)), "hakmem: underflow: pointer 0x");
    CHECK_ABORTS(give(block + 16), "not the start of a guarded block, allocated by thread 12 (me)");
    struct guarded_view view;
    hak_guarded_look(block + 20016, &view); /* in the guard */
    CHECK_EQ(view.block, block);
    CHECK_EQ(view.bytes, 20001);
    give(block);
}

TEST(a_freed_block_is_no_block_of_any_allocator)
{
    char *block = take(20000, 16);
    give(block);
    CHECK_ABORTS(hak_free(block), "no memory is there");
}

/* In debug builds, whose calls of the kernel can be made to fail. */
TEST(where_the_kernel_refuses_there_is_no_block_and_nothing_is_lost)
{
    need_faults();
    CHECK(hak_process_start());
    uint32_t mappings = hak_mappings_count();
    static const enum os_fault_kind kinds[] = {FAULT_MAP, FAULT_PROTECT};
    for (size_t kind = 0; kind < 2; kind++) {
        fail_every(1, kinds[kind]);
        for (size_t i = 0; i < 2 * HAK_MAPPED_GUARDS; i++)
            CHECK(take(20000, 16) == NULL);
        hak_os_fault_every(0);
    }
    CHECK_EQ(hak_mapped_guards_used, 0);
    CHECK_EQ(hak_mappings_count(), mappings);
    give(take(20000, 16));
}

TEST(without_room_for_mappings_there_is_no_block)
{
    CHECK(hak_process_start());
    uint32_t most = hak_mappings_most() - hak_mappings_count();
    CHECK(hak_mappings_take(most));
    CHECK(take(20000, 16) == NULL);
    CHECK_EQ(hak_mapped_guards_used, 0);
    hak_mappings_give(most);
    give(take(20000, 16));
}
