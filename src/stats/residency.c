/* SPDX-License-Identifier: MIT */
#include "base/bits.h"
#include "hakmem/hakmem.h"
#include "heap/census.h"
#include "heap/private_heap.h"
#include "misuse/fence.h"
#include "misuse/mark.h"
#include "os/os_resident.h"
#include "os/scratch.h"
#include "process/start.h"
#include "region/meta.h"
#include "region/tag_map.h"
#include "slab/superslab_pool.h"
#include "span/large.h"
#include "span/span_cache.h"
#include "span/span_free.h"
#include "span/span_heap.h"

#include <errno.h>
#include <string.h>

/* The window is examined in pieces: the kernel is queried first, then each heap is entered in turn,
 * for some microseconds. */
#define PIECE_GRANULES 256u

enum part {
    PART_LIVE,
    PART_FREE, /* retained */
    PART_EXCESS,
    PART_OTHERS, /* holes: not ours */
    PART_COUNT,
};

/* The state of the walk. */
struct walk {
    struct os_resident resident;
    uint64_t parts[PART_COUNT];
    uint64_t used[HAK_ALL_CLASS_COUNT]; /* of blocks in use, by class */
    uint64_t slab_free;
    uint64_t pinned;
    uint64_t busy_heaps;
    uint32_t run_end; /* the last span seen goes to here */
    enum part run_part;
    /* the present piece */
    uint32_t first;
    uint32_t count;
    bool is_done[PIECE_GRANULES];
    unsigned char pages[PIECE_GRANULES * (HAK_GRANULE_BYTES / HAK_PAGE_BYTES_LEAST)];
};

static uint32_t pages_per_granule(const struct walk *walk)
{
    return (uint32_t)(HAK_GRANULE_BYTES / walk->resident.page_bytes);
}

static const unsigned char *pages_of(const struct walk *walk, uint32_t at)
{
    return walk->pages + at * pages_per_granule(walk);
}

static size_t resident_in(const struct walk *walk, uint32_t at)
{
    size_t count = 0;
    for (uint32_t i = 0; i < pages_per_granule(walk); i++)
        count += pages_of(walk, at)[i] & 1;
    return count * walk->resident.page_bytes;
}

static bool is_used(const struct slab *slab, uint32_t index)
{
    return index < slab->bump &&
           (hak_load_relaxed(&slab->words[index / 64]) >> (index % 64) & 1) == 0;
}

/* Bytes of blocks in use within [start, start + bytes) of the slab. */
static size_t used_within(const struct slab *slab, size_t start, size_t bytes)
{
    size_t used = 0, end = start + bytes;
    for (uint32_t i = (uint32_t)(start / slab->block_bytes);
         i < slab->block_count && (size_t)i * slab->block_bytes < end; i++) {
        if (!is_used(slab, i))
            continue;
        size_t from = hak_most((size_t)i * slab->block_bytes, start);
        used += hak_least((size_t)(i + 1) * slab->block_bytes, end) - from;
    }
    return used;
}

/* One granule of a slab whose heap the caller is in. */
static void add_slab_granule(struct walk *walk, const struct slab *slab, uint32_t at)
{
    uintptr_t page = (uintptr_t)hak_granule_address(walk->first + at);
    size_t untouched = (size_t)hak_most(slab->bump, slab->zero_from) * slab->block_bytes;
    for (uint32_t i = 0; i < pages_per_granule(walk); i++, page += walk->resident.page_bytes) {
        if ((pages_of(walk, at)[i] & 1) == 0)
            continue;
        if (page < slab->start) { /* a guard, on a page that was used before */
            walk->slab_free += walk->resident.page_bytes;
            continue;
        }
        size_t offset = page - slab->start;
        size_t used = used_within(slab, offset, walk->resident.page_bytes);
        walk->used[slab->class_index] += used;
        if (used != 0)
            walk->pinned += walk->resident.page_bytes - used;
        else if (offset >= untouched)
            walk->parts[PART_EXCESS] += walk->resident.page_bytes;
        else
            walk->slab_free += walk->resident.page_bytes;
    }
}

/* The slab at a granule of the piece, of that owner, or, for NULL, of any; NULL: none. */
static struct slab *slab_at(const struct walk *walk, uint32_t at, const struct slab_owner *owner)
{
    uint32_t granule = walk->first + at;
    if (!hak_tag_is_slab(hak_tag_read(granule)) || walk->is_done[at])
        return NULL;
    struct slab *slab = hak_owner_read(granule);
    /* While others run, it may have been given back since. */
    bool is_there = slab != NULL && ((uintptr_t)slab & 1) == 0 &&
                    (owner == NULL || hak_load_relaxed(&slab->owner) == owner) &&
                    granule - hak_granule_of((void *)slab->start) < slab->granule_count;
    return is_there ? slab : NULL;
}

