/* SPDX-License-Identifier: MIT */
/* tests/unit/profile/sampler_test.c - what the profile says is what the program did: for sites that
 * keep, for one that pairs malloc with free thirty times as often, in both modes of caches. If
 * this fails, profiles blame the wrong code. */
#define _GNU_SOURCE
#include "profile/sampler.h"

#include "../../check.h"
#include "api/api.h"
#include "hakmem/hakmem.h"
#include "heap/cache_list.h"
#include "heap/census.h"
#include "policy/option.h"
#include "process/start.h"
#include "profile/profile.h"
#include "profile/writer.h"
#include "stats/snapshot_take.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* So many that 5 % are six deviations of the least exact sum, that of blocks that are kept. */
#define BLOCKS 180000u
#define RATE "4096"
#define DISTINCT __attribute__((noinline, noclone, aligned(256)))

static void *kept[BLOCKS];
static uint64_t kept_bytes, paired_bytes, large_bytes;

/* Requests of different sizes, a few of them large. */
static size_t bytes_of(uint32_t i)
{
    return 16 + (i * 7919u) % 1500;
}

DISTINCT static void keep(uint32_t i)
{
    kept[i] = hak_malloc(bytes_of(i));
    kept_bytes += bytes_of(i);
    __asm__ volatile("" ::: "memory");
}

DISTINCT static void pair(uint32_t i)
{
    void *block = hak_malloc(bytes_of(i));
    paired_bytes += bytes_of(i);
    hak_free(block);
}

DISTINCT static void *make_large(uint32_t i)
{
    void *block = hak_malloc(200000 + i);
    large_bytes += 200000 + i;
    __asm__ volatile("" ::: "memory");
    return block;
}

struct sums {
    double allocated, freed, count;
    uint64_t samples;
};

/* Of the sites that begin in a function of less than 256 bytes. */
static struct sums sums_of(const void *function)
{
    struct sums sums = {0, 0, 0, 0};
    for (uint32_t i = 1; i < hak_sites_count(); i++) {
        const struct board_site *site = hak_sites_at(i);
        if (site == NULL || site->frame_count == 0)
            continue;
        bool is_in = false; /* linked in, hakmem's own frames may come first: more if not inlined */
        for (uint32_t k = 0; k < site->frame_count && k < 8; k++)
            is_in |= site->frames[k] - (uintptr_t)function < 256;
        if (!is_in)
            continue;
        sums.allocated += (double)hak_load_relaxed(&site->allocated_bytes);
        sums.freed += (double)hak_load_relaxed(&site->freed_bytes);
        sums.count += (double)hak_load_relaxed(&site->allocated_count);
        sums.samples += hak_load_relaxed(&site->samples);
    }
    return sums;
}

static void check_share(double found, double expected, double share)
{
    double off = found / expected - 1;
    check_print("%.0f of %.0f\n", found, expected);
    CHECK(off < share && -off < share);
}

/* Options are read before main: the test goes on in a process that finds them. */
static void be_started_with(const char *sentence, const char *options)
{
    if (getenv("HAKMEM_CONF") != NULL)
        return;
    setenv("HAKMEM_CONF", options, 1);
    execl("/proc/self/exe", "sampler_test", sentence, (char *)NULL);
    if (is_emulated())
        SKIP("the emulator's kernel does not run programs of this architecture");
    _exit(1);
}

static void begin(const char *sentence, const char *caches, const char *harden)
{
    char options[200];
    snprintf(options, sizeof options,
             "caches=%s,harden=%s,heap_profile=on,heap_profile_samples=0,heap_profile_rate=" RATE,
             caches, harden);
    be_started_with(sentence, options);
    CHECK(hak_thread_cache() != NULL);
    if (strcmp(caches, "processor") == 0 && hak_caches_reason() != RSEQ_PROCESSOR)
        SKIP("no caches by processor here");
    CHECK_EQ(hak_caches_reason() == RSEQ_PROCESSOR, strcmp(caches, "processor") == 0);
}

DISTINCT static void run(uint32_t pairs)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        keep(i);
        for (uint32_t k = 0; k < pairs; k++)
            pair(i + k);
    }
}

