/* SPDX-License-Identifier: MIT */
/* tests/interleave/quiet_process.h - what process/background.c calls, in a process that has nothing
 * to print, to read or to be asked.
 *
 * Owns        what those files define of which the background thread uses these.
 * Invariants  linked in place of these files: none of theirs comes along.
 * Threads     fibres.
 * Tests       tests/interleave/background_interleave.c
 */
#ifndef TESTS_INTERLEAVE_QUIET_PROCESS_H
#define TESTS_INTERLEAVE_QUIET_PROCESS_H

#include "control/control.h"
#include "heap/cache_list.h"
#include "heap/cgroup.h"
#include "heap/heaps.h"
#include "heap/held_heaps.h"
#include "heap/limit.h"
#include "heap/settings.h"
#include "os/thread.h"
#include "process/fork.h"
#include "process/learned.h"
#include "process/matches.h"
#include "process/reclaim.h"
#include "process/slow_path.h"
#include "process/start.h"
#include "profile/show.h"
#include "slab/superslab_pool.h"
#include "span/big_cache.h"
#include "span/span_cache.h"
#include "stats/writer.h"

_Atomic uint32_t hak_active_caches, hak_spare_granules, hak_settings_were_read = 1,
                                                        hak_matches_are_on;
_Atomic uint64_t hak_learned_second_ms;
HAK_TLS struct held_heaps hak_held_heaps;

#define DOES_NOTHING(name, parameters)                                                             \
    void name parameters                                                                           \
    {                                                                                              \
    }
#define IS_NOTHING(type, name, parameters)                                                         \
    type name parameters                                                                           \
    {                                                                                              \
        return (type){0};                                                                          \
    }
DOES_NOTHING(hak_learned_look, (void))
DOES_NOTHING(hak_matches_look, (void))
DOES_NOTHING(hak_stats_writer_tick, (void))
DOES_NOTHING(hak_settings_read, (void))
DOES_NOTHING(hak_thread_be_apart, (void))
DOES_NOTHING(hak_os_thread_be_ordinary, (void))
DOES_NOTHING(hak_show_tick_at_leisure, (void))
IS_NOTHING(enum control_verdict, hak_control_tick, (void))
IS_NOTHING(bool, hak_own_cgroup_tells_pressure, (void))
IS_NOTHING(bool, hak_stats_writer_has_work, (void))
IS_NOTHING(bool, hak_process_start, (void))
IS_NOTHING(struct cache *, hak_caches_first, (void))
IS_NOTHING(uint32_t, hak_heap_count, (void))
IS_NOTHING(size_t, hak_held_bytes, (void))
IS_NOTHING(size_t, hak_limit_warm_bytes, (void))
IS_NOTHING(size_t, hak_reclaim_relieve, (void))
IS_NOTHING(uint64_t, hak_pool_keep_ms, (void))
IS_NOTHING(uint64_t, hak_big_cache_keep_ms, (void))
IS_NOTHING(struct span_cache_sums, hak_span_caches_sum, (void))

struct heap *hak_heap_at(uint32_t index)
{
    (void)index;
    return NULL;
}

size_t hak_heap_free_bytes(const struct heap *heap)
{
    (void)heap;
    return 0;
}

/* No descriptors are taken from the harness. */
bool hak_stats_writer_keeps_files(void)
{
    return true;
}

bool hak_own_cgroup_is_pressed(uint64_t now_ms)
{
    (void)now_ms;
    return false;
}

void hak_os_thread_await_end(const struct os_thread *thread)
{
    (void)thread;
}

void hak_os_thread_forget(struct os_thread *thread)
{
    (void)thread;
}

void hak_os_thread_name(const char *name)
{
    (void)name;
}

void hak_process_on_fork(void (*mender)(void))
{
    (void)mender;
}

void hak_stats_writer_start(void (*stir)(void))
{
    (void)stir;
}

#endif
