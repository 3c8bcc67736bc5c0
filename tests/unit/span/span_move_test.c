/* SPDX-License-Identifier: MIT */
/* tests/unit/span/span_move_test.c - pages move instead of being copied, and nothing is lost when
 * the kernel does not play. */
#define _GNU_SOURCE /* mlock2 */
#include "check.h"
#include "faults.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "os/os_move.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "region/huge_wish.h"
#include "region/tag_map.h"
#include "span/span_heap.h"
#include "span/span_move.h"
#include "span/span_purge.h"
#include "unit/asan.h"
#include "unit/span/take_large.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

#define MIB HAK_MIB

static void fill(unsigned char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 1000)
        block[i] = (unsigned char)(i / 1000 * 7 + 1);
}

static unsigned char *filled(size_t bytes)
{
    CHECK(hak_process_start());
    unsigned char *block = take_large(bytes, 16, LARGE_ANY);
    CHECK(block != NULL);
    fill(block, bytes);
    return block;
}

static void check_filled(const unsigned char *block, size_t bytes)
{
    CHECK(block != NULL);
    for (size_t i = 0; i < bytes; i += 1000)
        if (block[i] != (unsigned char)(i / 1000 * 7 + 1))
            CHECK_EQ(block[i], (unsigned char)(i / 1000 * 7 + 1));
}

static void need_moves(void)
{
    unsigned char *block = filled(2 * MIB);
    unsigned char *moved = hak_large_move(block, 3 * MIB);
    if (moved == NULL)
        SKIP("the kernel has no mremap that keeps the source mapped");
    hak_large_give(moved);
}

/* Lines of /proc/self/maps that lie in the window, without allocating. */
static unsigned window_mappings(void)
{
    static char line[256];
    unsigned count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        uintptr_t start = (uintptr_t)strtoul(line, NULL, 16);
        count += start - hak_region.base < hak_region.window_bytes;
    }
    fclose(maps);
    return count;
}

static void check_everything_is_clean(void)
{
    CHECK_EQ(hak_span_piece_count(), 0);
    CHECK_EQ(hak_large_live_bytes(), 0);
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(hak_span_clean_bytes(), hak_load_relaxed(&hak_region.committed_bytes));
}

TEST(a_block_moves_with_its_contents_and_leaves_zero_memory)
{
    need_moves();
    unsigned char *block = filled(5 * MIB);
    size_t line = (uintptr_t)block % 4096;
    unsigned char *moved = hak_large_move(block, 9 * MIB);
    CHECK(moved != block);
    check_filled(moved, 5 * MIB);
    CHECK_EQ((uintptr_t)moved % 4096, line);
    CHECK(hak_large_usable_bytes(moved, "test") >= 9 * MIB);
    memset(moved + 5 * MIB, 3, 4 * MIB);
    CHECK_EQ(hak_span_piece_count(), 1);
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK_BYTES(block, 5 * MIB, 0);
    CHECK_ABORTS(hak_large_give(block), "invalid free");
    hak_large_give(moved);
    check_everything_is_clean();
}

TEST(whole_page_tables_move_where_the_block_is_long_enough)
{
    need_moves();
    unsigned char *block = filled(5 * MIB);
    unsigned char *moved = hak_large_move(block, 9 * MIB);
    CHECK(moved != NULL);
    CHECK_EQ((uintptr_t)(moved - block) % (2 * MIB), 0);
}

TEST(a_block_that_moves_again_takes_its_pieces_along)
{
    need_moves();
    unsigned before = window_mappings();
    unsigned char *block = filled(2 * MIB);
    size_t bytes = 2 * MIB;
    for (unsigned i = 1; i <= 4; i++) {
        block = hak_large_move(block, 2 * bytes);
        check_filled(block, bytes);
        bytes *= 2;
        fill(block, bytes);
        CHECK_EQ(hak_span_piece_count(), i);
    }
    CHECK(window_mappings() > before);
    hak_large_give(block);
    /* What was first touched on both sides of a piece stays two mappings for the kernel. */
    CHECK(window_mappings() <= before + 1);
    check_everything_is_clean();
}

TEST(blocks_that_move_and_go_leave_few_mappings_behind)
{
    need_moves();
    unsigned before = window_mappings();
    for (unsigned round = 0; round < 50; round++) {
        unsigned char *blocks[8];
        for (unsigned i = 0; i < 8; i++)
            blocks[i] = filled((1 + (round + i) % 3) * MIB + i * 5000);
        for (unsigned i = 0; i < 8; i++) {
            unsigned char *moved = hak_large_move(blocks[i], (4 + (round * i) % 5) * MIB);
            blocks[i] = moved != NULL ? moved : blocks[i];
            memset(blocks[i], 1, hak_large_usable_bytes(blocks[i], "test"));
        }
        for (unsigned i = 0; i < 8; i++)
            hak_large_give(blocks[(i * 3 + round) % 8]);
    }
    CHECK(window_mappings() <= before + 8);
}

