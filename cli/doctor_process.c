/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "command.h"
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Allocators that are known by the names of their libraries. */
static const struct {
    const char *file;
    const char *name;
} allocators[] = {
    {"libjemalloc", "jemalloc"},
    {"libtcmalloc", "tcmalloc"},
    {"libmimalloc", "mimalloc"},
    {"librpmalloc", "rpmalloc"},
    {"libsnmalloc", "snmalloc"},
    {"libhoard", "Hoard"},
    {"libscudo", "Scudo"},
    {"libhardened_malloc", "hardened_malloc"},
    {"liblsan", "a sanitizer"},
    {"libasan", "AddressSanitizer"},
    {"libc_malloc_debug", "glibc's malloc with debugging"},
};

/* What the mappings of a process say. */
struct mappings {
    char library[PATH_MAX]; /* libhakmem.so; empty: it is not mapped */
    const char *other;      /* another allocator; NULL: none is known */
    bool is_deleted;
    bool has_libc;
    uint64_t count;
};

static void file_of(int process, const char *name, char *path, size_t path_bytes)
{
    snprintf(path, path_bytes, "/proc/%d/%s", process, name);
}

static void note_mapping(struct mappings *mappings, char *path)
{
    const char *file = strrchr(path, '/');
    path[strcspn(path, "\n")] = '\0';
    file = file == NULL ? path : file + 1;
    mappings->has_libc |= strncmp(file, "libc.so", 7) == 0 || strncmp(file, "libc-", 5) == 0 ||
                          strncmp(file, "ld-musl", 7) == 0;
    if (strncmp(file, "libhakmem.so", 12) == 0) {
        snprintf(mappings->library, sizeof mappings->library, "%s", path);
        mappings->is_deleted |= strstr(path, " (deleted)") != NULL;
    }
    for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++)
        if (strncmp(file, allocators[i].file, strlen(allocators[i].file)) == 0)
            mappings->other = allocators[i].name;
}

/* False: they cannot be read, and errno says why. */
static bool read_mappings(int process, struct mappings *mappings)
{
    char path[64];
    char *line = NULL;
    size_t room = 0;
    file_of(process, "maps", path, sizeof path);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (getline(&line, &room, file) > 0) {
        char *name = strchr(line, '/');
        mappings->count++;
        if (name != NULL)
            note_mapping(mappings, name);
    }
    bool is_read = !ferror(file);
    free(line);
    fclose(file);
    return is_read;
}

