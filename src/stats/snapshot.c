/* SPDX-License-Identifier: MIT */
#include "stats/snapshot.h"
#include "base/bits.h"
#include "heap/cache_list.h"
#include "heap/census.h"
#include "heap/heaps.h"
#include "heap/route.h"
#include "misuse/fence.h"
#include "misuse/guarded.h"
#include "misuse/mark.h"
#include "os/home.h"
#include "os/os.h"
#include "os/os_memory.h"
#include "os/output.h"
#include "os/scratch.h"
#include "region/meta.h"
#include "slab/superslab_pool.h"
#include "span/big_cache.h"
#include "span/large.h"
#include "span/span_heap.h"
#include "span/span_move.h"
#include "span/span_take.h"
#include "stats/binding.h"
#include "stats/exact.h"
#include "stats/snapshot_take.h"

#include <string.h>

hak_static_assert(HAK_CLASS_COUNT <= HAK_SNAPSHOT_CLASSES, "a snapshot has room for all classes");

/* Small blocks, from the heaps' own counts. Threads that run meanwhile may take a block between two
 * looks, so a difference may come out below 0. */
static void add_classes(struct snapshot *snapshot, const struct census *census)
{
    uint64_t used_bytes = 0;
    snapshot->class_count = HAK_CLASS_COUNT;
    snapshot->closed_heaps = census->closed_heaps;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        const struct class_census *from = &census->classes[i];
        struct snapshot_class *to = &snapshot->classes[hak_class_ordinary(i)];
        uint64_t bytes = hak_size_classes[i].block_bytes;
        uint64_t cached = from->cached + from->withheld + from->homeward;
        uint64_t live = hak_excess(from->used, cached);
        to->block_bytes = bytes;
        to->slabs += from->slabs;
        to->taken_blocks += from->taken;
        to->popped_blocks += from->popped;
        to->cached_blocks += cached;
        to->live_blocks += live;
        to->free_blocks += hak_excess(from->slabs * hak_size_classes[i].block_count, from->used);
        snapshot->small_live_blocks += live;
        snapshot->small_live_bytes += live * bytes;
        if (hak_class_partition(i) == PARTITION_LONG) {
            snapshot->long_live_bytes += live * bytes;
            snapshot->long_slab_bytes += from->slabs * hak_size_classes[i].granule_count
                                         << HAK_GRANULE_SHIFT;
        }
        snapshot->cached_bytes += from->cached * bytes;
        snapshot->withheld_bytes += from->withheld * bytes;
        snapshot->homeward_bytes += from->homeward * bytes;
        used_bytes += from->used * bytes;
    }
    uint64_t granules = snapshot->superslabs * HAK_SUPERSLAB_GRANULES;
    granules = hak_excess(granules, hak_pool_free_count_all());
    snapshot->slab_free_bytes = hak_excess(granules << HAK_GRANULE_SHIFT, used_bytes);
}

/* Large blocks that are in quarantine count as held until they leave it. */
static void move_large_withheld(struct snapshot *snapshot, const struct census *census)
{
    snapshot->withheld_bytes += census->large_withheld_bytes;
    snapshot->large_live_bytes =
        hak_excess(snapshot->large_live_bytes, census->large_withheld_bytes);
    snapshot->large_live_blocks =
        hak_excess(snapshot->large_live_blocks, census->large_withheld_blocks);
}

static void add_cache(struct snapshot *snapshot, const struct cache *cache)
{
    struct snapshot_cache *to = &snapshot->caches[snapshot->cache_count++];
    to->is_processor = hak_cache_is_processors(cache);
    to->id = cache->id - (to->is_processor ? 0 : HAK_PROCESSORS_MOST);
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        uint64_t block_bytes = hak_size_classes[i].block_bytes;
        to->bytes += block_bytes * hak_cache_count(cache, i);
        to->capacity_bytes += block_bytes * hak_cache_capacity(cache, i);
    }
    to->misses = hak_load_relaxed(&cache->stats.counters[HAK_STAT_refills]) +
                 hak_load_relaxed(&cache->stats.counters[HAK_STAT_flushes]);
}

