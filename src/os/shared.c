/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/shared.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/text.h"
#include "os/file_calls.h"
#include "os/home.h"
#include "os/os.h"
#include "os/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* madvise(2), Linux 5.14 */
#define POPULATE_WRITE 23

/* A folder full of files, ours or others', costs no start more than this. A read gives 4 KiB of
 * names, about 100. */
#define SWEEP_READS_MOST 64
#define SWEEP_FILES_MOST 256
#define SWEEP_HEAD_BYTES 256

static bool is_taken(const char *path, size_t space_at)
{
    uint64_t pid_space = 0; /* a file that is being made */
    int fd = hak_call_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    hak_call_pread(fd, &pid_space, sizeof pid_space, (off_t)space_at);
    bool is_taken = hak_os_shared_is_taken(fd, pid_space);
    hak_call_close(fd);
    return is_taken;
}

static int create(const char *path, size_t space_at)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = hak_call_open(path, flags);
    if (fd >= 0 || errno != EEXIST)
        return fd;
    if (is_taken(path, space_at)) {
        errno = EEXIST;
        return -1;
    }
    return unlink(path) == 0 ? hak_call_open(path, flags) : -1;
}

static uint64_t inode_of(int fd)
{
    struct stat about;
    return syscall(SYS_fstat, fd, &about) == 0 ? about.st_ino : 0;
}

bool hak_os_shared_back(void *start, size_t bytes)
{
    int saved = errno;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE); /* the kernel's, also where ours are fake */
    uintptr_t from = hak_align_down((uintptr_t)start, page);
    uintptr_t end = hak_align_up((uintptr_t)start + bytes, page);
    bool is_backed = madvise((void *)from, end - from, POPULATE_WRITE) == 0 || errno == EINVAL;
    errno = saved;
    return is_backed;
}

bool hak_os_shared_move(void *from, void *to, size_t bytes)
{
    int saved = errno;
    bool is_moved = mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
    errno = saved;
    return is_moved;
}

void hak_os_shared_unmap(void *start, size_t bytes)
{
    int saved = errno;
    munmap(start, bytes);
    errno = saved;
}

static bool back_front(int fd, void *start, size_t bytes, size_t front_bytes)
{
    if (front_bytes == bytes || madvise(start, front_bytes, POPULATE_WRITE) == 0)
        return true;
    /* Older kernels do not put memory behind parts later. */
    return errno == EINVAL && hak_call_allocate(fd, (off_t)bytes) == 0;
}

/* With memory behind it, so that a full /dev/shm is told here and not by a signal later. */
static void *map(int fd, size_t bytes, size_t front_bytes)
{
    if (fchmod(fd, 0600) != 0 || ftruncate(fd, (off_t)bytes) != 0 ||
        hak_call_allocate(fd, (off_t)front_bytes) != 0)
        return MAP_FAILED;
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (start != MAP_FAILED && !back_front(fd, start, bytes, front_bytes)) {
        int error = errno;
        munmap(start, bytes);
        errno = error;
        return MAP_FAILED;
    }
    return start;
}

void *hak_os_shared_create(const char *path, size_t bytes, struct shared_made *made)
{
    return hak_os_shared_create_growing(path, bytes, bytes, made);
}

void *hak_os_shared_create_growing(const char *path, size_t bytes, size_t front_bytes,
                                   struct shared_made *made)
{
    int saved = errno;
    void *start = MAP_FAILED;
    int fd = -1;
    if (bytes > hak_os_file_limit_bytes())
        errno = EFBIG; /* SIGXFSZ, which the kernel sends for such a file, ends most programs */
    else
        fd = create(path, made->space_at);
    if (fd >= 0)
        start = map(fd, bytes, front_bytes);
    made->error = errno;
    made->inode = fd >= 0 ? inode_of(fd) : 0;
    if (fd >= 0 && start == MAP_FAILED)
        unlink(path);
    if (fd >= 0)
        hak_call_close(fd);
    errno = saved;
    return start == MAP_FAILED ? NULL : start;
}

struct shared_path hak_os_shared_path(const char *prefix, uint32_t pid, const char *suffix)
{
    struct shared_path path = {""};
    struct text text = {.start = path.name, .bytes = sizeof path.name - 1};
    hak_text_add(&text, prefix);
    hak_text_add_number(&text, pid, 10);
    hak_text_add(&text, suffix);
    return path;
}

