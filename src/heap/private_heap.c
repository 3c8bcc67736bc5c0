/* SPDX-License-Identifier: MIT */
#include "heap/private_heap.h"

#include "base/bits.h"
#include "base/check.h"
#include "heap/refill.h"
#include "heap/supply.h"
#include "heap/sweep.h"
#include "misuse/report.h"
#include "os/os.h"
#include "region/meta.h"
#include "span/large.h"
#include "span/span_heap.h"

#include <string.h>

#define MAGIC 0x68616b6865617021ull
/* Addresses of records have no more bits than this; a handle holds its generation above them. */
#define ADDRESS_BITS 48
#define GENERATION_MOST 0xffffu
/* The tick looks at so many heaps. */
#define DRAINED_AT_ONCE 64

static struct hak_lock set_lock = HAK_LOCK_START_WITH(HAK_LOCK_PRIVATE_SET);
HAK_AT_HAND static _Atomic(struct private_heap *) heaps; /* written under set_lock, only longer */
HAK_AT_HAND static struct private_heap *parked;
HAK_AT_HAND static struct private_heap *drained_next;
HAK_AT_HAND static _Atomic uint32_t live_count;
HAK_AT_HAND static _Atomic uint32_t last_id;

struct private_heap *hak_private_first(void)
{
    /* acquire: partner is the release in hak_private_create */
    return hak_load_acquire(&heaps);
}

/* In a handler of our own fork. A thread that is still inside may wait for what the fork holds; in
 * the child it is absent. False: there is one. */
static bool claim(struct private_heap *heap)
{
    if (!heap->heap.is_claimed)
        heap->heap.is_claimed = hak_lock_try_among(&heap->heap.lock);
    return heap->heap.is_claimed;
}

/* False only in a handler of our own fork. */
static bool lock_one(struct private_heap *heap)
{
    if (HAK_UNLIKELY(hak_lock_has_all()))
        return claim(heap);
    hak_lock_take(&heap->heap.lock);
    return true;
}

static bool try_one(struct private_heap *heap)
{
    return HAK_UNLIKELY(hak_lock_has_all()) ? claim(heap) : hak_lock_try(&heap->heap.lock);
}

static void *handle_of(const struct private_heap *heap)
{
    return (void *)((uintptr_t)heap | (uintptr_t)heap->generation << ADDRESS_BITS);
}

/* A record that is not on the list of all yet. */
static struct private_heap *new_record(void)
{
    struct private_heap *heap = hak_meta_take(sizeof *heap);
    if (heap == NULL || (uintptr_t)heap >> ADDRESS_BITS != 0)
        return NULL;
    hak_heap_start(&heap->heap);
    heap->heap.lock = (struct hak_lock)HAK_LOCK_START_WITH(HAK_LOCK_PRIVATE);
    heap->heap.owner.is_private = true;
    heap->heap.owner.heap_id = HAK_HEAPS_MOST + 1 + hak_fetch_add_relaxed(&last_id, 1);
    heap->magic = MAGIC;
    heap->generation = 1;
    hak_large_group_start(&heap->large_blocks);
    return heap;
}

/* One that no handler of fork can have is lost, like a frozen one. */
static bool is_of_use(struct private_heap *heap)
{
    return heap->state != PRIVATE_FROZEN && (!hak_lock_has_all() || claim(heap));
}

static struct private_heap *take_parked(void)
{
    hak_lock_take(&set_lock);
    struct private_heap *heap;
    do {
        heap = parked;
        if (heap != NULL)
            parked = heap->parked_next;
    } while (heap != NULL && !is_of_use(heap));
    hak_lock_give(&set_lock);
    return heap;
}

void *hak_private_create(enum private_kind kind)
{
    struct private_heap *heap = take_parked();
    bool is_new = heap == NULL;
    if (is_new && (heap = new_record()) == NULL)
        return NULL;
    hak_lock_take(&set_lock);
    if (is_new) {
        heap->next = hak_private_first();
        /* release: partner is the acquire in first, for hak_private_mend */
        hak_store_release(&heaps, heap);
    }
    lock_one(heap); /* a new or a claimed one in a handler of fork, too */
    heap->state = PRIVATE_LIVE;
    heap->is_inner = kind == PRIVATE_INNER;
    heap->heap.owner.is_sparse = kind == PRIVATE_INNER;
    hak_lock_give(&heap->heap.lock);
    hak_lock_give(&set_lock);
    hak_fetch_add_relaxed(&live_count, 1);
    hak_stat_global_add(private_heaps, kind == PRIVATE_OF_PROGRAM);
    return handle_of(heap);
}

