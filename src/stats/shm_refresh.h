/* SPDX-License-Identifier: MIT */
/* stats/shm_refresh.h - the option stats_shm, or a request: statistics in /dev/shm/hakmem.PID.
 *
 * Owns        this process's shm file (stats/shm.h).
 * Invariants  made by the first refresh, also in the child of a fork, which never touches its
 *             parent's; removed at the end; a later refresh makes a new one. A process that is
 *             killed, or becomes another program, leaves it behind, with its last numbers: readers
 *             know it by the start time and by its age, and the next process that makes one removes
 *             it once its own is gone. If a process of another PID namespace writes to the file of
 *             that name, it keeps it, and this one has none.
 * Threads     one at a time, the holder of the stats writer (stats/writer.h).
 * Tests       tests/preload/top_preload.py, tests/preload/spaces_preload.py
 */
#ifndef HAK_STATS_SHM_REFRESH_H
#define HAK_STATS_SHM_REFRESH_H

#include "base/compiler.h"

/* Creates the file if necessary and writes the current statistics to it; a failure is reported
 * once. */
void hak_shm_refresh(void);

/* Removes it, at exit, or at the end of the requested time. */
void hak_shm_end(void);

/* True when this process has one. */
bool hak_shm_is_there(void);

#endif