static void check_sites(void)
{
    struct sums keeps = sums_of((const void *)keep), pairs = sums_of((const void *)pair);
    CHECK(keeps.samples >= 2000 && pairs.samples >= 2000);
    check_share(keeps.allocated, (double)kept_bytes, 0.05);
    check_share(keeps.count, BLOCKS, 0.05);
    CHECK_EQ(keeps.freed, 0);
    check_share(pairs.allocated, (double)paired_bytes, 0.05);
    CHECK_EQ(pairs.freed, pairs.allocated);
    CHECK_EQ(hak_load_relaxed(&hak_sites_dropped.sites_full), 0);
    CHECK_EQ(hak_load_relaxed(&hak_sites_dropped.untracked), 0);
    for (uint32_t i = 0; i < BLOCKS; i++)
        hak_free(kept[i]);
    keeps = sums_of((const void *)keep);
    CHECK_EQ(keeps.freed, keeps.allocated);
}

TEST(a_site_that_pairs_does_not_hide_one_that_keeps_with_caches_by_processor)
{
    begin(__func__, "processor", "none");
    run(30);
    check_sites();
}

TEST(a_site_that_pairs_does_not_hide_one_that_keeps_with_caches_by_thread)
{
    begin(__func__, "thread", "none");
    run(30);
    check_sites();
}

#define SELDOM 4000u
#define SELDOM_BYTES ((size_t)96 << 10)

DISTINCT static void keep_one_of_the_slow_path(uint32_t i)
{
    kept[i] = hak_malloc(SELDOM_BYTES);
    kept_bytes += SELDOM_BYTES;
    __asm__ volatile("" ::: "memory");
}

/* In so small a cache a bin of this size holds one block, so that what is kept comes from refills,
 * by the slow path's coin; what is paired pops, by the countdown. Neither may be missed. */
static void check_both_ways(const char *sentence)
{
    be_started_with(sentence, "heap_profile=on,heap_profile_samples=0,heap_profile_rate=65536,"
                              "thread_cache=64K");
    for (uint32_t i = 0; i < SELDOM; i++) {
        keep_one_of_the_slow_path(i);
        for (uint32_t k = 0; k < 100; k++)
            pair(i + k);
    }
    struct sums keeps = sums_of((const void *)keep_one_of_the_slow_path);
    struct sums pairs = sums_of((const void *)pair);
    check_share(keeps.allocated, (double)kept_bytes, 0.06);
    check_share(keeps.count, SELDOM, 0.06);
    check_share(pairs.allocated, (double)paired_bytes, 0.08);
    CHECK_EQ(keeps.freed, 0);
    CHECK_EQ(pairs.freed, pairs.allocated);
    for (uint32_t i = 0; i < SELDOM; i++)
        hak_free(kept[i]);
}

TEST(a_site_that_refills_is_seen_beside_one_that_pops)
{
    check_both_ways(__func__);
}

TEST(hardened_blocks_are_sampled_in_their_place)
{
    begin(__func__, "thread", "all");
    run(3);
    check_sites();
}

TEST(large_blocks_are_sampled_by_their_bytes)
{
    be_started_with(__func__, "heap_profile=on,heap_profile_samples=0,heap_profile_rate=1M");
    for (uint32_t i = 0; i < 40000; i++) {
        void *block = make_large(i);
        hak_free(block);
    }
    struct sums sums = sums_of((const void *)make_large);
    CHECK(sums.samples >= 2000);
    check_share(sums.allocated, (double)large_bytes, 0.06);
    CHECK_EQ(sums.freed, sums.allocated);
}

DISTINCT static void *grow(void *block, size_t bytes)
{
    void *moved = hak_realloc(block, bytes);
    __asm__ volatile("" ::: "memory");
    return moved;
}

/* With the rate at one byte each request is a sample: exact. */
static void begin_exactly(const char *sentence)
{
    be_started_with(sentence, "heap_profile=on,heap_profile_samples=0,heap_profile_rate=1");
}

static double live_of(const void *function)
{
    struct sums sums = sums_of(function);
    return sums.allocated - sums.freed;
}

