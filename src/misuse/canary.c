/* SPDX-License-Identifier: MIT */
#include "misuse/canary.h"

#include "base/bits.h"
#include "base/check.h"
#include "misuse/harden.h"
#include "misuse/mark.h"

#include <string.h>

hak_static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bytes are told by shifts of words");
hak_static_assert(HAK_CANARY_BYTES_LEAST >= HAK_CANARY_WORD_BYTES &&
                      HAK_SEAL_LOOK_BYTES % (2 * HAK_CANARY_WORD_BYTES) == 0,
                  "a canary has a word at least, the end of a block is read by two");
hak_static_assert(HAK_SEAL_LOOK_BYTES <= HAK_MARK_BLOCK_BYTES_LEAST, "no block is shorter");

/* A word that every supported machine reads and combines at once. */
typedef uint64_t lanes __attribute__((vector_size(16), aligned(1), may_alias));

#define LANES_PER_STEP 4
#define STEP_BYTES (LANES_PER_STEP * sizeof(lanes))

bool hak_canary_is_zero(const char *start, size_t bytes)
{
    const lanes *lane = (const lanes *)(const void *)start;
    const lanes *steps_end = lane + bytes / STEP_BYTES * LANES_PER_STEP;
    const lanes *end = lane + bytes / sizeof(lanes);
    lanes found = {0, 0};
    for (; lane != steps_end; lane += LANES_PER_STEP) {
        found = (lane[0] | lane[1]) | (lane[2] | lane[3]);
        if ((found[0] | found[1]) != 0)
            return false;
    }
    for (; lane != end; lane++)
        found |= *lane;
    unsigned char rest = 0;
    for (size_t at = bytes / sizeof(lanes) * sizeof(lanes); at < bytes; at++)
        rest |= (unsigned char)start[at];
    return (found[0] | found[1] | rest) == 0;
}

/* The bits of the word at byte `at` that belong to byte `from` or one behind it. */
static uint64_t bits_from(size_t from, size_t at)
{
    if (from <= at)
        return ~0ull;
    return from - at >= HAK_CANARY_WORD_BYTES ? 0 : ~0ull << (from - at) * 8;
}

/* The bits of the word at `at` of a live block that are known and differ from what was found. */
static uint64_t wrong_bits(uint64_t found, size_t at, size_t bytes, uint64_t canary)
{
    uint64_t behind = bits_from(bytes + HAK_CANARY_BYTES_MOST, at);
    uint64_t wanted = hak_canary_word(canary, at - bytes) & ~behind;
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
    /* acquire: partner is the release of the mark after its bytes were written */
    uint64_t word = hak_load_acquire(at_mark);
    struct mark mark = hak_mark_unpack(word);
    bool is_zero = (mark.state == MARK_NONE && fresh == CANARY_FRESH_ZERO) ||
                   (mark.state == MARK_CLEARED && hak_harden_has(HARDEN_ZERO));
    if (!is_zero && mark.state != MARK_LIVE)
        return true; /* nobody can tell */
    uint64_t canary = hak_canary_of(block), wrong = 0;
    size_t looked_at = mark.state == MARK_CLEARED ? HAK_SEAL_LOOK_FREED_BYTES : HAK_SEAL_LOOK_BYTES;
    for (size_t at = capacity - looked_at; at < capacity; at += sizeof(struct pair)) {
        struct pair found = pair_at(block + at);
        if (is_zero)
            wrong |= found.words[0] | found.words[1];
        else
            wrong |= wrong_bits(found.words[0], at, mark.bytes, canary) |
                     wrong_bits(found.words[1], at + HAK_CANARY_WORD_BYTES, mark.bytes, canary);
    }
    return wrong == 0 || !hak_mark_is_still(at_mark, word);
}

typedef uint64_t loose_word __attribute__((may_alias, aligned(1)));

HAK_RACY static uint64_t word_at(const char *from)
{
    return *(const volatile loose_word *)(const void *)from;
}

bool hak_canary_is_whole_now(const char *block, size_t capacity)
{
    _Atomic uint64_t *at_mark = hak_mark_at(block);
    /* acquire: as above */
    uint64_t word = hak_load_acquire(at_mark);
    struct mark mark = hak_mark_unpack(word);
    if (mark.state != MARK_LIVE)
        return true;
    uint64_t canary = hak_canary_of(block), wrong = 0;
    const char *end = block + mark.bytes;
    size_t last = hak_canary_last(mark.bytes, capacity);
    for (size_t at = 0; at < last; at += HAK_CANARY_WORD_BYTES)
        wrong |= word_at(end + at) ^ canary;
    wrong |= word_at(end + last) ^ hak_canary_word(canary, last);
    return wrong == 0 || !hak_mark_is_still(at_mark, word);
}
