/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "api/replaced.h"
#include "base/bits.h"
#include "base/check.h"
#include "hardened/hardened.h"
#include "hardened/sample.h"
#include "hardened/waiting.h"
#include "heap/bins.h"
#include "heap/flush.h"
#include "heap/limit.h"
#include "heap/refill.h"
#include "heap/route.h"
#include "heap/supply.h"
#include "misuse/harden.h"
#include "misuse/report.h"
#include "misuse/zero_size.h"
#include "os/os.h"
#include "process/background.h"
#include "process/serve.h"
#include "process/start.h"
#include "process/tick.h"
#include "profile/sampler.h"
#include "slab/slab_give.h"
#include "span/large.h"
#include "span/span_lock.h"
#include "stats/event_log.h"
#include "stats/exact.h"

#include <errno.h>
#include <string.h>

enum content { CONTENT_ANY, CONTENT_ZERO };

static void *clear(void *block, uint32_t class_index, enum content content)
{
    if (block != NULL && content == CONTENT_ZERO)
        memset(block, 0, hak_size_classes[class_index].block_bytes);
    return block;
}

/* A block past the cache, which there is none of. */
static void *take_alone(uint32_t class_index, enum content content)
{
    bool is_zero = false;
    hak_stat_global_add(cacheless_calls, 1);
    void *block = hak_take_one(class_index, content == CONTENT_ZERO ? &is_zero : NULL);
    return is_zero ? block : clear(block, class_index, content);
}

static void *take_lent(struct cache *cache, uint32_t class_index)
{
    void *block = hak_bin_pop(class_index);
    return block != NULL ? block : hak_refill(cache, class_index);
}

static void *class_take(struct cache *cache, uint32_t class_index, size_t alignment,
                        enum content content)
{
    if (HAK_UNLIKELY(cache == NULL))
        return take_alone(class_index, content);
    void *block = hak_bin_pop(class_index);
    if (block == NULL && HAK_UNLIKELY(hak_region_is_tight()))
        block = hak_take_tight(cache, class_index, alignment);
    if (block != NULL)
        return clear(block, class_index, content);
    uint32_t lender =
        alignment > HAK_ORDINARY_ALIGNMENT ? class_index : hak_refill_class(cache, class_index);
    if (HAK_UNLIKELY(lender != class_index) && (block = take_lent(cache, lender)) != NULL)
        return clear(block, lender, content);
    bool is_zero = false;
    if (content == CONTENT_ZERO &&
        (block = hak_take_untouched(cache, class_index, &is_zero)) != NULL)
        hak_fetch_sub_relaxed(&cache->guard_left_bytes, hak_size_classes[class_index].block_bytes);
    if (block == NULL)
        block = hak_refill(cache, class_index);
    return is_zero ? block : clear(block, class_index, content);
}

/* A block of any larger class: of the same partition, or of the other. */
static void *take_any_larger(struct cache *cache, uint32_t class_index, size_t alignment)
{
    uint32_t twin = hak_class_partition(class_index) == PARTITION_LONG
                        ? hak_class_ordinary(class_index)
                        : hak_class_long(class_index);
    void *block = hak_take_last(cache, class_index, alignment, HAK_LAST_PATIENCE_MS);
    return block != NULL ? block : hak_take_last(cache, twin, alignment, HAK_LAST_PATIENCE_MS);
}

/* HAK_CLASS_NONE: the request is for a large block. */
HAK_INLINE uint32_t class_for(const struct request *request)
{
    uint32_t class_index = HAK_CLASS_NONE;
    if (request->alignment != 0)
        class_index = hak_class_of_aligned(request->bytes, request->alignment);
    else if (request->bytes <= HAK_CLASS_BYTES_MAX)
        class_index = hak_class_of(request->bytes);
    return hak_class_in(class_index, request->partition);
}

HAK_INLINE size_t alignment_for(const struct request *request)
{
    return hak_most(request->alignment, HAK_ORDINARY_ALIGNMENT);
}

static void *take_large(struct cache *cache, const struct request *request, enum hak_try turn)
{
    (void)turn; /* there is nothing larger */
    void *block = hak_take_large(cache, request->bytes, alignment_for(request),
                                 request->is_zero ? LARGE_ZERO : LARGE_ANY);
    if (HAK_LIKELY(block != NULL))
        hak_stat_add_here(cache, spans_taken, 1);
    return block;
}

