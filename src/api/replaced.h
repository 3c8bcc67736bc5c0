/* SPDX-License-Identifier: MIT */
/* api/replaced.h - C++ operators that the program defines itself.
 *
 * Owns        whether it defines one that others are made of.
 * Invariants  [new.delete]: a program may replace operator new and operator delete of one object;
 *             the forms for arrays, with a size, and those that do not throw then call the
 *             program's, as the C++ library's do. Where it replaces none they are hakmem's own,
 *             each with what it knows of the block. Which is the case is asked by the first form of
 *             these that is called: until then, and where some are replaced, all of them take their
 *             slow path.
 * Threads     any; all find the same.
 * Tests       tests/preload/replaced.cpp
 */
#ifndef HAK_API_REPLACED_H
#define HAK_API_REPLACED_H

#include "base/atomic.h"
#include "base/compiler.h"

/* 0: the program is known to replace none. */
extern _Atomic uint8_t hak_operators_may_be_replaced;

HAK_INLINE bool hak_may_be_replaced(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_operators_may_be_replaced) != 0);
}

/* Asks the loader. */
bool hak_operators_are_replaced(void);

HAK_INLINE bool hak_is_replaced(void)
{
    return hak_may_be_replaced() && hak_operators_are_replaced();
}

/* Where some are replaced: what operator new is called by a form for an array (alignment 0: an
 * ordinary one), what by one that does not throw, and what operator delete by one that is said to
 * free so many bytes (SIZE_MAX: nothing is said) of such an alignment. */
void *hak_pass_new_array(size_t bytes, size_t alignment);
void *hak_pass_new_nothrow(size_t bytes, size_t alignment, bool is_array);
void hak_pass_delete(void *block, size_t bytes, size_t alignment, bool is_array);

#endif
