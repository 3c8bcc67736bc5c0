/* SPDX-License-Identifier: MIT */
/* bench/launch/launch.c - runs a program, watches its memory, and writes down what it cost.
 *
 *   launch RESULT_FILE LIBRARY [NAME=VALUE ...] [--] PROGRAM [ARGUMENT ...]
 *
 * The variables are set for the program only, so nothing is preloaded into this one. It exists
 * because Linux counts the peak memory of a process from its fork on: a program started by a large
 * interpreter would be charged for the interpreter. RESULT_FILE receives one JSON object; times are
 * in seconds, memory in KiB. `signal` is 0 if the program ended by itself.
 *
 * While the program runs, the resident memory of the largest process of its tree is sampled:
 * `average_rss_kib` is weighted by time, `rss` holds pairs of milliseconds and KiB. `served` is 1
 * once LIBRARY (the end of its path) was seen mapped in one of them, 0 if the program itself was
 * seen without it after its start, and -1 if it ended before anything was seen. `largest` names the
 * process with the most resident memory, and `largest_served` says the same of it alone, where -1
 * also stands for a static program.
 *
 * What the program leaves behind, such as a daemon, becomes a child of this process and is ended
 * once the program's cost is known; `left` counts it. SIGTERM ends the program, too, after a while
 * in which it may clean up.
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
#define FIRST_INTERVAL_S 0.005
#define SAMPLES 200
#define MOST_PROCESSES 64
#define SCANS 100
#define GROWN 1.2
#define CLEAN_UP_S 3

enum served { UNSEEN = -1, ABSENT, MAPPED };

struct sample {
    double at_s;
    long rss_kib;
};

/* What is known of the running program. When the samples are full every second one is dropped and
 * the interval doubles, so that a long run costs no more than a short one. */
static struct {
    struct sample samples[SAMPLES];
    int sample_count;
    double interval_s;
    double last_s;
    double kib_seconds;
    double watched_s;
    enum served served;
    int scan_count;
    pid_t largest;
    long largest_kib;
    int largest_scan_count;
    enum served largest_served;
    char largest_name[64];
} seen = {.interval_s = FIRST_INTERVAL_S, .served = UNSEEN, .largest_served = UNSEEN};

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

/* Opens a file of /proc/PID; NULL if the process is gone. */
static FILE *process_file_open(pid_t process, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)process, name);
    return fopen(path, "re");
}

/* The program's processes, itself first. */
static int tree_list(pid_t program, pid_t *processes)
{
    int count = 1;
    processes[0] = program;
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "task/%d/children", (int)processes[i]);
        FILE *file = process_file_open(processes[i], name);
        int child;
        while (file && count < MOST_PROCESSES && fscanf(file, "%d", &child) == 1) {
            processes[count++] = child;
        }
        if (file) {
            fclose(file);
        }
    }
    return count;
}

