/* SPDX-License-Identifier: MIT */
/* tests/unit/api/control_test.c - mallopt and malloc_trim, by mallopt(3) and malloc_trim(3). */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "hakmem/hakmem.h"
#include "policy/policy_table.h"
#include "process/reclaim.h"
#include "process/start.h"
#include "slab/slab.h"
#include "slab/superslab_pool.h"
#include "span/span_cache.h"
#include "span/span_heap.h"
#include "threads.h"
#include "unit/asan.h"

#include <limits.h>
#include <malloc.h>

static uint64_t retain_bytes(void)
{
    return hak_policy_read(retain_bytes);
}

TEST(mallopt_accepts_what_glibc_accepts)
{
    static const int known[] = {M_MXFAST,       M_NLBLKS,         M_GRAIN,          M_KEEP,
                                M_TOP_PAD,      M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX,
                                M_CHECK_ACTION, M_PERTURB,        M_ARENA_TEST,     M_ARENA_MAX};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CHECK_EQ(hak_mallopt(known[i], 100), 1);
    static const int unknown[] = {0, 5, -9, 1000, INT_MIN};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        CHECK_EQ(hak_mallopt(unknown[i], 100), 1);
    static const int thresholds[] = {-1, 0, 32 << 20, (32 << 20) + 1, INT_MAX};
    for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++)
        CHECK_EQ(hak_mallopt(M_MMAP_THRESHOLD, thresholds[i]), 1);
}

TEST(mallopt_refuses_the_values_that_glibc_refuses)
{
    CHECK_EQ(hak_mallopt(M_MXFAST, 160), 1);
    CHECK_EQ(hak_mallopt(M_MXFAST, 161), 0);
    CHECK_EQ(hak_mallopt(M_MXFAST, -1), 0);
}

TEST(a_trim_threshold_is_what_may_stay_free)
{
    CHECK_EQ(hak_mallopt(M_TRIM_THRESHOLD, 1 << 20), 1);
    CHECK_EQ(retain_bytes(), HAK_MIB);
    CHECK_EQ(hak_mallopt(M_TRIM_THRESHOLD, 0), 1);
    CHECK_EQ(retain_bytes(), 0);
}

/* mallopt(3): "Setting M_TRIM_THRESHOLD to -1 disables trimming completely." */
TEST(a_trim_threshold_of_minus_1_turns_trimming_off)
{
    CHECK_EQ(hak_mallopt(M_TRIM_THRESHOLD, -1), 1);
    hak_free(hak_malloc(4 * HAK_MIB));
    usleep(30000);
    hak_reclaim_tick();
    CHECK(hak_span_warm_bytes() >= 4 * HAK_MIB);
}

TEST(a_trim_threshold_after_minus_1_turns_trimming_on_again)
{
    CHECK_EQ(hak_mallopt(M_TRIM_THRESHOLD, -1), 1);
    CHECK_EQ(hak_mallopt(M_TRIM_THRESHOLD, 0), 1);
    hak_free(hak_malloc(4 * HAK_MIB));
    CHECK(hak_policy_read(decay_ms) < 1000);
    CHECK_EQ(retain_bytes(), 0);
}

TEST(mallopt_before_the_first_request_is_not_forgotten)
{
    CHECK_EQ(hak_mallopt(M_TRIM_THRESHOLD, 12345), 1);
    CHECK(hak_malloc(1) != NULL);
    CHECK_EQ(retain_bytes(), 12345);
}

static size_t rss_bytes(void)
{
    unsigned long all, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%lu %lu", &all, &resident) == 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

#define COUNT 20000
static void *blocks[COUNT];

static size_t used_bytes_of(size_t i)
{
    return 100 + i * 37 % 4000;
}

static void fill_blocks(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = hak_malloc(used_bytes_of(i));
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, used_bytes_of(i));
    }
}

static void free_blocks(void)
{
    for (size_t i = 0; i < COUNT; i++)
        hak_free(blocks[i]);
}

/* malloc_trim(3): 1 if memory was released, 0 if it was not possible to. */
TEST(a_trim_gives_everything_free_back_and_says_so)
{
    if (UNDER_ASAN)
        SKIP("the sanitizer's own memory is in the way");
    CHECK_EQ(hak_mallopt(M_TRIM_THRESHOLD, -1), 1); /* nothing is given back on the way */
    hak_free(hak_malloc(1));
    size_t before = rss_bytes();
    fill_blocks();
    void *large = hak_malloc(8 * HAK_MIB);
    memset(large, 1, 8 * HAK_MIB);
    size_t full = rss_bytes();
    CHECK(full >= before + 45 * HAK_MIB);
    hak_free(large);
    free_blocks();
    CHECK_EQ(hak_malloc_trim(0), 1);
    CHECK_EQ(hak_pool_warm_count(), 0);
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK(rss_bytes() < before + 3 * HAK_MIB);
    CHECK_EQ(hak_malloc_trim(0), 0);
}

