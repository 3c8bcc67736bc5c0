/* SPDX-License-Identifier: MIT */
/* heap/limit.h - how much memory hakmem may hold.
 *
 * Owns        what counts as held, and the two limits: rows limit_bytes and soft_limit_bytes of the
 *             policy, 0: none; without a soft one, that of the process's control group holds.
 * Invariants  held is what is or may be resident: live blocks by the size of their slabs and spans,
 *             caches, warm free memory, records and tables. What is clean (fresh or purged) is not.
 *             Memory that is already held is taken without a check; new memory is first counted and
 *             then compared, so that threads cannot exceed the limit together. What a block grows
 *             by, which cannot be given back when it has moved, is counted before, and twice until
 *             its growth ends: others may be refused in that moment, and try again. The counters
 *             are read one after the other: what becomes a large block meanwhile counts twice
 *             rather than not at all, but of a superslab whose slabs change meanwhile a part may be
 *             missed. Marks of hardened mode count as if all were used.
 * Threads     any; nothing is locked but for the purge lock while memory goes back.
 * Tests       tests/unit/heap/limit_test.c, tests/preload/held.c
 */
#ifndef HAK_HEAP_LIMIT_H
#define HAK_HEAP_LIMIT_H

#include "base/atomic.h"
#include "policy/policy_table.h"

/* What the control group suggests as a soft limit; 0: nothing. */
extern _Atomic size_t hak_limit_group_bytes;

/* The limit above which free memory is returned; SIZE_MAX: there is none. */
size_t hak_limit_soft_bytes(void);

/* Bytes held at this moment. */
size_t hak_held_bytes(void);

/* True when some limit is set: the only cost of this file without one. */
HAK_INLINE bool hak_limit_is_set(void)
{
    return (hak_policy_read(limit_bytes) | hak_policy_read(soft_limit_bytes) |
            hak_load_relaxed(&hak_limit_group_bytes)) != 0;
}

/* Whether `more_bytes` would be available if all warm memory were returned. Changes nothing. */
bool hak_limit_admits_slow(size_t more_bytes);
HAK_INLINE bool hak_limit_admits(size_t more_bytes)
{
    return HAK_LIKELY(!hak_limit_is_set()) || hak_limit_admits_slow(more_bytes);
}

/* After memory was taken: returns enough free memory to stay within the limits. False: the limit is
 * still exceeded, and the memory taken must be returned. */
bool hak_limit_settle_slow(void);
HAK_INLINE bool hak_limit_settle(void)
{
    return HAK_LIKELY(!hak_limit_is_set()) || hak_limit_settle_slow();
}

/* Around the growth of a block by so much; false: it is refused, and nothing is to be ended. */
bool hak_limit_begin_growth(size_t more_bytes);
void hak_limit_end_growth(size_t more_bytes);

/* Of these, what a purge would return at once. */
size_t hak_limit_warm_bytes(void);

/* True while more is held than the soft limit or the limit allows: no free memory is kept then. */
bool hak_limit_is_passed(void);

#endif
