/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/output.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "os/clock.h"
#include "os/confine.h"
#include "os/file_calls.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* With few descriptors allowed there may be none above the usual ones: any but the standard ones
 * will do then. */
static int move_away(int fd)
{
    int moved = hak_os_kept_copy(fd);
    if (moved < 0 && fd > STDERR_FILENO)
        return fd;
    if (moved < 0)
        moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    hak_call_close(fd);
    return moved;
}

/* A descriptor of a kind that programs do not use by accident, or an error number below 0. */
static int open_away(const char *path, int flags)
{
    int saved = errno;
    int fd = hak_call_open(path, flags | O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY);
    int error = errno;
    if (fd >= 0) {
        fd = move_away(fd);
        error = EMFILE;
    }
    errno = saved;
    return fd >= 0 ? fd : -error;
}

int hak_os_output_open(const char *path)
{
    int saved = errno;
    int fd = open_away(path, O_APPEND | O_NONBLOCK);
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_APPEND);
    errno = saved;
    return fd;
}

int hak_os_output_create(const char *path)
{
    return open_away(path, O_EXCL);
}

void hak_os_output_remove(const char *path)
{
    int saved = errno;
    syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    errno = saved;
}

#define BIT(number) (1ull << ((number) - 1))
#define WRITE_SIGNALS (BIT(SIGPIPE) | BIT(SIGXFSZ))

/* Those of the signals that wait for this thread. */
static uint64_t pending_signals(void)
{
    uint64_t pending = 0;
    syscall(SYS_rt_sigpending, &pending, sizeof pending);
    return pending & WRITE_SIGNALS;
}

/* Clears a signal that the write raised; one that was pending before stays pending. */
static void swallow_signals(uint64_t before)
{
    struct timespec at_once = {0, 0};
    uint64_t raised = pending_signals() & ~before;
    while (raised != 0 && syscall(SYS_rt_sigtimedwait, &raised, NULL, &at_once, sizeof raised) > 0)
        raised = pending_signals() & ~before;
}

/* A pipe that has room takes so much at once. */
#define PIECE_BYTES 4096
/* A reader that takes nothing for so long is given up. */
#define PATIENCE_MS 1000
/* A thread that waits for room looks so often whether it is still to wait. */
#define LOOK_MS 50

/* Of one thread, known by where its errno is: room for static thread storage is small. */
static _Atomic(int *) errno_of_thread;
static _Atomic(bool (*)(void)) is_called_off;
/* The pipe or socket whose reader was given up, until it takes something again; 0: none. Relaxed:
 * whoever does not see it yet waits once more. */
static _Atomic uint64_t stuck_inode;

struct target {
    struct os_kept_fd file;
    bool is_kept;     /* what fd must be before each call, as one may wait for long */
    uint64_t signals; /* that the program itself blocks */
};

void hak_os_output_end_when(bool (*is_over)(void))
{
    hak_store_relaxed(&is_called_off, is_over);
    /* relaxed: partner is the load of the same thread; no other one has this errno */
    hak_store_relaxed(&errno_of_thread, &errno);
}

static bool has_reader(const struct target *target)
{
    return target->file.type == S_IFIFO || target->file.type == S_IFSOCK;
}

static bool is_called_back(void)
{
    return hak_load_relaxed(&errno_of_thread) == &errno && hak_load_relaxed(&is_called_off)();
}

/* True when it has room, or the write tells what is the matter. Meanwhile the program's handlers
 * run, and signals may end it. */
static bool has_room(const struct target *target, uint64_t most_ms)
{
    struct pollfd asked = {target->file.fd, POLLOUT, 0};
    struct timespec most = {0, (long)most_ms * 1000000L};
    if (!hak_os_ask_begin())
        return true;
    long found = syscall(SYS_ppoll, &asked, 1, &most, &target->signals, sizeof target->signals);
    hak_os_ask_end();
    return found > 0 || (found < 0 && errno != EINTR);
}

