/* SPDX-License-Identifier: MIT */
#include "misuse/sampled_guard.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "misuse/harden.h"
#include "os/os.h"
#include "region/mappings.h"
#include "stats/counters.h"

#include <string.h>

/* Pages without access on both sides of a slot's: it divides one mapping in three. */
#define MAPPINGS_PER_SLOT 2u

struct slot {
    struct guard_record record;
    _Atomic uint64_t freed_at; /* in the order of frees */
};

enum pool_state { POOL_UNSTARTED, POOL_READY, POOL_FROZEN };

static struct slot slots[HAK_SAMPLED_GUARD_SLOTS];
static _Atomic uint32_t pool_state;
static _Atomic uint64_t frees;
static _Atomic size_t live_page_bytes;

static size_t stride(void)
{
    return hak_sampled_guard_slot_bytes() + hak_os_page_bytes();
}

static uintptr_t end_of(const struct slot *slot)
{
    size_t index = (size_t)(slot - slots);
    return (uintptr_t)hak_region.guarded_start + index * stride() + hak_sampled_guard_slot_bytes();
}

/* The slot of an address; a slot includes its guard, and the last one all that follows. */
static struct slot *slot_of(const void *address)
{
    size_t index = ((uintptr_t)address - (uintptr_t)hak_region.guarded_start) / stride();
    return &slots[hak_least(index, HAK_SAMPLED_GUARD_SLOTS - 1)];
}

bool hak_sampled_guard_fits(size_t bytes, size_t alignment)
{
    return bytes <= hak_sampled_guard_slot_bytes() && alignment <= hak_os_page_bytes() &&
           hak_region.guarded_bytes != 0;
}

/* The mappings of all slots are counted once: at the first block, which is therefore at no cost to
 * programs that end before. Of several threads that come first, and handlers of theirs, one
 * counts, and none is refused. */
static bool pool_start(void)
{
    uint32_t state = hak_load_relaxed(&pool_state);
    if (HAK_LIKELY(state == POOL_READY))
        return true;
    if (state == POOL_FROZEN || !hak_mappings_take(HAK_SAMPLED_GUARD_SLOTS * MAPPINGS_PER_SLOT))
        return false;
    /* relaxed: the exchange only elects one thread */
    if (hak_cas_relaxed(&pool_state, &state, POOL_READY))
        return true;
    hak_mappings_give(HAK_SAMPLED_GUARD_SLOTS * MAPPINGS_PER_SLOT);
    return state == POOL_READY;
}

void hak_sampled_guard_freeze(void)
{
    hak_store_relaxed(&pool_state, POOL_FROZEN);
}

/* Counted before it is compared, so that threads cannot pass the bound together. */
static bool bytes_take(size_t bytes)
{
    if (hak_fetch_add_relaxed(&live_page_bytes, bytes) + bytes <= HAK_SAMPLED_GUARD_BYTES_MOST)
        return true;
    hak_fetch_add_relaxed(&live_page_bytes, -bytes);
    return false;
}

static struct slot *oldest_free(void)
{
    struct slot *oldest = NULL;
    uint64_t freed_at = UINT64_MAX;
    for (uint32_t i = 0; i < HAK_SAMPLED_GUARD_SLOTS; i++) {
        uint64_t at = hak_load_relaxed(&slots[i].freed_at);
        if (hak_load_relaxed(&slots[i].record.state) == GUARDED_FREE && at < freed_at) {
            freed_at = at;
            oldest = &slots[i];
        }
    }
    return oldest;
}

/* Another thread may be faster, and has then done something. */
static struct slot *slot_take(void)
{
    for (;;) {
        struct slot *slot = oldest_free();
        uint32_t state = GUARDED_FREE;
        /* acquire: partner is the release that stored FREE */
        if (slot == NULL || hak_cas_acquire(&slot->record.state, &state, GUARDED_BUSY))
            return slot;
    }
}

void *hak_sampled_guard_take(size_t bytes, size_t alignment, const struct guarded_trace *trace)
{
    size_t placed_bytes = hak_align_up(hak_most(bytes, 1), hak_most(alignment, 1));
    size_t pages_bytes = hak_align_up(placed_bytes, hak_os_page_bytes());
    if (!pool_start() || !bytes_take(pages_bytes))
        return NULL;
    struct slot *slot = slot_take();
    if (slot == NULL) {
        hak_fetch_add_relaxed(&live_page_bytes, -pages_bytes);
        return NULL;
    }
    struct guard_record *record = &slot->record;
    uintptr_t end = end_of(slot), start = end - pages_bytes;
    if (!hak_os_commit((void *)start, pages_bytes)) {
        hak_fetch_add_relaxed(&live_page_bytes, -pages_bytes);
        /* release: partner is the acquire in slot_take */
        hak_store_release(&record->state, GUARDED_FREE);
        return NULL;
    }
    if (record->is_dirty)
        memset((void *)start, 0, pages_bytes);
    struct guard_record block = {.block = end - placed_bytes,
                                 .bytes = bytes,
                                 .start = start,
                                 .end = end,
                                 .filler_bytes_most = HAK_GUARD_FILLER_BYTES};
    hak_guard_record_open(record, &block, trace);
    hak_stat_global_add(guarded_blocks, 1);
    /* release: partner is the acquire in hak_guard_record_seize */
    hak_store_release(&record->state, GUARDED_LIVE);
    return (void *)block.block;
}

void hak_sampled_guard_give(struct guard_record *record)
{
    struct slot *slot = slot_of((const void *)record->start);
    uintptr_t start = record->start, end = record->end;
    hak_os_deny((void *)start, end - start);
    /* Pages that a larger block left here may still be dirty. */
    uintptr_t dirty = record->is_dirty ? end - hak_sampled_guard_slot_bytes() : start;
    record->is_dirty = !hak_os_purge((void *)dirty, end - dirty);
    hak_fetch_add_relaxed(&live_page_bytes, -(end - start));
    hak_store_relaxed(&slot->freed_at, hak_fetch_add_relaxed(&frees, 1) + 1);
    /* release: partner is the acquire in slot_take */
    hak_store_release(&record->state, GUARDED_FREE);
}

struct guard_record *hak_sampled_guard_record_of(const void *address)
{
    return &slot_of(address)->record;
}

/* Of the guard between two slots, the nearer half is the first one's, if the second one was ever
 * used. */
const struct guard_record *hak_sampled_guard_nearest(const void *address)
{
    const struct slot *slot = slot_of(address);
    bool is_far = (uintptr_t)address >= end_of(slot) + hak_os_page_bytes() / 2;
    bool has_next =
        slot + 1 < slots + HAK_SAMPLED_GUARD_SLOTS && hak_word_peek(&slot[1].record.block) != 0;
    return is_far && has_next ? &slot[1].record : &slot->record;
}

int64_t hak_sampled_guard_countdown(void)
{
    uint64_t rate = (uint64_t)hak_conf_number(guard_rate);
    if (rate == 0)
        return hak_conf_is_changed(guard_rate) ? 1 : INT64_MAX;
    return 1 + (int64_t)(hak_random() % (2 * rate));
}

void hak_sampled_guard_sum(size_t *bytes, size_t *count)
{
    for (uint32_t i = 0; i < HAK_SAMPLED_GUARD_SLOTS; i++)
        hak_guard_record_sum(&slots[i].record, bytes, count);
}
