/* SPDX-License-Identifier: MIT */
/* tests/preload/ending.c - hakmem's own thread is not felt: the process ends with its last thread
 * and by every signal, changes its ids and namespaces, and runs with any stack of variables. If
 * this fails, a process stays for ever, or keeps rights that it has given up. */
#include "program.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PATIENCE_MS 60000
#define LARGE_BYTES ((size_t)120 << 20)

/* As much as a program may have that has many libraries: a small stack has no room for it. */
static _Thread_local char variables[59000];

static void work(void)
{
    enum { COUNT = 30 };
    void *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = malloc(LARGE_BYTES / COUNT);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, LARGE_BYTES / COUNT);
    }
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);
}

static void *work_and_end(void *argument)
{
    work();
    return argument;
}

static void leave_a_mark(void)
{
    ssize_t written = write(9, "atexit\n", 7);
    (void)written;
}

PART(ends_with_its_last_thread)
{
    pthread_attr_t detached;
    pthread_t thread;
    atexit(leave_a_mark);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    CHECK_EQ(pthread_create(&thread, &detached, work_and_end, NULL), 0);
    pthread_exit(NULL);
}

PART(ends_with_its_only_thread)
{
    atexit(leave_a_mark);
    work();
    pthread_exit(NULL);
}

static void check_ends(const char *part, const char *setting, const char *value)
{
    int mark[2];
    char text[16] = "";
    CHECK_EQ(pipe(mark), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(mark[1], 9);
        dup2(open("/dev/null", O_WRONLY), 2);
        if (setting != NULL)
            setenv(setting, value, 1);
        become(part);
    }
    close(mark[1]);
    CHECK_CHILD_ENDS_WELL(child, PATIENCE_MS);
    CHECK(read(mark[0], text, sizeof text - 1) > 0);
    CHECK(strcmp(text, "atexit\n") == 0);
    close(mark[0]);
}

TEST(a_process_ends_with_its_last_thread_and_its_handlers_run)
{
    time_limit(550);
    check_is_served();
    check_ends("ends_with_its_last_thread", NULL, NULL);
    check_ends("ends_with_its_only_thread", NULL, NULL);
    check_ends("ends_with_its_last_thread", "HAKMEM_STATS", "text");
    check_ends("ends_with_its_only_thread", "HAKMEM_STATS_INTERVAL", "50ms");
    check_ends("ends_with_its_last_thread", "HAKMEM_STATS_SHM", "on");
}

static void *sleep_for_ever(void *argument)
{
    for (;;)
        pause();
    return argument;
}

/* A process that has worked, alone or beside a thread that sleeps. */
static pid_t start_sleeper(bool is_threaded)
{
    pid_t child = fork();
    if (child == 0) {
        if (is_threaded)
            start_thread(sleep_for_ever, NULL);
        work();
        if (is_threaded)
            pthread_exit(NULL);
        sleep_for_ever(NULL);
    }
    return child;
}

/* A process in each of its states: at work, with our thread awake, with it gone or asleep. */
TEST(a_signal_ends_the_process_at_any_moment)
{
    static const int signals[] = {SIGTERM, SIGHUP, SIGINT};
    static const int waits_ms[] = {0, 3, 10, 50, 300, 1500};
    pid_t children[3];
    time_limit(550);
    for (unsigned i = 0; i < 3; i++) /* nohup ignores one, a script's `&` another */
        signal(signals[i], SIG_DFL);
    for (unsigned j = 0; j < sizeof waits_ms / sizeof *waits_ms; j++) {
        for (unsigned i = 0; i < 3; i++)
            children[i] = start_sleeper(j % 2 == 0);
        sleep_ms(100 + waits_ms[j]);
        for (unsigned i = 0; i < 3; i++)
            CHECK_EQ(kill(children[i], signals[i]), 0);
        for (unsigned i = 0; i < 3; i++) {
            int status = status_within(children[i], PATIENCE_MS);
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        }
    }
}

/* The kernel's id of our thread; 0: there is none. */
static int own_thread(void)
{
    int id;
    find_own_threads(&id);
    return id;
}

static int await_own_thread(void)
{
    int found;
    uint64_t start = now_ms();
    while ((found = own_thread()) == 0 && now_ms() - start < PATIENCE_MS)
        sleep_ms(1);
    return found;
}

