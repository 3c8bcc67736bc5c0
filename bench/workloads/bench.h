/* SPDX-License-Identifier: MIT */
/* bench/workloads/bench.h - what the workloads share: clock, random numbers, marks, arguments,
 * last line.
 *
 * Owns        the format of the output: notes (`name: number unit`), `operations:` and `time:`
 *             lines, then the throughput line, all printed at the end, so that no stdio buffer is
 *             live while blocks come and go.
 * Invariants  the throughput line is the last line of stdout; a failed run prints none and exits
 *             with 1, a wrong argument with 2.
 * Threads     any thread may fail, draw numbers (their state belongs to the caller), mark and
 *             check blocks; all else is called from one thread at a time.
 * Tests       tests/tools/test_workloads.py
 *
 * Include it first: it asks libc for its GNU interfaces.
 */
#ifndef BENCH_WORKLOADS_BENCH_H
#define BENCH_WORKLOADS_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BENCH_CACHE_LINE_BYTES 64

/* One positional argument; `value` holds the default and receives what was given. */
struct bench_argument {
    const char *name;
    const char *meaning;
    uint64_t *value;
    uint64_t least;
    uint64_t most;
};

/* Prints `NAME: message` on stderr and ends the run with status 1. Of several threads that fail
 * one prints; nothing of the process is cleaned up, since its memory may be damaged. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void bench_fail(const char *format,
                                                                              ...)
{
    static int failed;
    if (!__atomic_exchange_n(&failed, 1, __ATOMIC_RELAXED)) {
        char line[512];
        int length = snprintf(line, sizeof(line), "%.100s: ", program_invocation_short_name);
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
        va_end(arguments);
        strcat(line, "\n");
        /* Not through stdio: its buffer is a block, too. */
        if (write(STDERR_FILENO, line, strlen(line)) < 0) {
            _exit(1);
        }
        _exit(1);
    }
    /* The other thread ends the process, unless this is a child that was forked meanwhile. */
    sleep(1);
    _exit(1);
}

/* Monotonic time in nanoseconds. */
static inline uint64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The next number after `state` of Marsaglia's 32-bit xorshift (13, 17, 5); 0 stays 0. */
static inline uint32_t bench_xorshift32(uint32_t state)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

/* Spreads (seed, index) over all 32 bits; never 0, so it can start a xorshift. */
static inline uint32_t bench_seed_for(uint64_t seed, uint64_t index)
{
    uint64_t mixed = (seed + index * 0x9E3779B97F4A7C15u) * 0xD1B54A32D192ED03u;
    return (uint32_t)(mixed >> 32) | 1u;
}

/* Maps a random number evenly to [0, bound) with a multiplication. */
static inline uint32_t bench_below(uint32_t random, uint32_t bound)
{
    return (uint32_t)(((uint64_t)random * bound) >> 32);
}

/* Spreads a number over 64 bits, reversibly (the finish of splitmix64). */
static inline uint64_t bench_mix64(uint64_t number)
{
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9u;
    number = (number ^ (number >> 27)) * 0x94D049BB133111EBu;
    return number ^ (number >> 31);
}

/* A size from [2^least_shift, 2^most_shift): each doubling is as likely as each other. */
static inline size_t bench_size_log(uint64_t random, uint32_t least_shift, uint32_t most_shift)
{
    uint32_t shift = least_shift + bench_below((uint32_t)random, most_shift - least_shift);
    return ((size_t)1 << shift) + ((random >> 32) & (((size_t)1 << shift) - 1));
}

/* Zeroed memory for a workload's own tables; ends the run if there is none. */
static inline void *bench_table(size_t count, size_t element_bytes)
{
    void *table = calloc(count, element_bytes);
    if (!table) {
        bench_fail("no memory for %zu records of %zu bytes", count, element_bytes);
    }
    return table;
}

/* False when BENCH_VERIFY=off: blocks share memory under the no-op allocator. */
static inline bool bench_verifies(void)
{
    const char *setting = getenv("BENCH_VERIFY");
    return !setting || strcmp(setting, "off") != 0;
}

/* malloc that ends the run where it fails. */
static inline void *bench_take(size_t size_bytes)
{
    void *block = malloc(size_bytes);
    if (!block) {
        bench_fail("malloc(%zu) returned NULL", size_bytes);
    }
    return block;
}

/* Marks the ends of a block: the first 8 bytes and the last one; below 16 bytes the first and the
 * last one. */
static inline void bench_mark(void *block, size_t size_bytes, uint64_t key)
{
    unsigned char *bytes = block;
    bytes[size_bytes - 1] = (unsigned char)key;
    if (size_bytes >= 16) {
        memcpy(bytes, &key, sizeof(key));
    } else {
        bytes[0] = (unsigned char)key;
    }
}

/* bench_verifies, asked once. */
static inline bool bench_checks(void)
{
    static int answer;
    int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
    if (known == 0) {
        known = bench_verifies() ? 1 : -1;
        __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
    }
    return known > 0;
}

/* Ends the run if a block does not hold its mark; looks at nothing when BENCH_VERIFY=off. */
static inline void bench_mark_check(const void *block, size_t size_bytes, uint64_t key)
{
    if (!bench_checks()) {
        return;
    }
    const unsigned char *bytes = block;
    uint64_t found = bytes[0];
    uint64_t expected = key;
    if (size_bytes >= 16) {
        memcpy(&found, bytes, sizeof(found));
    } else {
        expected = (unsigned char)key;
    }
    if (found != expected || bytes[size_bytes - 1] != (unsigned char)key) {
        bench_fail("a block of %zu bytes holds %" PRIx64 "..%02x instead of %" PRIx64 "..%02x",
                   size_bytes, found, bytes[size_bytes - 1], expected, (unsigned)(key & 0xFF));
    }
}

