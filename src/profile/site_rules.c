/* SPDX-License-Identifier: MIT */
#include "profile/site_rules.h"

#include "base/bits.h"
#include "base/float_state.h"
#include "conf/conf.h"
#include "heap/draw.h"
#include "heap/heaps.h"
#include "heap/limit.h"
#include "heap/route.h"
#include "misuse/harden.h"
#include "os/flag.h"
#include "os/os.h"
#include "os/program.h"
#include "os/unwind.h"
#include "policy/policy_table.h"
#include "process/fork.h"
#include "process/start.h"
#include "profile/modules.h"
#include "profile/rule_effect.h"
#include "stats/counters.h"

#include <string.h>

#define MODULES_MOST 256u /* a byte tells which */
#define QUIET_GENERATIONS 64u
/* Picoseconds that a diverted request costs more: docs/adr/0038-rules-of-call-sites.md. */
#define DIVERT_PS 2500u
/* Bytes whose retention for a second is worth a second of processor time, by price. */
#define CORE_SECOND_BYTES (4 * HAK_GIB)

hak_static_assert(HAK_SITE_CLASSES == HAK_LONG_CLASS_COUNT, "classes with a twin");
hak_static_assert(HAK_SITE_FRAMES == HAK_ROUTE_FRAMES, "what is distinguished can be diverted");

struct module {
    char name[HAK_SITE_MODULE_BYTES];
    uintptr_t bias;
    uint64_t build_id;
};

/* Untouched without the option. All but the log's tickets is the busy one's. */
static struct site_log site_log;
static struct module modules[MODULES_MOST];
static uint32_t module_count; /* the first is none */
static struct {
    uint8_t modules[HAK_SITE_FRAMES]; /* of its frames */
    uint16_t distance; /* of its caller's on the stack, by 8 bytes; 0: it varies, or is not known */
    bool is_measured;
    bool is_named;
} sites[HAK_SITE_RULES_MOST];
static struct site_line brought[HAK_RULES_BROUGHT_MOST];
static uint32_t brought_count;
static uint32_t published_count; /* decisions */
static uint64_t generation_start_ns;

static _Atomic uint64_t volume_bytes;
static _Atomic uint32_t is_busy;
static _Atomic bool is_frozen;

static bool try_busy(void)
{
    return !hak_load_relaxed(&is_frozen) && hak_flag_take(&is_busy);
}

/* Waits until the thread inside has left. */
static bool wait_busy(void)
{
    return !hak_load_relaxed(&is_frozen) && hak_flag_await(&is_busy);
}

static uint64_t first_eight(const struct board_module *module)
{
    uint64_t id = 0;
    for (uint32_t i = 0; i < 8 && i < module->build_id_bytes; i++)
        id = id << 8 | module->build_id[i];
    return id;
}

/* The module of an address on this thread's stack; 0: none. */
static uint8_t find_module(uintptr_t address)
{
    struct board_module found;
    if (address == 0 || !hak_module_describe(address - 1, &found))
        return 0;
    struct module module = {.bias = found.bias, .build_id = first_eight(&found)};
    hak_site_module_name(module.name, found.path);
    for (uint32_t i = 1; i <= module_count; i++)
        if (modules[i].bias == module.bias && modules[i].build_id == module.build_id &&
            strcmp(modules[i].name, module.name) == 0)
            return (uint8_t)i;
    if (module_count == MODULES_MOST - 1)
        return 0;
    modules[++module_count] = module;
    return (uint8_t)module_count;
}

static void add_place(struct site_place *place, uint8_t module, uintptr_t address)
{
    if (address == 0)
        return;
    if (module == 0) {
        memcpy(place->module, "?", 2);
        place->offset = hak_least(address, HAK_SITE_OFFSET_MOST);
        return;
    }
    memcpy(place->module, modules[module].name, sizeof place->module);
    place->offset = hak_least(address - modules[module].bias, HAK_SITE_OFFSET_MOST);
    place->build_id = modules[module].build_id;
}

static struct site_line line_of(uint32_t index)
{
    const struct site_rule *rule = &site_log.rules[index];
    struct site_line line = {
        .state = (enum rule_state)rule->state,
        .block_bytes = hak_size_classes[rule->key.class_index].block_bytes,
        .judged = (uint32_t)hak_least(rule->judged, HAK_SITE_COUNT_MOST),
    };
    line.survivors = (uint32_t)hak_least(rule->survivors, line.judged);
    for (uint32_t i = 0; i < HAK_SITE_FRAMES; i++)
        add_place(&line.places[i], sites[index].modules[i], rule->key.frames[i]);
    return line;
}