static void add_heap(struct snapshot *snapshot, const struct heap *heap)
{
    uint64_t held = 0, used = 0;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        const struct class_use *use = &heap->owner.use[i];
        const struct size_class *of = &hak_size_classes[i];
        held += hak_load_relaxed(&use->slabs) * of->granule_count << HAK_GRANULE_SHIFT;
        used += hak_load_relaxed(&use->used_blocks) * of->block_bytes;
    }
    snapshot->shared_heaps[snapshot->heap_count++] = (struct snapshot_heap){
        .id = heap->owner.heap_id,
        .held_bytes = held,
        .free_bytes = hak_excess(held, used),
        .entries = hak_load_relaxed(&heap->enter_count),
        .lock_waits = hak_load_relaxed(&heap->wait_count),
        .steals = hak_load_relaxed(&heap->stats.counters[HAK_STAT_stolen_slabs])};
}

static void add_locks_and_owners(struct snapshot *snapshot)
{
    for (int i = 0; i < HAK_LOCK_COUNT; i++) {
        snapshot->waits[i] = hak_load_relaxed(&hak_lock_waits[i].count);
        snapshot->waited_ns[i] = hak_load_relaxed(&hak_lock_waits[i].time_ns);
    }
    snapshot->rseq_reason = hak_caches_reason();
    snapshot->rseq_id = hak_rseq_id(snapshot->rseq_reason);
    snapshot->caches_by_processor = snapshot->rseq_reason == RSEQ_PROCESSOR;
    const struct cache *cache = hak_caches_first();
    for (; cache != NULL && snapshot->cache_count < HAK_SNAPSHOT_CACHES; cache = cache->next)
        if (hak_word_peek(&cache->place) != CACHE_LOST)
            add_cache(snapshot, cache);
    uint32_t count = (uint32_t)hak_least(hak_heap_count(), HAK_SNAPSHOT_HEAPS);
    for (uint32_t i = 0; i < count; i++)
        add_heap(snapshot, hak_heap_at(i));
}

static void add_policy(struct snapshot *snapshot)
{
#define X(name, initial, least, most, meaning) snapshot->policy_##name = hak_policy_read(name);
    HAK_POLICY_TABLE(X)
#undef X
    snapshot->unix_ms = hak_os_unix_ms();
    snapshot->pid = hak_os_pid();
    snapshot->shadowed = hak_is_shadowed();
}

/* Field by field: compilers may build a whole one on the stack first. */
static void add_levels(struct snapshot *snapshot)
{
    struct span_cache_sums cached = hak_span_caches_sum();
    uint64_t warm_granules = hak_pool_warm_count();
    uint64_t clean_granules = hak_excess(hak_pool_free_count_all(), warm_granules);
    struct guarded_sums guarded = hak_guarded_sum();
    snapshot->window_committed_bytes = hak_load_relaxed(&hak_region.committed_bytes);
    snapshot->hole_bytes = hak_load_relaxed(&hak_region.hole_bytes);
    snapshot->metadata_bytes = hak_meta_bytes();
    snapshot->table_bytes = hak_region_table_bytes() + hak_mark_bytes() + hak_fence_table_bytes();
    snapshot->superslabs = hak_pool_superslab_count();
    snapshot->slabs = hak_slab_record_count();
    snapshot->slab_warm_bytes = warm_granules << HAK_GRANULE_SHIFT;
    snapshot->slab_clean_bytes = clean_granules << HAK_GRANULE_SHIFT;
    snapshot->large_live_bytes = hak_large_live_bytes();
    snapshot->large_live_blocks = hak_large_live_count();
    snapshot->cached_bytes = cached.bytes;
    snapshot->span_cached_bytes = cached.bytes;
    snapshot->cached_spans = cached.count;
    snapshot->span_cache_hits = cached.hits;
    snapshot->span_warm_bytes = hak_span_warm_bytes();
    snapshot->span_clean_bytes = hak_span_clean_bytes();
    snapshot->huge_now_superslabs = hak_pool_huge_count();
    snapshot->huge_excess_bytes = (uint64_t)hak_pool_untouched_count() << HAK_GRANULE_SHIFT;
    snapshot->span_keep_ms = hak_big_cache_keep_ms();
    snapshot->pool_keep_ms = hak_pool_keep_ms();
    snapshot->span_lost_bytes = hak_span_lost_bytes();
    snapshot->heaps = hak_heap_count();
    snapshot->active_caches = hak_load_relaxed(&hak_active_caches);
    snapshot->map_calls = hak_load_relaxed(&hak_os_counters.map_count);
    snapshot->protect_calls = hak_load_relaxed(&hak_os_counters.protect_count);
    snapshot->advise_calls = hak_load_relaxed(&hak_os_counters.advise_count);
    snapshot->purge_calls = hak_load_relaxed(&hak_os_counters.purge_count);
    snapshot->purge_ns = hak_load_relaxed(&hak_os_counters.purge_time_ns);
    snapshot->purged_bytes = hak_load_relaxed(&hak_os_counters.purged_bytes);
    snapshot->move_calls = hak_load_relaxed(&hak_os_counters.move_count);
    snapshot->moved_bytes = hak_load_relaxed(&hak_os_counters.moved_bytes);
    snapshot->guarded_live_bytes = guarded.bytes;
    snapshot->guarded_live_blocks = guarded.count;
    snapshot->diverted_sites = hak_load_relaxed(&hak_route_sites);
    snapshot->moved_pieces = hak_span_piece_count();
#define X(name, meaning) snapshot->name = hak_load_relaxed(&hak_stat_globals.name);
    HAK_STAT_GLOBAL_TABLE(X)
#undef X
    uint64_t served_bytes;
    snapshot->spans_reused += hak_span_sets_served(&served_bytes);
    snapshot->spans_reused_bytes += served_bytes;
}

