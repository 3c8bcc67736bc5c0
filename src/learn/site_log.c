/* SPDX-License-Identifier: MIT */
#include "learn/site_log.h"

#include "base/bits.h"

#include <string.h>

/* Callers of callers leave the rest of the rules to other sites. */
#define DISTANT_RULES_MOST (HAK_SITE_RULES_MOST / 4 * 3)
/* So many judged samples make a site's share a share. */
#define MIXED_JUDGED 32u
#define SURVIVORS_LEAST 2u
/* Above this share of survivors a site is no mixture. */
#define MIXED_PERCENT 75u
#define SHADOW_PERCENT 50u
#define RETIRED_PERCENT 25u
#define RECENT_JUDGED 8u
/* A rule starts if it saves twice its cost, and continues while it saves its cost. */
#define BENEFIT_TO_START 2u
/* From generation to generation. */
#define KEPT_OF_SUMS 0.95
/* From this size on, slabs of long-lived blocks that are less than half used are no better than
 * those they replace. */
#define LONG_BYTES_LEAST ((uint64_t)1 << 20)

const char *hak_rule_state_word(enum rule_state state)
{
    static const char *const words[] = {
#define X(name, word) word,
        HAK_RULE_STATE_TABLE(X)
#undef X
    };
    return words[state];
}

bool hak_rule_acts(enum rule_state state)
{
    return state == RULE_CANARY || state == RULE_ACTIVE || state == RULE_PINNED;
}

bool hak_site_log_is_due(const struct site_log *log, uint64_t volume)
{
    return volume >= log->generation_end;
}

static void decide(struct site_log *log, uint32_t index, enum rule_state to, uint64_t volume)
{
    struct site_rule *rule = &log->rules[index];
    log->decisions[log->decision_count++ % HAK_SITE_DECISIONS] =
        (struct site_decision){volume, index, rule->state, (uint8_t)to};
    rule->state = (uint8_t)to;
}

static uint32_t bucket_of(struct site_key key)
{
    uint64_t hash = key.class_index;
    for (uint32_t i = 0; i < HAK_SITE_FRAMES; i++)
        hash = hak_bit_mix(hash ^ key.frames[i]);
    return (uint32_t)(hash % (2 * HAK_SITE_RULES_MOST));
}

static bool is_key(const struct site_key *left, const struct site_key *right)
{
    return memcmp(left->frames, right->frames, sizeof left->frames) == 0 &&
           left->class_index == right->class_index;
}

static uint32_t next_bucket(uint32_t bucket)
{
    return (bucket + 1) % (2 * HAK_SITE_RULES_MOST);
}

static uint32_t used_rules(const struct site_log *log)
{
    return log->rule_count - log->free_count;
}

static uint32_t take_number(struct site_log *log)
{
    uint32_t index = log->free_rule;
    if (index == 0)
        return log->rule_count++;
    log->free_rule = log->rules[index].wrapper;
    log->free_count--;
    return index;
}

static uint32_t find_exactly(struct site_log *log, struct site_key key, uint32_t wrapper)
{
    bool is_distant = key.frames[HAK_SITE_FRAMES - 1] != 0;
    uint32_t bucket = bucket_of(key);
    if (log->rule_count == 0)
        log->rule_count = 1;
    for (; log->buckets[bucket] != 0; bucket = next_bucket(bucket))
        if (is_key(&log->rules[log->buckets[bucket]].key, &key))
            return log->buckets[bucket];
    if (used_rules(log) >= (is_distant ? DISTANT_RULES_MOST : HAK_SITE_RULES_MOST) ||
        key.class_index >= HAK_SITE_CLASSES)
        return 0;
    uint32_t index = take_number(log);
    log->rules[index] = (struct site_rule){.key = key, .wrapper = (uint16_t)wrapper};
    log->buckets[bucket] = (uint16_t)index;
    return index;
}

uint32_t hak_site_log_find(struct site_log *log, struct site_key key)
{
    struct site_key site = {.class_index = key.class_index};
    uint32_t rule = 0;
    for (uint32_t i = 0; i < HAK_SITE_FRAMES && (i == 0 || key.frames[i] != 0); i++) {
        site.frames[i] = key.frames[i];
        rule = find_exactly(log, site, rule);
        if (rule == 0 || log->rules[rule].state != RULE_MIXED)
            break;
    }
    return rule;
}

/* Whether the request has a frame that its site does not have yet. */
static bool has_caller(const struct site_key *site, const struct site_key *request)
{
    for (uint32_t i = 1; i < HAK_SITE_FRAMES; i++)
        if (site->frames[i] == 0)
            return request->frames[i] != 0;
    return false;
}

