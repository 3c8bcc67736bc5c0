/* SPDX-License-Identifier: MIT */
#include "hardened/block.h"

#include "base/bits.h"
#include "base/check.h"
#include "heap/cache.h"
#include "heap/limit.h"
#include "heap/refill.h"
#include "heap/slot.h"
#include "heap/supply.h"
#include "misuse/canary.h"
#include "misuse/report.h"
#include "os/os.h"
#include "region/guard.h"
#include "span/large.h"

#include <string.h>

/* Larger blocks are cleared by giving their pages back. */
#define PURGE_BYTES_LEAST HAK_MIB

/* Before a large block, and behind it. */
static size_t margin_bytes(size_t alignment)
{
    size_t page = hak_os_page_bytes();
    bool has_guards = hak_harden_has(HARDEN_GUARDS) && page < HAK_GRANULE_BYTES;
    return has_guards && alignment <= page ? page : 0;
}

static size_t large_capacity(size_t bytes)
{
    return hak_align_up(hak_most(bytes + hak_hardened_canary_least(), 1), hak_os_page_bytes());
}

static char *span_start(const void *block)
{
    return hak_granule_address(hak_granule_of(block));
}

static size_t alignment_of(struct mark mark)
{
    return mark.alignment_shift == 0 ? 0 : (size_t)1 << (mark.alignment_shift - 1);
}

static bool find_small(struct slab *slab, const char *what, struct place *place)
{
    if (slab == NULL)
        hak_misuse_nothing(what, place->block);
    if (slab->is_private)
        return false;
    hak_slab_index_of(slab, place->block, what);
    place->slab = slab;
    place->capacity = slab->block_bytes;
    if (place->mark == NULL || (hak_load_relaxed(place->mark) & 3) == MARK_NONE)
        hak_misuse(what, place->block, slab->block_bytes, "never allocated");
    return true;
}

static bool find_large(const char *what, struct place *place)
{
    if (hak_large_is_block(place->block) && hak_large_group_of(place->block, what) != NULL)
        return false;
    struct mark mark = {.state = MARK_NONE};
    if (place->mark != NULL && (uintptr_t)place->block % HAK_MARK_BLOCK_BYTES_LEAST == 0)
        mark = hak_mark_unpack(hak_load_relaxed(place->mark));
    if (mark.state == MARK_NONE ||
        span_start(place->block) + margin_bytes(alignment_of(mark)) != place->block)
        hak_misuse(what, place->block, hak_large_usable_bytes(span_start(place->block), what),
                   "not the start of the block");
    place->slab = NULL;
    place->capacity = large_capacity(mark.bytes);
    return true;
}

bool hak_place_find(void *block, const char *what, struct place *place)
{
    uint32_t granule = hak_granule_of(block);
    uint32_t tag = hak_tag_read(granule);
    place->block = block;
    place->mark = hak_mark_at(block);
    if (tag == HAK_TAG_NONE)
        hak_misuse_nothing(what, block);
    if (hak_tag_is_slab(tag))
        return find_small(hak_owner_read(granule), what, place);
    return find_large(what, place);
}

/* The marks of its start are usable, or there is no block. */
static void *take_large(const struct request *request)
{
    size_t page = hak_os_page_bytes();
    size_t margin = margin_bytes(request->alignment);
    if (request->bytes > hak_region.window_bytes)
        return NULL;
    size_t bytes = margin + large_capacity(request->bytes) + (margin != 0 ? page : 0);
    bool is_zero = request->is_zero || hak_harden_has(HARDEN_ZERO);
    struct large_request large = hak_supply_request(bytes, hak_most(request->alignment, page),
                                                    is_zero ? LARGE_ZERO : LARGE_ANY);
    char *start = hak_supply_large(NULL, &large);
    if (start == NULL)
        return NULL;
    if (!hak_mark_cover(hak_granule_of(start), 1)) {
        hak_large_give(start);
        return NULL;
    }
    return start + margin;
}

