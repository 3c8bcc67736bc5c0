/* SPDX-License-Identifier: MIT */
#include "harden/mark.h"

#include "base/bits.h"
#include "os/os.h"

#include <string.h>

/* The marks become usable in steps: of 4 MiB of the window at least. */
#define STEP_BYTES (4 * HAK_MIB)

#define ALIGNMENT_AT 6
#define BYTES_AT 12
#define BYTES_BITS 41
#define GUARDED_AT 53
#define GENERATION_AT 54
#define GENERATION_BITS 10

hak_static_assert(BYTES_AT + BYTES_BITS == GUARDED_AT && HAK_WINDOW_BYTES_MAX >> BYTES_BITS == 0,
                  "a mark has room for all sizes");

static _Atomic uint64_t *marks;
/* Of the window, with usable marks; only ever larger. */
static _Atomic size_t covered_bytes;

static size_t marks_bytes(size_t window_bytes)
{
    return (window_bytes >> HAK_MARK_SHIFT) * sizeof *marks;
}

bool hak_mark_start(void)
{
    size_t bytes = hak_align_up(marks_bytes(hak_region.window_bytes), HAK_GRANULE_BYTES);
    marks = hak_os_reserve(bytes);
    if (marks == NULL)
        return false;
    hak_os_refuse_huge_pages((void *)marks, bytes);
    return true;
}

/* Two threads may commit the same steps at the same time: the second changes nothing. */
static bool cover(size_t end_bytes)
{
    size_t covered = hak_load_relaxed(&covered_bytes);
    if (HAK_LIKELY(end_bytes <= covered))
        return true;
    size_t end = hak_least(hak_align_up(end_bytes, STEP_BYTES), hak_region.window_bytes);
    if (!hak_os_commit((char *)marks + marks_bytes(covered), marks_bytes(end - covered)))
        return false;
    while (covered < end)
        /* release: partner is the acquire in hak_mark_at */
        if (hak_cas_release(&covered_bytes, &covered, end))
            break;
    return true;
}

bool hak_mark_cover(size_t granule, size_t count)
{
    return cover((granule + count) << HAK_GRANULE_SHIFT);
}

bool hak_mark_clear(size_t granule, size_t count)
{
    if (!hak_mark_cover(granule, count))
        return false;
    memset((char *)marks + marks_bytes(granule << HAK_GRANULE_SHIFT), 0,
           marks_bytes(count << HAK_GRANULE_SHIFT));
    return true;
}

_Atomic uint64_t *hak_mark_at(const void *block)
{
    size_t offset = (uintptr_t)block - hak_region.base;
    /* acquire: partner is the release in cover */
    if (HAK_UNLIKELY(offset >= hak_load_acquire(&covered_bytes)))
        return NULL;
    return &marks[offset >> HAK_MARK_SHIFT];
}

uint64_t hak_mark_pack(struct mark mark)
{
    uint64_t generation = mark.generation & hak_bit_low_mask(GENERATION_BITS);
    return generation << GENERATION_AT | (uint64_t)mark.is_guarded << GUARDED_AT |
           (uint64_t)mark.bytes << BYTES_AT | (uint64_t)mark.alignment_shift << ALIGNMENT_AT |
           (uint64_t)mark.kind << 2 | mark.state;
}

struct mark hak_mark_unpack(uint64_t word)
{
    return (struct mark){
        .generation = (uint32_t)(word >> GENERATION_AT),
        .is_guarded = (word >> GUARDED_AT & 1) != 0,
        .bytes = word >> BYTES_AT & hak_bit_low_mask(BYTES_BITS),
        .alignment_shift = (uint8_t)(word >> ALIGNMENT_AT & 63),
        .kind = (uint8_t)(word >> 2 & 15),
        .state = (uint8_t)(word & 3),
    };
}
