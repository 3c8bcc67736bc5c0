/* SPDX-License-Identifier: MIT */
/* tests/unit/hardened/partition_test.c - in hardened mode no memory changes its partition. */
#include "api/api.h"
#include "base/bits.h"
#include "check.h"
#include "hardened/hardened.h"
#include "heap/heaps.h"
#include "process/reclaim.h"
#include "region/tag_map.h"

#define COUNT 20000
#define SUPERSLABS_MOST 2048

__attribute__((constructor(101))) static void choose(void)
{
    setenv("HAKMEM_MODE", "hardened", 1);
}

static void *blocks[COUNT];
static uint8_t seen[SUPERSLABS_MOST]; /* bit n: blocks of partition n lay there */

static void take_all(enum hak_partition partition)
{
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = hak_hardened_take(
            &(struct request){.bytes = (size_t)(i % 30 + 1) * 100, .partition = partition});
        CHECK(blocks[i] != NULL);
        CHECK_EQ(hak_class_partition(hak_slab_at(blocks[i])->class_index), partition);
        uint32_t at = hak_granule_of(blocks[i]) / HAK_SUPERSLAB_GRANULES;
        CHECK(at < SUPERSLABS_MOST);
        seen[at] |= (uint8_t)(1 << partition);
    }
}

/* All of it, as far as memory goes. */
static void free_all(void)
{
    for (int i = 0; i < COUNT; i++)
        hak_free(blocks[i]);
    hak_thread_flush();
    hak_reclaim_empty_heaps();
    hak_reclaim_purge_all();
}

TEST(memory_of_one_partition_never_serves_the_other)
{
    for (int round = 0; round < 4; round++) {
        take_all((enum hak_partition)(round % 2));
        free_all();
        hak_free(hak_malloc(HAK_MIB)); /* spans that superslabs could come from */
    }
    int used[4] = {0};
    for (int i = 0; i < SUPERSLABS_MOST; i++)
        used[seen[i]]++;
    CHECK(used[1 << PARTITION_ORDINARY] != 0);
    CHECK(used[1 << PARTITION_LONG] != 0);
    CHECK_EQ(used[3], 0);
}

TEST(a_block_that_realloc_moves_keeps_its_partition)
{
    for (int i = 0; i < 2; i++) {
        enum hak_partition partition = (enum hak_partition)i;
        void *block = hak_hardened_take(&(struct request){.bytes = 100, .partition = partition});
        void *moved = hak_realloc(block, 1000);
        CHECK(moved != NULL && moved != block);
        CHECK_EQ(hak_class_partition(hak_slab_at(moved)->class_index), partition);
        hak_free(moved);
    }
}
