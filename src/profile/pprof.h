/* SPDX-License-Identifier: MIT */
/* profile/pprof.h - the heap profile as a file for pprof.
 *
 * Owns        the table of the addresses that were written last.
 * Invariants  one message Profile of pprof's profile.proto, not compressed, with the sample types
 *             of `hakmem profile --pprof` and without names: a location is an address in a file
 *             with a build id, as far as the board knows the file. Memory is bounded: an address
 *             gets another location where the table has forgotten it.
 * Threads     one at a time (profile/output.h).
 * Tests       tests/preload/pprof_preload.py
 */
#ifndef HAK_PROFILE_PPROF_H
#define HAK_PROFILE_PPROF_H

#include "profile/writer.h"

void hak_pprof_write(struct profile_writer *writer);

#endif
