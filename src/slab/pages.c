/* SPDX-License-Identifier: MIT */
#include "slab/pages.h"

#include "base/bits.h"
#include "os/os.h"
#include "slab/superslab_pool.h"

/* Whole ones from the first block on; a page at each end may be a guard's (slab/shield.h). */
static uint64_t all_leaves(const struct slab *slab)
{
    size_t guard_bytes = slab->start % HAK_GRANULE_BYTES;
    size_t bytes = ((size_t)slab->granule_count << HAK_GRANULE_SHIFT) - 2 * guard_bytes;
    return hak_bit_low_mask((uint32_t)(bytes >> slab->leaf_shift));
}

/* Leaves that blocks in use overlap; one such block per leaf suffices. */
static uint64_t live_leaves(const struct slab *slab)
{
    uint64_t live = 0;
    uint32_t index = 0;
    while (index < slab->bump) {
        uint64_t free = hak_load_relaxed(&slab->words[index / 64]);
        uint64_t used = ~free & ~hak_bit_low_mask(index % 64);
        if (used == 0) {
            index = (index / 64 + 1) * 64;
            continue;
        }
        index = index / 64 * 64 + hak_bit_lowest(used);
        if (index >= slab->bump)
            break;
        size_t start = (size_t)index * slab->block_bytes;
        live |= hak_slab_leaves_of(slab, start);
        size_t next = ((start + slab->block_bytes - 1) >> slab->leaf_shift) + 1;
        /* The first block that ends behind the last leaf that is now known to be live. */
        size_t next_index = (next << slab->leaf_shift) / slab->block_bytes;
        index = (uint32_t)hak_most(next_index, index + 1);
    }
    return live;
}

struct dead_leaves hak_slab_dead_leaves(const struct slab *slab)
{
    uint64_t leaves = all_leaves(slab) & ~live_leaves(slab) & ~slab->purged;
    if (slab->zero_from > slab->bump || slab->was_huge)
        return (struct dead_leaves){leaves, leaves};
    /* The blocks behind the bump index were never touched. */
    size_t touched_bytes = (size_t)slab->bump * slab->block_bytes;
    size_t touched = hak_align_up(touched_bytes, (size_t)1 << slab->leaf_shift);
    return (struct dead_leaves){leaves & hak_bit_low_mask((uint32_t)(touched >> slab->leaf_shift)),
                                leaves};
}

size_t hak_slab_purge(struct slab *slab, struct dead_leaves leaves)
{
    uint64_t dead = leaves.touched;
    size_t bytes = 0;
    if (dead != 0 && !slab->was_huge && hak_pool_break_huge(hak_granule_of((void *)slab->start))) {
        slab->was_huge = true;
        dead = leaves.all;
    }
    while (dead != 0) {
        uint32_t at = hak_bit_lowest(dead);
        uint64_t above = ~(dead >> at);
        uint32_t count = above == 0 ? 64 - at : hak_bit_lowest(above);
        uint64_t run = hak_bit_low_mask(count) << at;
        size_t run_bytes = (size_t)count << slab->leaf_shift;
        if (hak_os_purge((void *)(slab->start + ((size_t)at << slab->leaf_shift)), run_bytes)) {
            slab->purged |= run;
            bytes += run_bytes;
        }
        dead &= ~run;
    }
    return bytes;
}
