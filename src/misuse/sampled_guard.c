/* SPDX-License-Identifier: MIT */
#include "misuse/sampled_guard.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "misuse/harden.h"
#include "misuse/report.h"
#include "os/module.h"
#include "os/os.h"
#include "region/mappings.h"
#include "stats/counters.h"

#include <string.h>

/* So much before and behind a block is filled, and verified when it is freed. */
#define FILLER_BYTES_MOST 128u
/* Pages without access on both sides of a slot's: it divides one mapping in three. */
#define MAPPINGS_PER_SLOT 2u

struct slot {
    _Atomic uint32_t state; /* enum sampled_guard_state */
    bool is_dirty;          /* the kernel did not take the memory back */
    unsigned char filler;
    _Atomic uint64_t freed_at; /* in the order of frees */
    uintptr_t block;
    size_t bytes;
    struct sampled_guard_trace taken;
    struct sampled_guard_trace given;
};

enum pool_state { POOL_UNSTARTED, POOL_STARTING, POOL_READY, POOL_FROZEN };

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

/* The page that the block begins on. */
static uintptr_t start_of(uintptr_t block)
{
    return hak_align_down(block, hak_os_page_bytes());
}

/* The slot of an address; its guard belongs to it. */
static struct slot *slot_of(const void *address)
{
    return &slots[((uintptr_t)address - (uintptr_t)hak_region.guarded_start) / stride()];
}

static void copy_trace(struct sampled_guard_trace *to, const struct sampled_guard_trace *from)
{
    for (uint32_t i = 0; i < HAK_SAMPLED_GUARD_FRAMES; i++)
        hak_word_publish(&to->addresses[i], hak_word_peek(&from->addresses[i]));
    hak_word_publish(&to->thread.id, hak_word_peek(&from->thread.id));
    for (size_t i = 0; i < sizeof to->thread.name / sizeof *to->thread.name; i++)
        hak_word_publish(&to->thread.name[i], hak_word_peek(&from->thread.name[i]));
}

void hak_sampled_guard_tell(struct text *text, const char *words,
                            const struct sampled_guard_trace *trace)
{
    uintptr_t calls[HAK_SAMPLED_GUARD_FRAMES] = {0};
    if (trace->addresses[0] == 0)
        return;
    /* The call, not what follows it: that may be another line. */
    for (uint32_t i = 0; i < HAK_SAMPLED_GUARD_FRAMES && trace->addresses[i] != 0; i++)
        calls[i] = trace->addresses[i] - 1;
    hak_text_add(text, words);
    hak_os_thread_label_add(text, &trace->thread);
    hak_text_add(text, " at ");
    hak_os_module_add(text, calls, HAK_SAMPLED_GUARD_FRAMES);
}

static _Noreturn void report(const char *what, const void *block, const struct slot *slot,
                             const char *state)
{
    char words[HAK_MISUSE_STATE_BYTES];
    struct text text = {.start = words, .bytes = sizeof words - 1};
    struct sampled_guard_trace taken, given;
    copy_trace(&taken, &slot->taken);
    copy_trace(&given, &slot->given);
    hak_text_add(&text, state);
    hak_sampled_guard_tell(&text, ", allocated", &taken);
    hak_sampled_guard_tell(&text, ", freed", &given);
    words[text.used] = '\0';
    hak_stat_global_add(guarded_caught, 1);
    hak_misuse(what, block, hak_word_peek(&slot->bytes), words);
}

bool hak_sampled_guard_fits(size_t bytes, size_t alignment)
{
    return bytes <= hak_sampled_guard_slot_bytes() && alignment <= hak_os_page_bytes() &&
           hak_region.guarded_bytes != 0;
}

/* The mappings of all slots are counted once: at the first block, which is therefore at no cost to
 * programs that end before. */
