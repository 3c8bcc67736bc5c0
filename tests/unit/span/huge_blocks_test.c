/* SPDX-License-Identifier: MIT */
/* tests/unit/span/huge_blocks_test.c - large blocks of programs that fill them lie in huge pages,
 * and nothing else does. If this fails, filling buffers takes twice as long, or sparse blocks are
 * resident whole. */
#include "span/huge_blocks.h"

#include "api/api.h"
#include "base/bits.h"
#include "check.h"
#include "conf/conf.h"
#include "heap/supply.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "os/os_huge.h"
#include "policy/policy_table.h"
#include "process/prewarm.h"
#include "process/start.h"
#include "slabs.h"
#include "span/span_heap.h"
#include "span/span_purge.h"
#include "stats/counters.h"
#include "unit/asan.h"
#include "unit/span/take_large.h"

#define NEVER_SLOW 60000000 /* us */
#define BYTES (16 * HAK_MIB)
#define HUGE_LEAST_BYTES (12 * HAK_MIB) /* of them, whole superslabs, wherever they begin */

static uint64_t asked(void)
{
    return hak_load_relaxed(&hak_stat_globals.huge_blocks);
}

static void fill(unsigned char *block, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 4096)
        block[at] = 1;
}

static unsigned char *take(size_t bytes)
{
    unsigned char *block = take_large(bytes, 16, LARGE_ANY);
    CHECK(block != NULL);
    return block;
}

static unsigned char *take_filled(size_t bytes)
{
    unsigned char *block = take(bytes);
    fill(block, bytes);
    return block;
}

/* A block of which one page in a hundred is touched. */
static unsigned char *take_sparse(size_t bytes)
{
    unsigned char *block = take(bytes);
    for (size_t at = 0; at < bytes; at += (size_t)409600)
        block[at] = 1;
    return block;
}

static void give_purged(void *block)
{
    hak_large_give(block);
    hak_span_purge(UINT64_MAX, 0, 100);
}

static void need_moves(void)
{
    if (hak_large_move(take(2 * HAK_MIB), 3 * HAK_MIB) == NULL)
        SKIP("pages are not moved here");
}

/* Bytes of the window for which the kernel was asked for huge pages. */
static size_t wished_bytes(void)
{
    char line[512];
    uintptr_t from = 0, to = 0, begin, end;
    size_t total = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
            from = begin;
            to = end;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL &&
                   from - hak_region.base < hak_region.window_bytes) {
            total += to - from;
        }
    }
    fclose(file);
    return total;
}

static void start(void)
{
    hak_store_relaxed(&hak_os_fault.huge_pages, HUGE_ON_REQUEST + 1);
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.huge_slow_us, NEVER_SLOW);
    if (HAK_CHECK_LEVEL < 2 || UNDER_ASAN)
        SKIP("the kernel's setting cannot be faked, or other pages are resident");
    unsigned char *block = take_filled(BYTES);
    bool is_told = hak_os_is_resident(block + HAK_GRANULE_BYTES, BYTES / 2);
    void *page = hak_granule_address(hak_granule_of(block));
    bool can_ask = hak_os_wish_huge_pages(page, HAK_GRANULE_BYTES);
    if (is_emulated() && wished_bytes() == 0)
        SKIP("qemu-user does not show what was asked for");
    hak_os_refuse_huge_pages(page, HAK_GRANULE_BYTES);
    if (!is_told || !can_ask || HAK_SUPERSLAB_BYTES != 2 * HAK_MIB)
        SKIP("the kernel does not tell what is resident, or has no huge pages");
}

/* As above, and the next block is to be huge. */
static void start_filled(void)
{
    start();
    take_filled(BYTES);
    CHECK_EQ(asked(), 0);
}

TEST(after_two_filled_blocks_the_next_one_is_huge)
{
    start_filled();
    take(BYTES);
    CHECK_EQ(asked(), 1);
    size_t bytes = wished_bytes();
    CHECK(bytes >= HUGE_LEAST_BYTES && bytes <= BYTES);
}

TEST(blocks_may_be_freed_once_they_were_filled)
{
    start();
    for (int i = 0; i < 4; i++) {
        give_purged(take_filled(BYTES));
    }
    CHECK(asked() >= 2);
}

TEST(blocks_may_be_moved_by_realloc_once_they_were_filled)
{
    start_filled();
    need_moves();
    unsigned char *block = take_filled(2 * BYTES);
    CHECK_EQ(asked(), 1);
    CHECK(hak_large_move(block, 4 * BYTES) != NULL);
    take(4 * BYTES);
    CHECK_EQ(asked(), 2);
}