static long rss_read_kib(pid_t process)
{
    FILE *file = process_file_open(process, "statm");
    long pages = 0;
    if (file) {
        if (fscanf(file, "%*d %ld", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* False between fork and exec, when the process still has the mappings of this program. */
static int is_started(pid_t process)
{
    char path[64];
    char own[1024];
    char other[1024];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)process);
    ssize_t own_bytes = readlink("/proc/self/exe", own, sizeof(own));
    ssize_t other_bytes = readlink(path, other, sizeof(other));
    return other_bytes > 0 &&
           (other_bytes != own_bytes || memcmp(own, other, (size_t)own_bytes) != 0);
}

static int ends_with(const char *line, const char *end)
{
    size_t line_bytes = strcspn(line, "\n");
    size_t end_bytes = strlen(end);
    return line_bytes >= end_bytes && memcmp(line + line_bytes - end_bytes, end, end_bytes) == 0;
}

/* The loader maps what is preloaded before libc: libc alone says that the library is absent. */
static enum served mappings_scan(pid_t process, const char *library)
{
    FILE *file = is_started(process) ? process_file_open(process, "maps") : NULL;
    enum served served = UNSEEN;
    char line[4096];
    while (file && served != MAPPED && fgets(line, sizeof(line), file)) {
        if (ends_with(line, library)) {
            served = MAPPED;
        } else if (ends_with(line, "/libc.so.6")) {
            served = ABSENT;
        }
    }
    if (file) {
        fclose(file);
    }
    return served;
}

static void library_look_for(const pid_t *processes, int count, const char *library)
{
    for (int i = 0; i < count && seen.served != MAPPED; i++) {
        enum served served = mappings_scan(processes[i], library);
        if (served == MAPPED || (served == ABSENT && i == 0)) {
            seen.served = served;
        }
    }
    seen.scan_count++;
}

/* Keeps only letters that need no escape in JSON. */
static void largest_name_read(pid_t process)
{
    FILE *file = process_file_open(process, "comm");
    char name[sizeof(seen.largest_name)] = "";
    if (file) {
        if (!fgets(name, sizeof(name), file)) {
            name[0] = '\0';
        }
        fclose(file);
    }
    size_t used = 0;
    for (const char *at = name; *at; at++) {
        if (*at >= ' ' && *at <= '~' && *at != '"' && *at != '\\') {
            seen.largest_name[used++] = *at;
        }
    }
    seen.largest_name[used] = '\0';
}

/* Looks for the library in the largest process each time it has grown, and until its loader is
 * through. A static program is never seen with a library. */
static void largest_look_at(pid_t process, long rss_kib, const char *library)
{
    double enough_kib = (double)seen.largest_kib * (process == seen.largest ? GROWN : 1.0);
    int is_unclear = process == seen.largest && seen.largest_served == UNSEEN &&
                     seen.largest_scan_count++ < SCANS;
    if (((double)rss_kib <= enough_kib && !is_unclear) || !is_started(process)) {
        return;
    }
    if (process != seen.largest) {
        seen.largest_scan_count = 0;
    }
    seen.largest = process;
    seen.largest_kib = rss_kib > seen.largest_kib ? rss_kib : seen.largest_kib;
    seen.largest_served = mappings_scan(process, library);
    largest_name_read(process);
}

static void sample_keep(double at_s, long rss_kib)
{
    if (seen.sample_count == SAMPLES) {
        for (int i = 0; i < SAMPLES / 2; i++) {
            seen.samples[i] = seen.samples[2 * i + 1];
        }
        seen.sample_count = SAMPLES / 2;
        seen.interval_s *= 2;
    }
    seen.samples[seen.sample_count++] = (struct sample){at_s, rss_kib};
    seen.kib_seconds += (double)rss_kib * (at_s - seen.last_s);
    seen.watched_s += at_s - seen.last_s;
    seen.last_s = at_s;
}

static void program_look_at(pid_t program, double at_s, const char *library)
{
    pid_t processes[MOST_PROCESSES];
    int count = tree_list(program, processes);
    long most_kib = 0;
    pid_t largest = program;
    for (int i = 0; i < count; i++) {
        long rss_kib = rss_read_kib(processes[i]);
        if (rss_kib > most_kib) {
            most_kib = rss_kib;
            largest = processes[i];
        }
    }
    if (most_kib > 0 && is_started(program)) {
        sample_keep(at_s, most_kib);
        largest_look_at(largest, most_kib, library);
    }
    if (seen.served != MAPPED && seen.scan_count < SCANS) {
        library_look_for(processes, count, library);
    }
}

/* Reaps what has ended of the processes that the program left to this one, until the program is
 * among them. Returns as wait4 does; the status and usage are the program's then. */
static pid_t ended_reap(pid_t program, int *status, struct rusage *usage)
{
    pid_t ended;
    do {
        ended = wait4(-1, status, WNOHANG, usage);
    } while (ended > 0 && ended != program);
    return ended;
}

/* Waits for one of the blocked signals; the signal, or -1 when it is time. */
static int signal_wait(const sigset_t *signals, double until_s)
{
    double wait_s = until_s - seconds_now();
    if (wait_s < 0) {
        wait_s = 0;
    }
    struct timespec pause = {(time_t)wait_s, (long)((wait_s - (double)(time_t)wait_s) * 1e9)};
    return sigtimedwait(signals, NULL, &pause);
}

/* Waits for the program's end and looks at it meanwhile; its status and cost, or -1. */
static int program_watch(pid_t program, const char *library, const sigset_t *signals, int *status,
                         struct rusage *usage)
{
    double start_s = seconds_now();
    double look_s = start_s + FIRST_INTERVAL_S / 4;
    for (;;) {
        int woken_by = signal_wait(signals, look_s);
        pid_t ended = ended_reap(program, status, usage);
        if (ended != 0) {
            return ended == program ? 0 : -1;
        }
        if (woken_by == SIGTERM) {
            alarm(CLEAN_UP_S);
        } else if (woken_by == SIGALRM) {
            kill(program, SIGKILL);
        } else if (woken_by < 0) {
            program_look_at(program, seconds_now() - start_s, library);
            look_s = seconds_now() + seen.interval_s;
        }
    }
}

/* Ends and reaps what the program left behind that had not ended by itself; how many there were.
 * What a process leaves when it is ended becomes a child of this one, too. */
static int left_end(void)
{
    pid_t processes[MOST_PROCESSES];
    for (int count = 0;; count++) {
        pid_t ended;
        do {
            ended = waitpid(-1, NULL, WNOHANG);
        } while (ended > 0);
        if (ended < 0 || tree_list(getpid(), processes) < 2 || kill(processes[1], SIGKILL) != 0) {
            return count;
        }
        waitpid(processes[1], NULL, 0);
    }
}

/* In the child: sets the variables, becomes the program, which dies with its launcher. */
static __attribute__((noreturn)) void program_become(char **words)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    while (*words && strchr(*words, '=')) {
        putenv(*words++);
    }
    if (*words && strcmp(*words, "--") == 0) {
        words++;
    }
    if (*words) {
        execvp(*words, words);
        fprintf(stderr, "launch: cannot run %s: %s\n", *words, strerror(errno));
    }
    _exit(EXIT_CANNOT_RUN);
}

static int result_write(const char *path, int status, const struct rusage *usage, double wall_s,
                        int left)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        return -1;
    }
    double average_kib =
        seen.watched_s > 0 ? seen.kib_seconds / seen.watched_s : (double)usage->ru_maxrss;
    /* Both are the kernel's approximations: an average above the peak would be one too much. */
    if (average_kib > (double)usage->ru_maxrss) {
        average_kib = (double)usage->ru_maxrss;
    }
    fprintf(file, "{\"wall_s\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f, ", wall_s,
            seconds_of(usage->ru_utime), seconds_of(usage->ru_stime));
    fprintf(file, "\"peak_rss_kib\": %ld, \"average_rss_kib\": %.0f, ", usage->ru_maxrss,
            average_kib);
    fprintf(file, "\"minor_faults\": %ld, \"major_faults\": %ld, ", usage->ru_minflt,
            usage->ru_majflt);
    fprintf(file, "\"voluntary_switches\": %ld, \"involuntary_switches\": %ld, ", usage->ru_nvcsw,
            usage->ru_nivcsw);
    fprintf(file, "\"largest\": \"%s\", \"largest_served\": %d, ", seen.largest_name,
            (int)seen.largest_served);
    fprintf(file, "\"served\": %d, \"left\": %d, \"rss\": [", (int)seen.served, left);
    for (int i = 0; i < seen.sample_count; i++) {
        fprintf(file, "%s[%.0f, %ld]", i ? ", " : "", seen.samples[i].at_s * 1e3,
                seen.samples[i].rss_kib);
    }
    fprintf(file, "], \"exit_status\": %d, \"signal\": %d}\n",
            WIFEXITED(status) ? WEXITSTATUS(status) : 0,
            WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return fclose(file);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: launch RESULT_FILE LIBRARY [NAME=VALUE ...] [--] PROGRAM "
                        "[ARGUMENT ...]\n");
        return 2;
    }
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGALRM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    double start_s = seconds_now();
    pid_t child = fork();
    if (child == 0) {
        program_become(argv + 3);
    }
    int status;
    struct rusage usage;
    if (child < 0 || program_watch(child, argv[2], &signals, &status, &usage) != 0) {
        fprintf(stderr, "launch: %s\n", strerror(errno));
        return 1;
    }
    double wall_s = seconds_now() - start_s;
    int left = left_end();
    if (result_write(argv[1], status, &usage, wall_s, left) != 0) {
        fprintf(stderr, "launch: cannot write %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    return 0;
}