static void add_heap(struct heap *heap, enum heap_access access, void *context)
{
    struct walk *walk = context;
    if (access == HEAP_CLOSED)
        return;
    for (uint32_t at = 0; at < walk->count; at++) {
        const struct slab *slab = slab_at(walk, at, &heap->owner);
        if (slab == NULL)
            continue;
        add_slab_granule(walk, slab, at);
        walk->is_done[at] = true;
    }
}

/* What begins at a granule that is in no slab: a live block, a free span, or nothing that the
 * tables know the length of: free in the pool, or on its way. */
static void begin_run(struct walk *walk, uint32_t granule)
{
    uint32_t tag = hak_tag_read(granule);
    void *record = hak_owner_read(granule);
    const struct span *span = NULL;
    walk->run_end = granule + 1;
    if (tag == HAK_TAG_HOLE) {
        walk->run_part = PART_OTHERS;
    } else if (tag == HAK_TAG_SPAN) {
        span = hak_span_named_at(granule);
        walk->run_part = hak_span_live_at(granule) != NULL ? PART_LIVE : PART_FREE;
    } else if ((uintptr_t)record & 1) {
        span = hak_span_free_anywhere_at(granule);
        walk->run_part = span != NULL && span->state != SPAN_WARM ? PART_EXCESS : PART_FREE;
    } else {
        walk->run_part = hak_pool_is_untouched(granule) ? PART_EXCESS : PART_FREE;
    }
    if (span != NULL && span->first == granule)
        walk->run_end = granule + span->count;
}

static void add_others(struct walk *walk)
{
    for (uint32_t at = 0; at < walk->count; at++) {
        const struct slab *slab = slab_at(walk, at, 0);
        if (walk->is_done[at])
            continue;
        if (slab != NULL) { /* of a heap that could not be entered */
            walk->used[slab->class_index] += resident_in(walk, at);
            continue;
        }
        if (walk->first + at >= walk->run_end)
            begin_run(walk, walk->first + at);
        walk->parts[walk->run_part] += resident_in(walk, at);
    }
}

/* Asks the kernel about the piece; false: nothing is resident. */
static bool look(struct walk *walk)
{
    size_t bytes = (size_t)walk->count << HAK_GRANULE_SHIFT;
    hak_os_resident_read(&walk->resident,
                         hak_region.base + ((size_t)walk->first << HAK_GRANULE_SHIFT), bytes,
                         walk->pages);
    return memchr(walk->pages, 1, bytes / walk->resident.page_bytes) != NULL;
}

/* Even without a resident page the runs must be followed, for the next piece. */
static void add_piece(struct walk *walk)
{
    memset(walk->is_done, 0, sizeof walk->is_done);
    if (look(walk)) {
        hak_heaps_visit(add_heap, walk);
        hak_private_visit(add_heap, walk);
    }
    hak_lock_take(&hak_pool_lock);
    hak_span_lock_sets();
    hak_span_lock();
    add_others(walk);
    hak_span_unlock();
    hak_span_unlock_sets();
    hak_lock_give(&hak_pool_lock);
}

static void add_window(struct walk *walk)
{
    /* acquire: partner is the release in the region's `grow` */
    size_t end = hak_load_acquire(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    for (walk->first = 0; walk->first < end; walk->first += walk->count) {
        walk->count = (uint32_t)hak_least(end - walk->first, PIECE_GRANULES);
        add_piece(walk);
    }
}

/* Resident bytes of one table, whose end is rounded up: its neighbour is far away. */
static uint64_t table_resident(struct walk *walk, const void *table, size_t bytes)
{
    uint64_t resident = 0;
    uintptr_t start = hak_align_down((uintptr_t)table, walk->resident.page_bytes);
    uintptr_t end = hak_align_up((uintptr_t)table + bytes, walk->resident.page_bytes);
    for (size_t step; start < end; start += step) {
        step = hak_least(end - start, sizeof walk->pages * HAK_PAGE_BYTES_LEAST);
        hak_os_resident_read(&walk->resident, start, step, walk->pages);
        for (size_t i = 0; i < step / walk->resident.page_bytes; i++)
            resident += walk->pages[i] * walk->resident.page_bytes;
    }
    return resident;
}

static uint64_t metadata_resident(struct walk *walk)
{
    size_t granules = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    return table_resident(walk, (void *)hak_region.tags, granules * sizeof(uint8_t)) +
           table_resident(walk, (void *)hak_region.owners, granules * sizeof(void *)) +
           table_resident(walk, hak_region.superslab_records,
                          granules / HAK_SUPERSLAB_GRANULES * HAK_SUPERSLAB_RECORD_BYTES) +
           table_resident(walk, (void *)hak_marks, hak_mark_bytes()) +
           table_resident(walk, hak_region.fence_places.start,
                          hak_load_relaxed(&hak_region.fence_places.usable_bytes)) +
           table_resident(walk, hak_region.fence_runs.start,
                          hak_load_relaxed(&hak_region.fence_runs.usable_bytes)) +
           table_resident(walk, hak_region.meta.start, hak_meta_present_bytes());
}

/* Splits the bytes in use of a class into live, cached and remotely freed. The latter two were used
 * recently, so they are resident if any of the class is. */
static void divide_used(struct hakmem_residency *to, struct walk *walk, const struct census *census)
{
    to->busy_heap_count = census->closed_heaps;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        const struct class_census *of = &census->classes[i];
        uint64_t bytes = hak_size_classes[i].block_bytes, left = walk->used[i];
        uint64_t cached = hak_least(left, of->cached * bytes);
        left -= cached;
        uint64_t withheld = hak_least(left, (of->withheld + of->homeward) * bytes);
        left -= withheld;
        uint64_t away = of->cached + of->withheld + of->homeward;
        uint64_t live = of->used > away ? (of->used - away) * bytes : 0;
        to->cached_bytes += cached;
        to->withheld_bytes += withheld;
        to->live_bytes += left;
        to->untouched_bytes += live > left ? live - left : 0;
    }
    /* Cached spans have no live block: they were counted as free. */
    uint64_t spans = hak_least(hak_span_caches_sum().bytes, walk->parts[PART_FREE]);
    walk->parts[PART_FREE] -= spans;
    to->cached_bytes += spans;
}