static void *take_small(struct cache *cache, const struct request *request, enum hak_try turn)
{
    uint32_t class_index = class_for(request);
    enum content content = request->is_zero ? CONTENT_ZERO : CONTENT_ANY;
    size_t alignment = alignment_for(request);
    void *block = class_take(cache, class_index, alignment, content);
    if (HAK_LIKELY(block != NULL) || turn != TRY_LAST)
        return block;
    return clear(take_any_larger(cache, class_index, alignment), class_index, content);
}

static HAK_NOINLINE void *take_ordinary(const struct request *request)
{
    if (class_for(request) != HAK_CLASS_NONE)
        return hak_serve(take_small, request);
    void *block = hak_serve(take_large, request);
    hak_background_consider();
    return block;
}

/* What comes by here is counted by the profile with a coin; what pops from a bin there lowers its
 * countdown for nothing. NULL: the request is no sample, or an ordinary block will do. */
static HAK_NOINLINE void *take_drawn(const struct request *request, struct os_caller caller)
{
    uint32_t class_index = class_for(request);
    bool is_small = class_index != HAK_CLASS_NONE;
    struct sampled_request sample = {
        .bytes = request->bytes,
        .weight =
            hak_draw_coin(is_small ? hak_size_classes[class_index].block_bytes : request->bytes),
        .caller = caller,
    };
    if (HAK_LIKELY(sample.weight == 0))
        return NULL;
    if (is_small)
        return hak_sampler_take(&sample, class_index, request->is_zero);
    void *block = take_ordinary(request);
    if (block != NULL)
        hak_sampler_note(&sample, block);
    return block;
}

void hak_thread_flush(void)
{
    if (hak_own_cache() == NULL)
        return;
    struct slow_path path = hak_slow_path_begin();
    if (path.cache != NULL) {
        hak_waiting_drain(path.cache);
        hak_cache_flush_all(path.cache);
    }
    hak_slow_path_end(&path);
}

/* The common way of every unusual request that hardened mode does not serve; inline, so that it
 * knows who asks. */
HAK_INLINE void *take(const struct request *request)
{
    struct cache *cache = hak_own_cache();
    void *block = NULL;
    if (HAK_UNLIKELY(request->bytes > HAK_REQUEST_BYTES_MAX ||
                     request->alignment > HAK_REQUEST_BYTES_MAX)) {
        errno = ENOMEM;
        return NULL;
    }
    if (hak_draw_is_on() && (block = take_drawn(request, HAK_OS_CALLER())) != NULL)
        return block;
    if (hak_sample_is_due(cache) && request->bytes <= HAK_CLASS_BYTES_MAX)
        block = hak_sample_take(cache, request->bytes, alignment_for(request), HAK_OS_CALLER());
    return block != NULL ? block : take_ordinary(request);
}

HAK_INLINE void *serve(struct request request)
{
    if (HAK_UNLIKELY(hak_exact_request(request.bytes)))
        return hak_hardened_take(&request);
    return take(&request);
}

/* From the bin of the class, counted and sampled as on the hot path; NULL: it is empty. */
HAK_INLINE void *pop(uint32_t class_index, size_t bytes, struct os_caller caller)
{
    struct popped popped = hak_bin_pop_noted(class_index);
    if (HAK_LIKELY(popped.noted == NULL))
        return popped.block;
    return hak_malloc_noted_for(popped.block, popped.noted, HAK_BIN_OF_CLASS(class_index), bytes,
                                caller);
}

/* The bin that the site of the caller takes from: the hot path finds none for these sizes. NULL: no
 * site of the class is diverted, or the bin is empty. */
HAK_INLINE void *pop_routed(struct request *request, struct os_caller caller)
{
    if (request->bytes - 1 >= HAK_CLASS_EVEN_BYTES_MAX) /* or none */
        return NULL;
    uint32_t class_index = hak_class_of(request->bytes);
    if (!hak_route_has(class_index))
        return NULL;
    request->partition = hak_route_find(class_index, caller);
    void *block = pop(hak_class_in(class_index, request->partition), request->bytes, caller);
    hak_route_note(class_index, request->partition, block);
    return block;
}

/* At present no large block is sampled or timed. */
HAK_INLINE bool are_plain(void)
{
    return !hak_draw_is_on() && !hak_slow_is_clocked();
}

/* The memory of one of the large blocks that were freed here last: no more is held than before, and
 * no lock is needed, but for another one that came in between. NULL: there is none that fits. */
