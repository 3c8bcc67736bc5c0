/* SPDX-License-Identifier: MIT */
#include "slab/remote.h"

#include "base/check.h"
#include "slab/slab_give.h"

/* Publications that have begun and not ended: of all threads, and of this one with its handlers. */
static _Atomic uint32_t under_way;
static HAK_TLS uint32_t own_under_way;

void hak_remote_publish(struct slab *slab, uint32_t word_index, uint64_t mask)
{
    uint32_t count = hak_bit_count(mask);
    own_under_way++;
    /* relaxed: the addition below releases it, so that a copy of the process that has the one has
     * the other */
    hak_fetch_add_relaxed(&under_way, 1);
    /* acq_rel: pairs with the collector's subtraction. The token is acquired when the count was 0,
     * so that the last collector is done with the link; the bits below are ordered after the
     * count. */
    uint32_t before = hak_fetch_add_acq_rel(&slab->remote_count, count);
    /* release: partner is the exchange in hak_remote_collect */
    uint64_t old = hak_fetch_or_release(&hak_slab_remote_words(slab)[word_index], mask);
    if (HAK_UNLIKELY(old & mask))
        hak_slab_report(slab, word_index, old & mask, "double free",
                        "already freed by another thread");
    if (before == 0)
        hak_pending_push(slab);
    /* acq_rel: after the push, as a copy of the process sees it. Relaxed suffices for the reader,
     * hak_remote_forget_others: it runs in the copy, whose memory the kernel made before. The
     * acquire half has no partner. */
    hak_fetch_sub_acq_rel(&under_way, 1);
    own_under_way--;
}

void hak_pending_push(struct slab *slab)
{
    /* acquire: partner is the release store of a new owner (hak_heap_receive) */
    struct slab_owner *owner = hak_load_acquire(&slab->owner);
    struct slab *first = hak_load_relaxed(&owner->pending);
    do {
        hak_store_relaxed(&slab->pending_next, first);
        /* release: partner is the exchange in hak_pending_take_all; the link goes first */
    } while (!hak_cas_release(&owner->pending, &first, slab));
}

void hak_pending_restore(struct slab *slab)
{
    _Atomic uint64_t *remote = hak_slab_remote_words(slab);
    uint32_t count = 0;
    for (uint32_t i = 0; i < slab->word_count; i++)
        count += hak_bit_count(hak_load_relaxed(&remote[i]));
    hak_store_relaxed(&slab->remote_count, count);
    if (count != 0)
        hak_pending_push(slab);
}

bool hak_remote_is_own(void)
{
    return own_under_way != 0;
}

bool hak_remote_forget_others(void)
{
    bool is_torn = hak_load_relaxed(&under_way) != own_under_way;
    hak_store_relaxed(&under_way, own_under_way);
    return is_torn;
}

void hak_remote_forget_own(void)
{
    /* acq_rel: as in hak_remote_publish */
    hak_fetch_sub_acq_rel(&under_way, own_under_way);
    own_under_way = 0;
}

struct slab *hak_pending_take_all(struct slab_owner *owner)
{
    if (hak_load_relaxed(&owner->pending) == NULL)
        return NULL;
    /* acquire: partner is the release in hak_pending_push */
    return hak_exchange_acquire(&owner->pending, NULL);
}

uint32_t hak_remote_collect(struct slab *slab, bool *is_done)
{
    _Atomic uint64_t *remote = hak_slab_remote_words(slab);
    uint32_t expected = hak_load_relaxed(&slab->remote_count);
    uint32_t collected = 0;
    for (uint32_t i = 0; i < slab->word_count && collected < expected; i++) {
        if (hak_load_relaxed(&remote[i]) == 0)
            continue;
        /* acquire: partner is the fetch_or in hak_remote_publish */
        uint64_t bits = hak_exchange_acquire(&remote[i], 0);
        uint32_t count = hak_bit_count(bits);
        if (count != 0)
            hak_slab_give_word(slab, i, bits, count);
        collected += count;
    }
    /* acq_rel: pairs with the addition in hak_remote_publish; after it the link may be written by
     * the next holder of the token, so nothing here touches the slab's link again when done. */
    uint32_t left = hak_fetch_sub_acq_rel(&slab->remote_count, collected) - collected;
    *is_done = left == 0;
    return collected;
}
