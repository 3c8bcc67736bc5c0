/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/os.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/confine.h"
#include "os/file_calls.h"
#include "os/os_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* About 0.1 ms with the kernel's timer slack. */
#define YIELD_NS 50000
#define SPIN_ROUNDS 200

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

#define NO_ADVICE (-1)
/* The least that the kernel keeps other mappings below the stack of the main thread is 128 MiB. */
#define MAIN_STACK_BYTES (64 * HAK_MIB)

#define USABLE (PROT_READ | PROT_WRITE)
#define FRESH (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

struct os_counters hak_os_counters;
struct os_fault hak_os_fault;

static size_t page_bytes = 4096;
static size_t kernel_page_bytes = 4096; /* where ours are fake, too */

static bool pages_are_fake(void)
{
    return HAK_CHECK_LEVEL >= 2 && hak_load_relaxed(&hak_os_fault.page_bytes) != 0;
}

void hak_os_start(void)
{
    size_t page = getauxval(AT_PAGESZ);
    if (hak_is_power_of_two(page))
        page_bytes = kernel_page_bytes = page;
    if (pages_are_fake())
        page_bytes = hak_load_relaxed(&hak_os_fault.page_bytes);
    hak_require(page_bytes <= HAK_GRANULE_BYTES, "pages above 64 KiB are not supported");
}

size_t hak_os_page_bytes(void)
{
    return page_bytes;
}

void hak_os_touch(void *start, size_t bytes)
{
    uintptr_t page = (uintptr_t)start & ~(uintptr_t)(HAK_PAGE_BYTES_LEAST - 1);
    for (; page < (uintptr_t)start + bytes; page += HAK_PAGE_BYTES_LEAST) {
        _Atomic uint8_t *byte = (_Atomic uint8_t *)page;
        uint8_t value = 0;
        /* acquire: no partner is needed. A fresh page faults once, at the first; if the second
         * fails, too, somebody else has just written. */
        if (!hak_cas_acquire(byte, &value, 0))
            (void)hak_cas_acquire(byte, &value, value);
    }
}

/* The kernel would refuse, or round, what does not begin and end at a page. */
static void assert_pages(const void *start, size_t bytes)
{
    hak_assert((uintptr_t)start % page_bytes == 0 && bytes % page_bytes == 0);
    (void)start;
    (void)bytes;
}

void *hak_os_reserve(size_t bytes)
{
    assert_pages(NULL, bytes);
    if (hak_os_fault_is_due(FAULT_MAP))
        return NULL;
    int saved = errno;
    /* The kernel aligns to its own pages only. */
    size_t slack = pages_are_fake() ? page_bytes : 0;
    void *start = mmap(NULL, bytes + slack, PROT_NONE, FRESH, -1, 0);
    if (start != MAP_FAILED && slack != 0)
        start = (void *)hak_align_up((uintptr_t)start, slack);
    errno = saved;
    hak_fetch_add_relaxed(&hak_os_counters.map_count, 1);
    return start == MAP_FAILED ? NULL : start;
}

static enum os_map map_at(void *start, size_t bytes, int access, int flags)
{
    assert_pages(start, bytes);
    if (hak_os_fault_is_due(FAULT_MAP))
        return OS_MAP_REFUSED;
    int saved = errno;
    void *got = mmap(start, bytes, access, FRESH | flags, -1, 0);
    bool is_taken = got != MAP_FAILED || errno == EEXIST;
    /* A kernel before 4.17 takes every address as a hint only. */
    if (got != MAP_FAILED && got != start)
        munmap(got, bytes);
    errno = saved;
    hak_fetch_add_relaxed(&hak_os_counters.map_count, 1);
    if (got == start)
        return OS_MAPPED;
    return is_taken ? OS_MAP_TAKEN : OS_MAP_REFUSED;
}

enum os_map hak_os_map(void *start, size_t bytes)
{
    return map_at(start, bytes, USABLE, MAP_FIXED_NOREPLACE);
}

enum os_map hak_os_map_denied(void *start, size_t bytes)
{
    return map_at(start, bytes, PROT_NONE,
                  0); /* sanitizers refuse some places, but to hints only */
}

bool hak_os_release(void *start, size_t bytes)
{
    assert_pages(start, bytes);
    int saved = errno;
    int result = munmap(start, bytes);
    errno = saved;
    hak_fetch_add_relaxed(&hak_os_counters.map_count, 1);
    return result == 0;
}

