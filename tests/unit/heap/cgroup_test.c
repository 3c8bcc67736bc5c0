/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/cgroup_test.c - what a container allows reaches the numbers that decide, once
 * the heap is large, and pressure on memory makes everything free go back. */
#include "heap/cgroup.h"

#include "api/api.h"
#include "folder.h"
#include "hakmem/hakmem.h"
#include "heap/limit.h"
#include "heap/settings.h"
#include "os/os.h"
#include "process/background.h"
#include "process/start.h"
#include "span/span_heap.h"

/* This process is in a group that allows so much. */
static void be_in_group(const char *high, const char *max, const char *cpu)
{
    folder_put("proc/self/cgroup", "0::/g\n");
    folder_put("sys/fs/cgroup/g/memory.high", high);
    folder_put("sys/fs/cgroup/g/memory.max", max);
    folder_put("sys/fs/cgroup/g/cpu.max", cpu);
    hak_own_cgroup_root = folder;
    hak_background_pause(); /* this test reads, instead of that thread */
}

/* Takes so much, and reads what the background thread would read then. */
static void *grow(size_t bytes)
{
    void *block = hak_malloc(bytes);
    hak_settings_read();
    return block;
}

TEST(a_small_heap_never_looks)
{
    be_in_group("1000000\n", "max\n", "max 100000\n");
    for (int i = 0; i < 10; i++)
        CHECK(hak_malloc(HAK_MIB) != NULL);
    CHECK_EQ(hak_load_relaxed(&hak_settings_were_read), 0);
    CHECK_EQ(hak_load_relaxed(&hak_limit_group_bytes), 0);
    CHECK(!hak_own_cgroup_tells_pressure());
}

TEST(the_soft_limit_follows_memory_high)
{
    be_in_group("50000000\n", "90000000\n", "max 100000\n");
    for (int i = 0; i < 40; i++)
        CHECK(hak_malloc(HAK_MIB) != NULL);
    hak_settings_read();
    CHECK_EQ(hak_load_relaxed(&hak_limit_group_bytes), 50000000);
    CHECK_EQ(hak_policy_read(limit_bytes), 0); /* nothing is refused for it */
    for (int i = 0; i < 40; i++)
        CHECK(hak_malloc(HAK_MIB) != NULL);
    CHECK(hak_limit_is_passed());
}

TEST(without_memory_high_it_is_nine_tenths_of_memory_max)
{
    be_in_group("max\n", "100000000\n", "max 100000\n");
    void *block = grow(40 * HAK_MIB);
    CHECK(block != NULL);
    CHECK_EQ(hak_load_relaxed(&hak_limit_group_bytes), 90000000);
}

TEST(an_option_overrides_the_group)
{
    be_in_group("50000000\n", "max\n", "max 100000\n");
    CHECK(grow(60 * HAK_MIB) != NULL);
    CHECK(hak_limit_is_passed());
    CHECK_EQ(hakmem_option_set("soft_limit", "70M"), 0);
    CHECK(!hak_limit_is_passed());
}

TEST(a_quota_of_one_cpu_keeps_caches_small_and_locks_from_spinning)
{
    be_in_group("max\n", "max\n", "50000 100000\n");
    CHECK(hak_policy_read(spin_rounds) > 0);
    CHECK(grow(40 * HAK_MIB) != NULL);
    CHECK_EQ(hak_policy_read(process_cache_bytes), 8 * HAK_MIB);
    CHECK_EQ(hak_policy_read(spin_rounds), 0);
}

TEST(a_wide_quota_changes_nothing)
{
    be_in_group("max\n", "max\n", "6400000 100000\n");
    uint64_t bytes = hak_policy_read(process_cache_bytes), rounds = hak_policy_read(spin_rounds);
    CHECK(grow(40 * HAK_MIB) != NULL);
    CHECK_EQ(hak_policy_read(process_cache_bytes), bytes);
    CHECK_EQ(hak_policy_read(spin_rounds), rounds);
    CHECK_EQ(hak_load_relaxed(&hak_limit_group_bytes), 0);
}

static void tell_pressure(unsigned long stall_us)
{
    char line[256];
    snprintf(line, sizeof line, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%lu\n", stall_us);
    folder_put("sys/fs/cgroup/g/memory.pressure", line);
}

TEST(pressure_is_a_tenth_of_the_time_spent_waiting)
{
    be_in_group("max\n", "max\n", "max 100000\n");
    tell_pressure(5000000);
    CHECK(grow(40 * HAK_MIB) != NULL);
    CHECK(hak_own_cgroup_tells_pressure());
    CHECK(!hak_own_cgroup_is_pressed(10000)); /* what was before counts for nothing */
    tell_pressure(5099000);
    CHECK(!hak_own_cgroup_is_pressed(11000));
    tell_pressure(5199000);
    CHECK(!hak_own_cgroup_is_pressed(11400)); /* too early to look */
    CHECK(hak_own_cgroup_is_pressed(12000));
    CHECK(!hak_own_cgroup_is_pressed(13000));
    folder_remove();
    CHECK(!hak_own_cgroup_is_pressed(14000));
}

TEST(under_pressure_everything_free_goes_back)
{
    be_in_group("max\n", "max\n", "max 100000\n");
    tell_pressure(0);
    hak_store_relaxed(&hak_policy.decay_ms, 600000);
    void *block = grow(40 * HAK_MIB);
    memset(block, 1, 40 * HAK_MIB);
    hak_free(block);
    CHECK(!hak_background_watch());
    CHECK(hak_span_warm_bytes() + hak_limit_warm_bytes() > 0);
    tell_pressure(100000000);
    usleep(600000);
    CHECK(hak_background_watch());
    CHECK_EQ(hak_limit_warm_bytes(), 0);
}