static bool is_above(uint32_t part, uint32_t whole, uint32_t percent)
{
    return (uint64_t)part * 100 >= (uint64_t)whole * percent;
}

static void bet(struct site_log *log, uint32_t index, int outcome)
{
    uint8_t state = log->rules[index].state;
    if (state == RULE_CANDIDATE || state == RULE_SHADOW)
        hak_gate_bet(&log->rules[index].gate, outcome);
}

/* A verdict and the one before it of another site of the class. */
static void pair(struct site_log *log, uint32_t index, bool is_survivor)
{
    uint32_t class_index = log->rules[index].key.class_index;
    uint32_t other = log->classes[class_index].rule;
    bool other_survived = log->classes[class_index].is_survivor;
    bool is_pair = other != 0 && other != index;
    if (is_pair && is_survivor != other_survived) {
        bet(log, index, is_survivor ? 1 : -1);
        bet(log, other, is_survivor ? -1 : 1);
    }
    log->classes[class_index].rule = is_pair ? 0 : index;
    log->classes[class_index].is_survivor = is_survivor;
}

static void consider(struct site_log *log, uint32_t index, uint64_t volume)
{
    struct site_rule *rule = &log->rules[index];
    if (rule->state == RULE_WATCHED && rule->survivors >= SURVIVORS_LEAST) {
        hak_gate_begin(&rule->gate, ++log->gate_count);
        decide(log, index, RULE_CANDIDATE, volume);
        return;
    }
    if (rule->state != RULE_CANDIDATE)
        return;
    if (rule->has_caller && rule->judged >= MIXED_JUDGED && rule->recent_survivors != 0 &&
        !is_above(rule->survivors, rule->judged, MIXED_PERCENT))
        decide(log, index, RULE_MIXED, volume);
    else if (hak_gate_is_open(&rule->gate) &&
             is_above(rule->recent_survivors, rule->recent_judged, SHADOW_PERCENT))
        decide(log, index, RULE_SHADOW, volume);
}

static void judge(struct site_log *log, struct site_birth *birth, uint64_t volume)
{
    uint64_t number = log->first_birth++;
    struct site_rule *rule = &log->rules[birth->rule];
    /* acquire and release: partner is the exchange in hak_site_log_end; the later of the two sees
     * that the block was judged, and the counts */
    uint64_t seen = atomic_exchange_explicit(&birth->ticket, 0, memory_order_acq_rel);
    bool is_survivor = seen == 2 * number;
    rule->judged++;
    rule->recent_judged++;
    if (is_survivor) {
        rule->survivors++;
        rule->recent_survivors++;
        hak_fetch_add_relaxed(&rule->kept_blocks, (int64_t)birth->weight);
    }
    pair(log, birth->rule, is_survivor);
    consider(log, birth->rule, volume);
}

static void judge_old(struct site_log *log, uint64_t volume, uint64_t generation_bytes)
{
    while (log->first_birth < log->next_birth) {
        struct site_birth *birth = &log->births[log->first_birth % HAK_SITE_BIRTHS];
        if (volume - birth->volume < 2 * generation_bytes)
            return;
        judge(log, birth, volume);
    }
}

/* A ticket holds the birth's number and, for after the verdict, its rule. */
#define TICKET_RULE_BITS 10u
hak_static_assert(HAK_SITE_RULES_MOST == 1u << TICKET_RULE_BITS, "a ticket holds a rule");

uint64_t hak_site_log_begin(struct site_log *log, struct site_key key, uint64_t weight,
                            uint64_t volume, uint64_t generation_bytes)
{
    if (log->next_birth == 0) {
        log->first_birth = log->next_birth = 1;
        log->generation_end = volume + generation_bytes;
    }
    judge_old(log, volume, generation_bytes);
    uint32_t rule = hak_site_log_find(log, key);
    if (key.class_index < HAK_SITE_CLASSES)
        log->classes[key.class_index].blocks += weight;
    if (rule == 0 || log->next_birth - log->first_birth == HAK_SITE_BIRTHS)
        return 0;
    log->rules[rule].has_caller = has_caller(&log->rules[rule].key, &key);
    uint64_t number = log->next_birth++;
    struct site_birth *birth = &log->births[number % HAK_SITE_BIRTHS];
    birth->volume = volume;
    birth->weight = weight;
    birth->rule = rule;
    /* release: partner is the exchange in hak_site_log_end */
    hak_store_release(&birth->ticket, 2 * number);
    return number << TICKET_RULE_BITS | rule;
}

