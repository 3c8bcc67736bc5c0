/* SPDX-License-Identifier: MIT */
#include "region/region.h"

#include "base/bits.h"
#include "base/check.h"
#include "conf/conf.h"
#include "os/os.h"
#include "region/tag_map.h"

/* A locked-memory limit below this is the system's default, which no program that locks its whole
 * heap can live with; above, somebody chose it, and unused reservations must not count against
 * it. */
#define LOCK_LIMIT_CHOSEN (64 * HAK_MIB)
/* Metadata may take this share of the window: the smallest blocks' records need 1/28 of their
 * slab. */
#define META_SHARE 16
#define HOLES_SKIPPED_MOST 4096

struct region hak_region = {.lock = HAK_LOCK_START_WITH(HAK_LOCK_REGION),
                            .purge_lock = HAK_LOCK_START_WITH(HAK_LOCK_PURGE)};

/* Where each part of the records starts, from the start of their reservation. */
struct layout {
    size_t tags;
    size_t owners;
    size_t superslabs;
    size_t meta;
    size_t end;
};

/* Tables are committed in steps of this many bytes. */
static size_t table_step(void)
{
    return hak_most(hak_os_page_bytes(), 16 * HAK_KIB);
}

/* Each slot is followed by a page without access. */
static size_t guarded_bytes(void)
{
    size_t slot = hak_guarded_slot_bytes() + hak_os_page_bytes();
    return hak_conf_number(guard_rate) == 0 ? 0 : HAK_GUARDED_SLOTS * slot;
}

/* Each part lies between memory without access. */
static struct layout layout_of(size_t window_bytes, size_t meta_bytes)
{
    size_t guard = hak_os_page_bytes();
    size_t step = table_step();
    size_t granules = window_bytes >> HAK_GRANULE_SHIFT;
    size_t records = granules / HAK_SUPERSLAB_GRANULES * HAK_SUPERSLAB_RECORD_BYTES;
    struct layout at;
    at.tags = guard;
    at.owners = at.tags + hak_align_up(granules * sizeof(uint32_t), step) + guard;
    at.superslabs = at.owners + hak_align_up(granules * sizeof(void *), step) + guard;
    at.meta = at.superslabs + hak_align_up(records, step) + guard;
    at.end = at.meta + hak_align_up(meta_bytes, guard) + guard;
    return at;
}

static void adopt_layout(unsigned char *start, struct layout at, size_t meta_bytes)
{
    hak_region.tags = (_Atomic uint32_t *)(void *)(start + at.tags);
    hak_region.owners = (_Atomic(void *) *)(void *)(start + at.owners);
    hak_region.superslab_records = start + at.superslabs;
    hak_region.meta_start = start + at.meta;
    hak_region.meta_bytes = meta_bytes;
    hak_region.records_start = (uintptr_t)start;
    hak_region.records_end = (uintptr_t)start + at.end;
    hak_os_refuse_huge_pages(start, at.end);
}

/* The slots of guarded blocks and the window, and the records somewhere else: who knows an address
 * of a block does not know theirs. Where address space is scarce all but the window stays reserved,
 * and the window is mapped where the trial showed room. */
static bool start_both(size_t window_bytes, size_t meta_bytes, bool is_reserved)
{
    size_t guard = hak_os_page_bytes(), front = guard + guarded_bytes() + guard;
    size_t behind = window_bytes + HAK_SUPERSLAB_BYTES;
    struct layout at = layout_of(window_bytes, meta_bytes);
    unsigned char *start = hak_os_reserve(front + behind);
    if (start == NULL)
        return false;
    unsigned char *records = hak_os_reserve_apart(at.end);
    if (records == NULL) {
        hak_os_release(start, front + behind);
        return false;
    }
    if (!is_reserved)
        hak_os_release(start + front, behind);
    adopt_layout(records, at, meta_bytes);
    hak_region.guarded_start = start + guard;
    hak_region.guarded_bytes = guarded_bytes();
    hak_region.base = hak_align_up((uintptr_t)start + front, HAK_SUPERSLAB_BYTES);
    hak_region.window_bytes = window_bytes;
    hak_region.is_reserved = is_reserved;
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
    size_t address_limit = hak_os_address_limit_bytes();
    size_t lock_limit = hak_os_lock_limit_bytes();
    size_t window = HAK_WINDOW_BYTES_MAX;
    size_t meta_most = SIZE_MAX;
    bool is_scarce = false;
    if (address_limit < 4 * window) {
        window = hak_align_up(address_limit / 4 * 3, HAK_SUPERSLAB_BYTES);
        is_scarce = true;
    }
    if (lock_limit >= LOCK_LIMIT_CHOSEN && lock_limit < SIZE_MAX / 2048) {
        /* Most programs with such a limit never lock: their window stays wide. Its tables take less
         * than a quarter of the limit, the first piece of metadata an eighth. */
        window = hak_least(window, hak_align_up(lock_limit * 1024, HAK_SUPERSLAB_BYTES));
        meta_most = hak_align_up(lock_limit / 8, HAK_GRANULE_BYTES);
        is_scarce = true;
    }
    for (window = hak_clamp(window, HAK_WINDOW_BYTES_MIN, HAK_WINDOW_BYTES_MAX);
         window >= HAK_WINDOW_BYTES_MIN; window = hak_align_down(window / 2, HAK_SUPERSLAB_BYTES)) {
        if (start_both(window, hak_least(window / META_SHARE, meta_most), !is_scarce)) {
            if (!is_scarce)
                advise_pages(0, window);
            return true;
        }
    }
    return false;
}

