/* SPDX-License-Identifier: MIT */
/* bench/workloads/start_up.c - programs that start, allocate once, and end.
 *
 *   start_up [STARTS] [BLOCKS]
 *
 * Models shell scripts and builds: starts itself STARTS times, one after another; each child
 * allocates BLOCKS blocks of 16 to 1023 bytes, frees them, and ends. One operation is one start,
 * from posix_spawn to the end of the child.
 *
 * Notes: microseconds of a start, and the most memory that a child had resident.
 *
 * Checked by each child at each free: both ends of the block.
 */
#include "bench.h"
#include "memory.h"

#include <spawn.h>
#include <sys/wait.h>

#define CHILD_WORD "child-of-start_up"
#define MOST_BLOCKS 4096

extern char **environ;

static int child_main(const char *text)
{
    void *blocks[MOST_BLOCKS];
    uint64_t block_count = strtoull(text, NULL, 10);
    for (uint64_t i = 0; i < block_count && i < MOST_BLOCKS; i++) {
        size_t size_bytes = bench_size_log(bench_mix64(i), 4, 10);
        blocks[i] = bench_take(size_bytes);
        bench_mark(blocks[i], size_bytes, i);
    }
    for (uint64_t i = 0; i < block_count && i < MOST_BLOCKS; i++) {
        bench_mark_check(blocks[i], bench_size_log(bench_mix64(i), 4, 10), i);
        free(blocks[i]);
    }
    return 0;
}

/* Starts one child and waits for it. */
static void child_run(char **words)
{
    pid_t child;
    int status;
    int error = posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ);
    if (error != 0) {
        bench_fail("cannot start a program: %s", strerror(error));
    }
    if (waitpid(child, &status, 0) != child) {
        bench_fail("cannot wait for a program: %s", strerror(errno));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
        _exit(1); /* it has said why */
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        bench_fail("a child ended with status %d instead of 0", status);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], CHILD_WORD) == 0) {
        return child_main(argv[2]);
    }
    uint64_t start_count = 1000;
    uint64_t block_count = 100;
    const struct bench_argument arguments[] = {
        {"STARTS", "programs, one after another", &start_count, 1, UINT32_MAX},
        {"BLOCKS", "blocks of a program", &block_count, 0, MOST_BLOCKS},
    };
    bench_arguments_read(argc, argv, "Programs that start, allocate once, and end.", arguments, 2);
    char name[] = CHILD_WORD;
    char number[24];
    snprintf(number, sizeof(number), "%" PRIu64, block_count);
    char *words[] = {program_invocation_short_name, name, number, NULL};
    uint64_t start_ns = bench_now_ns();
    for (uint64_t left = start_count; left != 0; left--) {
        child_run(words);
    }
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    bench_note("start: %.2f us", (double)elapsed_ns * 1e-3 / (double)start_count);
    bench_note("child_peak_rss: %ld KiB", usage.ru_maxrss);
    bench_report(start_count, elapsed_ns);
    return 0;
}
