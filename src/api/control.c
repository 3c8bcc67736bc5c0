/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "base/bits.h"
#include "heap/limit.h"
#include "os/os.h"
#include "policy/option.h"
#include "process/reclaim.h"
#include "process/start.h"

/* mallopt(3), by the numbers of glibc's <malloc.h>. As with glibc, all others are accepted: those
 * that mean nothing here, with any value, and those that are no parameter. */
#define MXFAST 1
#define TRIM_THRESHOLD (-1)

/* glibc's own limit: more is refused, and nothing else. */
#define MXFAST_MOST 160

int hak_mallopt(int parameter, int value)
{
    hak_process_start(); /* the options are read first, and this is later */
    switch (parameter) {
    case MXFAST:
        return value >= 0 && value <= MXFAST_MOST;
    case TRIM_THRESHOLD:
        hak_option_trim_threshold(value);
        return 1;
    default:
        return 1;
    }
}

/* A program that trims all the time would do little else. A call within so many times of what the
 * last one took, and within so long, is near; after so many near ones in a row they do nothing
 * unless so much is free, and such a share of what is held. */
#define TRIM_NEAR_TIMES 10
#define TRIM_NEAR_NS_MOST 1000000u
#define TRIMS_IN_A_ROW 16
#define TRIM_WORTH_BYTES HAK_MIB
#define TRIM_WORTH_SHARE 64
static _Atomic uint64_t trims_are_near_until_ns;
static _Atomic uint32_t trims_in_a_row; /* a hint: threads that trim together may lose some */

static bool is_trim_worth_it(uint64_t now_ns)
{
    uint32_t row = hak_load_relaxed(&trims_in_a_row);
    bool is_near = now_ns < hak_load_relaxed(&trims_are_near_until_ns);
    if (is_near)
        row = (uint32_t)hak_least(row, TRIMS_IN_A_ROW) + 1;
    else
        row = row > TRIMS_IN_A_ROW ? TRIMS_IN_A_ROW : 0; /* one rest ends, and may be the last */
    hak_store_relaxed(&trims_in_a_row, row);
    return row <= TRIMS_IN_A_ROW ||
           hak_limit_warm_bytes() >=
               hak_most(TRIM_WORTH_BYTES, hak_held_bytes() / TRIM_WORTH_SHARE);
}

/* glibc manual: 1 when memory was given back. */
int hak_malloc_trim(size_t keep_bytes)
{
    uint64_t start_ns = hak_os_clock_ns();
    if (!hak_process_start() || !is_trim_worth_it(start_ns))
        return 0;
    hak_store_relaxed(&trims_are_near_until_ns,
                      start_ns + TRIM_NEAR_NS_MOST); /* others, meanwhile */
    size_t bytes = hak_reclaim_trim(keep_bytes);
    uint64_t end_ns = hak_os_clock_ns();
    uint64_t near_ns = hak_least(TRIM_NEAR_TIMES * (end_ns - start_ns), TRIM_NEAR_NS_MOST);
    hak_store_relaxed(&trims_are_near_until_ns, end_ns + near_ns);
    return bytes > 0;
}

HAK_LIBC_ALIAS(mallopt, hak_mallopt)
HAK_LIBC_ALIAS(__libc_mallopt, hak_mallopt)
HAK_LIBC_ALIAS(malloc_trim, hak_malloc_trim)
