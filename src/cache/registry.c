/* SPDX-License-Identifier: MIT */
#include "cache/registry.h"

#include "cache/stranger.h"
#include "os/lock.h"
#include "os/os.h"
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
static _Atomic uint32_t active_count;
static uint32_t last_id;

static void add_locked(struct heap *heap)
{
    hak_heap_start(heap, ++last_id);
    heap->next = hak_load_relaxed(&heaps);
    /* release: partner is the acquire in hak_registry_first */
    hak_store_release(&heaps, heap);
}

static struct heap *create_locked(void)
{
    if (last_id == HAK_HEAP_ID_MOST)
        return NULL;
    struct heap *heap = hak_meta_take(sizeof *heap);
    if (heap == NULL)
        return NULL;
    add_locked(heap);
    hak_stat_global_add(heaps_created, 1);
    return heap;
}

static void activate_locked(struct heap *heap)
{
    hak_store_relaxed(&heap->state, HEAP_ACTIVE);
    hak_counter_add(&active_count, 1);
    hak_store_relaxed(&heap->gate.held, 0);
}

bool hak_registry_add(struct heap *heap)
{
    hak_lock_take(&registry_lock);
    bool has_id = last_id != HAK_HEAP_ID_MOST;
    if (has_id)
        add_locked(heap);
    hak_lock_give(&registry_lock);
    return has_id;
}

static struct heap *adopt_locked(void)
{
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

struct heap *hak_heap_adopt_in_handler(void)
{
    if (!hak_lock_try(&registry_lock))
        return NULL;
    struct heap *heap = adopt_locked();
    hak_lock_give(&registry_lock);
    return heap;
}

void hak_registry_drain_parked(void)
{
    if (hak_load_relaxed(&parked_count) == 0 || !hak_lock_try(&registry_lock))
        return;
    for (struct heap *heap = parked; heap != NULL; heap = heap->parked_next) {
        if (!hak_stranger_is_away(heap))
            continue;
        hak_heap_collect(heap);
        hak_heap_retire_spares(heap);
    }
    hak_lock_give(&registry_lock);
}

static void park_locked(struct heap *heap)
{
    hak_store_relaxed(&heap->state, HEAP_PARKED);
    heap->parked_next = parked;
    parked = heap;
    hak_counter_add(&parked_count, 1);
    hak_counter_add(&active_count, -1u);
}

void hak_heap_park(struct heap *heap)
{
    hak_gate_leave(&heap->gate);
    hak_lock_take(&registry_lock);
    park_locked(heap);
    hak_lock_give(&registry_lock);
}

static void freeze_locked(struct heap *heap)
{
    hak_store_relaxed(&heap->state, HEAP_FROZEN);
    hak_counter_add(&active_count, -1u);
    hak_stat_global_add(heaps_frozen, 1);
}

void hak_heap_freeze(struct heap *heap)
{
    hak_lock_take(&registry_lock);
    freeze_locked(heap);
    hak_lock_give(&registry_lock);
}

struct slab *hak_registry_take_abandoned(struct heap *heap, uint32_t class_index)
{
    if (hak_load_relaxed(&parked_count) == 0 || !hak_lock_try(&registry_lock))
        return NULL;
    struct slab *slab = NULL;
    struct heap *from = parked;
    for (int i = 0; i < PARKED_LOOKED_INTO && from != NULL && slab == NULL; i++) {
        if (hak_stranger_is_away(from))
            slab = hak_heap_surrender(from, class_index);
        from = from->parked_next;
    }
    if (slab != NULL)
        hak_heap_receive(heap, slab);
    hak_lock_give(&registry_lock);
    return slab;
}

struct heap *hak_registry_first(void)
{
    /* acquire: partner is the release in create_locked */
    return hak_load_acquire(&heaps);
}

uint32_t hak_registry_active_count(void)
{
    return hak_load_relaxed(&active_count);
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
    if (hak_gate_is_nested(&own->gate)) {
        visit(own, HEAP_CLOSED, context);
        return;
    }
    hak_gate_enter(&own->gate);
    visit(own, HEAP_OPEN, context);
    hak_gate_leave(&own->gate);
}

static void visit_locked(heap_visitor *visit, void *context)
{
    struct heap *own = hak_own_heap();
    uint32_t patience_ms = VISIT_PATIENCE_MS;
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next)
        if (heap != own && has_owner(heap))
            hak_gate_mark(&heap->gate);
    hak_gate_barrier();
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next) {
        if (heap == own) {
            visit_own(heap, visit, context);
        } else if (is_at_rest(heap)) {
            visit(heap, HEAP_OPEN, context);
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

void hak_registry_lock(void)
{
    hak_lock_take(&registry_lock);
}

void hak_registry_unlock(void)
{
    hak_lock_give(&registry_lock);
}

void hak_registry_restart_in_child(const struct heap *own)
{
    hak_lock_reset(&registry_lock);
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next) {
        if (heap == own || hak_load_relaxed(&heap->state) != HEAP_ACTIVE)
            continue;
        if (hak_load_relaxed(&heap->gate.claimed) != 0) {
            hak_store_relaxed(&heap->gate.claimed, 0);
            park_locked(heap);
        } else {
            freeze_locked(heap);
        }
    }
}
