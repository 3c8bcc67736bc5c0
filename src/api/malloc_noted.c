/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "heap/cache.h"
#include "heap/flush.h"
#include "profile/sampler.h"
#include "region/tag_map.h"

/* The popped block is not for the program. */
static void put_back(void *block, struct bins *bins, uint32_t class_index)
{
    struct cache *cache = hak_word_peek(&bins->cache);
    hak_fetch_sub_relaxed(&cache->popped[class_index], 1);
    if (!hak_bin_push(class_index, block))
        hak_flush_one(hak_owner_read(hak_granule_of(block)), block);
}

void *hak_malloc_noted(void *block, struct bins *bins, size_t scaled, size_t bytes)
{
    if (HAK_LIKELY(!hak_bin_note(bins, scaled)))
        return block;
    uint32_t class_index = hak_tag_class((uint32_t)scaled);
    struct sampled_request request = {
        .bytes = bytes,
        .counted_bytes = hak_size_classes[class_index].block_bytes,
        .caller = HAK_OS_CALLER(),
    };
    void *sample = hak_sampler_take(&request, class_index, false);
    if (sample == NULL)
        return block;
    put_back(block, bins, class_index);
    return sample;
}
