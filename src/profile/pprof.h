/* SPDX-License-Identifier: MIT */
/* profile/pprof.h - the heap profile as a file for pprof.
 *
 * Owns        the buffer that it is written from.
 * Invariants  one message Profile of pprof's profile.proto, not compressed, with the sample types
 *             of `hakmem profile --pprof` and without names: a location is an address in a file
 *             with a build id, as far as the board knows the file. Nothing is allocated, and
 *             memory is bounded: an address gets another location where the table of those that
 *             were written has forgotten it. Numbers are of slightly different moments while other
 *             threads run.
 * Threads     one writes at a time; others wait for a second at most. Copies begin anew.
 * Tests       tests/preload/pprof_preload.py
 */
#ifndef HAK_PROFILE_PPROF_H
#define HAK_PROFILE_PPROF_H

#include "os/kept_fd.h"

/* Where it goes: to `kept` as long as that is the same file, or, NULL, to whatever fd is. */
struct pprof_target {
    int fd;
    const struct os_kept_fd *kept;
};

/* Returns 0, EBUSY: somebody else has been writing for a second, or what the write met. */
int hak_pprof_write(const struct pprof_target *to);

/* Whether anything was ever sampled. */
bool hak_pprof_has_any(void);

/* At the end of the process, with heap_profile=pprof: writes a new file hakmem.PID.pprof, or
 * STATS_FILE.pprof where that option names a file; .2.pprof and so on where there is one. None if
 * nothing was sampled. What fails is said in one line. */
void hak_pprof_write_file(void);

#endif
