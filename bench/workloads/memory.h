/* SPDX-License-Identifier: MIT */
/* bench/workloads/memory.h - what a workload's memory costs the machine, and memory of its own.
 *
 * Owns        the tables that bench_map made: resident from the start, outside the allocator, and
 *             left out of bench_rss_bytes.
 * Invariants  nothing here allocates, so measuring does not change what is measured.
 * Threads     bench_map is for one thread; the rest is for any.
 * Tests       tests/tools/test_workloads.py
 */
#ifndef BENCH_WORKLOADS_MEMORY_H
#define BENCH_WORKLOADS_MEMORY_H

#include "bench.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define BENCH_MIB (1024.0 * 1024.0)

static size_t bench_mapped_bytes;

/* Zeroed resident memory from the kernel, for tables that shall not count. */
static inline void *bench_map(size_t count, size_t element_bytes)
{
    size_t size_bytes = (count * element_bytes + 4095) & ~(size_t)4095;
    void *table = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (table == MAP_FAILED) {
        bench_fail("no memory for %zu records of %zu bytes", count, element_bytes);
    }
    bench_mapped_bytes += size_bytes;
    return table;
}

/* Reads a small file of /proc into text; false if it cannot be read. */
static inline bool bench_proc_read(const char *path, char *text, size_t text_bytes)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t length = read(file, text, text_bytes - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Resident bytes of the process without what bench_map made. Exact: /proc/self/statm may lag
 * behind by some pages for each CPU. */
static inline uint64_t bench_rss_bytes(void)
{
    char text[4096];
    unsigned long long rss_bytes = 0;
    const char *line;
    if (bench_proc_read("/proc/self/smaps_rollup", text, sizeof(text)) &&
        (line = strstr(text, "Rss:"))) {
        rss_bytes = strtoull(line + 4, NULL, 10) * 1024;
    } else if (bench_proc_read("/proc/self/statm", text, sizeof(text)) &&
               (line = strchr(text, ' '))) {
        rss_bytes = strtoull(line, NULL, 10) * (unsigned long long)sysconf(_SC_PAGESIZE);
    } else {
        bench_fail("cannot read the size of this process in /proc/self");
    }
    return rss_bytes > bench_mapped_bytes ? rss_bytes - bench_mapped_bytes : 0;
}

static inline double bench_rss_mib(void)
{
    return (double)bench_rss_bytes() / BENCH_MIB;
}

/* The most that was ever resident, bench_map included. */
static inline double bench_peak_rss_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024.0;
}

static inline uint64_t bench_minor_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_minflt;
}

/* Time that all threads spent on CPUs, in nanoseconds. */
static inline uint64_t bench_cpu_ns(void)
{
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec;
}

#endif
