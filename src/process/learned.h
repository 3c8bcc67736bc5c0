/* SPDX-License-Identifier: MIT */
/* process/learned.h - option `profile`: what a run learned, for the next run of the program.
 *
 * Owns        the option: the file is read before `main` and written when the process ends; the
 *             record of this program, and its memory use in its first second.
 * Invariants  without the option nothing is read, written or called. A file that is refused is
 *             reported once and never written. A forked child writes nothing. Entries of other
 *             programs that were written meanwhile are kept, and what the user said of this one's
 *             sites. A failed write leaves the file unchanged.
 * Threads     load and save: one; the tick: any.
 * Tests       tests/preload/learned_preload.sh
 */
#ifndef HAK_PROCESS_LEARNED_H
#define HAK_PROCESS_LEARNED_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "conf/conf.h"

/* The end of the first second; 0: not watched. */
extern _Atomic uint64_t hak_learned_second_ms;

/* Reads the file: keep times, matches and rules start as learned. */
void hak_learned_load_slow(void);
HAK_INLINE void hak_learned_load(void)
{
    if (HAK_UNLIKELY(*hak_conf_text(profile) != '\0') && hak_conf_number(learn) != 0)
        hak_learned_load_slow();
}

/* Measures memory use in the first second, and detects its end. */
void hak_learned_look(void);
HAK_INLINE void hak_learned_tick(void)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_learned_second_ms) != 0))
        hak_learned_look();
}

#endif
