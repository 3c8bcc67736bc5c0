/* SPDX-License-Identifier: MIT */
#include "region/region.h"

#include "base/bits.h"
#include "base/check.h"
#include "conf/conf.h"
#include "os/claim.h"
#include "os/os.h"
#include "region/tag_map.h"

/* Metadata may take this share of the window: the smallest blocks' records need 1/28 of their
 * slab. */
#define META_SHARE 16
/* When so much more than what was known to be possible is mapped, a limit was raised: it is not the
 * program that unmapped something of its own. */
#define RAISED_SHARE 4
/* Others' mappings are stepped over: by an eighth of what was stepped over already, so often. */
#define HOLE_SHARE 8
#define HOLES_SKIPPED_MOST 256

struct region hak_region = {.lock = HAK_LOCK_START_WITH(HAK_LOCK_REGION),
                            .growth_lock = HAK_LOCK_START_WITH(HAK_LOCK_GROWTH),
                            .purge_lock = HAK_LOCK_START_WITH(HAK_LOCK_PURGE)};
static struct area tags, owners, superslabs;

/* Where each part of the records starts, from the start of their claim. */
struct layout {
    size_t tags;
    size_t owners;
    size_t superslabs;
    size_t meta;
    size_t fence_places;
    size_t fence_runs;
    size_t marks;
    size_t end;
};

/* Tables become usable in steps of this many bytes. */
static size_t table_step(void)
{
    return hak_most(hak_os_page_bytes(), 16 * HAK_KIB);
}

/* Of so much address space as the window has. */
static size_t fence_bytes(size_t window_bytes)
{
    return hak_conf_wants_fence() ? window_bytes : 0;
}

static size_t fence_units(size_t window_bytes)
{
    return fence_bytes(window_bytes) / (HAK_FENCE_UNIT_PAGES * hak_os_page_bytes());
}

/* Each slot is followed by a page without access. */
static size_t slots_bytes(void)
{
    return HAK_SAMPLED_GUARD_SLOTS * (hak_sampled_guard_slot_bytes() + hak_os_page_bytes());
}

/* Each part is followed by a page that is never mapped. */
static struct layout layout_of(size_t window_bytes)
{
    size_t guard = hak_os_page_bytes();
    size_t step = table_step();
    size_t granules = window_bytes >> HAK_GRANULE_SHIFT;
    size_t records = granules / HAK_SUPERSLAB_GRANULES * HAK_SUPERSLAB_RECORD_BYTES;
    bool has_marks = hak_conf_number(harden) != 0 || hak_conf_wants_fence();
    size_t marks = has_marks ? window_bytes / HAK_MARKS_SHARE : 0;
    size_t units = fence_units(window_bytes);
    struct layout at;
    at.tags = guard;
    at.owners = at.tags + hak_align_up(granules * sizeof(uint8_t), step) + guard;
    at.superslabs = at.owners + hak_align_up(granules * sizeof(void *), step) + guard;
    at.meta = at.superslabs + hak_align_up(records, step) + guard;
    at.fence_places = at.meta + window_bytes / META_SHARE + guard;
    at.fence_runs = at.fence_places + hak_align_up(units * HAK_FENCE_PLACE_BYTES, step) + guard;
    at.marks = at.fence_runs + hak_align_up(units * HAK_FENCE_RUN_BYTES_MOST, step) + guard;
    at.end = at.marks + hak_align_up(marks, step) + guard;
    return at;
}

static void adopt_layout(char *start, struct layout at)
{
    size_t guard = hak_os_page_bytes();
    hak_area_start(&tags, start + at.tags, at.owners - guard - at.tags);
    hak_area_start(&owners, start + at.owners, at.superslabs - guard - at.owners);
    hak_area_start(&superslabs, start + at.superslabs, at.meta - guard - at.superslabs);
    hak_area_start(&hak_region.meta, start + at.meta, at.fence_places - guard - at.meta);
    hak_area_start(&hak_region.fence_places, start + at.fence_places,
                   at.fence_runs - guard - at.fence_places);
    hak_area_start(&hak_region.fence_runs, start + at.fence_runs, at.marks - guard - at.fence_runs);
    hak_area_start(&hak_region.marks, start + at.marks, at.end - guard - at.marks);
    hak_region.tags = (_Atomic uint8_t *)(void *)tags.start;
    hak_region.owners = (_Atomic(void *) *)(void *)owners.start;
    hak_region.superslab_records = superslabs.start;
    hak_region.records_start = (uintptr_t)start;
    hak_region.records_end = (uintptr_t)start + at.marks;
}

