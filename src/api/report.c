/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "cache/lifecycle.h"
#include "cache/registry.h"
#include "conf/conf.h"
#include "observe/emit.h"
#include "os/os.h"
#include "region/meta.h"
#include "slab/depot.h"
#include "span/large.h"
#include "span/span_heap.h"
#include "span/span_move.h"

void hak_snapshot_take(struct snapshot *snapshot)
{
    *snapshot =
        (struct snapshot){.window_committed_bytes = hak_load_relaxed(&hak_region.committed_bytes),
                          .metadata_bytes = hak_meta_bytes(),
                          .superslabs = hak_depot_superslab_count(),
                          .slabs = hak_slab_record_count(),
                          .slab_warm_bytes = (uint64_t)hak_depot_warm_count() << HAK_GRANULE_SHIFT,
                          .large_live_bytes = hak_large_live_bytes(),
                          .span_warm_bytes = hak_span_warm_bytes(),
                          .span_clean_bytes = hak_span_clean_bytes(),
                          .span_lost_bytes = hak_span_lost_bytes(),
                          .active_heaps = hak_registry_active_count(),
                          .map_calls = hak_load_relaxed(&hak_os_counters.map_count),
                          .protect_calls = hak_load_relaxed(&hak_os_counters.protect_count),
                          .advise_calls = hak_load_relaxed(&hak_os_counters.advise_count),
                          .purged_bytes = hak_load_relaxed(&hak_os_counters.purged_bytes),
                          .move_calls = hak_load_relaxed(&hak_os_counters.move_count),
                          .moved_bytes = hak_load_relaxed(&hak_os_counters.moved_bytes),
                          .moved_pieces = hak_span_piece_count(),
#define X(name, meaning) .name = hak_load_relaxed(&hak_stat_globals.name),
                          HAK_STAT_GLOBAL_TABLE(X)
#undef X
        };
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next)
        for (int i = 0; i < HAK_STAT_COUNT; i++)
            snapshot->sums[i] += hak_load_relaxed(&heap->stats.counters[i]);
}

/* Where to print at the end: many programs close their standard error before. */
static int report_fd = -1;

__attribute__((constructor)) static void prepare_report(void)
{
    hak_process_start();
    if (hak_conf_number(stats) != STATS_OFF && *hak_conf_text(stats_file) == '\0')
        report_fd = hak_os_keep_fd(2);
}

/* At the end of the process, after the program's own destructors; prints only if asked. */
__attribute__((destructor)) static void report_at_exit(void)
{
    if (hak_conf_number(stats) == STATS_OFF)
        return;
    struct snapshot snapshot;
    char lines[HAK_EMIT_TEXT_BYTES];
    struct text text = {.start = lines, .bytes = sizeof lines};
    hak_snapshot_take(&snapshot);
    hak_emit_text(&snapshot, &text);
    const char *path = hak_conf_text(stats_file);
    int fd = report_fd >= 0 ? report_fd : hak_os_open_append(path);
    if (fd < 0)
        return;
    hak_os_write(fd, lines, text.used);
    hak_os_close(fd);
}
