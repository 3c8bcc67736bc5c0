/* SPDX-License-Identifier: MIT */
#include "process/serve.h"

#include "hardened/waiting.h"
#include "heap/limit.h"
#include "process/reclaim.h"
#include "process/tick.h"
#include "stats/event_log.h"
#include "stats/refusal.h"

#include <errno.h>

/* Memory is out: everything that this thread has cached and everything that is free goes home. */
static HAK_NOINLINE void send_all_home(const struct slow_path *path)
{
    if (path->cache != NULL) {
        hak_waiting_drain(path);
        hak_cache_flush_all(path->cache);
    }
    hak_reclaim_empty_heaps();
    hak_reclaim_purge_all();
}

static void *serve_once(hak_server *server, const struct request *request)
{
    struct slow_path path = hak_slow_path_begin();
    void *block = NULL;
    if (HAK_LIKELY(!path.is_refused)) {
        block = server(path.cache, request, TRY_FIRST);
        if (HAK_UNLIKELY(block == NULL) && !hak_heap_is_held()) {
            send_all_home(&path);
            block = server(path.cache, request, TRY_LAST);
        }
    }
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
    if (HAK_UNLIKELY(block == NULL) && hak_limit_is_set()) {
        hak_reclaim_relieve();
        block = serve_once(server, request);
    }
    return HAK_LIKELY(block != NULL) ? block : hak_refuse(request->bytes);
}