/* A block of which the kernel backs the middle by huge pages, if it can: three mappings. */
static unsigned char *divided(size_t bytes)
{
    unsigned char *block = filled(bytes);
    const struct span *span = hak_owner_read(hak_granule_of(block));
    struct granule_range all = {span->first, span->count - 4};
    if (hak_huge_wish(all).count == 0)
        SKIP("the kernel has no huge pages");
    CHECK(hak_span_is_divided(span));
    return block;
}

TEST(a_block_of_several_mappings_moves_with_its_contents)
{
    need_moves();
    uint64_t before = hak_load_relaxed(&hak_os_counters.move_count);
    unsigned char *block = hak_large_move(divided(9 * MIB), 18 * MIB);
    CHECK(block != NULL);
    check_filled(block, 9 * MIB);
    uint64_t moves = hak_load_relaxed(&hak_os_counters.move_count) - before;
    CHECK(moves >= 9 * MIB / HAK_SUPERSLAB_BYTES);
    CHECK_EQ(hak_span_piece_count(), 1);
    unsigned char *again = hak_large_move(block, 36 * MIB); /* they lie at its new place as well */
    CHECK(again != NULL);
    check_filled(again, 9 * MIB);
    CHECK(hak_load_relaxed(&hak_os_counters.move_count) - before >=
          moves + 18 * MIB / HAK_SUPERSLAB_BYTES);
    CHECK(hak_large_resize(again, 20 * MIB));
    check_filled(again, 9 * MIB);
    hak_large_give(again);
    check_everything_is_clean();
}

TEST(a_block_of_which_a_part_cannot_be_moved_stays_as_it_was)
{
    need_moves();
    if (HAK_CHECK_LEVEL < 2)
        SKIP("no call fails");
    hak_store_relaxed(&hak_os_fault.kinds, FAULT_MOVE);
    for (uint32_t loses = 0; loses <= 1; loses++)
        for (uint32_t every = 1; every <= 4; every++) {
            unsigned char *block = divided(9 * MIB);
            hak_store_relaxed(&hak_os_fault.loses_targets, loses);
            hak_os_fault_every(every);
            CHECK(hak_large_move(block, 18 * MIB) == NULL);
            hak_os_fault_every(0);
            check_filled(block, 9 * MIB);
            CHECK_EQ(hak_span_piece_count(), 0);
            hak_large_give(block);
            CHECK(hak_span_heap_is_sound());
        }
}

TEST(what_is_cut_off_a_moved_block_can_be_used_again)
{
    need_moves();
    for (size_t kept = 1; kept < 8; kept += 2) {
        unsigned char *block = hak_large_move(filled(2 * MIB), 4 * MIB);
        block = hak_large_move(block, 8 * MIB);
        CHECK(block != NULL);
        CHECK_EQ(hak_span_piece_count(), 2);
        memset(block + 2 * MIB, 9, 6 * MIB);
        CHECK(hak_large_resize(block, kept * MIB));
        CHECK(hak_span_heap_is_sound());
        check_filled(block, kept < 2 ? MIB : 2 * MIB);
        unsigned char *zero = take_large(3 * MIB, 16, LARGE_ZERO);
        CHECK_BYTES(zero, 3 * MIB, 0);
        hak_large_give(zero);
        CHECK(hak_large_resize(block, (kept + 1) * MIB));
        check_filled(block, kept < 2 ? MIB : 2 * MIB);
        hak_large_give(block);
        check_everything_is_clean();
    }
}

TEST(what_is_cut_off_behind_the_last_piece_has_none)
{
    struct span span = {.count = 48, .piece_count = 1, .piece_ends = {32}}, tail = {.count = 16};
    hak_span_pieces_cut(&span, 32, &tail);
    CHECK_EQ(span.piece_count, 1);
    CHECK_EQ(tail.piece_count, 0);
    hak_span_pieces_cut(&span, 31, &tail);
    CHECK_EQ(span.piece_ends[0], 31);
    CHECK_EQ(tail.piece_count, 1);
    CHECK_EQ(tail.piece_ends[0], 1);
}

TEST(a_block_that_ends_with_its_last_piece_moves_that_piece_once)
{
    need_moves();
    unsigned char *block = hak_large_move(filled(2 * MIB), 4 * MIB);
    CHECK(hak_large_resize(block, 3 * MIB / 2));
    block = hak_large_move(block, 8 * MIB);
    check_filled(block, 3 * MIB / 2);
    CHECK_EQ(hak_span_piece_count(), 1);
    hak_large_give(block);
    check_everything_is_clean();
}

