/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "api/background.h"
#include "api/hardened.h"
#include "api/tally.h"
#include "base/bits.h"
#include "cache/lifecycle.h"
#include "cache/limit.h"
#include "cache/private_heap.h"
#include "cache/supply.h"
#include "hakmem/hakmem.h"
#include "harden/checks.h"
#include "span/large.h"

#include <errno.h>
#include <string.h>

/* The tick is looked at once in so many operations on a heap. */
#define OPERATIONS_PER_TICK 1024

static void leave(struct private_heap *heap)
{
    bool is_due = ++heap->operation_count % OPERATIONS_PER_TICK == 0;
    hak_private_leave(heap);
    if (HAK_UNLIKELY(is_due))
        hak_maintain_tick();
}

static void *take_small(hakmem_heap *handle, uint32_t class_index, enum large_content content)
{
    struct private_heap *heap = hak_private_enter(handle, "invalid heap");
    if (heap == NULL)
        return NULL;
    bool is_zero = false;
    void *block = content == LARGE_ZERO ? hak_heap_take_one(&heap->heap, class_index, &is_zero)
                                        : hak_heap_take_used(&heap->heap, class_index);
    leave(heap);
    if (content == LARGE_ZERO && block != NULL && !is_zero)
        memset(block, 0, hak_size_classes[class_index].block_bytes);
    return block;
}

/* Clearing and growing takes place outside the lock. */
static void *take_large(hakmem_heap *handle, size_t bytes, size_t alignment,
                        enum large_content content)
{
    struct private_heap *heap = hak_private_enter(handle, "invalid heap");
    if (heap == NULL)
        return NULL;
    leave(heap);
    void *block = hak_supply_large(NULL, bytes, alignment, content);
    if (block == NULL)
        return NULL;
    heap = hak_private_enter(handle, "invalid heap");
    if (heap == NULL) {
        hak_large_give(block);
        return NULL;
    }
    hak_large_join(block, &heap->large_blocks);
    hak_stat_add(&heap->heap.stats, spans_taken, 1);
    hak_private_leave(heap);
    return block;
}

static void *take_once(hakmem_heap *handle, size_t bytes, size_t alignment,
                       enum large_content content)
{
    uint32_t class_index = hak_class_of_aligned(bytes, alignment);
    return class_index < HAK_CLASS_COUNT ? take_small(handle, class_index, content)
                                         : take_large(handle, bytes, alignment, content);
}

static void *take(hakmem_heap *handle, size_t bytes, size_t alignment, enum large_content content)
{
    void *block = NULL;
    if (bytes <= HAK_REQUEST_BYTES_MAX && alignment <= HAK_REQUEST_BYTES_MAX) {
        block = take_once(handle, bytes, alignment, content);
        if (HAK_UNLIKELY(block == NULL)) {
            hak_thread_flush();
            if (hak_limit_is_set())
                hak_maintain_relieve();
            else
                hak_maintain_purge_all();
            block = take_once(handle, bytes, alignment, content);
        }
    }
    if (HAK_UNLIKELY(block == NULL)) {
        hak_stat_global_add(out_of_memory, 1);
        errno = ENOMEM;
    }
    return block;
}

/* What every block of the size is aligned to. */
static size_t least_alignment(size_t bytes)
{
    return bytes <= HAK_ORDINARY_ALIGNMENT / 2 ? HAK_ORDINARY_ALIGNMENT / 2
                                               : HAK_ORDINARY_ALIGNMENT;
}

hakmem_heap *hakmem_heap_new(void)
{
    hakmem_heap *handle = hak_process_start() ? hak_private_create() : NULL;
    if (handle == NULL) {
        hak_stat_global_add(out_of_memory, 1);
        errno = ENOMEM;
    }
    return handle;
}

void *hakmem_heap_malloc(hakmem_heap *heap, size_t bytes)
{
    hak_tally_request(bytes);
    return take(heap, bytes, least_alignment(bytes), LARGE_ANY);
}

void *hakmem_heap_calloc(hakmem_heap *heap, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    hak_tally_request(total);
    return take(heap, total, least_alignment(total), LARGE_ZERO);
}

void *hakmem_heap_aligned_alloc(hakmem_heap *heap, size_t alignment, size_t bytes)
{
    if (!hak_is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    hak_tally_request(bytes);
    return take(heap, bytes, hak_most(alignment, least_alignment(bytes)), LARGE_ANY);
}

/* Misuse unless the block is one of the heap that the handle names. */
static void require_block_of(hakmem_heap *handle, const void *block, const char *what)
{
    if (!hak_region_holds(block) || hak_tag_read(hak_granule_of(block)) == HAK_TAG_HOLE)
        hak_misuse(what, block, 0, "not from hakmem");
    if (hak_tag_read(hak_granule_of(block)) == HAK_TAG_NONE)
        hak_misuse(what, block, 0, "nothing is allocated there");
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
    struct private_heap *heap = hak_private_enter(handle, "invalid heap");
    if (heap == NULL) {
        hak_free(block);
        return;
    }
    require_block_of(handle, block, "invalid heap free");
    if (HAK_UNLIKELY(hak_is_watched()))
        hak_tally_free();
    bool is_small = hak_tag_is_slab(hak_tag_read(hak_granule_of(block)));
    if (is_small)
        give_small(heap, block);
    else
        hak_stat_add(&heap->heap.stats, spans_given, 1);
    leave(heap);
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
    struct private_heap *heap = hak_private_enter(handle, "invalid heap");
    if (heap != NULL)
        hak_private_leave(heap);
    require_block_of(handle, block, "invalid heap realloc");
    return hak_realloc(block, bytes); /* which stays in the heap */
}

void *hak_malloc_beside(const void *block, size_t bytes)
{
    hakmem_heap *handle = hak_private_handle_of(block, "invalid realloc");
    return handle == NULL ? hak_malloc_again(bytes)
                          : take(handle, bytes, least_alignment(bytes), LARGE_ANY);
}

void hakmem_heap_destroy(hakmem_heap *handle)
{
    if (handle == NULL)
        return;
    struct private_heap *heap = hak_private_enter(handle, "invalid heap destroy");
    if (heap == NULL)
        return;
    hak_private_destroy(heap);
    hak_maintain_tick();
    hak_background_consider();
}

void hakmem_heap_trim(hakmem_heap *handle)
{
    struct private_heap *heap = hak_private_enter(handle, "invalid heap");
    if (heap == NULL)
        return;
    hak_private_trim(heap);
    leave(heap);
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
    struct private_heap *heap = hak_private_enter(handle, "invalid heap");
    if (heap != NULL) {
        use = hak_private_use(heap);
        leave(heap);
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
