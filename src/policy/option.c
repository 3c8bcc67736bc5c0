/* SPDX-License-Identifier: MIT */
#include "policy/option.h"

#include "conf/conf.h"
#include "policy/policy_table.h"

/* What mallopt said last of trimming; NO_THRESHOLD: nothing, or an option came later. */
#define NO_THRESHOLD INT64_MAX
static _Atomic int64_t trim_threshold = NO_THRESHOLD;

static void apply_trim_threshold(void)
{
    int64_t threshold = hak_load_relaxed(&trim_threshold);
    if (threshold < 0)
        hak_store_relaxed(&hak_policy.decay_ms, HAK_CONF_NEVER_MS);
    else if (threshold != NO_THRESHOLD)
        hak_store_relaxed(&hak_policy.retain_bytes, (uint64_t)threshold);
}

void hak_option_apply(void)
{
    int64_t price = hak_conf_number(price);
#define X(row, speed, even, compact)                                                               \
    hak_store_relaxed(&hak_policy.row, ((const uint64_t[]){speed, even, compact})[price]);
    HAK_POLICY_PRICE_TABLE(X)
#undef X
#define X(option, row) hak_store_relaxed(&hak_policy.row, (uint64_t)hak_conf_number(option));
    HAK_POLICY_OPTION_TABLE(X)
#undef X
    if ((hak_conf_number(learn) & LEARN_BIG_CACHE) == 0)
        hak_store_relaxed(&hak_policy.big_cache_episodes, HAK_TIB); /* so many never come back */
    if ((hak_conf_number(learn) & LEARN_DECAY) == 0)
        hak_store_relaxed(&hak_policy.pool_episodes, HAK_TIB);
    if (hak_conf_number(mode) == MODE_RESEARCH)
        hak_store_relaxed(&hak_policy.learn_acts, 0);
    if (price == PRICE_SPEED)
        hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0);
    apply_trim_threshold();
}

/* What was changed before was no 0 then. */
static bool was_guarded_at_start(void)
{
    return hak_conf_number(guard_rate) != 0 || hak_conf_is_changed(guard_rate);
}

static bool is_changeable(enum conf_option option)
{
#define X(name, row)                                                                               \
    if (option == CONF_##name)                                                                     \
        return true;
    HAK_POLICY_OPTION_TABLE(X)
#undef X
    return option == CONF_foreign || option == CONF_price || option == CONF_heap_profile_rate ||
           option == CONF_heap_profile_samples || /* these two: when sampling begins again */
           (option == CONF_guard_rate && was_guarded_at_start());
}

/* The row of the policy that follows an option alone. */
static void apply_one(enum conf_option option)
{
#define X(name, row)                                                                               \
    if (option == CONF_##name)                                                                     \
        hak_store_relaxed(&hak_policy.row, (uint64_t)hak_conf_number(name));
    HAK_POLICY_OPTION_TABLE(X)
#undef X
}

/* Trimming that mallopt turned off goes on. */
static void forget_trim_threshold(void)
{
    if (hak_load_relaxed(&trim_threshold) < 0)
        apply_one(CONF_decay);
    hak_store_relaxed(&trim_threshold, NO_THRESHOLD);
}

void hak_option_trim_threshold(int threshold)
{
    forget_trim_threshold();
    hak_store_relaxed(&trim_threshold, threshold);
    apply_trim_threshold();
}

enum option_verdict hak_option_change(const char *name, const char *value)
{
    enum conf_option option = hak_conf_find(name);
    if (option == CONF_COUNT)
        return OPTION_UNKNOWN;
    if (!is_changeable(option))
        return OPTION_FROZEN;
    if (!hak_conf_change(option, value))
        return OPTION_WRONG;
    if (option == CONF_decay || option == CONF_retain)
        forget_trim_threshold();
    if (option != CONF_price) {
        apply_one(option);
    } else {
        hak_conf_follow_price();
        hak_option_apply();
    }
    return OPTION_CHANGED;
}