TEST(sparse_blocks_are_never_huge)
{
    start_filled();
    for (int i = 0; i < 20; i++)
        take_sparse(BYTES); /* expected to be filled */
    uint64_t before = asked();
    CHECK(before <= 4);
    for (int i = 0; i < 20; i++)
        take_sparse(BYTES);
    CHECK_EQ(asked(), before);
}

TEST(after_each_sparse_block_that_was_huge_more_must_be_filled)
{
    start_filled();
    for (uint64_t needed = 2, known = 2; needed <= 16; needed *= 2, known = 0) {
        for (uint64_t before = asked(); asked() == before && known < 20; known++)
            take_filled(BYTES); /* the last of them is huge: those before it were enough */
        CHECK_EQ(known, needed + 1);
        give_purged(take_sparse(BYTES));
    }
}

TEST(blocks_that_are_freed_half_filled_are_sparse)
{
    start();
    for (int i = 0; i < 20; i++) {
        unsigned char *block = take(BYTES);
        fill(block, BYTES / 2);
        give_purged(block);
    }
    CHECK(asked() == 0);
}

TEST(blocks_that_are_filled_later_say_nothing_yet)
{
    start_filled();
    for (int i = 0; i < 3; i++)
        take(BYTES);
    CHECK_EQ(asked(), 3);
}

TEST(a_block_is_huge_up_to_twice_the_longest_that_was_filled)
{
    start_filled();
    take_filled(3 * BYTES);
    CHECK_EQ(asked(), 0);
    take_filled(5 * BYTES);
    CHECK_EQ(asked(), 1);
    take_filled(9 * BYTES); /* huge ones that are filled count, too */
    CHECK_EQ(asked(), 2);
    take(HAK_GIB);
    CHECK_EQ(asked(), 2);
}

TEST(the_end_of_a_huge_block_has_small_pages)
{
    start_filled();
    for (int i = 0; i < 40; i++) {
        size_t before = wished_bytes();
        unsigned char *block = take(BYTES + (size_t)i * HAK_GRANULE_BYTES);
        fill(block, BYTES + (size_t)i * HAK_GRANULE_BYTES);
        size_t bytes = wished_bytes() - before;
        uintptr_t start = (uintptr_t)hak_granule_address(hak_granule_of(block));
        uintptr_t end = (uintptr_t)block + hak_large_usable_bytes(block, "test");
        CHECK_EQ(bytes, hak_align_down(end - (size_t)4 * HAK_GRANULE_BYTES, HAK_SUPERSLAB_BYTES) -
                            hak_align_up(start, HAK_SUPERSLAB_BYTES));
    }
    CHECK_EQ(asked(), 40);
}

TEST(what_is_to_be_zero_is_not_huge_and_says_nothing)
{
    start_filled();
    void *zeros = take_large(BYTES, 16, LARGE_ZERO);
    CHECK(zeros != NULL);
    CHECK_EQ(asked(), 0);
    give_purged(zeros);
    take(BYTES);
    CHECK_EQ(asked(), 1);
}

TEST(four_blocks_are_huge_before_one_is_seen_to_be_filled)
{
    start_filled();
    for (int i = 0; i < 8; i++)
        take(BYTES);
    CHECK_EQ(asked(), 4);
}

TEST(the_longest_filled_block_is_forgotten_in_time)
{
    start();
    take_filled(4 * BYTES);
    for (int i = 0; i < 20; i++)
        take_filled(BYTES);
    uint64_t before = asked();
    CHECK(before >= 18);
    take(4 * BYTES);
    CHECK_EQ(asked(), before);
    take(2 * BYTES);
    CHECK_EQ(asked(), before + 1);
}

TEST(what_a_sparse_block_left_is_refused)
{
    start_filled();
    unsigned char *block = take_sparse(BYTES);
    CHECK(wished_bytes() >= HUGE_LEAST_BYTES);
    hak_large_give(block);
    CHECK_EQ(wished_bytes(), 0);
}

TEST(under_a_limit_none_is_asked_for)
{
    start_filled();
    hak_store_relaxed(&hak_policy.limit_bytes, HAK_GIB);
    take(BYTES);
    CHECK_EQ(asked(), 0);
}

TEST(memory_that_was_prewarmed_says_nothing)
{
    start();
    hak_store_relaxed(&hak_policy.prewarm_bytes, 64 * HAK_MIB);
    hak_prewarm();
    hak_store_relaxed(&hak_policy.prewarm_bytes, 0);
    hak_span_purge(UINT64_MAX, 0, 100);
    take(BYTES);
    CHECK_EQ(asked(), 0);
}

