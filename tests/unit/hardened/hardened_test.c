/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "../../attack/hardened.h"
#include "api/api.h"
#include "heap/address_info.h"
#include "heap/cache.h"
#include "heap/limit.h"
#include "heap/refill.h"
#include "misuse/mark.h"
#include "public.h"
#include "stay.h"
#include "unit/smaps.h"

#include <pthread.h>

TEST(the_usable_size_is_what_was_asked_for)
{
    for (size_t bytes = 1; bytes < 400000; bytes += bytes / 3 + 1) {
        char *block = take_some(bytes);
        CHECK_EQ(hak_malloc_usable_size(block), bytes);
        memset(block, 'x', bytes);
        hak_free(block);
    }
}

TEST(the_good_size_of_a_request_is_usable_only_where_it_was_requested)
{
    size_t good = hakmem_good_size(1000);
    char *block = take_some(1000), *whole = take_some(good);
    CHECK(good > 1000);
    CHECK_EQ(hakmem_usable_size(block), 1000);
    CHECK_EQ(hakmem_usable_size(whole), good);
    hak_free(block);
    hak_free(whole);
}

TEST(a_block_that_is_resized_keeps_its_contents_and_loses_no_canary)
{
    size_t bytes = 1;
    char *block = take_some(bytes);
    block[0] = 'a';
    for (int i = 0; i < 2000; i++) {
        size_t wished = 1 + (size_t)i * 7919 % 300000;
        block = hak_realloc(block, wished);
        CHECK(block != NULL && block[0] == 'a');
        if (wished > bytes)
            CHECK_EQ(block[bytes - 1], bytes == 1 ? 'a' : 'z');
        memset(block + 1, 'z', wished - 1);
        bytes = wished;
    }
    hak_free(block);
}

TEST(blocks_are_aligned_as_asked_and_end_before_a_guard)
{
    for (size_t alignment = 1; alignment <= 4 * HAK_MIB; alignment *= 2) {
        char *block = volatile_block(hak_aligned_alloc(alignment, 100));
        CHECK_EQ((uintptr_t)block % alignment, 0);
        char *large = volatile_block(hak_aligned_alloc(alignment, SPAN_BYTES));
        CHECK_EQ((uintptr_t)large % alignment, 0);
        memset(large, 'x', SPAN_BYTES);
        hak_free(block);
        hak_free(large);
    }
}

TEST(ready_blocks_are_there_for_the_slow_path_alone)
{
    char *blocks[64];
    stay_here();
    uint32_t class_index = hak_slab_at(take_some(100))->class_index, refills = 0;
    struct cache *cache = hak_own_cache();
    for (int i = 0; i < 64; i++) {
        uint32_t held = hak_cache_count(cache, class_index);
        blocks[i] = take_some(100);
        refills += hak_cache_count(cache, class_index) > held;
        CHECK(hak_bin_pop(class_index) == NULL && !hak_bin_push(class_index, blocks[i]));
    }
    CHECK(hak_cache_capacity(cache, class_index) >= 1);
    CHECK(HAK_TINY || (refills > 1 && refills < 32));
    CHECK_EQ(hak_word_peek(&hak_bins_of[cache->id]), &hak_bins_closed);
    uint32_t held = hak_cache_count(cache, class_index);
    for (int i = 0; i < 64; i++)
        hak_free(blocks[i]);
    CHECK_EQ(hak_cache_count(cache, class_index), held); /* freed blocks go another way */
    hak_thread_flush();
    CHECK_EQ(hak_cache_count(cache, class_index), 0);
}

TEST(bins_that_move_to_more_memory_stay_closed_to_others)
{
    if (HAK_TINY)
        SKIP("bins of two blocks need no more memory");
    stay_here();
    take_some(1);
    struct cache *cache = hak_own_cache();
    uint32_t words = cache->word_count;
    for (size_t bytes = 1; bytes <= 4096; bytes += 16)
        for (int i = 0; i < 100; i++)
            take_some(bytes);
    CHECK(cache->word_count > words);
    CHECK_EQ(hak_word_peek(&hak_bins_of[cache->id]), &hak_bins_closed);
    CHECK(hak_cache_is_sound(cache));
}

