/* SPDX-License-Identifier: MIT */
/* profile/rule_effect.h - what the rules of this process's call sites change.
 *
 * Owns        which windows of volume are held back (learn/holdback.h), and the pages of ordinary
 *             slabs that are observed.
 * Invariants  nothing is observed while no learned rule acts. Rules of the user are not held back.
 *             A page is one of the smallest that the kernel may have; blocks on it are in use as in
 *             slab/slab.h. A slab that was given back counts as free: its record tells, by its
 *             generation, and is never another kind of memory.
 * Threads     one at a time.
 * Tests       tests/unit/profile/rule_effect_test.c, tests/preload/sites_preload.py
 */
#ifndef HAK_PROFILE_RULE_EFFECT_H
#define HAK_PROFILE_RULE_EFFECT_H

#include "learn/site_log.h"

/* Learned rules of these classes act, a bit each. */
void hak_rule_effect_of(uint64_t classes);
uint64_t hak_rule_effect_classes(void);

/* At a sample: holds windows back, observes pages, and tells the log of those that are done. */
void hak_rule_effect_look(struct site_log *log, uint64_t volume, uint64_t generation_bytes);

#endif