/* Makes one table, usable up to `old_bytes`, usable up to `new_bytes`. */
static bool table_commit(void *table, size_t old_bytes, size_t new_bytes)
{
    size_t old_end = hak_align_up(old_bytes, table_step());
    size_t new_end = hak_align_up(new_bytes, table_step());
    return new_end <= old_end || hak_os_commit((char *)table + old_end, new_end - old_end);
}

static bool tables_commit(size_t old_granules, size_t new_granules)
{
    size_t old_records = old_granules / HAK_SUPERSLAB_GRANULES * HAK_SUPERSLAB_RECORD_BYTES;
    size_t new_records = new_granules / HAK_SUPERSLAB_GRANULES * HAK_SUPERSLAB_RECORD_BYTES;
    return table_commit((void *)hak_region.tags, old_granules * sizeof(uint32_t),
                        new_granules * sizeof(uint32_t)) &&
           table_commit((void *)hak_region.owners, old_granules * sizeof(void *),
                        new_granules * sizeof(void *)) &&
           table_commit(hak_region.superslab_records, old_records, new_records);
}

/* Commits `bytes` at `offset` of the window with their table entries. */
static bool piece_commit(size_t offset, size_t bytes)
{
    void *start = (void *)(hak_region.base + offset);
    return hak_region.is_reserved ? hak_os_commit(start, bytes)
                                  : hak_os_commit_unreserved(start, bytes);
}

/* Tries `bytes` at the end of what is committed; where the address space is shared, steps over what
 * others have mapped there. Returns the offset of the piece, or SIZE_MAX. */
static size_t piece_find(size_t committed, size_t bytes)
{
    size_t tries = hak_region.is_reserved ? 1 : HOLES_SKIPPED_MOST;
    for (size_t offset = committed; tries > 0; tries--, offset += HAK_SUPERSLAB_BYTES) {
        if (bytes > hak_region.window_bytes - offset)
            return SIZE_MAX;
        if (!tables_commit(committed >> HAK_GRANULE_SHIFT, (offset + bytes) >> HAK_GRANULE_SHIFT))
            return SIZE_MAX;
        if (piece_commit(offset, bytes))
            return offset;
    }
    return SIZE_MAX;
}

struct granule_range hak_region_grow(size_t granule_count)
{
    struct granule_range range = {0, 0};
    size_t least = hak_align_up(granule_count, HAK_SUPERSLAB_GRANULES) << HAK_GRANULE_SHIFT;
    hak_lock_take(&hak_region.lock);
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    size_t left = hak_region.window_bytes - committed;
    size_t step = hak_align_down(committed / 8, HAK_SUPERSLAB_BYTES);
    size_t wished = hak_clamp(step, HAK_COMMIT_STEP_LEAST, HAK_COMMIT_STEP_MOST);
    wished = hak_most(least, hak_least(wished, left));
    size_t offset = least > left ? SIZE_MAX : piece_find(committed, wished);
    if (offset == SIZE_MAX && wished > least && least <= left) {
        wished = least;
        offset = piece_find(committed, wished);
    }
    if (offset != SIZE_MAX) {
        range.first = (uint32_t)(offset >> HAK_GRANULE_SHIFT);
        range.count = (uint32_t)(wished >> HAK_GRANULE_SHIFT);
        size_t hole = committed >> HAK_GRANULE_SHIFT;
        hak_tag_write(hole, range.first - hole, HAK_TAG_HOLE);
        hak_counter_add(&hak_region.hole_bytes, (range.first - hole) << HAK_GRANULE_SHIFT);
        if (!hak_region.is_reserved)
            advise_pages(offset, wished);
        /* release: partner is the acquire in hak_region_holds */
        hak_store_release(&hak_region.committed_bytes, offset + wished);
    }
    hak_lock_give(&hak_region.lock);
    return range;
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
