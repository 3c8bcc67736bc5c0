/* SPDX-License-Identifier: MIT */
/* base/limits.h - the constants that shape hakmem.
 *
 * Owns        sizes of granule, superslab, window and of the parts of a cache. The tiny build
 *             makes everything so small that rare paths become common; the small window is for
 *             sanitizers.
 * Invariants  a superslab is a power of two of granules; a slab never spans two superslabs.
 * Tests       tests/unit/base/limits_test.c
 */
#ifndef HAK_BASE_LIMITS_H
#define HAK_BASE_LIMITS_H

#include "base/compiler.h"

#define HAK_KIB ((size_t)1 << 10)
#define HAK_MIB ((size_t)1 << 20)
#define HAK_GIB ((size_t)1 << 30)
#define HAK_TIB ((size_t)1 << 40)

/* The unit of the address map: one tag each, a byte. */
#define HAK_GRANULE_SHIFT 16
#define HAK_GRANULE_BYTES ((size_t)1 << HAK_GRANULE_SHIFT)

#if HAK_TINY
#define HAK_SUPERSLAB_GRANULES 4u
#define HAK_SLAB_BLOCKS_MAX 8u
#define HAK_BIN_SLOTS_LEAST 4u
#define HAK_BIN_SLOTS_MOST 4u
#else
#define HAK_SUPERSLAB_GRANULES 32u
#define HAK_SLAB_BLOCKS_MAX 8192u
#define HAK_BIN_SLOTS_LEAST 8u
#define HAK_BIN_SLOTS_MOST 4096u
#endif

/* What every block of more than 8 bytes is aligned to (tests/unit/slab/size_class_test.c). */
#define HAK_ORDINARY_ALIGNMENT 16

/* What every block of the size is aligned to. */
HAK_INLINE size_t hak_least_alignment(size_t bytes)
{
    return bytes <= HAK_ORDINARY_ALIGNMENT / 2 ? HAK_ORDINARY_ALIGNMENT / 2
                                               : HAK_ORDINARY_ALIGNMENT;
}

/* The unit of huge pages, of occupancy and of return. */
#define HAK_SUPERSLAB_BYTES (HAK_SUPERSLAB_GRANULES * HAK_GRANULE_BYTES)

/* The most granules one slab may have. */
#define HAK_SLAB_GRANULES_MAX (HAK_SUPERSLAB_GRANULES < 8u ? HAK_SUPERSLAB_GRANULES : 8u)

#if HAK_SMALL_WINDOW
#define HAK_WINDOW_BYTES_MAX (16 * HAK_GIB)
#else
#define HAK_WINDOW_BYTES_MAX HAK_TIB
#endif
#define HAK_WINDOW_BYTES_MIN (64 * HAK_MIB)
#define HAK_SUPERSLABS_MOST (HAK_WINDOW_BYTES_MAX / HAK_SUPERSLAB_BYTES)

/* Commit steps: small at first so that small processes stay small, then rare. */
#define HAK_COMMIT_STEP_LEAST HAK_SUPERSLAB_BYTES
#define HAK_COMMIT_STEP_MOST (64 * HAK_MIB)

/* The smallest pages that there are. */
#define HAK_PAGE_BYTES_LEAST ((size_t)4096)

/* The window starts with this much that is never backed by huge pages: small processes stay small
 * where the kernel hands huge pages to everybody. */
#define HAK_SMALL_PAGES_BYTES (16 * HAK_MIB)

/* Empty slabs stay with their heap, with so many granules together, and one of each class of blocks
 * smaller than that in any case. */
#define HAK_SPARE_GRANULES_MOST (8 * HAK_SUPERSLAB_GRANULES)
#define HAK_SPARE_BLOCK_BYTES_MAX 4096u

/* Partial slabs are kept by how full they are, in eighths. */
#define HAK_FULLNESS_BUCKETS 8u

/* What POSIX and glibc promise: no object is larger than PTRDIFF_MAX. */
#define HAK_REQUEST_BYTES_MAX ((size_t)PTRDIFF_MAX)

hak_static_assert((HAK_SUPERSLAB_GRANULES & (HAK_SUPERSLAB_GRANULES - 1)) == 0,
                  "superslabs are aligned by their size");
hak_static_assert(HAK_SUPERSLAB_GRANULES <= 32, "one 32-bit mask describes a superslab");

#endif
