/* SPDX-License-Identifier: MIT */
/* tests/preload/until_refused.h - blocks of one size until there are no more, in a list that is
 * made of them, so that counting needs no other memory. */
#ifndef TESTS_PRELOAD_UNTIL_REFUSED_H
#define TESTS_PRELOAD_UNTIL_REFUSED_H

#include "program.h"

#define MOST_BLOCKS (32u << 20)

/* The list is made of the blocks. */
struct link {
    struct link *next;
    unsigned number;
};

static inline unsigned allocate_until_refused(struct link **list, size_t bytes)
{
    unsigned count = 0;
    while (count < MOST_BLOCKS) {
        errno = 0;
        struct link *link = malloc(bytes);
        if (link == NULL) {
            CHECK_EQ(errno, ENOMEM);
            break;
        }
        link->next = *list;
        link->number = ++count;
        fill(link + 1, bytes < 4096 ? bytes - sizeof *link : 4096, count);
        *list = link;
    }
    CHECK(count < MOST_BLOCKS);
    return count;
}

static inline void check_and_free(struct link *list, size_t bytes, unsigned count)
{
    while (list != NULL) {
        struct link *next = list->next;
        if (list->number != count ||
            !is_filled(list + 1, bytes < 4096 ? bytes - sizeof *list : 4096, count))
            CHECK_FAILED("block %u is damaged", count);
        free(list);
        list = next;
        count--;
    }
    CHECK_EQ(count, 0);
}

#endif
