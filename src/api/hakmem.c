/* SPDX-License-Identifier: MIT */
#include "hakmem/hakmem.h"
#include "process/reclaim.h"

#include "api/api.h"
#include "base/bits.h"
#include "hardened/hardened.h"
#include "heap/supply.h"
#include "misuse/guarded.h"
#include "misuse/zero_size.h"
#include "process/start.h"
#include "profile/output.h"
#include "profile/profile.h"
#include "span/large.h"
#include "stats/snapshot.h"
#include "stats/snapshot_take.h"

#include <errno.h>
#include <string.h>

/* The public names of malloc's family; hakmem_malloc and hakmem_free are aliases in malloc.c. */

int hakmem_version(void)
{
    return HAKMEM_VERSION;
}

void *hakmem_calloc(size_t count, size_t bytes)
{
    return hak_calloc(count, bytes);
}

void *hakmem_realloc(void *block, size_t bytes)
{
    return hak_realloc(block, bytes);
}

void *hakmem_reallocarray(void *block, size_t count, size_t bytes)
{
    return hak_reallocarray(block, count, bytes);
}

void hakmem_free_sized(void *block, size_t bytes)
{
    hak_free_sized(block, bytes);
}

void hakmem_free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
    hak_free_aligned_sized(block, alignment, bytes);
}

void *hakmem_aligned_alloc(size_t alignment, size_t bytes)
{
    return hak_aligned_alloc(alignment, bytes);
}

int hakmem_posix_memalign(void **result, size_t alignment, size_t bytes)
{
    return hak_posix_memalign(result, alignment, bytes);
}

size_t hakmem_usable_size(const void *block)
{
    return hak_malloc_usable_size((void *)(uintptr_t)block);
}

size_t hakmem_good_size(size_t bytes)
{
    size_t good = hak_malloc_good_size(bytes);
    return good <= HAK_REQUEST_BYTES_MAX ? good : 0;
}

int hakmem_is_owned(const void *block)
{
    if (block == NULL)
        return 0;
    if (HAK_UNLIKELY(hak_hardened_is_on()) && hak_hardened_is_live(block))
        return 1;
    if (!hak_region_holds(block))
        return hak_guarded_is_live(block) || hak_zero_size_is_live(block);
    uint32_t granule = hak_granule_of(block);
    uint32_t tag = hak_tag_read(granule);
    if (!hak_tag_is_slab(tag))
        return hak_large_is_block(block);
    const struct slab *slab = hak_owner_read(granule);
    if (slab == NULL) /* it was given back meanwhile */
        return 0;
    uint32_t index;
    return hak_slab_find_start(slab, block, &index) && index < slab->block_count;
}

size_t hakmem_trim(size_t pad_bytes)
{
    return hak_process_start() ? hak_reclaim_trim(pad_bytes) : 0;
}

void hakmem_thread_idle(void)
{
    hak_thread_flush();
}

static void choose_stats(const struct snapshot *now, void *all)
{
    *(struct hakmem_stats *)all = (struct hakmem_stats){
        .window_committed_bytes = now->window_committed_bytes,
        .metadata_bytes = now->metadata_bytes,
        .large_live_bytes = now->large_live_bytes,
        .slab_free_resident_bytes = now->slab_warm_bytes,
        .span_free_resident_bytes = now->span_warm_bytes,
        .span_free_clean_bytes = now->span_clean_bytes,
        .returned_bytes = now->purged_bytes,
        .superslab_count = now->superslabs,
        .slab_count = now->slabs,
        .cache_count = now->active_caches,
        .private_heap_count = now->private_heaps,
        .foreign_free_count = now->foreign_frees,
        .out_of_memory_count = now->out_of_memory,
        .kernel_call_count = now->map_calls + now->protect_calls + now->advise_calls,
        .live_bytes = now->live_bytes,
        .small_live_bytes = now->small_live_bytes,
        .guarded_live_bytes = now->guarded_live_bytes,
        .small_live_block_count = now->small_live_blocks,
        .large_live_block_count = now->large_live_blocks,
        .cached_bytes = now->cached_bytes,
        .remote_free_bytes = now->withheld_bytes + now->homeward_bytes,
        .block_free_bytes = now->slab_free_bytes,
        .slab_free_clean_bytes = now->slab_clean_bytes,
        .unusable_bytes = now->span_lost_bytes + now->hole_bytes,
        .table_bytes = now->table_bytes,
        .busy_heap_count = now->closed_heaps,
    };
}

int hakmem_stats_get(struct hakmem_stats *stats, size_t stats_bytes)
{
    struct hakmem_stats all;
    if (stats_bytes == 0)
        return EINVAL;
    hak_process_start();
    hak_snapshot_show(choose_stats, &all);
    memset(stats, 0, stats_bytes);
    memcpy(stats, &all, hak_least(stats_bytes, sizeof all));
    return 0;
}

void hakmem_profile_start(size_t mean_bytes)
{
    hak_profile_start(mean_bytes);
}

void hakmem_profile_stop(void)
{
    hak_profile_stop();
}

int hakmem_profile_write(int fd)
{
    return hakmem_profile_print(fd, "pprof");
}

int hakmem_profile_print(int fd, const char *form)
{
    struct profile_target to = {.fd = fd};
    enum profile_form known = hak_profile_form_of(form);
    if (known == PROFILE_FORM_COUNT)
        return EINVAL;
    hak_process_start();
    return hak_profile_output(&to, known);
}
