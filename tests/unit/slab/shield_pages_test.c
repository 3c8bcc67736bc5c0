/* SPDX-License-Identifier: MIT */
/* tests/unit/slab/shield_pages_test.c - in hardened mode, too, pages without a block in use go back
 * to the kernel, and nothing but them: not the guards, and no byte of a block. */
#include "../../attack/hardened.h"
#include "base/bits.h"
#include "heap/heap.h"
#include "os/os.h"
#include "slab/slab.h"

#include <string.h>

#define KEPT_EVERY 40

static int byte_of(int i)
{
    return i % 250 + 1;
}

/* Takes and fills blocks, frees most of them and gives back all that can be. */
static void leave_few(size_t bytes, int count)
{
    for (int i = 0; i < count; i++)
        others[i] = memset(take_some(bytes), byte_of(i), bytes);
    for (int i = 0; i < count; i++)
        if (i % KEPT_EVERY != 0)
            hak_free(others[i]);
    hak_malloc_trim(0);
}

static void check_kept(size_t bytes, int count)
{
    for (int i = 0; i < count; i += KEPT_EVERY)
        CHECK_BYTES(others[i], bytes, byte_of(i));
}

static void check_slab(const struct slab *slab)
{
    size_t guards_bytes = 2 * (slab->start % HAK_GRANULE_BYTES);
    size_t area_bytes = ((size_t)slab->granule_count << HAK_GRANULE_SHIFT) - guards_bytes;
    for (uint32_t leaf = 0; leaf < 64; leaf++) {
        size_t at = (size_t)leaf << slab->leaf_shift;
        if ((slab->purged >> leaf & 1) == 0)
            continue;
        CHECK(at < area_bytes);
        CHECK_BYTES(slab->start + at, hak_least((size_t)1 << slab->leaf_shift, area_bytes - at), 0);
    }
}

TEST(most_pages_are_returned_when_most_blocks_are_freed)
{
    if (HAK_TINY || hak_os_page_bytes() > PAGE_BYTES)
        SKIP("too few pages in a slab");
    static const size_t sizes[] = {100, 500, 3000, 4096, 20000, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = sizes[i];
        int count = (int)hak_least(OTHERS, 40000000 / bytes);
        leave_few(bytes, count);
        size_t slab_leaves = 0, purged_leaves = 0;
        for (int j = 0; j < count; j += KEPT_EVERY) {
            const struct slab *slab = hak_slab_at(others[j]);
            check_slab(slab);
            slab_leaves += (size_t)slab->granule_count << HAK_GRANULE_SHIFT >> slab->leaf_shift;
            purged_leaves += hak_bit_count(slab->purged);
        }
        if (bytes >= 500)
            CHECK(purged_leaves > slab_leaves / 4);
        check_kept(bytes, count);
    }
}

TEST(returned_pages_can_be_used_again)
{
    leave_few(500, OTHERS);
    for (int i = 0; i < OTHERS; i++)
        if (i % KEPT_EVERY != 0)
            others[i] = memset(take_some(500), byte_of(i), 500);
    for (int i = 0; i < OTHERS; i++) {
        for (size_t byte = 0; byte < 500; byte++)
            CHECK_EQ(((unsigned char *)others[i])[byte], byte_of(i));
        hak_free(others[i]);
    }
}

TEST(guards_remain_when_adjacent_pages_were_returned)
{
    if (HAK_TINY || hak_os_page_bytes() > PAGE_BYTES)
        SKIP("no slab has guards");
    leave_few(4096, OTHERS);
    const struct slab *slab = hak_slab_at(others[0]);
    char *first = (char *)slab->start;
    char *end = first + (size_t)slab->block_count * slab->block_bytes;
    CHECK_FAULTS(first[-1] = 'x');
    CHECK_FAULTS(memset(end, 'x', slab->block_bytes + 2 * PAGE_BYTES));
}