TEST(a_block_that_realloc_moves_is_another_one_and_one_that_stays_is_not)
{
    begin_exactly(__func__);
    void *block = hak_malloc(3000000);
    for (size_t bytes = 4000000; bytes < 400000000; bytes *= 2) {
        block = grow(block, bytes);
        memset(block, 1, 100);
        struct sums sums = sums_of((const void *)grow);
        CHECK_EQ(sums.allocated - sums.freed, bytes);
    }
    block = grow(block, 1000);
    struct sums sums = sums_of((const void *)grow);
    CHECK_EQ(sums.allocated - sums.freed, 1000);
    uint64_t samples = sums.samples;
    CHECK_EQ(grow(block, 900), block);
    CHECK_EQ(sums_of((const void *)grow).samples, samples);
    CHECK_EQ(live_of((const void *)grow), 900);
    CHECK_EQ(hakmem_heap_of(block), NULL);
    CHECK_EQ(hak_malloc_usable_size(block), hak_malloc_good_size(1000));
    hak_free(block);
    sums = sums_of((const void *)grow);
    CHECK_EQ(sums.allocated, sums.freed);
}

DISTINCT static void drop(void *block)
{
    hak_free(block);
    __asm__ volatile("" ::: "memory");
}

TEST(the_code_that_frees_a_sample_is_known)
{
    begin_exactly(__func__);
    drop(grow(NULL, 700));
    drop(grow(NULL, 300000));
    uint32_t known = 0;
    for (uint32_t i = 1; i < hak_sites_count(); i++) {
        const struct board_site *freeing =
            hak_sites_at((uint32_t)hak_load_relaxed(&hak_sites_at(i)->freed_by));
        for (uint32_t k = 0; freeing != NULL && k < freeing->frame_count && k < 6; k++)
            known += freeing->frames[k] - (uintptr_t)drop < 256;
    }
    CHECK(known > 0);
}

DISTINCT static void drop_later(void *block)
{
    hak_free(block);
    __asm__ volatile("" ::: "memory");
}

/* Whether the site that has most ends is said to be freed by this function. */
static bool is_freed_by(const void *function)
{
    const struct board_site *most = hak_sites_at(1);
    for (uint32_t i = 2; i < hak_sites_count(); i++)
        if (hak_load_relaxed(&hak_sites_at(i)->ended_samples) >
            hak_load_relaxed(&most->ended_samples))
            most = hak_sites_at(i);
    const struct board_site *freeing = hak_sites_at((uint32_t)hak_load_relaxed(&most->freed_by));
    for (uint32_t k = 0; freeing != NULL && k < freeing->frame_count && k < 6; k++)
        if (freeing->frames[k] - (uintptr_t)function < 256)
            return true;
    return false;
}

/* It is not looked for at each end, but soon after it has changed. */
TEST(code_that_frees_from_now_on_is_known_after_eight_ends)
{
    begin_exactly(__func__);
    volatile int change = 99; /* in one loop: the blocks have one site */
    for (int i = 0; i < 99 + 8; i++) {
        void *block = grow(NULL, 300000);
        if (i < change)
            drop(block);
        else
            drop_later(block);
        CHECK(i != 98 || is_freed_by((const void *)drop));
    }
    CHECK(is_freed_by((const void *)drop_later));
}

/* What realloc leaves for the next step is not held by the program. */
TEST(a_block_that_grows_in_small_steps_counts_with_its_requested_size)
{
    begin_exactly(__func__);
    void *block = grow(NULL, 1000), *last = NULL;
    uint32_t stays = 0;
    for (size_t bytes = 1010; bytes < 5000; bytes += 10) {
        block = grow(block, bytes);
        CHECK_EQ(live_of((const void *)grow), bytes);
        stays += block == last;
        last = block;
    }
    CHECK(stays > 300);
    hak_free(block);
    CHECK_EQ(live_of((const void *)grow), 0);
}

TEST(a_hardened_block_that_stays_has_its_new_size)
{
    be_started_with(__func__,
                    "harden=all,heap_profile=on,heap_profile_samples=0,heap_profile_rate=1");
    void *block = grow(NULL, 1000);
    for (size_t bytes = 990; bytes > 600; bytes -= 10) {
        CHECK_EQ(grow(block, bytes), block);
        CHECK_EQ(live_of((const void *)grow), bytes);
    }
    CHECK_EQ(sums_of((const void *)grow).samples, 1);
    hak_free(block);
    CHECK_EQ(live_of((const void *)grow), 0);
}