/* The line of /proc/PID/task/ID/status that begins with `name`. */
static void read_status(int id, const char *name, char line[256])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", id);
    FILE *file = fopen(path, "r");
    line[0] = '\0';
    while (file != NULL && fgets(line, 256, file) != NULL && strncmp(line, name, strlen(name)) != 0)
        line[0] = '\0';
    if (file != NULL)
        fclose(file);
}

/* In a program that is linked with hakmem libc's function is called: the documents say so. */
static int is_preloaded(void)
{
    Dl_info library;
    return dladdr(dlsym(RTLD_DEFAULT, "malloc"), &library) != 0 &&
           strstr(library.dli_fname, "libhakmem") != NULL;
}

TEST(no_thread_keeps_an_identity_that_the_program_gave_up)
{
    time_limit(500);
    check_is_served();
    if (geteuid() != 0 || !is_preloaded())
        return;
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        if (child == 0) {
            char line[256];
            work();
            CHECK(await_own_thread() != 0);
            sleep_ms(round);
            CHECK_EQ(setgid(65534), 0);
            CHECK_EQ(setuid(65534), 0);
            int id = own_thread();
            if (id != 0) {
                read_status(id, "Uid:", line);
                CHECK(line[0] == '\0' || strstr(line, "65534\t65534") != NULL);
                read_status(id, "Gid:", line);
                CHECK(line[0] == '\0' || strstr(line, "65534\t65534") != NULL);
            }
            work();
            _exit(0);
        }
        CHECK_CHILD_ENDS_WELL(child, PATIENCE_MS);
    }
}

TEST(the_identity_changes_while_our_thread_sleeps)
{
    time_limit(100);
    WITH_SETTING("HAKMEM_STATS_INTERVAL", "1000s");
    check_is_served();
    if (!is_preloaded())
        return;
    work();
    CHECK(own_thread_sleeps_within(PATIENCE_MS));
    CHECK_EQ(setuid(getuid()), 0);
    CHECK(await_own_thread() != 0);
}

/* Its main thread runs no slow path that would print. */
PART(changes_its_identity_while_its_statistics_are_not_read)
{
    struct pollfd report = {STDERR_FILENO, POLLOUT, 0};
    CHECK(await_own_thread() != 0);
    raise(SIGUSR2);
    while (poll(&report, 1, 0) != 0)
        sleep_ms(1);
    CHECK_EQ(setuid(getuid()), 0);
    _exit(0);
}

TEST(our_thread_gives_up_a_report_that_nobody_reads_when_the_identity_changes)
{
    int report[2];
    time_limit(500);
    check_is_served();
    if (!is_preloaded())
        return;
    CHECK_EQ(pipe(report), 0);
    CHECK_EQ(fcntl(report[1], F_SETPIPE_SZ, 4096), 4096); /* less than a report */
    pid_t child = fork();
    if (child == 0) {
        dup2(report[1], STDERR_FILENO);
        setenv("HAKMEM_STATS_SIGNAL", "USR2", 1);
        setenv("HAKMEM_STATS", "openmetrics", 1);
        become("changes_its_identity_while_its_statistics_are_not_read");
    }
    CHECK_CHILD_ENDS_WELL(child, PATIENCE_MS);
}

#define STATUS 3
#define REFUSED 77

/* From here on every other call ends the process. */
static int allow(unsigned count, const unsigned numbers[])
{
    struct sock_filter code[32] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned length = 1;
    for (unsigned i = 0; i < count; i++) {
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[i], 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {(unsigned short)length, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int confine(unsigned how)
{
    static const unsigned numbers[] = {SYS_exit, SYS_futex, SYS_clock_gettime};
    if (how == 1)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
    return how == 2 ? allow(sizeof numbers / sizeof *numbers, numbers) : 0;
}

/* A process of one thread, which ends by the system call that ends one. */
TEST(the_status_of_a_thread_that_ends_alone_is_that_of_the_process)
{
    time_limit(550);
    check_is_served();
    for (unsigned i = 0; i < 9; i++) {
        pid_t child = fork();
        if (child == 0) {
            work();
            if (await_own_thread() == 0)
                _exit(1);
            syscall(SYS_exit, confine(i % 3) == 0 ? STATUS : REFUSED);
        }
        int status = status_within(child, PATIENCE_MS);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == STATUS || (WEXITSTATUS(status) == REFUSED && i % 3 != 0));
    }
}

TEST(a_process_of_one_thread_may_have_a_user_namespace_of_its_own)
{
    time_limit(500);
    check_is_served();
    pid_t child = fork();
    if (child == 0)
        _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
    if (status_within(child, PATIENCE_MS) != 0 || !is_preloaded())
        return; /* it may not, with or without us */
    work();
    CHECK(await_own_thread() != 0);
    CHECK_EQ(unshare(CLONE_NEWUSER), 0);
}

/* As Perl programs do it, which have no function for it. Linked ones, too. */
TEST(a_process_of_one_thread_has_such_a_namespace_by_syscall)
{
    time_limit(500);
    check_is_served();
    pid_t child = fork();
    if (child == 0)
        _exit(syscall(SYS_unshare, CLONE_NEWUSER) == 0 ? 0 : 1);
    if (status_within(child, PATIENCE_MS) != 0)
        return; /* it may not, with or without us */
    work();
    CHECK(await_own_thread() != 0);
    CHECK_EQ(syscall(SYS_unshare, CLONE_NEWUSER), 0);
    CHECK_EQ(syscall(SYS_unshare, 1), -1);
    CHECK_EQ(errno, EINVAL);
}

static int count_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks))
        count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* Waits for a child that has the number 1. */