void hak_snapshot_take(struct snapshot *snapshot, struct census *census)
{
    hak_census_take(census);
    memset(snapshot, 0, sizeof *snapshot);
    add_levels(snapshot);
    add_policy(snapshot);
    add_locks_and_owners(snapshot);
    add_classes(snapshot, census);
    move_large_withheld(snapshot, census);
    hak_exact_read(snapshot);
    snapshot->live_bytes =
        snapshot->small_live_bytes + snapshot->large_live_bytes + snapshot->guarded_live_bytes;
    for (int i = 0; i < HAK_STAT_COUNT; i++)
        snapshot->sums[i] = hak_census_counter((enum hak_stat)i);
}

struct workspace {
    struct snapshot snapshot;
    struct census census;
};

static void take_in(struct workspace *workspace, snapshot_user *use, void *context)
{
    hak_snapshot_take(&workspace->snapshot, &workspace->census);
    use(&workspace->snapshot, context);
}

static HAK_NOINLINE void take_on_stack(snapshot_user *use, void *context)
{
    struct workspace workspace;
    take_in(&workspace, use, context);
}

void hak_snapshot_show(snapshot_user *use, void *context)
{
    struct workspace *workspace = hak_os_scratch(sizeof *workspace);
    if (workspace == NULL) {
        take_on_stack(use, context);
        return;
    }
    take_in(workspace, use, context);
    hak_os_scratch_end(workspace, sizeof *workspace);
}

void hak_snapshot_ask_kernel(struct snapshot *snapshot)
{
    uintptr_t marks = (uintptr_t)hak_marks;
    const struct os_range own[] = {
        {(uintptr_t)hak_region.guarded_start, hak_region.base + snapshot->window_committed_bytes},
        {hak_region.records_start, hak_region.records_end},
        {marks, marks + hak_mark_reserved_bytes()},
    };
    struct os_memory memory = hak_os_memory_read(own, sizeof own / sizeof *own);
    snapshot->huge_page_bytes = memory.huge_bytes;
    snapshot->resident_bytes = memory.resident_bytes;
    snapshot->resident_peak_bytes = memory.peak_bytes;
    snapshot->own_resident_bytes = memory.own_bytes;
}

void hak_snapshot_ask_kernel_total(struct snapshot *snapshot)
{
    struct os_memory memory = hak_os_memory_read_total();
    snapshot->resident_bytes = memory.resident_bytes;
    snapshot->resident_peak_bytes = memory.peak_bytes;
}