/* True when the program itself holds hakmem: what the library says stands in the file. */
static bool is_linked(int process)
{
    char path[64], words[32];
    struct stat status;
    /* Put together here, so that it is not found in this program. */
    snprintf(words, sizeof words, "its slab %s", "is gone");
    file_of(process, "exe", path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_found = false;
    if (fstat(fd, &status) == 0 && status.st_size > 0) {
        size_t bytes = (size_t)status.st_size;
        void *start = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (start != MAP_FAILED) {
            is_found = memmem(start, bytes, words, strlen(words)) != NULL;
            munmap(start, bytes);
        }
    }
    close(fd);
    return is_found;
}

/* The settings that the process started with; returns whether hakmem was to be preloaded. */
static bool print_environment(int process)
{
    static char text[1 << 16];
    char path[64];
    bool is_wanted = false;
    file_of(process, "environ", path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(text + at) + 1) {
        if (strncmp(text + at, "HAKMEM_", 7) == 0)
            find("note", "It was started with %.300s.", text + at);
        if (strncmp(text + at, "LD_PRELOAD=", 11) == 0 && strstr(text + at, "libhakmem") != NULL)
            is_wanted = true;
    }
    return is_wanted;
}

/* Whether hakmem serves malloc, and if not, why not. */
static void examine_allocator(int process, const struct mappings *mappings)
{
    bool is_wanted = print_environment(process);
    bool is_in = is_linked(process);
    if (mappings->library[0] != '\0') {
        find("ok", "hakmem serves malloc: %.300s is mapped.", mappings->library);
        if (mappings->is_deleted)
            find("note", "That file was replaced since: a restart takes the new one.");
        if (mappings->other != NULL)
            find("fix", "%s is mapped, too: which of both serves depends on the order of loading.",
                 mappings->other);
        return;
    }
    if (is_in) {
        find("ok", "hakmem serves malloc: it is linked into the program.");
        return;
    }
    if (mappings->other != NULL)
        find("note", "%s serves malloc; hakmem run PROGRAM puts hakmem in its place.",
             mappings->other);
    else if (mappings->has_libc)
        find("note", "The C library's malloc serves; hakmem run PROGRAM puts hakmem in its place.");
    else
        find("note", "The program is static and brings its own malloc; link it with hakmem.o.");
    if (is_wanted)
        find("fix",
             "LD_PRELOAD names hakmem, but it is not mapped: the program is static or privileged, "
             "or the file could not be loaded.");
}

/* A size of /proc/PID/status or smaps_rollup, which are in kB; 0: it is not there. */
static uint64_t size_of(const char *text, const char *key)
{
    const char *found = strstr(text, key);
    return found == NULL ? 0 : strtoull(found + strlen(key), NULL, 10) << 10;
}

static void examine_memory(int process)
{
    char path[64], text[8192], resident[32], huge[32];
    file_of(process, "status", path, sizeof path);
    if (!kernel_text(path, text, sizeof text))
        return;
    uint64_t bytes = size_of(text, "\nVmRSS:");
    uint64_t locked = size_of(text, "\nVmLck:");
    uint64_t threads = size_of(text, "\nThreads:") >> 10;
    file_of(process, "smaps_rollup", path, sizeof path);
    uint64_t huge_bytes = 0;
    if (kernel_text(path, text, sizeof text))
        huge_bytes = size_of(text, "\nAnonHugePages:");
    find("note", "%s resident, %s of it in huge pages; %" PRIu64 " thread%s.",
         size_text(resident, bytes), size_text(huge, huge_bytes), threads, threads == 1 ? "" : "s");
    if (locked > 0)
        find("note", "%s are locked: they cannot be given back to the kernel.",
             size_text(resident, locked));
}

static void examine_count(uint64_t count)
{
    uint64_t most;
    if (!kernel_number("/proc/sys/vm/max_map_count", &most) || most == 0)
        return;
    if (count > most / 4 * 3)
        find("fix",
             "%" PRIu64 " of %" PRIu64 " mappings are used: raise vm.max_map_count before "
             "mmap fails.",
             count, most);
    else
        find("ok", "%" PRIu64 " of %" PRIu64 " mappings are used.", count, most);
}

static void examine_limits(int process)
{
    char path[64], text[4096];
    file_of(process, "limits", path, sizeof path);
    if (!kernel_text(path, text, sizeof text))
        return;
    static const char *const names[] = {"Max address space", "Max data size"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *found = strstr(text, names[i]);
        uint64_t limit;
        char size[32];
        if (found != NULL && sscanf(found + strlen(names[i]), " %" SCNu64, &limit) == 1)
            find("note", "%s is %s: requests beyond it are ENOMEM.", names[i] + 4,
                 size_text(size, limit));
    }
}

int examine_process(int process)
{
    struct mappings mappings = {.count = 0};
    char path[64], name[256];
    file_of(process, "comm", path, sizeof path);
    if (!kernel_text(path, name, sizeof name))
        return complain(EXIT_FAILED, "doctor: there is no process %d", process);
    if (!read_mappings(process, &mappings))
        return complain(EXIT_FAILED,
                        "doctor: the mappings of process %d (%.60s) cannot be read: "
                        "%s",
                        process, name, strerror(errno));
    if (mappings.count == 0)
        return complain(EXIT_FAILED,
                        "doctor: process %d (%.60s) has no memory of its own: it is the kernel's, "
                        "or has ended",
                        process, name);
    printf("process %d (%s)\n", process, name);
    examine_allocator(process, &mappings);
    examine_memory(process);
    examine_count(mappings.count);
    examine_limits(process);
    file_of(process, "cgroup", path, sizeof path);
    examine_cgroup(path);
    return EXIT_DONE;
}
