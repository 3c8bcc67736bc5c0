/* SPDX-License-Identifier: MIT */
/* learn/site_gate.h - the evidence that the blocks of one call site outlive those of the others.
 *
 * Owns        struct site_gate: a bet against "no more of its blocks survive than of the others".
 * Argument    Two blocks of one size class, allocated one after the other at different sites, are a
 *             pair. Where both sites are alike, each is as likely as the other to be the one that
 *             survives alone, whatever the program does and however it changes: a fair coin. The
 *             expected capital of a gambler who bets a fixed fraction on the site at each pair then
 *             never grows, so the probability that it ever reaches `m` times its start is at most
 *             1/m (Ville). The gate opens when the mean capital of four gamblers, with small and
 *             large stakes, is so high that all gates of the process together open wrongly with a
 *             probability of at most HAK_GATE_ERROR: the n-th gate, in its k-th try, has the share
 *             1/(n(n+1)) * 1/(k(k+1)) of it. When almost all capital is lost, a new try begins: the
 *             site may have changed.
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