void hak_os_shared_remove(const char *path, const struct shared_made *made)
{
    int saved = errno;
    int fd = hak_call_open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && inode_of(fd) == made->inode)
        unlink(path);
    if (fd >= 0)
        hak_call_close(fd);
    errno = saved;
}

void hak_os_shared_say_taken(const char *path)
{
    char line[256];
    struct text text = {.start = line, .bytes = sizeof line};
    hak_text_add(&text, "hakmem: a process of another PID namespace publishes in ");
    hak_text_add(&text, path);
    hak_text_add(&text, ": this one does not");
    hak_os_stderr_line(&text);
}

/* "/proc/NUMBER/stat", or "/proc/self/stat" for 0. */
static void name_stat(char *path, size_t bytes, uint32_t pid)
{
    struct text text = {.start = path, .bytes = bytes - 1};
    hak_text_add(&text, "/proc/");
    if (pid == 0)
        hak_text_add(&text, "self");
    else
        hak_text_add_number(&text, pid, 10);
    hak_text_add(&text, "/stat");
    path[text.used] = '\0';
}

/* proc(5): the 22nd field, and the second one may hold anything up to its last parenthesis. */
uint64_t hak_os_start_ticks(uint32_t pid)
{
    char path[64], line[1024];
    name_stat(path, sizeof path, pid);
    hak_os_read_text(path, line, sizeof line);
    const char *at = strrchr(line, ')');
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at == NULL ? 0 : hak_text_number(at + 1, 10);
}

bool hak_os_is_process(uint32_t pid)
{
    int saved = errno;
    bool is_absent = kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    errno = saved;
    return !is_absent;
}

/* namespaces(7): the link reads "pid:[4026531836]". */
uint64_t hak_os_pid_space(void)
{
    char name[64];
    int saved = errno;
    ssize_t length = readlink("/proc/self/ns/pid", name, sizeof name - 1);
    errno = saved;
    name[length < 0 ? 0 : length] = '\0';
    const char *at = strchr(name, '[');
    return at == NULL ? 0 : hak_text_number(at + 1, 10);
}

static bool is_dead(uint32_t pid, uint64_t pid_space, uint64_t start_ticks)
{
    if (pid_space == 0 || pid_space != hak_os_pid_space())
        return false;
    if (!hak_os_is_process(pid))
        return true;
    uint64_t own_ticks = hak_os_start_ticks(0);
    bool has_times = own_ticks != 0 && own_ticks == hak_os_start_ticks(hak_os_pid());
    uint64_t ticks =
        has_times ? hak_os_start_ticks(pid) : 0; /* or /proc is that of another space */
    return ticks != 0 && start_ticks != 0 && ticks != start_ticks;
}

/* False, with EAGAIN: somebody maps the file to write, or has it open to. If another process opens
 * it to write while the lease is there, the kernel sends a signal: one that is ignored by
 * default. */
static bool can_lease(int fd)
{
    fcntl(fd, F_SETSIG, SIGURG);
    bool can = fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
    if (can)
        fcntl(fd, F_SETLEASE, F_UNLCK);
    return can;
}

bool hak_os_shared_is_left(const struct shared_file *file, uint64_t pid_space, uint64_t start_ticks)
{
    int saved = errno;
    bool is_left =
        can_lease(file->fd) || (errno != EAGAIN && is_dead(file->number, pid_space, start_ticks));
    errno = saved;
    return is_left;
}

bool hak_os_shared_is_taken(int fd, uint64_t pid_space)
{
    int saved = errno;
    bool is_taken = pid_space != hak_os_pid_space() && !can_lease(fd) && errno == EAGAIN;
    errno = saved;
    return is_taken;
}

/* getdents64(2) */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

struct sweep {
    int folder;
    const char *prefix; /* of the names in it */
    size_t head_bytes;
    shared_judge *is_left;
    const void *context;
    uint32_t looked, removed;
};

/* The number that a name ends with; 0: it is not one of those that we write. */
static uint32_t number_of(const struct sweep *sweep, const char *name)
{
    size_t prefix_bytes = strlen(sweep->prefix);
    if (strncmp(name, sweep->prefix, prefix_bytes) != 0)
        return 0;
    name += prefix_bytes;
    size_t digits = strspn(name, "0123456789");
    if (*name == '0' || digits == 0 || digits > 9 ||
        (name[digits] != '\0' && strcmp(name + digits, HAK_SHARED_LAST) != 0))
        return 0;
    return (uint32_t)hak_text_number(name, 10);
}

