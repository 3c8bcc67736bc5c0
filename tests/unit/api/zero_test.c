/* SPDX-License-Identifier: MIT */
/* tests/unit/api/zero_test.c - calloc knows which memory is zero: it leaves that alone, and clears
 * all other. */
#define _GNU_SOURCE /* mlock2 */
#include "api/api.h"
#include "check.h"
#include "faults.h"
#include "heap/census.h"
#include "heap/heaps.h"
#include "os/confine.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "os/os_huge.h"
#include "process/reclaim.h"
#include "unit/asan.h"
#include "unit/resident.h"

#include <sys/resource.h>

enum { ROUND_BYTES = 8 * 1024 * 1024, BLOCKS_MOST = ROUND_BYTES / 1024 };

/* Through all classes to large blocks. From the third on calloc asks what is zero. */
static const size_t sizes[] = {
    1024, 1500, HAK_ZERO_KNOWLEDGE_BYTES, 5000, 16384, 40000, 131072, 200000, 1000000, 8388608};
enum { SIZE_COUNT = sizeof sizes / sizeof *sizes, FIRST_ASKED = 2 };

static unsigned char *blocks[BLOCKS_MOST];

static size_t count_of(size_t bytes)
{
    return ROUND_BYTES / bytes;
}

static void take_all(size_t bytes)
{
    for (size_t i = 0; i < count_of(bytes); i++)
        CHECK((blocks[i] = hak_calloc(1, bytes)) != NULL);
}

static void poison_all(size_t bytes)
{
    for (size_t i = 0; i < count_of(bytes); i++)
        memset(blocks[i], 0xdb, bytes);
}

static void free_all(size_t bytes)
{
    for (size_t i = 0; i < count_of(bytes); i++)
        hak_free(blocks[i]);
}

static void check_all_zero(size_t bytes)
{
    for (size_t i = 0; i < count_of(bytes); i++)
        CHECK_BYTES(blocks[i], bytes, 0);
}

TEST(calloc_does_not_touch_fresh_memory)
{
    refuse_huge_pages();
    for (int i = FIRST_ASKED; i < SIZE_COUNT; i++) {
        size_t before = window_resident_bytes();
        take_all(sizes[i]);
        CHECK_EQ(window_resident_bytes(), before);
        check_all_zero(sizes[i]);
    }
}

TEST(calloc_does_not_touch_memory_that_went_back_to_the_kernel)
{
    refuse_huge_pages();
    for (int i = FIRST_ASKED; i < SIZE_COUNT; i++) {
        take_all(sizes[i]);
        poison_all(sizes[i]);
        size_t poisoned = window_resident_bytes();
        free_all(sizes[i]);
        hak_reclaim_trim(0);
        size_t before = window_resident_bytes();
        CHECK(before + ROUND_BYTES / 2 < poisoned);
        take_all(sizes[i]);
        CHECK_EQ(window_resident_bytes(), before);
        check_all_zero(sizes[i]);
        poison_all(sizes[i]);
        free_all(sizes[i]);
    }
}

/* A bin without blocks is filled where no memory is untouched: each block alone would have to be
 * taken under the lock of its heap. */
TEST(calloc_fills_bins_where_memory_was_used_before)
{
    take_all(8192);
    free_all(8192);
    hak_thread_flush();
    uint64_t before = hak_census_counter(HAK_STAT_refills);
    take_all(8192);
    uint64_t refills = hak_census_counter(HAK_STAT_refills) - before;
    CHECK(refills > 0 && refills < count_of(8192) * 2 / 3);
    check_all_zero(8192);
}

/* Each round meets what the one before left, blocks of all sizes side by side. */
TEST(calloc_clears_poisoned_memory_of_every_size)
{
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < SIZE_COUNT; i++) {
            take_all(sizes[i]);
            check_all_zero(sizes[i]);
            poison_all(sizes[i]);
            free_all(sizes[i]);
            if (round == 1)
                hak_thread_flush();
        }
}

TEST(calloc_of_locked_memory_is_zero_whether_or_not_the_kernel_takes_it_back)
{
    if (UNDER_ASAN)
        SKIP("the sanitizer ignores mlock");
    for (int i = 0; i < SIZE_COUNT; i++) {
        take_all(sizes[i]);
        poison_all(sizes[i]);
        size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
        if (mlock2((void *)hak_region.base, committed, MLOCK_ONFAULT) != 0)
            SKIP("too little memory may be locked");
        free_all(sizes[i]);
        fail_every((uint32_t)i % 3, FAULT_ADVISE); /* as before Linux 5.18 */
        hak_reclaim_trim(0);
        hak_os_fault_every(0);
        take_all(sizes[i]);
        check_all_zero(sizes[i]);
        poison_all(sizes[i]);
        free_all(sizes[i]);
        CHECK_EQ(munlock((void *)hak_region.base, committed), 0);
    }
}

