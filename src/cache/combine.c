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
    combine->held_bytes -= copy.held_bytes;
    hak_stat_add(stats, remote_publishes, 1);
    if (HAK_UNLIKELY(copy.slab->generation != copy.generation))
        hak_misuse("double free", (const void *)copy.slab->start, copy.slab->block_bytes,
                   "its slab was retired while a free of it was under way");
    hak_remote_publish(copy.slab, copy.word_index, copy.mask);
}

static _Noreturn void report_twice(const void *block, const struct slab *slab)
{
    hak_misuse("double free", block, slab->block_bytes, "already freed by this thread");
}

/* All the blocks that word `word_index` stands for. */
static uint64_t whole_mask(const struct slab *slab, uint32_t word_index)
{
    return hak_bit_low_mask(slab->block_count - word_index * 64);
}

static struct combine_entry *place_of(struct combine *combine, const struct slab *slab,
                                      uint32_t word_index)
{
    uintptr_t line = (uintptr_t)slab / HAK_CACHE_LINE_BYTES;
    return &combine->entries[((line ^ line / 64) + word_index) % HAK_COMBINE_ENTRIES];
}

/* Gathers blocks of one word, so many bytes; `first` is one of them. */
static void gather(struct combine *combine, struct slab *slab, uint32_t word_index, uint64_t mask,
                   uint32_t bytes, const void *first, struct stat_block *stats)
{
    struct combine_entry *entry = place_of(combine, slab, word_index);
    if (entry->slab != slab || entry->word_index != word_index) {
        if (entry->slab != NULL)
            publish(combine, entry, stats);
        *entry = (struct combine_entry){.slab = slab,
                                        .whole = whole_mask(slab, word_index),
                                        .word_index = word_index,
                                        .generation = slab->generation};
    }
    if (HAK_UNLIKELY(entry->mask & mask))
        report_twice(first, slab);
    entry->mask |= mask;
    entry->held_bytes += bytes;
    combine->held_bytes += bytes;
    if (entry->mask == entry->whole)
        publish(combine, entry, stats);
}

static void publish_table(struct combine *combine, struct stat_block *stats)
{
    for (uint32_t i = 0; i < HAK_COMBINE_ENTRIES && combine->held_bytes != 0; i++)
        if (combine->entries[i].slab != NULL)
            publish(combine, &combine->entries[i], stats);
    hak_assert(combine->held_bytes == 0);
}

/* Gathers the first blocks of those that share a word of one slab; returns how many. */
static uint32_t gather_run(struct combine *combine, struct slab *slab, void *const *blocks,
                           uint32_t count, struct stat_block *stats)
{
    const struct slab shape = {
        .start = slab->start, .reciprocal = slab->reciprocal, .block_bytes = slab->block_bytes};
    uint32_t index;
    if (HAK_UNLIKELY(!hak_slab_find_start(&shape, blocks[0], &index) || index >= slab->block_count))
        hak_slab_index_of(slab, blocks[0], "invalid free"); /* says what is wrong with it */
    uint32_t first = index & ~63u;
    uint32_t limit = (uint32_t)hak_least(64, slab->block_count - first);
    uint32_t at = 0;
    uint64_t mask = 0;
    do {
        uint64_t bit = 1ull << (index - first);
        if (HAK_UNLIKELY(mask & bit))
            report_twice(blocks[at], slab);
        mask |= bit;
        at++;
    } while (at < count && hak_slab_find_start(&shape, blocks[at], &index) &&
             index - first < limit);
    gather(combine, slab, first / 64, mask, at * shape.block_bytes, blocks[0], stats);
    return at;
}

uint32_t hak_combine_add_run(struct combine *combine, struct slab *slab, void *const *blocks,
                             uint32_t count, struct stat_block *stats)
{
    uint32_t run = 1;
    if (slab->block_bytes > HAK_COMBINE_BLOCK_BYTES_MAX || slab->is_private) {
        hak_stat_add(stats, remote_publishes, 1);
        hak_combine_bypass(slab, blocks[0]);
    } else {
        run = gather_run(combine, slab, blocks, count, stats);
    }
    hak_stat_add(stats, remote_blocks, run);
    if (combine->held_bytes > HAK_COMBINE_BYTES)
        publish_table(combine, stats);
    return run;
}

void hak_combine_add(struct combine *combine, struct slab *slab, void *block,
                     struct stat_block *stats)
{
    hak_combine_add_run(combine, slab, &block, 1, stats);
}

void hak_combine_publish_all(struct combine *combine, struct stat_block *stats)
{
    publish_table(combine, stats);
}

void hak_combine_bypass(struct slab *slab, const void *block)
{
    uint32_t index = hak_slab_index_of(slab, block, "invalid free");
    hak_remote_publish(slab, index / 64, 1ull << (index % 64));
}