static bool pool_start(void)
{
    uint32_t state = hak_load_relaxed(&pool_state);
    if (HAK_LIKELY(state == POOL_READY))
        return true;
    if (state != POOL_UNSTARTED ||
        !atomic_compare_exchange_strong_explicit(&pool_state, &state, POOL_STARTING,
                                                 memory_order_relaxed, memory_order_relaxed))
        return false;
    bool has_room = hak_mappings_take(HAK_SAMPLED_GUARD_SLOTS * MAPPINGS_PER_SLOT);
    hak_store_relaxed(&pool_state, has_room ? POOL_READY : POOL_UNSTARTED);
    return has_room;
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
        if (hak_load_relaxed(&slots[i].state) == SAMPLED_GUARD_FREE && at < freed_at) {
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
        uint32_t state = SAMPLED_GUARD_FREE;
        /* acquire: partner is the release that stored FREE */
        if (slot == NULL || hak_cas_acquire(&slot->state, &state, SAMPLED_GUARD_BUSY))
            return slot;
    }
}

/* The end of the filler before a block is the block; it begins with the page, or so much before. */
static unsigned char *filler_start(const struct slot *slot)
{
    uintptr_t start = start_of(slot->block);
    return (unsigned char *)(slot->block - hak_least(slot->block - start, FILLER_BYTES_MOST));
}

static size_t filler_behind(const struct slot *slot)
{
    return hak_least(end_of(slot) - slot->block - slot->bytes, FILLER_BYTES_MOST);
}

/* A zero, which is what most who write one too far write, is none of its values. */
static void fill(struct slot *slot)
{
    uintptr_t start = start_of(slot->block);
    unsigned char *before = filler_start(slot);
    if (slot->is_dirty)
        memset((void *)start, 0, end_of(slot) - start);
    slot->filler = (unsigned char)(hak_random() | 0x80);
    memset(before, slot->filler, slot->block - (uintptr_t)before);
    memset((void *)(slot->block + slot->bytes), slot->filler, filler_behind(slot));
}

static bool is_filled(const unsigned char *start, size_t bytes, unsigned char filler)
{
    for (size_t i = 0; i < bytes; i++)
        if (start[i] != filler)
            return false;
    return true;
}

void *hak_sampled_guard_take(size_t bytes, size_t alignment,
                             const struct sampled_guard_trace *trace)
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
    uintptr_t end = end_of(slot);
    if (!hak_os_commit((void *)(end - pages_bytes), pages_bytes)) {
        hak_fetch_add_relaxed(&live_page_bytes, -pages_bytes);
        /* release: partner is the acquire in slot_take */
        hak_store_release(&slot->state, SAMPLED_GUARD_FREE);
        return NULL;
    }
    hak_word_publish(&slot->block, end - placed_bytes);
    hak_word_publish(&slot->bytes, bytes);
    copy_trace(&slot->taken, trace);
    hak_word_publish(&slot->given.addresses[0], 0);
    fill(slot);
    hak_stat_global_add(guarded_blocks, 1);
    /* release: partner is the acquire in hak_sampled_guard_give */
    hak_store_release(&slot->state, SAMPLED_GUARD_LIVE);
    return (void *)(end - placed_bytes);
}

/* The slot of what must be a live block's start. */
static struct slot *find(const void *block, const char *what)
{
    struct slot *slot = slot_of(block);
    uint32_t state =
        hak_load_acquire(&slot->state); /* partner: the release in hak_sampled_guard_take */
    if (HAK_UNLIKELY(hak_word_peek(&slot->block) != (uintptr_t)block))
        report(what, block, slot, "not the start of a guarded block");
    if (HAK_UNLIKELY(state != SAMPLED_GUARD_LIVE))
        report(what, block, slot, "a guarded block, already free");
    return slot;
}

static void check_fillers(const struct slot *slot)
{
    const unsigned char *before = filler_start(slot), *block = (const unsigned char *)slot->block;
    if (HAK_UNLIKELY(!is_filled(block + slot->bytes, filler_behind(slot), slot->filler)))
        report("overflow", block, slot, "the bytes behind this guarded block were overwritten");
    if (HAK_UNLIKELY(!is_filled(before, slot->block - (uintptr_t)before, slot->filler)))
        report("underflow", block, slot, "the bytes before this guarded block were overwritten");
}

