/* SPDX-License-Identifier: MIT */
/* stats/binding.h - whether this malloc is called at all.
 *
 * Owns        nothing: the loader decided it.
 * Invariants  a process that has hakmem mapped calls another malloc where one comes before it in
 *             the loader's order: the program's own, or that of a library preloaded before. In a
 *             build with hakmem's own names only, libc's names do not lead here.
 * Threads     any.
 * Tests       tests/preload/shadowed_preload.sh
 */
#ifndef HAK_STATS_BINDING_H
#define HAK_STATS_BINDING_H

#include "base/compiler.h"

/* Before main: whether malloc and its family lead elsewhere. */
void hak_binding_note(bool is_elsewhere);

/* True: another malloc comes first, and nothing was served here so far. */
bool hak_is_shadowed(void);

/* Reports that in one line, if true. */
void hak_binding_tell(void);

#endif
