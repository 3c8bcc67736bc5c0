/* SPDX-License-Identifier: MIT */
/* profile/board.h - the heap profile in a file that other processes read.
 *
 *   struct profile_board:  head | modules | last statistics | sites[0 .. site_count)
 *
 * Owns        the layout of the file HAK_BOARD_PATH PID, which a process writes while heap_profile
 *             or blackbox is on (profile/show.h says from when on), and which outlives a process
 *             that is killed. The file is as long as the whole layout, and has memory behind what
 *             is used.
 * Invariants  addresses are those of the process, frames innermost first: return addresses, but
 *             none of hakmem's own. A site is one stack, cut where it has more than
 *             HAK_BOARD_FRAMES; two sites may have the same stack, readers add them up. Sites and
 *             modules are only ever added; the first module is the program. Site 0 has no frames:
 *             samples that found no room are counted there. Counts and bytes are estimates of what
 *             was requested, weighted already; what is live is what was allocated less what was
 *             freed. `samples` are raw. A block's life ends when it is freed, or resized to another
 *             place. A site may be a stack that frees and allocates nothing: only `freed_by` of
 *             others leads to it.
 * Argument    Every field is one word that is written in one step, so a reader copies fields at any
 *             moment, whatever becomes of the writer. Frames and paths are written before their
 *             record's `state` is BOARD_READY (release; the reader's load is acquire) and never
 *             again. Counters are added to, each for itself: of one moment they are only together
 *             when the process stands still. A reader that loads what was freed before what was
 *             allocated, and takes a negative difference for 0, is wrong by what happens meanwhile.
 *             site_count is raised before the site is ready: readers pass by those that are not.
 *             `stats` is published as its own header says (stats/shm.h); its head stays 0 while
 *             only heap_profile is on.
 * Threads     any threads of one process write, relaxed but for the above; any number read.
 * Tests       tests/unit/profile/, tests/preload/profile.c
 */
#ifndef HAK_PROFILE_BOARD_H
#define HAK_PROFILE_BOARD_H

#include "stats/shm.h"

#define HAK_BOARD_MAGIC 0x31656c69666f7268ull /* "hrofile1" */
#define HAK_BOARD_VERSION 2u
#define HAK_BOARD_FOLDER "/dev/shm"
#define HAK_BOARD_NAME "hakmem.profile."
#define HAK_BOARD_PATH HAK_BOARD_FOLDER "/" HAK_BOARD_NAME

#define HAK_BOARD_FRAMES 32u
#define HAK_BOARD_SITES 2000u
#define HAK_BOARD_MODULES 512u
/* The file has memory for so many modules from the beginning on, for the rest as they come. */
#define HAK_BOARD_FIRST_MODULES 96u
#define HAK_BOARD_PATH_BYTES 200u
#define HAK_BOARD_BUILD_ID_BYTES 20u
/* Bucket i has the life times below 4^i ms that are in no earlier one; the last has the rest. */
#define HAK_BOARD_LIFE_BUCKETS 14u

enum board_state { BOARD_EMPTY, BOARD_READY };

/* Part of a file that is mapped to be executed. */
struct board_module {
    _Atomic uint64_t state; /* enum board_state */
    uint64_t start;         /* addresses of the process */
    uint64_t end;
    uint64_t file_offset; /* of `start` */
    uint64_t bias;        /* addresses less those that the file has for itself */
    uint32_t build_id_bytes;
    uint8_t build_id[HAK_BOARD_BUILD_ID_BYTES];
    char path[HAK_BOARD_PATH_BYTES]; /* its end, where that is longer; ends with 0 */
};

struct board_site {
    _Atomic uint64_t state; /* enum board_state */
    uint64_t frame_count;
    uint64_t frames[HAK_BOARD_FRAMES];
    _Atomic uint64_t allocated_count;
    _Atomic uint64_t allocated_bytes;
    _Atomic uint64_t freed_count;
    _Atomic uint64_t freed_bytes;
    _Atomic uint64_t samples;       /* blocks that were sampled */
    _Atomic uint64_t ended_samples; /* of these, blocks whose end was seen */
    _Atomic uint64_t life_us;       /* of ended blocks, weighted as freed_count; at most 2^62 */
    _Atomic uint64_t first_ms;      /* when the first sample was taken, hak_os_clock_ms; */
    _Atomic uint64_t last_ms;       /* the last one; */
    _Atomic uint64_t oldest_ms;     /* and the birth of the oldest live one, or a little before;
                                       0: none is live */
    _Atomic uint64_t freed_by;      /* the site of the stack that ended one of the last few sampled
                                       blocks; 0: it is not known, and of site 0 nothing is */
    _Atomic uint32_t life[HAK_BOARD_LIFE_BUCKETS]; /* ended samples */
};

/* Why a sample is not in the sites. */
#define HAK_BOARD_DROPPED_TABLE(X)                                                                 \
    X(sites_full, "stacks that found no site of their own, and are counted with site 0")           \
    X(untracked, "samples whose end will not be seen: counted as allocated and freed at once")     \
    X(in_handlers, "of these, taken in a signal handler or a section of hakmem's own")             \
    X(modules_full, "modules that found no room: one may be counted for each site that it is in")

struct board_dropped {
#define X(name, meaning) _Atomic uint64_t name;
    HAK_BOARD_DROPPED_TABLE(X)
#undef X
};

struct board_head {
    _Atomic uint64_t magic; /* written last: a reader that finds it finds the rest of the head */
    uint64_t version;
    uint64_t layout;     /* hak_board_layout() */
    uint64_t file_bytes; /* of the whole layout, for mapping */
    uint64_t pid;
    uint64_t pid_space;       /* hak_os_pid_space */
    uint64_t start_ticks;     /* hak_os_start_ticks */
    uint64_t start_unix_ms;   /* when the board was made */
    uint64_t start_ms;        /* the same by hak_os_clock_ms */
    char name[64];            /* of the program, ends with 0 */
    _Atomic uint64_t is_kept; /* blackbox is on: it stays when the process dies */
    /* 0 while sampling is off. */
    _Atomic uint64_t mean_bytes;   /* between two samples */
    _Atomic uint64_t sampling_ms;  /* since when, by hak_os_clock_ms */
    _Atomic uint64_t refreshed_ms; /* when the process last looked after the board */
    _Atomic uint64_t site_count;
    _Atomic uint64_t module_count;
    struct board_dropped dropped;
    _Atomic uint64_t unshown_count; /* sites of the process that the file has no memory for now */
};

struct profile_board {
    struct board_head head;
    alignas(64) struct board_module modules[HAK_BOARD_MODULES];
    alignas(64) struct stats_shm stats; /* blackbox: residency, limits, counters, last events */
    alignas(64) struct board_site sites[HAK_BOARD_SITES];
};

hak_static_assert(sizeof(struct board_head) <= 256, "a head is small");
hak_static_assert(sizeof(struct profile_board) <= HAK_MIB / 4 * 5, "a board is bounded");

/* Differs where the layout differs. */
uint64_t hak_board_layout(void);

#endif