/* What was learned before goes on from there; what waited or was tried begins anew. */
static void apply(uint32_t index, const struct site_line *line)
{
    struct site_rule *rule = &site_log.rules[index];
    enum rule_state state = line->state;
    if (state == RULE_CANDIDATE || state == RULE_SHADOW || state == RULE_CANARY ||
        state == RULE_RETIRED)
        state = RULE_WATCHED;
    if (rule->judged == 0) {
        rule->judged = line->judged;
        rule->survivors = line->survivors;
    }
    rule->wait_generations = HAK_RULE_GRACE; /* what it saves is not counted yet */
    hak_site_log_set(&site_log, index, state, hak_load_relaxed(&volume_bytes));
}

/* A rule of a caller splits the site, unless this has a rule in force. */
static void split_for(const struct site_line *caller, uint32_t index, const struct site_line *line)
{
    enum rule_state state = (enum rule_state)site_log.rules[index].state;
    if (caller->state != RULE_WATCHED && hak_site_line_is_above(caller, line) &&
        !hak_rule_acts(state) && state != RULE_FORBIDDEN)
        hak_site_log_set(&site_log, index, RULE_MIXED, hak_load_relaxed(&volume_bytes));
}

/* A new site meets the rule that waits for it, and those of its callers. */
static void meet(uint32_t index)
{
    struct site_line line = line_of(index), found;
    for (uint32_t i = 0; i < brought_count; i++) {
        if (!hak_site_line_is_same(&line, &brought[i]))
            continue;
        found = brought[i];
        brought[i] = brought[--brought_count];
        apply(index, &found);
        break;
    }
    for (uint32_t i = 0; i < brought_count; i++)
        split_for(&brought[i], index, &line);
}

/* A site that is new, and wrappers of it that are, before it. */
static void name(uint32_t index)
{
    const struct site_rule *rule = &site_log.rules[index];
    if (index == 0 || sites[index].is_named)
        return;
    name(rule->wrapper);
    if (module_count == 0) /* the program itself always finds room */
        find_module(hak_os_program_entry() + 1);
    sites[index].is_named = true;
    for (uint32_t i = 0; i < HAK_SITE_FRAMES; i++)
        sites[index].modules[i] = find_module(rule->key.frames[i]);
    meet(index);
}

/* Numbers that are free are other sites' next. */
static void forget_free(void)
{
    for (uint32_t i = 1; site_log.free_count != 0 && i < site_log.rule_count; i++)
        if (site_log.rules[i].is_free)
            memset(&sites[i], 0, sizeof sites[i]);
}

/* Where the caller of a site stands on the stack; false: it varies, or is not known. */
static bool measure(uint32_t index, uintptr_t stack, uintptr_t caller_stack)
{
    uintptr_t distance = caller_stack - sizeof(uintptr_t) - stack;
    bool is_known = HAK_OS_RETURNS_ON_STACK && stack != 0 && caller_stack > stack &&
                    distance <= HAK_ROUTE_DISTANCE_MOST && distance % 8 == 0;
    uint16_t words = is_known ? (uint16_t)(distance / 8) : 0;
    if (!sites[index].is_measured)
        sites[index].distance = words;
    else if (sites[index].distance != words)
        sites[index].distance = 0;
    sites[index].is_measured = true;
    return sites[index].distance != 0;
}

/* Leaves only the callers that requests can be told apart by. */
static void cut(struct site_key *key, const uintptr_t *stacks)
{
    struct site_key site = {.class_index = key->class_index};
    for (uint32_t i = 0; i + 1 < HAK_SITE_FRAMES && key->frames[i + 1] != 0; i++) {
        site.frames[i] = key->frames[i];
        uint32_t index = hak_site_log_find(&site_log, site);
        if (index == 0)
            return;
        if (!measure(index, stacks[i], stacks[i + 1])) {
            memset(&key->frames[i + 1], 0, (HAK_SITE_FRAMES - i - 1) * sizeof *key->frames);
            return;
        }
        if (site_log.rules[index].state != RULE_MIXED)
            return;
    }
}

static bool may_act(void)
{
    return hak_policy_read(learn_acts) != 0 && hak_load_relaxed(&hak_harden) == 0;
}

