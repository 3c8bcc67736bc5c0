/* SPDX-License-Identifier: MIT */
#include "stats/glibc_view.h"

struct glibc_view hak_glibc_view(const struct snapshot *snapshot)
{
    struct glibc_view view = {
        .in_use_bytes = snapshot->small_live_bytes + snapshot->guarded_live_bytes,
        .fast_bytes = snapshot->cached_bytes + snapshot->withheld_bytes + snapshot->homeward_bytes,
        .mapped_count = snapshot->large_live_blocks,
        .mapped_bytes = snapshot->large_live_bytes,
        .releasable_bytes = snapshot->slab_warm_bytes + snapshot->span_warm_bytes,
        .fast_count = snapshot->cached_spans,
    };
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        view.fast_count += snapshot->classes[i].cached_blocks;
        view.rest_count += snapshot->classes[i].free_blocks;
    }
    view.rest_bytes = snapshot->slab_free_bytes + view.releasable_bytes;
    view.arena_bytes = view.in_use_bytes + view.fast_bytes + view.rest_bytes;
    view.arena_most_bytes =
        view.arena_bytes + snapshot->slab_clean_bytes + snapshot->span_clean_bytes;
    return view;
}
