/* SPDX-License-Identifier: MIT */
#include "api/user_heap.h"

#include "base/bits.h"
#include "heap/refill.h"
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

static void *take_small(const struct request *request, uint32_t class_index)
{
    struct private_heap *heap = hak_user_heap_enter(request->user_heap, "invalid heap");
    if (heap == NULL)
        return NULL;
    bool is_due = note_operation(heap);
    void *block = hak_private_take(heap, class_index, request->is_zero);
    if (HAK_UNLIKELY(is_due))
        hak_tick_now();
    return block;
}

/* Clearing and growing takes place outside the lock. */
static void *take_large(const struct request *request)
{
    struct private_heap *heap = hak_user_heap_enter(request->user_heap, "invalid heap");
    if (heap == NULL)
        return NULL;
    hak_user_heap_leave(heap);
    void *block = hak_take_large(NULL, request->bytes, request->alignment,
                                 request->is_zero ? LARGE_ZERO : LARGE_ANY);
    if (block == NULL)
        return NULL;
    heap = hak_user_heap_enter(request->user_heap, "invalid heap");
    if (heap == NULL) {
        hak_large_give(block);
        return NULL;
    }
    hak_large_join(block, &heap->large_blocks);
    hak_stat_add(&heap->heap.stats, spans_taken, 1);
    hak_private_leave(heap);
    return block;
}

/* The cache is not used: blocks come one by one, under the heap's lock. */
static void *take_once(struct cache *cache, const struct request *request, enum hak_try turn)
{
    uint32_t class_index = hak_class_of_aligned(request->bytes, request->alignment);
    (void)cache;
    (void)turn;
    return class_index != HAK_CLASS_NONE ? take_small(request, class_index) : take_large(request);
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
static void note_drawn(const struct request *request, const void *block, struct os_caller caller)
{
    uint32_t class_index = hak_class_of_aligned(request->bytes, request->alignment);
    bool is_small = class_index != HAK_CLASS_NONE;
    hak_user_heap_note(request->user_heap, block, request->bytes,
                       is_small ? hak_size_classes[class_index].block_bytes : request->bytes,
                       caller);
}

void *hak_user_heap_take(hakmem_heap *handle, size_t bytes, size_t alignment, bool is_zero,
                         struct os_caller caller)
{
    struct request request = {.bytes = bytes,
                              .alignment = hak_most(alignment, hak_least_alignment(bytes)),
                              .is_zero = is_zero,
                              .user_heap = handle};
    if (HAK_UNLIKELY(bytes > HAK_REQUEST_BYTES_MAX || alignment > HAK_REQUEST_BYTES_MAX))
        return hak_refuse(bytes);
    void *block = take_once(NULL, &request, TRY_FIRST);
    if (HAK_UNLIKELY(block == NULL))
        block = hak_serve(take_once, &request);
    if (hak_draw_is_on() && block != NULL)
        note_drawn(&request, block, caller);
    return block;
}
