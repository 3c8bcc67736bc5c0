/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "base/bits.h"
#include "cache/lifecycle.h"
#include "policy/policy_table.h"

/* mallopt(3), by the numbers of glibc's <malloc.h>. Those that mean nothing here are accepted: 2 to
 * 4 (of old), M_TOP_PAD, M_MMAP_MAX, M_CHECK_ACTION, M_PERTURB, M_ARENA_TEST, M_ARENA_MAX. */
#define MXFAST 1
#define TRIM_THRESHOLD (-1)
#define MMAP_THRESHOLD (-3)
#define PARAMETER_LEAST (-8)
#define PARAMETER_MOST 4

/* glibc's own limits, so that what it refuses is refused here. */
#define MXFAST_MOST 160
#define MMAP_THRESHOLD_MOST (32 * 1024 * 1024)

/* How much free memory may stay: `retain`. A negative threshold turns trimming off. */
static void set_trim_threshold(int value)
{
    if (value < 0)
        hak_store_relaxed(&hak_policy.decay_ms, UINT64_MAX / 2);
    else
        hak_store_relaxed(&hak_policy.retain_bytes, (uint64_t)value);
}

int hak_mallopt(int parameter, int value)
{
    hak_process_start(); /* the options are read first, and this is later */
    switch (parameter) {
    case MXFAST:
        return value >= 0 && value <= MXFAST_MOST;
    case MMAP_THRESHOLD:
        return value >= 0 && value <= MMAP_THRESHOLD_MOST;
    case TRIM_THRESHOLD:
        set_trim_threshold(value);
        return 1;
    default:
        return parameter >= PARAMETER_LEAST && parameter <= PARAMETER_MOST && parameter != 0;
    }
}

/* glibc manual: 1 when memory was given back. */
int hak_malloc_trim(size_t keep_bytes)
{
    return hak_process_start() && hak_maintain_trim(keep_bytes) > 0;
}

HAK_LIBC_ALIAS(mallopt, hak_mallopt)
HAK_LIBC_ALIAS(__libc_mallopt, hak_mallopt)
HAK_LIBC_ALIAS(malloc_trim, hak_malloc_trim)
