/* SPDX-License-Identifier: MIT */
#include "cache/registry.h"

#include "cache/stranger.h"
#include "cache/tokens.h"
#include "observe/decision.h"
#include "os/lock.h"
#include "os/os.h"
#include "policy/policy_table.h"
#include "region/meta.h"

/* Stage 2 looks into this many parked heaps before it gives up. */
#define PARKED_LOOKED_INTO 8

/* A visit to all heaps waits so long for other strangers and for the registry, and so long for the
 * first owner that does not leave its gate. */
#define LOCK_PATIENCE_MS 100
#define VISIT_PATIENCE_MS 10

static struct hak_lock registry_lock = HAK_LOCK_START_WITH(HAK_LOCK_REGISTRY);
static _Atomic(struct heap *) heaps;
static struct heap *parked;
static _Atomic uint32_t parked_count;
/* What the bins of parked heaps may hold. */
static _Atomic size_t parked_bytes;
static uint32_t heap_count;
/* A parked heap that the lock's holder is changing. */
static struct heap *worked_on;
/* Forks between the first process and this one. */
static uint32_t generation;
/* In a child: from here on the list of all heaps may hold heaps of threads that live in the parent
 * only. They become parked bit by bit: a child that soon becomes another program never pays. */
static _Atomic(struct heap *) orphans;
#define ORPHANS_PER_DRAIN 64
/* A drain looks after so many heaps before it lets others have the lock. */
#define DRAINED_AT_ONCE 4
/* What this thread took last: until its thread pointer is set nothing else says that the heap has a
 * thread. */
static HAK_TLS struct heap *last_activated;
/* The last time when all gates were to be closed they were. */
static bool are_gates_closed = true;

static void add_locked(struct heap *heap)
{
    heap->owner.heap_id = ++heap_count;
    heap->next = hak_load_relaxed(&heaps);
    /* release: partner is the acquire in hak_registry_first */
    hak_store_release(&heaps, heap);
}

static struct heap *create_locked(void)
{
    struct thread_cache *cache = hak_meta_take(sizeof *cache);
    if (cache == NULL)
        return NULL;
    struct heap *heap = &cache->heap;
    hak_cache_start(cache);
    add_locked(heap);
    hak_stat_global_add(heaps_created, 1);
    return heap;
}

/* The bins of a parked heap are empty now, or somebody's. */
static void forget_bins(struct heap *heap)
{
    hak_counter_add(&parked_bytes, -heap->parked_bytes);
    heap->parked_bytes = 0;
}

static void activate_locked(struct heap *heap)
{
    last_activated = heap; /* before it looks like an orphan to a copy that a handler makes */
    hak_compiler_fence();
    forget_bins(heap);
    heap->generation = generation;
    heap->outer = NULL;
    hak_cache_of(heap)->tick_ms = hak_os_clock_ms();
    hak_counter_add(&hak_active_caches, 1);
    hak_store_relaxed(&heap->gate.held, GATE_OPEN);
    /* release: partner is the acquire in hak_stranger_enter */
    hak_store_release(&heap->state, HEAP_ACTIVE);
}

void hak_registry_add(struct heap *heap)
{
    hak_lock_take(&registry_lock);
    hak_heap_start(heap);
    add_locked(heap);
    hak_lock_give(&registry_lock);
}

static void park_locked(struct heap *heap)
{
    hak_store_relaxed(&heap->state, HEAP_PARKED);
    heap->parked_next = parked;
    heap->is_drained = false;
    heap->parked_bytes = hak_cache_of(heap)->capacity_bytes;
    hak_store_relaxed(&heap->parked_ms, hak_os_clock_ms());
    parked = heap;
    hak_counter_add(&parked_bytes, heap->parked_bytes);
    hak_counter_add(&parked_count, 1);
}

static void freeze_locked(struct heap *heap)
{
    forget_bins(heap);
    hak_store_relaxed(&heap->state, HEAP_FROZEN);
    hak_stat_global_add(heaps_frozen, 1);
    hak_decide(freeze_heap, heap->owner.heap_id);
}