TEST(every_way_to_allocate_is_sampled_and_keeps_its_promises)
{
    begin_exactly(__func__);
    for (uint32_t i = 0; i < 2000; i++) {
        size_t bytes = i * 131 % 200000;
        unsigned char *zero = hak_calloc(1, bytes);
        CHECK_BYTES(zero, bytes, 0);
        memset(zero, 0xff, bytes);
        size_t alignment = (size_t)16 << i % 12;
        void *aligned = hak_memalign(alignment, bytes);
        CHECK_EQ((uintptr_t)aligned % alignment, 0);
        CHECK(hak_malloc_usable_size(aligned) >= bytes);
        void *object = hak_new(bytes);
        void *empty = hak_malloc(0), *empty_too = hak_malloc(0);
        CHECK(empty != NULL && empty != empty_too);
        CHECK_EQ(hak_malloc_usable_size(empty), 0);
        hak_free(empty);
        hak_free(empty_too);
        hak_delete_sized(object, bytes);
        hak_free(aligned);
        hak_free(zero);
    }
    double allocated = 0, freed = 0;
    for (uint32_t i = 0; i < hak_sites_count(); i++) {
        if (hak_sites_at(i) == NULL)
            continue;
        allocated += (double)hak_load_relaxed(&hak_sites_at(i)->allocated_bytes);
        freed += (double)hak_load_relaxed(&hak_sites_at(i)->freed_bytes);
    }
    CHECK(allocated > 1000);
    CHECK_EQ(allocated, freed);
}

static uint64_t popped(void)
{
    static struct census census;
    hak_census_take(&census);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++)
        sum += census.classes[i].popped;
    return sum;
}

static uint64_t live_blocks(void)
{
    static struct snapshot snapshot;
    hak_snapshot_take(&snapshot, &(struct census){0});
    return snapshot.small_live_blocks;
}

/* Each request is served by a pop or by a sample, which then is no pop; samples that the slow path
 * drew are no pops either. So pops and samples together are at least the requests, and less only by
 * refills, which hand a block out past the bin. */
TEST(pops_are_counted_exactly_while_allocations_are_sampled)
{
    be_started_with(__func__, "caches=thread,heap_profile_samples=0");
    CHECK(hak_thread_cache() != NULL);
    hak_free(hak_malloc(600));
    for (int i = 0; i < 16; i++) /* the bin has slots and blocks from here on */
        pair(70);
    uint64_t before = popped(), live_before = live_blocks();
    hak_profile_start(3000);
    for (uint32_t i = 0; i < 300000; i++)
        pair(70); /* of one size, always found in the bin */
    hak_profile_stop();
    struct sums sums = sums_of((const void *)pair);
    CHECK(sums.samples > 1000);
    CHECK_EQ(popped() - before + sums.samples, 300000);
    CHECK_EQ(live_blocks(), live_before);
}

TEST(sampling_begins_and_ends_at_run_time)
{
    CHECK(hak_thread_cache() != NULL);
    for (uint32_t i = 0; i < 1000; i++)
        pair(i);
    CHECK(!hak_sampler_watches());
    CHECK_EQ(hak_option_change("heap_profile_samples", "0"), OPTION_CHANGED);
    hak_profile_start(4096);
    paired_bytes = 0;
    for (uint32_t i = 0; i < 2000000; i++)
        pair(i);
    struct sums sums = sums_of((const void *)pair);
    CHECK(sums.samples > 2000);
    if (hak_caches_reason() == RSEQ_PROCESSOR)
        check_share(sums.allocated, (double)paired_bytes, 0.05);
    CHECK_EQ(hak_profile_times().mean_bytes, 4096);
    hak_profile_stop();
    CHECK_EQ(hak_profile_times().mean_bytes, 4096); /* a profile of what there is, at its rate */
    uint64_t samples = sums_of((const void *)pair).samples;
    for (uint32_t i = 0; i < 1000000; i++)
        pair(i);
    CHECK_EQ(sums_of((const void *)pair).samples, samples);
}

