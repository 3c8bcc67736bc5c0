/* SPDX-License-Identifier: MIT */
#include "heap/heaps.h"

#include "base/bits.h"
#include "heap/wait.h"
#include "os/os.h"
#include "os/processor.h"
#include "policy/policy_table.h"
#include "region/meta.h"
#include "stats/event_log.h"

/* So many processors are told apart. */
#define PROCESSORS_MOST 256u
/* A thread that waits for a heap looks for another one after so long. */
#define WAIT_MS 20u
/* A visit waits so long for one heap, and no more for the others if it was in vain. */
#define VISIT_PATIENCE_MS 10u

HAK_TLS struct held_heaps hak_held_heaps;

static struct {
    _Atomic uint32_t count;
    _Atomic uint32_t near_count;
    _Atomic uint32_t
        near_mask; /* which bits of a processor's number count: fewer for few threads */
    _Atomic(struct heap *) near[PROCESSORS_MOST]; /* of a processor; NULL: it has none yet */
    _Atomic(struct heap *) list[HAK_HEAPS_MOST];
} heaps;
static struct hak_lock heaps_lock = HAK_LOCK_START_WITH(HAK_LOCK_HEAPS); /* to make one more */

uint32_t hak_heap_count(void)
{
    /* acquire: partner is the release in make_locked */
    return hak_load_acquire(&heaps.count);
}

struct heap *hak_heap_at(uint32_t index)
{
    return hak_load_relaxed(&heaps.list[index]);
}

bool hak_heaps_give_up_spares(void)
{
    uint32_t count = hak_heap_count(), retired = 0;
    if (hak_load_relaxed(&hak_spare_granules) == 0)
        return false;
    for (uint32_t i = 0; i < count && retired == 0; i++) {
        struct heap *heap = hak_heap_at(i);
        if (hak_word_peek(&heap->spare_granules) == 0 || !hak_heap_try_enter(heap))
            continue;
        retired = hak_heap_retire_spares(heap, HAK_SPARES_AT_ONCE);
        hak_heap_leave(heap);
    }
    return retired != 0;
}

void hak_heaps_note_threads(uint32_t threads)
{
    uint32_t bits = threads <= 1 ? 0 : hak_bit_highest(threads - 1) + 1;
    hak_store_relaxed(&heaps.near_mask, (uint32_t)hak_least(1u << bits, PROCESSORS_MOST) - 1);
}

static uint32_t processor(void)
{
    uint32_t id = hak_here_id();
    return hak_id_is_processor(id) ? id : hak_os_processor();
}

static _Atomic(struct heap *) *near_place(void)
{
    uint32_t mask = hak_load_relaxed(&heaps.near_mask);
    return &heaps.near[HAK_LIKELY(mask == 0) ? 0 : processor() & mask];
}

struct heap *hak_heap_near(void)
{
    /* acquire: partner is the release in make_for */
    struct heap *heap = hak_load_acquire(near_place());
    return heap != NULL || hak_heap_count() == 0 ? heap : hak_heap_at(0);
}

static bool is_open(const struct heap *heap)
{
    return heap != NULL && hak_load_relaxed(&heap->state) == HEAP_OPEN;
}

struct heap *hak_heap_own(void)
{
    /* acquire: partner is the release in make_for */
    struct heap *heap = hak_load_acquire(near_place());
    return is_open(heap) ? heap : NULL;
}

/* The new heap is entered before others see it. In a handler of our own fork it is claimed, as all
 * others are. */
static struct heap *make_locked(void)
{
    uint32_t count = hak_load_relaxed(&heaps.count);
    if (count == HAK_HEAPS_MOST ||
        (hak_held_heaps.note & HAK_HELD_HEAPS_COUNT) == HAK_HELD_HEAPS_MOST)
        return NULL;
    if (count != 0)
        hak_meta_keep_reserve(); /* nobody waits in a heap while the kernel maps records */
    struct heap *heap = hak_meta_take(sizeof *heap);
    if (heap == NULL)
        return NULL;
    hak_heap_start(heap);
    heap->owner.heap_id = count + 1;
    hak_store_relaxed(&heaps.list[count], heap);
    heap->is_claimed = hak_lock_has_all() && hak_lock_try_among(&heap->lock);
    hak_heap_try_enter(heap);
    /* release: partner is the acquire in hak_heap_count */
    hak_store_release(&heaps.count, count + 1);
    hak_stat_global_add(heaps_created, 1);
    hak_event_log(make_heap, heap->owner.heap_id);
    return heap;
}

/* One to wait for; NULL: there is none. */
static struct heap *find_open(void)
{
    uint32_t count = hak_heap_count();
    for (uint32_t i = 0; i < count; i++)
        if (is_open(hak_heap_at(i)))
            return hak_heap_at(i);
    return NULL;
}

/* Waits for another thread that makes a heap only if there is none to wait for instead, and the
 * caller may wait: many threads would get this lock one after the other, to find a heap made. */