HAK_INLINE void *take_again(size_t bytes)
{
    struct cache *cache;
    struct heap *heap;
    if (bytes > HAK_SPAN_CACHE_BYTES_MOST || !are_plain() || !hak_limit_admits(bytes) ||
        (cache = hak_cache_at_rest()) == NULL || (heap = hak_heap_own()) == NULL)
        return NULL;
    hak_cache_begin(cache);
    void *block = hak_large_take_recent(&heap->spans, bytes);
    if (block != NULL)
        hak_stat_add_here(cache, spans_taken, 1);
    hak_cache_end(cache);
    return block;
}

void *hak_malloc_slow(size_t bytes)
{
    struct request request = {.bytes = bytes};
    void *block;
    if (HAK_UNLIKELY(hak_route_is_on()) && (block = pop_routed(&request, HAK_OS_CALLER())) != NULL)
        return block;
    if (HAK_UNLIKELY(hak_exact_request(bytes)))
        return hak_hardened_take(&request);
    if (HAK_UNLIKELY(bytes == 0) && (block = hak_zero_size_take()) != NULL)
        return block;
    if (bytes > HAK_CLASS_BYTES_MAX && (block = take_again(bytes)) != NULL)
        return block;
    return take(&request);
}

void *hak_malloc_routed(size_t bytes, struct os_caller caller)
{
    struct request request = {.bytes = bytes};
    void *block = pop_routed(&request, caller);
    return block != NULL || request.partition == PARTITION_ORDINARY ? block : serve(request);
}

void *hak_malloc_uncounted(size_t bytes, int partition, bool is_spared)
{
    struct request request = {
        .bytes = bytes, .is_spared = is_spared, .partition = (enum hak_partition)partition};
    return HAK_UNLIKELY(hak_is_hardened()) ? hak_hardened_take(&request) : take(&request);
}

void *hak_calloc_slow(size_t bytes)
{
    struct request request = {.bytes = bytes, .is_zero = true};
    if (HAK_UNLIKELY(hak_exact_request(bytes)))
        return hak_hardened_take(&request);
    void *block = NULL;
    if (bytes <= HAK_CLASS_BYTES_MAX)
        block = pop(hak_class_of(bytes), bytes, HAK_OS_CALLER());
    return block != NULL ? memset(block, 0, bytes) : take(&request);
}

/* An alignment that every block has anyway: the ways of malloc, as the hot path did not take it. */
static void *take_as_malloc(size_t bytes)
{
    uint32_t class_index = bytes <= HAK_CLASS_BYTES_MAX ? hak_class_of(bytes) : HAK_CLASS_NONE;
    bool is_diverted = bytes <= HAK_CLASS_EVEN_BYTES_MAX && hak_route_has(class_index);
    void *block = NULL;
    if (class_index != HAK_CLASS_NONE && !is_diverted)
        block = pop(class_index, bytes, HAK_OS_CALLER());
    return block != NULL ? block : hak_malloc_slow(bytes);
}

void *hak_aligned_slow(size_t alignment, size_t bytes)
{
    bool is_ordinary = alignment <= HAK_ORDINARY_ALIGNMENT && bytes > alignment / 2;
    if (is_ordinary && !hak_harden_has(HARDEN_FENCED)) /* whose blocks may end where theirs do */
        return take_as_malloc(bytes);
    return serve((struct request){.bytes = bytes, .alignment = alignment});
}

void *hak_long_slow(size_t bytes)
{
    return serve((struct request){.bytes = bytes, .partition = PARTITION_LONG});
}

void *hak_long_zero_slow(size_t bytes)
{
    return serve((struct request){.bytes = bytes, .is_zero = true, .partition = PARTITION_LONG});
}

void *hak_long_aligned_slow(size_t alignment, size_t bytes)
{
    return serve(
        (struct request){.bytes = bytes, .alignment = alignment, .partition = PARTITION_LONG});
}

/* A block of a slab: into the bin if there is one with room, else home. */
static void give_small(struct cache *cache, void *block, uint32_t tag)
{
    struct slab *slab = hak_owner_read(hak_granule_of(block));
    if (HAK_UNLIKELY(cache == NULL || tag == HAK_TAG_PRIVATE)) {
        hak_flush_one(slab, block);
        return;
    }
    uint32_t class_index = slab->class_index;
    uint32_t index = hak_slab_index_of(slab, block, "invalid free");
    /* The bit of a block in use is 0, whichever thread holds the heap. */
    uint64_t bit = 1ull << (index & 63);
    if (HAK_UNLIKELY((hak_load_relaxed(&slab->words[index >> 6]) & bit) != 0 ||
                     hak_bin_has_on_top(class_index, block)))
        hak_slab_report(slab, index >> 6, bit, "double free", "already free");
    if (hak_bin_push(class_index, block))
        return;
    hak_cache_flush(cache, class_index);
    if (!hak_bin_push(class_index, block)) /* it has no slots yet */
        hak_flush_one(slab, block);
}