/* The slots of guarded blocks and the window, and the records somewhere else: an address of a
 * block does not reveal theirs. Both are open only when both have a place. */
static bool start_both(size_t window_bytes)
{
    size_t guard = hak_os_page_bytes(), front = guard + slots_bytes() + guard;
    size_t fences = fence_bytes(window_bytes);
    struct layout at = layout_of(window_bytes);
    struct os_claim window = {.front_bytes = front,
                              .bytes = front + fences + window_bytes + HAK_SUPERSLAB_BYTES + guard};
    struct os_claim records = {.front_bytes = guard, .bytes = at.end};
    if (!hak_os_claim(&window, ZONE_BLOCKS))
        return false;
    if (!hak_os_claim(&records, ZONE_RECORDS)) {
        hak_os_claim_drop(&window);
        return false;
    }
    hak_os_claim_open(&window);
    hak_os_claim_open(&records);
    adopt_layout(records.start, at);
    hak_region.guarded_start = (unsigned char *)window.start + guard;
    hak_region.fence_start = (uintptr_t)window.start + front;
    hak_region.fence_bytes = fences;
    hak_region.guarded_bytes = fences == 0 ? slots_bytes() : front - guard + fences;
    hak_region.base = hak_align_up((uintptr_t)window.start + front + fences, HAK_SUPERSLAB_BYTES);
    hak_region.window_bytes = window_bytes;
    return true;
}

/* Small processes stay small where the kernel hands huge pages to everybody. */
static void advise_pages(size_t offset, size_t bytes)
{
    char *start = (char *)hak_region.base + offset;
    int64_t thp = hak_conf_number(thp);
    if (thp == THP_OFF)
        hak_os_refuse_huge_pages(start, bytes);
    else if (thp == THP_ON)
        hak_os_wish_huge_pages(start, bytes);
    else if (offset < HAK_SMALL_PAGES_BYTES)
        hak_os_refuse_huge_pages(start, hak_least(bytes, HAK_SMALL_PAGES_BYTES - offset));
}

bool hak_region_start(void)
{
    hak_store_relaxed(&hak_region.most_bytes, hak_os_address_limit_bytes());
    for (size_t window = HAK_WINDOW_BYTES_MAX; window >= HAK_WINDOW_BYTES_MIN; window /= 2)
        if (start_both(window))
            return true;
    return false;
}

static bool table_grow(struct area *table, size_t bytes)
{
    return hak_area_grow(table, bytes, table_step()) == OS_MAPPED;
}

/* Makes the table entries of the first `bytes` of the window usable. */
static bool tables_grow(size_t bytes)
{
    size_t granules = bytes >> HAK_GRANULE_SHIFT;
    size_t records = granules / HAK_SUPERSLAB_GRANULES * HAK_SUPERSLAB_RECORD_BYTES;
    return table_grow(&tags, granules * sizeof(uint8_t)) &&
           table_grow(&owners, granules * sizeof(void *)) && table_grow(&superslabs, records);
}

static void table_touch(const struct area *table)
{
    /* acquire: partner is the release in hak_area_grow */
    hak_os_touch(table->start, hak_load_acquire(&table->usable_bytes));
}

void hak_region_touch_tables(void)
{
    table_touch(&tags);
    table_touch(&owners);
    table_touch(&superslabs);
}

static enum os_map map(size_t offset, size_t bytes)
{
    enum os_map result = hak_os_map((void *)(hak_region.base + offset), bytes);
    if (result == OS_MAPPED) {
        advise_pages(offset, bytes);
        size_t mapped = hak_fetch_add_relaxed(&hak_region.mapped_bytes, bytes) + bytes;
        size_t most = hak_region_most_bytes();
        if (HAK_UNLIKELY(hak_excess(mapped, most) > most / RAISED_SHARE))
            hak_store_relaxed(&hak_region.most_bytes, SIZE_MAX);
    }
    return result;
}

