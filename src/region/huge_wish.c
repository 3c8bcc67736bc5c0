/* SPDX-License-Identifier: MIT */
#include "region/huge_wish.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "os/os.h"
#include "region/mappings.h"

static _Atomic uint64_t asked[HAK_SUPERSLABS_MOST / 64];

static void note(uint32_t superslab)
{
    hak_fetch_or_relaxed(&asked[superslab / 64], 1ull << superslab % 64);
}

/* True when it was asked for, and this thread is the one that takes it back. */
static bool forget(uint32_t superslab)
{
    _Atomic uint64_t *word = &asked[superslab / 64];
    uint64_t bit = 1ull << superslab % 64;
    /* relaxed: the bit says which thread is to tell the kernel, and guards no memory */
    return (hak_load_relaxed(word) & bit) != 0 && (hak_fetch_and_relaxed(word, ~bit) & bit) != 0;
}

static void *address_of(uint32_t superslab)
{
    return hak_granule_address(superslab * HAK_SUPERSLAB_GRANULES);
}

static bool admit(uint32_t superslab)
{
    return hak_mappings_count() < hak_mappings_most() / 2 &&
           hak_mappings_admit_advice(superslab * HAK_SUPERSLAB_GRANULES);
}

struct granule_range hak_huge_wish(struct granule_range range)
{
    uint32_t first = (range.first + HAK_SUPERSLAB_GRANULES - 1) / HAK_SUPERSLAB_GRANULES;
    uint32_t most = (range.first + range.count) / HAK_SUPERSLAB_GRANULES, end = first;
    for (; end < most && admit(end); end++)
        note(end);
    if (end <= first ||
        !hak_os_wish_huge_pages(address_of(first), (end - first) * HAK_SUPERSLAB_BYTES))
        return (struct granule_range){0, 0};
    return (struct granule_range){first * HAK_SUPERSLAB_GRANULES,
                                  (end - first) * HAK_SUPERSLAB_GRANULES};
}

void hak_huge_refuse(struct granule_range range)
{
    uint32_t end = (range.first + range.count - 1) / HAK_SUPERSLAB_GRANULES + 1;
    for (uint32_t at = range.first / HAK_SUPERSLAB_GRANULES, run; at < end; at = run + 1) {
        for (run = at; run < end && forget(run); run++)
            ;
        if (run > at)
            hak_os_refuse_huge_pages(address_of(at), (run - at) * HAK_SUPERSLAB_BYTES);
    }
}
