/* SPDX-License-Identifier: MIT */
/* region/region.h - the window: the addresses that all blocks come from.
 *
 * Owns        two claims (os/claim.h): room for guarded blocks (misuse/guarded.h) with the window
 *             behind it; and the records, each part between guard pages: the tag map, the owner
 *             map, the superslab records, the metadata area, the marks of hardened mode, the tables
 *             of fenced blocks.
 * Invariants  no address of the window or the records is mapped before it is needed. Commit is
 *             monotone: the tables of [base, base + committed) are usable for good, committed grows
 *             in superslab multiples. What is committed is mapped, but for holes, which are
 *             others', and for what hak_region_unmap took; its protection never changes.
 * Threads     anyone reads; growth is under the REGION lock; committed_bytes is published with
 *             release after the tables, so a thread that sees it may read them (acquire). Ranges
 *             that are mapped and unmapped belong to the caller.
 * Tests       tests/unit/region/region_test.c
 */
#ifndef HAK_REGION_REGION_H
#define HAK_REGION_REGION_H

#include "base/atomic.h"
#include "base/limits.h"
#include "os/lock.h"
#include "os/os.h"
#include "region/area.h"

/* Bytes of a superslab record; the superslab pool says what is in it. */
#define HAK_SUPERSLAB_RECORD_BYTES 64u

struct region {
    uintptr_t
        base; /* first byte of the window, superslab-aligned; the hot path reads these three */
    _Atomic size_t committed_bytes;
    _Atomic uint8_t *tags;            /* one byte per granule */
    size_t window_bytes;              /* addresses the tables can describe */
    _Atomic(void *) *owners;          /* one record pointer per granule */
    unsigned char *superslab_records; /* one record per superslab */
    struct area meta;                 /* addresses for metadata */
    struct area marks;                /* for misuse/mark.h; no room without hardened mode */
    uintptr_t records_start;          /* all of these lie there, but for the marks */
    uintptr_t records_end;
    unsigned char *guarded_start; /* address space for guarded blocks: slots, then fences */
    size_t guarded_bytes;
    uintptr_t fence_start; /* of these, for misuse/fence.h; nothing without the option */
    size_t fence_bytes;
    struct area fence_places; /* and its tables */
    struct area fence_runs;
    _Atomic size_t hole_bytes;   /* of these, mapped by others */
    _Atomic size_t mapped_bytes; /* of these, mapped by us */
    _Atomic size_t most_bytes;   /* that can be mapped, as far as is known */
    struct hak_lock lock;
    struct hak_lock growth_lock; /* one thread adds superslabs, for all that wait (heap/supply.h) */
    struct hak_lock purge_lock;  /* of a purge; no request waits for it while memory is left */
};
extern struct region hak_region;

/* A run of granules, by index from the base of the window. */
struct granule_range {
    uint32_t first;
    uint32_t count;
};

/* The marks of so many bytes of the window take one. */
#define HAK_MARKS_SHARE 4u

/* Guarded blocks have so many slots of so many bytes each. */
#define HAK_SAMPLED_GUARD_SLOTS 64u
HAK_INLINE size_t hak_sampled_guard_slot_bytes(void)
{
    size_t page = hak_os_page_bytes();
    return page > 16 * HAK_KIB ? page : 16 * HAK_KIB;
}

/* A run of a fence has so many pages, or a multiple; its two tables have so much room for each. */
#define HAK_FENCE_UNIT_PAGES 2u
#define HAK_FENCE_PLACE_BYTES sizeof(uint32_t)
#define HAK_FENCE_RUN_BYTES_MOST 512u

/* Finds address ranges for the window and the records; false: there is none even for the
 * smallest. */
bool hak_region_start(void);

/* Commits at least `granule_count` fresh granules in one piece that starts at a superslab; they
 * read as zero. Returns a range of count 0 when the window or the kernel has no more. */
struct granule_range hak_region_grow(size_t granule_count);

/* The same by one superslab exactly. */
struct granule_range hak_region_grow_by_superslab(void);

/* Touches the tables of what is committed. */
void hak_region_touch_tables(void);

/* Remaps granules: they read as zero and are one mapping with their neighbours again. False: the
 * kernel refused, and they must not be touched, since other mappings may be there. */
bool hak_region_renew(struct granule_range range);

/* Unmaps granules; false: the kernel refused, and they are unchanged. */
bool hak_region_unmap(struct granule_range range);

/* Maps unmapped granules again: they read as zero. Those where others have mapped something
 * meanwhile are lost. */
enum os_map hak_region_map(struct granule_range range);

/* What can be mapped of the window in all, as far as is known: RLIMIT_AS at the start, or what
 * there was when the kernel last refused. SIZE_MAX: there is no limit. */
HAK_INLINE size_t hak_region_most_bytes(void)
{
    return hak_load_relaxed(&hak_region.most_bytes);
}

/* True when more than half of that is mapped: address space must then be saved, at the cost of
 * speed. */
HAK_INLINE bool hak_region_is_tight(void)
{
    return hak_load_relaxed(&hak_region.mapped_bytes) > hak_region_most_bytes() / 2;
}

HAK_INLINE void *hak_granule_address(size_t granule)
{
    return (void *)(hak_region.base + (granule << HAK_GRANULE_SHIFT));
}

/* Bytes of the maps of what is committed: tags, owners, superslab records. */
HAK_INLINE size_t hak_region_table_bytes(void)
{
    size_t granules = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    return granules * (sizeof(uint32_t) + sizeof(void *)) +
           granules / HAK_SUPERSLAB_GRANULES * HAK_SUPERSLAB_RECORD_BYTES;
}

/* Index of the granule that holds `address`, which lies in the window. */
HAK_INLINE uint32_t hak_granule_of(const void *address)
{
    return (uint32_t)(((uintptr_t)address - hak_region.base) >> HAK_GRANULE_SHIFT);
}

/* True when `address` lies in committed memory of the window: its tag may be read. */
HAK_INLINE bool hak_region_holds(const void *address)
{
    /* acquire: partner is the release in hak_region_grow */
    return (uintptr_t)address - hak_region.base < hak_load_acquire(&hak_region.committed_bytes);
}

#endif
