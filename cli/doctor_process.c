/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "command.h"
#include "doctor.h"
#include "os/rseq.h"
#include "program.h"
#include "stats/summary.h"
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

enum { FILES_MOST = 1024 };

/* What the mappings of a process say. */
struct mappings {
    char *files[FILES_MOST]; /* that are mapped, each once */
    int file_count;
    const char *library; /* libhakmem.so among them; NULL: it is not mapped */
    const char *other;   /* another allocator; NULL: none is known */
    bool is_deleted;
    bool has_libc;
    uint64_t count;
};

static void file_of(int process, const char *name, char *path, size_t path_bytes)
{
    snprintf(path, path_bytes, "/proc/%d/%s", process, name);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool begins_with(const char *name, const char *beginning)
{
    return strncmp(name, beginning, strlen(beginning)) == 0;
}

static bool is_libc(const char *name)
{
    return begins_with(name, "libc.so") || begins_with(name, "libc-") ||
           begins_with(name, "ld-musl");
}

static bool is_hakmem(const char *path)
{
    return begins_with(name_of(path), "libhakmem.so");
}

static void note_mapping(struct mappings *mappings, char *path)
{
    path[strcspn(path, "\n")] = '\0';
    for (int i = 0; i < mappings->file_count; i++)
        if (strcmp(mappings->files[i], path) == 0)
            return;
    char *copy = mappings->file_count < FILES_MOST ? strdup(path) : NULL;
    if (copy == NULL)
        return;
    mappings->files[mappings->file_count++] = copy;
    const char *name = name_of(copy);
    mappings->has_libc |= is_libc(name);
    if (is_hakmem(copy)) {
        mappings->library = copy;
        mappings->is_deleted |= strstr(copy, " (deleted)") != NULL;
    }
    for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++)
        if (begins_with(name, allocators[i].file))
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

/* Prints the settings that the process started with, and returns what was to be preloaded. NULL:
 * the program has overwritten its environment, as those do that show a title of their own. */
static const char *print_environment(int process)
{
    static char text[1 << 16];
    char path[64];
    const char *preloaded = "";
    bool is_kept = false;
    file_of(process, "environ", path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(text + at) + 1) {
        is_kept |= strchr(text + at, '=') != NULL;
        if (begins_with(text + at, "HAKMEM_"))
            find("note", "It was started with %.300s.", text + at);
        if (begins_with(text + at, "LD_PRELOAD="))
            preloaded = text + at + strlen("LD_PRELOAD=");
    }
    return is_kept || bytes <= 0 ? preloaded : NULL;
}

/* The mapped file that a loader was asked for by `wanted`, whose version may be longer: for
 * libc.so.6 it was libc-2.31.so once. */
static const char *find_mapped(const struct mappings *mappings, const char *wanted, size_t bytes)
{
    char name[PROGRAM_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)(bytes & INT_MAX), wanted);
    const char *last = name_of(name);
    for (int i = 0; *last != '\0' && i < mappings->file_count; i++) {
        const char *mapped = name_of(mappings->files[i]);
        if (begins_with(mapped, last) || (is_libc(last) && is_libc(mapped)))
            return mappings->files[i];
    }
    return NULL;
}

static bool serves(int process, const char *path)
{
    struct program library;
    char seen[PATH_MAX + 64];
    if (is_hakmem(path) || is_libc(name_of(path)))
        return true;
    snprintf(seen, sizeof seen, "/proc/%d/root%s", process, path);
    return program_read(&library, seen) && library.defines_malloc;
}

/* The process publishes its numbers, and they say that hakmem serves. */
static bool says_it_serves(int process)
{
    static struct target target;
    const char *why;
    return target_read(&target, process, &why) && target.page.snapshot.shadowed == 0;
}

/* The file whose malloc the program calls: the first in the loader's order, which is the program
 * itself (an empty string), what is preloaded, and then what the program needs. Without the
 * environment only the process knows what was preloaded. NULL: that cannot be told. */
