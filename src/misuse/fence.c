/* SPDX-License-Identifier: MIT */
#include "misuse/fence.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "misuse/fence_choice.h"
#include "misuse/harden.h"
#include "os/confine.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/stderr.h"
#include "policy/policy_table.h"
#include "region/mappings.h"
#include "stats/counters.h"

/* Runs have 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 ... units. */
#define STEPS 4u
#define KINDS (STEPS * 32u)
#define TABLE_STEP_BYTES (64 * HAK_KIB)
#define TRIES 4

struct run {
    struct guard_record record;
    struct run *next; /* on one of the lists */
    uint32_t first;   /* unit */
    uint32_t count;
};
hak_static_assert(sizeof(struct run) <= HAK_FENCE_RUN_BYTES_MOST,
                  "the region has room for so many");

struct hak_lock hak_fence_lock = HAK_LOCK_START_WITH(HAK_LOCK_FENCE);
/* Under the lock, but for the stack of freed runs. */
static _Atomic(struct run *) freed;
static struct run *waiting_first, *waiting_last;
static size_t waiting_bytes;
static struct run *usable[KINDS];
static uint32_t run_count;
static _Atomic uint32_t unit_count =
    1; /* in runs; what lies before the first is only ever missed */

static _Atomic size_t live_bytes, live_count;
static _Atomic bool is_frozen;

enum lack { LACK_MAPPINGS, LACK_MEMORY, LACK_LIMIT, LACK_COUNT };
static _Atomic bool was_told[LACK_COUNT];

bool hak_fence_start(void)
{
    if (!hak_fence_choice_start() || hak_region.fence_bytes == 0)
        return false;
    hak_os_read_mappings_most();
    hak_lock_note_handler(); /* sections with several system calls: a handler would meet one soon */
    return true;
}

static void tell_once(enum lack lack)
{
    static const char *const words[LACK_COUNT] = {
        [LACK_MAPPINGS] = " blocks are fenced, and few of the kernel's mappings (vm.max_map_count) "
                          "are left: from now on only a sample is fenced",
        [LACK_MEMORY] = " blocks are fenced, and memory or address space has run out: some of the "
                        "next blocks will not be",
        [LACK_LIMIT] = " blocks are fenced, and no more will be while option limit is set",
    };
    char line[256];
    struct text text = {.start = line, .bytes = sizeof line};
    if (hak_load_relaxed(&was_told[lack]) || hak_os_is_confined() ||
        atomic_exchange_explicit(&was_told[lack], true, memory_order_relaxed))
        return;
    hak_text_add(&text, "hakmem: fence: ");
    hak_text_add_number(&text, hak_load_relaxed(&live_count), 10);
    hak_text_add(&text, words[lack]);
    hak_os_stderr_line(&text);
}

static void *do_without(enum lack lack)
{
    hak_stat_global_add(guarded_full, 1);
    tell_once(lack);
    return NULL;
}

static size_t unit_bytes(void)
{
    return HAK_FENCE_UNIT_PAGES * hak_os_page_bytes();
}

static uintptr_t start_of(const struct run *run)
{
    return hak_region.fence_start + run->first * unit_bytes();
}

static struct run *runs(void)
{
    return (struct run *)(void *)hak_region.fence_runs.start;
}

/* For each unit 1 and the index of its run; 0: it is in none yet. */
static _Atomic uint32_t *places(void)
{
    return (_Atomic uint32_t *)(void *)hak_region.fence_places.start;
}

static struct run *run_at(size_t unit)
{
    /* acquire: partner is the release in hak_area_grow */
    size_t usable_bytes = hak_load_acquire(&hak_region.fence_places.usable_bytes);
    if (unit >= usable_bytes / HAK_FENCE_PLACE_BYTES)
        return NULL;
    uint32_t place = hak_load_relaxed(&places()[unit]);
    return place == 0 ? NULL : &runs()[place - 1];
}

static struct run *run_of(const void *address)
{
    return run_at(((uintptr_t)address - hak_region.fence_start) / unit_bytes());
}

/* Rounds units up to a size of run; returns the index of that size. */
static uint32_t round_units(size_t *units)
{
    if (*units <= STEPS)
        return (uint32_t)*units - 1;
    uint32_t shift = hak_bit_highest(*units - 1) - 2; /* two bits behind the highest count */
    *units = hak_align_up(*units, (size_t)1 << shift);
    return shift * STEPS + (uint32_t)(*units >> shift) - 1;
}

