/* SPDX-License-Identifier: MIT */
#include "view_learned.h"

#include "amount.h"
#include "elo.h"

#include <inttypes.h>

static bool has_learned(const struct target *now)
{
    const struct snapshot *of = &now->page.snapshot;
    return of->pool_keep_ms != of->policy_decay_ms || of->span_keep_ms != of->policy_decay_ms ||
           of->rules_begun != 0 || now->page.matches.mode != MATCHES_OFF;
}

static void add_keep_times(struct pane *pane, const struct snapshot *of)
{
    if (of->pool_keep_ms != of->policy_decay_ms || of->span_keep_ms != of->policy_decay_ms)
        pane_add(pane,
                 "  free memory is kept for %" PRIu64 "ms in slabs, %" PRIu64 "ms in large blocks",
                 of->pool_keep_ms, of->span_keep_ms);
}

static void add_rules(struct pane *pane, const struct snapshot *of)
{
    if (of->rules_begun != 0)
        pane_add(pane,
                 "  call sites diverted: %" PRIu64 " now, %" PRIu64 " begun, %" PRIu64
                 " ended; %s live in slabs of %s",
                 of->diverted_sites, of->rules_begun, of->rules_ended,
                 bytes_of(of->long_live_bytes).text, bytes_of(of->long_slab_bytes).text);
}

static void add_contest(struct pane *pane, const struct match_board *board, uint32_t knob)
{
    const struct contest *contest = &board->contests[knob];
    pane_add(pane,
             "  %s %" PRIu64 ", usually %" PRIu64 ": %s, %" PRIu32 " matches, %" PRIu32 " void",
             knob_name(knob), knob_value(knob, contest->holds), knob_value(knob, 0),
             contest_word(contest->state), contest->matches, contest->voids);
}

void view_add_learned(struct pane *pane, const struct target *now)
{
    if (!has_learned(now))
        return;
    pane_add_title(pane, "What is learned");
    add_keep_times(pane, &now->page.snapshot);
    add_rules(pane, &now->page.snapshot);
    for (uint32_t i = 0; now->page.matches.mode != MATCHES_OFF && i < KNOB_COUNT; i++)
        add_contest(pane, &now->page.matches, i);
}
