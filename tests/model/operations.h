/* SPDX-License-Identifier: MIT */
/* tests/model/operations.h - one random operation on hakmem and on the reference.
 *
 * Owns        the mix of operations: each is done by hakmem and by the reference, and compared.
 * Invariants  after a refused operation everything is as it was.
 * Threads     one.
 * Tests       tests/model/random_ops_test.c, tests/model/fault_test.c
 */
#ifndef TESTS_MODEL_OPERATIONS_H
#define TESTS_MODEL_OPERATIONS_H

#include "reference.h"

/* What every block is aligned to (api/api.h). */
static inline size_t ordinary_alignment(size_t bytes)
{
    return bytes <= 8 ? 8 : 16;
}

static inline void step_malloc(struct reference *reference)
{
    size_t bytes = draw_bytes(reference);
    errno = 0;
    void *block = hak_malloc(bytes);
    if (was_served(reference, block, errno))
        reference_add(reference, block, bytes, ordinary_alignment(bytes));
}

static inline void step_calloc(struct reference *reference)
{
    size_t bytes = draw_bytes(reference);
    size_t count = 1 + draw_below(reference, 9);
    errno = 0;
    void *block = hak_calloc(count, bytes / count);
    if (!was_served(reference, block, errno))
        return;
    bytes = bytes / count * count;
    block_check_zero(block, bytes);
    reference_add(reference, block, bytes, ordinary_alignment(bytes));
}

static inline void step_aligned(struct reference *reference)
{
    size_t bytes = draw_bytes(reference);
    size_t alignment = draw_alignment(reference);
    errno = 0;
    void *block = hak_aligned_alloc(alignment, bytes);
    if (was_served(reference, block, errno))
        reference_add(reference, block, bytes, alignment);
}

static inline void step_posix_memalign(struct reference *reference)
{
    static char untouched;
    size_t bytes = draw_bytes(reference);
    size_t alignment = draw_alignment(reference);
    void *block = &untouched;
    errno = 0;
    int error = hak_posix_memalign(&block, alignment, bytes);
    CHECK_EQ(errno, 0);
    if (alignment < sizeof(void *)) {
        CHECK_EQ(error, EINVAL);
        CHECK_EQ(block, &untouched);
    } else if (was_served(reference, error == 0 ? block : NULL, error)) {
        CHECK(block != &untouched);
        reference_add(reference, block, bytes, alignment);
    } else {
        CHECK_EQ(block, &untouched);
    }
}

static inline void step_free(struct reference *reference)
{
    if (reference->live_count == 0)
        return;
    struct live live =
        reference_remove(reference, (uint32_t)draw_below(reference, reference->live_count));
    CHECK_EQ(hak_malloc_usable_size(live.start), live.usable);
    block_check(live.start, live.usable, live.usable, live.seed);
    errno = 77;
    hak_free(live.start);
    CHECK_EQ(errno, 77);
}

static inline void step_realloc(struct reference *reference)
{
    if (reference->live_count == 0)
        return;
    uint32_t index = (uint32_t)draw_below(reference, reference->live_count);
    struct live *live = &reference->live[index];
    /* Half of them to about the same size, as growing buffers do. */
    size_t bytes = draw_below(reference, 2) == 0
                       ? draw_bytes(reference)
                       : live->bytes / 2 + draw_below(reference, live->bytes + live->bytes / 8 + 1);
    size_t count = 1 + draw_below(reference, 3);
    bytes = (bytes / count + 1) * count; /* never 0: that would be free */
    block_check(live->start, live->usable, live->usable, live->seed);
    errno = 0;
    unsigned char *block = count == 1 ? hak_realloc(live->start, bytes)
                                      : hak_reallocarray(live->start, count, bytes / count);
    if (!was_served(reference, block, errno)) {
        block_check(live->start, live->usable, live->usable, live->seed);
        return;
    }
    struct live old = reference_remove(reference, index);
    size_t kept = old.bytes < bytes ? old.bytes : bytes;
    block_check(block, kept, old.usable, old.seed);
    reference_add(reference, block, bytes, ordinary_alignment(bytes));
}

static inline void step_realloc_ends(struct reference *reference)
{
    if (draw_below(reference, 2) == 0 || reference->live_count == 0) {
        size_t bytes = draw_bytes(reference);
        errno = 0;
        void *block = hak_realloc(NULL, bytes);
        if (was_served(reference, block, errno))
            reference_add(reference, block, bytes, ordinary_alignment(bytes));
        return;
    }
    struct live live =
        reference_remove(reference, (uint32_t)draw_below(reference, reference->live_count));
    block_check(live.start, live.usable, live.usable, live.seed);
    CHECK_EQ(hak_realloc(live.start, 0), NULL);
}

/* One operation; `pressure` of 16 is how much taking outweighs giving. */
static inline void step(struct reference *reference, uint32_t pressure)
{
    bool is_full = reference->live_count == LIVE_MOST || reference->live_bytes > LIVE_BYTES_MOST;
    uint64_t choice = draw_below(reference, 32);
    if (is_full || choice >= pressure + 8) {
        step_free(reference);
        return;
    }
    static void (*const steps[])(struct reference *) = {
        step_malloc,  step_malloc,         step_malloc,  step_calloc,
        step_aligned, step_posix_memalign, step_realloc, step_realloc_ends,
    };
    steps[choice % 8](reference);
}

static inline void free_everything(struct reference *reference)
{
    while (reference->live_count > 0)
        step_free(reference);
    CHECK_EQ(reference->live_bytes, 0);
}

#endif
