/* SPDX-License-Identifier: MIT */
/* learn/site_log.h - which call sites allocate long-lived blocks: sampled births, and a rule for
 * each site and size class.
 *
 * Owns        struct site_log: samples that wait for their verdict, in the order of their birth;
 *             the rules, found by their key; the last decisions.
 * Invariants  time is volume: bytes allocated since the log began. A sample is judged when two
 *             generations of it have passed since its birth: it survived, or it was freed by then.
 *             All are judged at the same age, so neither the phase of the program nor the order of
 *             frees favours a site. A sample that finds no room is dropped, regardless of its site.
 *             A verdict makes a pair with the verdict before it of the same class and another site
 *             (learn/site_gate.h). The same births, frees and facts lead to the same decisions.
 *
 *                 CANDIDATE -> SHADOW -> CANARY -> ACTIVE -> RETIRED -> CANDIDATE ...
 *
 *             CANDIDATE: two survivors were seen. SHADOW: the gate is open and half survived.
 *             CANARY: every second block is diverted. ACTIVE: all are. RETIRED: it stopped
 *             surviving or paying, and waits 2, 4, 8 ... generations. PINNED and FORBIDDEN are the
 *             user's. A site with some long-lived and mostly short-lived blocks, whose caller is
 *             known, is MIXED: from then on each caller is a separate site and may be MIXED, too.
 *             A full log forgets WATCHED sites that nothing recent, nor alive, refers to.
 * Threads     one at a time, but for hak_site_log_end: any, at any time. A verdict reads what it
 *             wrote by the ticket: acquire and release.
 * Tests       tests/unit/learn/site_log_test.c
 */
#ifndef HAK_LEARN_SITE_LOG_H
#define HAK_LEARN_SITE_LOG_H

#include "base/atomic.h"
#include "learn/holdback.h"
#include "learn/site_gate.h"

/* Size classes that have a twin for blocks that stay (slab/size_class.h). */
#define HAK_SITE_CLASSES 49u
/* What a request returns to, and two callers. */
#define HAK_SITE_FRAMES 3u
#define HAK_SITE_RULES_MOST 1024u
#define HAK_SITE_BIRTHS 2048u
#define HAK_SITE_DECISIONS 64u
/* So many generations long a rule that begins to act is not judged by what it saves. */
#define HAK_RULE_GRACE 8u
#define HAK_SITE_GENERATION_LEAST ((uint64_t)64 << 20)

#define HAK_RULE_STATE_TABLE(X)                                                                    \
    X(WATCHED, "watched")                                                                          \
    X(CANDIDATE, "candidate")                                                                      \
    X(SHADOW, "shadow")                                                                            \
    X(CANARY, "canary")                                                                            \
    X(ACTIVE, "active")                                                                            \
    X(RETIRED, "retired")                                                                          \
    X(MIXED, "mixed")                                                                              \
    X(PINNED, "pinned")                                                                            \
    X(FORBIDDEN, "forbidden")
enum rule_state {
#define X(name, word) RULE_##name,
    HAK_RULE_STATE_TABLE(X)
#undef X
        RULE_STATES
};

/* Of a request, or of a site, which has only the frames that distinguish it. */
struct site_key {
    uintptr_t frames[HAK_SITE_FRAMES]; /* return addresses, innermost first; 0: not known, or any */
    uint32_t class_index;
};

struct site_rule {
    struct site_key key;
    uint8_t state, retired_times; /* enum rule_state */
    uint16_t wait_generations; /* until a retired one is a candidate, or one that acts must pay */
    uint16_t wrapper;          /* the MIXED rule that this one is of a caller of; 0: none */
    bool has_caller;           /* the last sample's was known */
    bool is_free;              /* it is none; `wrapper`: the next that is free */
    struct site_gate gate;
    uint32_t judged, survivors;               /* samples */
    uint32_t recent_judged, recent_survivors; /* the same, halved with each generation */
    _Atomic int64_t kept_blocks;              /* estimate: survivors that are still alive */
};

struct site_birth {
    _Atomic uint64_t ticket; /* 0: free; else its number, twice, plus 1 once the block is freed */
    uint64_t volume, weight;
    uint32_t rule;
};

struct site_decision {
    uint64_t volume;
    uint32_t rule;
    uint8_t from, to; /* enum rule_state */
};

struct site_log {
    uint32_t rule_count;            /* rule 0 is none */
    uint32_t free_count, free_rule; /* how many of these are free; the first */
    uint32_t gate_count, decision_count;
    uint64_t first_birth, next_birth; /* numbers, from 1 on: those that wait are [first, next) */
    uint64_t generation_end;          /* volume */
    struct {
        uint32_t rule; /* of the last verdict; 0: none */
        bool is_survivor;
        uint64_t blocks;      /* estimate: allocated in this generation */
        uint64_t slab_bytes;  /* the most that the facts said lately */
        double benefit, cost; /* of rules, of diversion, in sums that forget: picoseconds */
        struct rule_effect effect;
    } classes[HAK_SITE_CLASSES];
    struct site_decision decisions[HAK_SITE_DECISIONS];
    uint16_t buckets[2 * HAK_SITE_RULES_MOST];
    struct site_rule rules[HAK_SITE_RULES_MOST];
    struct site_birth births[HAK_SITE_BIRTHS];
};

/* What the log must be told about a class before a rule of it acts, or goes on. */
struct site_facts {
    bool may_act;        /* false: what is learned stays in the shadow */
    uint64_t page_bytes; /* what a block pins at most */
    uint64_t block_bytes;
    uint64_t slab_bytes, free_bytes; /* of slabs for blocks that go, and of these, not in use */
    uint64_t long_bytes, long_used_bytes; /* of slabs for blocks that stay, and of these, in use */
    uint64_t generation_ns;               /* how long the last generation took */
    uint64_t divert_ps;                   /* picoseconds that each diverted request costs more */
    uint64_t core_second_bytes; /* kept for a second they cost as much as a processor's second */
};

/* The site of the request, made if there is room; 0: none. Where it is MIXED, its caller's. */
uint32_t hak_site_log_find(struct site_log *log, struct site_key key);

/* A sample that stands for `weight` blocks was allocated. Returns its ticket; 0: it is not
 * followed. Judges what is two generations old. */
uint64_t hak_site_log_begin(struct site_log *log, struct site_key key, uint64_t weight,
                            uint64_t volume, uint64_t generation_bytes);

/* The sample was freed. */
void hak_site_log_end(struct site_log *log, uint64_t ticket, uint64_t weight);

/* True when a generation is over: then hak_site_log_turn is due. */
bool hak_site_log_is_due(const struct site_log *log, uint64_t volume);

/* Ends the generation: rules advance and retire, by the facts of their class. */
void hak_site_log_turn(struct site_log *log, uint64_t volume, uint64_t generation_bytes,
                       void (*read)(uint32_t class_index, struct site_facts *facts));

/* The user's word: PINNED, FORBIDDEN, or WATCHED to take it back. */
void hak_site_log_set(struct site_log *log, uint32_t rule, enum rule_state state, uint64_t volume);

/* Whether blocks of the site go to the slabs of those that stay. */
bool hak_rule_acts(enum rule_state state);

const char *hak_rule_state_word(enum rule_state state);

#endif