/* Its thread lives in the parent only. */
static bool is_orphan(const struct heap *heap)
{
    return hak_load_relaxed(&heap->state) == HEAP_ACTIVE && heap->generation != generation;
}

/* No slow path of its absent thread was changing an orphan when the process was copied. */
static bool is_copied_whole(const struct heap *heap)
{
    return are_gates_closed && !hak_gate_is_nested(&heap->gate);
}

/* Looks at up to `limit` further heaps for orphans. */
static void settle_orphans(uint32_t limit)
{
    struct heap *heap = hak_load_relaxed(&orphans);
    for (; heap != NULL && limit > 0; heap = heap->next, limit--) {
        if (!is_orphan(heap))
            continue;
        if (is_copied_whole(heap))
            park_locked(heap);
        else
            freeze_locked(heap);
    }
    hak_store_relaxed(&orphans, heap);
}

/* Without the lock, a hint. */
static bool has_parked(void)
{
    return hak_load_relaxed(&parked_count) != 0 || hak_load_relaxed(&orphans) != NULL;
}

static struct heap *adopt_locked(void)
{
    while (parked == NULL && hak_load_relaxed(&orphans) != NULL)
        settle_orphans(1);
    struct heap *heap = parked;
    if (heap != NULL) {
        parked = heap->parked_next;
        hak_counter_add(&parked_count, -1u);
    } else {
        heap = create_locked();
    }
    if (heap != NULL)
        activate_locked(heap);
    return heap;
}

struct heap *hak_heap_adopt(void)
{
    hak_lock_take(&registry_lock);
    struct heap *heap = adopt_locked();
    hak_lock_give(&registry_lock);
    if (heap != NULL)
        hak_decide(adopt_heap, heap->owner.heap_id);
    return heap;
}

/* Takes `heap` off the list of parked ones; false: it is not there. */
static bool unlist_locked(struct heap *heap)
{
    struct heap **link = &parked;
    while (*link != NULL && *link != heap)
        link = &(*link)->parked_next;
    if (*link == NULL)
        return false;
    *link = heap->parked_next;
    hak_counter_add(&parked_count, -1u);
    return true;
}

bool hak_heap_adopt_parked(struct heap *heap)
{
    if (hak_load_relaxed(&heap->state) != HEAP_PARKED || !hak_lock_try(&registry_lock))
        return false;
    bool is_ours = hak_stranger_is_away(heap) && unlist_locked(heap);
    if (is_ours)
        activate_locked(heap);
    hak_lock_give(&registry_lock);
    return is_ours;
}

bool hak_registry_has_room_for_bins(const struct thread_cache *cache)
{
    return hak_load_relaxed(&parked_bytes) + cache->capacity_bytes <=
           hak_policy_read(parked_cache_bytes);
}

static void drain(struct heap *heap, uint64_t before_ms)
{
    if (heap->is_drained && hak_load_relaxed(&heap->owner.pending) == NULL)
        return;
    if (heap->parked_bytes != 0 && hak_load_relaxed(&heap->parked_ms) > before_ms) {
        hak_heap_collect(heap);
        return;
    }
    if (heap->parked_bytes != 0)
        hak_cache_flush_all(hak_cache_of(heap));
    forget_bins(heap);
    hak_heap_tidy(heap);
    heap->is_drained = true;
}

/* The next parked heap from `heap` on. */
static struct heap *find_parked(struct heap *heap)
{
    while (heap != NULL && hak_load_relaxed(&heap->state) != HEAP_PARKED)
        heap = heap->next;
    return heap;
}

/* Drains a few parked heaps from `heap` on; returns the next one. */
static struct heap *drain_some(struct heap *heap, uint64_t before_ms)
{
    for (int i = 0; i < DRAINED_AT_ONCE && heap != NULL; i++) {
        worked_on = heap;
        if (hak_stranger_is_away(heap))
            drain(heap, before_ms);
        heap = find_parked(heap->next);
    }
    worked_on = NULL;
    return heap;
}

