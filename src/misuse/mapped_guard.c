/* SPDX-License-Identifier: MIT */
#include "misuse/mapped_guard.h"

#include "base/bits.h"
#include "os/os.h"
#include "region/mappings.h"
#include "stats/counters.h"

/* What lies before the block's pages and its guard divide a mapping in three. */
#define MAPPINGS 3u

struct mapped {
    struct guard_record record;
    uintptr_t mapping_start;
    size_t mapping_bytes;
};

static struct mapped table[HAK_MAPPED_GUARDS];
_Atomic uint32_t hak_mapped_guards_used;

static struct mapped *take_record(void)
{
    for (uint32_t i = 0; i < HAK_MAPPED_GUARDS; i++) {
        uint32_t state = GUARDED_FREE;
        /* acquire: partner is the release in give_record */
        if (hak_cas_acquire(&table[i].record.state, &state, GUARDED_BUSY)) {
            /* Before the block is known: a free of it sees the count. */
            hak_fetch_add_relaxed(&hak_mapped_guards_used, 1);
            return &table[i];
        }
    }
    return NULL;
}

static void give_record(struct mapped *mapped)
{
    hak_fetch_sub_relaxed(&hak_mapped_guards_used, 1);
    /* release: partner is the acquire in take_record */
    hak_store_release(&mapped->record.state, GUARDED_FREE);
}

/* Maps the block's pages and describes it, as late in its pages as its alignment allows. */
static bool map_counted(struct mapped *mapped, struct guard_record *block, size_t bytes,
                        size_t alignment)
{
    size_t page = hak_os_page_bytes();
    size_t placed_bytes = hak_align_up(bytes, alignment);
    size_t pages_bytes = hak_align_up(placed_bytes, page) + hak_excess(alignment, page);
    mapped->mapping_bytes = pages_bytes + page;
    mapped->mapping_start = (uintptr_t)hak_os_reserve(mapped->mapping_bytes);
    if (mapped->mapping_start == 0)
        return false;
    uintptr_t end = hak_align_down(mapped->mapping_start + pages_bytes, hak_most(alignment, page));
    uintptr_t start = hak_align_down(end - placed_bytes, page);
    if (!hak_os_commit((void *)start, end - start)) {
        hak_os_release((void *)mapped->mapping_start, mapped->mapping_bytes);
        return false;
    }
    *block = (struct guard_record){.block = end - placed_bytes,
                                   .bytes = bytes,
                                   .start = start,
                                   .end = end,
                                   .filler_bytes_most = HAK_GUARD_FILLER_BYTES};
    return true;
}

static bool map(struct mapped *mapped, struct guard_record *block, size_t bytes, size_t alignment)
{
    if (!hak_mappings_take(MAPPINGS))
        return false;
    if (map_counted(mapped, block, bytes, alignment))
        return true;
    hak_mappings_give(MAPPINGS);
    return false;
}

void *hak_mapped_guard_take(size_t bytes, size_t alignment, const struct guarded_trace *trace)
{
    struct mapped *mapped = take_record();
    if (mapped == NULL)
        return NULL;
    struct guard_record block;
    if (!map(mapped, &block, hak_most(bytes, 1), hak_most(alignment, 1))) {
        give_record(mapped);
        return NULL;
    }
    hak_guard_record_open(&mapped->record, &block, trace);
    hak_stat_global_add(guarded_blocks, 1);
    /* release: partner is the acquire in hak_guard_record_seize */
    hak_store_release(&mapped->record.state, GUARDED_LIVE);
    return (void *)block.block;
}

/* The record is first in its struct. */
void hak_mapped_guard_give(struct guard_record *record)
{
    struct mapped *mapped = (struct mapped *)(void *)record;
    uintptr_t start = mapped->mapping_start;
    if (hak_os_release((void *)start, mapped->mapping_bytes))
        hak_mappings_give(MAPPINGS);
    else
        hak_os_deny((void *)start, mapped->mapping_bytes);
    give_record(mapped);
}

static bool is_in(const struct guard_record *record, uintptr_t address)
{
    /* acquire: partner is the release in hak_mapped_guard_take */
    return hak_load_acquire(&record->state) == GUARDED_LIVE &&
           address - hak_word_peek(&record->start) <
               hak_word_peek(&record->end) + hak_os_page_bytes() - hak_word_peek(&record->start);
}

struct guard_record *hak_mapped_guard_find(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    struct guard_record *around = NULL;
    for (uint32_t i = 0; i < HAK_MAPPED_GUARDS; i++) {
        struct guard_record *record = &table[i].record;
        if (!is_in(record, at))
            continue;
        if (hak_word_peek(&record->block) == at)
            return record;
        around = record;
    }
    return around;
}

void hak_mapped_guard_sum(size_t *bytes, size_t *count)
{
    for (uint32_t i = 0; i < HAK_MAPPED_GUARDS; i++)
        hak_guard_record_sum(&table[i].record, bytes, count);
}
