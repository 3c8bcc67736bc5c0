/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "api/user_heap.h"
#include "base/bits.h"
#include "hakmem/hakmem.h"
#include "hardened/hardened.h"
#include "heap/private_heap.h"
#include "misuse/report.h"
#include "process/background.h"
#include "process/start.h"
#include "process/tick.h"
#include "profile/sampler.h"
#include "span/large.h"
#include "stats/exact.h"

#include <errno.h>
#include <string.h>

hakmem_heap *hakmem_heap_new(void)
{
    hakmem_heap *handle = hak_process_start() ? hak_private_create(PRIVATE_OF_PROGRAM) : NULL;
    if (handle == NULL) {
        hak_stat_global_add(out_of_memory, 1);
        errno = ENOMEM;
    }
    return handle;
}

void *hakmem_heap_malloc(hakmem_heap *heap, size_t bytes)
{
    hak_exact_request(bytes);
    return hak_user_heap_take(heap, bytes, 0, false, HAK_OS_CALLER());
}

void *hakmem_heap_calloc(hakmem_heap *heap, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    hak_exact_request(total);
    return hak_user_heap_take(heap, total, 0, true, HAK_OS_CALLER());
}

void *hakmem_heap_aligned_alloc(hakmem_heap *heap, size_t alignment, size_t bytes)
{
    if (!hak_is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    hak_exact_request(bytes);
    return hak_user_heap_take(heap, bytes, alignment, false, HAK_OS_CALLER());
}

/* Misuse unless the block is one of the heap that the handle names. */
static void require_block_of(hakmem_heap *handle, const void *block, const char *what)
{
    if (!hak_region_holds(block) || hak_tag_read(hak_granule_of(block)) == HAK_TAG_HOLE)
        hak_misuse(what, block, 0, "not from hakmem");
    if (hak_tag_read(hak_granule_of(block)) == HAK_TAG_NONE)
        hak_misuse_nothing(what, block);
    if (hak_private_handle_of(block, what) != handle)
        hak_misuse(what, block, 0, "a block of another heap");
}

static void give_small(struct private_heap *heap, void *block)
{
    hak_heap_give(&heap->heap, hak_owner_read(hak_granule_of(block)), block);
}

void hakmem_heap_free(hakmem_heap *handle, void *block)
{
    if (block == NULL)
        return;
    struct private_heap *heap = hak_user_heap_enter(handle, "invalid heap");
    if (heap == NULL) {
        hak_free(block);
        return;
    }
    require_block_of(handle, block, "invalid heap free");
    if (HAK_UNLIKELY(hak_is_watched()))
        hak_exact_free();
    if (hak_sampler_watches())
        hak_sampler_end(block);
    bool is_small = hak_tag_is_slab(hak_tag_read(hak_granule_of(block)));
    if (is_small)
        give_small(heap, block);
    else
        hak_stat_add(&heap->heap.stats, spans_given, 1);
    hak_user_heap_leave(heap);
    if (!is_small)
        hak_large_give(block);
}

void *hakmem_heap_realloc(hakmem_heap *handle, void *block, size_t bytes)
{
    if (block == NULL)
        return hakmem_heap_malloc(handle, bytes);
    if (bytes == 0) {
        hakmem_heap_free(handle, block);
        return NULL;
    }
    struct private_heap *heap = hak_user_heap_enter(handle, "invalid heap");
    if (heap != NULL)
        hak_private_leave(heap);
    require_block_of(handle, block, "invalid heap realloc");
    return hak_realloc(block, bytes); /* which stays in the heap */
}

void hakmem_heap_destroy(hakmem_heap *handle)
{
    if (handle == NULL)
        return;
    struct private_heap *heap = hak_user_heap_enter(handle, "invalid heap destroy");
    if (heap == NULL)
        return;
    if (HAK_UNLIKELY(heap->has_samples))
        hak_sampler_end_heap(handle);
    heap->has_samples = false;
    hak_private_destroy(heap);
    hak_tick_now();
    hak_background_consider();
}

void hakmem_heap_trim(hakmem_heap *handle)
{
    struct private_heap *heap = hak_user_heap_enter(handle, "invalid heap");
    if (heap == NULL)
        return;
    hak_private_trim(heap);
    hak_user_heap_leave(heap);
}

hakmem_heap *hakmem_heap_of(const void *block)
{
    if (HAK_UNLIKELY(hak_hardened_is_on()) && hak_hardened_is_live(block))
        return NULL;
    return hak_region_holds(block) && hakmem_is_owned(block)
               ? hak_private_handle_of(block, "invalid heap block")
               : NULL;
}

int hakmem_heap_stats_get(hakmem_heap *handle, struct hakmem_heap_stats *stats, size_t stats_bytes)
{
    if (stats_bytes == 0)
        return EINVAL;
    struct private_use use = {0, 0, 0};
    struct private_heap *heap = hak_user_heap_enter(handle, "invalid heap");
    if (heap != NULL) {
        use = hak_private_use(heap);
        hak_user_heap_leave(heap);
    }
    struct hakmem_heap_stats all = {
        .live_block_count = use.block_count,
        .live_bytes = use.block_bytes,
        .held_bytes = use.held_bytes,
    };
    memset(stats, 0, stats_bytes);
    memcpy(stats, &all, hak_least(stats_bytes, sizeof all));
    return 0;
}