void hak_registry_drain_parked(uint64_t before_ms)
{
    if (!has_parked() || !hak_lock_try(&registry_lock))
        return;
    settle_orphans(ORPHANS_PER_DRAIN);
    struct heap *heap = drain_some(find_parked(hak_registry_first()), before_ms);
    hak_lock_give(&registry_lock);
    while (heap != NULL) { /* threads that end or start need not wait for all */
        hak_lock_take(&registry_lock);
        heap = drain_some(find_parked(heap), before_ms);
        hak_lock_give(&registry_lock);
    }
}

void hak_heap_park(struct heap *heap)
{
    hak_gate_leave(&heap->gate);
    hak_lock_take(&registry_lock);
    hak_counter_add(&hak_active_caches, -1u);
    park_locked(heap);
    last_activated = NULL;
    hak_lock_give(&registry_lock);
    hak_decide(park_heap, heap->owner.heap_id);
}

void hak_heap_freeze(struct heap *heap)
{
    hak_lock_take(&registry_lock);
    hak_counter_add(&hak_active_caches, -1u);
    freeze_locked(heap);
    hak_lock_give(&registry_lock);
}

struct slab *hak_registry_take_abandoned(struct heap *heap, uint32_t class_index)
{
    if (!has_parked() || !hak_lock_try(&registry_lock))
        return NULL;
    settle_orphans(PARKED_LOOKED_INTO);
    struct slab *slab = NULL;
    struct heap *from = parked;
    for (int i = 0; i < PARKED_LOOKED_INTO && from != NULL && slab == NULL; i++) {
        worked_on = from;
        from->is_drained = false;
        if (hak_stranger_is_away(from))
            slab = hak_heap_surrender(from, class_index);
        from = from->parked_next;
    }
    if (slab != NULL && !hak_heap_receive(heap, slab))
        slab = NULL;
    worked_on = NULL;
    hak_lock_give(&registry_lock);
    return slab;
}

void hak_registry_mend(void)
{
    if (!hak_lock_is_left(&registry_lock))
        return;
    if (worked_on != NULL && unlist_locked(worked_on))
        freeze_locked(worked_on);
    worked_on = NULL;
    hak_store_relaxed(&parked_count, 0); /* counted anew: their change may be half done, too */
    hak_store_relaxed(&parked_bytes, 0);
    for (const struct heap *heap = parked; heap != NULL; heap = heap->parked_next) {
        hak_counter_add(&parked_count, 1);
        hak_counter_add(&parked_bytes, heap->parked_bytes);
    }
    hak_lock_give(&registry_lock);
}

struct heap *hak_registry_first(void)
{
    /* acquire: partner is the release in create_locked */
    return hak_load_acquire(&heaps);
}

static bool try_both(void)
{
    if (!hak_stranger_try_lock())
        return false;
    if (hak_lock_try(&registry_lock))
        return true;
    hak_stranger_unlock();
    return false;
}

/* No other stranger and no change of owners while a visit lasts. */
static bool lock_patiently(void)
{
    uint64_t deadline = hak_os_clock_ms() + LOCK_PATIENCE_MS;
    while (!try_both()) {
        if (hak_os_clock_ms() > deadline)
            return false;
        hak_os_yield();
    }
    return true;
}

/* Whether the registry's lock alone keeps others out of the heap. */
static bool is_at_rest(const struct heap *heap)
{
    uint32_t state = hak_load_relaxed(&heap->state);
    return state == HEAP_PARKED || state == HEAP_FROZEN;
}

static bool has_owner(const struct heap *heap)
{
    return hak_load_relaxed(&heap->state) == HEAP_ACTIVE;
}

/* The caller's own heap: nobody else has a claim on it, since claims are made under the locks. */
static void visit_own(struct heap *own, heap_visitor *visit, void *context)
{
    if (hak_gate_is_nested(&own->gate) || !hak_heap_enter(own)) {
        visit(own, HEAP_CLOSED, context);
        return;
    }
    visit(own, HEAP_OPEN, context);
    hak_gate_leave(&own->gate);
}