static void read_facts(uint32_t class_index, struct site_facts *facts)
{
    const struct size_class *size = &hak_size_classes[class_index];
    uint64_t sums[PARTITION_COUNT][2] = {{0}};
    uint64_t slab_bytes = (uint64_t)size->granule_count << HAK_GRANULE_SHIFT;
    for (uint32_t i = 0; i < hak_heap_count(); i++) {
        for (int partition = 0; partition < PARTITION_COUNT; partition++) {
            const struct class_use *use =
                &hak_heap_at(i)
                     ->owner.use[hak_class_in(class_index, (enum hak_partition)partition)];
            sums[partition][0] += hak_load_relaxed(&use->slabs) * slab_bytes;
            sums[partition][1] += hak_load_relaxed(&use->used_blocks) * size->block_bytes;
        }
    }
    static const uint32_t tenths[] = {[PRICE_SPEED] = 100, [PRICE_EVEN] = 10, [PRICE_COMPACT] = 1};
    *facts = (struct site_facts){
        .may_act = may_act(),
        .page_bytes = HAK_PAGE_BYTES_LEAST,
        .slab_bytes = sums[PARTITION_ORDINARY][0],
        .free_bytes = hak_excess(sums[PARTITION_ORDINARY][0], sums[PARTITION_ORDINARY][1]),
        .long_bytes = sums[PARTITION_LONG][0],
        .long_used_bytes = sums[PARTITION_LONG][1],
        .block_bytes = size->block_bytes,
        .generation_ns = hak_excess(hak_os_clock_ns(), generation_start_ns),
        .divert_ps = DIVERT_PS,
        .core_second_bytes = CORE_SECOND_BYTES / 10 * tenths[hak_conf_number(price)],
    };
}

/* Whether it acts, and the stack shows the callers that it is for. */
static bool is_routed(uint32_t index)
{
    if (!hak_rule_acts((enum rule_state)site_log.rules[index].state))
        return false;
    for (uint32_t i = site_log.rules[index].wrapper; i != 0; i = site_log.rules[i].wrapper)
        if (sites[i].distance == 0)
            return false;
    return true;
}

static struct route route_of(uint32_t index, enum route_kind kind)
{
    const struct site_key *key = &site_log.rules[index].key;
    struct route route = {.class_index = key->class_index, .kind = kind};
    memcpy(route.frames, key->frames, sizeof route.frames);
    if (kind == ROUTE_SPLIT)
        route.distance = sites[index].distance * 8u;
    return route;
}

/* The rules that are routed, and the splits that these need, before them; returns how many. */
static uint32_t find_routes(struct route *routes)
{
    static const enum route_kind kinds[RULE_STATES] = {
        [RULE_CANARY] = ROUTE_HALF, [RULE_ACTIVE] = ROUTE_LONG, [RULE_PINNED] = ROUTE_ALWAYS};
    static bool is_split[HAK_SITE_RULES_MOST]; /* the busy one's */
    uint32_t count = 0;
    memset(is_split, 0, site_log.rule_count * sizeof *is_split);
    for (uint32_t i = 1; i < site_log.rule_count; i++)
        for (uint32_t j = is_routed(i) ? i : 0; j != 0; j = site_log.rules[j].wrapper)
            is_split[site_log.rules[j].wrapper] = true;
    for (uint32_t i = 1; i < site_log.rule_count; i++) {
        if (is_routed(i))
            routes[count++] = route_of(i, kinds[site_log.rules[i].state]);
        else if (is_split[i])
            routes[count++] = route_of(i, ROUTE_SPLIT);
    }
    return count;
}

static void count_decisions(void)
{
    uint32_t kept = (uint32_t)hak_least(site_log.decision_count, HAK_SITE_DECISIONS);
    uint32_t i = (uint32_t)hak_most(published_count, site_log.decision_count - kept);
    for (; i < site_log.decision_count; i++) {
        const struct site_decision *decision = &site_log.decisions[i % HAK_SITE_DECISIONS];
        bool acted = hak_rule_acts((enum rule_state)decision->from);
        bool acts = hak_rule_acts((enum rule_state)decision->to);
        hak_stat_global_add(rules_begun, acts && !acted);
        hak_stat_global_add(rules_ended, acted && !acts);
    }
    published_count = site_log.decision_count;
}

static void publish(void)
{
    static struct route routes[HAK_SITE_RULES_MOST]; /* the busy one's */
    uint32_t count = find_routes(routes);
    uint64_t classes = 0;
    for (uint32_t i = 0; i < count; i++)
        if (routes[i].kind == ROUTE_LONG || routes[i].kind == ROUTE_HALF)
            classes |= (uint64_t)1 << routes[i].class_index;
    hak_route_publish(routes, may_act() ? count : 0);
    hak_rule_effect_of(may_act() ? classes : 0);
    count_decisions();
}

/* Nothing decided for so many generations: fewer samples will do until something is. */
static void keep_pace(void)
{
    static uint32_t decided_count, quiet_generations;
    bool was_quiet = quiet_generations >= QUIET_GENERATIONS;
    quiet_generations = decided_count == site_log.decision_count ? quiet_generations + 1 : 0;
    decided_count = site_log.decision_count;
    bool is_quiet = quiet_generations >= QUIET_GENERATIONS;
    if (is_quiet != was_quiet)
        hak_draw_start_for(DRAW_FOR_RULES, HAK_DRAW_RULES_MEAN_BYTES,
                           is_quiet ? HAK_DRAW_RULES_QUIET_SAMPLES : HAK_DRAW_RULES_SAMPLES,
                           hak_os_clock_ms());
}

