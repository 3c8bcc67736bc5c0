/* SPDX-License-Identifier: MIT */
/* tests/golden/pairs.c - malloc or aligned_alloc, and free, as often as asked, for counting
 * instructions.
 *
 *     golden_pairs [PAIRS [ALIGNMENT BYTES]]     ALIGNMENT 0: malloc
 */
#include <stdlib.h>

static long number(int argument_count, char **arguments, int index, long otherwise)
{
    return argument_count > index ? strtol(arguments[index], NULL, 10) : otherwise;
}

int main(int argument_count, char **arguments)
{
    long pair_count = number(argument_count, arguments, 1, 1000);
    size_t alignment = (size_t)number(argument_count, arguments, 2, 0);
    size_t bytes = (size_t)number(argument_count, arguments, 3, 64);
    for (long pair = 0; pair < pair_count; pair++) {
        char *block = alignment == 0 ? malloc(bytes) : aligned_alloc(alignment, bytes);
        if (!block)
            return 1;
        *(volatile char *)block = 1;
        free(block);
    }
    return 0;
}