static bool lock_table(bool is_nested)
{
    if (hak_lock_try(&heaps_lock))
        return true;
    if (is_nested || find_open() != NULL)
        return false;
    struct cache *cache = hak_wait_begin();
    hak_lock_take(&heaps_lock);
    hak_wait_end(cache);
    return true;
}

/* One more heap, entered, if there are still no more than the `seen` ones. NULL: there are, or no
 * memory; or another thread is about to make one. */
static struct heap *make(uint32_t seen, bool is_nested)
{
    struct heap *heap = NULL;
    if (hak_lock_is_inside() || !lock_table(is_nested))
        return NULL;
    if (hak_load_relaxed(&heaps.count) == seen)
        heap = make_locked();
    hak_lock_give(&heaps_lock);
    return heap;
}

/* The processor's own heap is made, entered; NULL: not now. */
static struct heap *make_for(_Atomic(struct heap *) *place, uint32_t seen, bool is_nested)
{
    struct heap *heap = make(seen, is_nested);
    if (heap == NULL)
        return NULL;
    hak_fetch_add_relaxed(&heaps.near_count, 1);
    /* release: partner is the acquire in hak_heap_near and hak_heap_enter */
    hak_store_release(place, heap);
    return heap;
}

struct heap *hak_heap_try_near(void)
{
    if (hak_lock_is_inside())
        return NULL;
    _Atomic(struct heap *) *place = near_place();
    struct heap *heap = hak_load_acquire(place);
    if (HAK_LIKELY(heap != NULL))
        return hak_heap_try_enter(heap) ? heap : NULL;
    return hak_heap_is_held() ? NULL : make_for(place, hak_heap_count(), false);
}

/* From behind `first` on, once round. */
static struct heap *try_all(const struct heap *first)
{
    uint32_t count = hak_heap_count();
    uint32_t at = first == NULL ? 0 : first->owner.heap_id;
    for (uint32_t i = 0; i < count; i++) {
        struct heap *heap = hak_heap_at((at + i) % count);
        if (hak_heap_try_enter(heap))
            return heap;
    }
    return NULL;
}

/* Without having waited, no more than processors were seen. */
static bool may_be_more(void)
{
    return hak_load_relaxed(&heaps.count) < hak_load_relaxed(&heaps.near_count);
}

static bool await(struct heap *heap)
{
    struct cache *cache = hak_wait_begin();
    hak_fetch_add_relaxed(&heap->wait_count, 1);
    bool is_entered = hak_heap_enter_within(heap, WAIT_MS);
    hak_wait_end(cache);
    return is_entered;
}

/* One try: the processor's own heap, any, or one more; NULL: all are busy, and there are enough. */
static struct heap *enter_or_make(_Atomic(struct heap *) *place, bool is_nested, bool is_urgent)
{
    uint32_t seen = hak_heap_count();
    struct heap *near = hak_load_acquire(place);
    struct heap *heap = is_open(near) ? NULL : make_for(place, seen, is_nested);
    if (heap == NULL)
        heap = try_all(near);
    if (heap == NULL && (is_urgent || may_be_more()))
        heap = make(seen, is_nested);
    return heap;
}

/* A handler that interrupted a thread inside a heap or a section does not wait. */
static HAK_NOINLINE struct heap *enter_slow(_Atomic(struct heap *) *place)
{
    bool is_nested = hak_heap_is_held() || hak_lock_is_inside();
    bool has_waited = false;
    for (;;) {
        struct heap *heap = enter_or_make(place, is_nested, is_nested || has_waited);
        if (heap != NULL && has_waited)
            hak_store_release(place, heap); /* nobody need wait for that other one again */
        if (heap != NULL || is_nested)
            return heap;
        struct heap *near = hak_load_acquire(place);
        heap = is_open(near) ? near : find_open();
        if (heap == NULL || await(heap))
            return heap;
        has_waited = true;
    }
}

struct heap *hak_heap_enter(void)
{
    _Atomic(struct heap *) *place = near_place();
    struct heap *heap = hak_load_acquire(place);
    return HAK_LIKELY(heap != NULL && hak_heap_try_enter(heap)) ? heap : enter_slow(place);
}

/* In a handler of our own fork: a heap that its thread has left too late to be claimed before. */
static bool claim_late(struct heap *heap, uint32_t patience_ms)
{
    heap->is_claimed = hak_lock_take_within(&heap->lock, patience_ms);
    return hak_heap_try_enter(heap);
}

bool hak_heap_enter_within(struct heap *heap, uint32_t patience_ms)
{
    if (hak_heap_try_enter(heap))
        return true;
    if (hak_heap_is_held() || hak_load_relaxed(&heap->state) != HEAP_OPEN)
        return false;
    if (HAK_UNLIKELY(hak_lock_has_all()))
        return claim_late(heap, patience_ms);
    hak_heap_note(heap->owner.heap_id);
    if (hak_lock_take_within(&heap->lock, patience_ms)) {
        if (hak_load_relaxed(&heap->state) == HEAP_OPEN) {
            heap->before = 0;
            hak_counter_add(&heap->enter_count, 1);
            return true;
        }
        hak_lock_give_among(&heap->lock);
    }
    hak_heap_forget(0);
    return false;
}

