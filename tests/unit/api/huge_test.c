/* SPDX-License-Identifier: MIT */
/* tests/unit/api/huge_test.c - what is sparse is not resident, whatever the kernel does with huge
 * pages. */
#define _GNU_SOURCE
#include "api/api.h"
#include "base/bits.h"
#include "base/text.h"
#include "check.h"
#include "conf/conf.h"
#include "heap/heaps.h"
#include "os/os_fault.h"
#include "os/os_huge.h"
#include "os/os_memory.h"
#include "policy/policy_table.h"
#include "process/prewarm.h"
#include "process/reclaim.h"
#include "process/start.h"
#include "unit/asan.h"
#include "unit/resident.h"

#include <sys/wait.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define BYTES (128 * HAK_MIB)
#define BLOCK_BYTES_LEAST 4096u
#define KEPT_PERCENT 5u
#define HUGE_BYTES (2 * HAK_MIB)
/* In one pass all slabs are looked at, but those that were in use since the last one. */
#define PASSES 16u
#define ROUNDS_MOST 4000

static bool has_flag(const char *line, const char *flag)
{
    return strstr(line, flag) != NULL;
}

/* Makes huge pages of all that the kernel's own thread would make some of, sooner or later. */
static void collapse(bool is_always)
{
    static uintptr_t begins[4096], ends[4096];
    size_t count = 0;
    uintptr_t begin = 0, end = 0;
    char line[512];
    FILE *file = fopen("/proc/self/smaps", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        uintptr_t from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            begin = from;
            end = to;
        }
        if (strncmp(line, "VmFlags:", 8) != 0)
            continue;
        bool is_wanted = is_always ? !has_flag(line, " nh") : has_flag(line, " hg");
        if (!is_wanted || begin - hak_region.base >= hak_region.window_bytes || count == 4096)
            continue;
        begins[count] = hak_align_up(begin, HUGE_BYTES);
        ends[count++] = hak_align_down(end, HUGE_BYTES);
    }
    fclose(file);
    for (size_t i = 0; i < count; i++)
        for (uintptr_t at = begins[i]; at < ends[i]; at += HUGE_BYTES) {
            unsigned char is_resident[HUGE_BYTES / 4096];
            if (mincore((void *)at, HUGE_BYTES, is_resident) != 0 ||
                memchr(is_resident, 1, sizeof is_resident) == NULL)
                continue;
            madvise((void *)at, HUGE_BYTES, MADV_COLLAPSE);
        }
}

static void start_with(enum conf_thp thp, enum os_huge setting)
{
    hak_store_relaxed(&hak_os_fault.huge_pages, (uint32_t)setting + 1);
    CHECK(hak_process_start()); /* a constructor has done so, long before */
    CHECK_EQ(hak_load_relaxed(&hak_region.committed_bytes), 0);
    hak_conf.number[CONF_thp] = thp;
    hak_store_relaxed(&hak_policy.huge_heap_superslabs, setting == HUGE_ALWAYS ? HAK_MIB : 4);
}

/* Bytes resident after one byte of each block was touched. */
static size_t touched_bytes(size_t block_bytes, enum conf_thp thp, enum os_huge setting)
{
    start_with(thp, setting);
    for (size_t i = 0; i < BYTES / block_bytes; i++) {
        char *block = hak_malloc(block_bytes);
        CHECK(block != NULL);
        *block = 1;
    }
    return window_resident_bytes();
}

static void prewarm(void)
{
    hak_store_relaxed(&hak_policy.prewarm_bytes, 64 * HAK_MIB);
    hak_prewarm();
    hak_store_relaxed(&hak_policy.prewarm_bytes, 0);
}

/* Until each heap was swept several times: a thread that is moved to another processor leaves the
 * sweep of a heap unfinished. */
static void sweep_all_heaps(void)
{
    int rounds = 0;
    for (uint32_t i = 0; i < hak_heap_count(); i++)
        for (uint32_t last = hak_heap_at(i)->sweep_pass + PASSES; hak_heap_at(i)->sweep_pass < last;
             rounds++) {
            bool is_done;
            CHECK(rounds < ROUNDS_MOST);
            usleep(5000);
            hak_reclaim_cache(hak_thread_cache());
            hak_reclaim_visit(&is_done);
        }
}

/* Bytes resident after 95 % of many blocks were freed at random and all was quiet for a while. */
static size_t bytes_when_sparse(size_t block_bytes, enum os_huge setting)
{
    static void *blocks[BYTES / BLOCK_BYTES_LEAST];
    size_t count = BYTES / block_bytes;
    hak_store_relaxed(&hak_policy.decay_ms, 2);
    hak_store_relaxed(&hak_policy.retain_bytes, 0);
    uint32_t random = 1;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = hak_malloc(block_bytes);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, hak_malloc_usable_size(blocks[i])); /* as a huge page would */
    }
    for (size_t i = 0; i < count; i++) {
        random = random * 1664525u + 1013904223u;
        if ((random >> 8) % 100 >= KEPT_PERCENT)
            hak_free(blocks[i]);
    }
    hak_thread_flush();
    sweep_all_heaps();
    collapse(setting == HUGE_ALWAYS);
    return window_resident_bytes();
}

