/* SPDX-License-Identifier: MIT */
#include "process/start.h"

#include "base/check.h"
#include "conf/conf.h"
#include "heap/cache_list.h"
#include "heap/draw.h"
#include "heap/heaps.h"
#include "heap/settings.h"
#include "misuse/fence.h"
#include "misuse/harden.h"
#include "os/confine.h"
#include "os/crash.h"
#include "os/dlopen.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/stderr.h"
#include "os/thread_exit.h"
#include "policy/option.h"
#include "process/fork.h"
#include "process/mend.h"

/* The destructor puts itself off to a later round, so that other libraries' destructors still find
 * the thread's cache. POSIX promises four rounds. */
#define DESTRUCTOR_ROUNDS 3

enum process_state { PROCESS_UNSTARTED, PROCESS_STARTED, PROCESS_FAILED };

static HAK_TLS uint32_t destructor_rounds;
static _Atomic uint32_t process_state;
static bool has_exit_key;

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
        hak_note_jump();
        hak_cache_lose(cache);
    }
}

static void start_locked(void)
{
    hak_os_start();
    hak_copy_mark_start(hak_fork_settle);
    hak_os_stderr_start();
    hak_conf_start();
    hak_option_apply();
    if (hak_conf_number(heap_profile) != HEAP_PROFILE_OFF ||
        hak_conf_number(blackbox) != BLACKBOX_OFF)
        hak_draw_start((uint64_t)hak_conf_number(heap_profile_rate),
                       (uint64_t)hak_conf_number(heap_profile_samples), hak_os_clock_ms());
    if (hak_conf_number(heap_profile) > HEAP_PROFILE_ON) /* these speak at the end */
        hak_os_stderr_keep();
    if ((hak_conf_number(learn) & LEARN_SITES) != 0)
        hak_draw_start_for(DRAW_FOR_RULES, HAK_DRAW_RULES_MEAN_BYTES, HAK_DRAW_RULES_SAMPLES,
                           hak_os_clock_ms());
    hak_store_relaxed(&hak_dlopen_binds_deeply, hak_conf_number(deepbind) != 0);
    if (!hak_region_start()) {
        /* release: partner is the acquire in hak_process_start */
        hak_store_release(&process_state, PROCESS_FAILED);
        return;
    }
    hak_settings_start();
    hak_harden_start(hak_fence_start());
    hak_caches_start();
    /* Before any thread can have a cache, which its end must return; libc does not allocate for
     * it. */
    has_exit_key = hak_thread_exit_start(on_thread_exit);
    /* release: partner is the acquire in hak_process_start */
    hak_store_release(&process_state, PROCESS_STARTED);
}

bool hak_process_start(void)
{
    /* acquire, here and below: partner is the release in start_locked */
    if (hak_load_acquire(&process_state) == PROCESS_UNSTARTED) {
        if (hak_lock_is_inside()) /* a handler interrupted the start */
            return false;
        bool is_first = false;
        hak_lock_take(&hak_start_lock);
        if (hak_load_relaxed(&process_state) == PROCESS_UNSTARTED) {
            start_locked();
            is_first = true;
        }
        hak_lock_give(&hak_start_lock);
        if (is_first)
            hak_fork_register();
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
    /* Before its first lock: one that is cancelled there gives it back at its end. Libc may
     * allocate for that, without a cache. */
    hak_here = &hak_here_never;
    hak_thread_exit_set(&hak_here);
    hak_here = &hak_here_unasked;
    struct rseq_area *area = hak_caches_reason() == RSEQ_PROCESSOR ? hak_os_rseq_area() : NULL;
    if (area != NULL)
        hak_here = area;
    else
        take_slot();
    if (hak_here == &hak_here_unasked || hak_here == &hak_here_never)
        return; /* out of memory, where the next call asks again; or of slots */
    hak_stat_global_add(threads_started, 1);
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
    hak_note_jump();
    hak_remote_forget_own();
    hak_cache_lose(cache);
    return hak_thread_cache();
}
