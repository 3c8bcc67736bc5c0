/* SPDX-License-Identifier: MIT */
/* tests/golden/bursts.c - for counting the instructions of refills and flushes: many times as many
 * blocks as a bin holds are allocated, then freed.
 *
 *     golden_bursts ROUNDS ordered|random
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 20000

static void *blocks[BLOCKS];

static void shuffle(void)
{
    static uint32_t state = 1;
    for (uint32_t i = BLOCKS - 1; i > 0; i--) {
        state = state * 1103515245u + 12345u;
        uint32_t other = (state >> 8) % (i + 1);
        void *block = blocks[i];
        blocks[i] = blocks[other];
        blocks[other] = block;
    }
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 3) {
        fputs("usage: golden_bursts ROUNDS ordered|random\n", stderr);
        return 2;
    }
    long rounds = strtol(arguments[1], NULL, 10);
    for (long round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < BLOCKS; i++)
            if ((blocks[i] = malloc(64)) == NULL)
                return 1;
        if (strcmp(arguments[2], "random") == 0)
            shuffle();
        for (uint32_t i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
    return 0;
}