void *hak_hardened_block_take(struct cache *cache, const struct request *request, enum hak_try turn)
{
    uint32_t class_index = hak_hardened_class_for(request);
    size_t alignment = hak_most(request->alignment, HAK_ORDINARY_ALIGNMENT);
    if (class_index == HAK_CLASS_NONE) {
        hak_stat_add_for(cache, spans_taken, 1);
        return take_large(request);
    }
    void *block = NULL;
    if (HAK_UNLIKELY(hak_region_is_tight()))
        block = hak_take_tight(cache, class_index, alignment);
    /* A cache that a jump may have left in the middle of a change is not asked in passing. */
    if (block == NULL && cache != NULL)
        block = hak_slot_pop(cache->bins, class_index);
    if (block == NULL)
        block = cache != NULL ? hak_refill(cache, class_index) : hak_take_one(class_index, NULL);
    if (HAK_UNLIKELY(block == NULL) && turn == TRY_LAST)
        block = hak_take_last(cache, class_index, alignment, HAK_LAST_PATIENCE_MS);
    return block;
}

/* A block of a slab that was free is verified; one that never was used is cleared. `old` is its
 * mark. */
static void make_clear(const struct place *place, uint64_t old, const struct request *request)
{
    bool is_zero = hak_harden_has(HARDEN_ZERO);
    if (HAK_LIKELY((old & HAK_MARK_STATE) == MARK_CLEARED && is_zero)) {
        if (HAK_UNLIKELY(!hak_canary_is_zero(place->block, place->capacity)))
            hak_misuse("use after free", place->block, hak_mark_unpack(old).bytes,
                       "written to while it was free");
        return;
    }
    bool is_fresh = (old & HAK_MARK_STATE) == MARK_NONE && place->slab->zero_from == 0;
    if ((is_zero || request->is_zero) && !is_fresh)
        memset(place->block, 0, place->capacity);
}

/* Two guards that stand or do not stand together. */
static bool raise_margins(const struct place *place)
{
    size_t page = hak_os_page_bytes();
    if (!hak_guard_raise(place->block - page, page))
        return false;
    if (hak_guard_raise(place->block + place->capacity, page))
        return true;
    hak_guard_undo(place->block - page, page);
    return false;
}

/* Makes a large block and what lies beside it usable again; false: a part is not. */
static bool lower_all(const struct place *place, struct mark mark)
{
    size_t page = hak_os_page_bytes();
    if (mark.kind == MARK_SHUT) /* between its guards: one mapping, which is not divided first */
        return hak_guard_lower(place->block - page, place->capacity + 2 * page, 3);
    return !mark.is_guarded || (hak_guard_lower(place->block - page, page, 1) &&
                                hak_guard_lower(place->block + place->capacity, page, 1));
}

void hak_hardened_block_open(void *block, const struct request *request)
{
    struct slab *slab = hak_slab_at(block);
    struct place place = {block, slab != NULL ? slab->block_bytes : large_capacity(request->bytes),
                          slab, hak_mark_of(block)};
    uint64_t old = hak_load_relaxed(place.mark);
    hak_store_relaxed(place.mark, (old & ~(uint64_t)HAK_MARK_STATE) | MARK_FREED);
    hak_mark_open();
    if (HAK_LIKELY(slab != NULL))
        make_clear(&place, old, request);
    /* Before the guards: what was touched before it was divided can become one mapping again. */
    if (hak_harden_has(HARDEN_CANARY))
        hak_canary_write(block, request->bytes, place.capacity);
    struct mark mark = {
        .bytes = request->bytes,
        .generation = hak_mark_unpack(old).generation + 1,
        .state = MARK_LIVE,
        .kind = (uint8_t)request->kind,
        .is_guarded =
            slab == NULL && margin_bytes(request->alignment) != 0 && raise_margins(&place),
    };
    if (HAK_UNLIKELY(request->alignment != 0))
        mark.alignment_shift = (uint8_t)(hak_bit_highest(request->alignment) + 1);
    /* release: partner is the acquire in hak_canary_end_is_whole, and that of the free */
    atomic_store_explicit(place.mark, hak_mark_pack(mark), memory_order_release);
}

/* The block is clear: its pages lose their access where they can. */
static void shut_clear(const struct place *place, struct mark mark)
{
    mark.state = MARK_CLEARED;
    if (mark.is_guarded && hak_harden_has(HARDEN_QUARANTINE) &&
        hak_guard_raise(place->block, place->capacity))
        mark.kind = MARK_SHUT;
    /* release: partner is the acquire in hak_canary_end_is_whole */
    atomic_store_explicit(place->mark, hak_mark_pack(mark), memory_order_release);
}

