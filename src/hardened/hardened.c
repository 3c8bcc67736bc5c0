/* SPDX-License-Identifier: MIT */
#include "hardened/hardened.h"

#include "base/bits.h"
#include "hardened/block.h"
#include "hardened/fenced.h"
#include "heap/limit.h"
#include "misuse/canary.h"
#include "misuse/report.h"
#include "misuse/zero_size.h"
#include "process/background.h"
#include "process/reclaim.h"
#include "process/start.h"
#include "process/tick.h"
#include "profile/sampler.h"
#include "stats/refusal.h"

#include <errno.h>
#include <string.h>

/* A mark's shift of an alignment to 16. */
#define ORDINARY_SHIFT 5
static void retain(const struct place *place)
{
    struct service service = hak_service_begin();
    hak_hardened_block_keep(&service, place);
    hak_service_end(&service);
    if (place->slab == NULL)
        hak_background_consider();
}

/* Memory is out: what waits goes home before a second try. */
static void *take_at_last(const struct service *service, struct request request)
{
    if (service->cache != NULL) {
        hak_hardened_block_drain(service);
        hak_cache_flush_all(service->cache);
    }
    hak_reclaim_empty_heaps();
    hak_reclaim_purge_all();
    void *block = hak_hardened_block_take(service, request);
    return block != NULL ? block : hak_hardened_block_take_larger(service, request);
}

static void *take_in_service(struct request request)
{
    struct service service = hak_service_begin();
    void *block = NULL;
    if (HAK_LIKELY(!service.is_refused)) {
        block = hak_hardened_block_take(&service, request);
        if (HAK_UNLIKELY(block == NULL) && !hak_heap_is_held())
            block = take_at_last(&service, request);
    }
    hak_service_end(&service);
    return block;
}

/* The block is a sample if it is drawn. */
static void note_drawn(const void *block, size_t bytes, struct os_caller caller)
{
    uint64_t weight = hak_draw_is_on() ? hak_draw_coin(hak_most(bytes, 1)) : 0;
    if (weight != 0)
        hak_sampler_note(&(struct sampled_request){bytes, weight, caller}, block);
}

void *hak_hardened_take(struct request request)
{
    void *block = NULL;
    if (hak_harden_has(HARDEN_FENCED) &&
        (block = hak_fenced_take(&request, HAK_OS_CALLER())) != NULL) {
        note_drawn(block, request.bytes, HAK_OS_CALLER());
        return block;
    }
    bool is_empty = request.bytes == 0 && request.alignment <= HAK_ORDINARY_ALIGNMENT;
    if (is_empty && hak_harden_has(HARDEN_ZERO) && (block = hak_zero_size_take()) != NULL)
        return block;
    if (request.bytes <= HAK_REQUEST_BYTES_MAX && request.alignment <= HAK_REQUEST_BYTES_MAX) {
        block = take_in_service(request);
        if (HAK_UNLIKELY(block == NULL) && hak_limit_is_set()) {
            hak_reclaim_relieve();
            block = take_in_service(request);
        }
    }
    if (HAK_UNLIKELY(block == NULL)) {
        hak_stat_global_add(out_of_memory, 1);
        hak_refusal_tell(request.bytes);
        errno = ENOMEM;
        return NULL;
    }
    hak_hardened_block_open(block, request);
    note_drawn(block, request.bytes, HAK_OS_CALLER());
    return block;
}

static bool find(void *block, const char *what, struct place *place)
{
    return hak_region_holds(block) && hak_tag_read(hak_granule_of(block)) != HAK_TAG_HOLE &&
           hak_place_find(block, what, place);
}

bool hak_hardened_holds(void *block, const char *what)
{
    struct place place;
    return hak_zero_size_holds(block) || find(block, what, &place);
}

bool hak_hardened_is_live(const void *block)
{
    if (hak_zero_size_holds(block))
        return hak_zero_size_is_live(block);
    if (!hak_region_holds(block) || (uintptr_t)block % 16 != 0)
        return false;
    uint32_t granule = hak_granule_of(block);
    uint32_t tag = hak_tag_read(granule);
    _Atomic uint64_t *mark = hak_mark_at(block);
    if (tag == HAK_TAG_NONE || mark == NULL ||
        hak_mark_unpack(hak_load_relaxed(mark)).state != MARK_LIVE)
        return false;
    uint32_t index;
    const struct slab *slab = hak_tag_is_slab(tag) ? hak_owner_read(granule) : NULL;
    return slab == NULL ? tag == HAK_TAG_SPAN && (uintptr_t)block % HAK_MARK_BLOCK_BYTES_LEAST == 0
                        : hak_slab_find_start(slab, block, &index) && !slab->is_private;
}

/* The live mark of the block. */
static struct mark live_mark(const struct place *place, const char *what, uint64_t *word)
{
    /* acquire: partner is the release in hak_hardened_block_open */
    *word = hak_load_acquire(place->mark);
    struct mark mark = hak_mark_unpack(*word);
    if (HAK_UNLIKELY(mark.state != MARK_LIVE))
        hak_misuse(what, place->block, mark.bytes, "already free");
    return mark;
}

