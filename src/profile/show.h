/* SPDX-License-Identifier: MIT */
/* profile/show.h - creates, updates and removes the profile's board.
 *
 * Owns        the file of this process (profile/board.h) and its mapping.
 * Invariants  a board is made by the sample with which those of the process stand for two mean
 *             distances (1 MiB by default); or 10 ms after the first one, by the next sample or
 *             tick; or after a sample, when the program is about to filter its system calls. So
 *             most short processes have none, nor one that samples nothing, as a child that soon
 *             becomes another program; but a black box comes a tenth of a second after the first
 *             tick at the latest. A child of fork, or another copy, forgets its parent's board
 *             before anything of it is changed, and makes its own as if it had sampled what its
 *             parent did, which is shown there, too. A child of vfork is its parent, sharing its
 *             memory, and makes none. At the end of a process its board is removed; one that is
 *             killed leaves it. The next process that makes one, or of forked children one in
 *             sixteen, removes those left, but the newest HAK_SHOW_KEPT of black boxes; a black box
 *             under its own number, of an earlier process, it sets aside. What a live process of
 *             another PID namespace has under that number it leaves alone: it has no board until
 *             that one has ended. A program that filters its system calls (os/confine.h) keeps the
 *             board that it has, or has none: its sites are counted all the same. One that changed
 *             its user keeps it, too. Where /dev/shm has no memory for all sites, the board says
 *             how many are missing; each tick tries again.
 * Argument    the thread that makes the board is the busy one (is_busy), and no other waits: they
 *             count where the process has its own. Then the sites are shown, and from then on the
 *             adding threads raise the sums (profile/sites.h), so none is lost between. Modules are
 *             known before there is a board, as only a stack's own thread can look for them, and
 *             are added and shown by the busy one. In a copy the mark of copies (os/copy_mark.h)
 *             is looked at before a sample is counted; settling it sets the board aside, before any
 *             lock of the copy is taken. A signal handler of the copy that comes first counts in
 *             its own memory and in the board of its parent: a sample at most. Code that a handler
 *             interrupted to make the copy goes on with the address of the parent's board: there
 *             the copy maps its own, so what was begun is counted there.
 * Threads     any.
 * Tests       tests/unit/profile/show_test.c, tests/preload/profile.c,
 *             tests/preload/leaks_preload.sh, tests/preload/spaces_preload.py,
 *             tests/preload/left_shm_preload.py, tests/cli/board_cli.sh
 */
#ifndef HAK_PROFILE_SHOW_H
#define HAK_PROFILE_SHOW_H

#include "profile/board.h"

#define HAK_SHOW_KEPT 16u

/* Makes the board if there is none; outside every lock. */
void hak_show_open(void);

/* A sample stands for so many bytes: makes the board if it is time for one. Outside every lock. */
void hak_show_sample(uint64_t bytes);

/* The program is about to filter its system calls: makes the board now, if it was to come. */
void hak_show_prepare(void);

/* Adds the modules of the site's frames that are not known yet. */
void hak_show_modules(uint32_t site);

/* The same for all sites so far: constructors of libraries that run before hakmem's own allocate,
 * too, when it cannot tell yet whose code that is. */
void hak_show_early_modules(void);

/* What there is; NULL: none yet, or none could be made. */
struct profile_board *hak_show_board(void);

/* From the tick: updates what is not counted, once a second. SHOW_ON: a black box, which is to be
 * updated while the program sleeps, too. */
enum show_wish { SHOW_NOTHING, SHOW_ON };
enum show_wish hak_show_tick(void);

/* The same from the background thread: nobody waits while the kernel walks all memory. */
void hak_show_tick_at_leisure(void);

/* Recomputes the birth of the oldest live block of each site, unless another thread does. */
void hak_show_update_oldest(void);

/* The process is a copy: the board is its parent's. */
void hak_show_forget(void);

/* At the end of the process. */
void hak_show_end(void);

#endif
