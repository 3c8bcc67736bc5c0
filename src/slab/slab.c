/* SPDX-License-Identifier: MIT */
#include "slab/slab.h"

#include "base/check.h"
#include "misuse/harden.h"
#include "misuse/report.h"
#include "os/os.h"
#include "region/meta.h"
#include "region/tag_map.h"
#include "slab/pages.h"
#include "slab/shield.h"
#include "slab/slab_give.h"

#include <string.h>

/* One pool of records per number of bitmap lines. */
#define SHAPE_COUNT 16
static struct meta_pool record_pools[SHAPE_COUNT];

static uint32_t shape_of(uint32_t word_count)
{
    return (word_count - 1) / 8;
}

static size_t record_bytes(uint32_t shape)
{
    return sizeof(struct slab) + 2 * (size_t)(shape + 1) * HAK_CACHE_LINE_BYTES;
}

/* At most 64 leaves cover a slab, none smaller than a page. */
static uint8_t leaf_shift_of(uint32_t granule_count)
{
    size_t least = ((size_t)granule_count << HAK_GRANULE_SHIFT) / 64;
    size_t page = hak_os_page_bytes();
    return (uint8_t)hak_bit_highest(hak_most(page, least * 2 - 1));
}

struct slab *hak_slab_create(uint32_t class_index, uint32_t first_granule, bool is_zero,
                             struct slab_owner *owner)
{
    const struct size_class *size_class = &hak_size_classes[class_index];
    uint32_t shape = shape_of(size_class->word_count);
    struct slab *slab = hak_meta_pool_take_reserved(&record_pools[shape], record_bytes(shape));
    if (slab == NULL)
        return NULL;
    hak_assert(hak_load_relaxed(&slab->remote_count) == 0);
    slab->start = (uintptr_t)hak_granule_address(first_granule);
    slab->reciprocal = size_class->reciprocal;
    slab->block_bytes = size_class->block_bytes;
    slab->block_count = size_class->block_count;
    slab->granule_count = size_class->granule_count;
    if (!hak_slab_shield(slab)) {
        hak_meta_pool_give(&record_pools[shape], slab);
        return NULL;
    }
    slab->fullness_scale = (HAK_FULLNESS_BUCKETS << 16) / (slab->block_count + 1);
    slab->generation++;
    slab->class_index = (uint8_t)class_index;
    slab->word_count = size_class->word_count;
    slab->leaf_shift = leaf_shift_of(size_class->granule_count);
    slab->is_private = owner->is_private;
    slab->summary[0] = 0;
    slab->summary[1] = 0;
    slab->used = 0;
    slab->bump = 0;
    slab->zero_from = is_zero ? 0 : slab->block_count;
    slab->purged = 0;
    slab->settled_from = SLAB_UNSETTLED;
    slab->swept_used = SLAB_UNSWEPT;
    slab->was_huge = false;
    slab->fullness_bucket = 0;
    slab->place = SLAB_NOWHERE;
    slab->heat = SLAB_HOT;
    slab->drawn_word = 0;
    memset((void *)slab->words, 0, 2 * (size_t)(shape + 1) * HAK_CACHE_LINE_BYTES);
    hak_store_relaxed(&slab->owner, owner);
    hak_owner_write(first_granule, slab->granule_count, slab);
    return slab;
}

bool hak_slab_destroy(struct slab *slab)
{
    hak_assert(slab->used == 0);
    bool is_usable = HAK_LIKELY(slab->guards == 0) || hak_slab_unshield(slab);
    hak_owner_write(hak_granule_of((void *)slab->start), slab->granule_count, NULL);
    hak_meta_pool_give(&record_pools[shape_of(slab->word_count)], slab);
    return is_usable;
}

/* Writes down `count` blocks that follow each other. */
static void take_row(const struct slab *slab, uint32_t index, void **blocks, uint32_t count)
{
    uintptr_t next = slab->start + (size_t)index * slab->block_bytes;
    for (uint32_t i = 0; i < count; i++, next += slab->block_bytes)
        blocks[i] = (void *)next;
}

/* Takes up to `count` blocks from one word of the bitmap. */
static uint32_t take_from_word(struct slab *slab, uint32_t word_index, void **blocks,
                               uint32_t count)
{
    uint64_t word = hak_load_relaxed(&slab->words[word_index]);
    uint32_t taken = 0;
    if (word == UINT64_MAX && count >= 64) {
        take_row(slab, word_index * 64, blocks, 64);
        word = 0;
        taken = 64;
    }
    while (word != 0 && taken < count) {
        blocks[taken++] = hak_slab_block_at(slab, word_index * 64 + hak_bit_lowest(word));
        word &= word - 1;
    }
    hak_store_relaxed(&slab->words[word_index], word);
    if (word == 0)
        slab->summary[word_index >> 6] &= ~(1ull << (word_index & 63));
    return taken;
}

