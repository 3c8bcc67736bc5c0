/* SPDX-License-Identifier: MIT */
#include "stats/exact.h"

#include "base/limits.h"
#include "process/start.h"
#include "slab/size_class.h"
#include "stats/snapshot.h"

/* One entry for each size class, and one for larger requests. */
#define SIZES (HAK_CLASS_COUNT + 1)

static struct exact_counts {
    _Atomic uint64_t requests[SIZES];
    _Atomic uint64_t reallocs[SIZES];
    _Atomic uint64_t requested_bytes;
    _Atomic uint64_t realloc_bytes;
    _Atomic uint64_t frees;
} counts;

static bool is_counted(void)
{
    return hak_harden_has(HARDEN_COUNTED);
}

static uint32_t place_of(size_t bytes)
{
    return bytes <= HAK_CLASS_BYTES_MAX ? hak_class_of(bytes) : HAK_CLASS_COUNT;
}

bool hak_exact_request_slow(size_t bytes)
{
    bool is_hardened = hak_is_hardened(); /* and the process has started */
    if (is_counted() && bytes <= HAK_REQUEST_BYTES_MAX) {
        hak_fetch_add_relaxed(&counts.requests[place_of(bytes)], 1);
        hak_fetch_add_relaxed(&counts.requested_bytes, bytes);
    }
    return is_hardened;
}

void hak_exact_free(void)
{
    if (is_counted())
        hak_fetch_add_relaxed(&counts.frees, 1);
}

void hak_exact_realloc(size_t bytes)
{
    if (!is_counted())
        return;
    hak_fetch_add_relaxed(&counts.reallocs[place_of(bytes)], 1);
    hak_fetch_add_relaxed(&counts.realloc_bytes, bytes);
}

void hak_exact_read(struct snapshot *snapshot)
{
    snapshot->is_exact = hak_harden_has(HARDEN_COUNTED);
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        struct snapshot_class *to = &snapshot->classes[i];
        to->requests = hak_load_relaxed(&counts.requests[i]);
        to->reallocs = hak_load_relaxed(&counts.reallocs[i]);
        snapshot->exact_requests += to->requests;
        snapshot->exact_reallocs += to->reallocs;
    }
    snapshot->exact_large_requests = hak_load_relaxed(&counts.requests[HAK_CLASS_COUNT]);
    snapshot->exact_large_reallocs = hak_load_relaxed(&counts.reallocs[HAK_CLASS_COUNT]);
    snapshot->exact_requests += snapshot->exact_large_requests;
    snapshot->exact_reallocs += snapshot->exact_large_reallocs;
    snapshot->exact_requested_bytes = hak_load_relaxed(&counts.requested_bytes);
    snapshot->exact_realloc_bytes = hak_load_relaxed(&counts.realloc_bytes);
    snapshot->exact_frees = hak_load_relaxed(&counts.frees);
}
