/* SPDX-License-Identifier: MIT */
/* profile/profile.h - turns the heap profile on and off, and reports at exit.
 *
 * Owns        options heap_profile, heap_profile_rate and blackbox while the program runs.
 * Invariants  when off it has no effect: the hot path is the same machine code, and slow paths read
 *             one more word. With the options, sampling begins when hakmem starts
 *             (process/start.c); from hak_profile_start on within the next 65,536 requests of each
 *             class and thread where caches are by thread, else at once. When sampling stops,
 *             earlier samples are kept and tracked until they are freed.
 * Threads     any, not signal handlers.
 * Tests       tests/unit/profile/sampler_test.c, tests/preload/profile.c
 */
#ifndef HAK_PROFILE_PROFILE_H
#define HAK_PROFILE_PROFILE_H

#include "base/compiler.h"

/* Samples about one allocation in so many bytes from now on; 0: as heap_profile_rate says. */
void hak_profile_start(uint64_t mean_bytes);
void hak_profile_stop(void);

#endif