static char bench_notes[8192];

/* Adds a line, without its end, to what bench_report prints first. */
__attribute__((format(printf, 1, 2))) static inline void bench_note(const char *format, ...)
{
    size_t used = strlen(bench_notes);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(bench_notes + used, sizeof(bench_notes) - used, format, arguments);
    va_end(arguments);
    if (length < 0 || used + (size_t)length + 2 > sizeof(bench_notes)) {
        bench_fail("too many notes");
    }
    memcpy(bench_notes + used + length, "\n", 2);
}

/* Marks a block of 16 bytes to 4 GiB such that its size can be read from it. */
static inline void bench_stamp(void *block, size_t size_bytes, uint32_t random)
{
    uint64_t stamp = size_bytes | (uint64_t)(random & 0xFFFF) << 32;
    stamp |= bench_mix64(stamp) << 48;
    memcpy(block, &stamp, sizeof(stamp));
    ((unsigned char *)block)[size_bytes - 1] = (unsigned char)(stamp >> 32);
}

/* Ends the run if a block does not hold its stamp; returns its size, 0 when BENCH_VERIFY=off. */
static inline size_t bench_stamp_check(const void *block)
{
    uint64_t stamp;
    memcpy(&stamp, block, sizeof(stamp));
    if (!bench_checks()) {
        return 0;
    }
    size_t size_bytes = (uint32_t)stamp;
    if (bench_mix64(stamp & 0xFFFFFFFFFFFFu) << 48 != (stamp & ~(uint64_t)0xFFFFFFFFFFFFu)) {
        bench_fail("a block begins with %" PRIx64 " instead of a stamp", stamp);
    }
    unsigned char last = ((const unsigned char *)block)[size_bytes - 1];
    if (last != (unsigned char)(stamp >> 32)) {
        bench_fail("a block of %zu bytes ends with %u instead of %u", size_bytes, last,
                   (unsigned)(stamp >> 32) & 0xFF);
    }
    return size_bytes;
}

static inline void bench_usage(FILE *stream, const char *summary,
                               const struct bench_argument *arguments, int argument_count)
{
    fprintf(stream, "usage: %s", program_invocation_short_name);
    for (int i = 0; i < argument_count; i++) {
        fprintf(stream, " [%s]", arguments[i].name);
    }
    fprintf(stream, "\n%s\n", summary);
    for (int i = 0; i < argument_count; i++) {
        const struct bench_argument *argument = &arguments[i];
        fprintf(stream, "  %-12s %s (%" PRIu64 " to %" PRIu64 ", default %" PRIu64 ")\n",
                argument->name, argument->meaning, argument->least, argument->most,
                *argument->value);
    }
}

/* Reads decimal digits into argument->value; false if the text is no number within the range. */
static inline bool bench_argument_read(const struct bench_argument *argument, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < argument->least ||
        number > argument->most) {
        return false;
    }
    *argument->value = number;
    return true;
}

/* Fills the values from the command line; what is not given keeps its default. `--help` prints
 * the usage and ends with 0; anything wrong is named on stderr and ends with 2. */
static inline void bench_arguments_read(int argc, char **argv, const char *summary,
                                        const struct bench_argument *arguments, int argument_count)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        bench_usage(stdout, summary, arguments, argument_count);
        exit(0);
    }
    if (argc - 1 > argument_count) {
        fprintf(stderr, "%s: at most %d arguments, got %d\n", program_invocation_short_name,
                argument_count, argc - 1);
        bench_usage(stderr, summary, arguments, argument_count);
        exit(2);
    }
    for (int i = 0; i < argc - 1; i++) {
        if (!bench_argument_read(&arguments[i], argv[i + 1])) {
            fprintf(stderr, "%s: %s is '%s', expected a number from %" PRIu64 " to %" PRIu64 "\n",
                    program_invocation_short_name, arguments[i].name, argv[i + 1],
                    arguments[i].least, arguments[i].most);
            exit(2);
        }
    }
}

/* It is a wrong argument if the first is not below the second. */
static inline void bench_order_check(const char *low_name, uint64_t low, const char *high_name,
                                     uint64_t high)
{
    if (low >= high) {
        fprintf(stderr, "%s: %s %" PRIu64 " is not below %s %" PRIu64 "\n",
                program_invocation_short_name, low_name, low, high_name, high);
        exit(2);
    }
}

/* Sizes are drawn from [min_bytes, max_bytes): an empty range is a wrong argument. */
static inline void bench_range_check(uint64_t min_bytes, uint64_t max_bytes)
{
    bench_order_check("MIN", min_bytes, "MAX", max_bytes);
}

/* Prints notes and result; the throughput, in millions of operations a second, is the last line. */
static inline void bench_report(uint64_t operation_count, uint64_t elapsed_ns)
{
    double elapsed_s = (double)(elapsed_ns ? elapsed_ns : 1) * 1e-9;
    fputs(bench_notes, stdout);
    printf("operations: %" PRIu64 "\n", operation_count);
    printf("time: %.6f s\n", elapsed_s);
    double throughput = (double)operation_count / elapsed_s * 1e-6;
    printf("throughput: %.*f M ops/s\n", throughput < 0.1 ? 6 : 2, throughput);
    if (fflush(stdout) != 0) {
        bench_fail("cannot write the result: %s", strerror(errno));
    }
}

#endif
