/* SPDX-License-Identifier: MIT */
/* tests/check.h - one file of sentences, one program: TEST(a_sentence) { ... CHECK(...) ... }
 *
 * Without an argument the program runs every sentence in a process of its own and counts; with one,
 * that sentence in this process (as CTest and a debugger do). The first check that fails ends its
 * test; a test that checked nothing fails. Exit status: 0 passed, 1 failed, 77 skipped.
 *
 * Threads     checks may be made by any thread.
 * Memory      the harness never allocates: it can stand beside any malloc, broken ones too.
 * Tests       tests/unit/base/harness_test.c
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHECK_SKIPPED = 77 };

struct check_test {
    const char *sentence;
    void (*body)(void);
    struct check_test *next;
};

static struct check_test *check_first;
static struct check_test **check_last = &check_first;
static unsigned long check_count;

#define TEST(name)                                                                                 \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void check_add_##name(void)                                \
    {                                                                                              \
        static struct check_test test = {#name, name, NULL};                                       \
        *check_last = &test;                                                                       \
        check_last = &test.next;                                                                   \
    }                                                                                              \
    static void name(void)

__attribute__((format(printf, 1, 2))) static inline void check_print(const char *format, ...)
{
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    size_t bytes = written < (int)sizeof line ? (size_t)written : sizeof line - 1;
    if (write(STDOUT_FILENO, line, bytes) < 0)
        _exit(1);
}

/* True under qemu-user, which does not hold to every limit and refusal of a kernel, and on an
 * emulated machine, which is slow. */
static inline int is_emulated(void)
{
    return getenv("HAK_EMULATED") != NULL;
}

/* What a failed check does at last; a fuzzer wants a crash. */
#ifndef CHECK_END
#define CHECK_END() _exit(1)
#endif

#define CHECK_PASSED() ((void)__atomic_fetch_add(&check_count, 1, __ATOMIC_RELAXED))
#define CHECK_FAILED(format, ...)                                                                  \
    (check_print("%s:%d: " format "\n", __FILE__, __LINE__, __VA_ARGS__), CHECK_END())

/* Leaves the test as skipped, with a reason. */
#define SKIP(reason) (check_print("skipped: %s\n", reason), _exit(CHECK_SKIPPED))

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        CHECK_PASSED();                                                                            \
        if (!(condition))                                                                          \
            CHECK_FAILED("%s", #condition);                                                        \
    } while (0)

/* Two integers or two pointers are equal; prints both if not. */
#define CHECK_EQ(left, right)                                                                      \
    do {                                                                                           \
        unsigned long long left_ = (unsigned long long)(left);                                     \
        unsigned long long right_ = (unsigned long long)(right);                                   \
        CHECK_PASSED();                                                                            \
        if (left_ != right_)                                                                       \
            CHECK_FAILED("%s == %s: %lld (0x%llx) is not %lld (0x%llx)", #left, #right,            \
                         (long long)left_, left_, (long long)right_, right_);                      \
    } while (0)