/* Waits for the reader of a pipe; 0, or an error number. */
static int await_room(const struct target *target)
{
    bool is_stuck = hak_load_relaxed(&stuck_inode) == target->file.inode;
    uint64_t patience_ms = is_stuck ? 0 : PATIENCE_MS;
    uint64_t deadline_ms = hak_os_clock_read_ms(CLOCK_MONOTONIC) + patience_ms;
    while (!has_room(target, hak_least(patience_ms, LOOK_MS))) {
        if (is_called_back())
            return EINTR;
        if (hak_os_clock_read_ms(CLOCK_MONOTONIC) < deadline_ms)
            continue;
        hak_store_relaxed(&stuck_inode, target->file.inode);
        return EAGAIN;
    }
    return 0;
}

/* Whether to write so much, or less; 0, or an error number. */
static int look_before(const struct target *target, size_t *count)
{
    int error = 0;
    if (has_reader(target)) {
        *count = hak_least(*count, PIECE_BYTES);
        error = await_room(target);
    }
    return error == 0 && target->is_kept && !hak_os_kept_is_same(&target->file) ? EBADF : error;
}

static void note_taken(const struct target *target)
{
    if (has_reader(target) && hak_load_relaxed(&stuck_inode) == target->file.inode)
        hak_store_relaxed(&stuck_inode, 0);
}

static int write_all(struct target target, const char *bytes, size_t count)
{
    int error = 0;
    int saved = errno;
    target.signals = hak_os_block_signals();
    uint64_t before = pending_signals();
    while (count > 0) {
        size_t piece = count;
        if ((error = look_before(&target, &piece)) != 0)
            break;
        ssize_t written = hak_call_write(target.file.fd, bytes, piece);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            error = written < 0 ? errno : EIO;
            break;
        }
        note_taken(&target);
        bytes += written;
        count -= (size_t)written;
    }
    if (error == EPIPE || error == EFBIG)
        swallow_signals(before);
    hak_os_restore_signals(target.signals);
    errno = saved;
    return error;
}

int hak_os_output_write(int fd, const char *bytes, size_t count)
{
    struct target target = {.file = hak_os_kept_fd(fd)};
    target.file.fd = fd;
    return write_all(target, bytes, count);
}

int hak_os_output_write_kept(const struct os_kept_fd *to, const char *bytes, size_t count)
{
    struct target target = {.file = *to, .is_kept = true};
    return write_all(target, bytes, count);
}

const char *hak_os_error_name(int error)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {EACCES, "permission denied"},
        {EPERM, "not permitted"},
        {ENOENT, "no such file or directory"},
        {ENOTDIR, "not a directory"},
        {EISDIR, "a directory"},
        {EROFS, "a read-only file system"},
        {ENOSPC, "no space left"},
        {EDQUOT, "quota exceeded"},
        {EFBIG, "file too large"},
        {EPIPE, "it has no reader"},
        {ENXIO, "it has no reader"},
        {EMFILE, "too many open files"},
        {ENFILE, "too many open files"},
        {ENAMETOOLONG, "name too long"},
        {ELOOP, "a symbolic link"},
        {EEXIST, "it exists"},
        {EBADF, "it is closed"},
        {EIO, "input/output error"},
        {EBUSY, "another writer is active"},
        {EAGAIN, "writing would block"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == error)
            return names[i].name;
    return "an error";
}

void hak_os_unwritten_add(struct text *text, const char *what, const char *path, const char *why,
                          int error)
{
    hak_text_add(text, what);
    hak_text_add(text, " cannot be written");
    hak_text_add(text, path == NULL ? "" : " to ");
    hak_text_add(text, path == NULL ? "" : path);
    hak_text_add(text, ": ");
    hak_text_add(text, why);
    if (error != 0) {
        hak_text_add(text, " (error ");
        hak_text_add_number(text, (uint64_t)error, 10);
        hak_text_add(text, ")");
    }
}

uint64_t hak_os_unix_ms(void)
{
    return hak_os_clock_read_ms(CLOCK_REALTIME);
}
