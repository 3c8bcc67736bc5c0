/* SPDX-License-Identifier: MIT */
/* tests/model/reference.h - a dumb reference that knows every live block, and random operations.
 *
 * Owns        the array of live blocks: address, usable bytes, and the seed of what was written
 *             there.
 * Invariants  a block's bytes are a function of its seed and their position. Small blocks are
 *             written and checked whole; of big ones both ends and a byte now and then.
 * Threads     one.
 * Tests       tests/model/random_ops_test.c, tests/model/fault_test.c
 */
#ifndef TESTS_MODEL_REFERENCE_H
#define TESTS_MODEL_REFERENCE_H

#include "../check.h"
#include "api/api.h"
#include "base/limits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#define WHOLE_BYTES ((size_t)8192) /* blocks up to this size are written and checked whole */
#define EDGE_BYTES ((size_t)256)
#define LIVE_MOST 3000u
#define LIVE_BYTES_MOST (192 * HAK_MIB)

struct live {
    unsigned char *start;
    size_t bytes;  /* as requested */
    size_t usable; /* as hakmem says; all of it is written */
    uint64_t seed;
};

struct reference {
    uint64_t random;
    bool may_fail; /* a request may be refused */
    uint64_t refused_count;
    size_t live_bytes;
    uint32_t live_count;
    struct live live[LIVE_MOST];
};

/* splitmix64 */
static inline uint64_t draw(struct reference *reference)
{
    uint64_t z = reference->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static inline uint64_t draw_below(struct reference *reference, uint64_t bound)
{
    return draw(reference) % bound;
}

/* Log-uniform from 0 to 4 MiB, rarely 64 MiB. */
static inline size_t draw_bytes(struct reference *reference)
{
    if (draw_below(reference, 2000) == 0)
        return 64 * HAK_MIB - draw_below(reference, 70000);
    size_t ceiling = (size_t)1 << draw_below(reference, 23);
    return draw_below(reference, 4) == 0 ? ceiling : draw_below(reference, ceiling + 1);
}

/* A power of two from 1 to 1 MiB, rarely to 16 MiB, which is more than a superslab. */
static inline size_t draw_alignment(struct reference *reference)
{
    return (size_t)1 << draw_below(reference, draw_below(reference, 50) == 0 ? 25 : 21);
}

static inline unsigned char byte_at(uint64_t seed, size_t position)
{
    return (unsigned char)(((seed ^ position) * 0x9e3779b97f4a7c15ull) >> 56);
}

/* The position after `at` that is written in a block of `bytes`. */
static inline size_t position_after(size_t at, size_t bytes)
{
    if (bytes <= WHOLE_BYTES || at < EDGE_BYTES || at + EDGE_BYTES >= bytes)
        return at + 1;
    size_t next = at + (bytes < HAK_MIB ? 509 : bytes / 256 + 1);
    return next < bytes - EDGE_BYTES ? next : bytes - EDGE_BYTES;
}

static inline void block_fill(const struct live *live)
{
    for (size_t i = 0; i < live->usable; i = position_after(i, live->usable))
        live->start[i] = byte_at(live->seed, i);
}

/* The first `bytes` of the block hold what was written when it had `usable` bytes. */
static inline void block_check(const unsigned char *start, size_t bytes, size_t usable,
                               uint64_t seed)
{
    for (size_t i = 0; i < bytes; i = position_after(i, usable))
        if (start[i] != byte_at(seed, i))
            CHECK_FAILED("block %p of %zu bytes is damaged at %zu", (const void *)start, usable, i);
    CHECK_PASSED();
}

static inline void block_check_zero(const unsigned char *start, size_t bytes)
{
    size_t step = bytes <= 256 * HAK_KIB ? 1 : 61;
    for (size_t i = 0; i < bytes; i += step)
        if (start[i] != 0)
            CHECK_FAILED("calloc of %zu bytes: byte %zu is %d", bytes, i, start[i]);
    CHECK_PASSED();
}

/* True when there is a block; a refusal must be one that the reference allows, and say ENOMEM. */
static inline bool was_served(struct reference *reference, const void *block, int error)
{
    if (block != NULL)
        return true;
    CHECK(reference->may_fail);
    CHECK_EQ(error, ENOMEM);
    reference->refused_count++;
    return false;
}

static inline void reference_add(struct reference *reference, void *block, size_t bytes,
                                 size_t alignment)
{
    struct live *live = &reference->live[reference->live_count++];
    *live = (struct live){.start = block, .bytes = bytes, .seed = draw(reference)};
    live->usable = hak_malloc_usable_size(block);
    CHECK(live->usable >= bytes);
    CHECK_EQ((uintptr_t)block % alignment, 0);
    reference->live_bytes += live->usable;
    block_fill(live);
}

static inline struct live reference_remove(struct reference *reference, uint32_t index)
{
    struct live live = reference->live[index];
    reference->live[index] = reference->live[--reference->live_count];
    reference->live_bytes -= live.usable;
    return live;
}

static inline int live_compare(const void *left, const void *right)
{
    const struct live *a = left, *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

/* No two live blocks share a usable byte. */
static inline void reference_check_overlap(struct reference *reference)
{
    qsort(reference->live, reference->live_count, sizeof(struct live), live_compare);
    for (uint32_t i = 0; i + 1 < reference->live_count; i++)
        CHECK(reference->live[i].start + reference->live[i].usable <= reference->live[i + 1].start);
}

#endif
