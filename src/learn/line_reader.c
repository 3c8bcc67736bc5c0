/* SPDX-License-Identifier: MIT */
#include "learn/line_reader.h"

#include <string.h>

void hak_line_read_word(struct line_reader *reader, const char *word)
{
    size_t bytes = strlen(word);
    if ((size_t)(reader->end - reader->at) < bytes || memcmp(reader->at, word, bytes) != 0)
        reader->is_right = false;
    else
        reader->at += bytes;
}

uint32_t hak_line_digit(const struct line_reader *reader, uint32_t base)
{
    const char *digits = "0123456789abcdef";
    if (reader->at == reader->end || *reader->at == '\0')
        return base;
    const char *digit = strchr(digits, *reader->at);
    return digit == NULL ? base : (uint32_t)(digit - digits);
}

uint64_t hak_line_read_number(struct line_reader *reader, uint32_t base, uint64_t most)
{
    const char *start = reader->at;
    uint64_t number = 0;
    uint32_t digit;
    while ((digit = hak_line_digit(reader, base)) < base && number <= (UINT64_MAX - digit) / base) {
        number = number * base + digit;
        reader->at++;
    }
    bool has_zeros = reader->at - start > 1 && *start == '0';
    if (reader->at == start || has_zeros || number > most)
        reader->is_right = false;
    return number;
}
