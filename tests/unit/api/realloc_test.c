/* SPDX-License-Identifier: MIT */
/* tests/unit/api/realloc_test.c - realloc, reallocarray and malloc_usable_size, with their
 * sources. */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "faults.h"
#include "heap/census.h"
#include "os/os_fault.h"
#include "public.h"
#include "slab/size_class.h"
#include "span/large.h"
#include "stats/snapshot.h"
#include "stats/snapshot_take.h"
#include "unit/asan.h"
#include "unit/lent.h"

#include <errno.h>

static unsigned char *filled(size_t bytes)
{
    unsigned char *block = hak_malloc(bytes);
    CHECK(block != NULL);
    for (size_t i = 0; i < bytes; i++)
        block[i] = (unsigned char)(i * 7 + bytes);
    return block;
}

/* The first `bytes` are those of filled(old_bytes). */
static void check_filled(const unsigned char *block, size_t bytes, size_t old_bytes)
{
    CHECK(block != NULL);
    for (size_t i = 0; i < bytes; i++)
        if (block[i] != (unsigned char)(i * 7 + old_bytes))
            CHECK_EQ(block[i], (unsigned char)(i * 7 + old_bytes));
}

/* C23 7.24.3.7: of a null pointer, it is malloc. */
TEST(realloc_of_null_is_malloc)
{
    void *block = hak_realloc(NULL, 100);
    CHECK(block != NULL);
    CHECK(hak_malloc_usable_size(block) >= 100);
    CHECK(hak_realloc(NULL, 0) != NULL);
}

/* glibc manual, "Changing Block Size": frees and returns NULL; C23 leaves it undefined. */
TEST(realloc_to_0_frees_and_returns_null)
{
    void *block = hak_malloc(100), *large = hak_malloc(HAK_MIB);
    errno = 77;
    CHECK_EQ(hak_realloc(block, 0), NULL);
    CHECK_EQ(hak_realloc(large, 0), NULL);
    CHECK_EQ(errno, 77);
    CHECK_EQ(hak_malloc(100), block);
    CHECK_EQ(hak_large_live_bytes(), 0);
}

TEST(a_block_up_to_4_kib_stays_where_it_is_while_half_of_it_is_used)
{
    unsigned char *block = filled(1024);
    CHECK_EQ(hak_realloc(block, 1000), block);
    CHECK_EQ(hak_realloc(block, 512), block);
    CHECK_EQ(hak_realloc(block, 1024), block);
    unsigned char *smaller = hak_realloc(block, 100);
    CHECK(smaller != block);
    CHECK(hak_malloc_usable_size(smaller) < 512);
    check_filled(smaller, 100, 1024);
}

/* Above 4 KiB what is no longer used counts more than a copy. */
TEST(a_block_above_4_kib_moves_when_that_saves_a_third_of_it)
{
    const size_t sizes[][2] = {{8192, 4200}, {8192, 5440}, {32768, 17408}, {131072, 66560}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *block = filled(sizes[i][0]);
        unsigned char *smaller = hak_realloc(block, sizes[i][1]);
        CHECK(smaller != block);
        CHECK(hak_malloc_usable_size(smaller) <= sizes[i][0] - sizes[i][0] / 3);
        check_filled(smaller, sizes[i][1], sizes[i][0]);
    }
}

/* The first blocks of short classes are longer than asked for. */
TEST(a_block_of_a_line_stays_where_it_is_for_all_that_may_get_one)
{
    for (size_t bytes = 9; bytes <= 64; bytes++) {
        unsigned char *block = hak_malloc(bytes);
        CHECK_EQ(hak_realloc(block, bytes), block);
        CHECK_EQ(hak_realloc(block, 9), block);
    }
}

TEST(a_block_above_4_kib_stays_where_a_move_saves_less_than_a_third)
{
    const size_t sizes[][2] = {{8192, 5441}, {32768, 24000}, {131072, 87361}, {131072, 131072}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *block = filled(sizes[i][0]);
        CHECK_EQ(hak_realloc(block, sizes[i][1]), block);
        check_filled(block, sizes[i][1], sizes[i][0]);
    }
    unsigned char *large = filled(3 * HAK_GRANULE_BYTES); /* such a copy costs more */
    CHECK_EQ(hak_realloc(large, HAK_CLASS_BYTES_MAX), large);
}

