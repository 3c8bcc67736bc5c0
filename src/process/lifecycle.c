/* SPDX-License-Identifier: MIT */
#include "process/lifecycle.h"

#include "base/check.h"
#include "conf/conf.h"
#include "heap/cache_list.h"
#include "heap/heaps.h"
#include "heap/private_heap.h"
#include "heap/settings.h"
#include "heap/tokens.h"
#include "misuse/harden.h"
#include "os/confine.h"
#include "os/crash.h"
#include "os/dlopen.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/stderr.h"
#include "os/thread_exit.h"
#include "policy/policy_table.h"
#include "region/meta.h"
#include "slab/depot.h"
#include "span/span_heap.h"

#include <pthread.h>

/* The destructor puts itself off to a later round, so that other libraries' destructors still find
 * the thread's cache. POSIX promises four rounds. */
#define DESTRUCTOR_ROUNDS 3
/* fork waits so long for another thread to leave a slow path. */
#define FORK_PATIENCE_MS 20

enum process_state { PROCESS_UNSTARTED, PROCESS_STARTED, PROCESS_FAILED };

static HAK_TLS uint32_t destructor_rounds;
static struct hak_lock start_lock = HAK_LOCK_START_WITH(HAK_LOCK_START);
static _Atomic uint32_t process_state;
static bool has_exit_key;
static _Atomic(void (*)(void)) mend_in_child;
_Atomic bool hak_jumps_matter;

/* Mends what a lock protects and gives it back, for any lock that nothing of one's own needs. */
static void mend(struct hak_lock *lock)
{
    if (hak_lock_is_left(lock))
        hak_lock_give(lock);
}

static void mend_all(void)
{
    hak_meta_mend();
    mend(&hak_region.lock); /* what was mapped last may be lost */
    hak_span_mend();
    hak_depot_mend();
    mend(&hak_region.purge_lock); /* what was being purged is lost */
    hak_private_mend();
    hak_heaps_mend_table();
    hak_caches_mend();
    mend(&start_lock);
}

void hak_thread_mend(void)
{
    hak_lock_note_handler();
    mend_all();
}

/* Slow paths that are left by jumps cost what they held, so from now on they are not
 * interrupted any more. */
static void note_jump(void)
{
    hak_lock_note_handler();
    hak_store_relaxed(&hak_jumps_matter, true);
}

void hak_thread_mend_heaps(bool is_over)
{
    if (hak_heaps_mend(is_over))
        note_jump();
    if (is_over)
        hak_remote_forget_own();
}

static void on_thread_exit(void *value)
{
    if (++destructor_rounds < DESTRUCTOR_ROUNDS && hak_thread_exit_set(value))
        return;
    hak_copy_look();
    struct cache *cache = hak_own_cache();
    if (hak_lock_is_inside()) /* the thread was cancelled there */
        hak_thread_mend();
    hak_thread_mend_heaps(true);
    hak_os_crash_thread_end();
    if (cache == NULL || hak_cache_is_processors(cache))
        return; /* what the thread has left lies with the processor */
    hak_here = &hak_here_never;
    if (hak_cache_state(cache) == CACHE_IDLE) {
        hak_cache_return(cache);
    } else { /* the thread left a slow path by a jump, or was cancelled there */
        note_jump();
        hak_cache_lose(cache);
    }
}

static void before_fork(void)
{
    hak_copy_look();
    if (!hak_lock_begin_fork())
        return;
    hak_caches_lock();
    hak_heaps_stop(FORK_PATIENCE_MS);
    hak_caches_await(hak_own_cache(), FORK_PATIENCE_MS);
    hak_private_lock_all(FORK_PATIENCE_MS);
    hak_lock_take(&hak_region.purge_lock); /* no child is without what is being purged */
    hak_depot_lock();
    hak_span_lock();
    hak_lock_take(&hak_region.lock);
    hak_meta_lock();
    hak_lock_note_all();
}

static void after_fork_in_parent(void)
{
    if (hak_lock_is_fork_blind()) {
        hak_lock_end_blind_fork();
        return;
    }
    hak_lock_forget_all();
    hak_meta_unlock();
    hak_lock_give(&hak_region.lock);
    hak_span_unlock();
    hak_depot_unlock();
    hak_lock_give(&hak_region.purge_lock);
    hak_private_unlock_all();
    hak_heaps_go_on();
    hak_caches_unlock();
}

static void reset_locks(void)
{
    hak_meta_lock_reset();
    hak_lock_reset(&hak_region.lock);
    hak_span_lock_reset();
    hak_depot_lock_reset();
    hak_lock_reset(&hak_region.purge_lock);
    hak_private_restart_in_child();
}

static void call_mender(void)
{
    void (*mender)(void) = hak_load_relaxed(&mend_in_child);
    if (mender != NULL)
        mender();
}

/* This thread was interrupted in none of hakmem's sections and slow paths. */
static bool is_outside(void)
{
    return (hak_lock_held & ~HAK_LOCK_NO_RANKS) == 0 && !hak_heap_is_held() && !hak_remote_is_own();
}

/* Frees that were under way in other threads, or in heaps that are lost, come home all the same.
 * What this thread was interrupted in goes on with what it has in its hands. */
static void restore_tokens(bool is_any_lost)
{
    bool is_torn = hak_remote_forget_others();
    if ((is_torn || is_any_lost) && is_outside())
        hak_tokens_restore();
}