void hak_heaps_visit(heap_visitor *visit, void *context)
{
    uint32_t patience_ms = VISIT_PATIENCE_MS;
    uint32_t count = hak_heap_count();
    for (uint32_t i = 0; i < count; i++) {
        struct heap *heap = hak_heap_at(i);
        if (hak_heap_enter_within(heap, patience_ms)) {
            visit(heap, HEAP_ENTERED, context);
            hak_heap_leave(heap);
        } else {
            visit(heap, HEAP_CLOSED, context);
            patience_ms = 0;
        }
    }
}

static void lose(struct heap *heap)
{
    hak_store_relaxed(&heap->state, HEAP_LOST);
    hak_stat_global_add(heaps_lost, 1);
    hak_event_log(lose_heap, heap->owner.heap_id);
}

static bool lose_left(bool is_over)
{
    bool is_any_lost = false;
    uintptr_t note;
    while ((note = hak_held_heaps.note) != 0 &&
           (is_over || hak_frame_is_left(note & ~HAK_HELD_HEAPS_COUNT))) {
        uintptr_t at = (note & HAK_HELD_HEAPS_COUNT) - 1;
        struct heap *heap = hak_heap_at(hak_held_heaps.ids[at] - 1u);
        if (hak_lock_is_own(&heap->lock)) {
            lose(heap);
            is_any_lost = true;
            hak_lock_give_among(&heap->lock); /* a waiter finds it lost */
        }
        hak_heap_forget(hak_held_heaps.before[at]);
    }
    return is_any_lost;
}

/* A handler that mends meanwhile would forget twice. */
bool hak_heaps_mend(bool is_over)
{
    if (!hak_heap_is_held())
        return false;
    uint64_t signals = hak_os_block_signals();
    bool is_any_lost = lose_left(is_over);
    hak_os_restore_signals(signals);
    return is_any_lost;
}

void hak_heaps_mend_table(void)
{
    if (hak_lock_is_left(&heaps_lock))
        hak_lock_give(&heaps_lock);
}

void hak_heaps_stop(uint32_t patience_ms)
{
    hak_lock_take(&heaps_lock);
    uint64_t deadline_ms = hak_os_clock_ms() + patience_ms;
    uint32_t count = hak_heap_count();
    for (uint32_t i = 0; i < count; i++) {
        struct heap *heap = hak_heap_at(i);
        uint64_t left_ms = hak_excess(deadline_ms, hak_os_clock_ms());
        heap->is_claimed =
            !hak_lock_is_own(&heap->lock) && hak_lock_take_within(&heap->lock, (uint32_t)left_ms);
    }
}

void hak_heaps_go_on(void)
{
    uint32_t count = hak_heap_count();
    for (uint32_t i = 0; i < count; i++) {
        struct heap *heap = hak_heap_at(i);
        bool was_claimed = heap->is_claimed;
        heap->is_claimed = false; /* first: who enters next has not claimed it */
        hak_compiler_fence();
        if (was_claimed)
            hak_lock_give_among(&heap->lock);
    }
    hak_lock_give(&heaps_lock);
}

/* Loses heaps that threads are inside which this copy of the process has not, and opens all
 * locks. */
static bool open_all(bool (*is_mine)(const struct heap *heap))
{
    bool is_any_lost = false;
    uint32_t count = hak_heap_count();
    for (uint32_t i = 0; i < count; i++) {
        struct heap *heap = hak_heap_at(i);
        if (hak_load_relaxed(&heap->lock.state) != 0 && !is_mine(heap)) {
            if (!heap->is_claimed && hak_load_relaxed(&heap->state) == HEAP_OPEN) {
                lose(heap);
                is_any_lost = true;
            }
            hak_store_relaxed(&heap->lock.state, 0);
        }
        heap->is_claimed = false;
    }
    return is_any_lost;
}

/* This thread was interrupted inside the heap. Another thread's word may be the same, of a stack
 * that is used again. */
static bool is_held(const struct heap *heap)
{
    return hak_heap_is_noted(heap->owner.heap_id) && hak_lock_is_own(&heap->lock);
}

static bool is_nobodys(const struct heap *heap)
{
    (void)heap;
    return false;
}

bool hak_heaps_restart_in_child(void)
{
    bool is_any_lost = open_all(is_held);
    hak_lock_reset(&heaps_lock);
    return is_any_lost;
}

/* What another thread's fork has claimed it may be changing, in a handler of fork. */
static void forget_claims_of_others(void)
{
    uint32_t count = hak_heap_count();
    for (uint32_t i = 0; i < count; i++) {
        struct heap *heap = hak_heap_at(i);
        heap->is_claimed = heap->is_claimed && hak_lock_is_own(&heap->lock);
    }
}

bool hak_heaps_settle(bool is_copier)
{
    forget_claims_of_others();
    return open_all(is_copier ? is_held : is_nobodys);
}
