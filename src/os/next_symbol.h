/* SPDX-License-Identifier: MIT */
/* os/next_symbol.h - the definition that a name would have without hakmem.
 *
 * Owns        nothing.
 * Invariants  errno is kept. The loader may take its lock and allocate: never call this with a lock
 *             of ours held.
 * Threads     any.
 * Tests       tests/preload/dlopen.c, tests/install/linked_install.sh
 */
#ifndef HAK_OS_NEXT_SYMBOL_H
#define HAK_OS_NEXT_SYMBOL_H

#include "base/atomic.h"

typedef void next_function(void);

/* The next definition of the name, a literal, behind hakmem's in the loader's order; NULL when
 * there is none, and in static programs. */
#define hak_next_symbol(name) hak_next_symbol_of(HAK_TEXT_AT_HAND(name))
void *hak_next_symbol_of(const char *name);

/* The same, looked up once, for a function that is called through *known; where there is none,
 * errno says so. */
#define hak_next_function(known, name) hak_next_function_of((known), HAK_TEXT_AT_HAND(name))
next_function *hak_next_function_of(_Atomic(next_function *) *known, const char *name);

/* The definition in the C++ library, which may have come later than hakmem, and where the loader's
 * order does not lead; NULL: there is none, or hakmem is linked. */
void *hak_late_symbol(const char *name);

#endif
