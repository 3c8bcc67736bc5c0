/* SPDX-License-Identifier: MIT */
/* tests/preload/own_files.c - descriptors are the program's: whatever number hakmem once wrote to,
 * if the program has a file of its own there by now, nothing of hakmem's comes into it. Reports go
 * where standard error was when the program started, or to the file that was named, as long as
 * there is a way. If this fails, a database has statistics in its middle. */
#include "program.h"

#include "folder.h"

#include <malloc.h>
#include <stdbool.h>

#define DATA "what the program keeps in its file\n"
#define MANY 1024

static char data_path[128], file_path[128];

static void new_folder(void)
{
    time_limit(500);
    folder_put("data", DATA);
    strcpy(data_path, folder_path("data"));
    strcpy(file_path, folder_path("statistics"));
    setenv("OWN_DATA", data_path, 1);
}

/* The beginning of a file. */
static const char *contents(const char *path)
{
    static char text[65536];
    int fd = open(path, O_RDONLY);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[got < 0 ? 0 : got] = '\0';
    if (fd >= 0)
        close(fd);
    return text;
}

static int count(const char *text, const char *what)
{
    int found = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        found++;
    return found;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int open_data(void)
{
    int fd = open(getenv("OWN_DATA"), O_RDWR);
    CHECK(fd >= 0);
    return fd;
}

/* As daemons do, and what opens files afterwards. */
static void have_many_files(void)
{
    for (int fd = 3; fd < MANY; fd++)
        close(fd);
    while (open_data() < MANY - 10)
        continue;
}

static void have_files(void)
{
    if (has_value("OWN_FILES", "stderr") || has_value("OWN_FILES", "all")) {
        close(STDERR_FILENO);
        CHECK_EQ(open_data(), STDERR_FILENO);
    }
    if (has_value("OWN_FILES", "many") || has_value("OWN_FILES", "all"))
        have_many_files();
}

static void work(void)
{
    for (size_t bytes = 1; bytes < 300000; bytes = bytes * 3 / 2 + 1)
        free(hidden(malloc(bytes)));
}

/* Until so many reports are in the file where some are awaited, else for so long. */
static void work_until_reported(int reports, uint64_t ms)
{
    const char *awaited = getenv("OWN_AWAITED");
    uint64_t end = now_ms() + ms;
    while (awaited != NULL ? count(contents(awaited), "threads_started") < reports : now_ms() < end)
        work();
}

PART(what_has_files_of_its_own)
{
    check_is_served();
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    free(hidden(malloc(100)));
    have_files();
    if (has_value("OWN_DEED", "misuse"))
        free(hidden((void *)16));
    else if (has_value("OWN_DEED", "crash"))
        *(volatile char *)hidden((void *)8) = 1;
    else if (has_value("OWN_DEED", "signal"))
        kill(getpid(), SIGUSR2), work_until_reported(1, 1500);
    else if (has_value("OWN_DEED", "work"))
        work_until_reported(1, 300);
    else if (has_value("OWN_DEED", "die"))
        work_until_reported(2, 0), raise(SIGTERM);
    else if (has_value("OWN_DEED", "drop"))
        CHECK_EQ(setresuid(65534, 65534, 65534), 0);
}

/* ---- how it is started ----------------------------------------------------------------------- */

static char log_path[128];
static const char *awaited_path; /* where reports come while the program works; NULL: nowhere */

enum standard_error { SE_LOG, SE_CLOSED, SE_BROKEN };

static void set_stderr(enum standard_error what)
{
    int ends[2];
    if (what == SE_CLOSED) {
        close(STDERR_FILENO);
    } else if (what == SE_BROKEN) {
        CHECK(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        signal(SIGPIPE, SIG_DFL);
    } else {
        int fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
        if (fd != STDERR_FILENO)
            close(fd);
    }
}

/* The wait status of the program with a setting, "NAME=value"; its data is as it was. */
static int run(enum standard_error what, const char *files, const char *deed, const char *setting)
{
    strcpy(log_path, folder_path("log"));
    unlink(log_path);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        setenv("OWN_FILES", files, 1);
        setenv("OWN_DEED", deed, 1);
        if (awaited_path != NULL)
            setenv("OWN_AWAITED", awaited_path, 1);
        CHECK_EQ(putenv((char *)(uintptr_t)setting), 0);
        program_path();
        set_stderr(what);
        become("what_has_files_of_its_own");
    }
    int status = status_within(pid, 60000);
    if (strcmp(contents(data_path), DATA) != 0)
        CHECK_FAILED("%s, %s, %s: the program's file holds \"%.200s\"", files, deed, setting,
                     contents(data_path));
    return status;
}

struct how {
    const char *deed, *setting;
    int end;          /* the signal that ends it */
    const char *said; /* somewhere in its report */
};

/* What is reported later than at the start, in all ways. */
static const struct how reports[] = {
    {"end", "HAKMEM_STATS=text", 0, "threads_started  "},
    {"end", "HAKMEM_STATS=raw", 0, "threads_started: "},
    {"end", "HAKMEM_STATS=json", 0, "threads_started"},
    {"end", "HAKMEM_STATS=xml", 0, "threads_started"},
    {"end", "HAKMEM_STATS=openmetrics", 0, "threads_started"},
    {"end", "HAKMEM_STATS=exact", 0, "threads_started  "},
    {"work", "HAKMEM_STATS_INTERVAL=20ms", 0, "threads_started  "},
    {"signal", "HAKMEM_STATS_SIGNAL=USR2", 0, "threads_started  "},
    {"crash", "HAKMEM_CRASH_REPORT=1", SIGSEGV, "hakmem: crash: SIGSEGV"},
    {"misuse", "HAKMEM_CRASH_REPORT=1", SIGABRT, "hakmem: invalid free: "},
};
#define REPORTS (sizeof reports / sizeof *reports)

static void run_all(enum standard_error what, const char *files, bool is_said)
{
    awaited_path = what == SE_LOG && is_said ? log_path : NULL;
    for (size_t i = 0; i < REPORTS; i++) {
        const struct how *how = &reports[i];
        int status = run(what, files, how->deed, how->setting);
        if ((WIFSIGNALED(status) ? WTERMSIG(status) : status) != how->end)
            CHECK_FAILED("%s, %s: wait status 0x%x", files, how->setting, (unsigned)status);
        if (what == SE_LOG && (strstr(contents(log_path), how->said) != NULL) != is_said)
            CHECK_FAILED("%s, %s, %s: standard error holds \"%.200s\"", files, how->deed,
                         how->setting, contents(log_path));
    }
}

/* ---- sentences ------------------------------------------------------------------------------- */

TEST(reports_come_on_standard_error)
{
    new_folder();
    run_all(SE_LOG, "none", true);
}

TEST(a_file_on_descriptor_2_where_there_was_no_standard_error_is_left_alone)
{
    new_folder();
    run_all(SE_CLOSED, "stderr", false);
    run_all(SE_CLOSED, "all", false);
}

TEST(a_file_in_place_of_standard_error_is_left_alone_and_reports_go_where_it_was)
{
    new_folder();
    run_all(SE_LOG, "stderr", true);
}

TEST(files_in_place_of_what_hakmem_keeps_are_left_alone_and_reports_come_on_standard_error)
{
    new_folder();
    run_all(SE_LOG, "many", true);
}

TEST(where_every_way_is_a_file_of_the_program_reports_are_lost)
{
    new_folder();
    run_all(SE_LOG, "all", false);
}

/* No copy of standard error is kept for it. */
TEST(misuse_ends_a_program_that_replaced_its_standard_error_without_a_word)
{
    new_folder();
    int status = run(SE_LOG, "stderr", "misuse", "HAKMEM_STATS=off");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK_STR(contents(log_path), "");
    status = run(SE_LOG, "none", "misuse", "HAKMEM_STATS=off");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strncmp(contents(log_path), "hakmem: invalid free: pointer 0x10,", 35) == 0);
}