/* Blocks that are taken will be touched. */
static HAK_NOINLINE void forget_purged(struct slab *slab, void **blocks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        slab->purged &= ~hak_slab_leaves_of(slab, (uintptr_t)blocks[i] - slab->start);
}

uint32_t hak_slab_take(struct slab *slab, void **blocks, uint32_t count)
{
    if (HAK_UNLIKELY(hak_harden_has(HARDEN_RANDOM))) {
        uint32_t drawn = hak_slab_take_random(slab, blocks, count);
        if (HAK_UNLIKELY(slab->purged != 0))
            forget_purged(slab, blocks, drawn);
        return drawn;
    }
    uint32_t taken = 0;
    for (uint32_t half = 0; half * 64u < slab->word_count; half++) {
        while (slab->summary[half] != 0 && taken < count) {
            uint32_t word_index = half * 64 + hak_bit_lowest(slab->summary[half]);
            taken += take_from_word(slab, word_index, blocks + taken, count - taken);
        }
    }
    uint32_t fresh = (uint32_t)hak_least(count - taken, slab->block_count - slab->bump);
    take_row(slab, slab->bump, blocks + taken, fresh);
    slab->bump += fresh;
    taken += fresh;
    slab->used += taken;
    slab->heat = SLAB_HOT;
    if (HAK_UNLIKELY(slab->purged != 0))
        forget_purged(slab, blocks, taken);
    return taken;
}

void *hak_slab_take_zero(struct slab *slab)
{
    if (slab->bump >= slab->block_count || slab->bump < slab->zero_from)
        return NULL;
    void *block = hak_slab_block_at(slab, slab->bump++);
    slab->used++;
    slab->heat = SLAB_HOT;
    forget_purged(slab, &block, 1);
    return block;
}

uint32_t hak_slab_index_of(const struct slab *slab, const void *block, const char *what)
{
    uint32_t index;
    if (HAK_UNLIKELY(!hak_slab_find_start(slab, block, &index)))
        hak_misuse(what, block, slab->block_bytes, "not the start of a block");
    if (HAK_UNLIKELY(index >= slab->block_count))
        hak_misuse(what, block, slab->block_bytes, "behind the last block of its slab");
    return index;
}

void hak_slab_give(struct slab *slab, void *block)
{
    hak_slab_give_index(slab, hak_slab_index_of(slab, block, "invalid free"));
}

_Noreturn void hak_slab_report(const struct slab *slab, uint32_t word_index, uint64_t bits,
                               const char *what, const char *state)
{
    size_t index = (size_t)word_index * 64 + hak_bit_lowest(bits);
    hak_misuse(what, (const void *)(slab->start + index * slab->block_bytes), slab->block_bytes,
               state);
}

/* The bump index only grows while blocks of the slab are in use. */
HAK_RACY void hak_slab_check_word(const struct slab *slab, uint32_t word_index, uint64_t bits)
{
    uint64_t word = hak_load_relaxed(&slab->words[word_index]);
    if (HAK_UNLIKELY(word_index * 64 + hak_bit_highest(bits) >= hak_word_peek(&slab->bump)))
        hak_slab_report(slab, word_index, bits & -(1ull << hak_bit_highest(bits)), "invalid free",
                        "never allocated");
    if (HAK_UNLIKELY((word & bits) != 0))
        hak_slab_report(slab, word_index, word & bits, "double free", "already free");
}

bool hak_slab_is_sound(const struct slab *slab)
{
    uint32_t free_count = 0;
    for (uint32_t i = 0; i < slab->word_count; i++) {
        uint64_t word = hak_load_relaxed(&slab->words[i]);
        uint32_t below = slab->bump > i * 64 ? slab->bump - i * 64 : 0;
        bool is_summed = (slab->summary[i >> 6] >> (i & 63)) & 1;
        if ((word & ~hak_bit_low_mask(below)) != 0 || is_summed != (word != 0))
            return false;
        free_count += hak_bit_count(word);
    }
    return slab->bump <= slab->block_count && slab->used == slab->bump - free_count;
}

uint64_t hak_slab_record_count(void)
{
    uint64_t count = 0;
    for (uint32_t shape = 0; shape < SHAPE_COUNT; shape++)
        count += hak_load_relaxed(&record_pools[shape].taken_count);
    return count;
}
