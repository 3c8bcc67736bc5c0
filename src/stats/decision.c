/* SPDX-License-Identifier: MIT */
#include "stats/decision.h"

struct decision_ring hak_decisions;

static const struct {
    const char *name;
    const char *unit;
} kinds[DECISION_COUNT] = {{"", ""},
#define X(name, unit, meaning) {#name, unit},
                           HAK_DECISION_TABLE(X)
#undef X
};

void hak_decisions_copy(struct decision to[HAK_DECISIONS_KEPT])
{
    uint64_t count = hak_load_relaxed(&hak_decisions.count);
    for (uint64_t i = 0; i < HAK_DECISIONS_KEPT; i++) {
        uint64_t at = (count - 1 - i) % HAK_DECISIONS_KEPT;
        to[i].when_ms = hak_load_relaxed(&hak_decisions.slots[at].when_ms);
        to[i].what = hak_load_relaxed(&hak_decisions.slots[at].what);
    }
}

const char *hak_decision_name(enum decision_kind kind)
{
    return kind < DECISION_COUNT ? kinds[kind].name : "";
}

const char *hak_decision_unit(enum decision_kind kind)
{
    return kind < DECISION_COUNT ? kinds[kind].unit : "";
}
