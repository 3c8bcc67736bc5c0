/* SPDX-License-Identifier: MIT */
#include "learn/effect_line.h"

#include "base/bits.h"
#include "base/float_state.h"
#include "learn/line_reader.h"

#include <string.h>

#define SUM_MOST UINT64_C(1000000000000)

static uint64_t read_sum(struct line_reader *reader, uint64_t most)
{
    hak_line_read_word(reader, " ");
    return hak_line_read_number(reader, 10, most);
}

size_t hak_effect_line_read(struct effect_line *line, const char *text, size_t bytes)
{
    struct line_reader reader = {text, text + hak_least(bytes, HAK_EFFECT_LINE_BYTES), true};
    hak_line_read_word(&reader, "effect ");
    line->block_bytes = (uint32_t)hak_line_read_number(&reader, 10, HAK_LEARNED_BLOCK_BYTES_MOST);
    for (int i = 0; i < 2; i++) {
        uint64_t pages = read_sum(&reader, SUM_MOST);
        line->effect.pages[i] = (double)pages / 1000;
        line->effect.used[i] = (double)read_sum(&reader, pages) / 1000;
    }
    hak_line_read_word(&reader, "\n");
    if (reader.is_right)
        return (size_t)(reader.at - text);
    memset(line, 0, sizeof *line);
    return 0;
}

static HAK_NOINLINE void write_sum(struct text *text, double sum)
{
    hak_text_add(text, " ");
    hak_text_add_number(text, hak_least((uint64_t)(sum * 1000 + 0.5), SUM_MOST), 10);
}

void hak_effect_line_write(struct text *text, const struct effect_line *line)
{
    hak_text_add(text, "effect ");
    hak_text_add_number(text, line->block_bytes, 10);
    struct float_state state = hak_float_begin();
    for (int i = 0; i < 2; i++) {
        write_sum(text, line->effect.pages[i]);
        write_sum(text, line->effect.used[i]);
    }
    hak_float_end(state);
    hak_text_add(text, "\n");
}