static void shut_large(const struct place *place)
{
    struct mark mark = hak_mark_unpack(hak_load_relaxed(place->mark));
    if (hak_harden_has(HARDEN_ZERO)) {
        bool is_purged = (mark.is_guarded || place->capacity >= PURGE_BYTES_LEAST) &&
                         hak_os_purge(place->block, place->capacity);
        if (!is_purged)
            memset(place->block, 0, place->capacity);
    }
    shut_clear(place, mark);
}

void hak_hardened_block_shut(const struct place *place)
{
    if (HAK_UNLIKELY(place->slab == NULL)) {
        shut_large(place);
        return;
    }
    if (hak_harden_has(HARDEN_ZERO))
        memset(place->block, 0, place->capacity);
    uint64_t word = hak_load_relaxed(place->mark);
    /* release: partner is the acquire in hak_canary_end_is_whole */
    atomic_store_explicit(place->mark, word | MARK_CLEARED, memory_order_release);
}

size_t hak_hardened_block_content_bytes(const struct place *place, struct mark mark)
{
    return hak_harden_has(HARDEN_CANARY) ? mark.bytes : place->capacity;
}

bool hak_hardened_block_look(char *block, struct slab *slab, size_t *bytes)
{
    struct place place = {.block = block, .slab = slab, .mark = hak_mark_at(block)};
    if (place.mark == NULL)
        return false;
    /* acquire: partner is the release in hak_hardened_block_open */
    struct mark mark = hak_mark_unpack(hak_load_acquire(place.mark));
    bool is_start = slab != NULL || span_start(block) + margin_bytes(alignment_of(mark)) == block;
    if (mark.state != MARK_LIVE || !is_start)
        return false;
    place.capacity = slab != NULL ? slab->block_bytes : large_capacity(mark.bytes);
    *bytes = hak_hardened_block_content_bytes(&place, mark);
    return true;
}

/* Whole pages read as zero. */
static void clear_pages(char *start, size_t bytes)
{
    if (bytes != 0 && !hak_os_purge(start, bytes))
        memset(start, 0, bytes);
}

/* Clears the bytes behind the content of a large block, to the end of a page: all of them if memory
 * is handed out zeroed, else the canary, which must stay secret. */
static void clear_behind(char *block, size_t content_bytes, size_t end_bytes)
{
    size_t rest_bytes = hak_least(hak_align_up(content_bytes, hak_os_page_bytes()), end_bytes);
    if (hak_harden_has(HARDEN_ZERO))
        clear_pages(block + rest_bytes, end_bytes - rest_bytes);
    else
        rest_bytes = hak_least(content_bytes + HAK_CANARY_BYTES_MOST, end_bytes);
    memset(block + content_bytes, 0, rest_bytes - content_bytes);
}

static bool lower_behind(const struct place *place, struct mark mark)
{
    return !mark.is_guarded ||
           hak_guard_lower(place->block + place->capacity, hak_os_page_bytes(), 1);
}

/* True when the block has both guards again; else it has none. */
static bool raise_behind(const struct place *place, struct mark mark)
{
    size_t page = hak_os_page_bytes();
    if (!mark.is_guarded)
        return false;
    if (hak_guard_raise(place->block + place->capacity, page))
        return true;
    hak_guard_undo(place->block - page, page);
    return false;
}

/* The span bytes of a large block of this size, with its margins. */
static size_t span_bytes_for(size_t bytes)
{
    return margin_bytes(0) + large_capacity(bytes) + margin_bytes(0);
}

/* It lies in its span as those do that have no alignment beyond a page's. */
static bool is_ordinary(const struct place *place)
{
    return place->block == span_start(place->block) + margin_bytes(0);
}

/* Makes the block's span as long as one of this size needs; false: it cannot grow, or would lose
 * granules. */
static bool resize_span(const struct place *place, size_t bytes)
{
    size_t wished_bytes = hak_align_up(span_bytes_for(bytes), HAK_GRANULE_BYTES);
    char *start = span_start(place->block);
    size_t span_bytes = hak_large_usable_bytes(start, "invalid realloc");
    if (!is_ordinary(place) || wished_bytes < span_bytes)
        return false;
    if (wished_bytes == span_bytes)
        return true;
    if (!hak_limit_begin_growth(wished_bytes - span_bytes))
        return false;
    bool is_resized = hak_large_resize(start, wished_bytes);
    hak_limit_end_growth(wished_bytes - span_bytes);
    return is_resized;
}

/* It is a block of realloc's from now on, and nobody states its alignment; but it is what tells
 * where one lies that is not ordinary. */
