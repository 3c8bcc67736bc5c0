/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/own_malloc.c - a program that defines malloc itself, as those do that another
 * allocator is linked into. Every block that libc's functions give it must be its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Alignas(16) char arena[1 << 20];
static size_t used;

void *malloc(size_t bytes)
{
    if (bytes > sizeof arena / 2 || used + bytes + 32 > sizeof arena) {
        errno = ENOMEM;
        return NULL;
    }
    char *block = arena + used + 16;
    memcpy(block - 16, &bytes, sizeof bytes);
    used += 16 + (bytes + 15) / 16 * 16;
    return block;
}

static int is_own(const void *block)
{
    return (uintptr_t)block - (uintptr_t)arena < sizeof arena;
}

void free(void *block)
{
    if (block != NULL && !is_own(block))
        abort();
}

void *calloc(size_t count, size_t bytes)
{
    return malloc(count * bytes); /* nothing is used twice */
}

void *realloc(void *block, size_t bytes)
{
    size_t old_bytes = 0;
    free(block);
    if (block != NULL)
        memcpy(&old_bytes, (char *)block - 16, sizeof old_bytes);
    void *moved = malloc(bytes);
    if (moved != NULL && block != NULL)
        memcpy(moved, block, old_bytes < bytes ? old_bytes : bytes);
    return moved;
}

static volatile size_t hidden = SIZE_MAX / 2; /* the compiler would warn of it */

int main(int argument_count, char **arguments)
{
    if (argument_count > 1 && strcmp(arguments[1], "wait") == 0)
        return pause();
    char *block = reallocarray(NULL, 10, 10);
    if (!is_own(block))
        return 2;
    memset(block, 7, 100);
    block = reallocarray(block, 100, 100);
    if (!is_own(block) || block[99] != 7)
        return 3;
    if (reallocarray(block, hidden, 3) != NULL || errno != ENOMEM)
        return 4;
    char *text = strdup("a text");
    if (!is_own(text) || asprintf(&block, "%s", text) != 6 || !is_own(block))
        return 5;
    free(text);
    puts("own");
    return 0;
}