static void check_cost_of_long_blocks(void)
{
    enum { ROUNDS = 50, STEP_BYTES = 100 * 4096 };
    size_t bytes = 64 * HAK_MIB;
    struct rusage before, after;
    uint64_t calls = 0;
    getrusage(RUSAGE_SELF, &before);
    for (int round = 0; round <= ROUNDS; round++) {
        if (round == 1) {
            getrusage(RUSAGE_SELF, &before);
            calls = hak_load_relaxed(&hak_os_counters.advise_count);
        }
        unsigned char *block = hak_calloc(1, bytes);
        CHECK(block != NULL);
        for (size_t i = 0; i < bytes; i += STEP_BYTES) {
            block[i] = 1; /* reading first would be a fault of its own */
            CHECK_EQ(block[i + 1], 0);
        }
        hak_free(block);
    }
    getrusage(RUSAGE_SELF, &after);
    long touched = ROUNDS * (long)((bytes + STEP_BYTES - 1) / STEP_BYTES);
    CHECK(UNDER_ASAN || after.ru_minflt - before.ru_minflt <= touched + touched / 10);
    CHECK(hak_load_relaxed(&hak_os_counters.advise_count) - calls <= ROUNDS);
}

/* Whatever is thought of the machine's huge pages, which it supplies none of here. */
TEST(calloc_of_a_long_block_costs_what_is_touched_and_one_call)
{
    refuse_huge_pages();
    for (uint32_t setting = HUGE_NEVER; setting <= HUGE_ALWAYS; setting++) {
        hak_store_relaxed(&hak_os_fault.huge_pages, setting + 1);
        check_cost_of_long_blocks();
    }
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* Each page of the block, but for one in `skipped`. */
static void use_most(size_t bytes, size_t skipped)
{
    unsigned char *block = hak_calloc(1, bytes);
    CHECK(block != NULL);
    for (size_t i = 0; i < bytes; i += 4096)
        if (i / 4096 % skipped != 0) {
            CHECK_EQ(block[i], 0);
            block[i] = 0xdb;
        }
    hak_free(block);
}

TEST(calloc_of_a_long_block_that_is_used_costs_few_faults)
{
    enum { ROUNDS = 200, PAGES = 8 * 1024 * 1024 / 4096 };
    if (UNDER_ASAN)
        SKIP("the sanitizer keeps what is freed");
    refuse_huge_pages();
    use_most(8 * HAK_MIB, PAGES + 1);
    long before = faults();
    for (int round = 0; round < ROUNDS; round++)
        use_most(8 * HAK_MIB, PAGES + 1);
    CHECK(faults() - before <= 3 * PAGES); /* once in 128 times it is tried whether few would do */
    use_most(8 * HAK_MIB, 2);
    before = faults();
    for (int round = 0; round < ROUNDS; round++)
        use_most(8 * HAK_MIB, 2);
    CHECK(faults() - before >= (ROUNDS - 129) * PAGES / 4);
}

/* Each page of a half of the block. */
static void use_half(size_t bytes, size_t from)
{
    unsigned char *block = hak_calloc(1, bytes);
    CHECK(block != NULL);
    for (size_t i = from; i < from + bytes / 2; i += 4096) {
        CHECK_EQ(block[i], 0);
        block[i] = 0xdb;
    }
    hak_free(block);
}

TEST(calloc_of_a_long_block_of_which_a_half_is_used_costs_few_faults)
{
    enum { ROUNDS = 100, HALF_PAGES = 4 * 1024 * 1024 / 4096 };
    if (UNDER_ASAN)
        SKIP("the sanitizer keeps what is freed");
    refuse_huge_pages();
    for (size_t from = 0; from <= 4 * HAK_MIB; from += 4 * HAK_MIB) {
        use_half(8 * HAK_MIB, from);
        long before = faults();
        for (int round = 0; round < ROUNDS; round++)
            use_half(8 * HAK_MIB, from);
        CHECK(faults() - before <= 4 * HALF_PAGES); /* and once in 128 times all goes */
    }
}

TEST(calloc_of_a_long_block_is_zero_where_the_kernel_tells_nothing)
{
    refuse_huge_pages();
    for (int round = 0; round < 5; round++) {
        hak_store_relaxed(&hak_os_confined, round >= 2);
        unsigned char *block = hak_calloc(1, 8 * HAK_MIB);
        CHECK(block != NULL);
        CHECK_BYTES(block, 8 * HAK_MIB, 0);
        memset(block, 0xdb, 8 * HAK_MIB);
        hak_free(block);
    }
    hak_store_relaxed(&hak_os_confined, false);
}

/* A slab for it is made in used memory, and serves it: it does not go back first. */
TEST(calloc_in_used_memory_makes_one_slab)
{
    enum { BYTES = 50000 };
    unsigned char *block = hak_malloc(BYTES);
    CHECK(block != NULL);
    memset(block, 0xdb, BYTES);
    hak_free(block);
    hak_heap_retire_spares(hak_heap_near(), UINT32_MAX);
    uint64_t made = hak_census_counter(HAK_STAT_recycled_slabs);
    uint64_t retired = hak_census_counter(HAK_STAT_retired_slabs);
    block = hak_calloc(1, BYTES);
    CHECK(block != NULL);
    CHECK_BYTES(block, BYTES, 0);
    CHECK_EQ(hak_census_counter(HAK_STAT_recycled_slabs), made + 1);
    CHECK_EQ(hak_census_counter(HAK_STAT_retired_slabs), retired);
}