/* The record of a handle, which may be of a destroyed heap. */
static struct private_heap *record_of(void *handle, const char *what)
{
    uintptr_t address = (uintptr_t)handle & (((uintptr_t)1 << ADDRESS_BITS) - 1);
    struct private_heap *heap = (struct private_heap *)address;
    if (HAK_UNLIKELY((uintptr_t)handle >> ADDRESS_BITS == 0 ||
                     address % HAK_CACHE_LINE_BYTES != 0 || address < HAK_GRANULE_BYTES ||
                     heap->magic != MAGIC))
        hak_misuse(what, handle, 0, "not a heap");
    return heap;
}

struct private_heap *hak_private_enter(void *handle, const char *what)
{
    struct private_heap *heap = record_of(handle, what);
    if (HAK_UNLIKELY(!lock_one(heap)))
        return NULL;
    if (HAK_LIKELY(heap->state == PRIVATE_LIVE && handle == handle_of(heap)))
        return heap;
    bool is_frozen = heap->state == PRIVATE_FROZEN && handle == handle_of(heap);
    hak_lock_give(&heap->heap.lock);
    if (!is_frozen)
        hak_misuse(what, handle, 0, "the heap was destroyed");
    return NULL;
}

void hak_private_visit(heap_visitor *visit, void *context)
{
    for (struct private_heap *heap = hak_private_first(); heap != NULL; heap = heap->next) {
        bool is_entered = try_one(heap);
        bool is_whole = is_entered && heap->state != PRIVATE_FROZEN;
        visit(&heap->heap, is_whole ? HEAP_ENTERED : HEAP_CLOSED, context);
        if (is_entered)
            hak_lock_give(&heap->heap.lock);
    }
}

void hak_private_leave(struct private_heap *heap)
{
    hak_lock_give(&heap->heap.lock);
}

/* As hak_heap_take_one; leaves the heap. */
static void *take_and_leave(struct private_heap *heap, uint32_t class_index, bool *is_zero,
                            struct pool_granules *brought)
{
    void *block = hak_heap_take_one(&heap->heap, class_index, is_zero, brought);
    hak_private_leave(heap);
    return block;
}

/* A second time, with memory brought from outside. */
static void *bring_and_take(void *handle, struct private_heap *heap, uint32_t class_index,
                            bool *is_zero)
{
    void *block = NULL;
    hak_supply_grow_records_ahead();
    struct pool_granules brought = hak_heap_bring(NULL, &heap->heap, class_index);
    if (brought.count != 0 && (heap = hak_private_enter(handle, "invalid heap")) != NULL)
        block = take_and_leave(heap, class_index, is_zero, &brought);
    hak_supply_give_up(&brought);
    return block;
}

void *hak_private_take(struct private_heap *heap, uint32_t class_index, bool wants_zero)
{
    void *handle = handle_of(heap);
    struct pool_granules none = HAK_NO_GRANULES;
    bool is_zero = !wants_zero, *asked = wants_zero ? &is_zero : NULL;
    void *block = take_and_leave(heap, class_index, asked, &none);
    if (HAK_UNLIKELY(block == NULL))
        block = bring_and_take(handle, heap, class_index, asked);
    if (block != NULL && !is_zero)
        memset(block, 0, hak_size_classes[class_index].block_bytes);
    return block;
}

/* Retires the slabs of a list with all that is in them; returns how many they were. */
static uint32_t retire_list(struct heap *heap, struct list_link *list)
{
    uint32_t count = 0;
    struct list_link *next;
    for (struct list_link *i = list->next; i != list; i = next) {
        struct slab *slab = hak_list_element(i, struct slab, link);
        next = i->next;
        if (hak_load_relaxed(&slab->remote_count) != 0)
            continue; /* a free is under way: see the argument in the header */
        hak_list_remove(&slab->link);
        slab->place = SLAB_NOWHERE;
        hak_use_note(heap->owner.use, slab->class_index, -(int64_t)slab->used);
        slab->used = 0;
        hak_stat_add(&heap->stats, retired_slabs, 1);
        hak_supply_retire(slab);
        count++;
    }
    return count;
}

