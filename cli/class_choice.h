/* SPDX-License-Identifier: MIT */
/* cli/class_choice.h - the size classes that waste least for a program.
 *
 * Owns        struct class_choice: for a spread of sizes (learn/size_spread.h) the best table of
 *             each number of classes.
 * Invariants  exact, by dynamic programming: the best table of k classes whose largest is s ends
 *             with the best table of k - 1 classes whose largest is some smaller size. Sizes of
 *             blocks are needs of cells, and the largest class is always 128 KiB, so that a table
 *             serves every request. A block costs its share of its slab, whatever fits no block
 *             included. What a table wastes is what its blocks cost less what was asked for.
 * Threads     one.
 * Tests       tests/cli/classes_cli.sh
 */
#ifndef HAK_CLI_CLASS_CHOICE_H
#define HAK_CLI_CLASS_CHOICE_H

#include "learn/size_spread.h"

/* Tags have room for so many classes in one partition (slab/size_class.h). */
#define CHOICE_CLASSES_MOST 126u

struct class_choice {
    uint32_t size_count;             /* sizes in use, and 128 KiB */
    uint32_t needs[HAK_SIZE_CELLS];  /* ascending */
    uint64_t blocks[HAK_SIZE_CELLS]; /* block-milliseconds */
    uint64_t slacks[HAK_SIZE_CELLS];
    uint64_t watched_ms;
    uint64_t requested; /* byte-milliseconds, as what follows */
    /* What the best table of at most [k] classes takes. */
    uint64_t costs[CHOICE_CLASSES_MOST + 1];
    uint16_t previous[CHOICE_CLASSES_MOST + 1][HAK_SIZE_CELLS];
};

/* Finds the best tables of up to `class_count` classes; the spread is bounded. */
void class_choice_find(struct class_choice *choice, struct size_spread *spread,
                       uint32_t class_count);

/* Writes the best table of at most `class_count` classes; returns how many it has. */
uint32_t class_choice_table(const struct class_choice *choice, uint32_t class_count,
                            uint32_t *table);

/* The mean over the time that was watched. */
uint64_t class_choice_mean(const struct class_choice *choice, uint64_t byte_ms);

#endif
