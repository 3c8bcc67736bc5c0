/* SPDX-License-Identifier: MIT */
/* profile/leaks.h - reports at exit what was not freed.
 *
 * Owns        the lines of heap_profile=leaks.
 * Invariants  one line for all, then one for each of the HAK_LEAKS_LINES sites whose oldest live
 *             block is the oldest, on standard error as it was at the start. Nothing is allocated.
 *             Addresses are a file and an offset in it, as addr2line and other tools take them.
 * Threads     one.
 * Tests       tests/preload/leaks_preload.sh
 */
#ifndef HAK_PROFILE_LEAKS_H
#define HAK_PROFILE_LEAKS_H

#include "base/compiler.h"

#define HAK_LEAKS_LINES 50u

void hak_leaks_tell(void);

#endif