TEST(a_block_of_a_private_heap_that_shrinks_moves_within_it)
{
    hakmem_heap *heap = new_heap();
    unsigned char *block = hakmem_heap_malloc(heap, 32768);
    CHECK(block != NULL);
    memset(block, 7, 32768);
    unsigned char *smaller = hak_realloc(block, 17408);
    CHECK(smaller != block);
    CHECK_BYTES(smaller, 17408, 7);
    CHECK_EQ(heap_stats_now(heap).live_bytes, hak_malloc_usable_size(smaller));
    hakmem_heap_destroy(heap);
}

TEST(a_block_that_shrinks_stays_where_it_is_when_there_is_no_memory)
{
    need_faults();
    unsigned char *block = filled(32768);
    hak_os_fault_every(1);
    while (hak_malloc(17408) != NULL)
        ;
    CHECK_EQ(hak_realloc(block, 17408), block);
    hak_os_fault_every(0);
    check_filled(block, 17408, 32768);
}

/* At its limit a program shrinks blocks to be within it again. */
TEST(a_block_that_cannot_move_to_shrink_is_no_refusal)
{
    static unsigned char *blocks[2000];
    int count = 0;
    hak_store_relaxed(&hak_policy.limit_bytes, 16 * HAK_MIB);
    while ((blocks[count] = hak_malloc(12000)) != NULL)
        count++;
    uint64_t refused = hak_load_relaxed(&hak_stat_globals.out_of_memory);
    CHECK_EQ(refused, 1);
    errno = 0;
    for (int i = 0; i < count; i++)
        CHECK(hak_realloc(blocks[i], 8000) != NULL);
    CHECK_EQ(errno, 0);
    CHECK_EQ(hak_load_relaxed(&hak_stat_globals.out_of_memory), refused);
    for (int i = 0; i < 10; i++)
        hak_free(blocks[i]);
    unsigned char *moved = hak_realloc(blocks[10], 8000);
    CHECK(hak_malloc_usable_size(moved) < 12000);
}

TEST(a_large_block_shrinks_and_grows_in_place_where_there_is_room)
{
    unsigned char *block = filled(4 * HAK_MIB);
    CHECK_EQ(hak_realloc(block, HAK_MIB), block);
    CHECK(hak_malloc_usable_size(block) < 2 * HAK_MIB);
    CHECK_EQ(hak_realloc(block, 3 * HAK_MIB), block);
    check_filled(block, HAK_MIB, 4 * HAK_MIB);
}

static uint64_t copied_bytes(void)
{
    struct snapshot snapshot;
    hak_snapshot_take(&snapshot, &(struct census){0});
    return snapshot.sums[HAK_STAT_realloc_copied_bytes];
}

TEST(a_block_that_doubles_to_1_gib_is_hardly_copied)
{
    unsigned char *block = hak_malloc(16);
    for (size_t bytes = 32; bytes <= HAK_GIB; bytes *= 2) {
        block[bytes / 2 - 1] = (unsigned char)(bytes >> 10);
        block = hak_realloc(block, bytes);
        CHECK(block != NULL);
        CHECK_EQ(block[bytes / 2 - 1], (unsigned char)(bytes >> 10));
        CHECK(hak_malloc(200000) != NULL); /* something stands behind it */
    }
    struct snapshot snapshot;
    hak_snapshot_take(&snapshot, &(struct census){0});
    if (snapshot.move_calls == 0)
        SKIP("the kernel does not move pages");
    CHECK(copied_bytes() > 0);
    CHECK(copied_bytes() < 2 * HAK_MIB);
    hak_free(block);
}

TEST(a_block_that_grows_in_small_steps_is_hardly_copied)
{
    unsigned char *blocks[2] = {NULL, NULL};
    for (size_t bytes = 16384; bytes <= 32 * HAK_MIB; bytes += 16384)
        for (int i = 0; i < 2; i++) {
            blocks[i] = hak_realloc(blocks[i], bytes);
            CHECK(blocks[i] != NULL);
            blocks[i][bytes - 1] = (unsigned char)(bytes >> 14);
            CHECK(bytes < 32768 ||
                  blocks[i][bytes / 32768 * 16384 - 1] == (unsigned char)(bytes >> 15));
        }
    struct snapshot snapshot;
    hak_snapshot_take(&snapshot, &(struct census){0});
    if (snapshot.move_calls == 0)
        SKIP("the kernel does not move pages");
    CHECK(copied_bytes() < 16 * HAK_MIB);
}

