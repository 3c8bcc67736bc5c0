/* SPDX-License-Identifier: MIT */
#include "heap/cpu_cache.h"

/* Where there are no sequences no thread is led to a processor's bins, and none of these is
 * called. */
const bool hak_has_cpu_caches = false;

#define ROW(index, below, bytes) [(below) / 8 + 1 ...(bytes) / 8] = HAK_BIN_OF_CLASS(index),
const uint32_t hak_hot_size_step = 8;
uint8_t hak_hot_sizes[HAK_CLASS_HOT_BYTES_MAX / 8 + 1] = {[1] = HAK_BIN_OF_CLASS(0),
                                                          HAK_SIZE_CLASSES_HOT(ROW)};

struct bins *hak_bins_of[HAK_ID_CLOSED + 1] = {[HAK_ID_CLOSED] = (struct bins *)&hak_bins_closed};

struct popped hak_cpu_cache_pop(size_t scaled)
{
    (void)scaled;
    return (struct popped){NULL, NULL};
}

bool hak_cpu_cache_push(size_t scaled, void *block)
{
    (void)scaled, (void)block;
    return false;
}

uint32_t hak_cpu_cache_pop_some(size_t scaled, void **blocks, uint32_t most)
{
    (void)scaled, (void)blocks, (void)most;
    return 0;
}

uint32_t hak_cpu_cache_push_some(size_t scaled, void *const *blocks, uint32_t count)
{
    (void)scaled, (void)blocks, (void)count;
    return 0;
}

uint32_t hak_cpu_cache_lower(size_t scaled, struct bins *bins, uint32_t countdown)
{
    (void)scaled, (void)bins, (void)countdown;
    return 0;
}

uint32_t hak_cpu_cache_close(size_t scaled, struct bins *bins)
{
    (void)scaled, (void)bins;
    return 0;
}