static bool is_own_file(int fd, struct stat *about)
{
    return syscall(SYS_fstat, fd, about) == 0 && S_ISREG(about->st_mode) &&
           about->st_uid == geteuid();
}

static bool is_left_file(const struct sweep *sweep, int fd, uint32_t number)
{
    uint64_t head[SWEEP_HEAD_BYTES / sizeof(uint64_t)];
    struct stat about;
    return is_own_file(fd, &about) && sweep->head_bytes <= sizeof head &&
           hak_call_pread(fd, head, sweep->head_bytes, 0) == (ssize_t)sweep->head_bytes &&
           sweep->is_left(&(struct shared_file){head, number, fd}, sweep->context);
}

/* Its process was killed before it gave it a length. While it is about to, it has it open. */
static bool is_left_empty(int fd, uint32_t number)
{
    struct stat about;
    return is_own_file(fd, &about) && about.st_size == 0 && !hak_os_is_process(number) &&
           hak_os_shared_is_left(&(struct shared_file){NULL, number, fd}, hak_os_pid_space(), 0);
}

void hak_os_shared_set_aside(const char *prefix, uint32_t number, size_t head_bytes,
                             shared_judge *is_worth, const void *context)
{
    int saved = errno;
    struct sweep sweep = {.head_bytes = head_bytes, .is_left = is_worth, .context = context};
    struct shared_path from = hak_os_shared_path(prefix, number, "");
    struct shared_path to = hak_os_shared_path(prefix, number, HAK_SHARED_LAST);
    int fd = hak_call_open(from.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && is_left_file(&sweep, fd, number))
        syscall(SYS_renameat2, AT_FDCWD, from.name, AT_FDCWD, to.name, 0);
    if (fd >= 0)
        hak_call_close(fd);
    errno = saved;
}

static void look_at(struct sweep *sweep, const char *name)
{
    uint32_t number = number_of(sweep, name);
    if (number == 0 || sweep->looked == SWEEP_FILES_MOST)
        return;
    sweep->looked++;
    int fd = hak_call_openat(sweep->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if ((is_left_empty(fd, number) || is_left_file(sweep, fd, number)) &&
        unlinkat(sweep->folder, name, 0) == 0)
        sweep->removed++;
    hak_call_close(fd);
}

/* Looks at the next entries; false: there are none. */
static bool look_on(struct sweep *sweep)
{
    static _Alignas(struct entry) char entries[4096];
    long got = syscall(SYS_getdents64, sweep->folder, entries, sizeof entries);
    for (long at = 0; at < got;) {
        const struct entry *entry = (const void *)(entries + at);
        look_at(sweep, entry->name);
        at += entry->bytes;
    }
    return got > 0 && sweep->looked < SWEEP_FILES_MOST;
}

static uint32_t sweep_all(const char *prefix, size_t head_bytes, shared_judge *is_left,
                          const void *context)
{
    char path[128] = "";
    const char *name = strrchr(prefix, '/') + 1;
    struct text text = {.start = path, .bytes = sizeof path - 1};
    hak_text_add_bytes(&text, prefix, (size_t)(name - prefix));
    struct sweep sweep = {.prefix = name,
                          .head_bytes = head_bytes,
                          .is_left = is_left,
                          .context = context,
                          .folder = hak_call_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    for (int i = 0; sweep.folder >= 0 && i < SWEEP_READS_MOST && look_on(&sweep); i++)
        continue;
    if (sweep.folder >= 0)
        hak_call_close(sweep.folder);
    return sweep.removed;
}

uint32_t hak_os_shared_sweep(const char *prefix, size_t head_bytes, shared_judge *is_left,
                             const void *context)
{
    static _Atomic uint32_t is_sweeping; /* has the entries; a copy made meanwhile never sweeps */
    int saved = errno;
    if (!hak_flag_take(&is_sweeping))
        return 0;
    uint32_t removed = sweep_all(prefix, head_bytes, is_left, context);
    hak_flag_give(&is_sweeping);
    errno = saved;
    return removed;
}
