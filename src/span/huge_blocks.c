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
/* So many huge ones may come before it is seen whether one is filled. */
#define UNSEEN_MOST 4u
/* The longest filled block counts a little less with each shorter one. */
#define LONGEST_SHARE 8
/* So many granules at the end of a huge block have small pages, and tell whether it was filled. The
 * very last one may be room that the block does not need. */
#define END_GRANULES 4u
/* A block is told by so many granules, those at its end and others, of which all but one page in so
 * many must be resident. */
#define LOOKS 16u
/* A block of which the end is not filled is looked at again, when each of so many others comes. */
#define WAITS_MOST 8u

/* The block that is to be looked at: its first granule, above its granules; 0: none. */
static _Atomic uint64_t watched;
#define FIRST_SHIFT 32

static _Atomic uint32_t waits;          /* how often its end was found not to be filled */
static _Atomic uint32_t filled;         /* blocks in a row, at most FILLED_MOST */
static _Atomic uint32_t filled_longest; /* granules, of these */
static _Atomic uint32_t needed = FILLED_LEAST;
static _Atomic uint32_t unseen; /* huge blocks since a block was found filled or sparse */

/* Under the SPAN lock. */
static struct huge_pace pace;

static bool is_resident(uint32_t granule)
{
    return hak_os_is_resident(hak_granule_address(granule), HAK_GRANULE_BYTES);
}

static void note_sparse(void)
{
    uint32_t before = hak_load_relaxed(&needed);
    if (hak_load_relaxed(&filled) >= before)
        hak_store_relaxed(&needed, (uint32_t)hak_least(2 * before, FILLED_MOST));
    hak_store_relaxed(&filled, 0);
    hak_store_relaxed(&filled_longest, 0);
    hak_store_relaxed(&unseen, 0);
}

static void note_filled(uint32_t count)
{
    uint32_t before = hak_load_relaxed(&filled), longest = hak_load_relaxed(&filled_longest);
    if (before < FILLED_MOST)
        hak_store_relaxed(&filled, before + 1);
    longest -= longest / LONGEST_SHARE;
    hak_store_relaxed(&filled_longest, (uint32_t)hak_most(count, longest));
    hak_store_relaxed(&unseen, 0);
}

/* Which granule of so many is looked at next. */
static uint32_t granule_to_look_at(uint32_t count, uint32_t seen)
{
    uint32_t end = count - END_GRANULES;
    return seen < END_GRANULES - 1 ? end + seen : (LOOKS - seen) * end / LOOKS;
}

enum verdict { BLOCK_OPEN, BLOCK_FILLED, BLOCK_SPARSE };

/* Looks at a block from its end, which is filled last. One that is open may be filled yet. */
static enum verdict look(uint64_t word, bool is_over)
{
    uint32_t first = (uint32_t)(word >> FIRST_SHIFT);
    uint32_t count = (uint32_t)word;
    uint32_t seen = 0;
    while (seen < LOOKS && is_resident(first + granule_to_look_at(count, seen)))
        seen++;
    if (seen == 0 && !is_over)
        return BLOCK_OPEN;
    if (seen == LOOKS)
        note_filled(count);
    else
        note_sparse();
    return seen == LOOKS ? BLOCK_FILLED : BLOCK_SPARSE;
}

/* Whether the block will be filled, as far as the program has shown. */
static bool is_expected(const struct span *span)
{
    return hak_load_relaxed(&filled) >= hak_load_relaxed(&needed) &&
           span->count <= 2 * hak_load_relaxed(&filled_longest) &&
           hak_os_huge_pages() == HUGE_ON_REQUEST;
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
static bool comes_fast(uint32_t first)
{
    bool is_slow = hak_huge_is_slow(first);
    hak_span_lock();
    hak_huge_timed(&pace, is_slow);
    hak_span_unlock();
    hak_stat_global_add(huge_blocks_slow, is_slow);
    return !is_slow;
}

static void ask(const struct span *span)
{
    if (is_paused() || hak_fetch_add_relaxed(&unseen, 1) >= UNSEEN_MOST)
        return;
    struct granule_range range =
        hak_huge_wish((struct granule_range){span->first, span->count - END_GRANULES});
    if (range.count == 0)
        return;
    hak_stat_global_add(huge_blocks, 1);
    if (!comes_fast(range.first))
        hak_huge_refuse(range);
}

/* Where all memory is huge, or none, there is nothing to ask; it is not known from the start. In
 * hardened mode blocks are cleared and purged in place. Under a limit nothing is touched before it
 * was compared with it. */
static bool may_watch(void)
{
    return (hak_os_huge_pages() == HUGE_ON_REQUEST || !hak_os_huge_pages_are_known()) &&
           hak_conf_number(thp) == THP_AUTO && !hak_harden_has(HARDEN_EXACT) &&
           hak_policy_read(limit_bytes) == 0;
}

static bool is_large(const struct span *span)
{
    return hak_span_bytes(span) >= hak_policy_read(huge_large_bytes);
}

void hak_huge_block_begin(const struct span *span)
{
    if (HAK_LIKELY(!is_large(span)) || !may_watch())
        return;
    uint64_t word = hak_exchange_relaxed(&watched, 0);
    uint32_t waited = hak_load_relaxed(&waits);
    bool is_open = word != 0 && look(word, waited == WAITS_MOST) == BLOCK_OPEN;
    hak_store_relaxed(&waits, is_open ? waited + 1 : 0);
    if (!is_open)
        word = (uint64_t)span->first << FIRST_SHIFT | span->count;
    hak_store_relaxed(&watched, word);
    if (is_expected(span))
        ask(span);
}

void hak_huge_block_end(const struct span *span)
{
    uint64_t word = hak_load_relaxed(&watched);
    if (HAK_LIKELY(word >> FIRST_SHIFT != span->first) || word == 0)
        return;
    /* What of a sparse one was not touched may serve something else that is sparse. */
    if (hak_cas_relaxed(&watched, &word, 0) && look(word, true) == BLOCK_SPARSE)
        hak_huge_refuse(hak_span_granules(span));
}
