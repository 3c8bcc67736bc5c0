/* SPDX-License-Identifier: MIT */
#include "learn/keep_line.h"

void hak_keep_line_read(struct line_reader *reader, const char *word, struct keep_evidence *log)
{
    hak_line_read_word(reader, word);
    hak_line_read_word(reader, " ");
    log->choice = (uint32_t)hak_line_read_number(reader, 10, HAK_KEEP_CHOICES);
    hak_line_read_word(reader, " ");
    log->episodes = (uint32_t)hak_line_read_number(reader, 10, HAK_LEARNED_RUNS_MOST);
    hak_line_read_word(reader, " ");
    log->decay_ms = hak_line_read_number(reader, 10, HAK_LEARNED_COST_MOST);
    hak_line_read_word(reader, " ");
    log->fault_ms = hak_line_read_number(reader, 10, HAK_LEARNED_COST_MOST);
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++) {
        hak_line_read_word(reader, " ");
        log->costs[i] = hak_line_read_number(reader, 10, HAK_LEARNED_COST_MOST);
    }
    hak_line_read_word(reader, "\n");
}

void hak_keep_line_write(struct text *text, const char *word, const struct keep_evidence *log)
{
    hak_text_add(text, word);
    hak_text_add_bounded(text, log->choice, HAK_KEEP_CHOICES);
    hak_text_add_bounded(text, log->episodes, HAK_LEARNED_RUNS_MOST);
    hak_text_add_bounded(text, log->decay_ms, HAK_LEARNED_COST_MOST);
    hak_text_add_bounded(text, log->fault_ms, HAK_LEARNED_COST_MOST);
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++)
        hak_text_add_bounded(text, log->costs[i], HAK_LEARNED_COST_MOST);
    hak_text_add(text, "\n");
}
