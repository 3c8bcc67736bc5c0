/* SPDX-License-Identifier: MIT */
/* tests/unit/lent.h - which blocks may serve a request (heap/refill.h). */
#ifndef TESTS_UNIT_LENT_H
#define TESTS_UNIT_LENT_H

#include "api/api.h"
#include "base/limits.h"
#include "slab/size_class.h"

#include <stdbool.h>

/* Whether a request of so many bytes, aligned as usual, may get a block that is so long: of its own
 * class, or the longest of four neighbours from 16 bytes to 1 KiB. */
static inline bool may_be_so_long(size_t bytes, size_t usable)
{
    uint32_t own = hak_size_classes[hak_class_of(bytes)].block_bytes;
    if (usable == own || own < 16 || own > HAK_KIB)
        return usable == own;
    size_t step = 64;
    while (own > 4 * step)
        step *= 2;
    return usable == (own + step - 1) / step * step;
}

/* A block of its own class. */
static inline void *block_of_own_class(size_t bytes)
{
    void *block = hak_malloc(bytes);
    while (block != NULL && hak_malloc_usable_size(block) != hak_malloc_good_size(bytes))
        block = hak_malloc(bytes);
    return block;
}

#endif