static bool is_alignment_right(struct mark mark, struct claim claim)
{
    uint32_t shift = claim.is_aligned ? hak_bit_highest(hak_most(claim.alignment, 1)) + 1 : 0;
    if (claim.kind != MARK_MALLOC)
        return shift == mark.alignment_shift;
    /* free says nothing; and what malloc aligns to anyway need not be said, and may be. */
    bool is_said = claim.is_aligned || claim.bytes != HAK_ANY_BYTES;
    bool is_ordinary = shift <= ORDINARY_SHIFT && mark.alignment_shift <= ORDINARY_SHIFT;
    return !is_said || is_ordinary || shift == mark.alignment_shift;
}

static _Noreturn void mismatch(const void *block, struct mark mark, const char *state)
{
    if (hak_guarded_holds(block))
        hak_guarded_report("mismatched free", block, state);
    hak_misuse("mismatched free", block, mark.bytes, state);
}

static void check_claim(const void *block, struct mark mark, struct claim claim)
{
    static const char *const allocated[] = {
        [MARK_MALLOC] = "allocated by malloc, and not freed so",
        [MARK_NEW] = "allocated by operator new, and not freed so",
        [MARK_NEW_ARRAY] = "allocated by operator new[], and not freed so",
    };
    if (!hak_harden_has(HARDEN_SIZED))
        return;
    if (HAK_UNLIKELY(mark.kind != claim.kind))
        mismatch(block, mark, allocated[mark.kind]);
    if (HAK_UNLIKELY(claim.bytes != HAK_ANY_BYTES && claim.bytes != mark.bytes))
        mismatch(block, mark, "freed as of another size");
    if (HAK_UNLIKELY(!is_alignment_right(mark, claim)))
        mismatch(block, mark, "freed as of another alignment");
}

/* `word` is the live mark that was found: whoever frees at the same time changes it before the
 * canary. */
static void check_seals(const struct place *place, struct mark mark, uint64_t word)
{
    if (!hak_harden_has(HARDEN_CANARY))
        return;
    if (HAK_UNLIKELY(!hak_canary_is_whole(place->block, mark.bytes, place->capacity))) {
        if (!hak_mark_is_still(place->mark, word))
            hak_misuse("double free", place->block, mark.bytes,
                       "freed by another thread at the same time");
        hak_misuse("overflow", place->block, mark.bytes, "the bytes behind it were overwritten");
    }
    if (place->slab == NULL || (uintptr_t)place->block == place->slab->start)
        return;
    enum canary_fresh fresh =
        place->slab->zero_from == 0 ? CANARY_FRESH_ZERO : CANARY_FRESH_UNKNOWN;
    if (HAK_UNLIKELY(
            !hak_canary_end_is_whole(place->block - place->capacity, place->capacity, fresh)))
        hak_misuse("underflow", place->block, mark.bytes, "the bytes before it were overwritten");
}

static void give_empty(void *block)
{
    if (!hak_zero_size_give(block))
        hak_misuse("double free", block, 0, "already free, or never allocated");
}

/* Whatever else is wrong with it is found by the pool. */
static void give_fenced(void *block, struct claim claim, struct os_caller caller)
{
    struct mark mark;
    if (hak_fenced_look(block, &mark))
        check_claim(block, mark, claim);
    if (hak_sampler_watches())
        hak_sampler_end(block);
    hak_fenced_give(block, caller);
}

bool hak_hardened_give(void *block, struct claim claim)
{
    struct place place;
    if (HAK_UNLIKELY(hak_fence_holds(block))) {
        give_fenced(block, claim, HAK_OS_CALLER());
        return true;
    }
    if (hak_zero_size_holds(block)) {
        give_empty(block);
        return true;
    }
    if (!find(block, "invalid free", &place))
        return false;
    if (hak_sampler_watches())
        hak_sampler_end(block);
    uint64_t word;
    struct mark mark = live_mark(&place, "double free", &word);
    check_claim(block, mark, claim);
    check_seals(&place, mark, word);
    mark.state = MARK_FREED;
    /* acq_rel: of two threads that free, one fails; what it wrote before is the other's to clear */
    if (!atomic_compare_exchange_strong_explicit(place.mark, &word, hak_mark_pack(mark),
                                                 memory_order_acq_rel, memory_order_relaxed))
        hak_misuse("double free", block, mark.bytes, "freed by another thread at the same time");
    hak_mark_open();
    hak_hardened_block_shut(&place);
    retain(&place);
    return true;
}

size_t hak_hardened_usable_bytes(void *block)
{
    struct place place;
    if (hak_zero_size_holds(block)) {
        if (!hak_zero_size_is_live(block))
            hak_misuse("invalid malloc_usable_size", block, 0, "already free");
        return 0;
    }
    hak_place_find(block, "invalid malloc_usable_size", &place);
    uint64_t word;
    struct mark mark = live_mark(&place, "invalid malloc_usable_size", &word);
    return hak_harden_has(HARDEN_CANARY) ? mark.bytes : place.capacity;
}

