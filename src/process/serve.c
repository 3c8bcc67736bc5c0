/* SPDX-License-Identifier: MIT */
#include "process/serve.h"

#include "base/bits.h"
#include "hardened/waiting.h"
#include "heap/limit.h"
#include "misuse/mapped_guard.h"
#include "misuse/sampled_guard.h"
#include "policy/policy_table.h"
#include "process/reclaim.h"
#include "process/tick.h"
#include "region/region.h"
#include "stats/event_log.h"
#include "stats/refusal.h"

#include <errno.h>

/* Memory is out: everything that this thread has cached and everything that is free is returned. */
static HAK_NOINLINE void send_all_home(const struct slow_path *path)
{
    if (path->cache != NULL) {
        hak_waiting_drain(path->cache);
        hak_cache_flush_all(path->cache);
    }
    hak_reclaim_purge_all();
}

/* No memory that is given back makes room for it. */
static bool is_hopeless(const struct request *request)
{
    size_t limit = hak_policy_read(limit_bytes);
    return hak_most(request->bytes, request->alignment) > hak_region.window_bytes ||
           (limit != 0 && request->bytes > limit);
}

static void *serve_twice(hak_server *server, const struct request *request,
                         const struct slow_path *path)
{
    void *block = server(path->cache, request, TRY_FIRST);
    if (HAK_LIKELY(block != NULL) || request->is_spared || hak_heap_is_held() ||
        is_hopeless(request))
        return block;
    send_all_home(path);
    return server(path->cache, request, TRY_LAST);
}

/* For a handler that interrupted its thread under a lock, which happens once in a process (signals
 * are blocked there from then on), or inside a heap while others are inside all heaps. Guarded
 * blocks need no lock; they read as zero. */
static HAK_NOINLINE void *serve_without_locks(const struct request *request)
{
    if (hak_lock_is_noted(HAK_LOCK_START) || request->user_heap != NULL)
        return NULL;
    size_t bytes = hak_most(request->bytes, 1);
    size_t alignment = hak_most(request->alignment, HAK_ORDINARY_ALIGNMENT);
    struct guarded_trace nothing = {{0}, hak_os_thread_label()};
    void *block = NULL;
    if (hak_sampled_guard_fits(bytes, alignment))
        block = hak_sampled_guard_take(bytes, alignment, &nothing);
    if (block == NULL && hak_limit_admits(bytes))
        block = hak_mapped_guard_take(bytes, alignment, &nothing);
    return block;
}

static void *serve_once(hak_server *server, const struct request *request)
{
    struct slow_path path = hak_slow_path_begin();
    void *block = HAK_LIKELY(!path.is_refused) ? serve_twice(server, request, &path) : NULL;
    if (HAK_UNLIKELY(block == NULL) && (hak_lock_is_inside() || hak_heap_is_held()))
        block = serve_without_locks(request);
    hak_slow_path_end(&path);
    return block;
}

void *hak_refuse(size_t bytes)
{
    hak_stat_global_add(out_of_memory, 1);
    hak_event_log(out_of_memory, bytes);
    hak_refusal_tell(bytes);
    errno = ENOMEM;
    return NULL;
}

void *hak_serve(hak_server *server, const struct request *request)
{
    void *block = serve_once(server, request);
    if (HAK_UNLIKELY(block == NULL) && request->is_spared)
        return NULL;
    if (HAK_UNLIKELY(block == NULL) && hak_limit_is_set() && !is_hopeless(request)) {
        hak_reclaim_relieve();
        block = serve_once(server, request);
    }
    return HAK_LIKELY(block != NULL) ? block : hak_refuse(request->bytes);
}
