/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/partition_test.c - blocks of the long partition have bins and slabs apart. */
#include "api/api.h"
#include "base/bits.h"
#include "check.h"
#include "heap/census.h"
#include "heap/heaps.h"
#include "heap/refill.h"
#include "process/start.h"
#include "region/tag_map.h"

#define BYTES 64
#define ORDINARY hak_class_of(BYTES)
#define LONG hak_class_long(ORDINARY)
#define COUNT 1000

static char *ordinary[COUNT];
static char *long_lived[COUNT];

static void *take(uint32_t class_index)
{
    struct cache *cache = hak_thread_cache();
    CHECK(cache != NULL);
    void *block = hak_bin_pop(class_index);
    if (block == NULL)
        block = hak_refill(cache, class_index);
    CHECK(block != NULL);
    return block;
}

static void take_all(void)
{
    for (int i = 0; i < COUNT; i++) {
        ordinary[i] = hak_malloc(BYTES);
        long_lived[i] = take(LONG);
    }
}

static uint32_t class_of(const void *block)
{
    uint32_t tag = hak_tag_read(hak_granule_of(block));
    CHECK_EQ(hak_tag_class(tag), hak_slab_at(block)->class_index);
    return hak_tag_class(tag);
}

TEST(blocks_of_two_partitions_never_share_a_slab)
{
    take_all();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            CHECK_EQ(class_of(ordinary[i]), ORDINARY);
            CHECK_EQ(class_of(long_lived[i]), LONG);
        }
        for (int i = round; i < COUNT; i += 3) {
            hak_free(ordinary[i]);
            hak_free(long_lived[i]);
        }
        for (int i = round; i < COUNT; i += 3) {
            ordinary[i] = hak_malloc(BYTES);
            long_lived[i] = take(LONG);
        }
    }
}

TEST(a_free_brings_a_block_to_the_bin_of_its_partition)
{
    char *kept = take(LONG), *block = take(LONG);
    hak_free(block);
    CHECK(hak_malloc(BYTES) != block);
    CHECK_EQ(take(LONG), block);
    hak_free(kept);
}

TEST(a_block_of_the_long_partition_is_as_large_as_any_other)
{
    for (uint32_t i = 0; i < HAK_LONG_CLASS_COUNT; i++) {
        uint32_t bytes = hak_size_classes[i].block_bytes;
        char *block = take(hak_class_long(i));
        memset(block, 1, bytes);
        CHECK_EQ(hak_malloc_usable_size(block), bytes);
        CHECK_EQ((uintptr_t)block % (bytes < 16 ? 8 : 16), 0);
        hak_free(block);
    }
}

static bool has_long_rooms(const struct cache *cache)
{
    for (uint32_t i = HAK_CLASS_COUNT; i < HAK_ALL_CLASS_COUNT; i++)
        if (cache->rooms[i].bottom != 0)
            return true;
    return false;
}

TEST(a_cache_has_no_slots_for_the_long_partition_before_they_are_used)
{
    for (size_t bytes = 1; bytes < 4096; bytes += 64)
        for (int i = 0; i < 20; i++)
            hak_free(hak_malloc(bytes));
    const struct cache *cache = hak_thread_cache();
    CHECK(!has_long_rooms(cache));
    hak_free(take(LONG));
    hak_free(take(LONG));
    CHECK(has_long_rooms(hak_thread_cache()));
}

TEST(the_census_counts_both_partitions)
{
    struct census before, after;
    take_all();
    hak_census_take(&before);
    for (int i = 0; i < 100; i++) {
        hak_free(long_lived[i]);
        long_lived[i] = NULL;
    }
    hak_census_take(&after);
    const struct class_census *was = &before.classes[LONG], *is = &after.classes[LONG];
    CHECK_EQ(was->used - was->cached - was->homeward, COUNT);
    CHECK_EQ(is->used - is->cached - is->homeward, COUNT - 100);
    CHECK_EQ(after.classes[ORDINARY].used, before.classes[ORDINARY].used);
    CHECK(was->slabs != 0);
}

TEST(all_slabs_of_the_long_partition_can_be_returned)
{
    take_all();
    for (int i = 0; i < COUNT; i++)
        hak_free(long_lived[i]);
    hak_thread_flush();
    struct heap *heap = hak_heap_enter();
    CHECK(hak_heap_is_sound(heap));
    hak_heap_tidy(heap);
    CHECK_EQ(hak_load_relaxed(&heap->owner.use[LONG].slabs), 0);
    CHECK(hak_load_relaxed(&heap->owner.use[ORDINARY].slabs) != 0);
    hak_heap_leave(heap);
}