static hakmem_heap *own_heap;

DISTINCT static void keep_in_heap(uint32_t i)
{
    kept[i] = hakmem_heap_malloc(own_heap, bytes_of(i));
    kept_bytes += bytes_of(i);
    __asm__ volatile("" ::: "memory");
}

DISTINCT static void pair_in_heap(uint32_t i)
{
    void *block = hakmem_heap_malloc(own_heap, bytes_of(i));
    paired_bytes += bytes_of(i);
    if (i % 2 == 0)
        hakmem_heap_free(own_heap, block);
    else
        hak_free(block);
}

/* Blocks of a heap of the program's: those that are freed end, and all others with their heap. */
DISTINCT static void check_heap(void)
{
    own_heap = hakmem_heap_new();
    for (uint32_t i = 0; i < BLOCKS; i++) {
        keep_in_heap(i);
        for (uint32_t k = 0; k < 3; k++)
            pair_in_heap(i + k);
    }
    struct sums keeps = sums_of((const void *)keep_in_heap);
    struct sums pairs = sums_of((const void *)pair_in_heap);
    CHECK(keeps.samples >= 2000 && pairs.samples >= 2000);
    check_share(keeps.allocated, (double)kept_bytes, 0.05);
    check_share(keeps.count, BLOCKS, 0.05);
    CHECK_EQ(keeps.freed, 0);
    check_share(pairs.allocated, (double)paired_bytes, 0.05);
    CHECK_EQ(pairs.freed, pairs.allocated);
    for (uint32_t i = 0; i < BLOCKS; i += 2) {
        kept_bytes -= bytes_of(i);
        hakmem_heap_free(own_heap, kept[i]);
    }
    keeps = sums_of((const void *)keep_in_heap);
    check_share(keeps.allocated - keeps.freed, (double)kept_bytes, 0.06);
    hakmem_heap_destroy(own_heap);
    keeps = sums_of((const void *)keep_in_heap);
    CHECK_EQ(keeps.freed, keeps.allocated);
}

TEST(blocks_of_a_heap_are_sampled_and_end_with_it)
{
    be_started_with(__func__, "heap_profile=on,heap_profile_samples=0,heap_profile_rate=" RATE);
    check_heap();
}

TEST(blocks_of_a_heap_are_sampled_in_hardened_mode)
{
    be_started_with(__func__, "harden=all,heap_profile=on,heap_profile_samples=0,"
                              "heap_profile_rate=" RATE);
    check_heap();
}

DISTINCT static void *ask_heap(hakmem_heap *heap, uint32_t way, void *block)
{
    void *answer = way == 0   ? hakmem_heap_calloc(heap, 3, 100)
                   : way == 1 ? hakmem_heap_aligned_alloc(heap, 64, 300)
                   : way == 2 ? hakmem_heap_malloc(heap, 300000)
                              : hakmem_heap_realloc(heap, block, 700000);
    __asm__ volatile("" ::: "memory");
    return answer;
}

TEST(every_way_of_a_heap_is_sampled_and_only_its_own_end_with_it)
{
    begin_exactly(__func__);
    hakmem_heap *heaps[2] = {hakmem_heap_new(), hakmem_heap_new()};
    static const double live_bytes[] = {300, 600, 300600, 700600};
    for (int i = 0; i < 2; i++) {
        void *block = NULL;
        for (uint32_t way = 0; way < 4; way++) {
            block = ask_heap(heaps[i], way, block);
            struct sums sums = sums_of((const void *)ask_heap);
            CHECK_EQ(sums.allocated - sums.freed, live_bytes[way] + i * live_bytes[3]);
        }
    }
    hakmem_heap_destroy(heaps[0]);
    struct sums sums = sums_of((const void *)ask_heap);
    CHECK_EQ(sums.allocated - sums.freed, live_bytes[3]);
    hakmem_heap_destroy(heaps[1]);
    sums = sums_of((const void *)ask_heap);
    CHECK_EQ(sums.freed, sums.allocated);
}