#define CHECK_STR(left, right)                                                                     \
    do {                                                                                           \
        const char *left_ = (left);                                                                \
        const char *right_ = (right);                                                              \
        CHECK_PASSED();                                                                            \
        if (strcmp(left_, right_) != 0)                                                            \
            CHECK_FAILED("%s == %s: \"%s\" is not \"%s\"", #left, #right, left_, right_);          \
    } while (0)

/* Each of the bytes has the value; prints the first that has not. */
#define CHECK_BYTES(block, bytes, value)                                                           \
    do {                                                                                           \
        const unsigned char *block_ = (const unsigned char *)(block);                              \
        CHECK_PASSED();                                                                            \
        for (size_t i_ = 0; i_ < (size_t)(bytes); i_++)                                            \
            if (block_[i_] != (unsigned char)(value))                                              \
                CHECK_FAILED("byte %zu of %s is 0x%x", i_, #block, block_[i_]);                    \
    } while (0)

/* How a child of CHECK_ABORTS or CHECK_EXITS ended, and what it wrote on fd 2 (its beginning). */
struct check_child {
    pid_t pid;
    int read_fd;
    int status;
    char message[1024];
};

/* hakmem says nothing on an fd 2 that is another file than at its start. Where its functions are
 * linked in (os/stderr.h), a child tells it that there is another one. Elsewhere the test has one
 * from the start (CHECK_OWN_STDERR): a pipe that CHECK_STDERR names. */
extern void hak_os_stderr_note(void) __attribute__((weak));

static inline int check_own_stderr(void)
{
    const char *number = getenv("CHECK_STDERR");
    return number == NULL ? -1 : atoi(number);
}

/* Runs this sentence again, with a standard error that is read here, unless that is so already. */
#define CHECK_OWN_STDERR() check_have_own_stderr(__func__)
static inline void check_have_own_stderr(const char *sentence)
{
    int ends[2];
    char number[16], path[4096];
    if (check_own_stderr() >= 0)
        return;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0 || pipe(ends) != 0)
        CHECK_FAILED("%s", "cannot have a standard error");
    path[length] = '\0';
    snprintf(number, sizeof number, "%d", ends[0]);
    setenv("CHECK_STDERR", number, 1);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    execl(path, path, sentence, (char *)NULL);
    CHECK_FAILED("cannot start %s again", path);
}

/* Forks; returns 1 in the child, whose fd 2 the parent reads and which leaves no core file. */
static inline int check_child_starts(struct check_child *child)
{
    int pipe_fds[2];
    if (pipe(pipe_fds) != 0 || (child->pid = fork()) < 0)
        CHECK_FAILED("%s", "cannot start a child");
    child->read_fd = pipe_fds[0];
    if (child->pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (check_own_stderr() < 0)
            dup2(pipe_fds[1], STDERR_FILENO);
        if (hak_os_stderr_note != NULL)
            hak_os_stderr_note();
    }
    if (child->pid != 0 || check_own_stderr() < 0)
        close(pipe_fds[1]); /* else its end tells when the child has ended */
    return child->pid == 0;
}

static inline void check_child_wait(struct check_child *child)
{
    size_t filled_bytes = 0;
    char chunk[256];
    ssize_t got;
    if (check_own_stderr() >= 0) {
        /* Until it has ended; then all that it said is there. */
        while (read(child->read_fd, chunk, sizeof chunk) > 0)
            continue;
        dup2(check_own_stderr(), child->read_fd);
    }
    while ((got = read(child->read_fd, chunk, sizeof chunk)) > 0) {
        size_t room_bytes = sizeof child->message - 1 - filled_bytes;
        size_t kept_bytes = (size_t)got < room_bytes ? (size_t)got : room_bytes;
        memcpy(child->message + filled_bytes, chunk, kept_bytes);
        filled_bytes += kept_bytes;
    }
    child->message[filled_bytes] = '\0';
    close(child->read_fd);
    if (waitpid(child->pid, &child->status, 0) != child->pid)
        CHECK_FAILED("%s", "cannot wait for a child");
}

#define CHECK_IN_CHILD(statement, ended_well, wanted, said)                                        \
    do {                                                                                           \
        struct check_child child_;                                                                 \
        CHECK_PASSED();                                                                            \
        if (check_child_starts(&child_)) {                                                         \
            statement;                                                                             \
            _exit(0);                                                                              \
        }                                                                                          \
        check_child_wait(&child_);                                                                 \
        if (!(ended_well) || !strstr(child_.message, said))                                        \
            CHECK_FAILED("%s: wanted " wanted " and \"%s\", got wait status 0x%x and \"%s\"",      \
                         #statement, said, (unsigned)child_.status, child_.message);               \
    } while (0)

/* The statement, run in a child, aborts after a message on fd 2 that contains `said`. */
#define CHECK_ABORTS(statement, said)                                                              \
    CHECK_IN_CHILD(statement, WIFSIGNALED(child_.status) && WTERMSIG(child_.status) == SIGABRT,    \
                   "SIGABRT", said)

/* The statement, run in a child, aborts after hakmem's line about misuse, "hakmem: WHAT: pointer
 * 0x...", which contains `state`. */
#define CHECK_REPORTS(statement, what, state)                                                      \
    CHECK_IN_CHILD(statement,                                                                      \
                   WIFSIGNALED(child_.status) && WTERMSIG(child_.status) == SIGABRT &&             \
                       strstr(child_.message, "hakmem: " what ": pointer 0x"),                     \
                   "SIGABRT, \"" what "\"", state)

/* The statement, run in a child, ends it with exit status `code` (0 if it merely returns). */
#define CHECK_EXITS(statement, code)                                                               \
    CHECK_IN_CHILD(statement, WIFEXITED(child_.status) && WEXITSTATUS(child_.status) == (code),    \
                   "exit status " #code, "")

/* The statement, run in a child, touches what nobody may. */
#define CHECK_FAULTS(statement)                                                                    \
    CHECK_IN_CHILD(statement, WIFSIGNALED(child_.status) && WTERMSIG(child_.status) == SIGSEGV,    \
                   "SIGSEGV", "")

/* The statement, run in a child, ends well and writes something on fd 2, or writes nothing. */
#define CHECK_SAYS(statement, said)                                                                \
    CHECK_IN_CHILD(statement, WIFEXITED(child_.status) && WEXITSTATUS(child_.status) == 0,         \
                   "exit status 0", said)
#define CHECK_SAYS_NOTHING(statement)                                                              \
    CHECK_IN_CHILD(statement, child_.message[0] == '\0', "silence", "")

/* Runs one test here; returns the program's exit status. */
static inline int check_run(const struct check_test *test)
{
    test->body();
    if (check_count > 0)
        return 0;
    check_print("%s: no CHECK was executed\n", test->sentence);
    return 1;
}

static inline int check_run_each(void)
{
    unsigned passed_count = 0, failed_count = 0, skipped_count = 0;
    for (const struct check_test *test = check_first; test; test = test->next) {
        pid_t pid = fork();
        if (pid == 0)
            exit(check_run(test));
        int status = 0;
        int ended = waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        const char *verdict = "FAILED ";
        if (ended == 0)
            verdict = "passed ", passed_count++;
        else if (ended == CHECK_SKIPPED)
            verdict = "skipped", skipped_count++;
        else
            failed_count++;
        check_print("%s %s\n", verdict, test->sentence);
    }
    check_print("%u passed, %u failed, %u skipped\n", passed_count, failed_count, skipped_count);
    return failed_count > 0;
}

#ifndef CHECK_WITHOUT_MAIN
int main(int argument_count, char **arguments)
{
    if (argument_count < 2)
        return check_run_each();
    for (const struct check_test *test = check_first; test; test = test->next) {
        if (strcmp(test->sentence, arguments[1]) == 0)
            return check_run(test);
    }
    check_print("no test is named %s\n", arguments[1]);
    return 1;
}
#endif

#endif
