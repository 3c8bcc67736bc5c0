/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ask.h"

#include "command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "hakmem."
#define LOOK_MS 10
/* A request that has been taken is waited for: trim may take long. */
#define TAKEN_WAIT_MS 60000u
/* A longer wait is said. */
#define TOLD_MS 500u
/* An abandoned request is removed this long after its deadline. */
#define LEFT_MS 1000u

static struct reason reason;
static volatile sig_atomic_t was_interrupted;

static void on_signal(int number)
{
    was_interrupted = number;
}

static void pause_look(void)
{
    nanosleep(&(struct timespec){0, LOOK_MS * 1000000}, NULL);
}

static bool read_request(int fd, struct control_request *request)
{
    return pread(fd, request, sizeof *request, 0) == (ssize_t)sizeof *request &&
           request->magic == HAK_REQUEST_MAGIC;
}

/* Nobody waits for it. */
static bool has_no_asker(const struct control_request *request)
{
    return request->words[sizeof request->words - 1] == HAK_REQUEST_LEFT;
}

/* The kernel takes the asker's lock away when it ends, however it does. */
static bool has_dead_asker(int fd)
{
    return flock(fd, LOCK_SH | LOCK_NB) == 0;
}

/* Whether the process that the request is for has ended; false: it is of another space of process
 * ids, where this command cannot see it. */
static bool has_no_process(const struct control_request *request)
{
    struct process own, process;
    bool is_here = process_find(&own, (int)getpid()) && own.pid_space != 0 &&
                   own.pid_space == request->pid_space && request->pid <= INT_MAX &&
                   own.own_pid == (uint64_t)own.pid;
    process_leave(&own);
    if (!is_here)
        return false;
    bool is_there = process_find(&process, (int)request->pid);
    process_leave(&process);
    return !is_there || (request->start_ticks != 0 && request->start_ticks != process.start_ticks);
}

/* Nobody awaits its answer, or nobody will give one. */
static bool is_over(int fd, const struct control_request *request)
{
    if (request->deadline_ms + LEFT_MS < shared_clock_ms())
        return true;
    return has_no_asker(request) ? request->state == REQUEST_ANSWERED || has_no_process(request)
                                 : has_dead_asker(fd);
}

/* A request of this user that is over. */
static bool is_left(int folder, const char *name, struct control_request *request)
{
    struct stat about;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_own = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
                  (geteuid() == 0 || about.st_uid == geteuid());
    bool can_go = is_own && read_request(fd, request) && is_over(fd, request);
    close(fd);
    return can_go;
}

static void remove_left(int folder)
{
    struct control_request request;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = copy < 0 ? NULL : fdopendir(copy);
    for (struct dirent *entry; names != NULL && (entry = readdir(names)) != NULL;)
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 &&
            strstr(entry->d_name, HAK_REQUEST_SUFFIX) != NULL &&
            is_left(folder, entry->d_name, &request))
            unlinkat(folder, entry->d_name, 0);
    if (names != NULL)
        closedir(names);
}

/* Root's requests belong to the process's user, in the group of root, which nobody else can give
 * them. */
static bool fill(int fd, const struct process *process, const struct control_request *request)
{
    bool is_given = geteuid() != 0 || fchown(fd, process->user, 0) == 0;
    return is_given && fchmod(fd, 0600) == 0 &&
           pwrite(fd, request, sizeof *request, 0) == (ssize_t)sizeof *request;
}