void hak_site_log_end(struct site_log *log, uint64_t ticket, uint64_t weight)
{
    uint64_t number = ticket >> TICKET_RULE_BITS, alive = 2 * number;
    if (ticket == 0)
        return;
    /* acquire and release: partner is the exchange of the verdict */
    if (!atomic_compare_exchange_strong_explicit(&log->births[number % HAK_SITE_BIRTHS].ticket,
                                                 &alive, alive + 1, memory_order_acq_rel,
                                                 memory_order_acquire))
        /* release: partner is the acquire in is_idle */
        atomic_fetch_sub_explicit(&log->rules[ticket % HAK_SITE_RULES_MOST].kept_blocks,
                                  (int64_t)weight, memory_order_release);
}

/* The bytes that the kept blocks of a rule would pin among others: the rest of a page each. */
static uint64_t saved_bytes(const struct site_rule *rule, const struct site_facts *facts)
{
    int64_t kept = hak_load_relaxed(&rule->kept_blocks);
    if (kept <= 0 || facts->page_bytes <= facts->block_bytes)
        return 0;
    return (uint64_t)kept * (facts->page_bytes - facts->block_bytes);
}

/* Of a class: the savings of all rules that act, or would, and the cost of diverting every request
 * of the class. In picoseconds of a processor, over the last generations: a burst has many
 * requests, and the savings show after it. */
struct class_prices {
    double benefit;
    double cost;
};

/* What survives would pin a page each if it shared pages with blocks that go; but it may share them
 * with others that stay. Rules save no more than was measured, once it was. */
static uint64_t bound_by_effect(const struct rule_effect *effect, uint64_t bytes)
{
    double share;
    if (!hak_effect_share(effect, &share))
        return bytes;
    return share <= 0 ? 0 : (uint64_t)((double)bytes * share);
}

static struct class_prices price(struct site_log *log, uint32_t class_index,
                                 const struct site_facts *facts)
{
    uint64_t saved = 0;
    bool is_acting = false;
    for (uint32_t i = 1; i < log->rule_count; i++) {
        const struct site_rule *rule = &log->rules[i];
        bool acts = hak_rule_acts(rule->state);
        if (rule->key.class_index != class_index || !(acts || rule->state == RULE_SHADOW))
            continue;
        saved += saved_bytes(rule, facts);
        is_acting = is_acting || acts;
    }
    /* While a rule acts, its savings cannot be observed: without it the slabs of a burst would
     * stay, so their recent peak is taken. */
    uint64_t most = (uint64_t)((double)log->classes[class_index].slab_bytes * KEPT_OF_SUMS);
    most = facts->slab_bytes > most ? facts->slab_bytes : most;
    log->classes[class_index].slab_bytes = most;
    uint64_t bound =
        is_acting ? bound_by_effect(&log->classes[class_index].effect, most) : facts->free_bytes;
    saved = saved < bound ? saved : bound;
    double benefit =
        (double)saved / (double)facts->core_second_bytes * (double)facts->generation_ns * 1000;
    double cost = (double)log->classes[class_index].blocks * (double)facts->divert_ps;
    log->classes[class_index].benefit *= KEPT_OF_SUMS;
    log->classes[class_index].benefit += benefit;
    log->classes[class_index].cost *= KEPT_OF_SUMS;
    log->classes[class_index].cost += cost;
    hak_effect_forget(&log->classes[class_index].effect, KEPT_OF_SUMS);
    return (struct class_prices){log->classes[class_index].benefit, log->classes[class_index].cost};
}

static void retire(struct site_log *log, uint32_t index, uint64_t volume)
{
    struct site_rule *rule = &log->rules[index];
    if (rule->retired_times < 8)
        rule->retired_times++;
    rule->wait_generations = (uint16_t)(1u << rule->retired_times);
    decide(log, index, RULE_RETIRED, volume);
}

static bool has_stopped(const struct site_rule *rule)
{
    return rule->recent_judged >= RECENT_JUDGED &&
           !is_above(rule->recent_survivors, rule->recent_judged, RETIRED_PERCENT);
}

/* Slabs of blocks that stay ought to be full. */
static bool is_sparse(const struct site_facts *facts)
{
    return facts->long_bytes >= LONG_BYTES_LEAST && facts->long_used_bytes < facts->long_bytes / 2;
}

/* One that acts goes on while it is right and pays; from the grace on it has to. */
static void advance_acting(struct site_log *log, uint32_t index, const struct site_facts *facts,
                           struct class_prices prices, uint64_t volume)
{
    struct site_rule *rule = &log->rules[index];
    bool is_judged = rule->wait_generations == 0;
    if (!is_judged)
        rule->wait_generations--;
    if (has_stopped(rule) || is_sparse(facts) || (is_judged && prices.benefit < prices.cost))
        retire(log, index, volume);
    else if (rule->state == RULE_CANARY && facts->may_act)
        decide(log, index, RULE_ACTIVE, volume);
}

