/* SPDX-License-Identifier: MIT */
#include "cache/combine.h"

#include "base/check.h"
#include "harden/checks.h"
#include "slab/remote.h"

static void publish(struct combine *combine, struct combine_entry *entry, struct stat_block *stats)
{
    struct combine_entry copy = *entry;
    entry->slab = NULL;
    hak_compiler_fence();
    uint32_t count = hak_bit_count(copy.mask);
    combine->held_bytes -= count * copy.slab->block_bytes;
    hak_stat_add(stats, remote_publishes, 1);
    if (HAK_UNLIKELY(copy.slab->generation != copy.generation))
        hak_misuse("double free", (const void *)copy.slab->start, copy.slab->block_bytes,
                   "its slab was retired while a free of it was under way");
    hak_remote_publish(copy.slab, copy.word_index, copy.mask);
}

/* All the blocks that word `word_index` stands for. */
static uint64_t whole_mask(const struct slab *slab, uint32_t word_index)
{
    return hak_bit_low_mask(slab->block_count - word_index * 64);
}

void hak_combine_add(struct combine *combine, struct slab *slab, const void *block,
                     struct stat_block *stats)
{
    uint32_t index = hak_slab_index_of(slab, block, "invalid free");
    uint32_t word_index = index / 64;
    uint64_t bit = 1ull << (index % 64);
    hak_stat_add(stats, remote_blocks, 1);
    if (slab->block_bytes > HAK_COMBINE_BLOCK_BYTES_MAX || slab->is_private) {
        hak_stat_add(stats, remote_publishes, 1);
        hak_remote_publish(slab, word_index, bit);
        return;
    }
    struct combine_entry *entry = hak_combine_entry_for(combine, slab, word_index);
    if (entry->slab != NULL && (entry->slab != slab || entry->word_index != word_index))
        publish(combine, entry, stats);
    if (entry->slab == NULL) {
        entry->word_index = word_index;
        entry->generation = slab->generation;
        entry->mask = 0;
        entry->whole = whole_mask(slab, word_index);
        entry->slab = slab;
    }
    if (HAK_UNLIKELY(entry->mask & bit))
        hak_misuse("double free", block, slab->block_bytes, "already freed by this thread");
    entry->mask |= bit;
    combine->held_bytes += slab->block_bytes;
    if (entry->mask == entry->whole)
        publish(combine, entry, stats);
    if (combine->held_bytes > HAK_COMBINE_BYTES)
        hak_combine_publish_all(combine, stats);
}

void hak_combine_publish_all(struct combine *combine, struct stat_block *stats)
{
    if (combine->held_bytes == 0)
        return;
    for (uint32_t i = 0; i < HAK_COMBINE_ENTRIES; i++)
        if (combine->entries[i].slab != NULL)
            publish(combine, &combine->entries[i], stats);
    hak_assert(combine->held_bytes == 0);
}

void hak_combine_bypass(struct slab *slab, const void *block)
{
    uint32_t index = hak_slab_index_of(slab, block, "invalid free");
    hak_remote_publish(slab, index / 64, 1ull << (index % 64));
}
