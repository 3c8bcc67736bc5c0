/* SPDX-License-Identifier: MIT */
/* tests/install/aid/own.c - a program with a malloc of its own, which also libc and libraries use:
 * the loader takes the program's before that of any library. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Alignas(16) char arena[1 << 22];
static size_t used;
static long call_count;

void *malloc(size_t bytes)
{
    size_t offset = __atomic_fetch_add(&used, (bytes + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    __atomic_fetch_add(&call_count, 1, __ATOMIC_RELAXED);
    if (offset + bytes + 16 > sizeof arena) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(arena + offset, &bytes, sizeof bytes);
    return arena + offset + 16;
}

void free(void *block)
{
    char *place = block;
    if (place != NULL && (place < arena || place >= arena + sizeof arena)) {
        (void)!write(2, "own: a foreign block\n", 21);
        _exit(1);
    }
}

void *calloc(size_t count, size_t bytes)
{
    return malloc(count * bytes);
}

void *realloc(void *block, size_t bytes)
{
    size_t old_bytes = 0;
    void *moved = malloc(bytes);
    if (block != NULL)
        memcpy(&old_bytes, (char *)block - 16, sizeof old_bytes);
    if (moved != NULL && block != NULL)
        memcpy(moved, block, old_bytes < bytes ? old_bytes : bytes);
    return moved;
}

static void *run(void *argument)
{
    free(strdup("in a thread"));
    return argument;
}

int main(void)
{
    pthread_t thread;
    char *text = NULL;
    long before = call_count;
    if (asprintf(&text, "%d", 5) != 1 || call_count == before || (char *)text < arena)
        return 2;
    free(text);
    if (pthread_create(&thread, NULL, run, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 3;
    FILE *file = fopen("/dev/null", "r");
    return file != NULL && fclose(file) == 0 ? 0 : 4;
}
