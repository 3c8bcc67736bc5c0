/* SPDX-License-Identifier: MIT */
#include "slab/shield.h"

#include "harden/harden.h"
#include "harden/mark.h"
#include "os/os.h"
#include "region/guard.h"
#include "region/tag_map.h"

/* Two guards may cost an eighth of a slab. */
#define PAGES_LEAST 16u

#define GUARD_FIRST 1u
#define GUARD_LAST 2u

static char *granules_of(const struct slab *slab)
{
    return hak_granule_address(hak_granule_of((void *)slab->start));
}

static size_t granules_bytes(const struct slab *slab)
{
    return (size_t)slab->granule_count << HAK_GRANULE_SHIFT;
}

bool hak_slab_shield(struct slab *slab)
{
    slab->guards = 0;
    if (!hak_harden_has(HARDEN_EXACT))
        return true;
    if (!hak_mark_clear(hak_granule_of((void *)slab->start), slab->granule_count))
        return false;
    size_t page = hak_os_page_bytes();
    size_t bytes = granules_bytes(slab);
    if (!hak_harden_has(HARDEN_GUARDS) || bytes < PAGES_LEAST * page)
        return true;
    char *start = granules_of(slab);
    if (hak_guard_raise(start, page))
        slab->guards |= GUARD_FIRST;
    if (hak_guard_raise(start + bytes - page, page))
        slab->guards |= GUARD_LAST;
    slab->start += page;
    slab->block_count =
        (uint32_t)hak_least(slab->block_count, (bytes - 2 * page) / slab->block_bytes);
    return true;
}

void hak_slab_unshield(struct slab *slab)
{
    size_t page = hak_os_page_bytes();
    char *start = granules_of(slab);
    if (slab->guards & GUARD_FIRST)
        hak_guard_lower(start, page);
    if (slab->guards & GUARD_LAST)
        hak_guard_lower(start + granules_bytes(slab) - page, page);
    slab->guards = 0;
}

/* Makes up to 64 blocks that were never handed out free ones, so that there is something to choose
 * from. */
static void release_some(struct slab *slab)
{
    uint32_t word_index = slab->bump / 64;
    uint32_t below = slab->bump % 64;
    uint32_t count = (uint32_t)hak_least(64 - below, slab->block_count - slab->bump);
    uint64_t bits = hak_bit_low_mask(count) << below;
    slab->bump += count;
    slab->used += count;
    hak_slab_set_free(slab, word_index, bits);
}

#define EACH_BYTE 0x0101010101010101ull

/* In each byte, how many bits are set in it and in the bytes below it. */
static uint64_t counts_below(uint64_t word)
{
    word -= word >> 1 & 0x55 * EACH_BYTE;
    word = (word & 0x33 * EACH_BYTE) + (word >> 2 & 0x33 * EACH_BYTE);
    return ((word + (word >> 4)) & 0x0f * EACH_BYTE) * EACH_BYTE;
}

/* One of the bits of a word that is not 0, each as likely as each other. */
static uint32_t bit_at_random(uint64_t word, uint32_t random)
{
    uint64_t counts = counts_below(word);
    uint64_t rank = (uint64_t)random * (counts >> 56) >> 32;
    /* The top bit of each byte with as many bits up to it as are to be skipped, or fewer. */
    uint64_t skipped = ((rank * EACH_BYTE | 0x80 * EACH_BYTE) - counts) & 0x80 * EACH_BYTE;
    uint32_t shift = skipped == 0 ? 0 : (uint32_t)hak_bit_highest(skipped) + 1;
    rank -= shift == 0 ? 0 : counts >> (shift - 8) & 0xff;
    for (word = word >> shift; rank > 0; rank--)
        word &= word - 1;
    return shift + hak_bit_lowest(word);
}

/* The first word at or behind `at`, else the first of all, that has a free block; there is one. */
static uint32_t word_with_free(const struct slab *slab, uint32_t at)
{
    uint32_t half = at >> 6;
    uint64_t found = slab->summary[half] & ~hak_bit_low_mask(at & 63);
    if (found == 0) {
        half ^= 1;
        found = slab->summary[half];
    }
    if (found == 0) {
        half ^= 1;
        found = slab->summary[half];
    }
    return half * 64 + hak_bit_lowest(found);
}

static void *take_one(struct slab *slab)
{
    uint64_t random = hak_random();
    if (slab->bump < slab->block_count && slab->bump - slab->used < 64)
        release_some(slab);
    if (slab->bump == slab->used)
        return NULL;
    uint32_t at = word_with_free(slab, (uint32_t)((random >> 32) * slab->word_count >> 32));
    uint64_t word = hak_load_relaxed(&slab->words[at]);
    uint32_t bit = bit_at_random(word, (uint32_t)random);
    word &= ~(1ull << bit);
    hak_store_relaxed(&slab->words[at], word);
    if (word == 0)
        slab->summary[at >> 6] &= ~(1ull << (at & 63));
    slab->used++;
    return (void *)(slab->start + (size_t)(at * 64 + bit) * slab->block_bytes);
}

uint32_t hak_slab_take_random(struct slab *slab, void **blocks, uint32_t count)
{
    uint32_t taken = 0;
    while (taken < count && (blocks[taken] = take_one(slab)) != NULL)
        taken++;
    slab->is_hot = true;
    return taken;
}
