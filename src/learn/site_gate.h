/* SPDX-License-Identifier: MIT */
/* learn/site_gate.h - the evidence that the blocks of one call site outlive those of the others.
 *
 * Owns        struct site_gate: a bet against "no more of its blocks survive than of the others".
 * Argument    Two blocks of one size class, allocated one after the other at different sites, are a
 *             pair. Where both sites are alike, each is as likely as the other to be the one that
 *             survives alone, whatever the program does and however it changes: a fair coin. A
 *             gambler who stakes a fixed part of his money on the site at each pair then owns no
 *             more on average than at the beginning, so he ever becomes `m` times as rich with a
 *             chance of at most 1/m (Ville). The gate opens when the mean of four gamblers, of
 *             small and large stakes, is so rich that all gates of the process together open
 *             wrongly with a chance of HAK_GATE_ERROR at most: the n-th gate, in its k-th try, has
 *             the share 1/(n(n+1)) * 1/(k(k+1)) of it. A gambler who has lost almost everything
 *             begins a new try: the site may be another one by now.
 * Threads     one at a time.
 * Tests       tests/unit/learn/site_gate_test.c
 */
#ifndef HAK_LEARN_SITE_GATE_H
#define HAK_LEARN_SITE_GATE_H

#include "base/compiler.h"

/* The chance that any gate of a process opens although all sites are alike. */
#define HAK_GATE_ERROR 0.05
#define HAK_GATE_STAKES 4u

struct site_gate {
    float wealth[HAK_GATE_STAKES];
    uint16_t order; /* the how-manieth gate of the process: 1, 2 ... */
    uint16_t tries; /* 1, 2 ... */
};

/* The gate number `order` of the process begins. */
void hak_gate_begin(struct site_gate *gate, uint32_t order);

/* Of a pair the site's block survived alone (1) or the other one (-1). */
void hak_gate_bet(struct site_gate *gate, int outcome);

/* How rich the gamblers are together, and how rich they must be. */
double hak_gate_wealth(const struct site_gate *gate);
double hak_gate_bound(const struct site_gate *gate);

HAK_INLINE bool hak_gate_is_open(const struct site_gate *gate)
{
    return hak_gate_wealth(gate) >= hak_gate_bound(gate);
}

#endif
