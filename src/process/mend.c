/* SPDX-License-Identifier: MIT */
#include "process/mend.h"

#include "heap/cache_list.h"
#include "heap/heaps.h"
#include "heap/private_heap.h"
#include "misuse/fence.h"
#include "region/meta.h"
#include "slab/superslab_pool.h"
#include "span/span_heap.h"

struct hak_lock hak_start_lock = HAK_LOCK_START_WITH(HAK_LOCK_START);
_Atomic bool hak_jumps_matter;

/* Mends what a lock protects and gives it back, for any lock that nothing of one's own needs. */
static void mend(struct hak_lock *lock)
{
    if (hak_lock_is_left(lock))
        hak_lock_give(lock);
}

void hak_mend_all(void)
{
    mend(&hak_fence_lock);
    mend(&hak_meta_growth_lock);
    mend(&hak_meta_lock);
    mend(&hak_region.lock); /* what was mapped last may be lost */
    hak_span_mend();
    hak_pool_mend();
    mend(&hak_region.purge_lock);  /* what was being purged is lost */
    mend(&hak_region.growth_lock); /* what was being added may be lost */
    hak_private_mend();
    hak_heaps_mend_table();
    hak_caches_mend();
    mend(&hak_start_lock);
}

void hak_thread_mend(void)
{
    hak_lock_note_handler();
    hak_mend_all();
}

void hak_note_jump(void)
{
    hak_lock_note_handler();
    hak_store_relaxed(&hak_jumps_matter, true);
}

void hak_thread_mend_heaps(bool is_over)
{
    if (hak_heaps_mend(is_over))
        hak_note_jump();
    if (is_over)
        hak_remote_forget_own();
}
