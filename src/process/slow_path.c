/* SPDX-License-Identifier: MIT */
#include "process/slow_path.h"

#include "os/os.h"

/* The slow path that the cache is busy with is gone: the stack it ran on has been left, by a jump
 * out of a signal handler. */
static bool is_abandoned(const struct cache *cache, uintptr_t here)
{
    return hak_cache_state(cache) != CACHE_IDLE &&
           hak_frame_is_left_at(hak_cache_frame(cache), here);
}

/* The thread's own cache, unless something of it was interrupted. */
static struct cache *find_cache(uintptr_t here)
{
    struct cache *cache = hak_thread_cache();
    if (HAK_UNLIKELY(cache != NULL && is_abandoned(cache, here)))
        cache = hak_thread_replace_cache(cache);
    return cache != NULL && hak_thread_is_outside() ? cache : NULL;
}

struct slow_path hak_slow_path_begin_special(uintptr_t here)
{
    struct slow_path path = {.is_shielded = hak_load_relaxed(&hak_jumps_matter)};
    if (HAK_UNLIKELY(path.is_shielded))
        path.signals_before = hak_os_block_signals();
    hak_copy_look();
    if (HAK_UNLIKELY(hak_lock_is_abandoned()))
        hak_thread_mend();
    if (HAK_UNLIKELY(hak_heap_is_held()))
        hak_thread_mend_heaps(false);
    path.cache = find_cache(here);
    if (path.cache != NULL) {
        hak_cache_begin_at(path.cache, here);
    } else {
        path.is_refused = hak_lock_is_inside() || !hak_process_start();
        if (HAK_UNLIKELY(hak_lock_is_inside()))
            hak_lock_note_handler(); /* from now on sections are not interrupted */
    }
    return path;
}

void hak_slow_path_end_special(const struct slow_path *path)
{
    if (HAK_UNLIKELY(path->is_shielded))
        hak_os_restore_signals(path->signals_before);
}