static const char *find_server(int process, const struct mappings *mappings,
                               const struct program *program, const char *preloaded)
{
    if (program->defines_malloc)
        return "";
    if (preloaded == NULL)
        return says_it_serves(process) ? mappings->library : NULL;
    for (const char *at = preloaded; *at != '\0';) {
        size_t length = strcspn(at, ": ");
        const char *path = find_mapped(mappings, at, length);
        if (path != NULL && serves(process, path))
            return path;
        at += length + (at[length] != '\0');
    }
    char text[PATH_MAX], list[64];
    file_of(process, "root/etc/ld.so.preload", list, sizeof list);
    if (kernel_text(list, text, sizeof text) && strstr(text, "libhakmem") != NULL)
        return mappings->library;
    for (int i = 0; i < program->needed_count; i++) {
        const char *needed = program->needed[i];
        const char *path = find_mapped(mappings, needed, strlen(needed));
        if (path != NULL && serves(process, path))
            return path;
    }
    return NULL;
}

static void examine_library(int process, const struct mappings *mappings,
                            const struct program *program, const char *preloaded)
{
    const char *server = find_server(process, mappings, program, preloaded);
    if (server == NULL)
        find("note", "%.300s is mapped; whose malloc the program calls cannot be told%s.",
             mappings->library,
             preloaded == NULL
                 ? ", since it has overwritten its environment: HAKMEM_STATS_SHM=1 tells"
                 : "");
    else if (*server == '\0')
        find("fix", "hakmem is mapped and serves nothing: the program defines malloc itself.");
    else if (!is_hakmem(server))
        find("fix", "hakmem is mapped and serves nothing: %.300s comes before it.", server);
    else
        find("ok", "hakmem serves malloc: %.300s is mapped.", mappings->library);
    if (mappings->is_deleted)
        find("note", "That file was replaced since: a restart takes the new one.");
    if (mappings->other != NULL && server != NULL && is_hakmem(server))
        find("note", "%s is mapped, too, and comes after hakmem.", mappings->other);
}

/* Whether hakmem serves malloc, and if not, why not. */
static void examine_allocator(int process, const struct mappings *mappings)
{
    struct program program = {.is_elf = false};
    char path[64];
    const char *preloaded = print_environment(process);
    file_of(process, "exe", path, sizeof path);
    bool is_known = program_read(&program, path) && program.is_elf;
    if (program.holds_hakmem)
        find("ok", "hakmem serves malloc: it is linked into the program.");
    else if (mappings->library != NULL && !is_known)
        find("note", "%.300s is mapped; the program's file cannot be read.", mappings->library);
    else if (mappings->library != NULL)
        examine_library(process, mappings, &program, preloaded);
    else if (program.defines_malloc)
        find("note", "The program defines malloc itself: hakmem cannot take its place.");
    else if (mappings->other != NULL)
        find("note", "%s serves malloc; hakmem run PROGRAM puts hakmem in its place.",
             mappings->other);
    else if (mappings->has_libc)
        find("note", "The C library's malloc serves; hakmem run PROGRAM puts hakmem in its place.");
    else
        find("note", "The program is static and brings its own malloc; link it with hakmem.o.");
    if (mappings->library == NULL && !program.holds_hakmem && preloaded != NULL &&
        strstr(preloaded, "libhakmem") != NULL)
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

/* What the process publishes of itself, if it does: whose the caches are, and what would help. */
static void examine_published(int process)
{
    static struct target target;
    const char *why;
    if (!target_read(&target, process, &why)) {
        find("note", "Started with HAKMEM_STATS_SHM=1 it would show its figures here.");
        return;
    }
    const struct snapshot *of = &target.page.snapshot;
    const char *advice = hak_summary_advice(of);
    find(of->rseq_reason == RSEQ_PROCESSOR ? "ok" : "note", "rseq: %s, %s.",
         of->rseq_reason == RSEQ_PROCESSOR ? "processor" : "thread",
         hak_rseq_meaning(of->rseq_reason));
    if (*advice != '\0')
        find("fix", "%s", advice);
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
    static struct mappings mappings;
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
    if (mappings.library != NULL)
        examine_published(process);
    examine_count(mappings.count);
    examine_limits(process);
    file_of(process, "cgroup", path, sizeof path);
    examine_cgroup(path);
    return EXIT_DONE;
}