/* The only part of a sample with floating-point numbers. */
static HAK_NOINLINE uint64_t begin(struct site_key key, const uintptr_t *stacks, uint64_t weight)
{
    uint64_t volume = hak_load_relaxed(&volume_bytes);
    uint64_t generation = hak_most(HAK_SITE_GENERATION_LEAST, hak_held_bytes());
    cut(&key, stacks);
    uint64_t ticket = hak_site_log_begin(&site_log, key, weight, volume, generation);
    name(hak_site_log_find(&site_log, key));
    hak_rule_effect_look(&site_log, volume, generation);
    if (generation_start_ns == 0)
        generation_start_ns = hak_os_clock_ns();
    if (hak_site_log_is_due(&site_log, volume)) {
        hak_site_log_turn(&site_log, volume, generation, read_facts);
        forget_free();
        generation_start_ns = hak_os_clock_ns();
        keep_pace();
    }
    if (HAK_UNLIKELY(site_log.decision_count != published_count))
        publish();
    return ticket;
}

uint64_t hak_rules_begin(const uintptr_t *frames, const uintptr_t *stacks, uint32_t frame_count,
                         uint32_t class_index, uint64_t weight)
{
    if (class_index >= HAK_SITE_CLASSES)
        return 0;
    uint64_t bytes = weight * hak_size_classes[class_index].block_bytes;
    hak_fetch_add_relaxed(&volume_bytes, bytes);
    if (!try_busy())
        return 0;
    struct site_key key = {.class_index = class_index};
    memcpy(key.frames, frames, hak_least(frame_count, HAK_SITE_FRAMES) * sizeof *frames);
    struct float_state state = hak_float_begin();
    uint64_t ticket = begin(key, stacks, weight);
    hak_float_end(state);
    hak_flag_give(&is_busy);
    return ticket;
}

void hak_rules_end(uint64_t ticket, uint64_t weight)
{
    hak_site_log_end(&site_log, ticket, weight);
}

/* The site is known already; false: it is not, but its wrappers may be. */
static bool apply_to_known(const struct site_line *line)
{
    bool is_known = false;
    for (uint32_t i = 1; i < site_log.rule_count; i++) {
        if (site_log.rules[i].is_free)
            continue;
        struct site_line known = line_of(i);
        split_for(line, i, &known);
        if (!hak_site_line_is_same(&known, line))
            continue;
        apply(i, line);
        is_known = true;
    }
    return is_known;
}

static bool bring(const struct site_line *line)
{
    uint32_t at = 0;
    if (apply_to_known(line)) {
        publish();
        return true;
    }
    while (at < brought_count && !hak_site_line_is_same(&brought[at], line))
        at++;
    if (at == HAK_RULES_BROUGHT_MOST)
        return false;
    brought[at] = *line;
    if (at == brought_count)
        brought_count++;
    return true;
}

bool hak_rules_bring(const struct site_line *line)
{
    if (!wait_busy())
        return false;
    bool is_brought = bring(line);
    hak_flag_give(&is_busy);
    return is_brought;
}

static bool find_line(uint32_t index, struct site_line *line)
{
    for (uint32_t i = 1; i < site_log.rule_count; i++) {
        if (site_log.rules[i].state == RULE_WATCHED || index-- != 0)
            continue;
        *line = line_of(i);
        return true;
    }
    if (index >= brought_count)
        return false;
    *line = brought[index];
    return true;
}

bool hak_rules_line(uint32_t index, struct site_line *line)
{
    if (!wait_busy())
        return false;
    bool is_there = find_line(index, line);
    hak_flag_give(&is_busy);
    return is_there;
}

static bool find_effect(uint32_t index, struct effect_line *line)
{
    uint64_t classes = hak_rule_effect_classes();
    if (index >= hak_bit_count(classes))
        return false;
    uint32_t class_index = hak_bit_of_rank(classes, index);
    line->block_bytes = hak_size_classes[class_index].block_bytes;
    line->effect = site_log.classes[class_index].effect;
    return true;
}

bool hak_rules_effect(uint32_t index, struct effect_line *line)
{
    if (!wait_busy())
        return false;
    bool is_there = find_effect(index, line);
    hak_flag_give(&is_busy);
    return is_there;
}

/* Changes that another thread had not finished are never finished in a child. */
static void settle_child(void)
{
    if (hak_load_relaxed(&is_busy) == 0)
        return;
    hak_store_relaxed(&is_frozen, true);
    hak_route_publish(NULL, 0);
}

__attribute__((constructor)) static void prepare(void)
{
    if (hak_process_start() && hak_draw_is_for(DRAW_FOR_RULES))
        hak_process_on_fork(settle_child);
}