static size_t sparse_bytes(size_t block_bytes, enum conf_thp thp, enum os_huge setting)
{
    start_with(thp, setting);
    return bytes_when_sparse(block_bytes, setting);
}

static size_t sparse_prewarmed_bytes(size_t block_bytes, enum conf_thp thp, enum os_huge setting)
{
    start_with(thp, setting);
    prewarm();
    return bytes_when_sparse(block_bytes, setting);
}

/* In a process of its own. */
static size_t measured(size_t (*use)(size_t, enum conf_thp, enum os_huge), size_t block_bytes,
                       enum conf_thp thp, enum os_huge setting)
{
    size_t bytes = 0;
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        bytes = use(block_bytes, thp, setting);
        _exit(write(ends[1], &bytes, sizeof bytes) == sizeof bytes ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(read(ends[0], &bytes, sizeof bytes), sizeof bytes);
    check_print("thp %d, kernel %d: %zu KiB\n", (int)thp, (int)setting, bytes / 1024);
    return bytes;
}

static void skip_where_it_cannot_be_seen(void)
{
    if (HAK_CHECK_LEVEL < 2 || HAK_SUPERSLAB_BYTES != HUGE_BYTES)
        SKIP("the kernel's setting cannot be faked, or superslabs are no huge pages");
    if (UNDER_ASAN || sysconf(_SC_PAGESIZE) != 4096)
        SKIP("other pages are resident here");
}

static void check_not_inflated(size_t block_bytes, enum conf_thp thp, enum os_huge setting)
{
    skip_where_it_cannot_be_seen();
    size_t least = measured(sparse_bytes, block_bytes, THP_OFF, setting);
    CHECK(least > BYTES / 100 * KEPT_PERCENT / 2);
    CHECK(measured(sparse_bytes, block_bytes, thp, setting) <= least + least / 10);
}

TEST(blocks_of_several_pages_are_resident_where_they_were_touched)
{
    skip_where_it_cannot_be_seen();
    hak_os_read_huge_pages();
    if (hak_os_huge_pages() != HUGE_ON_REQUEST)
        SKIP("this kernel gives huge pages always, or never");
    size_t least = measured(touched_bytes, 32 * HAK_KIB, THP_OFF, HUGE_ON_REQUEST);
    CHECK(least < BYTES / 4);
    CHECK(measured(touched_bytes, 32 * HAK_KIB, THP_AUTO, HUGE_ON_REQUEST) <= least + least / 10);
}

TEST(sparse_memory_is_not_inflated_where_huge_pages_come_unasked)
{
    check_not_inflated(4096, THP_AUTO, HUGE_ALWAYS);
}

TEST(sparse_memory_is_not_inflated_where_huge_pages_come_on_request)
{
    check_not_inflated(4096, THP_AUTO, HUGE_ON_REQUEST);
}

TEST(sparse_memory_is_not_inflated_where_the_user_wants_huge_pages)
{
    check_not_inflated(4096, THP_ON, HUGE_ON_REQUEST);
}

TEST(gaps_between_large_blocks_are_not_filled_where_huge_pages_come_unasked)
{
    check_not_inflated(256 * HAK_KIB, THP_AUTO, HUGE_ALWAYS);
}

TEST(gaps_between_large_blocks_are_not_filled_where_the_user_wants_huge_pages)
{
    check_not_inflated(256 * HAK_KIB, THP_ON, HUGE_ON_REQUEST);
}

static uint64_t huge_bytes(uintptr_t start, size_t bytes)
{
    struct os_range range = {start, start + bytes};
    return hak_os_memory_read(&range, 1).huge_bytes;
}

TEST(prewarmed_memory_is_huge_pages)
{
    skip_where_it_cannot_be_seen();
    char *probe =
        mmap(NULL, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(probe != MAP_FAILED);
    madvise(probe, 2 * HUGE_BYTES, MADV_HUGEPAGE);
    memset(probe, 1, 2 * HUGE_BYTES);
    if (huge_bytes((uintptr_t)probe, 2 * HUGE_BYTES) == 0)
        SKIP("this kernel has no huge page to give");
    start_with(THP_AUTO, HUGE_ON_REQUEST);
    prewarm();
    CHECK(huge_bytes(hak_region.base, BYTES) >= 32 * HAK_MIB); /* the kernel may run out of them */
}

TEST(sparse_memory_is_not_inflated_where_it_was_prewarmed)
{
    skip_where_it_cannot_be_seen();
    size_t least = measured(sparse_bytes, 4096, THP_OFF, HUGE_ON_REQUEST);
    size_t bytes = measured(sparse_prewarmed_bytes, 4096, THP_AUTO, HUGE_ON_REQUEST);
    CHECK(bytes <= least + least / 10);
}
