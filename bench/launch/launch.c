/* SPDX-License-Identifier: MIT */
/* bench/launch/launch.c - runs a program and writes down what it cost.
 *
 *   launch RESULT_FILE [NAME=VALUE ...] PROGRAM [ARGUMENT ...]
 *
 * The variables are set for the program only, so nothing is preloaded into this one. It exists
 * because Linux counts the peak memory of a process from its fork on: a program started by a large
 * interpreter would be charged for the interpreter. RESULT_FILE receives one JSON object; times are
 * in seconds, memory in KiB. `signal` is 0 if the program ended by itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_CANNOT_RUN 127

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

/* In the child: sets the variables, becomes the program, which dies with its launcher. */
static __attribute__((noreturn)) void program_become(char **words)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (*words && strchr(*words, '=')) {
        putenv(*words++);
    }
    if (*words) {
        execvp(*words, words);
        fprintf(stderr, "launch: cannot run %s: %s\n", *words, strerror(errno));
    }
    _exit(EXIT_CANNOT_RUN);
}

static int result_write(const char *path, int status, const struct rusage *usage, double wall_s)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        return -1;
    }
    fprintf(file, "{\"wall_s\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f, ", wall_s,
            seconds_of(usage->ru_utime), seconds_of(usage->ru_stime));
    fprintf(file, "\"peak_rss_kib\": %ld, \"minor_faults\": %ld, \"major_faults\": %ld, ",
            usage->ru_maxrss, usage->ru_minflt, usage->ru_majflt);
    fprintf(file, "\"voluntary_switches\": %ld, \"involuntary_switches\": %ld, ", usage->ru_nvcsw,
            usage->ru_nivcsw);
    fprintf(file, "\"exit_status\": %d, \"signal\": %d}\n",
            WIFEXITED(status) ? WEXITSTATUS(status) : 0,
            WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return fclose(file);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: launch RESULT_FILE [NAME=VALUE ...] PROGRAM [ARGUMENT ...]\n");
        return 2;
    }
    double start_s = seconds_now();
    pid_t child = fork();
    if (child == 0) {
        program_become(argv + 2);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        fprintf(stderr, "launch: %s\n", strerror(errno));
        return 1;
    }
    double wall_s = seconds_now() - start_s;
    if (result_write(argv[1], status, &usage, wall_s) != 0) {
        fprintf(stderr, "launch: cannot write %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    return 0;
}