TEST(misuse_ends_in_sigabrt_if_standard_error_has_no_reader)
{
    new_folder();
    int status = run(SE_BROKEN, "none", "misuse", "HAKMEM_STATS=off");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(messages_at_the_start_need_a_standard_error)
{
    static const char *const settings[] = {"HAKMEM_SHOW_CONF=1", "HAKMEM_DECAY=soon",
                                           "HAKMEM_CONF=learn=none,profile=x",
                                           "HAKMEM_STATS_SIGNAL=KILL"};
    new_folder();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        CHECK_EQ(run(SE_CLOSED, "all", "end", settings[i]), 0);
        CHECK_EQ(run(SE_LOG, "all", "end", settings[i]), 0);
        CHECK(strncmp(contents(log_path), "hakmem: ", 8) == 0);
    }
}

/* The setting HAKMEM_STATS_FILE for this file. */
static const char *into(const char *path)
{
    static char setting[256];
    snprintf(setting, sizeof setting, "HAKMEM_STATS_FILE=%s", path);
    setenv("HAKMEM_STATS", "raw", 1);
    return setting;
}

TEST(a_file_of_statistics_gets_them_whatever_became_of_the_descriptors)
{
    static const char *const files[] = {"none", "stderr", "many", "all"};
    new_folder();
    for (int i = 0; i < 8; i++) {
        unlink(file_path);
        CHECK_EQ(run(i < 4 ? SE_LOG : SE_CLOSED, files[i % 4], "end", into(file_path)), 0);
        CHECK_EQ(count(contents(file_path), "\nthreads_started: "), 1);
        CHECK_STR(contents(log_path), "");
    }
}

