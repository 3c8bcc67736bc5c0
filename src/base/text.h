/* SPDX-License-Identifier: MIT */
/* base/text.h - building lines without allocating.
 *
 * Owns        struct text: a buffer of the caller's that is filled piece by piece.
 * Invariants  what does not fit is cut; used never passes bytes.
 * Tests       tests/unit/base/text_test.c
 */
#ifndef HAK_BASE_TEXT_H
#define HAK_BASE_TEXT_H

#include "base/compiler.h"

struct text {
    char *start;
    size_t bytes;
    size_t used;
};

HAK_INLINE void hak_text_add_bytes(struct text *text, const char *piece, size_t bytes)
{
    for (size_t i = 0; i < bytes && text->used < text->bytes; i++)
        text->start[text->used++] = piece[i];
}

HAK_INLINE void hak_text_add(struct text *text, const char *piece)
{
    for (; *piece != '\0' && text->used < text->bytes; piece++)
        text->start[text->used++] = *piece;
}

/* Adds `value` in base 10 or 16. */
HAK_INLINE void hak_text_add_number(struct text *text, uint64_t value, uint32_t base)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    hak_text_add_bytes(text, digits + at, sizeof digits - at);
}

#endif
