/* SPDX-License-Identifier: MIT */
/* profile/site_rules.h - the rules of this process's call sites: learned, named, acting.
 *
 * Owns        the process's site log (learn/site_log.h); the module and offset of each site; the
 *             imported rules whose site has not been seen yet; what is diverted (heap/route.h).
 * Invariants  without learn=sites nothing is sampled for it, and nothing is diverted. An imported
 *             rule is applied at the first sample of its site, since only then is its code known to
 *             be loaded; that of a caller makes its wrappers mixed. A site is split only where the
 *             stack always shows its caller at the same distance. In hardened mode, with
 *             mode=research, and in a child of fork that was made in the middle of a change nothing
 *             is diverted. In other children everything continues.
 * Threads     any. One at a time is inside; a sample that arrives meanwhile is dropped, regardless
 *             of its site. The end of a sample never waits.
 * Tests       tests/unit/profile/site_rules_test.c, tests/preload/sites_preload.py
 */
#ifndef HAK_PROFILE_SITE_RULES_H
#define HAK_PROFILE_SITE_RULES_H

#include "learn/effect_line.h"
#include "learn/site_line.h"

/* Rules that have not met their site. */
#define HAK_RULES_BROUGHT_MOST 64u

/* A block of an ordinary class was sampled that stands for `weight`; frames and stack pointers as
 * hak_os_unwind_stacks has them, at least one. Returns a ticket; 0: it is not followed. Outside
 * every lock. */
uint64_t hak_rules_begin(const uintptr_t *frames, const uintptr_t *stacks, uint32_t frame_count,
                         uint32_t class_index, uint64_t weight);

/* It was freed. */
void hak_rules_end(uint64_t ticket, uint64_t weight);

/* A rule from a file or from the user: it replaces what is known of the site. False: there is no
 * room, or another thread is inside. */
bool hak_rules_bring(const struct site_line *line);

/* The rules, by `index` from 0 on: of sites that are more than watched, then those that have not
 * met their site. False: there are no more. */
bool hak_rules_line(uint32_t index, struct site_line *line);

/* What rules change, by `index` from 0 on: of each size class with learned rules that act, measured
 * or not yet. False: there are no more. */
bool hak_rules_effect(uint32_t index, struct effect_line *line);

#endif
