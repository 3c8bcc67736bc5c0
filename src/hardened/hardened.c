/* SPDX-License-Identifier: MIT */
#include "hardened/hardened.h"

#include "base/bits.h"
#include "hardened/fenced.h"
#include "hardened/look_back.h"
#include "hardened/waiting.h"
#include "heap/limit.h"
#include "heap/slot.h"
#include "misuse/canary.h"
#include "misuse/report.h"
#include "misuse/zero_size.h"
#include "process/background.h"
#include "process/serve.h"
#include "process/start.h"
#include "process/tick.h"
#include "profile/sampler.h"

#include <string.h>

/* A mark's shift of an alignment to 16. */
#define ORDINARY_SHIFT 5
/* The block that is taken so many requests later is fetched from memory meanwhile. */
#define FETCHED_AHEAD 3

HAK_INLINE void retain(const struct place *place)
{
    struct slow_path path = hak_slow_path_begin();
    if (HAK_UNLIKELY(hak_waiting_keep(path.cache, place)))
        hak_slow_path_end(&path);
    else
        hak_slow_path_end_quick(&path);
    if (HAK_UNLIKELY(place->slab == NULL))
        hak_background_consider();
}

/* The block is a sample if it is drawn. */
HAK_INLINE void note_drawn(const void *block, size_t bytes, struct os_caller caller)
{
    uint64_t weight = hak_draw_is_on() ? hak_draw_coin(hak_most(bytes, 1)) : 0;
    if (weight != 0)
        hak_sampler_note(&(struct sampled_request){bytes, weight, caller, NULL}, block);
}

/* A block that the cache has ready; NULL: it has none. */
static void *take_ready(uint32_t class_index)
{
    struct cache *cache = hak_cache_at_rest();
    if (HAK_UNLIKELY(cache == NULL))
        return NULL;
    hak_cache_begin(cache);
    void *block = hak_slot_pop(cache->bins, class_index);
    hak_mark_fetch(hak_slot_ahead(cache->bins, class_index, FETCHED_AHEAD));
    hak_cache_end(cache);
    return block;
}

/* A new block, after a look at what was allocated and freed before. */
static void *look_back_and_take(struct cache *cache, const struct request *request,
                                enum hak_try turn)
{
    if (HAK_LIKELY(cache != NULL && turn == TRY_FIRST))
        hak_look_back(cache);
    void *block = hak_hardened_block_take(cache, request, turn);
    if (HAK_LIKELY(cache != NULL && block != NULL))
        hak_look_back_note(cache, block);
    return block;
}

/* Requests for which there is no ready block. A handler may get a guarded block, which has neither
 * mark nor canary. */
static HAK_NOINLINE void *take_slow(const struct request *request)
{
    if (request->bytes > HAK_REQUEST_BYTES_MAX || request->alignment > HAK_REQUEST_BYTES_MAX)
        return hak_refuse(request->bytes);
    void *block = hak_serve(look_back_and_take, request);
    if (block != NULL && !hak_guarded_holds(block))
        hak_hardened_block_open(block, request);
    return block;
}

/* A block of no bytes; NULL: it is to be like others. */
static void *take_empty(const struct request *request)
{
    bool is_empty = request->bytes == 0 && request->alignment <= HAK_ORDINARY_ALIGNMENT;
    return is_empty ? hak_zero_size_take() : NULL;
}

void *hak_hardened_take(const struct request *request)
{
    uint32_t class_index = hak_hardened_class_for(request);
    void *block = NULL;
    if (HAK_UNLIKELY(hak_harden_has(HARDEN_FENCED)) &&
        (block = hak_fenced_take(request, HAK_OS_CALLER())) != NULL) {
        note_drawn(block, request->bytes, HAK_OS_CALLER());
        return block;
    }
    if (HAK_UNLIKELY(request->bytes == 0) && (block = take_empty(request)) != NULL)
        return block;
    if (HAK_LIKELY(class_index != HAK_CLASS_NONE))
        block = take_ready(class_index);
    if (HAK_LIKELY(block != NULL))
        hak_hardened_block_open(block, request);
    else if ((block = take_slow(request)) == NULL)
        return NULL;
    note_drawn(block, request->bytes, HAK_OS_CALLER());
    return block;
}

