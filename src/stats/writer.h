/* SPDX-License-Identifier: MIT */
/* stats/writer.h - where and when statistics are written.
 *
 * Owns        the options stats, stats_file, stats_interval and stats_signal: at the end of the
 *             process, each interval, at a signal, and by hakmem_stats_print.
 * Invariants  nothing is allocated. A report is made whole in a buffer and written at once, so that
 *             processes that append to one file do not mix their lines; one that does not fit goes
 *             out in pieces, as does one to a pipe, whose reader is awaited (the rest is lost if it
 *             takes nothing, or if hakmem's thread must end meanwhile; os/output.h). The program's
 *             handlers run then: after one that leaves by a jump nothing is printed any more. The
 *             file is open from the start on,
 *             for a program that drops privileges; children of fork append to the same one, or to
 *             their own if %p is in the name, opened when they print. What is written to is still
 *             the file that was opened, or standard error as it was at the start (os/kept_fd.h): a
 *             file that the program closed is reopened by name, and if standard error cannot be
 *             reached the report is lost. A failure to write is reported once, in one line, and has
 *             no other effect. The handler of the signal sets a flag and wakes the background
 *             thread; that thread, or the next slow path, prints.
 * Threads     one prints at a time; other slow paths continue, an explicit request to print waits.
 * Tests       tests/preload/stats_file_preload.sh, tests/preload/own_files.c
 */
#ifndef HAK_STATS_WRITER_H
#define HAK_STATS_WRITER_H

#include "base/text.h"
#include "os/kept_fd.h"
#include "stats/emit.h"

/* Prints and publishes what is due; from the tick and the background thread. */
void hak_stats_writer_tick(void);

/* Opens the files that the options name; `stir` is called by the signal's handler. Once, at
 * start. */
void hak_stats_writer_start(void (*stir)(void));

/* Publishes statistics in shared memory for so many seconds from now on, unless option stats_shm is
 * `never`; NULL, or why not. Copies of the process do not continue it. */
const char *hak_stats_writer_show_for(uint32_t seconds);

/* Adds the name of option stats_file, with the process's id for %p. */
void hak_stats_writer_file_name(struct text *name);

/* Prints now, from where the file's descriptor is on; returns 0 or an error number. */
int hak_stats_writer_print_kept(const struct os_kept_fd *file, enum emit_form form);

/* Whether there is something to print or to publish while the program sleeps. */
bool hak_stats_writer_has_work(void);

/* Whether the background thread writes to files that are open from the start on. */
bool hak_stats_writer_keeps_files(void);

/* How long the background thread may sleep before something is due; 0: for ever. */
uint32_t hak_stats_writer_patience_ms(void);

#endif
