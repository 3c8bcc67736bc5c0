/* SPDX-License-Identifier: MIT */
#include "span/huge_blocks.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "conf/conf.h"
#include "misuse/harden.h"
#include "os/os.h"
#include "os/os_huge.h"
#include "policy/policy_table.h"
#include "region/huge_pace.h"
#include "region/huge_wish.h"
#include "span/span_lock.h"
#include "stats/counters.h"

/* So many filled blocks in a row come before a huge one; twice as many after each time that this
 * was not enough. */
#define FILLED_LEAST 2u
#define FILLED_MOST 64u
/* So many granules at the end of a huge block have small pages, and tell whether it was filled. The
 * very last one may be room that the block does not need. */
#define END_GRANULES 4u
/* A block is told by so many granules, those at its end and others, of which all but one page in so
 * many must be resident. */
#define LOOKS 16u
#define MISSING_SHARE 8
/* A block of which the end is not filled is looked at again, when each of so many others comes; of
 * these a few may be huge. */
#define WAITS_MOST 8u
#define WAITS_HUGE_MOST 4u

/* What was seen of blocks of a kind. */
struct evidence {
    _Atomic uint64_t watched; /* first granule of the block to look at, above its granules; or 0 */
    _Atomic uint32_t waits;   /* how often its end was found not to be filled */
    _Atomic uint32_t filled;  /* blocks in a row, at most FILLED_MOST */
    _Atomic uint32_t longest; /* granules, of any of these */
    _Atomic uint32_t doublings;
};
#define FIRST_SHIFT 32

/* Blocks from calloc, and all others. */
static struct evidence evidence_of[2];

/* Under the SPAN lock. */
static struct huge_pace pace;

static bool is_resident(uint32_t granule)
{
    return hak_os_is_resident(hak_granule_address(granule), HAK_GRANULE_BYTES, MISSING_SHARE);
}

static uint32_t needed(const struct evidence *seen)
{
    return FILLED_LEAST << hak_load_relaxed(&seen->doublings);
}

static void note_sparse(struct evidence *seen)
{
    uint32_t doublings = hak_load_relaxed(&seen->doublings);
    if (hak_load_relaxed(&seen->filled) >= needed(seen) && needed(seen) < FILLED_MOST)
        hak_store_relaxed(&seen->doublings, doublings + 1);
    hak_store_relaxed(&seen->filled, 0);
    hak_store_relaxed(&seen->longest, 0);
}

static void note_filled(struct evidence *seen, uint32_t count)
{
    uint32_t before = hak_load_relaxed(&seen->filled);
    if (before < FILLED_MOST)
        hak_store_relaxed(&seen->filled, before + 1);
    if (count > hak_load_relaxed(&seen->longest))
        hak_store_relaxed(&seen->longest, count);
}

/* Which granule of so many is looked at next. */
static uint32_t granule_to_look_at(uint32_t count, uint32_t looks)
{
    uint32_t end = count - END_GRANULES;
    return looks < END_GRANULES - 1 ? end + looks : (LOOKS - looks) * end / LOOKS;
}

/* Looks at a block from its end, which is filled last. False: it may be filled yet. */
static bool look(struct evidence *seen, uint64_t word, bool is_over)
{
    uint32_t first = (uint32_t)(word >> FIRST_SHIFT);
    uint32_t count = (uint32_t)word;
    uint32_t looks = 0;
    while (looks < LOOKS && is_resident(first + granule_to_look_at(count, looks)))
        looks++;
    if (looks == LOOKS)
        note_filled(seen, count);
    else if (looks != 0 || is_over)
        note_sparse(seen);
    else
        return false;
    return true;
}

/* Whether the block will be filled, as far as the program has shown. */
static bool is_expected(const struct evidence *seen, const struct span *span)
{
    return hak_load_relaxed(&seen->filled) >= needed(seen) &&
           hak_load_relaxed(&seen->waits) < WAITS_HUGE_MOST &&
           span->count <= 2 * hak_load_relaxed(&seen->longest);
}

static bool is_paused(void)
{
    hak_span_lock();
    bool result = hak_huge_turn(&pace) == HUGE_TURN_SMALL;
    hak_span_unlock();
    return result;
}

/* Touches the first huge page, which is touched soon anyway. False: it took so long that small ones
 * are faster. */
static bool comes_fast(struct granule_range range)
{
    uint64_t before_ns = hak_os_clock_ns();
    hak_os_touch(hak_granule_address(range.first), 1);
    bool is_slow = (hak_os_clock_ns() - before_ns) / 1000 >= hak_policy_read(huge_slow_us);
    hak_span_lock();
    hak_huge_timed(&pace, is_slow);
    hak_span_unlock();
    return !is_slow;
}

static void ask(const struct span *span)
{
    if (hak_os_huge_pages() != HUGE_ON_REQUEST || is_paused())
        return;
    struct granule_range range =
        hak_huge_wish((struct granule_range){span->first, span->count - END_GRANULES});
    if (range.count == 0)
        return;
    hak_stat_global_add(huge_blocks, 1);
    if (!comes_fast(range))
        hak_huge_refuse(range);
}

/* Where all memory is huge, or none, there is nothing to ask; it is not known from the start. In
 * hardened mode blocks are cleared and purged in place. */
static bool may_watch(void)
{
    return (hak_os_huge_pages() == HUGE_ON_REQUEST || !hak_os_huge_pages_are_known()) &&
           hak_conf_number(thp) == THP_AUTO && !hak_harden_has(HARDEN_EXACT);
}

static bool is_large(const struct span *span)
{
    return hak_span_bytes(span) >= hak_policy_read(huge_large_bytes);
}

void hak_huge_block_begin(const struct span *span, bool is_calloc)
{
    if (HAK_LIKELY(!is_large(span)) || !may_watch())
        return;
    struct evidence *seen = &evidence_of[is_calloc];
    uint64_t word = hak_exchange_relaxed(&seen->watched, 0);
    uint32_t waits = hak_load_relaxed(&seen->waits);
    bool is_known = word == 0 || look(seen, word, waits == WAITS_MOST);
    hak_store_relaxed(&seen->waits, is_known ? 0 : waits + 1);
    if (is_expected(seen, span))
        ask(span);
    if (is_known)
        word = (uint64_t)span->first << FIRST_SHIFT | span->count;
    hak_store_relaxed(&seen->watched, word);
}

static void end(struct evidence *seen, const struct span *span)
{
    uint64_t word = hak_load_relaxed(&seen->watched);
    if (HAK_LIKELY(word >> FIRST_SHIFT != span->first) || word == 0)
        return;
    if (hak_cas_relaxed(&seen->watched, &word, 0))
        look(seen, word, true);
}

void hak_huge_block_end(const struct span *span)
{
    end(&evidence_of[0], span);
    end(&evidence_of[1], span);
}
