/* SPDX-License-Identifier: MIT */
#include "slab/shield.h"

#include "misuse/harden.h"
#include "misuse/mark.h"
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

bool hak_slab_unshield(struct slab *slab)
{
    size_t page = hak_os_page_bytes();
    char *start = granules_of(slab);
    bool is_done = true;
    if (slab->guards & GUARD_FIRST)
        is_done = hak_guard_lower(start, page, 1);
    if (slab->guards & GUARD_LAST)
        is_done &= hak_guard_lower(start + granules_bytes(slab) - page, page, 1);
    slab->guards = 0;
    return is_done;
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
    uint64_t word = hak_load_relaxed(&slab->words[word_index]);
    hak_slab_set_free(slab, word_index, word, bits, count);
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

/* A number below `limit`, each as likely as each other; `turn` counts, for one number in two comes
 * with the one before. */
HAK_INLINE uint32_t random_below(uint32_t limit, uint32_t turn, uint64_t *random)
{
    *random = turn % 2 == 0 ? hak_random() : *random >> 32;
    return (uint32_t)((*random & UINT32_MAX) * limit >> 32);
}

/* Draws up to `count` of the free blocks of one word, of the last one as long as it has some, so
 * that what is used together lies together; there are free blocks. Returns how many. */
static uint32_t draw(struct slab *slab, void **blocks, uint32_t count)
{
    uint8_t bits[64];
    uint64_t random = 0;
    uint32_t at = slab->drawn_word, found = 0, taken = 0;
    if (hak_load_relaxed(&slab->words[at]) == 0)
        at = word_with_free(slab, random_below(slab->word_count, 0, &random));
    uint64_t word = hak_load_relaxed(&slab->words[at]);
    for (uint64_t left = word; left != 0; left &= left - 1)
        bits[found++] = (uint8_t)hak_bit_lowest(left);
    for (; taken < count && taken < found; taken++) {
        uint32_t chosen = taken + random_below(found - taken, taken, &random);
        uint32_t bit = bits[chosen];
        bits[chosen] = bits[taken];
        word &= ~(1ull << bit);
        blocks[taken] = hak_slab_block_at(slab, at * 64 + bit);
    }
    hak_store_relaxed(&slab->words[at], word);
    if (word == 0)
        slab->summary[at >> 6] &= ~(1ull << (at & 63));
    slab->drawn_word = (uint16_t)at;
    slab->used += taken;
    return taken;
}

uint32_t hak_slab_take_random(struct slab *slab, void **blocks, uint32_t count)
{
    uint32_t taken = 0;
    while (taken < count) {
        if (slab->bump < slab->block_count && slab->bump - slab->used < 64)
            release_some(slab);
        if (slab->bump == slab->used)
            break;
        taken += draw(slab, blocks + taken, count - taken);
    }
    slab->heat = SLAB_HOT;
    return taken;
}