static bool protect(void *start, size_t bytes, int access)
{
    assert_pages(start, bytes);
    int saved = errno;
    int result = mprotect(start, bytes, access);
    errno = saved;
    hak_fetch_add_relaxed(&hak_os_counters.protect_count, 1);
    return result == 0;
}

bool hak_os_commit(void *start, size_t bytes)
{
    return !hak_os_fault_is_due(FAULT_PROTECT) && protect(start, bytes, USABLE);
}

bool hak_os_deny(void *start, size_t bytes)
{
    return protect(start, bytes, PROT_NONE);
}

bool hak_os_allow(void *start, size_t bytes)
{
    return protect(start, bytes, USABLE);
}

bool hak_os_is_advised(void *page)
{
    return madvise(page, page_bytes, NO_ADVICE) != 0;
}

/* Memory that the program locked is refused by the first advice; by the second, it is fetched anew
 * and stays locked. */
static bool discard(void *start, size_t bytes)
{
    return madvise(start, bytes, MADV_DONTNEED) == 0 ||
           (errno == EINVAL && hak_os_is_advised(start) &&
            madvise(start, bytes, MADV_DONTNEED_LOCKED) == 0);
}

bool hak_os_purge(void *start, size_t bytes)
{
    assert_pages(start, bytes);
    if (hak_os_fault_is_due(FAULT_ADVISE))
        return false;
    int saved = errno;
    uint64_t begun_ns = hak_os_clock_ns();
    bool is_gone = discard(start, bytes);
    hak_fetch_add_relaxed(&hak_os_counters.purge_time_ns, hak_os_clock_ns() - begun_ns);
    errno = saved;
    hak_fetch_add_relaxed(&hak_os_counters.advise_count, 1);
    hak_fetch_add_relaxed(&hak_os_counters.purge_count, 1);
    if (is_gone)
        hak_fetch_add_relaxed(&hak_os_counters.purged_bytes, bytes);
    return is_gone;
}

/* Of a piece of at most so much, one page in so many may be missing. */
#define LOOKED_BYTES (4 * HAK_MIB)
#define MISSING_SHARE 8
static bool piece_is_resident(void *start, size_t bytes)
{
    unsigned char pages[LOOKED_BYTES / HAK_PAGE_BYTES_LEAST];
    size_t missing_bytes = 0;
    if (mincore(start, bytes, pages) != 0)
        return false;
    for (size_t i = 0; i < bytes / kernel_page_bytes; i++)
        missing_bytes += (pages[i] & 1) == 0 ? kernel_page_bytes : 0;
    return missing_bytes <= bytes / MISSING_SHARE;
}

bool hak_os_is_resident(void *start, size_t bytes)
{
    int saved = errno;
    bool is_resident = hak_os_ask_begin();
    if (!is_resident)
        return false;
    for (size_t at = 0, piece; is_resident && at < bytes; at += piece) {
        piece = hak_least(bytes - at, LOOKED_BYTES);
        is_resident = piece_is_resident((char *)start + at, piece);
    }
    hak_os_ask_end();
    errno = saved;
    return is_resident;
}

bool hak_os_renew(void *start, size_t bytes)
{
    assert_pages(start, bytes);
    if (hak_os_fault_is_due(FAULT_MAP))
        return false;
    int saved = errno;
    void *got = mmap(start, bytes, USABLE, FRESH | MAP_FIXED, -1, 0);
    errno = saved;
    hak_fetch_add_relaxed(&hak_os_counters.map_count, 1);
    return got == start;
}

static _Atomic size_t mappings_most = 65530; /* what every kernel starts with */

void hak_os_read_mappings_most(void)
{
    char digits[32];
    hak_os_read_text("/proc/sys/vm/max_map_count", digits, sizeof digits);
    size_t most = hak_text_number(digits, 10);
    if (most != 0)
        hak_store_relaxed(&mappings_most, most);
}

size_t hak_os_mappings_most(void)
{
    return hak_load_relaxed(&mappings_most);
}

static bool advise(void *start, size_t bytes, int advice)
{
    assert_pages(start, bytes);
    if (hak_os_fault_is_due(FAULT_ADVISE))
        return false;
    int saved = errno;
    int result = madvise(start, bytes, advice);
    errno = saved;
    hak_fetch_add_relaxed(&hak_os_counters.advise_count, 1);
    return result == 0;
}

