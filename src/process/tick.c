/* SPDX-License-Identifier: MIT */
#include "process/tick.h"

#include "control/control.h"
#include "misuse/harden.h"
#include "os/os.h"
#include "process/background.h"
#include "process/learned.h"
#include "process/matches.h"
#include "process/reclaim.h"
#include "profile/show.h"
#include "stats/writer.h"

void hak_tick_now(void)
{
    if (!hak_reclaim_tick())
        return;
    hak_learned_tick();
    hak_matches_tick();
    hak_stats_writer_tick();
    bool is_shown = hak_show_tick() == SHOW_ON;
    if (HAK_UNLIKELY(hak_control_tick() == CONTROL_WATCHED || is_shown))
        hak_background_want();
    hak_background_wake();
}

/* What a short program does wrong lies in its bins until it ends: they are looked at a few times
 * before, while they hold little. In hardened mode nothing that was freed is in one. */
static HAK_NOINLINE void check_early(void)
{
    if (hak_harden_has(HARDEN_EXACT))
        return;
    struct slow_path path = hak_slow_path_begin();
    if (path.cache != NULL)
        hak_cache_check(path.cache);
    hak_slow_path_end_quick(&path);
}

void hak_tick_look(struct cache *cache)
{
    uint32_t count = hak_load_relaxed(&cache->slow_count);
    if (HAK_UNLIKELY(count <= HAK_SLOW_OPERATIONS_UNTIL_LAST_CHECK && (count & (count - 1)) == 0))
        check_early();
    if (HAK_UNLIKELY(count % HAK_SLOW_OPERATIONS_PER_LOOK != 0))
        return;
    uint64_t now = hak_os_clock_ms();
    if (HAK_LIKELY(count % HAK_SLOW_OPERATIONS_PER_TICK != 0 &&
                   now - hak_load_relaxed(&cache->tick_ms) < HAK_TICK_LATE_MS))
        return;
    hak_store_relaxed(&cache->tick_ms, now);
    hak_reclaim_cache(cache);
    hak_tick_now();
    hak_background_consider_slabs();
}