static int end_of_first(pid_t child)
{
    int status = status_within(child, PATIENCE_MS / 2);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The number 1, and a thread of ours: its copy has the number, and not the thread. */
static int copy_as_first(void)
{
    while (count_threads() < 2)
        work();
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        bool is_first = getpid() == 1 && setuid(getuid()) == 0 && setgid(getgid()) == 0;
        free(hidden(malloc(LARGE_BYTES)));
        _exit(is_first ? 0 : 1);
    }
    return child < 0 ? 77 : end_of_first(child);
}

TEST(a_bare_copy_with_the_number_of_its_original_changes_its_identity)
{
    time_limit(500);
    check_is_served();
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
            _exit(77);
        pid_t first = fork();
        if (first == 0)
            _exit(copy_as_first());
        _exit(end_of_first(first));
    }
    int status = status_within(child, PATIENCE_MS);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("no spaces of process ids may be made here");
    CHECK_EQ(status, 0);
}

TEST(our_thread_is_an_ordinary_one_whoever_starts_it)
{
    time_limit(500);
    struct sched_param first = {.sched_priority = 1};
    check_is_served();
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
        return; /* not permitted here */
    work();
    int id = await_own_thread();
    CHECK(id != 0);
    uint64_t start = now_ms();
    while (sched_getscheduler(id) == SCHED_FIFO && now_ms() - start < PATIENCE_MS)
        sleep_ms(1);
    int policy = sched_getscheduler(id);
    CHECK(policy == SCHED_OTHER || policy == -1);
}

/* libc's malloc allows it, and programs do it. */
TEST(a_child_of_vfork_that_allocates_costs_its_parent_nothing)
{
    time_limit(550);
    size_t base = resident_bytes();
    for (volatile int round = 0; round < 20; round++) {
        pid_t child = vfork();
        if (child == 0) {
            work();
            free(hidden(malloc(1000)));
            if (round % 2 == 0)
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        CHECK_CHILD_ENDS_WELL(child, PATIENCE_MS);
    }
    work();
    uint64_t start = now_ms();
    while (resident_bytes() > base + LARGE_BYTES / 2 && now_ms() - start < PATIENCE_MS)
        sleep_ms(20);
    CHECK(resident_bytes() <= base + LARGE_BYTES / 2);
}

PART(has_many_variables)
{
    memset(variables, 1, sizeof variables);
    work();
    sleep_ms(400);
    work();
    CHECK_EQ(variables[sizeof variables / 2], 1);
}

TEST(our_thread_has_room_beside_any_thread_local_variables)
{
    static const char *const settings[][2] = {{"HAKMEM_STATS_SHM", "on"},
                                              {"HAKMEM_MODE", "research"},
                                              {"HAKMEM_STATS_INTERVAL", "20ms"},
                                              {"HAKMEM_STATS_SIGNAL", "USR2"},
                                              {"HAKMEM_CRASH_REPORT", "on"}};
    static const char *const forms[] = {"text", "raw", "json", "xml", "openmetrics"};
    time_limit(500);
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++) {
        pid_t child = fork();
        if (child == 0) {
            dup2(open("/dev/null", O_WRONLY), 2);
            setenv("HAKMEM_STATS", forms[i % 5], 1);
            setenv("HAKMEM_STATS_INTERVAL", "50ms", 1);
            setenv(settings[i][0], settings[i][1], 1);
            become("has_many_variables");
        }
        CHECK_CHILD_ENDS_WELL(child, PATIENCE_MS);
    }
}