TEST(a_name_of_a_descriptor_is_not_followed_to_another_file)
{
    static const char *const names[] = {"/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"};
    new_folder();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(run(SE_CLOSED, "all", "end", into(names[i])), 0);
        CHECK_EQ(run(SE_LOG, "all", "end", into(names[i])), 0);
        CHECK_EQ(run(SE_LOG, "stderr", "end", into(names[i])), 0);
        CHECK_EQ(count(contents(log_path), "\nthreads_started: "), 1);
    }
}

TEST(statistics_arrive_from_a_program_that_gave_up_its_rights)
{
    if (geteuid() != 0)
        SKIP("only root has rights to give up");
    new_folder();
    CHECK_EQ(run(SE_LOG, "none", "drop", into(file_path)), 0);
    CHECK_EQ(count(contents(file_path), "\nthreads_started: "), 1);
    CHECK_STR(contents(log_path), "");
}

TEST(a_program_that_dies_of_a_signal_leaves_the_statistics_of_its_last_interval)
{
    new_folder();
    setenv("HAKMEM_STATS_INTERVAL", "50ms", 1);
    awaited_path = file_path;
    int status = run(SE_LOG, "none", "die", into(file_path));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK(count(contents(file_path), "\nthreads_started: ") >= 2);
}

PART(what_has_a_child)
{
    pid_t pid = fork();
    if (pid == 0)
        exit(0);
    CHECK_CHILD_ENDS_WELL(pid, 60000);
    printf("%d\n", (int)pid);
    fflush(stdout);
}

/* Runs it with such a file; the child's and its own id. */
static void run_with_child(const char *path, pid_t *parent, pid_t *child)
{
    char said[32] = "";
    int ends[2];
    const char *setting = into(path);
    CHECK(pipe(ends) == 0);
    *parent = fork();
    if (*parent == 0) {
        putenv((char *)(uintptr_t)setting);
        dup2(ends[1], STDOUT_FILENO);
        become("what_has_a_child");
    }
    close(ends[1]);
    CHECK_CHILD_ENDS_WELL(*parent, 60000);
    CHECK(read(ends[0], said, sizeof said - 1) > 0);
    *child = atoi(said);
}

static int reports_of(pid_t pid, const char *path)
{
    char line[32];
    snprintf(line, sizeof line, "pid: %d\n", (int)pid);
    return count(contents(path), line);
}

TEST(a_child_appends_to_the_file_of_its_parent)
{
    pid_t parent, child;
    new_folder();
    run_with_child(file_path, &parent, &child);
    CHECK_EQ(reports_of(parent, file_path), 1);
    CHECK_EQ(reports_of(child, file_path), 1);
    CHECK_EQ(count(contents(file_path), "\nthreads_started: "), 2);
}

TEST(a_child_has_a_file_of_its_own_where_the_name_says_so)
{
    pid_t parent, child;
    char pattern[128], path[128];
    new_folder();
    snprintf(pattern, sizeof pattern, "%s/of-%%p", folder);
    run_with_child(pattern, &parent, &child);
    snprintf(path, sizeof path, "%s/of-%d", folder, (int)parent);
    CHECK_EQ(reports_of(parent, path), 1);
    CHECK_EQ(count(contents(path), "\nthreads_started: "), 1);
    snprintf(path, sizeof path, "%s/of-%d", folder, (int)child);
    CHECK_EQ(reports_of(child, path), 1);
    CHECK_EQ(count(contents(path), "\nthreads_started: "), 1);
}

/* The program asks for it, for its standard error as it is, as with glibc. */
TEST(malloc_stats_prints_on_what_the_program_has_for_standard_error)
{
    new_folder();
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        CHECK_EQ(open(file_path, O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
        malloc_stats();
        _exit(0);
    }
    CHECK_CHILD_ENDS_WELL(pid, 60000);
    CHECK_EQ(count(contents(file_path), "hakmem statistics, process "), 1);
}