TEST(small_blocks_are_not_looked_at)
{
    start_filled();
    for (int i = 0; i < 20; i++)
        take_sparse(3 * HAK_MIB);
    take(BYTES);
    CHECK_EQ(asked(), 1);
}

TEST(after_slow_huge_pages_blocks_are_small_for_a_while)
{
    start_filled();
    hak_store_relaxed(&hak_policy.huge_slow_us, 0);
    for (int i = 0; i < 2 + 4 + 8; i++)
        take_filled(BYTES);
    CHECK_EQ(asked(), 3); /* 1, 3 and 7 small ones behind them */
}

TEST(blocks_are_watched_before_the_kernels_setting_is_known)
{
    start();
    hak_store_relaxed(&hak_os_fault.huge_pages, 0);
    if (hak_os_huge_pages_are_known())
        SKIP("the setting was read at the start");
    CHECK_EQ(hak_os_huge_pages(), HUGE_ALWAYS);
    for (int i = 0; i < 3; i++)
        take_filled(BYTES);
    CHECK_EQ(asked(), 0);
    hak_store_relaxed(&hak_os_fault.huge_pages, HUGE_ON_REQUEST + 1);
    take(BYTES);
    CHECK_EQ(asked(), 1);
}

TEST(none_is_asked_for_where_huge_pages_come_unasked)
{
    start_filled();
    hak_store_relaxed(&hak_os_fault.huge_pages, HUGE_ALWAYS + 1);
    take(BYTES);
    CHECK_EQ(asked(), 0);
}

TEST(none_is_asked_for_where_the_user_forbids_it)
{
    start_filled();
    hak_conf.number[CONF_thp] = THP_OFF;
    take(BYTES);
    CHECK_EQ(asked(), 0);
}

TEST(what_is_purged_is_refused)
{
    start_filled();
    unsigned char *block = take_filled(BYTES);
    CHECK(wished_bytes() >= HUGE_LEAST_BYTES);
    give_purged(block);
    CHECK_EQ(wished_bytes(), 0);
    CHECK(hak_span_heap_is_sound());
}

TEST(of_what_is_purged_in_part_the_whole_huge_page_is_refused)
{
    start_filled();
    unsigned char *block = take_filled(BYTES);
    size_t before = wished_bytes();
    CHECK(hak_large_resize(block, BYTES - 3 * HAK_MIB));
    hak_span_purge(UINT64_MAX, 0, 100);
    size_t after = wished_bytes();
    CHECK(after >= before - 6 * HAK_MIB && after <= before - 2 * HAK_MIB);
    hak_large_give(block);
}

TEST(what_calloc_purges_is_refused)
{
    start_filled();
    unsigned char *block = take(BYTES);
    CHECK(wished_bytes() >= HUGE_LEAST_BYTES);
    hak_large_give(block);
    CHECK(take_large(BYTES, 16, LARGE_ZERO) == block);
    CHECK_EQ(wished_bytes(), 0);
}

TEST(superslabs_of_small_blocks_are_refused)
{
    static struct slab_owner owner = {.heap_id = 9};
    static struct stat_block stats;
    start_filled();
    unsigned char *block = take_filled(BYTES);
    size_t before = wished_bytes();
    hak_large_give(block);
    for (int i = 0; wished_bytes() == before && i < 1000; i++)
        CHECK(make_slab(hak_class_of(65536), &owner, &stats) != NULL);
    CHECK_EQ(wished_bytes(), before - HAK_SUPERSLAB_BYTES);
}

TEST(what_realloc_moved_pages_out_of_is_refused)
{
    start_filled();
    need_moves();
    unsigned char *block = take_filled(BYTES);
    CHECK(wished_bytes() >= HUGE_LEAST_BYTES);
    unsigned char *moved = hak_large_move(block, 2 * BYTES);
    CHECK(moved != NULL);
    hak_large_give(moved); /* its place is mapped anew */
    CHECK_EQ(wished_bytes(), 0);
}

TEST(advice_that_is_refused_changes_nothing)
{
    start_filled();
    hak_store_relaxed(&hak_os_fault.kinds, FAULT_ADVISE);
    hak_os_fault_every(1);
    take_filled(BYTES);
    hak_os_fault_every(0);
    CHECK_EQ(asked(), 0);
    CHECK_EQ(wished_bytes(), 0);
}
