/* SPDX-License-Identifier: MIT */
#include "misuse/guarded.h"

#include "misuse/fence.h"
#include "misuse/report.h"
#include "misuse/sampled_guard.h"

/* NULL: no block was ever there. */
static struct guard_record *record_of(const void *address)
{
    if (hak_fence_holds(address))
        return hak_fence_record_of(address);
    if (hak_guarded_range_holds(address))
        return hak_sampled_guard_record_of(address);
    return hak_mapped_guard_find(address);
}

static const struct guard_record *nearest(const void *address)
{
    if (hak_fence_holds(address))
        return hak_fence_nearest(address);
    if (hak_guarded_range_holds(address))
        return hak_sampled_guard_nearest(address);
    return hak_mapped_guard_find(address);
}

/* The same of what a program takes for a block. */
static struct guard_record *find(const void *block, const char *what)
{
    struct guard_record *record = record_of(block);
    if (HAK_UNLIKELY(record == NULL))
        hak_misuse_nothing(what, block);
    return record;
}

void hak_guarded_give(void *block, const struct guarded_trace *trace)
{
    struct guard_record *record = find(block, "invalid free");
    hak_guard_record_seize(record, block, trace);
    if (hak_fence_holds(block))
        hak_fence_give(record);
    else if (hak_guarded_range_holds(block))
        hak_sampled_guard_give(record);
    else
        hak_mapped_guard_give(record);
}

size_t hak_guarded_usable_bytes(const void *block, const char *what)
{
    const struct guard_record *record = find(block, what);
    hak_guard_record_check(record, block, what);
    return record->bytes;
}

bool hak_guarded_is_live(const void *block)
{
    const struct guard_record *record = hak_guarded_holds(block) ? record_of(block) : NULL;
    /* acquire: partner is the pool's release that stored LIVE */
    return record != NULL && hak_load_acquire(&record->state) == GUARDED_LIVE &&
           hak_word_peek(&record->block) == (uintptr_t)block;
}

void hak_guarded_look(const void *address, struct guarded_view *view)
{
    const struct guard_record *record = nearest(address);
    if (record == NULL)
        *view = (struct guarded_view){.block = 0};
    else
        hak_guard_record_view(record, view);
}

_Noreturn void hak_guarded_report(const char *what, const void *block, const char *state)
{
    hak_guard_record_report(what, block, find(block, what), state);
}

struct guarded_sums hak_guarded_sum(void)
{
    struct guarded_sums sums = {hak_fence_live_bytes(), hak_fence_live_count()};
    hak_sampled_guard_sum(&sums.bytes, &sums.count);
    hak_mapped_guard_sum(&sums.bytes, &sums.count);
    return sums;
}

void hak_guarded_freeze(void)
{
    hak_sampled_guard_freeze();
    hak_fence_freeze();
}
