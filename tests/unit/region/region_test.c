/* SPDX-License-Identifier: MIT */
/* tests/unit/region/region_test.c - the window grows where nothing is reserved for it. */
#include "base/bits.h"
#include "check.h"
#include "faults.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "region/tag_map.h"
#include "unit/asan.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(void)
{
    hak_os_start();
    CHECK(hak_region_start());
}

static void check_range(struct granule_range range, size_t count)
{
    CHECK(range.count >= count);
    CHECK_EQ(range.first % HAK_SUPERSLAB_GRANULES, 0);
    CHECK_EQ(range.count % HAK_SUPERSLAB_GRANULES, 0);
    unsigned char *first = hak_granule_address(range.first);
    unsigned char *last = (unsigned char *)hak_granule_address(range.first + range.count) - 1;
    CHECK(hak_region_holds(first));
    CHECK(hak_region_holds(last));
    CHECK(!hak_region_holds(last + 1));
    CHECK_EQ(*first, 0);
    CHECK_EQ(*last, 0);
    *first = *last = 1;
    CHECK_EQ(hak_tag_read(range.first), HAK_TAG_NONE);
    CHECK_EQ(hak_tag_read(range.first + range.count - 1), HAK_TAG_NONE);
    CHECK_EQ(hak_owner_read(range.first + range.count - 1), NULL);
    hak_region
        .superslab_records[range.first / HAK_SUPERSLAB_GRANULES * HAK_SUPERSLAB_RECORD_BYTES] = 1;
}

TEST(the_window_starts_at_a_superslab_with_nothing_committed)
{
    start();
    CHECK_EQ(hak_region.base % HAK_SUPERSLAB_BYTES, 0);
    CHECK_EQ(hak_region.window_bytes % HAK_SUPERSLAB_BYTES, 0);
    CHECK(hak_region.window_bytes >= HAK_WINDOW_BYTES_MIN);
    CHECK(!hak_region_holds((void *)hak_region.base));
    CHECK(!hak_region_holds(NULL));
    CHECK(!hak_region_holds(&hak_region));
}

TEST(growth_is_whole_superslabs_one_behind_the_other)
{
    start();
    uint32_t next = 0;
    for (size_t wished = 1; wished < 5000; wished = wished * 2 + 1) {
        struct granule_range range = hak_region_grow(wished);
        check_range(range, wished);
        CHECK_EQ(range.first, next);
        next = range.first + range.count;
        CHECK_EQ(hak_load_relaxed(&hak_region.committed_bytes), (size_t)next << HAK_GRANULE_SHIFT);
    }
    CHECK(hak_region_holds((void *)hak_region.base));
    CHECK(!hak_region_holds((char *)hak_region.base - 1));
}

TEST(steps_grow_with_what_is_committed_up_to_a_limit)
{
    start();
    CHECK_EQ(hak_region_grow(1).count, HAK_COMMIT_STEP_LEAST >> HAK_GRANULE_SHIFT);
    hak_region_grow(HAK_GIB >> HAK_GRANULE_SHIFT);
    CHECK_EQ(hak_region_grow(1).count, HAK_COMMIT_STEP_MOST >> HAK_GRANULE_SHIFT);
}

TEST(address_and_granule_are_inverse)
{
    start();
    struct granule_range range = hak_region_grow(HAK_SUPERSLAB_GRANULES);
    for (uint32_t i = 0; i < range.count; i++) {
        unsigned char *address = hak_granule_address(range.first + i);
        CHECK_EQ(hak_granule_of(address), range.first + i);
        CHECK_EQ(hak_granule_of(address + HAK_GRANULE_BYTES - 1), range.first + i);
    }
}

TEST(a_window_that_is_used_up_refuses)
{
    start();
    size_t granules = hak_region.window_bytes >> HAK_GRANULE_SHIFT;
    CHECK_EQ(hak_region_grow(granules + 1).count, 0);
    hak_region_grow(1);
    CHECK_EQ(hak_region_grow(granules).count, 0);
    CHECK(hak_region_grow(1).count > 0);
}

TEST(a_refusal_of_the_kernel_changes_nothing)
{
    need_faults();
    start();
    check_range(hak_region_grow(1), 1);
    for (uint32_t every = 1; every <= 4; every++) {
        size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
        hak_os_fault_every(every);
        struct granule_range range = hak_region_grow(1);
        hak_os_fault_every(0);
        CHECK_EQ(hak_load_relaxed(&hak_region.committed_bytes),
                 committed + ((size_t)range.count << HAK_GRANULE_SHIFT));
    }
    struct granule_range range = hak_region_grow(100);
    CHECK_EQ(*(unsigned char *)hak_granule_address(range.first), 0);
    CHECK(range.count >= 100);
}