bool hak_os_refuse_huge_pages(void *start, size_t bytes)
{
    return advise(start, bytes, MADV_NOHUGEPAGE);
}

bool hak_os_wish_huge_pages(void *start, size_t bytes)
{
    return advise(start, bytes, MADV_HUGEPAGE);
}

uint64_t hak_os_clock_ms(void)
{
    return hak_os_clock_read_ms(CLOCK_MONOTONIC_COARSE);
}

static uint64_t ns_of(clockid_t clock)
{
    struct timespec now = hak_os_clock_read(clock);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t hak_os_clock_ns(void)
{
    return ns_of(CLOCK_MONOTONIC);
}

uint64_t hak_os_faults(void)
{
    struct rusage usage = {.ru_minflt = 0};
    int saved = errno;
    getrusage(RUSAGE_SELF, &usage);
    errno = saved;
    return (uint64_t)usage.ru_minflt;
}

uint64_t hak_os_busy_ns(void)
{
    return ns_of(CLOCK_PROCESS_CPUTIME_ID);
}

/* By the system call: what getrlimit takes is an enumeration in glibc, a number in musl. */
static size_t limit_of(int resource)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    int saved = errno;
    syscall(SYS_prlimit64, 0, resource, NULL, &limit); /* what could not be asked is no limit */
    errno = saved;
    return limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : (size_t)limit.rlim_cur;
}

size_t hak_os_address_limit_bytes(void)
{
    return limit_of(RLIMIT_AS);
}

size_t hak_os_file_limit_bytes(void)
{
    return limit_of(RLIMIT_FSIZE);
}

void hak_os_futex_wait(_Atomic uint32_t *word, uint32_t value, uint32_t timeout_ms)
{
    struct timespec timeout = {(time_t)(timeout_ms / 1000), (long)(timeout_ms % 1000) * 1000000L};
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout_ms ? &timeout : NULL, NULL, 0);
    errno = saved;
}

/* Instead of a sleep: one that a signal interrupted goes on by another call, restart_syscall. */
static void spin(void)
{
    for (int i = 0; i < SPIN_ROUNDS; i++)
        hak_cpu_relax();
}

void hak_os_yield(void)
{
    static const struct timespec moment = {0, YIELD_NS};
    static _Atomic uint32_t nobody;
    int saved = errno;
    if (hak_os_is_confined())
        spin();
    else
        syscall(SYS_futex, &nobody, FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0);
    errno = saved;
}

void hak_os_futex_wake(_Atomic uint32_t *word, uint32_t count)
{
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
    errno = saved;
}

void hak_os_close(int fd)
{
    int saved = errno;
    hak_call_close(fd);
    errno = saved;
}

long hak_os_read_file(const char *path, char *buffer, size_t bytes)
{
    int saved = errno;
    int fd = hak_call_open(path, O_RDONLY | O_CLOEXEC);
    long total = fd < 0 ? -1 : 0;
    while (fd >= 0 && (size_t)total < bytes) {
        ssize_t got = hak_call_read(fd, buffer + total, bytes - (size_t)total);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        total += got;
    }
    if (fd >= 0)
        hak_call_close(fd);
    errno = saved;
    return total;
}

long hak_os_read_text(const char *path, char *text, size_t bytes)
{
    long length = hak_os_read_file(path, text, bytes - 1);
    text[length < 0 ? 0 : length] = '\0';
    return length;
}

/* The loader sets this before anything else runs: argc, argv and the environment stand there, and
 * below it is the stack of the main thread. */
extern void *__libc_stack_end __attribute__((weak));

char **hak_os_environment(void)
{
    if (environ != NULL || &__libc_stack_end == NULL)
        return environ;
    uintptr_t *stack = __libc_stack_end;
    return (char **)(void *)(stack + 1 + stack[0] + 1);
}

bool hak_os_is_on_main_stack(uintptr_t address)
{
    return &__libc_stack_end != NULL &&
           (uintptr_t)__libc_stack_end - address - 1 < MAIN_STACK_BYTES;
}

bool hak_os_is_privileged(void)
{
    return getauxval(AT_SECURE) != 0;
}
