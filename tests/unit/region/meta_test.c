/* SPDX-License-Identifier: MIT */
/* tests/unit/region/meta_test.c - records for hakmem itself. */
#include "base/limits.h"
#include "check.h"
#include "faults.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "region/meta.h"
#include "region/region.h"

#include <sys/mman.h>

static void start(void)
{
    hak_os_start();
    CHECK(hak_region_start());
}

TEST(records_are_zero_apart_and_on_lines_of_their_own)
{
    start();
    unsigned char *before = NULL;
    for (size_t bytes = 1; bytes < 3000; bytes = bytes * 2 + 5) {
        unsigned char *record = hak_meta_take(bytes);
        CHECK(record != NULL);
        CHECK_EQ((uintptr_t)record % HAK_CACHE_LINE_BYTES, 0);
        CHECK_BYTES(record, bytes, 0);
        memset(record, 0xff, bytes);
        CHECK(before == NULL || record >= before);
        before = record + bytes;
    }
    CHECK(!hak_region_holds(before));
}

TEST(a_record_comes_back_from_its_pool_with_its_contents)
{
    start();
    struct meta_pool pool = {0};
    uint64_t *record = hak_meta_pool_take(&pool, 128);
    record[5] = 42;
    CHECK_EQ(pool.taken_count, 1);
    hak_meta_pool_give(&pool, record);
    CHECK_EQ(pool.taken_count, 0);
    uint64_t *again = hak_meta_pool_take(&pool, 128);
    CHECK_EQ(again, record);
    CHECK_EQ(again[0], 0); /* the pool's link is cleared */
    CHECK_EQ(again[5], 42);
    CHECK(hak_meta_pool_take(&pool, 128) != again);
    CHECK_EQ(pool.taken_count, 2);
}

TEST(a_pool_leaves_no_trace_of_its_links)
{
    start();
    struct meta_pool pool = {0};
    uint64_t *one = hak_meta_pool_take(&pool, 64), *two = hak_meta_pool_take(&pool, 64);
    hak_meta_pool_give(&pool, one);
    hak_meta_pool_give(&pool, two);
    CHECK_EQ(hak_meta_pool_take(&pool, 64), two);
    CHECK_EQ(*two, 0);
    CHECK_EQ(hak_meta_pool_take(&pool, 64), one);
    CHECK_EQ(*one, 0);
}

TEST(a_pool_never_gives_the_record_of_another)
{
    start();
    struct meta_pool one = {0}, other = {0};
    void *record = hak_meta_pool_take(&one, 64);
    hak_meta_pool_give(&one, record);
    CHECK(hak_meta_pool_take(&other, 64) != record);
    CHECK_EQ(hak_meta_pool_take(&one, 64), record);
}

TEST(the_area_grows_by_pieces_and_says_how_far)
{
    start();
    CHECK_EQ(hak_meta_bytes(), 0);
    unsigned char *record = hak_meta_take(100);
    size_t first = hak_meta_bytes();
    CHECK_EQ(first, 64 * HAK_KIB);
    unsigned char *large = hak_meta_take(HAK_MIB);
    CHECK(hak_meta_bytes() > HAK_MIB);
    CHECK_BYTES(large, HAK_MIB, 0);
    memset(large, 1, HAK_MIB);
    CHECK_BYTES(record, 100, 0);
}

TEST(metadata_has_a_share_of_the_window_and_no_more)
{
    start();
    CHECK_EQ(hak_meta_take(hak_region.meta.room_bytes + 1), NULL);
    CHECK(hak_meta_take(64) != NULL);
}

TEST(where_others_are_in_the_way_metadata_goes_on_elsewhere)
{
    start();
    unsigned char *record = hak_meta_take(100);
    memset(record, 1, 100);
    unsigned char *start_of_area = hak_region.meta.start;
    void *place = start_of_area + hak_load_relaxed(&hak_region.meta.usable_bytes);
    CHECK_EQ(mmap(place, 64 * HAK_KIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
             place);
    unsigned char *other = hak_meta_take(200 * HAK_KIB);
    CHECK(other != NULL && hak_region.meta.start != start_of_area);
    CHECK_BYTES(other, 200 * HAK_KIB, 0);
    memset(other, 2, 200 * HAK_KIB);
    CHECK_EQ(record[99], 1);
    CHECK(hak_meta_bytes() >= 264 * HAK_KIB);
    CHECK_EQ(hak_meta_present_bytes(), 0);
}

TEST(a_refusal_of_the_kernel_costs_no_record)
{
    need_faults();
    start();
    struct meta_pool pool = {0};
    hak_os_fault_every(1);
    CHECK_EQ(hak_meta_take(64), NULL);
    CHECK_EQ(hak_meta_pool_take(&pool, 64), NULL);
    hak_os_fault_every(0);
    CHECK_EQ(pool.taken_count, 0);
    CHECK_EQ(hak_meta_bytes(), 0);
    CHECK(hak_meta_pool_take(&pool, 64) != NULL);
}

TEST(records_are_there_before_they_are_asked_for)
{
    start();
    CHECK(hak_meta_take(64) != NULL);
    size_t before = hak_meta_bytes();
    hak_meta_prewarm(HAK_MIB);
    size_t after = hak_meta_bytes();
    CHECK(after >= before + HAK_MIB / 2);
    for (size_t bytes = 0; bytes < HAK_MIB; bytes += 4096) {
        unsigned char *record = hak_meta_take(4096);
        CHECK(record != NULL);
        CHECK_BYTES(record, 4096, 0);
    }
    CHECK_EQ(hak_meta_bytes(), after);
}

TEST(a_reserve_is_left_to_those_who_keep_others_waiting)
{
    start();
    hak_meta_keep_reserve();
    struct meta_pool pool = {0};
    for (size_t bytes = 64; bytes < 200 * HAK_KIB; bytes += 3000) {
        CHECK(hak_meta_take(bytes) != NULL);
        size_t before = hak_meta_bytes();
        for (size_t left = 32 * HAK_KIB; left >= 320; left -= 320)
            CHECK(hak_meta_pool_take_reserved(&pool, 320) != NULL);
        CHECK_EQ(hak_meta_bytes(), before);
    }
}

TEST(the_reserve_serves_all_where_no_more_memory_can_be_had)
{
    need_faults();
    start();
    hak_meta_keep_reserve();
    CHECK(hak_meta_take(100) != NULL);
    size_t before = hak_meta_bytes(), taken = HAK_CACHE_LINE_BYTES * 2;
    hak_os_fault_every(1);
    while (hak_meta_take(HAK_CACHE_LINE_BYTES) != NULL)
        taken += HAK_CACHE_LINE_BYTES;
    hak_os_fault_every(0);
    CHECK_EQ(taken, before);
    CHECK(hak_meta_take(HAK_CACHE_LINE_BYTES) != NULL);
}

TEST(more_records_than_can_be_had_are_done_without)
{
    start();
    size_t before = hak_meta_bytes();
    hak_meta_prewarm(SIZE_MAX / 2);
    CHECK_EQ(hak_meta_bytes(), before);
    CHECK(hak_meta_take(64) != NULL);
}
