/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "profiles/source.h"

#include "command.h"
#include "os/shared.h"
#include "process.h"
#include "profiles/formats.h"
#include "profiles/patience.h"
#include "profiles/perf_map.h"
#include "profiles/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MOST ((size_t)256 << 20)
/* At one site of a board, for two between which nothing was freed. */
#define LOOKS_MOST 64

static bool refuse_source(struct source *source, const char *why)
{
    snprintf(source->wrong, sizeof source->wrong, "%.100s %.250s", source->path, why);
    return false;
}

/* The number that the process has in its own container. */
static int inner_pid(int pid)
{
    char path[64], line[256];
    int inner = pid;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *last = strncmp(line, "NSpid:", 6) == 0 ? strrchr(line, '\t') : NULL;
        if (last != NULL && atoi(last) > 0)
            inner = atoi(last);
    }
    if (file != NULL)
        fclose(file);
    return inner;
}

/* Whether it runs: one that has ended stays a process until its parent has asked for it. */
static bool is_running(int pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t got = file == NULL ? 0 : fread(line, 1, sizeof line - 1, file);
    if (file != NULL)
        fclose(file);
    line[got] = '\0';
    char *end = strrchr(line, ')');
    return end != NULL && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
}

static bool is_folder_of(const char *path, const struct stat *board)
{
    struct stat about;
    return stat(path, &about) == 0 && about.st_uid == board->st_uid;
}