static void limit_address_space(size_t bytes)
{
    if (UNDER_ASAN)
        SKIP("the sanitizer needs its address space");
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}), 0);
}

/* Address space in use, in bytes. */
static size_t address_space(void)
{
    char text[64];
    CHECK(hak_os_read_text("/proc/self/statm", text, sizeof text) > 0);
    return strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* What the start and the first tables need: with large pages the slots of guarded blocks are. */
static size_t few_bytes(void)
{
    return 4 * HAK_MIB + HAK_SAMPLED_GUARD_SLOTS * 2 * hak_sampled_guard_slot_bytes();
}

TEST(no_more_address_space_is_in_use_than_memory_is_committed)
{
    if (UNDER_ASAN || is_emulated())
        SKIP("address space is not the program's own");
    size_t before = address_space();
    start();
    CHECK(address_space() - before < few_bytes());
    check_range(hak_region_grow(1), 1);
    check_range(hak_region_grow(2000), 2000);
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    CHECK_EQ(hak_load_relaxed(&hak_region.mapped_bytes), committed);
    CHECK(address_space() - before < committed + few_bytes());
}

TEST(a_limit_of_address_space_makes_the_window_no_smaller)
{
    if (is_emulated())
        SKIP("qemu-user keeps limits of memory from the program");
    limit_address_space(HAK_GIB);
    start();
    CHECK_EQ(hak_region.window_bytes, HAK_WINDOW_BYTES_MAX);
    CHECK_EQ(hak_region_most_bytes(), HAK_GIB);
    check_range(hak_region_grow(1), 1);
    CHECK_EQ(hak_region_grow(HAK_GIB >> HAK_GRANULE_SHIFT).count, 0);
    check_range(hak_region_grow(200), 200);
    /* The rest of the address space is the program's. */
    void *foreign = mmap(NULL, 800 * HAK_MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(foreign != MAP_FAILED);
}

TEST(a_window_is_tight_when_more_than_half_of_what_can_be_is_mapped)
{
    if (is_emulated())
        SKIP("qemu-user keeps limits of memory from the program");
    limit_address_space(HAK_GIB);
    start();
    CHECK(!hak_region_is_tight());
    CHECK(hak_region_grow((HAK_GIB >> HAK_GRANULE_SHIFT) / 4).count > 0);
    CHECK(!hak_region_is_tight());
    CHECK(hak_region_grow((HAK_GIB >> HAK_GRANULE_SHIFT) * 3 / 8).count > 0);
    CHECK(hak_region_is_tight());
}

TEST(what_can_be_mapped_is_learnt_from_refusals_and_from_growth)
{
    if (UNDER_ASAN || is_emulated())
        SKIP("limits of memory are the sanitizer's, or qemu-user's");
    start();
    CHECK_EQ(hak_region_most_bytes(), SIZE_MAX);
    check_range(hak_region_grow(500), 500);
    size_t mapped = hak_load_relaxed(&hak_region.mapped_bytes);
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){HAK_MIB, RLIM_INFINITY}), 0);
    CHECK_EQ(hak_region_grow(32).count, 0);
    CHECK_EQ(hak_region_most_bytes(), mapped + 2 * HAK_MIB);
    CHECK(hak_region_is_tight());
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
    check_range(hak_region_grow(1), 1);
    CHECK_EQ(hak_region_most_bytes(), mapped + 2 * HAK_MIB);
    check_range(hak_region_grow(500), 500);
    CHECK_EQ(hak_region_most_bytes(), SIZE_MAX);
    CHECK(!hak_region_is_tight());
}

