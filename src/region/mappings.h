/* SPDX-License-Identifier: MIT */
/* region/mappings.h - how many mappings hakmem adds to the process.
 *
 * Owns        an upper bound on what divides the window: pages that were moved, advice on huge
 *             pages, guards. A process has vm.max_map_count of them for itself, its threads and
 *             libraries; hakmem takes `mapping_percent` of these at most.
 * Invariants  counted before it is compared, so that threads cannot pass the bound together. Advice
 *             on a superslab counts two, permanently: the kernel does not join mappings with
 *             different advice. Beyond the bound, hakmem does without: pages are copied, and no
 *             advice on huge pages is given. Purging never divides a mapping.
 * Threads     any; atomic counts.
 * Tests       tests/unit/region/mappings_test.c, tests/unit/span/span_move_test.c
 */
#ifndef HAK_REGION_MAPPINGS_H
#define HAK_REGION_MAPPINGS_H

#include "base/compiler.h"

/* Counts one further mapping for a fenced block, of which there may be more: so many that a quarter
 * of those that the kernel allows is left for the program. From half of that on it is refused
 * increasingly often, by `chance`, a random number, so that some are always available. */
bool hak_mappings_take_for_fence(uint64_t chance);

/* Counts `count` further mappings; false, and nothing changed: there is no room for them. */
bool hak_mappings_take(uint32_t count);
void hak_mappings_give(uint32_t count);

/* True when advice may be given to the superslab of `granule`: it was before, or there is room. */
bool hak_mappings_admit_advice(uint32_t granule);

/* Whether the kernel may have divided these granules into several mappings, by advice that was
 * given to some of their superslabs. Most such mappings end where superslabs do. */
bool hak_mappings_are_divided(uint32_t first, uint32_t granules);

/* Mappings counted now, and those that may be. */
uint32_t hak_mappings_count(void);
uint32_t hak_mappings_most(void);

#endif
