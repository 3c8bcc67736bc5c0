/* SPDX-License-Identifier: MIT */
#include "cache/idle.h"

#include "cache/registry.h"
#include "cache/stranger.h"
#include "cache/sweep.h"
#include "harden/harden.h"

/* A look considers so many heaps, one visit takes so many slabs. */
#define HEAPS_LOOKED_AT 8
#define SLABS_TAKEN 4
/* After so many passes without a find nothing is left in a heap whose thread sleeps: the first one
 * only notes which slabs are cold. */
#define FRUITLESS_PASSES 3

/* The heap that was considered last; heaps are never freed. */
static _Atomic(struct heap *) last_considered;

static uint64_t slow_operations(const struct heap *heap)
{
    return hak_load_relaxed(&heap->stats.counters[HAK_STAT_refills]) +
           hak_load_relaxed(&heap->stats.counters[HAK_STAT_flushes]) +
           hak_load_relaxed(&heap->stats.counters[HAK_STAT_spans_given]) + 1;
}

/* Whether what waits for its thread - blocks on their way home, or, if `with_spans`, spans at
 * hand - has waited since the last look. */
static bool is_idle(struct heap *heap, bool with_spans)
{
    if (hak_load_relaxed(&heap->state) != HEAP_ACTIVE ||
        (hak_load_relaxed(&heap->owner.pending) == NULL &&
         !(with_spans && hak_load_relaxed(&heap->spans.count) != 0)))
        return false;
    uint64_t operations = slow_operations(heap);
    uint64_t before = hak_load_relaxed(&heap->idle_mark);
    hak_store_relaxed(&heap->idle_mark, operations);
    return operations == before;
}

static struct heap *next_considered(void)
{
    /* acquire: partner is the release below, by who saw the heap published */
    struct heap *heap = hak_load_acquire(&last_considered);
    heap = heap == NULL ? NULL : heap->next;
    if (heap == NULL)
        heap = hak_registry_first();
    hak_store_release(&last_considered, heap);
    return heap;
}

/* Enters an idle heap other than `own`; NULL: none was found. */
static struct heap *enter_one(const struct heap *own, bool with_spans)
{
    const struct heap *first = NULL;
    for (int i = 0; i < HEAPS_LOOKED_AT; i++) {
        struct heap *heap = next_considered();
        if (heap == first)
            return NULL; /* once round */
        if (i == 0)
            first = heap;
        if (heap != NULL && heap != own && is_idle(heap, with_spans) &&
            hak_stranger_try_enter(heap))
            return heap;
    }
    return NULL;
}

struct slab *hak_idle_take(struct heap *heap, uint32_t class_index)
{
    struct heap *from = enter_one(heap, false);
    if (from == NULL)
        return NULL;
    struct slab *taken = NULL;
    for (int i = 0; i < SLABS_TAKEN; i++) {
        struct slab *slab = hak_heap_surrender(from, class_index);
        if (slab == NULL)
            break;
        if (hak_heap_receive(heap, slab))
            taken = slab;
        hak_stat_add(&heap->stats, idle_slabs, 1);
    }
    hak_heap_retire_spares(from);
    hak_stranger_leave(from);
    return taken;
}

void hak_idle_collect(void)
{
    struct heap *heap = enter_one(hak_own_heap(), true);
    if (heap == NULL)
        return;
    hak_heap_tidy(heap);
    hak_stranger_leave(heap);
}

/* Counts whatever may leave pages without a use: slow operations, and frees that came home. */
static uint64_t changes(const struct heap *heap)
{
    return slow_operations(heap) + hak_load_relaxed(&heap->stats.counters[HAK_STAT_pending_slabs]);
}

bool hak_idle_is_due(const struct heap *heap, uint64_t now_ms, uint64_t decay_ms)
{
    uint64_t passed_ms = hak_load_relaxed(&heap->passed_ms);
    if (passed_ms == 0 || hak_load_relaxed(&heap->owner.pending) != NULL)
        return true;
    if (passed_ms == UINT64_MAX)
        return hak_load_relaxed(&heap->passed_mark) != changes(heap);
    return hak_excess(now_ms, passed_ms) >= decay_ms;
}

void hak_idle_note_visit(struct heap *heap, size_t found_bytes)
{
    uint64_t now = changes(heap);
    bool is_over = hak_heap_is_swept(heap);
    if (found_bytes != 0 || hak_load_relaxed(&heap->passed_mark) != now)
        heap->fruitless_passes = 0;
    else
        heap->fruitless_passes += is_over;
    uint64_t passed_ms = is_over ? heap->sweep_start_ms : 0;
    /* Where each call is looked at, slow operations are not counted. */
    if (heap->fruitless_passes >= FRUITLESS_PASSES && !hak_harden_has(HARDEN_WATCHED))
        passed_ms = UINT64_MAX;
    hak_store_relaxed(&heap->passed_mark, now);
    hak_store_relaxed(&heap->passed_ms, passed_ms);
}
