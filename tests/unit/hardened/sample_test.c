/* SPDX-License-Identifier: MIT */
/* tests/unit/hardened/sample_test.c - guarded blocks are blocks like others to a program that
 * uses them well. */
#define _GNU_SOURCE
#include "unit/smaps.h"

#include "api/api.h"
#include "base/bits.h"
#include "conf/conf.h"
#include "hakmem/hakmem.h"
#include "hardened/sample.h"
#include "heap/address_info.h"
#include "heap/census.h"
#include "process/start.h"
#include "stats/snapshot.h"
#include "stats/snapshot_take.h"
#include "stay.h"

#include <errno.h>

__attribute__((constructor(102))) static void guard(void)
{
    setenv("HAKMEM_GUARD_RATE", "1", 1);
}

/* A guarded block of those that `expression` makes. */
#define GUARDED(expression)                                                                        \
    ({                                                                                             \
        char *block_ = NULL;                                                                       \
        for (int i_ = 0; i_ < 10000 && !hak_guarded_holds(block_); i_++)                           \
            block_ = (expression);                                                                 \
        CHECK(hak_guarded_holds(block_));                                                          \
        block_;                                                                                    \
    })

TEST(malloc_calloc_aligned_forms_and_new_are_guarded)
{
    hak_free(GUARDED(hak_malloc(100)));
    char *block = GUARDED(hak_calloc(100, 30));
    CHECK_BYTES(block, 3000, 0);
    hak_free_sized(block, 3000);
    block = GUARDED(hak_aligned_alloc(512, 100));
    CHECK_EQ((uintptr_t)block % 512, 0);
    hak_free_aligned_sized(block, 512, 100);
    hak_delete(GUARDED(hak_new(40)));
    hak_delete_array_sized(GUARDED(hak_new_array(40)), 40);
    CHECK_EQ(hak_guarded_sum().count, 0);
}

TEST(a_small_alignment_that_is_asked_for_is_no_less_than_the_ordinary_one)
{
    for (size_t alignment = 1; alignment <= HAK_ORDINARY_ALIGNMENT; alignment *= 2) {
        for (size_t bytes = 9; bytes < 140; bytes += 13) {
            char *block = GUARDED(hak_memalign(alignment, bytes));
            CHECK_EQ((uintptr_t)block % HAK_ORDINARY_ALIGNMENT, 0);
            hak_free(block);
        }
        char *least = GUARDED(hak_memalign(alignment, 1));
        CHECK_EQ((uintptr_t)least % 8, 0);
        hak_free(least);
    }
}

TEST(realloc_keeps_the_contents_of_a_guarded_block)
{
    for (size_t bytes = 1; bytes < 40000; bytes = bytes * 3 + 1) {
        char *block = GUARDED(hak_malloc(200));
        memset(block, 'x', 200);
        char *moved = hak_realloc(block, bytes);
        CHECK(moved != NULL && moved != block);
        CHECK_BYTES(moved, hak_least(bytes, 200), 'x');
        hak_free(moved);
    }
    CHECK(hak_realloc(GUARDED(hak_malloc(64)), 0) == NULL);
    CHECK_EQ(hak_guarded_sum().count, 0);
}