/* Of the live block of a slab, found without a word; false: it is not so simple. */
HAK_INLINE bool find_usual(void *block, struct place *place)
{
    if (HAK_UNLIKELY(!hak_region_holds(block)))
        return false;
    uint32_t granule = hak_granule_of(block), tag = hak_tag_read(granule), index;
    if (HAK_UNLIKELY(!hak_tag_is_class(tag)))
        return false;
    struct slab *slab = hak_owner_read(granule);
    place->mark = hak_mark_of(block);
    __builtin_prefetch(block, 1); /* its canary, and the end of the block before */
    place->block = block;
    place->slab = slab;
    place->capacity = slab->block_bytes;
    return HAK_LIKELY(hak_slab_find_start(slab, block, &index) && index < slab->block_count &&
                      (hak_load_relaxed(place->mark) & HAK_MARK_STATE) == MARK_LIVE);
}

static HAK_NOINLINE bool find_unusual(void *block, const char *what, struct place *place)
{
    return hak_region_holds(block) && hak_tag_read(hak_granule_of(block)) != HAK_TAG_HOLE &&
           hak_place_find(block, what, place);
}

/* False: a foreign pointer, or a block of a private heap. */
HAK_INLINE bool find(void *block, const char *what, struct place *place)
{
    return HAK_LIKELY(find_usual(block, place)) || find_unusual(block, what, place);
}

