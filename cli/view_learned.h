/* SPDX-License-Identifier: MIT */
/* cli/view_learned.h - what a process has learned, in `hakmem top`. */
#ifndef HAK_CLI_VIEW_LEARNED_H
#define HAK_CLI_VIEW_LEARNED_H

#include "pane.h"

/* Adds keep times, rules of call sites and matches; nothing where nothing was learned. */
void view_add_learned(struct pane *pane, const struct target *now);

#endif
