/* SPDX-License-Identifier: MIT */
/* base/utf8.h - which bytes are characters of UTF-8.
 *
 * Owns        nothing.
 * Invariants  reads no byte behind the text's 0.
 * Tests       tests/unit/base/utf8_test.c
 */
#ifndef HAK_BASE_UTF8_H
#define HAK_BASE_UTF8_H

#include "base/compiler.h"

/* The bytes of a character that begins with this one; 0: none does. */
HAK_INLINE size_t hak_utf8_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Forms that are too long, surrogates, and what is beyond Unicode. */
HAK_INLINE bool hak_utf8_is_excluded(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0:
        return second < 0xa0;
    case 0xed:
        return second > 0x9f;
    case 0xf0:
        return second < 0x90;
    case 0xf4:
        return second > 0x8f;
    default:
        return false;
    }
}

/* The bytes of the text's first character; 0: it does not begin with one. */
HAK_INLINE size_t hak_utf8_bytes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t bytes = hak_utf8_length(*at);
    for (size_t i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return bytes > 1 && hak_utf8_is_excluded(at[0], at[1]) ? 0 : bytes;
}

/* Writes '?' over each byte of the text that belongs to no character. */
HAK_INLINE void hak_utf8_mend(char *text)
{
    while (*text != '\0') {
        size_t bytes = hak_utf8_bytes(text);
        if (bytes == 0)
            *text = '?';
        text += bytes == 0 ? 1 : bytes;
    }
}

#endif