TEST(a_realloc_that_is_refused_leaves_a_guarded_block_as_it_was)
{
    char *block = GUARDED(hak_malloc(200));
    errno = 0;
    CHECK(hak_realloc(block, (size_t)PTRDIFF_MAX - 100) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK(hak_guarded_is_live(block));
    hak_free(block);
}

TEST(the_api_knows_guarded_blocks)
{
    char *block = GUARDED(hak_malloc(77));
    CHECK_EQ(hak_malloc_usable_size(block), 77);
    CHECK_EQ(hakmem_is_owned(block), 1);
    CHECK_EQ(hakmem_is_owned(block + 1), 0);
    CHECK(hakmem_heap_of(block) == NULL);
    errno = 5;
    hak_free(block);
    CHECK_EQ(errno, 5);
    CHECK_EQ(hakmem_is_owned(block), 0);
}

TEST(an_address_near_a_guarded_block_is_explained)
{
    char *block = GUARDED(hak_malloc(100));
    CHECK(hak_address_info(block + 3).kind == ADDRESS_GUARDED);
    CHECK_EQ(hak_address_info(block + 113).block, block);
    CHECK_EQ(hak_address_info(block + 113).block_bytes, 100);
    hak_free(block);
    CHECK(hak_address_info(block).kind == ADDRESS_GUARDED_FREED);
    CHECK(hak_address_info(hak_region.guarded_start + hak_region.guarded_bytes - 1).kind ==
          ADDRESS_RECORDS);
}

TEST(guarded_blocks_are_counted_and_resident)
{
    struct snapshot before, after;
    hak_free(GUARDED(hak_malloc(100)));
    hak_snapshot_take(&before, &(struct census){0});
    for (int i = 0; i < 3; i++)
        memset(GUARDED(hak_malloc(5000)), 1, 5000);
    hak_snapshot_take(&after, &(struct census){0});
    CHECK(after.guarded_blocks >= before.guarded_blocks + 3);
    CHECK(after.guarded_live_blocks >= before.guarded_live_blocks + 3);
    CHECK(after.guarded_live_bytes >= before.guarded_live_bytes + 3 * (size_t)5000);
    CHECK_EQ(after.live_bytes,
             after.small_live_bytes + after.large_live_bytes + after.guarded_live_bytes);
    struct hakmem_residency at = check_residency_adds_up();
    CHECK(at.live_bytes >= 3 * (size_t)8192);
    CHECK((uintptr_t)hak_region.guarded_start >= at.mapping_start);
    CHECK((uintptr_t)hak_region.guarded_start < at.mapping_end);
}

TEST(a_guarded_block_of_no_bytes_has_one)
{
    hak_conf.number[CONF_zero_size] = ZERO_SIZE_ORDINARY;
    char *block = GUARDED(hak_malloc(0));
    CHECK_EQ(hak_malloc_usable_size(block), 1);
    hak_free(block);
}

TEST(a_full_pool_means_ordinary_blocks)
{
    for (int i = 0; i < 1000; i++)
        CHECK(hak_malloc(5000) != NULL);
    CHECK(hak_guarded_sum().count > 0 && hak_guarded_sum().count <= HAK_SAMPLED_GUARD_SLOTS);
    CHECK(smaps_resident_bytes((uintptr_t)hak_region.guarded_start,
                               (uintptr_t)hak_region.guarded_start + hak_region.guarded_bytes) <=
          HAK_SAMPLED_GUARD_BYTES_MOST);
    CHECK(hak_load_relaxed(&hak_stat_globals.guarded_full) > 0);
}

static void use_inherited(char *inherited)
{
    CHECK_STR(inherited, "kept");
    hak_free(inherited);
    hak_free(GUARDED(hak_malloc(100)));
    CHECK_EQ(hak_guarded_sum().count, 0);
}

TEST(a_child_goes_on_with_the_guarded_blocks_of_its_parent)
{
    char *inherited = GUARDED(hak_malloc(100));
    strcpy(inherited, "kept");
    CHECK_EXITS(use_inherited(inherited), 0);
    CHECK_STR(inherited, "kept");
    hak_free(inherited);
}

TEST(the_countdown_is_about_the_rate_and_not_the_same_each_time)
{
    CHECK(hak_process_start());
    hak_conf.number[CONF_guard_rate] = 1 << 20;
    int64_t sum = 0, last = 0;
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        int64_t next = hak_sampled_guard_countdown();
        CHECK(next > 0 && next <= 2 << 20);
        same += next == last;
        sum += last = next;
    }
    CHECK(sum / 1000 > (1 << 20) * 8 / 10 && sum / 1000 < (1 << 20) * 12 / 10);
    CHECK(same < 10);
    hak_conf.number[CONF_guard_rate] = 0;
    CHECK_EQ(hak_sampled_guard_countdown(), INT64_MAX);
}

/* The caches begin while nothing is guarded, the first time. */
TEST(guards_that_were_turned_off_can_be_turned_on_again)
{
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(hakmem_option_set("guard_rate", "0"), 0);
        for (int i = 0; i < 1000; i++)
            CHECK(!hak_guarded_holds(hak_malloc(5000)));
        CHECK_EQ(hakmem_option_set("guard_rate", "1"), 0);
        hak_free(GUARDED(hak_malloc(100)));
    }
}

TEST(where_there_is_a_limit_nothing_is_guarded)
{
    CHECK(hak_process_start());
    CHECK_EQ(hakmem_option_set("limit", "1G"), 0);
    for (int i = 0; i < 1000; i++)
        CHECK(!hak_guarded_holds(hak_malloc(5000)));
}

TEST(nothing_is_guarded_before_so_much_was_handed_out_as_was_drawn)
{
    CHECK(hak_process_start());
    hak_conf.number[CONF_guard_rate] = 1ll << 40;
    stay_here();
    hak_free(hak_malloc(100)); /* makes the cache, and refills it */
    const struct cache *cache = hak_own_cache();
    CHECK(cache != NULL);
    int64_t left = hak_load_relaxed(&cache->guard_left_bytes);
    CHECK(left > 1 << 20 && left <= 2ll << 40);
    CHECK(!hak_sample_is_due(cache));
}