/* Makes the file under another name, locks it, then gives it its own; false: errno says why not. */
static bool make(struct ask *ask, const struct control_request *request)
{
    char draft[sizeof ask->name + 16];
    int folder = ask->process.folder;
    snprintf(draft, sizeof draft, "%s.%d", ask->name, (int)getpid());
    unlinkat(folder, draft, 0);
    int fd = openat(folder, draft, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool is_made = flock(fd, LOCK_EX | LOCK_NB) == 0 && fill(fd, &ask->process, request) &&
                   linkat(folder, draft, folder, ask->name, 0) == 0;
    int error = errno;
    unlinkat(folder, draft, 0);
    if (is_made)
        ask->fd = fd;
    else
        close(fd);
    errno = error;
    return is_made;
}

static bool is_askable(const struct process *process)
{
    if (!process_is_own(process))
        return refuse(&reason,
                      "process %d belongs to another user: only that user and root may ask it",
                      process->pid);
    if (process->folder < 0)
        return refuse(&reason, "process %d has no /dev/shm that can be opened: %s", process->pid,
                      strerror(errno));
    return true;
}

/* Waits until no other request is pending. */
static bool leave_request(struct ask *ask, struct control_request *request, uint32_t wait_ms,
                          uint32_t others_ms)
{
    struct control_request other = {0};
    uint64_t give_up_ms = shared_clock_ms() + others_ms;
    snprintf(ask->name, sizeof ask->name, PREFIX "%" PRIu64 HAK_REQUEST_SUFFIX,
             ask->process.own_pid);
    for (;;) {
        request->deadline_ms = ask->deadline_ms = shared_clock_ms() + wait_ms;
        if (make(ask, request))
            return true;
        if (errno != EEXIST)
            return refuse(&reason, "a request for process %d cannot be left in /dev/shm: %s",
                          ask->process.pid, strerror(errno));
        if (is_left(ask->process.folder, ask->name, &other))
            unlinkat(ask->process.folder, ask->name, 0);
        else if (shared_clock_ms() >= give_up_ms && has_no_asker(&other))
            return refuse(
                &reason,
                "process %d has not yet carried out a request: %.100s; rm /dev/shm/%s cancels it",
                ask->process.pid, other.words, ask->name);
        else if (shared_clock_ms() >= give_up_ms || was_interrupted)
            return refuse(&reason, "another request to process %d is still unanswered",
                          ask->process.pid);
        else
            pause_look();
    }
}

static bool begin(struct ask *ask, int pid, struct control_request *request, uint32_t wait_ms,
                  uint32_t others_ms, const char **why)
{
    *why = reason.text;
    ask->fd = -1;
    if (!process_find(&ask->process, pid))
        return refuse(&reason, "there is no process %d", pid);
    request->pid = ask->process.own_pid;
    request->pid_space = ask->process.pid_space;
    request->start_ticks = ask->process.start_ticks;
    if (is_askable(&ask->process)) {
        remove_left(ask->process.folder);
        if (leave_request(ask, request, wait_ms, others_ms))
            return true;
    }
    process_leave(&ask->process);
    return false;
}

/* The last byte stays zero. */
static bool write_words(struct control_request *request, const char *words)
{
    *request = (struct control_request){.magic = HAK_REQUEST_MAGIC};
    if (strlen(words) >= sizeof request->words - 1)
        return refuse(&reason, "the request is too long");
    memcpy(request->words, words, strlen(words));
    return true;
}

bool ask_begin(struct ask *ask, int pid, const char *words, uint32_t wait_ms, uint32_t others_ms,
               const char **why)
{
    struct control_request request;
    *why = reason.text;
    ask->fd = -1;
    return write_words(&request, words) && begin(ask, pid, &request, wait_ms, others_ms, why);
}

enum ask_state ask_look(const struct ask *ask, struct control_request *seen)
{
    struct stat about;
    if (!read_request(ask->fd, seen))
        return ASK_LOST;
    seen->words[sizeof seen->words - 1] = '\0';
    seen->answer[sizeof seen->answer - 1] = '\0';
    if (seen->state == REQUEST_ANSWERED)
        return ASK_ANSWERED;
    if (seen->state == REQUEST_TAKEN)
        return ASK_TAKEN;
    return fstat(ask->fd, &about) == 0 && about.st_nlink > 0 ? ASK_WAITS : ASK_LOST;
}

void ask_end(struct ask *ask)
{
    struct stat own, there;
    if (ask->fd < 0)
        return;
    if (fstat(ask->fd, &own) == 0 &&
        fstatat(ask->process.folder, ask->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        own.st_ino == there.st_ino && own.st_dev == there.st_dev)
        unlinkat(ask->process.folder, ask->name, 0);
    close(ask->fd);
    ask->fd = -1;
    process_leave(&ask->process);
}

static bool refuse_silent(const struct ask *ask, uint32_t wait_ms)
{
    struct process again;
    bool is_there = process_find(&again, ask->process.pid);
    process_leave(&again);
    if (!is_there || again.start_ticks != ask->process.start_ticks)
        return refuse(&reason, "process %d has ended", ask->process.pid);
    return refuse(&reason,
                  "process %d (%s) did not answer within %u s: it sleeps, its caches serve all "
                  "requests, or it does not check (seccomp, stats_shm=never). Try again while it "
                  "runs, or with --later; one started with HAKMEM_STATS_SHM=1 answers even asleep",
                  ask->process.pid, ask->process.name, (wait_ms + 999) / 1000);
}

/* Once, and only on a terminal. */
static bool tell_wait(const struct ask *ask, uint64_t waited_ms)
{
    if (waited_ms < TOLD_MS || !isatty(STDERR_FILENO))
        return false;
    fprintf(stderr, "waiting for process %d (%s) to answer\n", ask->process.pid, ask->process.name);
    return true;
}

static enum ask_state await(struct ask *ask, struct control_request *seen)
{
    enum ask_state state;
    bool is_told = false;
    uint64_t taken_ms = 0, start_ms = shared_clock_ms();
    while ((state = ask_look(ask, seen)) == ASK_WAITS || state == ASK_TAKEN) {
        uint64_t now = shared_clock_ms();
        if (state == ASK_TAKEN && taken_ms == 0)
            taken_ms = now;
        bool is_over = taken_ms == 0 ? now > ask->deadline_ms : now > taken_ms + TAKEN_WAIT_MS;
        if (is_over || was_interrupted)
            break;
        is_told = is_told || tell_wait(ask, now - start_ms);
        pause_look();
    }
    return state;
}

static void listen_to_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

static bool judge(const struct ask *ask, enum ask_state state, const struct control_request *seen,
                  uint32_t wait_ms)
{
    if (state == ASK_ANSWERED && seen->is_done != 0) {
        refuse(&reason, "%.383s", seen->answer);
        return true;
    }
    if (state == ASK_ANSWERED)
        return refuse(&reason, "process %d: %.383s", ask->process.pid, seen->answer);
    if (was_interrupted)
        return refuse(&reason, "interrupted before process %d answered", ask->process.pid);
    if (state == ASK_LOST)
        return refuse(&reason, "the request for process %d was removed or changed",
                      ask->process.pid);
    if (state == ASK_TAKEN)
        return refuse(&reason,
                      "process %d accepted the request but did not finish it: it was stopped, "
                      "copied or killed",
                      ask->process.pid);
    return refuse_silent(ask, wait_ms);
}

bool ask_and_wait(struct ask *ask, int pid, const char *words, uint32_t wait_ms,
                  const char **answer)
{
    struct control_request seen;
    listen_to_signals();
    if (!ask_begin(ask, pid, words, wait_ms, wait_ms, answer))
        return false;
    enum ask_state state = await(ask, &seen);
    bool is_done = judge(ask, state, &seen, wait_ms);
    if (!is_done)
        ask_end(ask);
    return is_done;
}

bool ask_or_leave(struct ask *ask, int pid, const char *words, uint32_t wait_ms,
                  const char **answer)
{
    struct control_request seen;
    *answer = reason.text;
    ask->fd = -1;
    listen_to_signals();
    if (!write_words(&seen, words))
        return false;
    seen.words[sizeof seen.words - 1] = HAK_REQUEST_LEFT;
    if (!begin(ask, pid, &seen, HAK_REQUEST_LEFT_MS, wait_ms, answer))
        return false;
    ask->deadline_ms = shared_clock_ms() + wait_ms;
    enum ask_state state = await(ask, &seen);
    if (state != ASK_WAITS || was_interrupted) {
        bool is_done = judge(ask, state, &seen, wait_ms);
        ask_end(ask);
        return is_done;
    }
    refuse(&reason, "request left for when it next runs, within %u hours",
           HAK_REQUEST_LEFT_MS / 3600000u);
    close(ask->fd);
    ask->fd = -1;
    process_leave(&ask->process);
    return true;
}

int ask_interrupted_by(void)
{
    return was_interrupted;
}