/* The caller is the thread that copied the process: the first of the copy. */
static void settle_as_copier(void)
{
    bool is_any_lost = hak_heaps_settle(true);
    mend_all();
    hak_caches_settle(hak_own_cache());
    restore_tokens(is_any_lost);
}

static void settle_copy(void)
{
    hak_lock_begin_settling();
    if (hak_thread_is_first()) {
        settle_as_copier();
    } else {
        hak_heaps_settle(false);
        mend_all();
    }
    hak_lock_end_settling();
    hak_os_ask_reset();
    call_mender();
}

static void after_fork_in_child(void)
{
    hak_os_ask_reset();
    hak_os_start();
    hak_copy_mark_clear();
    if (hak_lock_is_fork_blind()) {
        hak_lock_end_blind_fork();
        hak_copy_look();
        return;
    }
    hak_lock_forget_all();
    reset_locks();
    bool is_any_lost = hak_heaps_restart_in_child();
    hak_caches_restart_in_child(hak_own_cache());
    restore_tokens(is_any_lost);
    hak_copy_mark_settled();
    hak_lock_end_fork_in_child();
    call_mender();
}

void hak_process_on_fork(void (*mender)(void))
{
    /* relaxed: partner is the load in a child, which has what its parent had */
    hak_store_relaxed(&mend_in_child, mender);
}

/* Options that are numbers of the policy, after what the price says to the others. */
static void apply_conf(void)
{
    int64_t price = hak_conf_number(price);
#define X(row, speed, even, compact)                                                               \
    hak_store_relaxed(&hak_policy.row, ((const uint64_t[]){speed, even, compact})[price]);
    HAK_POLICY_PRICE_TABLE(X)
#undef X
#define X(option, row) hak_store_relaxed(&hak_policy.row, (uint64_t)hak_conf_number(option));
    HAK_POLICY_OPTION_TABLE(X)
#undef X
    if ((hak_conf_number(learn) & LEARN_BIG_CACHE) == 0)
        hak_store_relaxed(&hak_policy.big_cache_episodes, HAK_TIB); /* so many never come back */
    if (price == PRICE_SPEED)
        hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0);
    hak_store_relaxed(&hak_dlopen_binds_deeply, hak_conf_number(deepbind) != 0);
}

static void start_locked(void)
{
    hak_os_start();
    hak_copy_mark_start(settle_copy);
    hak_os_stderr_start();
    hak_conf_start();
    apply_conf();
    if (!hak_region_start()) {
        hak_store_release(&process_state, PROCESS_FAILED);
        return;
    }
    hak_settings_start();
    hak_harden_start();
    hak_caches_start();
    /* Before any thread can have a cache, which its end must return; libc does not allocate for
     * it. */
    has_exit_key = hak_thread_exit_start(on_thread_exit);
    /* release: partner is the acquire in hak_process_start */
    hak_store_release(&process_state, PROCESS_STARTED);
}

/* Handlers may allocate when they are registered, so they come when the allocator works. */
static void register_handlers(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

bool hak_process_start(void)
{
    if (hak_load_acquire(&process_state) == PROCESS_UNSTARTED) {
        if (hak_lock_is_inside()) /* a handler interrupted the start */
            return false;
        bool is_first = false;
        hak_lock_take(&start_lock);
        if (hak_load_relaxed(&process_state) == PROCESS_UNSTARTED) {
            start_locked();
            is_first = true;
        }
        hak_lock_give(&start_lock);
        if (is_first)
            register_handlers();
    }
    return hak_load_acquire(&process_state) == PROCESS_STARTED;
}

bool hak_process_is_hardened(void)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_harden) == HARDEN_UNSTARTED) && !hak_process_start())
        return false;
    return hak_harden_has(HARDEN_EXACT);
}

/* Its slot's cache; a thread that ends without notice would keep it, and does without. */
static void take_slot(void)
{
    bool is_noticed = has_exit_key || hak_thread_is_first();
    struct cache *cache = is_noticed ? hak_cache_take() : NULL;
    if (cache != NULL)
        hak_here = &cache->here;
    else if (!is_noticed || hak_caches_are_full())
        hak_here = &hak_here_never;
}

static void start_thread(void)
{
    struct rseq_area *area = hak_caches_reason() == RSEQ_PROCESSOR ? hak_os_rseq_area() : NULL;
    if (area != NULL)
        hak_here = area;
    else
        take_slot();
    if (hak_here == &hak_here_unasked || hak_here == &hak_here_never)
        return; /* out of memory, where the next call asks again; or of slots */
    hak_stat_global_add(threads_started, 1);
    hak_thread_exit_set(hak_here);
    hak_os_crash_thread_begin();
}

struct cache *hak_thread_cache(void)
{
    struct cache *cache = hak_own_cache();
    if (cache != NULL || hak_here == &hak_here_never || hak_lock_is_inside() ||
        hak_heap_is_held() || !hak_process_start())
        return cache;
    if (hak_here == &hak_here_unasked)
        start_thread();
    uint32_t id = hak_here_id();
    return hak_id_is_processor(id) ? hak_cache_of_processor() : hak_own_cache();
}

void hak_thread_be_apart(void)
{
    hak_here = &hak_here_never;
}

struct cache *hak_thread_replace_cache(struct cache *cache)
{
    hak_here = &hak_here_unasked;
    note_jump();
    hak_remote_forget_own();
    hak_cache_lose(cache);
    return hak_thread_cache();
}