TEST(a_block_may_move_to_less_than_half_of_the_window)
{
    need_moves();
    unsigned char *block = filled(2 * MIB);
    CHECK_EQ(hak_large_move(block, hak_region.window_bytes / 2 + 1), NULL);
    block = hak_large_move(block, hak_region.window_bytes / 5 * 2);
    check_filled(block, 2 * MIB);
    hak_large_give(block);
    check_everything_is_clean();
}

TEST(short_blocks_and_shrinking_ones_do_not_move)
{
    CHECK_EQ(hak_large_move(filled(MIB / 2), 2 * MIB), NULL);
    CHECK_EQ(hak_large_move(filled(4 * MIB), 2 * MIB), NULL);
    CHECK_EQ(hak_large_move(filled(4 * MIB), SIZE_MAX / 2), NULL);
    CHECK_EQ(hak_span_piece_count(), 0);
}

TEST(moves_end_before_the_mappings_do)
{
    need_moves();
    hak_store_relaxed(&hak_policy.moved_pieces_most, 2);
    unsigned char *blocks[3] = {filled(2 * MIB), filled(2 * MIB), filled(2 * MIB)};
    unsigned char *first = hak_large_move(blocks[0], 4 * MIB);
    unsigned char *second = hak_large_move(blocks[1], 4 * MIB);
    CHECK(first != NULL && second != NULL);
    CHECK_EQ(hak_large_move(blocks[2], 4 * MIB), NULL);
    check_filled(blocks[2], 2 * MIB);
    CHECK_EQ(hak_span_piece_count(), 2);
    hak_large_give(first);
    unsigned char *third = hak_large_move(blocks[2], 4 * MIB);
    check_filled(third, 2 * MIB);
    hak_large_give(second);
    hak_large_give(third);
    check_everything_is_clean();
    CHECK(hak_os_mappings_most() > 1000);
}

TEST(a_refused_move_leaves_the_block_and_the_target)
{
    need_faults();
    need_moves();
    unsigned char *block = hak_large_move(filled(2 * MIB), 4 * MIB);
    for (size_t i = 0; i < 4 * MIB; i += 1000)
        block[i] = (unsigned char)(i / 1000 * 7 + 1);
    hak_large_give(take_large(64 * MIB, 16, LARGE_ANY)); /* room, without further calls */
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    for (uint32_t n = 1; n <= 2; n++) { /* the first piece, or the second after the first moved */
        fail_every(n, FAULT_MOVE);
        CHECK_EQ(hak_large_move(block, 8 * MIB), NULL);
        hak_os_fault_every(0);
        check_filled(block, 4 * MIB);
        CHECK_EQ(hak_span_piece_count(), 1);
        CHECK_EQ(hak_span_lost_bytes(), 0);
        CHECK(hak_span_heap_is_sound());
    }
    hak_large_give(block);
    CHECK_EQ(hak_span_piece_count(), 0);
}

TEST(a_target_mapped_by_another_thread_is_never_touched_again)
{
    need_faults();
    need_moves();
    unsigned char *block = filled(2 * MIB);
    hak_large_give(take_large(64 * MIB, 16, LARGE_ANY));
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    size_t clean = hak_span_clean_bytes();
    hak_store_relaxed(&hak_os_fault.loses_targets, 1);
    hak_os_fault_every(1);
    CHECK_EQ(hak_large_move(block, 8 * MIB), NULL);
    hak_os_fault_every(0);
    check_filled(block, 2 * MIB);
    CHECK(hak_span_lost_bytes() >= 8 * MIB);
    CHECK_EQ(hak_span_clean_bytes(), clean - hak_span_lost_bytes());
    CHECK_EQ(hak_span_piece_count(), 0);
    CHECK(hak_span_heap_is_sound());
}

