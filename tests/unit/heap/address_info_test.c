/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/address_info_test.c - what an address is. */
#include "heap/address_info.h"

#include "api/api.h"
#include "check.h"
#include "heap/flush.h"
#include "heap/heaps.h"
#include "region/region.h"
#include "threads.h"

static void check_where(const void *address, enum address_kind kind)
{
    CHECK_STR(hak_address_meaning(hak_address_info(address).kind), hak_address_meaning(kind));
}

TEST(before_the_start_all_is_foreign)
{
    static int local;
    check_where(&local, ADDRESS_FOREIGN);
    check_where(NULL, ADDRESS_NEAR_NULL);
}

TEST(a_block_is_live_until_it_is_freed)
{
    char *block = hak_malloc(1000);
    struct address_info where = hak_address_info(block + 600);
    CHECK_EQ(where.kind, ADDRESS_LIVE);
    CHECK_EQ(where.block, (uintptr_t)block);
    CHECK_EQ(where.block_bytes, hak_malloc_usable_size(block));
    hak_free(block);
    where = hak_address_info(block + 600);
    CHECK(where.kind == ADDRESS_CACHED || where.kind == ADDRESS_FREED);
    CHECK_EQ(where.block, (uintptr_t)block);
    hak_thread_flush();
    CHECK(hak_address_info(block).kind == ADDRESS_FREED ||
          hak_address_info(block).kind == ADDRESS_FREE);
}

TEST(a_large_block_is_known_from_any_of_its_bytes)
{
    char *block = hak_malloc(5 << 20);
    size_t bytes = hak_malloc_usable_size(block);
    check_where(block, ADDRESS_LARGE);
    check_where(block + (3 << 20), ADDRESS_LARGE);
    CHECK_EQ(hak_address_info(block + bytes - 1).block, (uintptr_t)block);
    hak_free(block);
    check_where(block + (3 << 20), ADDRESS_FREE);
}

TEST(records_and_strangers_are_told_apart)
{
    static int stranger;
    hak_free(hak_malloc(100));
    check_where(&stranger, ADDRESS_FOREIGN);
    check_where((void *)(uintptr_t)hak_region.tags, ADDRESS_RECORDS);
    check_where((void *)UINTPTR_MAX, ADDRESS_FOREIGN);
}

static void *free_it(void *block)
{
    hak_free(hak_malloc(1));
    hak_free(block);
    check_where(block, ADDRESS_CACHED);
    hak_thread_flush();
    return NULL;
}

TEST(a_block_that_another_thread_freed_is_in_its_bin)
{
    for (size_t bytes = 8; bytes < 4096; bytes *= 5) {
        void *block = hak_malloc(bytes);
        in_thread(free_it, block);
        check_where(block, ADDRESS_FREED);
    }
}

TEST(a_block_that_was_freed_while_its_heap_was_busy_is_not_collected_yet)
{
    void *block = hak_malloc(48);
    struct slab *slab = hak_slab_at(block);
    struct heap *heap = hak_heap_of(hak_load_relaxed(&slab->owner));
    CHECK(hak_heap_try_enter(heap));
    hak_flush_one(slab, block);
    check_where(block, ADDRESS_HOMEWARD);
    hak_heap_collect(heap);
    check_where(block, ADDRESS_FREED);
    hak_heap_leave(heap);
}
