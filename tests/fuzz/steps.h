/* SPDX-License-Identifier: MIT */
/* tests/fuzz/steps.h - each function of the malloc family as one step, decided by the input.
 *
 * Owns        the steps of one thread on hakmem and on the reference.
 * Invariants  a refused request leaves everything as it was; contents are checked at every end.
 * Threads     one.
 * Tests       tests/fuzz/api_fuzz.c, tests/fuzz/faults_fuzz.c
 */
#ifndef TESTS_FUZZ_STEPS_H
#define TESTS_FUZZ_STEPS_H

#include "fuzz.h"

static inline void block_take_in(struct reference *reference, void *block, size_t bytes,
                                 size_t alignment)
{
    if (was_served(reference, block, errno))
        reference_add(reference, block, bytes, alignment);
}

static inline void step_aligned(struct reference *reference, struct input *input, uint32_t kind,
                                size_t bytes)
{
    size_t alignment = input_alignment(input);
    void *block = NULL;
    if (kind == 0) {
        block = hak_aligned_alloc(alignment, bytes);
    } else if (kind == 1) {
        block = hak_memalign(alignment, bytes);
    } else {
        int error = hak_posix_memalign(&block, alignment, bytes);
        CHECK_EQ(errno, 0);
        if (alignment < sizeof(void *)) {
            CHECK_EQ(error, EINVAL);
            return;
        }
        errno = error;
    }
    block_take_in(reference, block, bytes, alignment);
}

static inline void step_take(struct reference *reference, struct input *input, uint32_t kind)
{
    size_t bytes = input_bytes(input);
    if (!has_room(reference, bytes))
        return;
    errno = 0;
    size_t alignment = bytes <= 8 ? 8 : 16;
    if (kind == 0) {
        block_take_in(reference, hak_malloc(bytes), bytes, alignment);
    } else if (kind == 1) {
        size_t count = 1 + input_below(input, 9);
        unsigned char *block = hak_calloc(count, bytes / count);
        bytes = bytes / count * count;
        if (block != NULL)
            block_check_zero(block, bytes);
        block_take_in(reference, block, bytes, bytes <= 8 ? 8 : 16);
    } else if (kind == 2) {
        block_take_in(reference, hak_realloc(NULL, bytes), bytes, alignment);
    } else if (kind == 3) {
        block_take_in(reference, hak_valloc(bytes), bytes, hak_os_page_bytes());
    } else {
        step_aligned(reference, input, kind - 4, bytes);
    }
}

static inline void step_resize(struct reference *reference, struct input *input)
{
    if (reference->live_count == 0)
        return;
    uint32_t index = (uint32_t)input_below(input, reference->live_count);
    size_t count = 1 + input_below(input, 3);
    size_t bytes = (input_bytes(input) / count + 1) * count;
    const struct live *live = &reference->live[index];
    if (!has_room(reference, bytes))
        return;
    live_check(live);
    errno = 0;
    unsigned char *block = count == 1 ? hak_realloc(live->start, bytes)
                                      : hak_reallocarray(live->start, count, bytes / count);
    if (!was_served(reference, block, errno)) {
        live_check(live);
        return;
    }
    struct live old = reference_remove(reference, index);
    block_check(block, old.bytes < bytes ? old.bytes : bytes, old.usable, old.seed);
    reference_add(reference, block, bytes, bytes <= 8 ? 8 : 16);
}

static inline void step_free(struct reference *reference, struct input *input)
{
    if (reference->live_count == 0)
        return;
    struct live live = live_remove(reference, (uint32_t)input_below(input, reference->live_count));
    errno = 77;
    if (input_below(input, 8) == 0)
        CHECK_EQ(hak_realloc(live.start, 0), NULL);
    else
        hak_free(live.start);
    CHECK_EQ(errno, 77);
}

/* Requests that no memory can serve. */
static inline void step_refused(struct input *input)
{
    size_t bytes = SIZE_MAX - input_below(input, (uint64_t)1 << 32);
    void *block = NULL;
    errno = 0;
    CHECK_EQ(hak_malloc(bytes), NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK_EQ(hak_calloc(bytes / 2, 3), NULL);
    CHECK_EQ(hak_aligned_alloc(input_alignment(input), bytes), NULL);
    CHECK_EQ(hak_posix_memalign(&block, 64, bytes), ENOMEM);
    CHECK_EQ(block, NULL);
}

static inline void everything_free(struct reference *reference)
{
    while (reference->live_count > 0)
        hak_free(live_remove(reference, reference->live_count - 1).start);
    CHECK_EQ(reference->live_bytes, 0);
}

#endif
