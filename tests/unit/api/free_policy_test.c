/* SPDX-License-Identifier: MIT */
/* tests/unit/api/free_policy_test.c - what becomes of old free memory, and memory kept from the
 * start. */
#include "api/api.h"
#include "check.h"
#include "conf/conf.h"
#include "folder.h"
#include "hakmem/hakmem.h"
#include "heap/cgroup.h"
#include "heap/limit.h"
#include "policy/policy_table.h"
#include "process/prewarm.h"
#include "process/reclaim.h"
#include "process/start.h"
#include "span/span_heap.h"
#include "unit/resident.h"

#define BYTES (2 * HAK_MIB)
#define COUNT 40

static void *blocks[COUNT];

/* Blocks that do not join when they are free: every second one is freed. */
static void free_every_second(void)
{
    hak_conf.number[CONF_maintenance] = MAINTENANCE_OFF;
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = hak_malloc(BYTES);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, BYTES);
    }
    for (int i = 0; i < COUNT; i += 2)
        hak_free(blocks[i]);
}

static void tick_later(void)
{
    usleep(40000);
    hak_reclaim_tick();
}

TEST(kept_memory_stays_until_it_is_asked_for)
{
    CHECK_EQ(hakmem_option_set("free_policy", "keep"), 0);
    hak_store_relaxed(&hak_policy.decay_ms, 5);
    free_every_second();
    size_t warm = hak_span_warm_bytes();
    CHECK(warm >= COUNT / 2 * BYTES);
    for (int i = 0; i < 5; i++)
        tick_later();
    for (int i = 1; i < COUNT; i += 2)
        hak_free(blocks[i]); /* nor is it given up because there is much of it */
    CHECK(hak_span_warm_bytes() >= COUNT * BYTES);
    bool is_done;
    CHECK_EQ(hak_reclaim_visit(&is_done), 0);
    CHECK(hak_reclaim_purge_all() >= COUNT * BYTES);
}

TEST(old_memory_goes_back_in_one_batch_and_none_is_kept)
{
    CHECK_EQ(hakmem_option_set("free_policy", "batch"), 0);
    hak_store_relaxed(&hak_policy.decay_ms, 5);
    free_every_second();
    CHECK(hak_span_warm_bytes() > 0);
    tick_later();
    CHECK_EQ(hak_span_warm_bytes(), 0);
}

TEST(by_need_memory_goes_back_bit_by_bit_and_some_is_kept)
{
    hak_store_relaxed(&hak_policy.decay_ms, 5);
    free_every_second();
    size_t warm = hak_span_warm_bytes();
    tick_later();
    CHECK(hak_span_warm_bytes() > 0);
    for (int i = 0; i < 5; i++)
        tick_later();
    CHECK(hak_span_warm_bytes() > 0);
    CHECK(hak_span_warm_bytes() < warm);
}

TEST(prewarmed_memory_is_there_and_stays)
{
    refuse_huge_pages();
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.decay_ms, 5);
    hak_store_relaxed(&hak_policy.prewarm_bytes, 30 * HAK_MIB);
    hak_prewarm();
    CHECK(window_resident_bytes() >= 30 * HAK_MIB);
    CHECK(hak_span_warm_bytes() >= 30 * HAK_MIB);
    for (int i = 0; i < 3; i++)
        tick_later();
    CHECK(window_resident_bytes() >= 27 * HAK_MIB); /* within a superslab */
    size_t before = window_resident_bytes();
    for (int i = 0; i < 10; i++) {
        blocks[i] = hak_malloc(BYTES);
        memset(blocks[i], 1, BYTES);
    }
    CHECK(window_resident_bytes() <= before + HAK_MIB); /* it serves */
    for (int i = 0; i < 10; i++)
        hak_free(blocks[i]);
    tick_later();
    CHECK(window_resident_bytes() >= 27 * HAK_MIB); /* within a superslab */
    hak_store_relaxed(&hak_policy.prewarm_bytes, 0);
    for (int i = 0; i < 3; i++)
        tick_later();
    CHECK(window_resident_bytes() < 20 * HAK_MIB);
}

/* The window's memory that is prewarmed where a superslab has free granules. */
static size_t prewarmed_bytes(size_t asked_bytes)
{
    size_t before = window_resident_bytes();
    hak_store_relaxed(&hak_policy.prewarm_bytes, asked_bytes);
    hak_prewarm();
    return window_resident_bytes() - before;
}

TEST(no_more_is_prewarmed_than_was_asked_for)
{
    refuse_huge_pages();
    void *block = hak_malloc(16);
    CHECK(block != NULL);
    CHECK_EQ(prewarmed_bytes(1), (size_t)sysconf(_SC_PAGESIZE));
    CHECK_EQ(prewarmed_bytes(2 * HAK_GRANULE_BYTES), 2 * HAK_GRANULE_BYTES);
    hak_free(block);
}

TEST(more_than_there_is_is_not_prewarmed)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.limit_bytes, 20 * HAK_MIB);
    hak_store_relaxed(&hak_policy.prewarm_bytes, 30 * HAK_MIB);
    hak_prewarm();
    CHECK(hak_held_bytes() <= 20 * HAK_MIB);
    void *block = hak_malloc(BYTES);
    CHECK(block != NULL);
    hak_free(block);
}

/* The option is set, on a machine that has so much available. */
static void prewarm_with(const char *meminfo, size_t bytes)
{
    folder_put("proc/meminfo", meminfo);
    hak_own_cgroup_root = folder;
    hak_store_relaxed(&hak_policy.prewarm_bytes, bytes);
    hak_prewarm();
}

TEST(no_more_is_prewarmed_than_the_machine_has_available)
{
    refuse_huge_pages();
    CHECK(hak_process_start());
    CHECK_SAYS(prewarm_with("MemAvailable: 20480 kB\n", 30 * HAK_MIB),
               "hakmem: prewarm=30M is more than the memory that is available: 1");
    CHECK_SAYS(prewarm_with("MemAvailable: 64 kB\n", 30 * HAK_MIB), ": 0 is touched\n");
    prewarm_with("MemAvailable: 20480 kB\n", 30 * HAK_MIB);
    CHECK(window_resident_bytes() >= 16 * HAK_MIB);
    CHECK(window_resident_bytes() <= 18 * HAK_MIB);
    CHECK(hak_policy_read(prewarm_bytes) <= 18 * HAK_MIB); /* nor is more kept */
}

TEST(nothing_is_said_if_there_is_enough_for_what_is_prewarmed)
{
    CHECK(hak_process_start());
    CHECK_SAYS_NOTHING(prewarm_with("MemAvailable: 102400 kB\n", 30 * HAK_MIB));
    prewarm_with("MemAvailable: 102400 kB\n", 30 * HAK_MIB);
    CHECK_EQ(hak_policy_read(prewarm_bytes), 30 * HAK_MIB);
    CHECK(hak_span_warm_bytes() >= 28 * HAK_MIB);
}