/* Appended by a single store: a jump out of here loses this run and leaves the list intact. */
static void wait_in_order(struct run *newest)
{
    struct run *oldest = NULL;
    while (newest != NULL) {
        struct run *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    for (struct run *run = oldest; run != NULL; run = run->next) {
        waiting_bytes += run->count * unit_bytes();
        newest = run;
    }
    if (oldest == NULL)
        return;
    if (waiting_first == NULL)
        waiting_first = oldest;
    else
        waiting_last->next = oldest;
    waiting_last = newest;
}

static void end_of_wait(void)
{
    size_t most = (size_t)hak_conf_number(fence_quarantine);
    while (waiting_bytes > most && waiting_first != NULL) {
        struct run *run = waiting_first;
        size_t units = run->count;
        uint32_t kind = round_units(&units);
        waiting_first = run->next;
        waiting_bytes -= run->count * unit_bytes();
        run->next = usable[kind];
        usable[kind] = run;
    }
}

static struct run *cut(size_t units)
{
    size_t first = hak_load_relaxed(&unit_count);
    if (units > hak_region.fence_bytes / unit_bytes() - first ||
        hak_area_grow(&hak_region.fence_places, (first + units) * HAK_FENCE_PLACE_BYTES,
                      TABLE_STEP_BYTES) != OS_MAPPED ||
        hak_area_grow(&hak_region.fence_runs, (run_count + 1) * sizeof(struct run),
                      TABLE_STEP_BYTES) != OS_MAPPED)
        return NULL;
    struct run *run = &runs()[run_count++];
    run->first = (uint32_t)first;
    run->count = (uint32_t)units;
    hak_store_relaxed(&unit_count, (uint32_t)(first + units));
    for (size_t i = 0; i < units; i++)
        hak_store_relaxed(&places()[first + i], run_count);
    return run;
}

static struct run *run_take(size_t bytes)
{
    size_t units = hak_align_up(bytes, unit_bytes()) / unit_bytes();
    uint32_t kind = round_units(&units);
    hak_lock_take(&hak_fence_lock);
    /* acquire: partner is the release in run_give */
    wait_in_order(atomic_exchange_explicit(&freed, NULL, memory_order_acquire));
    end_of_wait();
    struct run *run = usable[kind];
    if (run != NULL)
        usable[kind] = run->next;
    else
        run = cut(units);
    hak_lock_give(&hak_fence_lock);
    return run;
}

static void run_give(struct run *run)
{
    struct run *top = hak_load_relaxed(&freed);
    do
        run->next = top;
    /* release: partner is the acquire in run_take */
    while (!atomic_compare_exchange_weak_explicit(&freed, &top, run, memory_order_release,
                                                  memory_order_relaxed));
}

static size_t alignment_of(const struct fence_request *request)
{
    size_t ordinary = hak_least_alignment(request->bytes);
    size_t most = (size_t)1 << hak_conf_number(fence_alignment);
    return hak_most(request->alignment, hak_least(ordinary, most));
}

/* The block's offset in a run, its pages, and the size of the run. */
struct layout {
    size_t pages_bytes;
    size_t offset; /* of the block in its pages */
    size_t run_bytes;
};

static struct layout layout_of(const struct fence_request *request, size_t alignment)
{
    size_t page = hak_os_page_bytes();
    struct layout at = {.pages_bytes = hak_align_up(request->bytes, page)};
    if (hak_conf_number(fence_side) == FENCE_SIDE_END)
        at.offset = hak_align_down(at.pages_bytes - request->bytes, hak_least(alignment, page));
    at.run_bytes = at.pages_bytes + page + (alignment > page ? alignment : 0);
    return at;
}

/* Pages for a new run; NULL: there are none. */
static struct run *map(const struct layout *at, size_t alignment, uintptr_t *start)
{
    for (int tries = 0; tries < TRIES; tries++) {
        struct run *run = run_take(at->run_bytes);
        if (run == NULL)
            return NULL;
        *start = hak_align_up(start_of(run), hak_most(alignment, hak_os_page_bytes()));
        if (at->pages_bytes == 0)
            return run;
        enum os_map result = hak_os_map((void *)*start, at->pages_bytes);
        if (result == OS_MAPPED)
            return run;
        if (result == OS_MAP_REFUSED) {
            run_give(run);
            return NULL;
        }
        /* The addresses are others' now. */
    }
    return NULL;
}

/* Takes a block; its bytes are counted first. */
static void *take(const struct fence_request *request, const struct guarded_trace *trace)
{
    uintptr_t start;
    size_t alignment = alignment_of(request);
    struct layout at = layout_of(request, alignment);
    bool is_mapped = at.pages_bytes != 0;
    if (is_mapped && !hak_mappings_take_for_fence(hak_random()))
        return do_without(LACK_MAPPINGS);
    struct run *run = map(&at, alignment, &start);
    if (run == NULL) {
        hak_mappings_give(is_mapped);
        return do_without(LACK_MEMORY);
    }
    struct guard_record block = {.block = start + at.offset,
                                 .bytes = request->bytes,
                                 .form = request->form,
                                 .start = start,
                                 .end = start + at.pages_bytes,
                                 .filler_bytes_most = (uint32_t)hak_os_page_bytes()};
    hak_store_relaxed(&run->record.state, GUARDED_BUSY);
    hak_guard_record_open(&run->record, &block, trace);
    hak_fetch_add_relaxed(&live_bytes, request->bytes);
    hak_fetch_add_relaxed(&live_count, 1);
    hak_stat_global_add(guarded_blocks, 1);
    /* release: partner is the acquire in hak_guard_record_seize */
    hak_store_release(&run->record.state, GUARDED_LIVE);
    return (void *)block.block;
}

void *hak_fence_take(const struct fence_request *request, const struct guarded_trace *trace)
{
    size_t room = hak_region.fence_bytes / 4;
    if (hak_load_relaxed(&is_frozen) || hak_lock_is_noted_from(HAK_LOCK_FENCE) ||
        request->bytes > room || request->alignment > room)
        return NULL;
    return hak_policy_read(limit_bytes) != 0 ? do_without(LACK_LIMIT) : take(request, trace);
}

void hak_fence_give(struct guard_record *record)
{
    struct run *run = run_of((const void *)record->start);
    size_t bytes = record->end - record->start;
    /* A run that cannot be unmapped is not used again. */
    bool is_gone = bytes == 0 || hak_os_release((void *)record->start, bytes);
    hak_fetch_add_relaxed(&live_bytes, -record->bytes);
    hak_fetch_sub_relaxed(&live_count, 1);
    /* release: partner is the acquire of the report */
    hak_store_release(&record->state, GUARDED_FREE);
    if (!is_gone) {
        hak_os_deny((void *)record->start, bytes);
        return;
    }
    hak_mappings_give(bytes != 0);
    run_give(run);
}

struct guard_record *hak_fence_record_of(const void *address)
{
    struct run *run = run_of(address);
    return run == NULL || hak_word_peek(&run->record.block) == 0 ? NULL : &run->record;
}

/* Behind the pages of one block and before those of the next, the nearer one is meant. */
const struct guard_record *hak_fence_nearest(const void *address)
{
    size_t unit = ((uintptr_t)address - hak_region.fence_start) / unit_bytes();
    const struct run *run = run_at(unit);
    if (run == NULL) /* before the first, or behind the last */
        run = unit == 0 ? run_at(1) : run_at(unit - 1);
    if (run == NULL)
        return NULL;
    uintptr_t at = (uintptr_t)address, end = hak_word_peek(&run->record.end);
    const struct run *next = at < end ? NULL : run_at((size_t)run->first + run->count);
    if (next != NULL && hak_word_peek(&next->record.block) != 0 &&
        hak_word_peek(&next->record.start) - at < at - end)
        return &next->record;
    return hak_word_peek(&run->record.block) == 0 ? NULL : &run->record;
}

size_t hak_fence_live_bytes(void)
{
    return hak_load_relaxed(&live_bytes);
}

size_t hak_fence_live_count(void)
{
    return hak_load_relaxed(&live_count);
}

size_t hak_fence_used_bytes(void)
{
    return hak_region.fence_bytes == 0 ? 0 : hak_load_relaxed(&unit_count) * unit_bytes();
}

size_t hak_fence_table_bytes(void)
{
    return hak_load_relaxed(&hak_region.fence_places.usable_bytes) +
           hak_load_relaxed(&hak_region.fence_runs.usable_bytes);
}

void hak_fence_freeze(void)
{
    hak_store_relaxed(&is_frozen, true);
}