TEST(quarantined_blocks_are_withheld_not_live)
{
    char *blocks[100];
    hak_free(take_some(1));
    struct hakmem_stats before = stats_now();
    for (int i = 0; i < 100; i++)
        blocks[i] = take_some(1000);
    char *large = take_some(SPAN_BYTES);
    struct hakmem_stats full = stats_now();
    CHECK(full.small_live_bytes >= before.small_live_bytes + 100 * 1000);
    CHECK(full.large_live_bytes >= before.large_live_bytes + SPAN_BYTES);
    CHECK_EQ(full.remote_free_bytes, before.remote_free_bytes);
    for (int i = 0; i < 100; i++)
        hak_free(blocks[i]);
    hak_free(large);
    struct hakmem_stats after = stats_now();
    CHECK_EQ(after.live_bytes, before.live_bytes);
    CHECK_EQ(after.small_live_block_count, before.small_live_block_count);
    CHECK_EQ(after.large_live_block_count, before.large_live_block_count);
    CHECK_EQ(after.remote_free_bytes - before.remote_free_bytes,
             full.live_bytes - before.live_bytes);
    hak_thread_flush();
    CHECK_EQ(stats_now().remote_free_bytes, 0);
}

static void *free_some_and_end(void *argument)
{
    for (int i = 0; i < 100; i++)
        hak_free(take_some(1000));
    hak_free(take_some(SPAN_BYTES));
    return argument;
}