static void visit_locked(heap_visitor *visit, void *context)
{
    struct heap *own = hak_own_heap();
    uint32_t patience_ms = VISIT_PATIENCE_MS;
    settle_orphans(UINT32_MAX);
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next)
        if (heap != own && has_owner(heap))
            hak_gate_mark(&heap->gate);
    hak_gate_barrier();
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next) {
        if (heap == own) {
            visit_own(heap, visit, context);
        } else if (is_at_rest(heap)) {
            worked_on = heap;
            visit(heap, HEAP_OPEN, context);
            worked_on = NULL;
        } else if (!has_owner(heap)) {
            visit(heap, HEAP_CLOSED, context);
        } else if (hak_gate_await(&heap->gate, patience_ms)) {
            visit(heap, HEAP_OPEN, context);
            hak_gate_release(&heap->gate);
        } else {
            visit(heap, HEAP_CLOSED, context);
            patience_ms = 0;
        }
    }
}

void hak_registry_visit(heap_visitor *visit, void *context)
{
    if (lock_patiently()) {
        visit_locked(visit, context);
        hak_lock_give(&registry_lock);
        hak_stranger_unlock();
        return;
    }
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next)
        visit(heap, HEAP_CLOSED, context);
}

/* Heaps whose threads did not leave them before the last copy of the process. */
static uint32_t inside_count;

void hak_registry_stop_heaps(const struct heap *own, uint32_t patience_ms)
{
    hak_lock_take(&registry_lock);
    are_gates_closed = hak_gates_close();
    uint64_t deadline_ms = hak_os_clock_ms() + patience_ms;
    inside_count = 0;
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next)
        if (heap != own && hak_load_relaxed(&heap->state) == HEAP_ACTIVE && !is_orphan(heap))
            inside_count += !hak_gate_await_owner(&heap->gate, deadline_ms);
}

void hak_registry_restart_heaps(void)
{
    hak_gates_open();
    hak_lock_give(&registry_lock);
}

/* No slow path of a thread that is not here was changing it. */
static bool is_whole(const struct heap *heap)
{
    uint32_t state = hak_load_relaxed(&heap->state);
    return state != HEAP_FROZEN && !(is_orphan(heap) && !is_copied_whole(heap));
}

/* From here on the other threads' heaps are orphans. */
static void begin_generation(struct heap *own, struct heap *lent)
{
    generation++;
    hak_store_relaxed(&orphans, hak_registry_first());
    hak_store_relaxed(&hak_active_caches, own != NULL && has_owner(own));
    if (last_activated != NULL)
        last_activated->generation = generation;
    if (own != NULL) {
        own->generation = generation;
        hak_cache_of(own)->tick_ms =
            hak_os_clock_ms(); /* a child that soon becomes another program is in time */
    }
    for (; lent != NULL; lent = lent->outer) {
        lent->generation = generation;
        hak_counter_add(&hak_active_caches, 1);
    }
}

void hak_registry_restart_in_child(struct heap *own, struct heap *lent)
{
    hak_gates_open();
    hak_lock_reset(&registry_lock);
    begin_generation(own, lent);
    /* Our own slow path, interrupted by the handler that forked, goes on with what it has in its
     * hands. */
    if (inside_count != 0 && !(own != NULL && hak_gate_is_nested(&own->gate)))
        hak_tokens_restore(hak_registry_first(), is_whole);
}

/* Somebody who stayed behind was changing the heap. */
static bool is_copied_half(const struct heap *heap, const struct copier *copier)
{
    if (!has_owner(heap))
        return false;
    if (hak_load_relaxed(&heap->gate.claimed) == GATE_VISITED)
        return true;
    return copier != NULL && hak_gate_is_nested(&heap->gate) && heap != last_activated &&
           !hak_copier_has(copier, heap);
}

bool hak_registry_settle_gates(const struct copier *copier)
{
    bool is_any_half = false;
    hak_gates_open();
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next) {
        if (is_copied_half(heap, copier)) {
            freeze_locked(heap);
            is_any_half = true;
        }
        if (hak_load_relaxed(&heap->gate.claimed) != GATE_UNCLAIMED)
            hak_gate_release(&heap->gate);
    }
    return is_any_half;
}

void hak_registry_settle(const struct copier *copier, bool has_lost_tokens)
{
    if (!hak_lock_is_noted(HAK_LOCK_REGISTRY))
        begin_generation(copier->own, copier->lent);
    if (has_lost_tokens)
        hak_tokens_restore(hak_registry_first(), is_whole);
}
