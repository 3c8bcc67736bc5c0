/* SPDX-License-Identifier: MIT */
#include "misuse/zero_size.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/limits.h"
#include "conf/conf.h"
#include "os/os.h"

#define BLOCK_BYTES 16u
#define BLOCK_COUNT ((size_t)1 << 18)
#define TRIES 64 /* words that are looked at */

static _Atomic uintptr_t range; /* 0: not reserved yet */
static _Atomic size_t next;
static _Atomic uint64_t taken[BLOCK_COUNT / 64];
static _Atomic uint32_t is_exhausted; /* none was found, and none was given since: a hint */

void hak_zero_size_start(void)
{
    uintptr_t none = 0;
    if (hak_load_relaxed(&range) != 0)
        return;
    void *fresh = hak_os_reserve(BLOCK_COUNT * BLOCK_BYTES);
    /* relaxed: an address of which nothing is read */
    if (fresh != NULL &&
        !atomic_compare_exchange_strong_explicit(&range, &none, (uintptr_t)fresh,
                                                 memory_order_relaxed, memory_order_relaxed))
        hak_os_release(fresh, BLOCK_COUNT * BLOCK_BYTES);
}

static size_t offset_of(const void *block)
{
    return (uintptr_t)block - hak_load_relaxed(&range);
}

bool hak_zero_size_holds(const void *block)
{
    return hak_load_relaxed(&range) != 0 && offset_of(block) < BLOCK_COUNT * BLOCK_BYTES;
}

void *hak_zero_size_take(void)
{
    if (hak_conf_number(zero_size) != ZERO_SIZE_INACCESSIBLE)
        return NULL;
    if (HAK_UNLIKELY(hak_load_relaxed(&is_exhausted) != 0))
        return NULL;
    hak_zero_size_start();
    uintptr_t start = hak_load_relaxed(&range);
    size_t at = hak_fetch_add_relaxed(&next, 1);
    for (int i = 0; start != 0 && i < TRIES; i++) {
        _Atomic uint64_t *word = &taken[at % BLOCK_COUNT / 64];
        uint64_t free = ~hak_load_relaxed(word) & ~(uint64_t)0 << at % 64;
        if (HAK_UNLIKELY(free == 0)) {
            at += 64 - at % 64;
            continue;
        }
        at += hak_bit_lowest(free) - at % 64;
        if (i > 0)
            hak_store_relaxed(&next, at + 1); /* a race costs some a look at the same words */
        uint64_t bit = 1ull << at % 64;
        /* acquire: partner is the release in hak_zero_size_give */
        if ((atomic_fetch_or_explicit(word, bit, memory_order_acquire) & bit) == 0)
            return (void *)(start + at % BLOCK_COUNT * BLOCK_BYTES);
    }
    if (start != 0)
        hak_store_relaxed(&is_exhausted, 1);
    return NULL;
}

bool hak_zero_size_is_live(const void *block)
{
    size_t offset = offset_of(block);
    size_t at = offset / BLOCK_BYTES;
    return hak_zero_size_holds(block) && offset % BLOCK_BYTES == 0 &&
           (hak_load_relaxed(&taken[at / 64]) >> at % 64 & 1) != 0;
}

bool hak_zero_size_give(void *block)
{
    size_t offset = offset_of(block);
    size_t at = offset / BLOCK_BYTES;
    uint64_t bit = 1ull << at % 64;
    if (offset % BLOCK_BYTES != 0)
        return false;
    if (HAK_UNLIKELY(hak_load_relaxed(&is_exhausted) != 0))
        hak_store_relaxed(&is_exhausted, 0);
    /* release: partner is the acquire in hak_zero_size_take */
    return (atomic_fetch_and_explicit(&taken[at / 64], ~bit, memory_order_release) & bit) != 0;
}