void hak_sampled_guard_give(void *block, const struct sampled_guard_trace *trace)
{
    struct slot *slot = slot_of(block);
    bool is_start = hak_word_peek(&slot->block) == (uintptr_t)block;
    find(block, is_start ? "double free" : "invalid free");
    uint32_t state = SAMPLED_GUARD_LIVE;
    /* acquire: partner is the release in hak_sampled_guard_take */
    if (HAK_UNLIKELY(!hak_cas_acquire(&slot->state, &state, SAMPLED_GUARD_BUSY)))
        report("double free", block, slot, "a guarded block, freed at the same time");
    check_fillers(slot);
    copy_trace(&slot->given, trace);
    uintptr_t start = start_of(slot->block);
    size_t pages_bytes = end_of(slot) - start;
    hak_os_deny((void *)start, pages_bytes);
    /* Pages that a larger block left here may still be dirty. */
    uintptr_t dirty = slot->is_dirty ? end_of(slot) - hak_sampled_guard_slot_bytes() : start;
    slot->is_dirty = !hak_os_purge((void *)dirty, end_of(slot) - dirty);
    hak_fetch_add_relaxed(&live_page_bytes, -pages_bytes);
    hak_store_relaxed(&slot->freed_at, hak_fetch_add_relaxed(&frees, 1) + 1);
    /* release: partner is the acquire in slot_take */
    hak_store_release(&slot->state, SAMPLED_GUARD_FREE);
}

size_t hak_sampled_guard_usable_bytes(const void *block, const char *what)
{
    return find(block, what)->bytes;
}

bool hak_sampled_guard_is_live(const void *block)
{
    if (!hak_sampled_guard_holds(block))
        return false;
    struct slot *slot = slot_of(block);
    return hak_load_acquire(&slot->state) == SAMPLED_GUARD_LIVE &&
           hak_word_peek(&slot->block) == (uintptr_t)block;
}

/* Of the guard between two slots, the nearer half is the first one's, if the second one was ever
 * used. */
static const struct slot *nearest(const void *address)
{
    const struct slot *slot = slot_of(address);
    bool is_far = (uintptr_t)address >= end_of(slot) + hak_os_page_bytes() / 2;
    bool has_next =
        slot + 1 < slots + HAK_SAMPLED_GUARD_SLOTS && hak_word_peek(&slot[1].block) != 0;
    return is_far && has_next ? slot + 1 : slot;
}

void hak_sampled_guard_look(const void *address, struct sampled_guard_view *view)
{
    const struct slot *slot = nearest(address);
    view->block = hak_word_peek(&slot->block);
    view->bytes = hak_word_peek(&slot->bytes);
    view->state = (enum sampled_guard_state)hak_load_acquire(&slot->state);
    copy_trace(&view->taken, &slot->taken);
    copy_trace(&view->given, &slot->given);
}

int64_t hak_sampled_guard_countdown(void)
{
    uint64_t rate = (uint64_t)hak_conf_number(guard_rate);
    return rate == 0 ? INT64_MAX : 1 + (int64_t)(hak_random() % (2 * rate));
}

size_t hak_sampled_guard_page_bytes(void)
{
    return hak_load_relaxed(&live_page_bytes);
}

struct sampled_guard_sums hak_sampled_guard_sum(void)
{
    struct sampled_guard_sums sums = {0, 0};
    for (uint32_t i = 0; i < HAK_SAMPLED_GUARD_SLOTS; i++) {
        /* acquire: partner is the release in hak_sampled_guard_take */
        if (hak_load_acquire(&slots[i].state) != SAMPLED_GUARD_LIVE)
            continue;
        sums.bytes += hak_word_peek(&slots[i].bytes);
        sums.count++;
    }
    return sums;
}
