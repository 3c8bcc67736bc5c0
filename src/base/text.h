/* SPDX-License-Identifier: MIT */
/* base/text.h - building lines, and reading numbers, without allocating.
 *
 * Owns        struct text: a buffer of the caller's that is filled piece by piece.
 * Invariants  what does not fit is cut; used never passes bytes.
 * Tests       tests/unit/base/text_test.c
 */
#ifndef HAK_BASE_TEXT_H
#define HAK_BASE_TEXT_H

#include "base/bits.h"
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

/* Adds a space and the number, or `most` if that is less. */
HAK_INLINE void hak_text_add_bounded(struct text *text, uint64_t value, uint64_t most)
{
    hak_text_add(text, " ");
    hak_text_add_number(text, hak_least(value, most), 10);
}

/* Adds value / 10^digits as a decimal fraction: 1234 with 2 digits is 12.34. */
HAK_INLINE void hak_text_add_fraction(struct text *text, uint64_t value, uint32_t digits)
{
    uint64_t scale = 1;
    for (uint32_t i = 0; i < digits; i++)
        scale *= 10;
    hak_text_add_number(text, value / scale, 10);
    hak_text_add(text, ".");
    for (uint64_t rest = value % scale; scale > 1; rest %= scale) {
        scale /= 10;
        hak_text_add_number(text, rest / scale, 10);
    }
}

/* Adds a size with its unit: 512 B, 1.5 KiB, 16.0 EiB. */
HAK_INLINE void hak_text_add_size(struct text *text, uint64_t bytes)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    uint32_t unit = 0;
    for (uint64_t rest = bytes; rest >= 1024 && unit < 6; rest >>= 10)
        unit++;
    if (unit == 0) {
        hak_text_add_number(text, bytes, 10);
    } else {
        uint64_t part = bytes & ((UINT64_C(1) << (10 * unit)) - 1);
        uint64_t tenths = (part * 10 + (UINT64_C(1) << (10 * unit - 1))) >> (10 * unit);
        hak_text_add_fraction(text, (bytes >> (10 * unit)) * 10 + tenths, 1);
    }
    hak_text_add(text, units[unit]);
}

/* Spaces up to a column. */
HAK_INLINE void hak_text_pad(struct text *text, size_t column)
{
    while (text->used < column && text->used < text->bytes)
        text->start[text->used++] = ' ';
}

/* Moves what stands from `from` on to the right, so that it ends at a column. */
HAK_INLINE void hak_text_right(struct text *text, size_t from, size_t column)
{
    size_t end = text->used;
    hak_text_pad(text, column);
    for (size_t shift = text->used - end; shift != 0 && end > from; end--) {
        text->start[end - 1 + shift] = text->start[end - 1];
        text->start[end - 1] = ' ';
    }
}

/* The number that a text begins with, in base 10 or 16. */
HAK_INLINE uint64_t hak_text_number(const char *text, uint32_t base)
{
    uint64_t number = 0;
    for (;; text++) {
        bool is_letter = *text >= 'a' && *text <= 'f';
        uint32_t digit = (uint32_t)(is_letter ? *text - 'a' + 10 : *text - '0');
        if (digit >= (is_letter ? base : 10))
            return number;
        number = number * base + digit;
    }
}

#endif