/* A heap keeps its span where that serves requests, or while the free spans are busy; among these
 * it joins its neighbours. */
static void give_large(void *block)
{
    struct heap *heap = hak_heap_near();
    if (heap == NULL || hak_span_cache_is_useful(&heap->spans) ||
        hak_span_lock_is_busy(hak_span_set_of(heap->owner.heap_id)))
        hak_flush_large(block);
    else
        hak_large_give_up(hak_large_end(block));
}

/* A large block's memory for take_again; false: it is to go another way. */
HAK_INLINE bool give_again(void *block)
{
    struct cache *cache = hak_cache_at_rest();
    struct heap *heap = hak_heap_own();
    struct span *displaced;
    if (cache == NULL || heap == NULL || !are_plain())
        return false;
    hak_cache_begin(cache);
    bool is_kept = hak_large_give_recent(&heap->spans, block, &displaced);
    hak_cache_end(cache);
    if (!is_kept)
        return false;
    hak_stat_add_for(cache, spans_given, 1);
    if (HAK_UNLIKELY(displaced != NULL)) {
        struct slow_path path = hak_slow_path_begin();
        hak_flush_span(displaced);
        hak_slow_path_end_quick(&path);
    }
    hak_tick_count(cache);
    hak_background_consider();
    return true;
}

static void give(void *block, uint32_t tag)
{
    if (tag == HAK_TAG_SPAN && give_again(block))
        return;
    struct slow_path path = hak_slow_path_begin();
    struct cache *cache = path.cache;
    if (hak_tag_is_slab(tag)) {
        give_small(cache, block, tag);
    } else {
        hak_stat_add_for(cache, spans_given, 1);
        give_large(block);
    }
    hak_slow_path_end(&path);
    if (!hak_tag_is_slab(tag))
        hak_background_consider();
}

/* The ends of samples are seen. */
static void give_watched(void *block, uint32_t tag)
{
    if (hak_sampler_watches() && !hak_tag_is_class(tag))
        hak_sampler_end(block);
    give(block, tag);
}

static HAK_NOINLINE void free_anything(void *block)
{
    if (block == NULL)
        return;
    if (HAK_UNLIKELY(!hak_region_holds(block))) {
        hak_foreign_free(block);
        return;
    }
    uint32_t tag = hak_tag_read(hak_granule_of(block));
    if (HAK_UNLIKELY(tag == HAK_TAG_HOLE))
        hak_foreign_free(block);
    else if (HAK_UNLIKELY(tag == HAK_TAG_NONE))
        hak_misuse_nothing("invalid free", block);
    else
        give_watched(block, tag);
}

/* False: it is not a block that hardened mode knows. */
static bool free_hardened(void *block, const struct claim *claim)
{
    return hak_hardened_is_on() && block != NULL && hak_hardened_give(block, claim);
}

/* Counts it, where frees are counted; as above. */
static bool free_watched(void *block, const struct claim *claim)
{
    if (HAK_UNLIKELY(hak_harden_has(HARDEN_COUNTED)) && block != NULL)
        hak_exact_free();
    return free_hardened(block, claim);
}

static const struct claim no_claim = {.bytes = HAK_ANY_BYTES};

void hak_free_slow(void *block)
{
    if (HAK_LIKELY(!hak_is_watched()) || !free_watched(block, &no_claim))
        free_anything(block);
}

void hak_free_uncounted(void *block)
{
    if (!free_hardened(block, &no_claim))
        free_anything(block);
}

void hak_free_claimed_slow(void *block, size_t bytes, size_t alignment, int kind)
{
    struct claim claim = {bytes, alignment, (enum mark_kind)kind, alignment != 0};
    bool is_derived = kind == MARK_NEW_ARRAY || (kind == MARK_NEW && bytes != HAK_ANY_BYTES);
    if (is_derived && hak_is_replaced()) {
        hak_pass_delete(block, bytes, alignment, kind == MARK_NEW_ARRAY);
        return;
    }
    if (HAK_LIKELY(!hak_is_watched()) || !free_watched(block, &claim))
        free_anything(block);
}
