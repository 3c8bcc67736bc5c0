/* SPDX-License-Identifier: MIT */
/* profile/writer.h - the writer that all forms of the heap profile share.
 *
 * Owns        the buffer that profiles are written from.
 * Invariants  nothing is allocated. A write error is kept, and nothing is written after it. Numbers
 *             are of slightly different moments while other threads run.
 * Threads     one at a time (profile/output.h).
 * Tests       tests/preload/pprof_preload.py
 */
#ifndef HAK_PROFILE_WRITER_H
#define HAK_PROFILE_WRITER_H

#include "os/kept_fd.h"
#include "profile/board.h"

/* Where it goes: to `kept` as long as that is the same file, or, NULL, to whatever fd is. */
struct profile_target {
    int fd;
    const struct os_kept_fd *kept;
};

struct profile_writer {
    const struct profile_target *to;
    int error;
    size_t used;
    uint32_t module_count; /* of profile/modules.h, when it began */
};

/* In the order of the sample types of `hakmem profile --pprof`. */
enum profile_value {
    PROFILE_ALLOCATED_COUNT,
    PROFILE_ALLOCATED_BYTES,
    PROFILE_LIVE_COUNT,
    PROFILE_LIVE_BYTES,
    PROFILE_LIFE_NS, /* of all blocks that have ended, together */
    PROFILE_VALUES
};

struct profile_times {
    uint64_t mean_bytes;  /* between two samples */
    uint64_t taken_ns;    /* since 1970 */
    uint64_t duration_ns; /* since sampling began; 0: it is off */
};

struct profile_writer hak_profile_writer(const struct profile_target *to);
void hak_profile_writer_add(struct profile_writer *writer, const void *bytes, size_t count);

/* Writes what is left; returns 0 or what a write met. */
int hak_profile_writer_end(struct profile_writer *writer);

/* The build id of a module in hexadecimal digits; returns how many. */
#define HAK_BUILD_ID_DIGITS (2 * HAK_BOARD_BUILD_ID_BYTES)
size_t hak_profile_writer_build_id(const struct board_module *module,
                                   char digits[HAK_BUILD_ID_DIGITS]);

/* The number of the module that has the address, from 1 on; 0: none is known. */
uint32_t hak_profile_writer_module_of(const struct profile_writer *writer, uint64_t address);

/* Calls `visit` for each site that allocated. */
void hak_profile_writer_sites(struct profile_writer *writer,
                              void (*visit)(struct profile_writer *writer,
                                            const struct board_site *site,
                                            const uint64_t values[PROFILE_VALUES]));

struct profile_times hak_profile_times(void);

#endif
