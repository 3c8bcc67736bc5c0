/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "program.h"

#include "elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Linux follows so many #! lines. */
#define SCRIPTS_MOST 4

/* A whole file, to be read. */
struct whole {
    const char *start;
    size_t bytes;
};

static bool map_whole(struct whole *whole, const char *path)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    void *start = MAP_FAILED;
    errno = ENOEXEC;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0)
        start = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    errno = error;
    *whole = (struct whole){.start = start, .bytes = (size_t)about.st_size};
    return start != MAP_FAILED;
}

static void unmap_whole(const struct whole *whole)
{
    munmap((void *)(uintptr_t)whole->start, whole->bytes);
}

static bool is_elf(const struct whole *whole)
{
    return whole->bytes >= SELFMAG && memcmp(whole->start, ELFMAG, SELFMAG) == 0;
}

/* A string of the library, present in every program that is linked with it. */
static bool holds_hakmem(const struct whole *whole)
{
    char words[32];
    /* Put together here, so that it is not found in this program. */
    snprintf(words, sizeof words, "its slab %s", "is gone");
    return memmem(whole->start, whole->bytes, words, strlen(words)) != NULL;
}

static void read_elf(struct program *program, const struct whole *whole, const struct whole *own)
{
    struct elf_file file;
    program->is_other_machine =
        !elf_open(&file, whole->start, whole->bytes, (const unsigned char *)own->start);
    if (program->is_other_machine)
        return;
    program->has_loader = elf_loader(&file, program->loader, sizeof program->loader);
    program->defines_malloc = elf_defines(&file, "malloc");
    program->holds_hakmem = holds_hakmem(whole);
    int *count = &program->needed_count;
    while (*count < PROGRAM_NEEDED_MOST &&
           elf_needed(&file, *count, program->needed[*count], sizeof program->needed[*count]))
        ++*count;
}

bool program_read(struct program *program, const char *path)
{
    struct whole whole, own;
    memset(program, 0, sizeof *program);
    if (!map_whole(&whole, path))
        return false;
    program->is_elf = is_elf(&whole);
    bool is_known = !program->is_elf || map_whole(&own, "/proc/self/exe");
    if (program->is_elf && is_known) {
        read_elf(program, &whole, &own);
        unmap_whole(&own);
    }
    unmap_whole(&whole);
    return is_known;
}

/* The file that execvp(3) would run. */
static bool find_file(const char *name, char *path, size_t path_bytes)
{
    if (strchr(name, '/') != NULL)
        return (size_t)snprintf(path, path_bytes, "%s", name) < path_bytes;
    const char *folders = getenv("PATH");
    for (const char *at = folders == NULL ? "/bin:/usr/bin" : folders;; at++) {
        size_t length = strcspn(at, ":");
        const char *slash = length == 0 ? "" : "/";
        int used = snprintf(path, path_bytes, "%.*s%s%s", (int)length, at, slash, name);
        struct stat about;
        if ((size_t)used < path_bytes && access(path, X_OK) == 0 && stat(path, &about) == 0 &&
            S_ISREG(about.st_mode))
            return true;
        at += length;
        if (*at == '\0')
            return false;
    }
}

/* Puts the interpreter of a script in its place; false: it is no script. */
static bool follow_script(char *path, size_t path_bytes)
{
    char line[PATH_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t bytes = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    if (bytes < 3 || line[0] != '#' || line[1] != '!')
        return false;
    line[bytes] = '\0';
    char *name = line + 2 + strspn(line + 2, " \t");
    name[strcspn(name, " \t\r\n")] = '\0';
    snprintf(path, path_bytes, "%s", name);
    return true;
}

/* Whether the loader will take the program for one with more rights than its user: then it does not
 * listen to LD_PRELOAD. */
static bool raises_rights(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return false;
    bool changes_user = (about.st_mode & S_ISUID) != 0 && about.st_uid != getuid();
    bool changes_group = (about.st_mode & S_ISGID) != 0 && (about.st_mode & S_IXGRP) != 0 &&
                         about.st_gid != getgid();
    bool has_rights = getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
    return changes_user || changes_group || has_rights;
}

/* Of two C libraries only the one that the program has can load a library made for it. */
static bool has_musl(const struct program *program)
{
    return strstr(program->loader, "ld-musl") != NULL;
}

/* gcc links these; they end a program in which another malloc comes first. clang puts its own into
 * the program, which then defines malloc. */
static bool has_sanitizer(const struct program *program)
{
    static const char *const names[] = {"libasan.so", "libhwasan.so", "libtsan.so"};
    for (int i = 0; i < program->needed_count; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (strncmp(program->needed[i], names[k], strlen(names[k])) == 0)
                return true;
    return false;
}

static const char *obstacle_in(const char *path)
{
    struct program program, own;
    if (!program_read(&program, path) || !program.is_elf)
        return NULL;
    if (program.is_other_machine)
        return "is built for another kind of machine";
    if (program.holds_hakmem)
        return NULL;
    if (!program.has_loader)
        return "is static (link it with hakmem.o instead)";
    if (raises_rights(path))
        return "has raised privileges (setuid, setgid or capabilities)";
    if (program.defines_malloc)
        return "defines malloc itself";
    if (has_sanitizer(&program))
        return "is built with a sanitizer, which has its own malloc";
    if (program_read(&own, "/proc/self/exe") && own.has_loader &&
        has_musl(&own) != has_musl(&program))
        return "uses another C library than hakmem (glibc or musl)";
    return NULL;
}

/* The file that runs a program: that of a script is its interpreter. */
static bool find_program(const char *name, char *path, size_t path_bytes)
{
    if (!find_file(name, path, path_bytes))
        return false;
    for (int scripts = 0; scripts < SCRIPTS_MOST && follow_script(path, path_bytes); scripts++)
        continue;
    return true;
}

const char *program_obstacle(const char *name)
{
    char path[PATH_MAX];
    return find_program(name, path, sizeof path) ? obstacle_in(path) : NULL;
}

bool program_bears_preload(const char *name)
{
    char path[PATH_MAX];
    struct program program;
    return !find_program(name, path, sizeof path) || !program_read(&program, path) ||
           !has_sanitizer(&program);
}