bool hak_hardened_is_live(const void *block)
{
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
HAK_INLINE struct mark live_mark(const struct place *place, const char *what, uint64_t *word)
{
    /* acquire: partner is the release in hak_hardened_block_open */
    *word = hak_load_acquire(place->mark);
    struct mark mark = hak_mark_unpack(*word);
    if (HAK_UNLIKELY(mark.state != MARK_LIVE))
        hak_misuse(what, place->block, mark.bytes, "already free");
    return mark;
}

static bool is_alignment_right(struct mark mark, const struct claim *claim)
{
    uint32_t shift = claim->is_aligned ? hak_bit_highest(hak_most(claim->alignment, 1)) + 1 : 0;
    if (claim->kind != MARK_MALLOC)
        return shift == mark.alignment_shift;
    /* free states neither size nor alignment, and malloc's own alignment is optional to state. */
    bool is_said = claim->is_aligned || claim->bytes != HAK_ANY_BYTES;
    bool is_ordinary = shift <= ORDINARY_SHIFT && mark.alignment_shift <= ORDINARY_SHIFT;
    return !is_said || is_ordinary || shift == mark.alignment_shift;
}

static _Noreturn void mismatch(const void *block, struct mark mark, const char *state)
{
    if (hak_guarded_holds(block))
        hak_guarded_report("mismatched free", block, state);
    hak_misuse("mismatched free", block, mark.bytes, state);
}

static HAK_NOINLINE void check_claim_slow(const void *block, struct mark mark,
                                          const struct claim *claim)
{
    static const char *const allocated[] = {
        [MARK_MALLOC] = "allocated by malloc, but freed in another way",
        [MARK_NEW] = "allocated by operator new, but freed in another way",
        [MARK_NEW_ARRAY] = "allocated by operator new[], but freed in another way",
    };
    if (mark.kind == MARK_KEPT) {
        mark.kind = MARK_MALLOC;
        mark.alignment_shift = 0;
    }
    if (HAK_UNLIKELY(mark.kind != claim->kind))
        mismatch(block, mark, allocated[mark.kind]);
    if (HAK_UNLIKELY(claim->bytes != HAK_ANY_BYTES && claim->bytes != mark.bytes))
        mismatch(block, mark, "freed with another size");
    if (HAK_UNLIKELY(!is_alignment_right(mark, claim)))
        mismatch(block, mark, "freed with another alignment");
}

HAK_INLINE void check_claim(const void *block, struct mark mark, const struct claim *claim)
{
    bool is_plain = claim->bytes == HAK_ANY_BYTES && !claim->is_aligned &&
                    mark.kind == MARK_MALLOC && claim->kind == MARK_MALLOC;
    if (HAK_UNLIKELY(!is_plain) && hak_harden_has(HARDEN_SIZED))
        check_claim_slow(block, mark, claim);
}

/* Marks the live block with mark `word` as freed before its seals or pages are changed, so that a
 * concurrent free of it fails and is reported. */
HAK_INLINE void seize(const struct place *place, uint64_t word, const char *what, const char *state)
{
    size_t bytes = hak_mark_unpack(word).bytes;
    /* acq_rel: the acquire pairs with the release that stored LIVE (hak_hardened_block_open).
     * The release pairs with the acquire in hak_canary_end_is_whole. Of two threads one fails, and
     * reports */
    if (!atomic_compare_exchange_strong_explicit(place->mark, &word, word ^ MARK_LIVE ^ MARK_FREED,
                                                 memory_order_acq_rel, memory_order_relaxed))
        hak_misuse(what, place->block, bytes, state);
    hak_mark_open();
}

/* Of a block that was seized. */
HAK_INLINE void check_seals(const struct place *place, struct mark mark)
{
    if (!hak_harden_has(HARDEN_CANARY))
        return;
    if (HAK_UNLIKELY(!hak_canary_is_whole(place->block, mark.bytes, place->capacity)))
        hak_misuse("overflow", place->block, mark.bytes, "the bytes behind it were overwritten");
    if (place->slab == NULL || (uintptr_t)place->block == place->slab->start)
        return;
    enum canary_fresh fresh =
        place->slab->zero_from == 0 ? CANARY_FRESH_ZERO : CANARY_FRESH_UNKNOWN;
    if (HAK_UNLIKELY(
            !hak_canary_end_is_whole(place->block - place->capacity, place->capacity, fresh)))
        hak_misuse("underflow", place->block, mark.bytes, "the bytes before it were overwritten");
}

/* Whatever else is wrong with a fenced block is found by the pool. */
static void check_fenced(const void *block, const struct claim *claim)
{
    struct mark mark;
    if (hak_fenced_look(block, &mark))
        check_claim(block, mark, claim);
}

static HAK_NOINLINE void give_fenced(void *block, const struct claim *claim,
                                     struct os_caller caller)
{
    check_fenced(block, claim);
    if (hak_sampler_watches())
        hak_sampler_end(block);
    hak_fenced_give(block, caller);
}

bool hak_hardened_give(void *block, const struct claim *claim)
{
    struct place place;
    if (HAK_UNLIKELY(!find(block, "invalid free", &place))) {
        bool is_fenced = hak_fence_holds(block);
        if (is_fenced)
            give_fenced(block, claim, HAK_OS_CALLER());
        return is_fenced;
    }
    if (hak_sampler_watches())
        hak_sampler_end(block);
    uint64_t word;
    struct mark mark = live_mark(&place, "double free", &word);
    check_claim(block, mark, claim);
    seize(&place, word, "double free", "freed by another thread at the same time");
    check_seals(&place, mark);
    hak_hardened_block_shut(&place);
    retain(&place);
    return true;
}

bool hak_hardened_usable_bytes(void *block, size_t *bytes)
{
    const char *what = "invalid malloc_usable_size";
    struct place place;
    uint64_t word;
    if (HAK_UNLIKELY(!find(block, what, &place)))
        return false;
    *bytes = hak_hardened_block_content_bytes(&place, live_mark(&place, what, &word));
    return true;
}

/* Makes a seized block live again, unchanged but perhaps for its guards. */
static void let_go(const struct place *place)
{
    struct mark mark = hak_mark_unpack(hak_load_relaxed(place->mark));
    mark.state = MARK_LIVE;
    /* release: as in hak_hardened_block_open */
    atomic_store_explicit(place->mark, hak_mark_pack(mark), memory_order_release);
}

/* Gives a seized block of a slab another size where it is, and life; false: it must move. */
static bool resize_small(const struct place *place, struct mark mark, size_t bytes,
                         enum hak_try turn)
{
    bool is_waste = bytes < place->capacity / 2 && turn != TRY_LAST;
    if (bytes + hak_hardened_canary_least() > place->capacity || is_waste)
        return false;
    size_t old_bytes = mark.bytes;
    if (hak_harden_has(HARDEN_CANARY)) {
        size_t from = hak_least(bytes, old_bytes);
        size_t to = hak_least(old_bytes + HAK_CANARY_BYTES_MOST, place->capacity);
        if (to > from)
            memset(place->block + from, 0, to - from);
        hak_canary_write(place->block, bytes, place->capacity);
    }
    if (hak_sampler_watches())
        hak_sampler_resize(place->block, bytes);
    mark.bytes = bytes;
    mark.generation++;        /* whoever reads its end meanwhile sees that it changed */
    mark.alignment_shift = 0; /* it is a block of realloc's from now on */
    mark.state = MARK_LIVE;
    /* release: as in hak_hardened_block_open */
    atomic_store_explicit(place->mark, hak_mark_pack(mark), memory_order_release);
    return true;
}

/* Another size for a seized large block that stays one, in place or at another one, the old one
 * being in quarantine then; NULL: nothing has changed, and only a copy can help. */
static void *resize_large(struct place *place, size_t bytes, enum hak_try turn)
{
    if (turn == TRY_LAST)
        return hak_hardened_block_resize(place, bytes, turn) ? place->block : NULL;
    if (bytes <= HAK_CLASS_BYTES_MAX)
        return NULL;
    void *block = place->block;
    if (hak_hardened_block_resize(place, bytes, turn)) {
        hak_background_consider();
    } else {
        block = hak_hardened_block_move(place, bytes);
        if (block == NULL)
            return NULL;
        hak_hardened_block_open(block, &(struct request){.bytes = bytes});
        retain(place);
    }
    hak_limit_settle();
    return block;
}

/* The same with the block's life, of which one ends and another begins. */
static void *resize_watched(struct place *place, size_t bytes, enum hak_try turn,
                            struct os_caller caller)
{
    struct live_sample sample;
    const void *block = place->block;
    bool is_sample = hak_sampler_lift(block, &sample);
    void *resized = resize_large(place, bytes, turn);
    if (is_sample && resized == NULL)
        hak_sampler_put_back(block, &sample);
    else if (is_sample)
        hak_sampler_end_lifted(&sample);
    if (resized != NULL)
        note_drawn(resized, bytes, caller);
    return resized;
}

/* Another size for a live block where it is, or as far as pages can be moved. NULL: only a copy can
 * help, or, where that was tried and this is TRY_LAST, nothing can. */
static void *resize_without_copy(struct place *place, size_t bytes, enum hak_try turn,
                                 struct os_caller caller)
{
    uint64_t word;
    struct mark mark = live_mark(place, "invalid realloc", &word);
    check_claim(place->block, mark, &(struct claim){.bytes = HAK_ANY_BYTES});
    seize(place, word, "invalid realloc", "freed at the same time");
    check_seals(place, mark);
    void *resized = NULL;
    if (place->slab == NULL)
        resized = resize_watched(place, bytes, turn, caller);
    else if (resize_small(place, mark, bytes, turn))
        resized = place->block;
    if (resized == NULL)
        let_go(place);
    return resized;
}

/* A new block with what the old one holds; without memory for it, a block that shrinks does so
 * where it is. NULL: the old one is as it was. */
static void *copy(struct place *place, size_t bytes, struct os_caller caller)
{
    struct mark mark = hak_mark_unpack(hak_load_relaxed(place->mark));
    size_t old_bytes = hak_hardened_block_content_bytes(place, mark);
    enum hak_partition partition =
        place->slab == NULL ? PARTITION_ORDINARY : hak_class_partition(place->slab->class_index);
    bool is_spared = bytes <= old_bytes && hak_policy_read(limit_bytes) != 0;
    void *moved = hak_hardened_take(
        &(struct request){.bytes = bytes, .is_spared = is_spared, .partition = partition});
    if (moved == NULL)
        return bytes <= old_bytes ? resize_without_copy(place, bytes, TRY_LAST, caller) : NULL;
    memcpy(moved, place->block, hak_least(old_bytes, bytes));
    hak_hardened_give(place->block, &(struct claim){.bytes = HAK_ANY_BYTES});
    return moved;
}

bool hak_hardened_resize(void **block, size_t bytes)
{
    struct place place;
    if (HAK_LIKELY(find(*block, "invalid realloc", &place))) {
        void *resized = resize_without_copy(&place, bytes, TRY_FIRST, HAK_OS_CALLER());
        *block = resized != NULL ? resized : copy(&place, bytes, HAK_OS_CALLER());
        return true;
    }
    if (hak_fence_holds(*block))
        check_fenced(*block, &(struct claim){.bytes = HAK_ANY_BYTES});
    return false;
}
