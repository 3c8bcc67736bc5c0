/* SPDX-License-Identifier: MIT */
#include "profile/size_log.h"

#include "base/atomic.h"
#include "base/limits.h"
#include "os/os.h"
#include "slab/size_class.h"

#include <string.h>

#define NS_PER_MS 1000000u

/* Untouched while nothing is sampled. */
static struct {
    _Atomic uint64_t live_blocks;
    _Atomic uint64_t block_births; /* less ends, in milliseconds from the start on */
    _Atomic uint64_t live_slack;
    _Atomic uint64_t slack_births;
} cells[HAK_SIZE_CELLS];
HAK_AT_HAND static _Atomic uint64_t start_ms; /* 0: nothing was sampled yet */
HAK_AT_HAND static _Atomic uint64_t samples;

/* hak_size_cell_of without its search through the classes. */
static uint32_t cell_of(size_t bytes)
{
    uint32_t last = (hak_class_of(bytes) + 1) * HAK_SIZE_CLASS_CELLS - 1;
    uint32_t top = hak_size_cell_need(last), below = hak_size_cell_need(last - 1);
    return below == 0 ? last : last - (top - (uint32_t)bytes) / (top - below);
}

/* Adds the blocks of a sample at a moment; `sign` 1: they begin, -1: they end. */
static void add(const struct live_sample *sample, uint64_t at_ms, int64_t sign)
{
    size_t bytes = sample->logged_bytes;
    uint64_t signed_blocks = sample->sum.count * (uint64_t)sign;
    uint32_t cell = cell_of(bytes);
    uint64_t signed_slack = signed_blocks * (hak_size_cell_need(cell) - bytes);
    uint64_t ms = at_ms - hak_load_relaxed(&start_ms);
    hak_fetch_add_relaxed(&cells[cell].live_blocks, signed_blocks);
    hak_fetch_add_relaxed(&cells[cell].block_births, signed_blocks * ms);
    hak_fetch_add_relaxed(&cells[cell].live_slack, signed_slack);
    hak_fetch_add_relaxed(&cells[cell].slack_births, signed_slack * ms);
}

static bool is_of_a_class(size_t bytes)
{
    return bytes <= HAK_CLASS_BYTES_MAX;
}

void hak_size_log_begin(const struct live_sample *sample)
{
    uint64_t none = 0, birth_ms = sample->birth_ns / NS_PER_MS;
    if (!is_of_a_class(sample->logged_bytes))
        return;
    if (HAK_UNLIKELY(hak_load_relaxed(&start_ms) == 0))
        /* relaxed: the number alone counts */
        hak_cas_relaxed(&start_ms, &none, birth_ms);
    hak_fetch_add_relaxed(&samples, 1);
    add(sample, birth_ms, 1);
}

void hak_size_log_end(const struct live_sample *sample, uint64_t now_ns)
{
    if (is_of_a_class(sample->logged_bytes))
        add(sample, now_ns / NS_PER_MS, -1);
}

void hak_size_log_resize(struct live_sample *sample, size_t bytes)
{
    if (is_of_a_class(sample->logged_bytes) && is_of_a_class(bytes) &&
        cell_of(sample->logged_bytes) == cell_of(bytes))
        return;
    uint64_t now_ns = hak_os_clock_ns(), birth_ns = sample->birth_ns;
    hak_size_log_end(sample, now_ns);
    sample->logged_bytes = bytes;
    sample->birth_ns = now_ns;
    hak_size_log_begin(sample);
    sample->birth_ns = birth_ns;
}

/* A sum that came out negative is one of a moment in between. */
static uint64_t sum_at(uint64_t live, uint64_t ms, uint64_t births)
{
    uint64_t sum = live * ms - births;
    return sum > INT64_MAX ? 0 : sum;
}

bool hak_size_log_read(struct size_spread *spread, uint64_t now_ns)
{
    uint64_t start = hak_load_relaxed(&start_ms);
    memset(spread, 0, sizeof *spread);
    if (start == 0)
        return false;
    uint64_t ms = now_ns / NS_PER_MS - start;
    spread->watched_ms = ms == 0 ? 1 : ms;
    spread->samples = hak_load_relaxed(&samples);
    for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++) {
        struct size_cell *to = &spread->cells[i];
        to->block_ms = sum_at(hak_load_relaxed(&cells[i].live_blocks), ms,
                              hak_load_relaxed(&cells[i].block_births));
        to->slack_ms = sum_at(hak_load_relaxed(&cells[i].live_slack), ms,
                              hak_load_relaxed(&cells[i].slack_births));
        if (to->block_ms == 0)
            to->slack_ms = 0;
    }
    return true;
}