TEST(granules_that_were_unmapped_are_no_address_space_and_can_be_mapped_again)
{
    start();
    struct granule_range range = hak_region_grow(4 * HAK_SUPERSLAB_GRANULES);
    struct granule_range part = {range.first + 5, 7};
    unsigned char *first = hak_granule_address(part.first);
    first[-1] = *first = first[7 * HAK_GRANULE_BYTES] = 3;
    size_t mapped = hak_load_relaxed(&hak_region.mapped_bytes);
    CHECK(hak_region_unmap(part));
    CHECK_EQ(hak_load_relaxed(&hak_region.mapped_bytes), mapped - 7 * HAK_GRANULE_BYTES);
    CHECK_EQ(first[-1], 3);
    CHECK_EQ(first[7 * HAK_GRANULE_BYTES], 3);
    CHECK(hak_region_holds(first));
    CHECK_EQ(hak_region_map(part), OS_MAPPED);
    CHECK_EQ(hak_load_relaxed(&hak_region.mapped_bytes), mapped);
    CHECK_EQ(*first, 0);
    CHECK_EQ(hak_region_map(part), OS_MAP_TAKEN);
}

TEST(what_others_have_mapped_in_the_window_is_a_hole)
{
    start();
    struct granule_range before = hak_region_grow(HAK_SUPERSLAB_GRANULES);
    uint32_t hole = before.first + before.count;
    void *place = hak_granule_address(hole);
    CHECK_EQ(
        mmap(place, HAK_GRANULE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        place);
    struct granule_range behind = hak_region_grow(HAK_SUPERSLAB_GRANULES);
    check_range(behind, HAK_SUPERSLAB_GRANULES);
    CHECK_EQ(behind.first, hole + HAK_SUPERSLAB_GRANULES);
    for (uint32_t i = 0; i < HAK_SUPERSLAB_GRANULES; i++)
        CHECK_EQ(hak_tag_read(hole + i), HAK_TAG_HOLE);
    CHECK(!hak_tag_is_slab(HAK_TAG_HOLE));
}

TEST(a_large_hole_is_stepped_over)
{
    start();
    struct granule_range before = hak_region_grow(1);
    uint32_t hole = before.first + before.count;
    size_t bytes = hak_region.window_bytes / 4;
    void *place = hak_granule_address(hole);
    CHECK_EQ(mmap(place, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                  -1, 0),
             place);
    struct granule_range behind = hak_region_grow(1);
    check_range(behind, 1);
    CHECK(behind.first >= hole + (bytes >> HAK_GRANULE_SHIFT));
    CHECK(behind.first <= hole + (bytes >> HAK_GRANULE_SHIFT) / 4 * 5);
    CHECK_EQ(hak_load_relaxed(&hak_region.hole_bytes), (size_t)(behind.first - hole)
                                                           << HAK_GRANULE_SHIFT);
}

TEST(a_process_starts_with_hardly_any_address_space)
{
    if (UNDER_ASAN || is_emulated())
        SKIP("address space is not the program's own");
    hak_os_start();
    limit_address_space(address_space() + few_bytes());
    CHECK(hak_region_start());
    check_range(hak_region_grow(1), 1);
}

TEST(a_process_without_address_space_for_a_window_does_not_start)
{
    if (is_emulated())
        SKIP("qemu-user keeps limits of memory from the program");
    hak_os_start();
    limit_address_space(HAK_MIB);
    CHECK(!hak_region_start());
}

/* What a process that starts now finds: where its window is, and where its records are. */
static struct region started_in_child(void)
{
    struct region found = {.base = 0};
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        start();
        _exit(write(ends[1], &hak_region, sizeof hak_region) != sizeof hak_region);
    }
    CHECK_EQ(read(ends[0], &found, sizeof found), sizeof found);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
    return found;
}

TEST(where_the_window_is_does_not_say_where_the_records_are)
{
    if (UNDER_ASAN)
        SKIP("most of the address space is the sanitizer's");
    enum { CHILDREN = 6 };
    struct region found[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        found[i] = started_in_child();
        CHECK(found[i].records_start >= found[i].base + found[i].window_bytes ||
              found[i].records_end <= found[i].base);
        for (int k = 0; k < i; k++) {
            CHECK(found[i].base != found[k].base);
            CHECK(found[i].records_start != found[k].records_start);
        }
    }
}

static bool can_be_read(uintptr_t address)
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    bool is_read = write(ends[1], (void *)address, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return is_read;
}

TEST(records_lie_between_pages_without_access)
{
    start();
    hak_region_grow(1);
    uintptr_t start = (uintptr_t)hak_region.tags;
    CHECK(hak_region.records_start + hak_os_page_bytes() <= start);
    CHECK(!can_be_read(start - 1));
    CHECK(can_be_read(start));
    CHECK(!can_be_read(hak_region.records_end - 1));
    CHECK(!can_be_read(hak_region.base - 1));
}
