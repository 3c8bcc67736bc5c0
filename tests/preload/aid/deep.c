/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/deep.c - a library for dlopen.c: it hands out what its malloc returns. */
#include <stdlib.h>
#include <string.h>

char *deep_take(size_t bytes, int value);
void deep_give(void *block);
char *deep_copy(const char *text);

char *deep_take(size_t bytes, int value)
{
    char *block = malloc(bytes);
    return block == NULL ? NULL : memset(block, value, bytes);
}

void deep_give(void *block)
{
    free(block);
}

/* A block that libc itself takes. */
char *deep_copy(const char *text)
{
    return strdup(text);
}
