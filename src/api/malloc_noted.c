/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "heap/cache.h"
#include "heap/flush.h"
#include "heap/refill.h"
#include "process/tick.h"
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

/* A block shorter than a cache line may share one with a thread of another processor: it was handed
 * over, or its thread has moved. Popped and pushed in turn, it would share the line for as long as
 * both live. So with each note, which comes with a bin's first pop and then every HAK_POPS_NOTED,
 * such a block and all others in its bin are flushed, and the bin is filled from the processor's
 * own heap. */
static void *take_apart(void *block, uint32_t class_index)
{
    struct slow_path path = hak_slow_path_begin();
    if (path.cache != NULL) {
        hak_cache_flush_class(path.cache, class_index);
        void *fresh = hak_refill(path.cache, class_index);
        if (fresh != NULL) {
            hak_flush_one(hak_slab_at(block), block);
            block = fresh;
        }
    }
    hak_slow_path_end(&path);
    return block;
}

static void *take_unshared(void *block, uint32_t class_index)
{
    bool may_share_line = hak_size_classes[class_index].block_bytes < HAK_CACHE_LINE_BYTES &&
                          hak_load_relaxed(&hak_active_caches) > 1;
    return may_share_line ? take_apart(block, class_index) : block;
}

void *hak_malloc_noted_for(void *block, struct bins *bins, size_t scaled, size_t bytes,
                           struct os_caller caller)
{
    uint32_t class_index = hak_tag_class((uint32_t)scaled);
    uint64_t weight = hak_bin_note(bins, scaled);
    if (HAK_LIKELY(weight == 0))
        return take_unshared(block, class_index);
    struct sampled_request request = {
        .bytes = bytes,
        .weight = weight,
        .caller = caller,
    };
    void *sample = hak_sampler_take(&request, class_index, false);
    if (sample == NULL)
        return block;
    put_back(block, bins, class_index);
    return sample;
}

void *hak_malloc_noted(void *block, struct bins *bins, size_t scaled, size_t bytes)
{
    return hak_malloc_noted_for(block, bins, scaled, bytes, HAK_OS_CALLER());
}

void *hak_aligned_noted(void *block, struct bins *bins, size_t scaled)
{
    hak_bin_note(bins, scaled);
    return take_unshared(block, hak_tag_class((uint32_t)scaled));
}

int hak_posix_memalign_noted(void **result, void *block, struct bins *bins, size_t scaled)
{
    *result = hak_aligned_noted(block, bins, scaled);
    return 0;
}
