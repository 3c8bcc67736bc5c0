/* SPDX-License-Identifier: MIT */
/* region/region.h - the window: all address space that blocks ever come from.
 *
 * Owns        two reservations: room for guarded blocks (harden/guarded.h) with the window behind
 *             it; and at a random place the records, each part between pages without access: the
 *             tag map, the owner map, the superslab records and the metadata area.
 * Invariants  commit is monotone: [base, base + committed) is readable and writable for good, and
 *             so are the table entries of its granules. committed grows in superslab multiples.
 *             Memory is never decommitted by changing its protection, only purged.
 * Threads     anyone reads; growth is under the REGION lock; committed_bytes is published with
 *             release after the tables, so that who sees it may read the tables (acquire).
 * Tests       tests/unit/region/region_test.c
 */
#ifndef HAK_REGION_REGION_H
#define HAK_REGION_REGION_H

#include "base/atomic.h"
#include "base/limits.h"
#include "os/lock.h"

/* Bytes of a superslab record; the depot says what is in it. */
#define HAK_SUPERSLAB_RECORD_BYTES 64u

struct region {
    uintptr_t base;                   /* first byte of the window, superslab-aligned */
    size_t window_bytes;              /* address space the tables can describe */
    _Atomic uint32_t *tags;           /* one word per granule */
    _Atomic(void *) *owners;          /* one record pointer per granule */
    unsigned char *superslab_records; /* one record per superslab */
    unsigned char *meta_start;        /* address space for metadata */
    size_t meta_bytes;
    uintptr_t records_start; /* all of these lie there */
    uintptr_t records_end;
    unsigned char *guarded_start; /* address space for guarded blocks */
    size_t guarded_bytes;
    bool is_reserved; /* false: the window is mapped bit by bit where nothing else is */
    _Atomic size_t committed_bytes;
    _Atomic size_t hole_bytes; /* of these, mapped by others */
    struct hak_lock lock;
    struct hak_lock purge_lock; /* who purges what is free; never awaited while memory is left */
};
extern struct region hak_region;

/* A run of granules, by index from the base of the window. */
struct granule_range {
    uint32_t first;
    uint32_t count;
};

/* Guarded blocks have so many slots of so many bytes each. */
#define HAK_GUARDED_SLOTS 64u
HAK_INLINE size_t hak_guarded_slot_bytes(void)
{
    size_t page = hak_os_page_bytes();
    return page > 16 * HAK_KIB ? page : 16 * HAK_KIB;
}

/* Reserves the address space; false when the kernel refuses even the smallest. */
bool hak_region_start(void);

/* Commits at least `granule_count` fresh granules in one piece that starts at a superslab; they
 * read as zero. Returns a range of count 0 when the window or the kernel has no more. */
struct granule_range hak_region_grow(size_t granule_count);

/* Maps granules anew: they read as zero and are one mapping with their neighbours again. False when
 * the kernel refused; nobody may touch them then, for others may be mapped there. */
bool hak_region_renew(struct granule_range range);

/* True when more than half of the window is committed, which only happens where it is small:
 * address space must then be shared more closely than speed would have it. */
HAK_INLINE bool hak_region_is_tight(void)
{
    return hak_load_relaxed(&hak_region.committed_bytes) > hak_region.window_bytes / 2;
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
