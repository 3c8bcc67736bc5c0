/* SPDX-License-Identifier: MIT */
/* cli/view_sites.h - call sites as lines of a pane.
 *
 * Owns        nothing.
 * Invariants  one line a site; where there are none, one that says why and what switches the
 *             profile on.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAK_CLI_VIEW_SITES_H
#define HAK_CLI_VIEW_SITES_H

#include "pane.h"

/* A title and at most so many lines of the view's sites, which are those of the process. */
void view_add_sites(struct pane *pane, int pid, int most);

#endif
