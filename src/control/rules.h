/* SPDX-License-Identifier: MIT */
/* control/rules.h - the rules of call sites, listed and changed from outside.
 *
 * Owns        nothing: the one place where a request reaches the rules.
 * Invariants  the answer is one line of text without its end.
 * Threads     one at a time, outside every heap and lock, signals blocked.
 * Tests       tests/preload/sites_preload.py
 */
#ifndef HAK_CONTROL_RULES_H
#define HAK_CONTROL_RULES_H

#include "base/text.h"
#include "os/request_file.h"

/* Writes the rules behind the request, a line each (learn/site_line.h), then what they change, a
 * line for each size class (learn/effect_line.h). */
bool hak_control_rules_list(const struct os_kept_fd *file, struct text *answer);

/* The rule of this line replaces what is known of its site: pinned, forbidden, or watched, which
 * takes either back. */
bool hak_control_rules_take(const char *words, struct text *answer);

#endif
