/* SPDX-License-Identifier: MIT */
/* control/profiler.h - the heap profiler, switched from outside.
 *
 * Owns        nothing: the one place where a request reaches the profiler.
 * Invariants  the answer is one line of text without its end.
 * Threads     one at a time, outside every heap and lock, signals blocked.
 * Tests       tests/preload/ctl_preload.py
 */
#ifndef HAK_CONTROL_PROFILER_H
#define HAK_CONTROL_PROFILER_H

#include "base/text.h"
#include "os/kept_fd.h"

/* Starts or stops it and adds the answer; false: the answer says why not. */
bool hak_control_profiler_start(struct text *answer);
bool hak_control_profiler_stop(struct text *answer);

/* True when there is such a form (profile/output.h) and anything was sampled; else the answer says
 * which is missing. */
bool hak_control_profiler_may_write(const char *form, struct text *answer);

/* Writes the profile from where the file's descriptor is on; 0 or an error number. */
int hak_control_profiler_write(const struct os_kept_fd *file, const char *form);

#endif
