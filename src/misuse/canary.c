/* SPDX-License-Identifier: MIT */
#include "misuse/canary.h"

#include "base/bits.h"
#include "base/check.h"
#include "misuse/harden.h"
#include "misuse/mark.h"

#include <string.h>

#define WORD_BYTES sizeof(uint64_t)

hak_static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bytes are told by shifts of words");
hak_static_assert(HAK_CANARY_BYTES_LEAST >= WORD_BYTES && HAK_SEAL_LOOK_BYTES == 2 * WORD_BYTES,
                  "a canary has a word at least, the end of a block two");

static size_t canary_bytes(size_t bytes, size_t capacity)
{
    hak_assert(capacity - bytes >= HAK_CANARY_BYTES_LEAST);
    return hak_least(capacity - bytes, HAK_CANARY_BYTES_MOST);
}

/* The canary is the same 8 bytes over and over: a word of it that begins at byte `at`. */
static uint64_t canary_word(uint64_t canary, size_t at)
{
    size_t shift = at % WORD_BYTES * 8;
    return canary >> shift | canary << (64 - shift) % 64;
}

void hak_canary_write(char *block, size_t bytes, size_t capacity)
{
    uint64_t canary = hak_canary_of(block);
    size_t last = canary_bytes(bytes, capacity) - WORD_BYTES;
    for (size_t at = 0; at < last; at += WORD_BYTES)
        memcpy(block + bytes + at, &canary, WORD_BYTES);
    uint64_t word = canary_word(canary, last);
    memcpy(block + bytes + last, &word, WORD_BYTES);
}

static uint64_t word_at(const char *from)
{
    uint64_t word;
    memcpy(&word, from, WORD_BYTES);
    return word;
}

bool hak_canary_is_whole(const char *block, size_t bytes, size_t capacity)
{
    uint64_t canary = hak_canary_of(block);
    size_t last = canary_bytes(bytes, capacity) - WORD_BYTES;
    uint64_t wrong = word_at(block + bytes + last) ^ canary_word(canary, last);
    for (size_t at = 0; at < last; at += WORD_BYTES)
        wrong |= word_at(block + bytes + at) ^ canary;
    return wrong == 0;
}

/* What every machine that hakmem runs on can read and combine at once. */
typedef uint64_t lanes __attribute__((vector_size(16), aligned(1), may_alias));

#define LANES_PER_STEP 8
#define STEP_BYTES (LANES_PER_STEP * sizeof(lanes))

bool hak_canary_is_zero(const char *start, size_t bytes)
{
    size_t at = 0;
    for (; at + STEP_BYTES <= bytes; at += STEP_BYTES) {
        const lanes *step = (const lanes *)(const void *)(start + at);
        lanes found =
            (step[0] | step[1] | step[2] | step[3]) | (step[4] | step[5] | step[6] | step[7]);
        if ((found[0] | found[1]) != 0)
            return false;
    }
    lanes found = {0, 0};
    for (; at + sizeof(lanes) <= bytes; at += sizeof(lanes))
        found |= *(const lanes *)(const void *)(start + at);
    unsigned char rest = 0;
    for (; at < bytes; at++)
        rest |= (unsigned char)start[at];
    return (found[0] | found[1] | rest) == 0;
}

/* The bits of the word at byte `at` that belong to byte `from` or one behind it. */
static uint64_t bits_from(size_t from, size_t at)
{
    if (from <= at)
        return ~0ull;
    return from - at >= WORD_BYTES ? 0 : ~0ull << (from - at) * 8;
}

/* The bits of the word at `at` of a live block that are known and differ from what was found. */
static uint64_t wrong_bits(uint64_t found, size_t at, size_t bytes, uint64_t canary)
{
    uint64_t behind = bits_from(bytes + HAK_CANARY_BYTES_MOST, at);
    uint64_t wanted = canary_word(canary, at - bytes) & ~behind;
    uint64_t known = bits_from(bytes, at) & (hak_harden_has(HARDEN_ZERO) ? ~0ull : ~behind);
    return (found ^ wanted) & known;
}

struct pair {
    uint64_t words[2];
};

typedef uint64_t any_word __attribute__((may_alias));

HAK_RACY static struct pair pair_at(const char *from)
{
    const volatile any_word *words = (const volatile any_word *)(const void *)from;
    return (struct pair){{words[0], words[1]}};
}

bool hak_canary_end_is_whole(const char *block, size_t capacity, enum canary_fresh fresh)
{
    _Atomic uint64_t *at_mark = hak_mark_at(block);
    /* acquire: partner is the release of whoever wrote the bytes that belong to the mark */
    uint64_t word = hak_load_acquire(at_mark);
    struct mark mark = hak_mark_unpack(word);
    bool is_zero = (mark.state == MARK_NONE && fresh == CANARY_FRESH_ZERO) ||
                   (mark.state == MARK_CLEARED && hak_harden_has(HARDEN_ZERO));
    if (!is_zero && mark.state != MARK_LIVE)
        return true; /* nobody can tell */
    size_t at = capacity - HAK_SEAL_LOOK_BYTES;
    struct pair end = pair_at(block + at);
    uint64_t wrong = end.words[0] | end.words[1];
    if (!is_zero) {
        uint64_t canary = hak_canary_of(block);
        wrong = wrong_bits(end.words[0], at, mark.bytes, canary) |
                wrong_bits(end.words[1], at + WORD_BYTES, mark.bytes, canary);
    }
    return wrong == 0 || !hak_mark_is_still(at_mark, word);
}