/* Takes the target of a move while it is free, as another thread may. */
static char *foreign;
static void take_free_target(void)
{
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    unsigned char resident;
    for (size_t at = 0; foreign == NULL && at < committed; at += HAK_GRANULE_BYTES) {
        char *page = (char *)hak_region.base + at;
        if (mincore(page, 1, &resident) == 0)
            continue;
        foreign = mmap(page, HAK_GRANULE_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        CHECK_EQ(foreign, page);
        *foreign = 42;
    }
}

TEST(a_target_that_is_taken_while_it_is_free_is_left_to_who_took_it)
{
    need_faults();
    need_moves();
    unsigned char *block = filled(2 * MIB);
    hak_large_give(take_large(64 * MIB, 16, LARGE_ANY));
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    hak_store_relaxed(&hak_os_fault.watch, take_free_target);
    CHECK_EQ(hak_large_move(block, 8 * MIB), NULL);
    hak_store_relaxed(&hak_os_fault.watch, NULL);
    CHECK(foreign != NULL);
    check_filled(block, 2 * MIB);
    CHECK(hak_span_lost_bytes() >= 8 * MIB);
    CHECK(hak_span_heap_is_sound());
    hak_large_give(block);
    CHECK_EQ(*foreign, 42);
}

/* Stripes of advice in the second quarter of the block: many mappings. */
static void divide(unsigned char *block, size_t bytes, int advice)
{
    size_t page = hak_os_page_bytes();
    uintptr_t first = ((uintptr_t)block + page - 1) & ~(uintptr_t)(page - 1);
    for (size_t at = bytes / 4; at < bytes / 2; at += 32 * page)
        if (madvise((char *)first + at, 16 * page, advice) != 0)
            SKIP("the kernel does not know the advice");
}

TEST(a_block_that_the_program_has_divided_stays_and_keeps_its_contents)
{
    need_moves();
    static const int advice[] = {MADV_DONTDUMP, MADV_DONTFORK};
    for (size_t i = 0; i < 2; i++) {
        unsigned char *block = filled(6 * MIB);
        divide(block, 6 * MIB, advice[i]);
        size_t lost = hak_span_lost_bytes();
        CHECK_EQ(hak_large_move(block, 16 * MIB), NULL);
        check_filled(block, 6 * MIB);
        CHECK_EQ(hak_span_lost_bytes(), lost);
        CHECK_EQ(hak_span_piece_count(), 0);
        CHECK(hak_span_heap_is_sound());
    }
}

/* Registers pages in the middle of the block with userfaultfd: a mapping that does not move with
 * others. Nobody answers faults, and there are none: all is touched. */
static void register_middle(unsigned char *block, size_t bytes)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API};
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0)
        SKIP("this process may not handle its page faults");
    size_t page = hak_os_page_bytes();
    uintptr_t middle = ((uintptr_t)block + bytes / 2) & ~(uintptr_t)(page - 1);
    struct uffdio_register pages = {.range = {middle, 16 * page},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (ioctl(fd, UFFDIO_REGISTER, &pages) != 0)
        SKIP("the kernel does not tell of missing pages");
}

TEST(a_block_of_which_the_program_handles_page_faults_keeps_its_contents)
{
    need_moves();
    unsigned char *block = filled(6 * MIB);
    memset(block, 1, 6 * MIB);
    fill(block, 6 * MIB);
    register_middle(block, 6 * MIB);
    CHECK_EQ(hak_large_move(block, 16 * MIB), NULL);
    check_filled(block, 6 * MIB);
    CHECK_EQ(hak_span_lost_bytes(), 0);
    CHECK(hak_span_heap_is_sound());
}

TEST(a_moved_block_whose_range_cannot_be_renewed_takes_no_memory_along)
{
    need_faults();
    need_moves();
    unsigned char *block = hak_large_move(filled(2 * MIB), 4 * MIB);
    CHECK(block != NULL);
    memset(block, 1, 4 * MIB);
    fail_every(1, FAULT_MAP);
    hak_large_give(block);
    hak_os_fault_every(0);
    CHECK(hak_span_lost_bytes() >= 4 * MIB);
    CHECK_BYTES(block, 4 * MIB, 0);
    CHECK(hak_span_heap_is_sound());
}

TEST(locked_memory_stays_locked_and_is_copied)
{
    if (UNDER_ASAN)
        SKIP("the sanitizer ignores mlock");
    need_moves();
    unsigned char *block = filled(2 * MIB);
    hak_large_give(filled(40 * MIB));
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    if (mlock2((void *)hak_region.base, committed, MLOCK_ONFAULT) != 0)
        SKIP("too little memory may be locked");
    if (HAK_CHECK_LEVEL >= 2)
        fail_every(1, FAULT_MAP); /* the target was not touched: it need not be renewed */
    size_t clean = hak_span_clean_bytes();
    CHECK_EQ(hak_large_move(block, 4 * MIB), NULL);
    hak_os_fault_every(0);
    check_filled(block, 2 * MIB);
    CHECK_EQ(hak_span_lost_bytes(), 0);
    CHECK_EQ(hak_span_clean_bytes(), clean);
    CHECK(hak_span_heap_is_sound());
    /* While it is locked, few targets are taken only to be refused. */
    unsigned refused = 0;
    for (unsigned i = 0; i < 200; i++)
        refused += hak_os_may_move();
    CHECK(refused > 0 && refused < 10);
    CHECK_EQ(munlock((void *)hak_region.base, committed), 0);
    unsigned char *moved = NULL;
    for (unsigned i = 0; i < 200 && moved == NULL; i++)
        moved = hak_large_move(block, 4 * MIB);
    check_filled(moved, 2 * MIB);
    CHECK(hak_os_may_move());
}
