/* SPDX-License-Identifier: MIT */
/* heap/settings.h - the properties of the machine and the container, read together and once.
 *
 * Owns        whether it was read: the setting of huge pages, vm.max_map_count, the memory nodes,
 *             the control group. Until then each has a safe default.
 * Invariants  no request depends on a file: not in a program that confined itself, where none is
 *             read any more, nor where /proc is missing.
 * Threads     any; one reads, without a lock, and the others do not wait for it.
 * Tests       tests/unit/heap/settings_test.c, tests/unit/heap/cgroup_test.c
 */
#ifndef HAK_HEAP_SETTINGS_H
#define HAK_HEAP_SETTINGS_H

#include "base/atomic.h"
#include "base/limits.h"

extern _Atomic uint32_t hak_settings_were_read;

/* Reads all of it, if nobody has. By the background thread, from 16 MiB on. */
void hak_settings_read(void);

/* With the process: reads at once where no thread of hakmem's own will, and gets ready for a
 * program that confines itself (os/confine.h). */
void hak_settings_start(void);

#endif
