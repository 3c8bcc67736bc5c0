/* SPDX-License-Identifier: MIT */
#define MEMBERS "random+guards"
#include "../../attack/hardened.h"
#include "heap/heap.h"
#include "os/os.h"
#include "region/region.h"
#include "slab/shield.h"

TEST(every_slab_has_a_guard_before_and_behind_its_blocks)
{
    if (hak_os_page_bytes() > PAGE_BYTES)
        SKIP("two pages are too much of a slab");
    if (HAK_TINY)
        SKIP("the few blocks of a tiny slab end far before its last guard");
    static const size_t sizes[] = {8, 500, 4096, 30000, 131072};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct slab *slab = hak_slab_at(take_some(sizes[i]));
        char *first = (char *)slab->start;
        char *end = first + (size_t)slab->block_count * slab->block_bytes;
        CHECK(slab->block_count >= 1);
        CHECK_FAULTS(first[-1] = 'x');
        CHECK_FAULTS(memset(end, 'x', slab->block_bytes + 2 * PAGE_BYTES));
    }
}

/* Mappings of committed memory that nobody may touch. */
static size_t guard_count(void)
{
    char line[512];
    size_t count = 0;
    uintptr_t end = hak_region.base + hak_load_relaxed(&hak_region.committed_bytes);
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        uintptr_t start = strtoul(line, NULL, 16);
        count += strstr(line, " ---p ") != NULL && start >= hak_region.base && start < end;
    }
    fclose(maps);
    return count;
}

TEST(guards_go_with_their_slabs)
{
    if (hak_os_page_bytes() > PAGE_BYTES)
        SKIP("two pages are too much of a slab");
    size_t before = guard_count();
    others_take(4096);
    CHECK(guard_count() > before + 1000);
    for (int i = 0; i < OTHERS; i++)
        hak_free(others[i]);
    hak_malloc_trim(0);
    CHECK(guard_count() <= before + 4);
}

TEST(each_block_is_handed_out_once)
{
    others_take(64);
    for (int i = 0; i < OTHERS; i++)
        *(int *)others[i] = i;
    for (int i = 0; i < OTHERS; i++)
        CHECK_EQ(*(int *)others[i], i);
}

TEST(each_free_block_of_a_word_is_as_likely_as_each_other)
{
    enum { EACH = 300 };
    uint32_t counts[64] = {0};
    char *block = take_some(64);
    const struct slab *slab = hak_slab_at(block);
    uint32_t word = (uint32_t)((uintptr_t)block - slab->start) / slab->block_bytes / 64;
    uint32_t blocks = (uint32_t)hak_least(64, slab->block_count - word * 64);
    for (uint32_t i = 0; i < EACH * blocks; i++) {
        hak_free(block);
        hak_thread_flush(); /* flushes what waits, and what is ready */
        block = take_some(64);
        uint32_t index = (uint32_t)((uintptr_t)block - slab->start) / slab->block_bytes;
        CHECK_EQ(index / 64, word);
        counts[index % 64]++;
    }
    for (uint32_t i = 0; i < blocks; i++)
        CHECK(counts[i] > EACH / 2 && counts[i] < EACH * 2);
}
