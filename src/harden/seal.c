/* SPDX-License-Identifier: MIT */
#include "harden/seal.h"

#include "base/bits.h"
#include "harden/harden.h"
#include "harden/mark.h"

#include <string.h>

static size_t canary_bytes(size_t bytes, size_t capacity)
{
    return hak_least(capacity - bytes, HAK_CANARY_BYTES_MOST);
}

/* Byte `at` of the canary of a block. */
static unsigned char canary_byte(uint64_t canary, size_t at)
{
    return (unsigned char)(canary >> at % 8 * 8);
}

void hak_seal_write(char *block, size_t bytes, size_t capacity)
{
    uint64_t canary = hak_canary_of(block);
    size_t count = canary_bytes(bytes, capacity);
    for (size_t i = 0; i < count; i++)
        block[bytes + i] = (char)canary_byte(canary, i);
}

bool hak_seal_is_whole(const char *block, size_t bytes, size_t capacity)
{
    uint64_t canary = hak_canary_of(block);
    size_t count = canary_bytes(bytes, capacity);
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)block[bytes + i] != canary_byte(canary, i))
            return false;
    return true;
}

bool hak_seal_is_zero(const char *start, size_t bytes)
{
    size_t at = 0;
    for (; at + 64 <= bytes; at += 64) {
        uint64_t words[8];
        memcpy(words, start + at, sizeof words);
        if ((words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] |
             words[7]) != 0)
            return false;
    }
    for (; at < bytes; at++)
        if (start[at] != 0)
            return false;
    return true;
}

/* What byte `at` of a block must be; false: nobody can tell. */
static bool byte_is_known(struct mark mark, uint64_t canary, size_t at, enum seal_fresh fresh,
                          unsigned char *byte)
{
    *byte = 0;
    if (mark.state == MARK_NONE)
        return fresh == SEAL_FRESH_ZERO;
    if (mark.state == MARK_CLEARED)
        return hak_harden_has(HARDEN_ZERO);
    if (mark.state != MARK_LIVE || at < mark.bytes)
        return false;
    if (at - mark.bytes < HAK_CANARY_BYTES_MOST) {
        *byte = canary_byte(canary, at - mark.bytes);
        return true;
    }
    return hak_harden_has(HARDEN_ZERO);
}

HAK_RACY static unsigned char byte_at(const char *block, size_t at)
{
    return *(const volatile unsigned char *)(block + at);
}

bool hak_seal_end_is_whole(const char *block, size_t capacity, enum seal_fresh fresh)
{
    _Atomic uint64_t *mark = hak_mark_at(block);
    /* acquire: partner is the release of whoever wrote the bytes that belong to the mark */
    uint64_t word = hak_load_acquire(mark);
    struct mark unpacked = hak_mark_unpack(word);
    uint64_t canary = hak_canary_of(block);
    for (size_t at = capacity - HAK_SEAL_LOOK_BYTES; at < capacity; at++) {
        unsigned char wanted;
        if (!byte_is_known(unpacked, canary, at, fresh, &wanted))
            continue;
        if (byte_at(block, at) != wanted)
            return !hak_mark_is_still(mark, word);
    }
    return true;
}
