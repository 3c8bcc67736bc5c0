/* SPDX-License-Identifier: MIT */
/* tests/preload/program.h - what the C programs of this folder share.
 *
 * Each program is built twice: run with hakmem preloaded, and linked with hakmem. Both are the same
 * to it: it calls malloc. A sentence that needs another environment or other limits starts the
 * program again, with the name of a PART as its argument.
 *
 * Include it first: it asks for _GNU_SOURCE.
 */
#ifndef TESTS_PRELOAD_PROGRAM_H
#define TESTS_PRELOAD_PROGRAM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "threads.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

/* True where this is the only argument of the program: not every C library hands the arguments of
 * main to constructors, too. */
static inline int is_asked_for(const char *name)
{
    static char line[8192];
    static ssize_t bytes;
    int file = bytes > 0 ? -1 : open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        bytes = read(file, line, sizeof line - 1);
        close(file);
    }
    const char *argument = line + strlen(line) + 1;
    return bytes > 0 && argument + strlen(name) + 1 == line + bytes && strcmp(argument, name) == 0;
}

/* A part of a sentence, for a process of its own: it runs only when the program is asked for it by
 * name. */
#define PART(name)                                                                                 \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void check_add_##name(void)                                \
    {                                                                                              \
        static struct check_test test = {#name, name, NULL};                                       \
        if (is_asked_for(#name))                                                                   \
            check_last = &(*check_last = &test)->next;                                             \
    }                                                                                              \
    static void name(void)

/* A library that stands beside the program. */
static inline void *load_beside(const char *file, int flags)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    CHECK(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/') + 1, file);
    void *library = dlopen(path, flags);
    if (library == NULL)
        CHECK_FAILED("%s", dlerror());
    return library;
}

/* The compiler may not know where a pointer came from, nor that nobody reads what is in it. */
static inline void *hidden(void *pointer)
{
    __asm__ volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

/* A test that hangs is killed by SIGALRM, and so fails; for the whole process. */
static inline void time_limit(unsigned seconds)
{
    signal(SIGALRM, SIG_DFL);
    alarm(seconds);
}

/* malloc is that of libhakmem.so or of this program, not libc's: otherwise nothing is tested. */
static inline void check_is_served(void)
{
    Dl_info library;
    void *served_by = dlsym(RTLD_DEFAULT, "malloc");
    CHECK(served_by != NULL && dladdr(served_by, &library) != 0);
    CHECK(strstr(library.dli_fname, "libc.so") == NULL);
    CHECK(dlsym(RTLD_DEFAULT, "free") != NULL && dladdr(dlsym(RTLD_DEFAULT, "free"), &library));
    CHECK(strstr(library.dli_fname, "libc.so") == NULL);
}

static inline uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static inline void sleep_ms(long milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000L}, NULL);
}

/* Contents that say which block they belong to. */
static inline void fill(void *block, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        ((volatile unsigned char *)block)[i] = (unsigned char)(seed * 31u + i * 7u);
}

static inline int is_filled(const void *block, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)block)[i] != (unsigned char)(seed * 31u + i * 7u))
            return 0;
    return 1;
}

static inline int is_zero(const void *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const volatile unsigned char *)block)[i] != 0)
            return 0;
    return 1;
}

static inline unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Mostly small, sometimes 40 KB, seldom 300 KB. */
static inline size_t random_bytes(unsigned *state)
{
    unsigned dice = next_random(state) % 100;
    size_t most = dice < 90 ? 500 : dice < 98 ? 40000 : 300000;
    return 1 + next_random(state) % most;
}

/* For threads: takes and frees such blocks in random order. */
static inline void *allocate_some(void *unused)
{
    unsigned state = 1;
    char *some[100] = {NULL};
    for (unsigned i = 0; i < 200000; i++) {
        unsigned at = next_random(&state) % 100;
        free(some[at]);
        some[at] = malloc(random_bytes(&state));
    }
    for (unsigned i = 0; i < 100; i++)
        free(some[i]);
    return unused;
}

/* The caller runs on one processor from now on: the one at `index` among those it may run on,
 * counted round. Returns how many these are. */
static inline unsigned run_on_processor(unsigned index)
{
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    unsigned count = (unsigned)CPU_COUNT(&all), at = 0;
    CPU_ZERO(&one);
    for (unsigned i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && at++ == index % count)
            CPU_SET(i, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    return count;
}

static inline void *end_at_once(void *argument)
{
    return argument;
}

/* From here on libc takes the process for one that has threads. */
static inline void have_threads(void)
{
    in_thread(end_at_once, NULL);
}

/* Where this program is; asked for early, as a process that gave up its rights may not ask. */
static inline const char *program_path(void)
{
    static char path[4096];
    if (path[0] == '\0') {
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        CHECK(length > 0);
    }
    return path;
}

/* This program again, in place of this process, as the part `part` alone. */
static inline void become(const char *part)
{
    const char *path = program_path();
    execl(path, path, part, (char *)NULL);
    CHECK_FAILED("cannot start %s again", path);
}

/* Whether the variable has the value. */
static inline int has_value(const char *name, const char *value)
{
    const char *is = getenv(name);
    return is != NULL && strcmp(is, value) == 0;
}

/* Whether many more rounds are wanted than on each day. */
static inline int is_full(void)
{
    return getenv("HAK_FULL") != NULL;
}

/* A sentence that begins so begins again, in a process that starts with this setting. */
#define WITH_SETTING(name, value) begin_with(__func__, name, value)
static inline void begin_with(const char *sentence, const char *name, const char *value)
{
    if (has_value(name, value))
        return;
    setenv(name, value, 1);
    become(sentence);
}

/* Waits for a child; its wait status. A child that takes longer is killed. */
static inline int status_within(pid_t pid, unsigned limit_ms)
{
    int status = -1;
    uint64_t deadline = now_ms() + limit_ms;
    for (;;) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return status;
        if (got < 0)
            return -1;
        if (now_ms() > deadline) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            CHECK_FAILED("a child took longer than %u ms", limit_ms);
        }
        sleep_ms(1);
    }
}

