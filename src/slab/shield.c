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
    hak_slab_set_free(slab, word_index, bits, count);
}

#define EACH_BYTE 0x0101010101010101ull

/* Skips the next `width` bits, which have `count` set, if these are not more than `rank`. Without a
 * branch: which way it goes is chance. */
HAK_INLINE void skip(uint64_t *rank, uint32_t *at, uint64_t count, uint32_t width)
{
    uint64_t is_skipped = *rank >= count;
    *rank -= count & -is_skipped;
    *at += width & -(uint32_t)is_skipped;
}

/* One of the bits of a word that is not 0, each as likely as each other. */
static uint32_t bit_at_random(uint64_t word, uint32_t random)
{
    uint64_t in_pairs = word - (word >> 1 & 0x55 * EACH_BYTE);
    uint64_t in_fours = (in_pairs & 0x33 * EACH_BYTE) + (in_pairs >> 2 & 0x33 * EACH_BYTE);
    /* in each byte, of it and those below it */
    uint64_t up_to = ((in_fours + (in_fours >> 4)) & 0x0f * EACH_BYTE) * EACH_BYTE;
    uint64_t rank = (uint64_t)random * (up_to >> 56) >> 32;
    /* The top bit of each byte with as many bits up to it as are to be skipped, or fewer. */
    uint64_t skipped = ((rank * EACH_BYTE | 0x80 * EACH_BYTE) - up_to) & 0x80 * EACH_BYTE;
    uint32_t at = (uint32_t)((skipped >> 7) * EACH_BYTE >> 56) * 8;
    rank -= up_to << 8 >> at & 0xff;
    skip(&rank, &at, in_fours >> at & 0x0f, 4);
    skip(&rank, &at, in_pairs >> at & 0x03, 2);
    skip(&rank, &at, word >> at & 0x01, 1);
    return at;
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

static bool is_free(const struct slab *slab, uint32_t index)
{
    return index < slab->bump &&
           (hak_load_relaxed(&slab->words[index / 64]) >> index % 64 & 1) != 0;
}

/* One of the free blocks, of which there are some: of the word that `last` is of as long as there
 * is one, so that what is used together lies together. */
static uint32_t choose(const struct slab *slab, uint32_t last)
{
    uint64_t random = hak_random();
    uint32_t at = last / 64;
    if (hak_load_relaxed(&slab->words[at]) == 0)
        at = word_with_free(slab, (uint32_t)((random >> 32) * slab->word_count >> 32));
    return at * 64 + bit_at_random(hak_load_relaxed(&slab->words[at]), (uint32_t)random);
}

/* The block after this one is chosen already: its memory is on its way while the program uses this
 * one. In the order of addresses the processor would see to that. */
static void *take_one(struct slab *slab)
{
    if (slab->bump < slab->block_count && slab->bump - slab->used < 64)
        release_some(slab);
    if (slab->bump == slab->used)
        return NULL;
    uint32_t index = slab->chosen;
    if (HAK_UNLIKELY(!is_free(slab, index)))
        index = choose(slab, 0);
    uint64_t word = hak_load_relaxed(&slab->words[index / 64]) & ~(1ull << index % 64);
    hak_store_relaxed(&slab->words[index / 64], word);
    if (word == 0)
        slab->summary[index >> 12] &= ~(1ull << (index >> 6 & 63));
    slab->used++;
    if (slab->bump != slab->used) {
        slab->chosen = (uint16_t)choose(slab, index);
        hak_mark_fetch(hak_slab_block_at(slab, slab->chosen));
    }
    return hak_slab_block_at(slab, index);
}

uint32_t hak_slab_take_random(struct slab *slab, void **blocks, uint32_t count)
{
    uint32_t taken = 0;
    while (taken < count && (blocks[taken] = take_one(slab)) != NULL)
        taken++;
    slab->is_hot = true;
    return taken;
}
