/* SPDX-License-Identifier: MIT */
#include "class_choice.h"

#include <string.h>

#define LARGEST_BYTES 131072u
#define NOT_REACHED UINT64_MAX

/* Sums of byte-milliseconds of all blocks, each as long as the largest, must not overflow. */
static void scale(struct size_spread *spread)
{
    for (;;) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++)
            sum += spread->cells[i].block_ms;
        if (sum <= UINT64_MAX / 8 / LARGEST_BYTES)
            return;
        spread->watched_ms = (spread->watched_ms + 1) / 2;
        for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++) {
            spread->cells[i].block_ms /= 2;
            spread->cells[i].slack_ms /= 2;
        }
    }
}

static void take(struct class_choice *choice, const struct size_spread *spread)
{
    memset(choice, 0, sizeof *choice);
    choice->watched_ms = spread->watched_ms;
    for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++) {
        const struct size_cell *cell = &spread->cells[i];
        uint32_t need = hak_size_cell_need(i), at = choice->size_count;
        if (need == 0 || (cell->block_ms == 0 && need != LARGEST_BYTES))
            continue;
        choice->needs[at] = need;
        choice->blocks[at] = cell->block_ms;
        choice->slacks[at] = cell->slack_ms;
        choice->requested += need * cell->block_ms - cell->slack_ms;
        choice->size_count++;
    }
}

/* One class more: `best` is what serves the sizes up to each, with that size as a class. */
static void add_class(struct class_choice *choice, uint32_t k, uint64_t *best)
{
    uint64_t better[HAK_SIZE_CELLS];
    for (uint32_t last = 0; last < choice->size_count; last++) {
        uint64_t share = hak_size_share_bytes(choice->needs[last]);
        uint64_t served = choice->blocks[last];
        better[last] = NOT_REACHED;
        for (uint32_t before = last; before-- > 0; served += choice->blocks[before]) {
            if (best[before] == NOT_REACHED || best[before] + share * served >= better[last])
                continue;
            better[last] = best[before] + share * served;
            choice->previous[k][last] = (uint16_t)before;
        }
    }
    memcpy(best, better, choice->size_count * sizeof *best);
}

void class_choice_find(struct class_choice *choice, struct size_spread *spread,
                       uint32_t class_count)
{
    uint64_t best[HAK_SIZE_CELLS] = {0}, served = 0;
    scale(spread);
    take(choice, spread);
    for (uint32_t i = 0; i < choice->size_count; i++) {
        served += choice->blocks[i];
        best[i] = served * hak_size_share_bytes(choice->needs[i]);
    }
    uint32_t last = choice->size_count - 1;
    choice->costs[0] = NOT_REACHED;
    choice->costs[1] = best[last];
    for (uint32_t k = 2; k <= class_count; k++) {
        add_class(choice, k, best);
        choice->costs[k] = best[last] < choice->costs[k - 1] ? best[last] : choice->costs[k - 1];
    }
}

uint32_t class_choice_table(const struct class_choice *choice, uint32_t class_count,
                            uint32_t *table)
{
    uint32_t count = class_count, at = choice->size_count - 1;
    while (choice->costs[count - 1] == choice->costs[count])
        count--;
    for (uint32_t k = count; k > 0; k--) {
        table[k - 1] = choice->needs[at];
        at = choice->previous[k][at];
    }
    return count;
}

uint64_t class_choice_mean(const struct class_choice *choice, uint64_t byte_ms)
{
    return (byte_ms + choice->watched_ms / 2) / choice->watched_ms;
}
