/* SPDX-License-Identifier: MIT */
/* tests/golden/pairs.c - malloc(64) and free, as often as asked, for counting instructions. */
#include <stdlib.h>

int main(int argument_count, char **arguments)
{
    long pair_count = argument_count > 1 ? strtol(arguments[1], NULL, 10) : 1000;
    for (long pair = 0; pair < pair_count; pair++) {
        char *block = malloc(64);
        if (!block)
            return 1;
        *(volatile char *)block = 1;
        free(block);
    }
    return 0;
}
