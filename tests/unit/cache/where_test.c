/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/where_test.c - what an address is. */
#include "cache/where.h"

#include "api/api.h"
#include "check.h"
#include "region/region.h"

#include <pthread.h>

static void check_where(const void *address, enum where_kind kind)
{
    CHECK_STR(hak_where_meaning(hak_where(address).kind), hak_where_meaning(kind));
}

TEST(before_the_start_all_is_foreign)
{
    static int local;
    check_where(&local, WHERE_FOREIGN);
    check_where(NULL, WHERE_NEAR_NULL);
}

TEST(a_block_is_live_until_it_is_freed)
{
    char *block = hak_malloc(1000);
    struct where where = hak_where(block + 600);
    CHECK_EQ(where.kind, WHERE_LIVE);
    CHECK_EQ(where.block, (uintptr_t)block);
    CHECK_EQ(where.block_bytes, hak_malloc_usable_size(block));
    hak_free(block);
    where = hak_where(block + 600);
    CHECK(where.kind == WHERE_CACHED || where.kind == WHERE_FREED);
    CHECK_EQ(where.block, (uintptr_t)block);
    hak_thread_flush();
    CHECK(hak_where(block).kind == WHERE_FREED || hak_where(block).kind == WHERE_FREE);
}

TEST(a_large_block_is_known_from_any_of_its_bytes)
{
    char *block = hak_malloc(5 << 20);
    size_t bytes = hak_malloc_usable_size(block);
    check_where(block, WHERE_LARGE);
    check_where(block + (3 << 20), WHERE_LARGE);
    CHECK_EQ(hak_where(block + bytes - 1).block, (uintptr_t)block);
    hak_free(block);
    check_where(block + (3 << 20), WHERE_FREE);
}

TEST(records_and_strangers_are_told_apart)
{
    static int stranger;
    hak_free(hak_malloc(100));
    check_where(&stranger, WHERE_FOREIGN);
    check_where((void *)(uintptr_t)hak_region.tags, WHERE_RECORDS);
    check_where((void *)UINTPTR_MAX, WHERE_FOREIGN);
}

/* What a block is after a free by another thread; 48 bytes go home, 1000 into any bin. */
static size_t bytes_freed;

static enum where_kind kind_after_free(void)
{
    return bytes_freed > HAK_WAITING_BLOCK_BYTES_MAX ? WHERE_CACHED : WHERE_HOMEWARD;
}

static void *free_it(void *block)
{
    hak_free(block); /* it has no heap yet */
    check_where(block, WHERE_HOMEWARD);
    return NULL;
}

static void *free_it_at_work(void *block)
{
    hak_free(hak_malloc(1));
    hak_free(block);
    check_where(block, kind_after_free());
    hak_thread_flush();
    return NULL;
}

static void check_freed_by(void *(*body)(void *))
{
    pthread_t thread;
    void *block = hak_malloc(bytes_freed);
    CHECK(pthread_create(&thread, NULL, body, block) == 0);
    pthread_join(thread, NULL);
    enum where_kind kind = hak_where(block).kind;
    CHECK(kind == WHERE_HOMEWARD || kind == WHERE_FREED);
}

TEST(a_small_block_that_another_thread_freed_is_on_its_way_home)
{
    bytes_freed = 48;
    check_freed_by(free_it);
    check_freed_by(free_it_at_work);
}

TEST(a_block_of_a_common_class_that_another_thread_freed_is_in_its_bin)
{
    bytes_freed = 1000;
    check_freed_by(free_it_at_work);
}
