/* SPDX-License-Identifier: MIT */
/* tests/fuzz/fuzz.h - one input of a fuzzer as a list of decisions.
 *
 * Owns        struct input. A number is read from the bytes in turn, so that inputs that differ in
 *             one byte decide otherwise in one place; behind the end all numbers are 0.
 * Invariants  a failed check aborts, which libFuzzer reports with the input. An input leaves no
 *             block live: the next one starts on what it left free.
 * Threads     one, where a target does not say otherwise.
 * Tests       tests/fuzz/
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdlib.h>

#define CHECK_END() abort()
#define CHECK_WITHOUT_MAIN
#include "../model/account.h"
#include "../model/reference.h"

#define FUZZ_LIVE_BYTES_MOST (24 * HAK_MIB)
#define FUZZ_LIVE_MOST 256u

struct input {
    const unsigned char *next;
    const unsigned char *end;
};

/* What libFuzzer calls with each input. */
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count);

static inline bool input_is_over(const struct input *input)
{
    return input->next == input->end;
}

static inline uint32_t input_byte(struct input *input)
{
    return input_is_over(input) ? 0 : *input->next++;
}

/* A number below `bound`, from one byte if it is at most 256, else from as many as it needs. */
static inline uint64_t input_below(struct input *input, uint64_t bound)
{
    uint64_t number = input_byte(input);
    for (uint64_t reach = 256; reach < bound && reach < (uint64_t)1 << 56; reach <<= 8)
        number = number << 8 | input_byte(input);
    return number % bound;
}

/* A size of two or three bytes: a power of two, and a distance from it in either direction. */
static inline size_t input_bytes(struct input *input)
{
    uint32_t kind = input_byte(input);
    size_t power = (size_t)1 << kind % 23;
    if (kind < 64)
        return kind;
    if (kind < 160)
        return power + power * input_byte(input) / 256;
    size_t distance = input_byte(input);
    return distance < 128 ? power + distance
                          : power - (power < 256 - distance ? power : 256 - distance);
}

static inline size_t input_alignment(struct input *input)
{
    return (size_t)1 << input_byte(input) % 22;
}

/* Decides whether one more block of `bytes` may be live. */
static inline bool has_room(const struct reference *reference, size_t bytes)
{
    return reference->live_count < FUZZ_LIVE_MOST &&
           reference->live_bytes + bytes < FUZZ_LIVE_BYTES_MOST;
}

static inline void live_check(const struct live *live)
{
    CHECK_EQ(hak_malloc_usable_size(live->start), live->usable);
    block_check(live->start, live->usable, live->usable, live->seed);
}

static inline struct live live_remove(struct reference *reference, uint32_t index)
{
    struct live live = reference_remove(reference, index);
    live_check(&live);
    return live;
}

#endif