/* The pages of large blocks in quarantine are gone where they were cleared that way. */
static void divide_large(struct hakmem_residency *to, const struct walk *walk,
                         const struct census *census)
{
    uint64_t resident = walk->parts[PART_LIVE];
    uint64_t live = hak_excess(hak_large_live_bytes(), census->large_withheld_bytes);
    uint64_t withheld = hak_least(hak_excess(resident, live), census->large_withheld_bytes);
    to->withheld_bytes += withheld;
    to->live_bytes += resident - withheld;
    to->untouched_bytes += hak_excess(live, resident - withheld);
}

/* Too large for the stack of a small thread. */
struct workspace {
    struct walk walk;
    struct census census;
};

static void take_residency(struct hakmem_residency *to, struct workspace *workspace)
{
    struct walk *walk = &workspace->walk;
    add_window(walk);
    to->metadata_bytes = metadata_resident(walk);
    hak_census_take(&workspace->census);
    divide_used(to, walk, &workspace->census);
    divide_large(to, walk, &workspace->census);
    size_t slots_bytes = hak_region.fence_start - (uintptr_t)hak_region.guarded_start;
    to->live_bytes += table_resident(walk, hak_region.guarded_start, slots_bytes) +
                      table_resident(walk, (void *)hak_region.fence_start, hak_fence_used_bytes());
    to->slab_free_bytes = walk->slab_free;
    to->pinned_bytes = walk->pinned;
    to->retained_bytes = walk->parts[PART_FREE];
    to->huge_excess_bytes = walk->parts[PART_EXCESS];
    to->resident_bytes = to->live_bytes + to->cached_bytes + to->withheld_bytes +
                         to->slab_free_bytes + to->pinned_bytes + to->retained_bytes +
                         to->huge_excess_bytes + to->metadata_bytes;
    to->mapping_start = (uintptr_t)hak_region.guarded_start;
    to->mapping_end = hak_region.base + hak_region.window_bytes;
    to->record_start = hak_region.records_start;
    to->record_end = hak_region.records_end;
    to->mark_start = (uintptr_t)hak_marks;
    to->mark_end = (uintptr_t)hak_marks + hak_mark_reserved_bytes();
}

/* The workspace is all zero. */
static int take_in(struct hakmem_residency *to, struct workspace *workspace)
{
    if (!hak_os_resident_open(&workspace->walk.resident))
        return ENOSYS;
    take_residency(to, workspace);
    hak_os_resident_close(&workspace->walk.resident);
    return 0;
}

/* Where the kernel has no memory for it. */
static HAK_NOINLINE int take_on_stack(struct hakmem_residency *to)
{
    struct workspace workspace;
    memset(&workspace, 0, sizeof workspace);
    return take_in(to, &workspace);
}

int hakmem_residency_get(struct hakmem_residency *residency, size_t residency_bytes)
{
    struct hakmem_residency all = {0};
    if (residency_bytes == 0)
        return EINVAL;
    if (!hak_process_start())
        return ENOSYS;
    struct workspace *workspace = hak_os_scratch(sizeof *workspace);
    int error = workspace == NULL ? take_on_stack(&all) : take_in(&all, workspace);
    if (workspace != NULL)
        hak_os_scratch_end(workspace, sizeof *workspace);
    if (error != 0)
        return error;
    memset(residency, 0, residency_bytes);
    memcpy(residency, &all, hak_least(residency_bytes, sizeof all));
    return 0;
}
