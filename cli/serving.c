/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "serving.h"

#include "doctor.h"
#include "target.h"

#include <errno.h>
#include <fcntl.h>
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
    {"libhwasan", "HWAddressSanitizer"},
    {"libtsan", "ThreadSanitizer"},
    {"libc_malloc_debug", "glibc's malloc with debugging"},
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

static void note_mapping(struct serving *serving, char *path)
{
    path[strcspn(path, "\n")] = '\0';
    for (int i = 0; i < serving->file_count; i++)
        if (strcmp(serving->files[i], path) == 0)
            return;
    char *copy = serving->file_count < SERVING_FILES_MOST ? strdup(path) : NULL;
    if (copy == NULL)
        return;
    serving->files[serving->file_count++] = copy;
    const char *name = name_of(copy);
    serving->has_libc |= is_libc(name);
    if (is_hakmem(copy)) {
        serving->library = copy;
        serving->is_deleted |= strstr(copy, " (deleted)") != NULL;
    }
    for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++)
        if (begins_with(name, allocators[i].file))
            serving->other = allocators[i].name;
}

/* False: they cannot be read, and errno says why. */
static bool read_mappings(int process, struct serving *serving)
{
    char path[64];
    char *line = NULL;
    size_t room = 0;
    file_of(process, "maps", path, sizeof path);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        serving->error = errno;
        return false;
    }
    while (getline(&line, &room, file) > 0) {
        char *name = strchr(line, '/');
        serving->mapping_count++;
        if (name != NULL)
            note_mapping(serving, name);
    }
    bool is_read = !ferror(file);
    free(line);
    fclose(file);
    return is_read;
}

/* The settings that the process started with. */
static void read_environment(int process, struct serving *serving)
{
    char path[64];
    char *text = serving->environment;
    serving->preloaded = "";
    file_of(process, "environ", path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof serving->environment - 1);
    if (fd >= 0)
        close(fd);
    serving->environment_bytes = bytes < 0 ? 0 : (size_t)bytes;
    text[serving->environment_bytes] = '\0';
    serving->is_lost = serving->environment_bytes > 0;
    for (const char *at = text; at < text + serving->environment_bytes; at += strlen(at) + 1) {
        serving->is_lost &= strchr(at, '=') == NULL;
        if (begins_with(at, "LD_PRELOAD="))
            serving->preloaded = at + strlen("LD_PRELOAD=");
    }
}

/* The mapped file for the needed name `wanted`. Its own name may differ: libc.so.6 was once
 * libc-2.31.so. */
static const char *find_mapped(const struct serving *serving, const char *wanted, size_t bytes)
{
    char name[PROGRAM_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)(bytes & INT_MAX), wanted);
    const char *last = name_of(name);
    for (int i = 0; *last != '\0' && i < serving->file_count; i++) {
        const char *mapped = name_of(serving->files[i]);
        if (begins_with(mapped, last) || (is_libc(last) && is_libc(mapped)))
            return serving->files[i];
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

/* The file whose malloc the program calls: the first that has one in the loader's order, which is
 * the program itself (an empty string), preloaded libraries, and then needed ones. NULL: unknown,
 * since without the environment only the process itself knows what was preloaded. */
static const char *find_server(int process, const struct serving *serving)
{
    const struct program *program = &serving->program;
    const char *preloaded = serving->preloaded;
    if (program->defines_malloc)
        return "";
    if (serving->is_lost)
        return says_it_serves(process) ? serving->library : NULL;
    for (const char *at = preloaded; *at != '\0';) {
        size_t length = strcspn(at, ": ");
        const char *path = find_mapped(serving, at, length);
        if (path != NULL && serves(process, path))
            return path;
        at += length + (at[length] != '\0');
    }
    char text[PATH_MAX], list[64];
    file_of(process, "root/etc/ld.so.preload", list, sizeof list);
    if (kernel_text(list, text, sizeof text) && strstr(text, "libhakmem") != NULL)
        return serving->library;
    for (int i = 0; i < program->needed_count; i++) {
        const char *needed = program->needed[i];
        const char *path = find_mapped(serving, needed, strlen(needed));
        if (path != NULL && serves(process, path))
            return path;
    }
    return NULL;
}

static enum serving_kind kind_of(const struct serving *serving, bool is_known)
{
    if (serving->program.holds_hakmem)
        return SERVING_LINKED;
    if (serving->library == NULL)
        return SERVING_NOTHING;
    if (!is_known)
        return SERVING_UNREADABLE;
    if (serving->server == NULL)
        return SERVING_UNCLEAR;
    if (*serving->server == '\0')
        return SERVING_OWN_MALLOC;
    return is_hakmem(serving->server) ? SERVING_PRELOADED : SERVING_SHADOWED;
}

bool serving_read(struct serving *serving, int process)
{
    char path[64];
    memset(serving, 0, sizeof *serving);
    serving->preloaded = "";
    if (!read_mappings(process, serving))
        return false;
    read_environment(process, serving);
    file_of(process, "exe", path, sizeof path);
    bool is_known = program_read(&serving->program, path) && serving->program.is_elf;
    if (serving->library != NULL && is_known)
        serving->server = find_server(process, serving);
    serving->kind = kind_of(serving, is_known);
    return true;
}

void serving_forget(struct serving *serving)
{
    for (int i = 0; i < serving->file_count; i++)
        free(serving->files[i]);
    serving->file_count = 0;
}

/* The obstacle in a process whose mappings were read; NULL: none. */
static const char *obstacle_in(const struct serving *serving)
{
    if (serving->mapping_count == 0)
        return "it is a kernel thread or has ended";
    if (serving->kind == SERVING_OWN_MALLOC)
        return "the program defines malloc itself";
    if (serving->kind == SERVING_SHADOWED)
        return "another library's malloc comes first";
    return serving->kind == SERVING_NOTHING ? "it does not map it" : NULL;
}

const char *serving_obstacle(int process)
{
    static char line[512];
    static struct serving serving;
    if (!serving_read(&serving, process)) {
        if (serving.error == ENOENT || serving.error == ESRCH)
            return NULL; /* the caller reports that there is no such process */
        snprintf(line, sizeof line, "cannot determine whether hakmem serves process %d: %s",
                 process, strerror(serving.error));
        return line;
    }
    const char *obstacle = obstacle_in(&serving);
    serving_forget(&serving);
    if (obstacle == NULL)
        return NULL;
    snprintf(line, sizeof line, "process %d is not served by hakmem: %s", process, obstacle);
    return line;
}
