/* SPDX-License-Identifier: MIT */
#include "process/fork.h"

#include "heap/cache_list.h"
#include "heap/heaps.h"
#include "heap/private_heap.h"
#include "heap/remote_recount.h"
#include "heap/rooms.h"
#include "misuse/fence.h"
#include "os/at_fork.h"
#include "os/confine.h"
#include "os/fault_watch.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/thread_exit.h"
#include "process/mend.h"
#include "region/meta.h"
#include "slab/superslab_pool.h"
#include "span/span_lock.h"

/* fork waits so long for another thread to leave a slow path. */
#define FORK_PATIENCE_MS 20

struct hak_lock *const hak_fork_locks[HAK_FORK_LOCKS] = {
    &hak_region.growth_lock, &hak_region.purge_lock, /* no child is without what is being purged */
    &hak_pool_lock,          &hak_span_locks[0].lock, &hak_region.lock,
    &hak_meta_lock,          &hak_meta_growth_lock,   &hak_fence_lock,
};

#define MENDERS_MOST 4u
static _Atomic(void (*)(void)) menders[MENDERS_MOST];

static void before_fork(void)
{
    hak_copy_look();
    if (!hak_lock_begin_fork())
        return;
    /* A purge in progress, which may take long: before other threads have to wait. */
    hak_lock_take(&hak_region.purge_lock);
    hak_lock_give(&hak_region.purge_lock);
    hak_lock_take(&hak_caches_lock_word);
    hak_heaps_stop(FORK_PATIENCE_MS);
    hak_caches_await(hak_own_cache(), FORK_PATIENCE_MS);
    hak_private_lock_all(FORK_PATIENCE_MS);
    for (uint32_t i = 0; i < HAK_FORK_LOCKS; i++) {
        if (i == HAK_LOCK_AFTER_SETS)
            hak_span_lock_sets();
        hak_lock_take(hak_fork_locks[i]);
    }
    hak_lock_note_all();
}

static void after_fork_in_parent(void)
{
    if (hak_lock_is_fork_blind()) {
        hak_lock_end_blind_fork();
        return;
    }
    hak_lock_forget_all();
    for (uint32_t i = HAK_FORK_LOCKS; i-- > 0;) {
        hak_lock_give(hak_fork_locks[i]);
        if (i == HAK_LOCK_AFTER_SETS)
            hak_span_unlock_sets();
    }
    hak_private_unlock_all();
    hak_heaps_go_on();
    hak_lock_give(&hak_caches_lock_word);
}

static void call_menders(void)
{
    for (uint32_t i = 0; i < MENDERS_MOST; i++) {
        void (*mender)(void) = hak_load_relaxed(&menders[i]);
        if (mender != NULL)
            mender();
    }
}

/* This thread was interrupted in none of hakmem's sections and slow paths. */
static bool is_outside(void)
{
    return (hak_lock_held & ~HAK_LOCK_NO_RANKS) == 0 && !hak_heap_is_held() && !hak_remote_is_own();
}

/* Collects remote frees that other threads, or lost heaps, had not finished. An operation of this
 * thread that the fork interrupted continues with the blocks it holds. */
static void recount_remote(bool is_any_lost)
{
    bool is_torn = hak_remote_forget_others();
    if ((is_torn || is_any_lost) && is_outside())
        hak_remote_recount();
}

/* The caller is the thread that copied the process: the first of the copy. */
static void settle_as_copier(void)
{
    bool is_any_lost = hak_heaps_settle(true);
    hak_mend_all();
    hak_caches_settle(hak_own_cache());
    recount_remote(is_any_lost);
}

void hak_fork_settle(void)
{
    uint32_t held = hak_lock_begin_settling();
    if (hak_thread_is_first()) {
        settle_as_copier();
    } else {
        hak_heaps_settle(false);
        hak_mend_all();
    }
    hak_lock_end_settling(held);
    hak_os_ask_reset();
    hak_os_fault_watch_reset();
    call_menders();
}

static void after_fork_in_child(void)
{
    hak_os_ask_reset();
    hak_os_fault_watch_reset();
    hak_os_start();
    hak_copy_mark_clear();
    if (hak_lock_is_fork_blind()) {
        hak_lock_end_blind_fork();
        hak_copy_look();
        return;
    }
    hak_lock_forget_all();
    for (uint32_t i = 0; i < HAK_FORK_LOCKS; i++)
        hak_lock_reset(hak_fork_locks[i]);
    hak_span_reset_sets();
    hak_private_restart_in_child();
    bool is_any_lost = hak_heaps_restart_in_child();
    hak_caches_restart_in_child(hak_own_cache());
    recount_remote(is_any_lost);
    hak_copy_mark_settled();
    hak_lock_end_fork_in_child();
    call_menders();
}

void hak_process_on_fork(void (*mender)(void))
{
    for (uint32_t i = 0; i < MENDERS_MOST; i++) {
        void (*none)(void) = NULL;
        /* relaxed: partner is the load in a child, which has what its parent had */
        if (atomic_compare_exchange_strong_explicit(&menders[i], &none, mender,
                                                    memory_order_relaxed, memory_order_relaxed))
            return;
    }
}

void hak_fork_register(void)
{
    hak_os_at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
}