static void note_refusal(size_t bytes)
{
    hak_store_relaxed(&hak_region.most_bytes, hak_load_relaxed(&hak_region.mapped_bytes) + bytes);
}

/* Maps `bytes` with their tables at the end of what is committed, behind what others have mapped
 * there. Returns the offset of the piece, or SIZE_MAX. */
static size_t piece_map(size_t committed, size_t bytes)
{
    size_t offset = committed;
    for (int tries = 0; tries < HOLES_SKIPPED_MOST; tries++) {
        if (bytes > hak_region.window_bytes - offset)
            return SIZE_MAX;
        enum os_map result = tables_grow(offset + bytes) ? map(offset, bytes) : OS_MAP_REFUSED;
        if (result == OS_MAPPED)
            return offset;
        if (result == OS_MAP_REFUSED) {
            note_refusal(bytes);
            return SIZE_MAX;
        }
        size_t hole = offset - committed;
        offset += hak_align_down(hole / HOLE_SHARE, HAK_SUPERSLAB_BYTES) + HAK_SUPERSLAB_BYTES;
        if (offset > hak_region.window_bytes)
            return SIZE_MAX;
    }
    return SIZE_MAX;
}

/* By `least` bytes, or more where that can be had: up to a step that grows with the window, and at
 * most `step_most`. */
static struct granule_range grow(size_t least, size_t step_most)
{
    struct granule_range range = {0, 0};
    hak_lock_take(&hak_region.lock);
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    size_t left = hak_region.window_bytes - committed;
    size_t step = hak_align_down(committed / 8, HAK_SUPERSLAB_BYTES);
    size_t wished = hak_clamp(step, HAK_COMMIT_STEP_LEAST, step_most);
    wished = hak_most(least, hak_least(wished, left));
    size_t offset = least > left ? SIZE_MAX : piece_map(committed, wished);
    if (offset == SIZE_MAX && wished > least && least <= left) {
        wished = least;
        offset = piece_map(committed, wished);
    }
    if (offset != SIZE_MAX) {
        range.first = (uint32_t)(offset >> HAK_GRANULE_SHIFT);
        range.count = (uint32_t)(wished >> HAK_GRANULE_SHIFT);
        size_t hole = committed >> HAK_GRANULE_SHIFT;
        hak_tag_write(hole, range.first - hole, HAK_TAG_HOLE);
        hak_counter_add(&hak_region.hole_bytes, (range.first - hole) << HAK_GRANULE_SHIFT);
        /* release: partner is the acquire in hak_region_holds */
        hak_store_release(&hak_region.committed_bytes, offset + wished);
    }
    hak_lock_give(&hak_region.lock);
    return range;
}

struct granule_range hak_region_grow(size_t granule_count)
{
    size_t least = hak_align_up(granule_count, HAK_SUPERSLAB_GRANULES) << HAK_GRANULE_SHIFT;
    return grow(least, HAK_COMMIT_STEP_MOST);
}

struct granule_range hak_region_grow_by_superslab(void)
{
    return grow(HAK_SUPERSLAB_BYTES, HAK_SUPERSLAB_BYTES);
}

bool hak_region_unmap(struct granule_range range)
{
    size_t bytes = (size_t)range.count << HAK_GRANULE_SHIFT;
    if (!hak_os_release(hak_granule_address(range.first), bytes))
        return false;
    hak_fetch_add_relaxed(&hak_region.mapped_bytes, -bytes);
    return true;
}

enum os_map hak_region_map(struct granule_range range)
{
    size_t bytes = (size_t)range.count << HAK_GRANULE_SHIFT;
    enum os_map result = map((size_t)range.first << HAK_GRANULE_SHIFT, bytes);
    if (result == OS_MAP_REFUSED)
        note_refusal(bytes);
    return result;
}

bool hak_region_renew(struct granule_range range)
{
    char *start = hak_granule_address(range.first);
    size_t bytes = (size_t)range.count << HAK_GRANULE_SHIFT;
    size_t offset = (size_t)range.first << HAK_GRANULE_SHIFT;
    if (!hak_os_renew(start, bytes))
        return false;
    advise_pages(offset, bytes);
    return true;
}
