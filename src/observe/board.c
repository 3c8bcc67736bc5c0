/* SPDX-License-Identifier: MIT */
#include "observe/board.h"

#include <string.h>

#define READ_TRIES 100

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
    return hash;
}

uint64_t hak_board_layout(void)
{
    uint64_t hash = 0xcbf29ce484222325ull ^ sizeof(struct board);
    hash = mix(hash, HAK_PROJECT_VERSION);
#define X(name, meaning) hash = mix(hash, #name ",");
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    HAK_STAT_TABLE(X)
    HAK_SNAPSHOT_EXACT_TABLE(X)
#undef X
#define X(rank, name, meaning) hash = mix(hash, #name ",");
    HAK_LOCK_TABLE(X)
#undef X
#define X(name, initial, least, most, meaning) hash = mix(hash, #name ",");
    HAK_POLICY_TABLE(X)
#undef X
#define X(name, unit, meaning) hash = mix(hash, #name ",");
    HAK_DECISION_TABLE(X)
#undef X
    return hash;
}

void hak_board_publish(struct board *board, const struct board_page *page)
{
    uint64_t next = hak_load_relaxed(&board->published) + 1;
    const char *from = (const char *)page;
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < HAK_BOARD_PAGE_WORDS; i++) {
        uint64_t word;
        memcpy(&word, from + i * sizeof word, sizeof word);
        hak_store_relaxed(&board->pages[next % 2][i], word);
    }
    /* release: partner is the acquire in hak_board_read */
    hak_store_release(&board->published, next);
}

bool hak_board_read(const struct board *board, struct board_page *page)
{
    char *to = (char *)page;
    for (int tries = 0; tries < READ_TRIES; tries++) {
        /* acquire: partner is the release in hak_board_publish */
        uint64_t published = hak_load_acquire(&board->published);
        if (published == 0)
            return false;
        for (size_t i = 0; i < HAK_BOARD_PAGE_WORDS; i++) {
            uint64_t word = hak_load_relaxed(&board->pages[published % 2][i]);
            memcpy(to + i * sizeof word, &word, sizeof word);
        }
        atomic_thread_fence(memory_order_acquire);
        if (hak_load_relaxed(&board->published) == published)
            return true;
    }
    return false;
}