static void halve_recent(struct site_rule *rule)
{
    rule->recent_judged /= 2;
    rule->recent_survivors /= 2;
}

static void advance(struct site_log *log, uint32_t index, const struct site_facts *facts,
                    struct class_prices prices, uint64_t volume)
{
    struct site_rule *rule = &log->rules[index];
    switch (rule->state) {
    case RULE_SHADOW:
        if (has_stopped(rule)) {
            retire(log, index, volume);
        } else if (facts->may_act && prices.benefit >= prices.cost * BENEFIT_TO_START) {
            rule->wait_generations = HAK_RULE_GRACE;
            decide(log, index, RULE_CANARY, volume);
        }
        break;
    case RULE_CANARY:
    case RULE_ACTIVE:
        advance_acting(log, index, facts, prices, volume);
        break;
    case RULE_RETIRED:
        rule->wait_generations--;
        if (rule->wait_generations == 0) {
            hak_gate_begin(&rule->gate, ++log->gate_count);
            rule->recent_judged = rule->recent_survivors = 0;
            decide(log, index, RULE_CANDIDATE, volume);
        }
        break;
    default:
        break;
    }
    halve_recent(rule);
}

/* What samples that wait, verdicts and rules refer to. */
static void find_referred(const struct site_log *log, bool *is_referred)
{
    for (uint64_t i = log->first_birth; i < log->next_birth; i++)
        is_referred[log->births[i % HAK_SITE_BIRTHS].rule] = true;
    for (uint32_t i = 0; i < HAK_SITE_CLASSES; i++)
        is_referred[log->classes[i].rule] = true;
    for (uint32_t i = 1; i < log->rule_count; i++)
        if (!log->rules[i].is_free)
            is_referred[log->rules[i].wrapper] = true;
}

static void fill_buckets(struct site_log *log)
{
    memset(log->buckets, 0, sizeof log->buckets);
    for (uint32_t i = 1; i < log->rule_count; i++) {
        uint32_t bucket = bucket_of(log->rules[i].key);
        if (log->rules[i].is_free)
            continue;
        while (log->buckets[bucket] != 0)
            bucket = next_bucket(bucket);
        log->buckets[bucket] = (uint16_t)i;
    }
}

/* Tickets of judged blocks that live are in `kept_blocks`. */
static bool is_idle(const struct site_rule *rule)
{
    /* acquire: partner is the release in hak_site_log_end, the last that uses the number */
    return rule->state == RULE_WATCHED && !rule->is_free && rule->recent_judged == 0 &&
           hak_load_acquire(&rule->kept_blocks) == 0;
}

static void forget_idle(struct site_log *log)
{
    bool is_referred[HAK_SITE_RULES_MOST] = {false};
    find_referred(log, is_referred);
    for (uint32_t i = 1; i < log->rule_count; i++) {
        struct site_rule *rule = &log->rules[i];
        if (is_referred[i] || !is_idle(rule))
            continue;
        *rule = (struct site_rule){.is_free = true, .wrapper = (uint16_t)log->free_rule};
        log->free_rule = i;
        log->free_count++;
    }
    fill_buckets(log);
}

void hak_site_log_turn(struct site_log *log, uint64_t volume, uint64_t generation_bytes,
                       void (*read)(uint32_t class_index, struct site_facts *facts))
{
    struct site_facts facts[HAK_SITE_CLASSES];
    struct class_prices prices[HAK_SITE_CLASSES];
    judge_old(log, volume, generation_bytes);
    for (uint32_t i = 0; i < HAK_SITE_CLASSES; i++) {
        facts[i] = (struct site_facts){0};
        if (log->classes[i].blocks == 0)
            continue;
        read(i, &facts[i]);
        prices[i] = price(log, i, &facts[i]);
        log->classes[i].blocks = 0;
    }
    for (uint32_t i = 1; i < log->rule_count; i++) {
        uint32_t class_index = log->rules[i].key.class_index;
        if (facts[class_index].core_second_bytes != 0)
            advance(log, i, &facts[class_index], prices[class_index], volume);
        else if (log->rules[i].state == RULE_WATCHED)
            halve_recent(&log->rules[i]);
    }
    if (used_rules(log) >= DISTANT_RULES_MOST)
        forget_idle(log);
    log->generation_end = volume + generation_bytes;
}

void hak_site_log_set(struct site_log *log, uint32_t index, enum rule_state state, uint64_t volume)
{
    if (log->rules[index].state != state)
        decide(log, index, state, volume);
}
