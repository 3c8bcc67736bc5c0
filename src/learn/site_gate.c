/* SPDX-License-Identifier: MIT */
#include "learn/site_gate.h"

/* Below this a try is given up. */
#define RUINED 0.01
/* The most that a float should hold. */
#define WEALTH_MOST 1e30f

static const float stakes[HAK_GATE_STAKES] = {0.1f, 0.3f, 0.6f, 0.9f};

static void begin_try(struct site_gate *gate)
{
    for (uint32_t i = 0; i < HAK_GATE_STAKES; i++)
        gate->wealth[i] = 1;
    if (gate->tries < UINT16_MAX)
        gate->tries++;
}

void hak_gate_begin(struct site_gate *gate, uint32_t order)
{
    gate->order = (uint16_t)(order < UINT16_MAX ? order : UINT16_MAX);
    gate->tries = 0;
    begin_try(gate);
}

void hak_gate_bet(struct site_gate *gate, int outcome)
{
    for (uint32_t i = 0; i < HAK_GATE_STAKES; i++) {
        float next = gate->wealth[i] * (1 + stakes[i] * (float)outcome);
        gate->wealth[i] = next < WEALTH_MOST ? next : WEALTH_MOST;
    }
    if (hak_gate_wealth(gate) < RUINED)
        begin_try(gate);
}

double hak_gate_wealth(const struct site_gate *gate)
{
    double sum = 0;
    for (uint32_t i = 0; i < HAK_GATE_STAKES; i++)
        sum += (double)gate->wealth[i];
    return sum / HAK_GATE_STAKES;
}

double hak_gate_bound(const struct site_gate *gate)
{
    double order = gate->order, tries = gate->tries;
    return order * (order + 1) * tries * (tries + 1) / HAK_GATE_ERROR;
}
