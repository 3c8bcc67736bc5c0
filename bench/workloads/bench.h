/* SPDX-License-Identifier: MIT */
/* bench/workloads/bench.h - what the workloads share: clock, random numbers, arguments, last line.
 *
 * Owns        the format of the output: `operations:` and `time:` lines, then the throughput line,
 *             all printed at the end, so that no stdio buffer is live while blocks come and go.
 * Invariants  the throughput line is the last line of stdout; a failed run prints none and exits
 *             with 1, a wrong argument with 2.
 * Threads     everything here is called from one thread at a time, the random numbers apart,
 *             whose state belongs to the caller.
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

#define BENCH_CACHE_LINE_BYTES 64

/* One positional argument; `value` holds the default and receives what was given. */
struct bench_argument {
    const char *name;
    const char *meaning;
    uint64_t *value;
    uint64_t least;
    uint64_t most;
};

/* Prints `NAME: message` on stderr and ends the run with status 1. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void bench_fail(const char *format,
                                                                              ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
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

/* Sizes are drawn from [min_bytes, max_bytes): an empty range is a wrong argument. */
static inline void bench_range_check(uint64_t min_bytes, uint64_t max_bytes)
{
    if (min_bytes >= max_bytes) {
        fprintf(stderr, "%s: MIN %" PRIu64 " is not below MAX %" PRIu64 "\n",
                program_invocation_short_name, min_bytes, max_bytes);
        exit(2);
    }
}

/* Prints the result; the throughput, in millions of operations a second, is the last line. */
static inline void bench_report(uint64_t operation_count, uint64_t elapsed_ns)
{
    double elapsed_s = (double)(elapsed_ns ? elapsed_ns : 1) * 1e-9;
    printf("operations: %" PRIu64 "\n", operation_count);
    printf("time: %.6f s\n", elapsed_s);
    printf("throughput: %.2f M ops/s\n", (double)operation_count / elapsed_s * 1e-6);
    if (fflush(stdout) != 0) {
        bench_fail("cannot write the result: %s", strerror(errno));
    }
}

#endif