static void retire_slabs(struct heap *heap)
{
    hak_heap_end_sweeps(heap);
    hak_heap_retire_spares(heap, UINT32_MAX);
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        for (uint32_t mask = heap->partial_mask[i]; mask != 0; mask &= mask - 1) {
            struct list_link *list = &heap->partial[i][hak_bit_lowest(mask)];
            heap->partial_count[i] -= retire_list(heap, list);
            if (hak_list_is_empty(list))
                heap->partial_mask[i] &= (uint8_t)~(mask & -mask);
        }
    }
    retire_list(heap, &heap->full);
}

void hak_private_destroy(struct private_heap *heap)
{
    hak_heap_collect(&heap->heap);
    hak_audit(hak_private_is_sound(heap));
    retire_slabs(&heap->heap);
    hak_large_give_group(&heap->large_blocks);
    heap->state = PRIVATE_PARKED;
    heap->generation = heap->generation % GENERATION_MOST + 1;
    hak_lock_give(&heap->heap.lock);
    hak_fetch_add_relaxed(&live_count, -1u);
    hak_lock_take(&set_lock);
    heap->parked_next = parked;
    parked = heap;
    hak_lock_give(&set_lock);
}

void *hak_private_handle_of(const void *block, const char *what)
{
    uint32_t granule = hak_granule_of(block);
    if (!hak_tag_is_slab(hak_tag_read(granule))) {
        struct list_link *group = hak_large_group_of(block, what);
        return group == NULL
                   ? NULL
                   : handle_of(hak_list_element(group, struct private_heap, large_blocks));
    }
    struct slab *slab = hak_owner_read(granule);
    hak_slab_index_of(slab, block, what);
    if (!slab->is_private)
        return NULL;
    struct slab_owner *owner = hak_load_relaxed(&slab->owner);
    const struct private_heap *heap = hak_list_element(owner, struct private_heap, heap.owner);
    return heap->is_inner ? NULL : handle_of(heap);
}

void hak_private_trim(struct private_heap *heap)
{
    hak_heap_tidy(&heap->heap);
}

static void drain(struct private_heap *heap)
{
    if (!try_one(heap))
        return;
    if (heap->state != PRIVATE_FROZEN)
        hak_private_trim(heap);
    hak_lock_give(&heap->heap.lock);
}

void hak_private_drain_some(void)
{
    if (hak_load_relaxed(&live_count) == 0 || !hak_lock_try(&set_lock))
        return;
    struct private_heap *heap = drained_next;
    for (int i = 0; i < DRAINED_AT_ONCE; i++) {
        if (heap == NULL && (heap = hak_private_first()) == NULL)
            break;
        if (hak_load_relaxed(&heap->heap.owner.pending) != NULL)
            drain(heap);
        heap = heap->next;
    }
    drained_next = heap;
    hak_lock_give(&set_lock);
}

void hak_private_drain_all(void)
{
    if (hak_load_relaxed(&live_count) == 0 || !hak_lock_try(&set_lock))
        return;
    for (struct private_heap *heap = hak_private_first(); heap != NULL; heap = heap->next)
        drain(heap);
    hak_lock_give(&set_lock);
}

/* One go of a sweep; true when it is over, or somebody else is inside. Nobody waits inside for the
 * kernel; with PRIVATE_SET held the record becomes no other heap while slabs are out. */
static bool sweep_some(struct private_heap *heap, struct whole_sweep *sweep, size_t *bytes)
{
    bool is_over = true;
    struct swept swept;
    if (!try_one(heap))
        return true;
    bool is_whole = heap->state != PRIVATE_FROZEN;
    if (is_whole)
        is_over = hak_heap_sweep_whole(&heap->heap, sweep, &swept);
    hak_lock_give(&heap->heap.lock);
    if (!is_whole)
        return true;
    *bytes += hak_heap_purge_swept(&heap->heap, &swept);
    hak_lock_take(&heap->heap.lock);
    hak_heap_collect(&heap->heap);
    if (heap->state == PRIVATE_PARKED)
        retire_slabs(&heap->heap); /* it was destroyed without them */
    hak_lock_give(&heap->heap.lock);
    return is_over;
}

size_t hak_private_sweep_all(void)
{
    size_t bytes = 0;
    if (hak_load_relaxed(&live_count) == 0)
        return 0;
    for (struct private_heap *heap = hak_private_first(); heap != NULL; heap = heap->next) {
        struct whole_sweep sweep = {0};
        bool is_over = false;
        /* Between two goes a fork may come, which waits for this lock. */
        while (!is_over && hak_lock_try(&set_lock)) {
            is_over = sweep_some(heap, &sweep, &bytes);
            hak_lock_give(&set_lock);
        }
    }
    return bytes;
}

