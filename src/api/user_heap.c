/* SPDX-License-Identifier: MIT */
#include "api/user_heap.h"

#include "api/api.h"
#include "base/bits.h"
#include "heap/limit.h"
#include "heap/refill.h"
#include "process/reclaim.h"
#include "process/serve.h"
#include "process/tick.h"
#include "profile/sampler.h"

/* The tick is looked at once in so many operations on a heap. */
#define OPERATIONS_PER_TICK 1024

struct private_heap *hak_user_heap_enter(hakmem_heap *handle, const char *what)
{
    if (HAK_UNLIKELY(hak_lock_is_abandoned()))
        hak_thread_mend();
    return hak_private_enter(handle, what);
}

/* Inside; true: the tick is due, outside. */
static bool note_operation(struct private_heap *heap)
{
    return ++heap->operation_count % OPERATIONS_PER_TICK == 0;
}

void hak_user_heap_leave(struct private_heap *heap)
{
    bool is_due = note_operation(heap);
    hak_private_leave(heap);
    if (HAK_UNLIKELY(is_due))
        hak_tick_now();
}

static void *take_small(hakmem_heap *handle, uint32_t class_index, enum large_content content)
{
    struct private_heap *heap = hak_user_heap_enter(handle, "invalid heap");
    if (heap == NULL)
        return NULL;
    bool is_due = note_operation(heap);
    void *block = hak_private_take(heap, class_index, content == LARGE_ZERO);
    if (HAK_UNLIKELY(is_due))
        hak_tick_now();
    return block;
}

/* Clearing and growing takes place outside the lock. */
static void *take_large(hakmem_heap *handle, size_t bytes, size_t alignment,
                        enum large_content content)
{
    struct private_heap *heap = hak_user_heap_enter(handle, "invalid heap");
    if (heap == NULL)
        return NULL;
    hak_user_heap_leave(heap);
    void *block = hak_take_large(bytes, alignment, content);
    if (block == NULL)
        return NULL;
    heap = hak_user_heap_enter(handle, "invalid heap");
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
    return class_index != HAK_CLASS_NONE ? take_small(handle, class_index, content)
                                         : take_large(handle, bytes, alignment, content);
}

/* What every block of the size is aligned to. */
static size_t least_alignment(size_t bytes)
{
    return bytes <= HAK_ORDINARY_ALIGNMENT / 2 ? HAK_ORDINARY_ALIGNMENT / 2
                                               : HAK_ORDINARY_ALIGNMENT;
}

void hak_user_heap_note(hakmem_heap *handle, const void *block, size_t bytes, size_t counted_bytes,
                        struct os_caller caller)
{
    uint64_t weight = hak_draw_coin(counted_bytes);
    struct private_heap *heap =
        HAK_LIKELY(weight == 0) ? NULL : hak_user_heap_enter(handle, "invalid heap");
    if (heap == NULL)
        return;
    heap->has_samples = true;
    hak_private_leave(heap);
    hak_sampler_note(&(struct sampled_request){bytes, weight, caller, handle}, block);
}

/* A block that is there. */
static void note_drawn(hakmem_heap *handle, const void *block, size_t bytes, size_t alignment,
                       struct os_caller caller)
{
    uint32_t class_index = hak_class_of_aligned(bytes, alignment);
    bool is_small = class_index != HAK_CLASS_NONE;
    hak_user_heap_note(handle, block, bytes,
                       is_small ? hak_size_classes[class_index].block_bytes : bytes, caller);
}

void *hak_user_heap_take(hakmem_heap *handle, size_t bytes, size_t alignment,
                         enum large_content content, struct os_caller caller)
{
    void *block = NULL;
    alignment = hak_most(alignment, least_alignment(bytes));
    if (bytes <= HAK_REQUEST_BYTES_MAX && alignment <= HAK_REQUEST_BYTES_MAX) {
        block = take_once(handle, bytes, alignment, content);
        if (HAK_UNLIKELY(block == NULL)) {
            hak_thread_flush();
            if (hak_limit_is_set())
                hak_reclaim_relieve();
            else
                hak_reclaim_purge_all();
            block = take_once(handle, bytes, alignment, content);
        }
    }
    if (HAK_UNLIKELY(block == NULL))
        return hak_refuse(bytes);
    if (hak_draw_is_on())
        note_drawn(handle, block, bytes, alignment, caller);
    return block;
}