#define CHECK_CHILD_ENDS_WELL(pid, limit_ms) CHECK_EQ(status_within(pid, limit_ms), 0)

/* The statement, run in a child, ends it well, within the time. */
#define CHECK_ENDS_WELL(statement, limit_ms)                                                       \
    do {                                                                                           \
        pid_t pid_ = fork();                                                                       \
        CHECK(pid_ >= 0);                                                                          \
        if (pid_ == 0) {                                                                           \
            statement;                                                                             \
            _exit(0);                                                                              \
        }                                                                                          \
        CHECK_CHILD_ENDS_WELL(pid_, limit_ms);                                                     \
    } while (0)

/* Resident memory of this process. Not by stdio: at a limit there is no memory for a FILE. */
static inline size_t resident_bytes(void)
{
    char line[128] = "";
    long resident = 0;
    int fd = open("/proc/self/statm", O_RDONLY);
    CHECK(fd >= 0 && read(fd, line, sizeof line - 1) > 0);
    close(fd);
    CHECK_EQ(sscanf(line, "%*d %ld", &resident), 1);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* A number of KiB that the kernel tells of this process, read without memory. */
static inline size_t status_kib(const char *name)
{
    static char text[8192];
    int file = open("/proc/self/status", O_RDONLY);
    ssize_t length = read(file, text, sizeof text - 1);
    CHECK(file >= 0 && length > 0);
    close(file);
    text[length] = '\0';
    const char *line = strstr(text, name);
    CHECK(line != NULL);
    return strtoul(line + strlen(name) + 1, NULL, 10);
}

/* Threads of this process whose name is "hakmem"; the kernel's id of one of them, or 0. */
static inline int find_own_threads(int *id)
{
    int count = 0;
    *id = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], name[16] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        int fd = open(path, O_RDONLY);
        if (fd < 0)
            continue;
        if (read(fd, name, sizeof name - 1) > 0 && strcmp(name, "hakmem\n") == 0) {
            count++;
            *id = atoi(task->d_name);
        }
        close(fd);
    }
    closedir(tasks);
    return count;
}

static inline int own_threads(void)
{
    int id;
    return find_own_threads(&id);
}

/* How often a thread of this process has waited for something. */
static inline long waits_of(int id)
{
    char path[64], line[256];
    long waits = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", id);
    FILE *status = fopen(path, "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "voluntary_ctxt_switches: %ld", &waits) == 1)
            break;
    if (status != NULL)
        fclose(status);
    return waits;
}

/* Waits until hakmem's thread sleeps for longer than between two looks at free memory. */
static inline int own_thread_sleeps_within(uint64_t most_ms)
{
    uint64_t start = now_ms(), quiet_ms = start;
    for (long waits = -1, before; now_ms() - start < most_ms; sleep_ms(10)) {
        int id;
        before = waits;
        waits = find_own_threads(&id) == 1 ? waits_of(id) : -1;
        if (waits < 0 || waits != before)
            quiet_ms = now_ms();
        else if (now_ms() - quiet_ms > 1000)
            return 1;
    }
    return 0;
}

static inline long resident_kb(void)
{
    return (long)(resident_bytes() / 1024);
}

/* The value of `name` in the statistics left in `fd`; the last of several; -1: none. */
static inline long long counter_in(int fd, const char *name)
{
    char line[256];
    long long value = -1;
    size_t length = strlen(name);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    FILE *file = fdopen(dup(fd), "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            value = atoll(line + length + 1);
    fclose(file);
    return value;
}

/* Runs the part `part` of this program in a process that leaves its statistics in a file without a
 * name, *fd, and ends well within `most_ms`. */
static inline void run_with_statistics_within(const char *part, int *fd, long most_ms)
{
    char path[64];
    *fd = memfd_create("statistics", 0);
    CHECK(*fd >= 0);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), *fd);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        setenv("HAKMEM_STATS", "raw", 1);
        setenv("HAKMEM_STATS_FILE", path, 1);
        become(part);
    }
    CHECK_CHILD_ENDS_WELL(pid, most_ms);
}

static inline void run_with_statistics(const char *part, int *fd)
{
    run_with_statistics_within(part, fd, 60000);
}

#endif