static void set_realloc(const struct place *place, struct mark *mark)
{
    if (is_ordinary(place))
        mark->alignment_shift = 0;
    else
        mark->kind = MARK_KEPT;
}

bool hak_hardened_block_resize(struct place *place, size_t bytes, enum hak_try turn)
{
    struct mark mark = hak_mark_unpack(hak_load_relaxed(place->mark));
    size_t capacity = large_capacity(bytes);
    if (turn != TRY_LAST && !resize_span(place, bytes))
        return false;
    size_t old_bytes = hak_hardened_block_content_bytes(place, mark);
    size_t kept_bytes = hak_least(old_bytes, bytes);
    if (capacity == place->capacity) { /* as when a program appends: only the canary moves */
        size_t end_bytes = hak_least(old_bytes + HAK_CANARY_BYTES_MOST, capacity);
        memset(place->block + kept_bytes, 0, end_bytes - kept_bytes);
    } else if (!lower_behind(place, mark)) {
        return false;
    } else {
        clear_behind(place->block, kept_bytes, hak_most(place->capacity, capacity));
        place->capacity = capacity;
        mark.is_guarded = raise_behind(place, mark);
    }
    if (hak_harden_has(HARDEN_CANARY))
        hak_canary_write(place->block, bytes, capacity);
    mark.bytes = bytes;
    mark.generation++;
    set_realloc(place, &mark);
    mark.state = MARK_LIVE;
    /* release: as in hak_hardened_block_open */
    atomic_store_explicit(place->mark, hak_mark_pack(mark), memory_order_release);
    return true;
}

/* Moves the block's contents to the span at `start` and shuts it. False: that span is lost. */
static bool carry(const struct place *place, struct mark mark, char *start, size_t bytes)
{
    char *old_start = span_start(place->block);
    size_t margin = (size_t)(place->block - old_start);
    char *block = start + margin;
    size_t kept_bytes = hak_least(hak_hardened_block_content_bytes(place, mark), bytes);
    size_t moved_bytes = hak_least(hak_large_usable_bytes(old_start, "invalid realloc"),
                                   hak_large_usable_bytes(start, "invalid realloc")) -
                         margin;
    enum span_move result = SPAN_STAYED;
    if (lower_behind(place, mark)) {
        result = hak_large_carry(old_start, start, margin);
        mark.is_guarded = raise_behind(place, mark);
        hak_store_relaxed(place->mark, hak_mark_pack(mark));
    }
    if (result == SPAN_DAMAGED)
        return false;
    if (result == SPAN_STAYED)
        memcpy(block, place->block, kept_bytes);
    clear_behind(block, kept_bytes, moved_bytes);
    if (result == SPAN_STAYED) {
        hak_hardened_block_shut(place);
        return true;
    }
    if (moved_bytes < place->capacity && hak_harden_has(HARDEN_ZERO))
        clear_pages(place->block + moved_bytes, place->capacity - moved_bytes);
    shut_clear(place, mark);
    return true;
}

void *hak_hardened_block_move(const struct place *place, size_t bytes)
{
    struct mark mark = hak_mark_unpack(hak_load_relaxed(place->mark));
    /* At a limit a copy is made, whose memory can be given back: the new place stands beside the
     * old one, which stays in quarantine. */
    if (!is_ordinary(place) || hak_policy_read(limit_bytes) != 0)
        return NULL;
    char *start = hak_large_take_target(span_start(place->block), span_bytes_for(bytes));
    if (start == NULL)
        return NULL;
    if (!hak_mark_cover(hak_granule_of(start), 1)) {
        hak_large_give(start);
        return NULL;
    }
    return carry(place, mark, start, bytes) ? start + margin_bytes(0) : NULL;
}

void hak_hardened_block_give_large(const struct place *place)
{
    struct mark mark = hak_mark_unpack(hak_load_relaxed(place->mark));
    if (hak_harden_has(HARDEN_ZERO) && mark.kind != MARK_SHUT &&
        HAK_UNLIKELY(!hak_canary_is_zero(place->block, place->capacity)))
        hak_misuse("use after free", place->block, mark.bytes, "written to while it was free");
    bool is_usable = lower_all(place, mark);
    /* The next block here may be a private heap's. */
    hak_store_relaxed(place->mark, hak_mark_pack((struct mark){.generation = mark.generation}));
    if (HAK_LIKELY(is_usable))
        hak_large_give(span_start(place->block));
    else
        hak_large_lose(span_start(place->block));
}
