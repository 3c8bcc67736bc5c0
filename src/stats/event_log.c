/* SPDX-License-Identifier: MIT */
#include "stats/event_log.h"

struct event_ring hak_event_ring;

static const struct {
    const char *name;
    const char *unit;
} kinds[EVENT_COUNT] = {{"", ""},
#define X(name, unit, meaning) {#name, unit},
                        HAK_EVENT_TABLE(X)
#undef X
};

void hak_events_copy(struct event to[HAK_EVENTS_KEPT])
{
    uint64_t count = hak_load_relaxed(&hak_event_ring.count);
    for (uint64_t i = 0; i < HAK_EVENTS_KEPT; i++) {
        uint64_t at = (count - 1 - i) % HAK_EVENTS_KEPT;
        to[i].when_ms = hak_load_relaxed(&hak_event_ring.slots[at].when_ms);
        to[i].what = hak_load_relaxed(&hak_event_ring.slots[at].what);
    }
}

const char *hak_event_name(enum event_kind kind)
{
    return kind < EVENT_COUNT ? kinds[kind].name : "";
}

const char *hak_event_unit(enum event_kind kind)
{
    return kind < EVENT_COUNT ? kinds[kind].unit : "";
}