TEST(a_trim_keeps_what_lives)
{
    fill_blocks();
    for (size_t i = 0; i < COUNT; i += 2)
        hak_free(blocks[i]);
    hak_malloc_trim(0);
    for (size_t i = 1; i < COUNT; i += 2)
        CHECK_BYTES(blocks[i], used_bytes_of(i), 1);
    CHECK(hak_cache_is_sound(hak_thread_cache()));
}

/* malloc_trim(3): pad bytes stay free. */
TEST(a_trim_leaves_a_pad)
{
    enum { LARGE = 16 };
    void *large[2 * LARGE];
    for (int i = 0; i < 2 * LARGE; i++)
        large[i] = hak_malloc(HAK_MIB);
    for (int i = 0; i < 2 * LARGE; i += 2)
        hak_free(large[i]);
    size_t free_bytes = hak_span_warm_bytes() + hak_span_caches_sum().bytes;
    CHECK(free_bytes >= LARGE * HAK_MIB);
    CHECK_EQ(hak_malloc_trim(4 * HAK_MIB), 1);
    CHECK(hak_span_warm_bytes() <= 4 * HAK_MIB && hak_span_warm_bytes() > 2 * HAK_MIB);
    CHECK_EQ(hak_malloc_trim(0), 1);
    CHECK_EQ(hak_span_warm_bytes(), 0);
}

/* Frees most of the blocks and trims: dead pages leave slabs that others use still. */
static void check_sparse_trim(void *(*take)(size_t, void *), void *from)
{
    enum { SPARSE = 40000, BYTES = 500, KEPT_EVERY = 40 };
    static char *sparse[SPARSE];
    if (UNDER_ASAN || HAK_TINY || hak_os_page_bytes() > 4096)
        SKIP("no page is without a block, or the sanitizer's own memory is in the way");
    CHECK_EQ(hak_mallopt(M_TRIM_THRESHOLD, -1), 1); /* nothing is given back on the way */
    for (int i = 0; i < SPARSE; i++) {
        CHECK((sparse[i] = take(BYTES, from)) != NULL);
        memset(sparse[i], 1, BYTES);
    }
    for (int i = 0; i < SPARSE; i++)
        if (i % KEPT_EVERY != 0)
            hak_free(sparse[i]);
    size_t before = rss_bytes();
    CHECK_EQ(hak_malloc_trim(0), 1);
    CHECK(rss_bytes() < before - (size_t)SPARSE * BYTES / 2);
    for (int i = 0; i < SPARSE; i += KEPT_EVERY)
        CHECK_BYTES(sparse[i], BYTES, 1);
    CHECK_EQ(hak_malloc_trim(0), 0);
}

static void *take_own(size_t bytes, void *unused)
{
    (void)unused;
    return hak_malloc(bytes);
}

static void *take_private(size_t bytes, void *heap)
{
    return hakmem_heap_malloc(heap, bytes);
}

TEST(a_trim_takes_pages_out_of_sparse_slabs)
{
    check_sparse_trim(take_own, NULL);
}

TEST(a_trim_takes_pages_out_of_sparse_slabs_of_a_private_heap)
{
    check_sparse_trim(take_private, hakmem_heap_new());
}

/* How often malloc_trim did something, of `count` calls each after a block was freed. */
static int trims(int count, size_t bytes)
{
    int done = 0;
    for (int i = 0; i < count; i++) {
        char *block = hak_malloc(bytes);
        CHECK(block != NULL);
        memset(block, 1, bytes);
        hak_free(block);
        done += hak_malloc_trim(0);
    }
    return done;
}

TEST(trims_in_a_row_do_only_what_is_worth_it)
{
    hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0);
    CHECK_EQ(trims(8, 100000), 8);
    CHECK(trims(2000, 100000) < 2000);
    CHECK_EQ(trims(100, 2 * HAK_MIB), 100);
    hak_free(memset(hak_malloc(100000), 1, 100000));
    CHECK(hakmem_trim(0) > 0);
}

TEST(a_trim_before_the_first_request_finds_nothing)
{
    CHECK_EQ(hak_malloc_trim(0), 0);
}

static pthread_barrier_t barrier;

static void *allocate_then_sleep(void *argument)
{
    fill_blocks();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return argument;
}

TEST(a_trim_collects_what_was_freed_for_threads_that_sleep)
{
    CHECK_EQ(hak_mallopt(M_TRIM_THRESHOLD, -1), 1);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t thread = start_thread(allocate_then_sleep, NULL);
    pthread_barrier_wait(&barrier);
    free_blocks();
    uint64_t held = hak_slab_record_count();
    CHECK_EQ(hak_malloc_trim(0), 1);
    CHECK(hak_slab_record_count() < held / 2);
    CHECK_EQ(hak_pool_warm_count(), 0);
    pthread_barrier_wait(&barrier);
    join_thread(thread);
}
