/* SPDX-License-Identifier: MIT */
/* os/os.h - the seam to the kernel: the only system calls hakmem makes.
 *
 * Owns        nothing but the page size and what the kernel turned out to support.
 * Invariants  no function changes errno, allocates or takes a lock; each memory call is counted.
 *             Calls: mmap munmap mprotect madvise mremap futex openat read close
 *             clock_gettime prlimit64 getrusage rt_sigprocmask rt_sigaction sigaltstack.
 * Threads     all functions may be called by any thread at any time.
 * Tests       tests/unit/os/os_test.c, tests/unit/os/old_kernel_test.c; every memory call can be
 *             made to fail through os/os_fault.h
 */
#ifndef HAK_OS_OS_H
#define HAK_OS_OS_H

#include "base/atomic.h"
#include "base/compiler.h"

/* Memory system calls made so far, for the statistics. */
struct os_counters {
    _Atomic uint64_t map_count;
    _Atomic uint64_t protect_count;
    _Atomic uint64_t advise_count;
    _Atomic uint64_t purge_count;
    _Atomic uint64_t purge_time_ns;
    _Atomic uint64_t purged_bytes;
    _Atomic uint64_t move_count;
    _Atomic uint64_t moved_bytes;
};
extern struct os_counters hak_os_counters;

/* Reads the page size; called once, before any other thread can exist in hakmem. */
void hak_os_start(void);

/* Bytes of a page; a power of two, at most a granule. */
size_t hak_os_page_bytes(void);

/* Reserves address space without memory behind it, at least page-aligned; NULL when refused. */
void *hak_os_reserve(size_t bytes);

/* Gives addresses back with what is behind them; false: the kernel refused, all is as it was. */
bool hak_os_release(void *start, size_t bytes);

/* Makes reserved address space usable and zero; false when the kernel refuses (nothing changed). */
bool hak_os_commit(void *start, size_t bytes);

/* Takes the access to usable pages away, and gives it back; what is in them stays. False: the
 * kernel refuses. */
bool hak_os_deny(void *start, size_t bytes);
bool hak_os_allow(void *start, size_t bytes);

/* Maps usable zero memory at exactly `start`, where nothing is mapped; or pages without access. */
enum os_map {
    OS_MAPPED,
    OS_MAP_TAKEN,   /* others have mapped something there; nothing changed */
    OS_MAP_REFUSED, /* the kernel gives no more; nothing changed */
};
enum os_map hak_os_map(void *start, size_t bytes);
enum os_map hak_os_map_denied(void *start, size_t bytes);

/* False where unknown advice on memory (madvise(2)) is answered as if it were followed, as by
 * emulators of user programs: a kind that not every kernel has cannot be relied on. */
bool hak_os_is_advised(void *page);

/* Returns the memory behind [start, start + bytes) to the kernel; true only when the range now
 * reads as zero. Where the program locked it, it stays locked; before Linux 5.18 that is refused,
 * and some of the contents may stay. */
bool hak_os_purge(void *start, size_t bytes);

/* Has the kernel put memory behind each page, now. Contents stay, also those that other
 * threads write meanwhile. */
void hak_os_touch(void *start, size_t bytes);

/* True when of each 4 MiB of these pages of ours no more than one in eight is without
 * memory (mincore(2)); not where the kernel does not tell. */
bool hak_os_is_resident(void *start, size_t bytes);

/* Puts fresh zero memory where ours was; false when refused: then the range must not be touched. */
bool hak_os_renew(void *start, size_t bytes);

/* Mappings that the kernel lets a process have (vm.max_map_count): the usual number until it was
 * read from /proc. */
void hak_os_read_mappings_most(void);
size_t hak_os_mappings_most(void);

/* Asks that [start, start + bytes) be never backed by huge pages, or that it be from now on; hints.
 * False: the kernel has no huge pages, or refused. */
bool hak_os_refuse_huge_pages(void *start, size_t bytes);
bool hak_os_wish_huge_pages(void *start, size_t bytes);

/* Milliseconds of a monotonic clock of about 4 ms resolution. */
uint64_t hak_os_clock_ms(void);

/* Nanoseconds of a monotonic clock, exact and ten times as dear. */
uint64_t hak_os_clock_ns(void);

/* Processor time of all threads of the process (clock_gettime(2), not by the vDSO). */
uint64_t hak_os_busy_ns(void);

/* Minor page faults of the process so far (getrusage(2)). */
uint64_t hak_os_faults(void);

/* Soft limit of the process's address space; SIZE_MAX when there is none (prlimit(2)). */
size_t hak_os_address_limit_bytes(void);

/* The same of the size of a file that the process writes. */
size_t hak_os_file_limit_bytes(void);

/* Blocks every signal for this thread, libc's own for cancellation too, but those that a faulting
 * instruction raises; returns what was blocked before. */
uint64_t hak_os_block_signals(void);
void hak_os_restore_signals(uint64_t blocked);

/* A handler of hakmem's own that stands over the default action; 0: there is none. */
void hak_os_note_front(uintptr_t handler);

/* False where this is certainly not the alternate stack of a signal handler (sigaltstack(2)); true
 * in a program that confined itself, where that cannot be asked. */
bool hak_os_may_be_on_signal_stack(void);

/* Lets others run for a moment. */
void hak_os_yield(void);
/* Sleeps while *word == value, at most `timeout_ms` (0: without limit); wakes spuriously. */
void hak_os_futex_wait(_Atomic uint32_t *word, uint32_t value, uint32_t timeout_ms);
void hak_os_futex_wake(_Atomic uint32_t *word, uint32_t count);

void hak_os_close(int fd);
/* Reads at most `bytes` of the file at `path` into `buffer`; returns the count or -1. */
long hak_os_read_file(const char *path, char *buffer, size_t bytes);
/* The same of one byte less, ended by 0: what cannot be read is empty. */
long hak_os_read_text(const char *path, char *text, size_t bytes);

/* The environment of the process, even before libc has started; NULL when it cannot be found. */
char **hak_os_environment(void);
/* Certainly on the stack of the main thread, which goes on from there; false where libc is musl. */
bool hak_os_is_on_main_stack(uintptr_t address);

/* True when the program runs with raised privileges, so that its environment is not trusted. */
bool hak_os_is_privileged(void);

#endif