struct private_use hak_private_use(struct private_heap *heap)
{
    struct private_use use = {0, 0, 0};
    hak_heap_collect(&heap->heap);
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        const struct class_use *class_use = &heap->heap.owner.use[i];
        const struct size_class *size_class = &hak_size_classes[i];
        uint64_t blocks = hak_load_relaxed(&class_use->used_blocks);
        use.block_count += blocks;
        use.block_bytes += blocks * size_class->block_bytes;
        use.held_bytes += hak_load_relaxed(&class_use->slabs) * size_class->granule_count
                          << HAK_GRANULE_SHIFT;
    }
    size_t large_count;
    size_t large_bytes = hak_large_group_bytes(&heap->large_blocks, &large_count);
    use.block_count += large_count;
    use.block_bytes += large_bytes;
    use.held_bytes += large_bytes;
    return use;
}

bool hak_private_is_sound(struct private_heap *heap)
{
    for (struct list_link *i = heap->heap.full.next; i != &heap->heap.full; i = i->next) {
        struct slab *slab = hak_list_element(i, struct slab, link);
        if (slab->place != SLAB_FULL || !hak_slab_is_full(slab) || !slab->is_private ||
            hak_load_relaxed(&slab->owner) != &heap->heap.owner)
            return false;
    }
    return hak_heap_is_sound(&heap->heap);
}

void hak_private_lock_all(uint32_t patience_ms)
{
    hak_lock_take(&set_lock);
    uint64_t deadline_ms = hak_os_clock_ms() + patience_ms;
    for (struct private_heap *heap = hak_private_first(); heap != NULL; heap = heap->next) {
        uint64_t left_ms = hak_excess(deadline_ms, hak_os_clock_ms());
        heap->heap.is_claimed = hak_lock_take_within(&heap->heap.lock, (uint32_t)left_ms);
    }
}

void hak_private_unlock_all(void)
{
    for (struct private_heap *heap = hak_private_first(); heap != NULL; heap = heap->next)
        if (heap->heap.is_claimed)
            hak_lock_give_among(&heap->heap.lock);
    hak_lock_give(&set_lock);
}

void hak_private_restart_in_child(void)
{
    for (struct private_heap *heap = hak_private_first(); heap != NULL; heap = heap->next) {
        if (!heap->heap.is_claimed)
            heap->state = PRIVATE_FROZEN;
        hak_lock_reset(&heap->heap.lock);
        hak_large_group_mend(&heap->large_blocks); /* another thread may have moved one of them */
    }
    hak_lock_reset(&set_lock);
}

/* In a copy of the process: the heaps that others were inside. */
static void freeze_left(void)
{
    bool is_noted = hak_lock_is_noted(HAK_LOCK_PRIVATE);
    for (struct private_heap *heap = hak_private_first(); heap != NULL; heap = heap->next) {
        if (hak_load_relaxed(&heap->heap.lock.state) == 0 ||
            (is_noted && hak_lock_is_own(&heap->heap.lock)))
            continue;
        heap->state = PRIVATE_FROZEN;
        hak_store_relaxed(&heap->heap.lock.state, 0);
    }
}

/* The groups of large blocks are what a thread changes without the heap's lock. */
static void mend_groups(void)
{
    bool is_settling = hak_lock_is_settling();
    if (is_settling && hak_lock_is_noted(HAK_LOCK_SPAN))
        return; /* this thread was interrupted there, and nobody else was */
    for (struct private_heap *heap = hak_private_first(); heap != NULL; heap = heap->next) {
        if (!is_settling)
            hak_span_lock();
        hak_large_group_mend(&heap->large_blocks);
        if (!is_settling)
            hak_span_unlock();
    }
}

void hak_private_mend(void)
{
    if (hak_lock_is_settling())
        freeze_left();
    else if (hak_lock_is_noted(HAK_LOCK_PRIVATE)) {
        for (struct private_heap *heap = hak_private_first(); heap != NULL; heap = heap->next) {
            if (!hak_lock_is_own(&heap->heap.lock)) {
                hak_lock_give_slow(&heap->heap.lock); /* the jump may have come just before this */
                continue;
            }
            heap->state = PRIVATE_FROZEN;
            hak_lock_give_among(&heap->heap.lock);
        }
        hak_lock_end(HAK_LOCK_PRIVATE);
    }
    mend_groups();
    if (hak_lock_is_left(&set_lock))
        hak_lock_give(&set_lock); /* each of its steps loses a record at most */
}