TEST(a_large_block_gives_back_what_it_shrinks_by)
{
    unsigned char *block = filled(8 * HAK_MIB);
    size_t live = hak_large_live_bytes();
    CHECK_EQ(hak_realloc(block, 6 * HAK_MIB), block);
    CHECK(live - hak_large_live_bytes() >= 2 * HAK_MIB);
    check_filled(block, 6 * HAK_MIB, 8 * HAK_MIB);
}

/* glibc manual: as realloc of the product, but fails safely when that overflows. */
TEST(reallocarray_multiplies_and_refuses_to_overflow)
{
    unsigned char *block = filled(60);
    block = hak_reallocarray(block, 100, 7);
    check_filled(block, 60, 60);
    CHECK(hak_malloc_usable_size(block) >= 700);
    errno = 0;
    CHECK_EQ(hak_reallocarray(block, SIZE_MAX / 2, 3), NULL);
    CHECK_EQ(errno, ENOMEM);
    check_filled(block, 60, 60);
    CHECK(hak_reallocarray(NULL, 3, 5) != NULL);
    CHECK_EQ(hak_reallocarray(block, 0, 5), NULL); /* freed */
}

/* glibc manual, malloc_usable_size(3): 0 for NULL, at least the requested size otherwise. */
TEST(the_usable_size_is_at_least_what_was_asked)
{
    CHECK_EQ(hak_malloc_usable_size(NULL), 0);
    CHECK_EQ(hak_malloc_usable_size(hak_malloc(0)), 0);
    for (size_t bytes = 1; bytes < HAK_MIB; bytes += 1 + bytes / 32) {
        unsigned char *block = hak_malloc(bytes);
        size_t usable = hak_malloc_usable_size(block);
        CHECK(usable >= bytes);
        CHECK(bytes > HAK_CLASS_BYTES_MAX || may_be_so_long(bytes, usable));
        memset(block, 1, usable);
        hak_free(block);
    }
}

TEST(the_usable_size_of_a_foreign_pointer_is_0)
{
    static char ours;
    CHECK(hak_malloc(1) != NULL);
    CHECK_EQ(hak_malloc_usable_size(&ours), 0);
}

TEST(a_block_that_grows_to_256_mib_needs_at_no_time_a_tenth_more)
{
    size_t bytes = HAK_MIB, most = 256 * HAK_MIB;
    struct rusage before, after;
    if (UNDER_ASAN)
        SKIP("the sanitizer's own memory counts");
    unsigned char *block = hak_malloc(bytes);
    CHECK(block != NULL);
    memset(block, 1, bytes);
    getrusage(RUSAGE_SELF, &before);
    for (; bytes < most; bytes *= 2) {
        CHECK(hak_malloc(200000) != NULL); /* something stands behind it */
        block = hak_realloc(block, 2 * bytes);
        CHECK(block != NULL);
        memset(block + bytes, 1, bytes);
    }
    getrusage(RUSAGE_SELF, &after);
    CHECK((size_t)(after.ru_maxrss - before.ru_maxrss) <= most / 1024 / 10 * 11);
    CHECK_BYTES(block, most, 1);
}

/* What a step of growth needs may be there where room for more is not. */
TEST(a_block_grows_where_there_is_no_memory_for_room)
{
    need_faults();
    void *kept = hak_malloc(65537), *freed = hak_malloc(65537);
    unsigned char *block = filled(65536);
    CHECK(kept != NULL && freed != NULL);
    hak_os_fault_every(1);
    while (hak_malloc(81920) != NULL)
        ;
    hak_free(freed);
    CHECK(hak_malloc(81920) == NULL);
    unsigned char *grown = hak_realloc(block, 65537);
    hak_os_fault_every(0);
    CHECK(grown != NULL);
    check_filled(grown, 65536, 65536);
}