/* The file of a process's board, opened; -1: there is none. */
static int open_board(struct source *source)
{
    char process[32];
    struct stat about;
    snprintf(process, sizeof process, "/proc/%d", source->pid);
    source->is_alive = is_running(source->pid);
    if (source->is_alive) {
        snprintf(source->root, sizeof source->root, "/proc/%d/root", source->pid);
        snprintf(source->path, sizeof source->path, "%s" HAK_BOARD_PATH "%d", source->root,
                 inner_pid(source->pid));
        int fd = open(source->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        /* That nobody else put a file there for it. */
        if (fd >= 0 && fstat(fd, &about) == 0 && is_folder_of(process, &about))
            return fd;
        if (fd >= 0)
            close(fd);
        errno = fd >= 0 ? EPERM : errno;
        if (errno != ENOENT)
            return -1;
    }
    snprintf(source->path, sizeof source->path, HAK_BOARD_PATH "%d", source->pid);
    return open(source->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* The whole file, in a block that the caller frees; NULL: errno says why. What somebody named may
 * be a pipe whose writer is slow; nobody waits for one in a board's place. */
static char *read_whole(int fd, bool is_named, size_t *bytes)
{
    struct stat about;
    size_t room = 1 << 16;
    *bytes = 0;
    if (fstat(fd, &about) == 0 && S_ISDIR(about.st_mode)) {
        errno = EISDIR;
        return NULL;
    }
    char *start = grow(NULL, room, 1);
    ssize_t (*read_some)(int, void *, size_t) = is_named ? read_patiently : read;
    for (ssize_t got; (got = read_some(fd, start + *bytes, room - *bytes)) != 0;) {
        if (got < 0 || *bytes + (size_t)got > FILE_BYTES_MOST) {
            errno = got < 0 ? errno : EFBIG;
            free(start);
            return NULL;
        }
        *bytes += (size_t)got;
        if (*bytes == room)
            start = grow(start, room *= 2, 1);
    }
    return start;
}

/* Whether the board is of the very process that has its number now. */
static bool is_of_process(const struct source *source, const struct board_head *head)
{
    return source->is_alive && head->start_ticks == hak_os_start_ticks((uint32_t)source->pid);
}

static bool has_freed_as_much(const struct board_site *first, const struct board_site *site)
{
    return hak_load_relaxed(&first->freed_count) == hak_load_relaxed(&site->freed_count) &&
           hak_load_relaxed(&first->freed_bytes) == hak_load_relaxed(&site->freed_bytes);
}

/* Reads a site again until nothing was freed between two looks: what passes in the time of a look
 * at the whole file would count as live. */
static bool read_again(int fd, off_t at, struct board_site *first, struct board_site *site)
{
    for (int i = 0; i < LOOKS_MOST && !has_freed_as_much(first, site); i++) {
        memcpy(first, site, sizeof *site);
        if (pread(fd, site, sizeof *site, at) != sizeof *site)
            return false;
    }
    return true;
}

/* Reads the board, which has been read once, for a second time; nothing comes through a pipe
 * twice. */
static bool read_second(int fd, struct profile_board *first, struct profile_board *board)
{
    errno = 0;
    bool is_read = pread(fd, board, sizeof *board, 0) == sizeof *board;
    if (!is_read && errno == ESPIPE) {
        memcpy(board, first, sizeof *board);
        return true;
    }
    for (size_t i = 0; i < HAK_BOARD_SITES && is_read; i++)
        is_read = read_again(fd, (off_t)offsetof(struct profile_board, sites[i]), &first->sites[i],
                             &board->sites[i]);
    return is_read;
}

static bool refuse_process(struct source *source, int error)
{
    char *wrong = source->wrong;
    if (error != ENOENT)
        snprintf(wrong, sizeof source->wrong, "%.100s cannot be read: %s", source->path,
                 strerror(error));
    else if (source->is_alive)
        snprintf(wrong, sizeof source->wrong,
                 "process %d has no heap profile: try hakmem ctl %d profile on, or start it with "
                 "HAKMEM_HEAP_PROFILE=on",
                 source->pid, source->pid);
    else
        snprintf(wrong, sizeof source->wrong, "there is no process %d, and it left no profile",
                 source->pid);
    source->is_absent = error == ENOENT;
    return false;
}

/* After exec a process maps no file of the program that it was before. */
static bool is_mapped(const struct source *source)
{
    char line_end[64];
    snprintf(line_end, sizeof line_end, "%s\n", strrchr(source->path, '/'));
    return process_maps(source->pid, line_end, true);
}

static bool read_board(struct source *source, int fd, char *bytes, size_t byte_count)
{
    struct profile_board *first = (struct profile_board *)(void *)bytes;
    source->has_board = true;
    source->board = grow(NULL, 1, sizeof *source->board);
    if (byte_count != sizeof *first || !read_second(fd, first, source->board))
        return refuse_source(source, first->head.version == HAK_BOARD_VERSION
                                         ? "is cut short"
                                         : "is of another version of hakmem");
    const struct board_head *head = &source->board->head;
    if (source->is_alive && !is_of_process(source, head)) {
        source->is_alive = false;
        *source->root = '\0';
        return refuse_source(source, "is of an earlier process of that number");
    }
    if (source->is_alive && !is_mapped(source))
        return refuse_process(source, ENOENT);
    uint64_t now_ms = source->is_alive ? hak_os_clock_ms() : 0;
    return board_read(&source->profile, first, source->board, now_ms) ||
           refuse_source(source, source->profile.wrong);
}

static bool read_bytes(struct source *source, int fd)
{
    char why[160];
    size_t byte_count;
    char *bytes = read_whole(fd, source->pid == 0, &byte_count);
    if (bytes == NULL) {
        snprintf(why, sizeof why, "cannot be read: %s", strerror(errno));
        return refuse_source(source, why);
    }
    bool is_right;
    if (is_board(bytes, byte_count) && byte_count >= sizeof(struct board_head))
        is_right = read_board(source, fd, bytes, byte_count);
    else if (source->pid != 0)
        is_right = refuse_source(source, "holds no profile of a hakmem");
    else
        is_right = profile_read(&source->profile, bytes, byte_count) ||
                   refuse_source(source, source->profile.wrong);
    free(bytes);
    return is_right;
}

/* A file in the root of another process names files of that root. */
static void find_root(struct source *source, const char *word)
{
    int pid = 0, bytes = 0;
    if (sscanf(word, "/proc/%d/root%n", &pid, &bytes) == 1 && bytes > 0 && word[bytes] == '/')
        snprintf(source->root, sizeof source->root, "/proc/%d/root", pid);
}

/* "-" is standard input. */
static int open_named(const char *word)
{
    return strcmp(word, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                  : open(word, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

bool source_try(struct source *source, const char *word)
{
    char *end;
    long pid = strtol(word, &end, 10);
    *source = (struct source){0};
    profile_begin(&source->profile);
    snprintf(source->path, sizeof source->path, "%.120s", word);
    source->pid = *end == '\0' && pid > 0 && pid <= 1 << 30 ? (int)pid : 0;
    if (source->pid == 0)
        find_root(source, word);
    int fd = source->pid > 0 ? open_board(source) : open_named(word);
    if (fd < 0 && source->pid > 0)
        return refuse_process(source, errno);
    if (fd < 0) {
        snprintf(source->wrong, sizeof source->wrong, "%.200s: %s", shown_name(word),
                 strerror(errno));
        return false;
    }
    bool is_read = read_bytes(source, fd);
    close(fd);
    return is_read;
}

bool source_read(struct source *source, const char *command, const char *word)
{
    bool is_read = source_try(source, word);
    if (!is_read)
        complain(EXIT_FAILED, "%s: %s", command, source->wrong);
    return is_read;
}

void source_end(struct source *source)
{
    profile_end(&source->profile);
    free(source->board);
    source->board = NULL;
}

void source_name(struct source *source, enum naming naming)
{
    struct stat about;
    char process[32];
    symbols_find(&source->profile, source->root);
    snprintf(process, sizeof process, "/proc/%d", source->pid);
    if (source->is_alive && stat(process, &about) == 0)
        perf_map_names(&source->profile, source->root, inner_pid(source->pid), about.st_uid);
    if (naming == NAMES_FOR_ALL)
        profile_name_unknown(&source->profile);
}
