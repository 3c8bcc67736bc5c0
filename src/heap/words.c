/* SPDX-License-Identifier: MIT */
#include "heap/words.h"

#include "misuse/report.h"

#include <string.h>

/* Fewer blocks are not worth a table of their words. */
#define BLOCKS_LEAST 8u

HAK_NOINLINE void hak_report_stray(const void *block, uint32_t class_index)
{
    struct slab *slab = hak_slab_of(block, HAK_CLASS_NONE);
    if (slab == NULL || slab->class_index != class_index)
        hak_misuse("double free", block, hak_size_classes[class_index].block_bytes,
                   "its slab is gone");
    hak_slab_index_of(slab, block, "invalid free");
}

static _Noreturn HAK_NOINLINE void report_twice(const void *block, uint32_t class_index)
{
    hak_misuse("double free", block, hak_size_classes[class_index].block_bytes, "already free");
}

bool hak_words_suit(void *const *blocks, uint32_t count, uint32_t class_index)
{
    if (count < BLOCKS_LEAST)
        return false;
    uintptr_t word_bytes = 64 * (uintptr_t)hak_size_classes[class_index].block_bytes;
    uint32_t looked = 0, near = 0;
    for (uint32_t i = 1; i < count; i += 8, looked++)
        near += (uintptr_t)blocks[i] - (uintptr_t)blocks[i - 1] + word_bytes / 8 < word_bytes / 4;
    return near > looked / 2;
}

void hak_words_begin(struct words *words)
{
    words->count = 0;
    memset(words->places, 0, 2 * words->most * sizeof *words->places);
}

static struct word *add(struct words *words, uint16_t *place, struct slab *slab, uint32_t index,
                        uintptr_t start)
{
    if (HAK_UNLIKELY(words->count == words->most))
        return NULL;
    uint32_t blocks = (uint32_t)hak_least(64, slab->block_count - (index & ~63u));
    struct word *word = &words->words[words->count++];
    *word = (struct word){.slab = slab,
                          .start = start,
                          .bytes = blocks * slab->block_bytes,
                          .word_index = index / 64};
    *place = (uint16_t)words->count;
    return word;
}

/* The block's word, added if it is not there; NULL: there is no room. */
HAK_INLINE struct word *find(struct words *words, const void *block, uint32_t class_index)
{
    uint32_t index, last = 2 * words->most - 1;
    struct slab *slab = hak_slab_of(block, class_index);
    if (HAK_UNLIKELY(!hak_slab_find_start(slab, block, &index)))
        hak_report_stray(block, class_index);
    uintptr_t start = (uintptr_t)block - (size_t)(index % 64) * slab->block_bytes;
    /* Fibonacci hashing: neighbours come to lie apart. */
    uint32_t at = (uint32_t)((start >> 3) * 0x9e3779b97f4a7c15ull >> 40);
    for (uint16_t *place; *(place = &words->places[at & last]) != 0; at++)
        if (HAK_LIKELY(words->words[*place - 1].start == start))
            return &words->words[*place - 1];
    return add(words, &words->places[at & last], slab, index, start);
}

HAK_INLINE void note(struct word *word, uint64_t seen, bool are_kept)
{
    uint64_t fresh = seen ^ (word->kept | word->given);
    *(are_kept ? &word->kept : &word->given) |= fresh;
}

bool hak_words_add(struct words *words, void *const *blocks, uint32_t count, uint32_t class_index,
                   bool are_kept)
{
    const uint64_t reciprocal = hak_size_classes[class_index].reciprocal;
    const size_t block_bytes = hak_size_classes[class_index].block_bytes;
    struct word *word = NULL;
    uintptr_t start = 0;
    size_t bytes = 0;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t offset = (uintptr_t)blocks[i] - start;
        if (HAK_UNLIKELY(offset >= bytes)) {
            if (word != NULL)
                note(word, seen, are_kept);
            word = find(words, blocks[i], class_index);
            if (HAK_UNLIKELY(word == NULL))
                return false;
            start = word->start;
            bytes = word->bytes;
            seen = word->kept | word->given;
            offset = (uintptr_t)blocks[i] - start;
        }
        uint32_t index = hak_block_index(reciprocal, offset);
        uint64_t bit = 1ull << index;
        if (HAK_UNLIKELY(index * block_bytes != offset))
            hak_report_stray(blocks[i], class_index);
        if (HAK_UNLIKELY((seen & bit) != 0))
            report_twice(blocks[i], class_index);
        seen |= bit;
    }
    if (word != NULL)
        note(word, seen, are_kept);
    return true;
}