TEST(what_ended_threads_withheld_is_there_when_memory_is_asked_back)
{
    pthread_t thread;
    hak_free(take_some(1));
    hak_thread_flush();
    CHECK_EQ(pthread_create(&thread, NULL, free_some_and_end, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(stats_now().remote_free_bytes >= 100 * 1000 + SPAN_BYTES);
    hakmem_trim(0);
    CHECK_EQ(stats_now().remote_free_bytes, 0);
}

TEST(all_pages_are_accounted_for_with_marks_and_guards)
{
    static char *blocks[4000];
    for (int i = 0; i < 4000; i++)
        memset(blocks[i] = take_some(1 + (size_t)i % 3000), 1, 1);
    struct hakmem_residency full = check_residency_adds_up();
    CHECK(full.mark_end - full.mark_start > 0);
    CHECK(full.live_bytes > full.retained_bytes);
    for (int i = 0; i < 4000; i++)
        hak_free(blocks[i]);
    hak_thread_flush();
    CHECK(check_residency_adds_up().live_bytes < full.live_bytes / 4);
}

TEST(marks_are_returned_with_their_memory)
{
    static char *blocks[20000];
    for (int i = 0; i < 20000; i++)
        blocks[i] = take_some(1000);
    uint64_t full = check_residency_adds_up().metadata_bytes;
    for (int i = 0; i < 20000; i++)
        hak_free(blocks[i]);
    hak_malloc_trim(0);
    uint64_t trimmed = check_residency_adds_up().metadata_bytes;
    CHECK(full > 20000 * 1000 / 5);
    CHECK(trimmed < full / 2);
}

TEST(large_blocks_obey_the_limit)
{
    CHECK_EQ(hakmem_option_set("limit", "64M"), 0);
    CHECK(hak_malloc(65 * HAK_MIB) == NULL);
    char *most = take_some(40 * HAK_MIB);
    CHECK(hak_malloc(30 * HAK_MIB) == NULL);
    hak_free(most);
    hak_free(take_some(40 * HAK_MIB));
}

/* Marks become usable up to where a block begins: the next one brings those of the whole block. */
TEST(the_marks_of_a_block_count_before_they_are_there)
{
    CHECK_EQ(hakmem_option_set("limit", "64M"), 0);
    CHECK(hak_malloc(52 * HAK_MIB) == NULL);
    char *large = take_some(46 * HAK_MIB);
    char *behind = take_some(SPAN_BYTES);
    CHECK(hak_held_bytes() >= 57 * HAK_MIB && hak_held_bytes() <= 64 * HAK_MIB);
    hak_free(large);
    hak_free(behind);
}

static pthread_barrier_t barrier;

/* Frees 160 MiB, and lives on without a call. */
static void *free_much_and_stay(void *argument)
{
    for (int i = 0; i < 40; i++)
        hak_free(take_some(4 * HAK_MIB));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return argument;
}

static void check_there_is_room(size_t bytes)
{
    pthread_t thread;
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
    CHECK_EQ(pthread_create(&thread, NULL, free_much_and_stay, NULL), 0);
    pthread_barrier_wait(&barrier);
    hak_free(take_some(bytes));
    pthread_barrier_wait(&barrier);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(large_blocks_in_the_quarantine_of_another_thread_leave_room_under_a_limit)
{
    CHECK_EQ(hakmem_option_set("limit", "128M"), 0);
    check_there_is_room(96 * HAK_MIB);
}

TEST(large_blocks_in_the_quarantine_of_another_thread_leave_room_in_little_address_space)
{
    hak_free(take_some(1));
    hak_store_relaxed(&hak_region.most_bytes, 256 * HAK_MIB);
    check_there_is_room(1);
    CHECK(stats_now().remote_free_bytes < 256 * HAK_MIB / 8);
}

TEST(a_large_block_waits_under_a_limit_if_it_is_small_beside_it)
{
    CHECK_EQ(hakmem_option_set("limit", "64M"), 0);
    hak_free(take_some(SPAN_BYTES));
    CHECK(stats_now().remote_free_bytes >= SPAN_BYTES);
    hak_free(take_some(40 * HAK_MIB)); /* and one that is not goes home at once */
    CHECK(stats_now().remote_free_bytes >= SPAN_BYTES);
    CHECK(stats_now().remote_free_bytes < 40 * HAK_MIB);
}

TEST(addresses_in_quarantine_guards_and_marks_are_distinguished)
{
    char *small = take_some(1000), *large = take_some(SPAN_BYTES);
    const struct slab *slab = hak_slab_at(small);
    CHECK_EQ(hak_address_info(small + 10).kind, ADDRESS_LIVE);
    CHECK_EQ(hak_address_info(large + 10).kind, ADDRESS_LARGE);
    if (slab->guards != 0) /* not where pages are large */
        CHECK_EQ(hak_address_info((const char *)slab->start - 1).kind, ADDRESS_GUARD);
    CHECK_EQ(hak_address_info((void *)(uintptr_t)hak_marks).kind, ADDRESS_RECORDS);
    hak_free(small);
    hak_free(large);
    CHECK_EQ(hak_address_info(small + 10).kind, ADDRESS_FREED);
    CHECK_EQ(hak_address_info(large + 10).kind, ADDRESS_FREED);
}

TEST(blocks_of_private_heaps_are_checked_by_their_bitmaps)
{
    hakmem_heap *heap = hakmem_heap_new();
    void *small = hakmem_heap_malloc(heap, 100), *large = hakmem_heap_malloc(heap, SPAN_BYTES);
    CHECK(hakmem_heap_of(small) == heap && hakmem_heap_of(large) == heap);
    CHECK_ABORTS((hak_free(small), hak_free(small)), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(hak_free((char *)large + 64), "hakmem: invalid free: pointer 0x");
    CHECK(hak_realloc(small, 5000) != NULL);
    hak_free(large);
    void *own = take_some(SPAN_BYTES);
    CHECK(hakmem_heap_of(own) == NULL && hakmem_is_owned(own) == 1);
    hakmem_heap_destroy(heap);
}
