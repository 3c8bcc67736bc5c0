/* SPDX-License-Identifier: MIT */
/* stats/shm.h - statistics in a file that other processes read.
 *
 * Owns        struct stats_shm, the contents of a file /dev/shm/hakmem.PID: its writer, and two
 *             pages, of which one is whole while the other is written.
 * Invariants  page `published % 2` is whole. The writer of page g changes nothing but the page that
 *             g - 2 was. So a reader that finds `published` as it was before it copied has a whole
 *             page: page g is written to again only after g + 1 was published.
 * Argument    the writer: store published = g + 1; release fence; relaxed stores to the page that g
 *             was. The reader: load published = g (acquire: partner is the release store, so it
 *             sees all of page g); relaxed loads of the page; acquire fence; load published again.
 *             The interleaving that would hurt: the copy holds a word of page g + 2. Then that load
 *             read a store that follows the writer's fence, so the fences pair, and the second load
 *             must see g + 1 or more: the reader starts again. A writer that dies in the middle
 *             leaves the last whole page. A file whose process is gone is left behind, with the
 *             last numbers. It is removed when it is certain that no process writes to it: a
 *             regular file of this user, named as the process in it, that no process maps to write,
 *             in whatever container (os/shared.h).
 * Threads     one writer at a time, elected by the caller; any number of readers.
 * Tests       tests/unit/stats/shm_test.c, tests/race/shm_race.c,
 *             tests/preload/left_shm_preload.py
 */
#ifndef HAK_STATS_SHM_H
#define HAK_STATS_SHM_H

#include "learn/match_board.h"
#include "stats/event_log.h"
#include "stats/snapshot.h"

#define HAK_SHM_MAGIC 0x326472616f626b68ull /* "hkboard2" */
#define HAK_SHM_PATH "/dev/shm/hakmem."

struct shm_page {
    uint64_t clock_ms; /* hak_os_clock_ms, the same in all processes of a machine */
    struct snapshot snapshot;
    struct event events[HAK_EVENTS_KEPT];
    struct match_board matches;
};

#define HAK_SHM_PAGE_WORDS (sizeof(struct shm_page) / sizeof(uint64_t))
hak_static_assert(sizeof(struct shm_page) % sizeof(uint64_t) == 0, "a page is copied by words");

struct shm_head {
    uint64_t magic;
    uint64_t layout;       /* hak_shm_layout of the writer */
    uint64_t pid;          /* of the process */
    uint64_t pid_space;    /* in which it has this id (hak_os_pid_space) */
    uint64_t start_ticks;  /* when it was started: pids are reused */
    uint64_t window_start; /* its address space for blocks */
    uint64_t block_start;  /* a little before it, for those that are guarded */
    uint64_t record_start; /* and for hakmem's own records */
    uint64_t record_end;
};

struct stats_shm {
    struct shm_head head;
    _Atomic uint64_t published;
    _Atomic uint64_t pages[2][HAK_SHM_PAGE_WORDS];
};

/* Differs where the tables differ, so that no reader takes one number for another. */
uint64_t hak_shm_layout(void);

/* The writer's next page. */
void hak_shm_publish(struct stats_shm *shm, const struct shm_page *page);

/* Removes files that processes of this user left behind, except that of `kept_pid` (0: of none);
 * returns how many. A bounded number of files is checked, by one thread at a time. */
uint32_t hak_shm_remove_left(uint32_t kept_pid);

/* The newest whole page; false: there is none, or the writer is faster again and again. */
bool hak_shm_read(const struct stats_shm *shm, struct shm_page *page);

#endif
