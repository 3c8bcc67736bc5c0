/* SPDX-License-Identifier: MIT */
#include "region/mappings.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/limits.h"
#include "os/os.h"
#include "policy/policy_table.h"

/* A superslab that differs from its neighbours is a mapping and divides another one. */
#define MAPPINGS_PER_ADVICE 2u

static _Atomic uint32_t count;
static _Atomic uint64_t advised[HAK_SUPERSLABS_MOST / 64];

uint32_t hak_mappings_count(void)
{
    return hak_load_relaxed(&count);
}

uint32_t hak_mappings_most(void)
{
    return (uint32_t)hak_least(hak_os_mappings_most() / 100 * hak_policy_read(mapping_percent),
                               UINT32_MAX / 2);
}

bool hak_mappings_take(uint32_t more)
{
    if (hak_fetch_add_relaxed(&count, more) + more <= hak_mappings_most())
        return true;
    hak_mappings_give(more);
    return false;
}

bool hak_mappings_take_for_fence(uint64_t chance)
{
    uint64_t most = hak_os_mappings_most() / 4 * 3, sure = most / 2;
    uint64_t taken = hak_fetch_add_relaxed(&count, 1);
    if (taken < sure || (taken < most && chance % (most - sure) < most - taken))
        return true;
    hak_mappings_give(1);
    return false;
}

void hak_mappings_give(uint32_t fewer)
{
    hak_fetch_add_relaxed(&count, -fewer);
}

bool hak_mappings_admit_advice(uint32_t granule)
{
    uint32_t superslab = granule / HAK_SUPERSLAB_GRANULES;
    uint64_t bit = 1ull << superslab % 64;
    if (hak_load_relaxed(&advised[superslab / 64]) & bit)
        return true;
    if (!hak_mappings_take(MAPPINGS_PER_ADVICE))
        return false;
    /* relaxed: the bit only elects the thread that counts */
    if (hak_fetch_or_relaxed(&advised[superslab / 64], bit) & bit)
        hak_mappings_give(MAPPINGS_PER_ADVICE); /* another thread was faster */
    return true;
}

bool hak_mappings_are_divided(uint32_t first, uint32_t granules)
{
    uint32_t small = HAK_SMALL_PAGES_BYTES >> HAK_GRANULE_SHIFT; /* advised at the start */
    if (first < small && first + granules > small)
        return true;
    uint32_t end = (first + granules - 1) / HAK_SUPERSLAB_GRANULES;
    for (uint32_t i = first / HAK_SUPERSLAB_GRANULES; i <= end; i++)
        if (hak_load_relaxed(&advised[i / 64]) >> i % 64 & 1)
            return true;
    return false;
}
