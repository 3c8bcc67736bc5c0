/* SPDX-License-Identifier: MIT */
/* tests/folder.h - a folder of its own for a test, with files and folders in it.
 *
 * Owns        the folder, whose path is `folder`, and ends it with the process at the latest.
 * Invariants  it is made when a file is first put there, or its path is asked for.
 * Threads     one.
 * Tests       those that include it.
 */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include "check.h"

#include <sys/stat.h>

static char folder[32];

static inline void folder_remove(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    unsetenv("LD_PRELOAD"); /* what runs here is not tested */
    if (folder[0] != '\0' && system(command) == 0)
        folder[0] = '\0';
}

/* The path of a name in it, until the next call. */
static inline const char *folder_path(const char *name)
{
    static char path[512];
    if (folder[0] == '\0') {
        strcpy(folder, "/tmp/hakmem_test.XXXXXX");
        CHECK(mkdtemp(folder) != NULL);
        atexit(folder_remove);
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* A file there with this text, and the folders that it needs. */
static inline void folder_put(const char *name, const char *text)
{
    char path[512];
    strcpy(path, folder_path(name));
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0755);
        *at = '/';
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

#endif
