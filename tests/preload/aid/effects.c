/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/effects.c - memory in the shape that one option decides about, by its first
 * argument: large blocks that come and go, many that end, small blocks that are freed at once, or
 * freed before a pause in which some thread still works. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LARGE_BYTES ((size_t)4 << 20)
#define SMALL_COUNT 200000

static char *blocks[SMALL_COUNT];

static void take(int from, int to, size_t bytes)
{
    for (int i = from; i < to; i++)
        memset(blocks[i] = malloc(bytes), i, bytes);
}

static void give(int from, int to)
{
    for (int i = from; i < to; i++)
        free(blocks[i]);
}

/* For most of a second, with requests that leave the fast path. */
static void work(void)
{
    struct timespec pause = {0, 10000000};
    for (int i = 0; i < 80; i++) {
        nanosleep(&pause, NULL);
        free(malloc(100000 + (size_t)i * 1000));
    }
}

int main(int count, char **words)
{
    char shape = count > 1 ? *words[1] : '\0';
    for (int i = 0; shape == 'c' && i < 40; i++) {
        take(0, 8, LARGE_BYTES);
        give(0, 8);
    }
    if (shape == 'm') {
        take(0, 64, LARGE_BYTES);
        give(0, 32);
        work();
    }
    if (shape == 's' || shape == 'p') {
        take(0, SMALL_COUNT, 200);
        give(0, SMALL_COUNT);
    }
    if (shape == 'p')
        work();
    return 0;
}