/* The live block is nobody's while its size changes: who frees it meanwhile is found. */
static void seize(const struct place *place, struct mark mark, uint64_t word)
{
    mark.state = MARK_FREED;
    if (!atomic_compare_exchange_strong_explicit(place->mark, &word, hak_mark_pack(mark),
                                                 memory_order_acq_rel, memory_order_relaxed))
        hak_misuse("invalid realloc", place->block, mark.bytes, "freed at the same time");
    hak_mark_open();
}

/* It is live again as it was, but for its guards perhaps. */
static void let_go(const struct place *place)
{
    struct mark mark = hak_mark_unpack(hak_load_relaxed(place->mark));
    mark.state = MARK_LIVE;
    /* release: as in hak_hardened_block_open */
    atomic_store_explicit(place->mark, hak_mark_pack(mark), memory_order_release);
}

/* Gives a live block of a slab another size where it is; false: it must move. */
static bool resize_small(const struct place *place, struct mark mark, uint64_t word, size_t bytes)
{
    size_t spare = hak_harden_has(HARDEN_CANARY) ? HAK_CANARY_BYTES_LEAST : 0;
    if (bytes + spare > place->capacity || bytes < place->capacity / 2)
        return false;
    size_t old_bytes = mark.bytes;
    seize(place, mark, word);
    if (hak_harden_has(HARDEN_CANARY)) {
        size_t from = hak_least(bytes, old_bytes);
        size_t to = hak_least(old_bytes + HAK_CANARY_BYTES_MOST, place->capacity);
        if (to > from)
            memset(place->block + from, 0, to - from);
        hak_canary_write(place->block, bytes, place->capacity);
    }
    mark.bytes = bytes;
    mark.alignment_shift = 0; /* it is a block of realloc's from now on */
    mark.state = MARK_LIVE;
    /* release: as in hak_hardened_block_open */
    atomic_store_explicit(place->mark, hak_mark_pack(mark), memory_order_release);
    return true;
}

/* Another size for a large block that stays one, in place or at another one, the old one being in
 * quarantine then; NULL: nothing has changed, and only a copy can help. */
static void *resize_large(struct place *place, struct mark mark, uint64_t word, size_t bytes)
{
    if (bytes <= HAK_CLASS_BYTES_MAX ||
        !hak_limit_admits(hak_excess(bytes, hak_hardened_block_content_bytes(place, mark))))
        return NULL;
    void *block = place->block;
    seize(place, mark, word);
    if (!hak_hardened_block_resize(place, bytes)) {
        block = hak_limit_admits(bytes) ? hak_hardened_block_move(place, bytes) : NULL;
        if (block == NULL) {
            let_go(place);
            return NULL;
        }
        hak_hardened_block_open(block, (struct request){.bytes = bytes});
        retain(place);
    } else {
        hak_background_consider();
    }
    hak_limit_settle();
    return block;
}

/* The same with the block's life, of which one ends and another begins. */
static void *resize_watched(struct place *place, struct mark mark, uint64_t word, size_t bytes,
                            struct os_caller caller)
{
    struct live_sample sample;
    const void *block = place->block;
    bool is_sample = hak_sampler_lift(block, &sample);
    void *resized = resize_large(place, mark, word, bytes);
    if (is_sample && resized == NULL)
        hak_sampler_put_back(block, &sample);
    else if (is_sample)
        hak_sampler_end_lifted(&sample);
    if (resized != NULL)
        note_drawn(resized, bytes, caller);
    return resized;
}

void *hak_hardened_resize(void *block, size_t bytes)
{
    struct place place = {.block = block};
    enum hak_partition partition = PARTITION_ORDINARY;
    size_t old_bytes = 0;
    if (!hak_zero_size_holds(block)) {
        hak_place_find(block, "invalid realloc", &place);
        uint64_t word;
        struct mark mark = live_mark(&place, "invalid realloc", &word);
        check_claim(block, mark, (struct claim){.bytes = HAK_ANY_BYTES});
        check_seals(&place, mark, word);
        if (place.slab != NULL && resize_small(&place, mark, word, bytes))
            return block;
        void *resized =
            place.slab == NULL ? resize_watched(&place, mark, word, bytes, HAK_OS_CALLER()) : NULL;
        if (resized != NULL)
            return resized;
        old_bytes = hak_hardened_block_content_bytes(&place, mark);
        if (place.slab != NULL)
            partition = hak_class_partition(place.slab->class_index);
    } else if (!hak_zero_size_is_live(block)) {
        hak_misuse("invalid realloc", block, 0, "already free");
    }
    void *moved = hak_hardened_take((struct request){.bytes = bytes, .partition = partition});
    if (moved == NULL)
        return bytes <= old_bytes ? block : NULL;
    memcpy(moved, block, hak_least(old_bytes, bytes));
    hak_hardened_give(block, (struct claim){.bytes = HAK_ANY_BYTES});
    return moved;
}
