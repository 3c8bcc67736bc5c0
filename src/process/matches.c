/* SPDX-License-Identifier: MIT */
#include "process/matches.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "heap/census.h"
#include "heap/limit.h"
#include "heap/slow_clock.h"
#include "learn/learned_file.h"
#include "learn/match_line.h"
#include "misuse/harden.h"
#include "os/confine.h"
#include "os/flag.h"
#include "os/home.h"
#include "os/os.h"
#include "os/random.h"
#include "policy/policy_table.h"
#include "process/fork.h"
#include "span/span_take.h"
#include "stats/counters.h"

/* A window is over without a result after so many times its least length. */
#define LATE_WINDOWS 40u
/* The allocated bytes of two halves of a match may differ by this much, in thousandths. */
#define MIXTURE_MOST 300u
/* Blocks of 1 MiB or more between two looks, so that their room is worth a match. */
#define SPANS_USED 8u

HAK_AT_HAND _Atomic uint32_t hak_matches_are_on;

static _Atomic uint64_t *const rows[KNOB_COUNT] = {
#define X(row, count, usual, second, third, fourth, what) [KNOB_##row] = &hak_policy.row,
    HAK_KNOB_TABLE(X)
#undef X
};

/* A reading of the counters. */
struct reading {
    struct mixture mixture; /* in bytes */
    uint64_t slow_ns;
    uint64_t purge_ns;
    uint64_t faults;
    uint64_t operations;
};

enum stage { STAGE_BETWEEN, STAGE_SETTLES, STAGE_MEASURED };

/* All that follows belongs to the thread that has set `is_busy`. */
static _Atomic uint32_t is_busy;
static uint32_t home_pid;
static struct match_board board;
static struct {
    enum stage stage;
    bool is_rest; /* no match: the budget is earned */
    uint32_t knob;
    uint32_t window;
    uint64_t began_ms;
    uint64_t held_ms; /* until then `held_kib_ms` was summed */
    uint64_t held_kib_ms;
    uint64_t wait_until_ms;
    struct reading before;
    struct trial trials[HAK_MATCH_WINDOWS];
    struct mixture mixtures[2];
} play;

static void set_knob(uint32_t knob, uint32_t arm)
{
    hak_store_relaxed(rows[knob], hak_match_knobs[knob].values[arm]);
}

static void set_clock(bool is_on)
{
    hak_store_relaxed(&hak_slow_clock, is_on);
}

/* Two groups for each doubling of sizes. */
static uint32_t group_of(uint32_t block_bytes)
{
    uint32_t order = hak_bit_highest(block_bytes);
    uint32_t group = 2 * (order - 3) + (block_bytes >> (order - 1) & 1);
    return (uint32_t)hak_least(group, HAK_MIXTURE_GROUPS - 2);
}

/* Refills and large blocks bypass the bins; the sizes that a refill serves are unknown, so they
 * form a group of their own. */
static void read_mixture(struct mixture *mixture)
{
    uint64_t popped[HAK_ALL_CLASS_COUNT];
    hak_census_popped(popped);
    *mixture = (struct mixture){.amounts = {0}};
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        uint32_t block_bytes = hak_size_classes[i].block_bytes;
        mixture->amounts[group_of(block_bytes)] += popped[i] * block_bytes;
    }
    mixture->amounts[HAK_MIXTURE_GROUPS - 1] = hak_load_relaxed(&hak_slow_sums.large_bytes) +
                                               hak_load_relaxed(&hak_slow_sums.refilled_bytes);
}

static void read_counters(struct reading *reading)
{
    read_mixture(&reading->mixture);
    reading->slow_ns = hak_load_relaxed(&hak_slow_sums.ns);
    reading->purge_ns = hak_load_relaxed(&hak_os_counters.purge_time_ns);
    reading->faults = hak_os_faults();
    reading->operations = hak_census_counter(HAK_STAT_refills) +
                          hak_census_counter(HAK_STAT_flushes) +
                          hak_census_counter(HAK_STAT_spans_taken);
}

/* The KiB allocated in the window. */
static uint64_t subtract(struct mixture *mixture, const struct mixture *before)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < HAK_MIXTURE_GROUPS; i++) {
        uint64_t bytes = mixture->amounts[i] - before->amounts[i];
        mixture->amounts[i] = bytes >> 63 != 0 ? 0 : bytes >> 10; /* a race may seem to go back */
        sum += mixture->amounts[i];
    }
    return sum;
}

static struct trial_price price_now(void)
{
    return (struct trial_price){
        .fault_ns = HAK_FAULT_NS * (hak_os_page_bytes() / HAK_PAGE_BYTES_LEAST),
        .big_fault_ms = hak_policy_read(big_fault_ms),
    };
}

static void begin_window(uint64_t now)
{
    if (!play.is_rest)
        set_knob(play.knob, hak_contest_arm(&board.contests[play.knob], play.window));
    play.stage = STAGE_SETTLES;
    play.began_ms = now;
}

/* Restores the value in force; the next match may begin after wait_ms. */
static void end_match(uint64_t now, uint64_t wait_ms)
{
    set_clock(false);
    for (uint32_t i = 0; i < KNOB_COUNT; i++)
        set_knob(i, board.contests[i].holds);
    play.stage = STAGE_BETWEEN;
    play.wait_until_ms = now + wait_ms;
}

/* A value without use has no effect: whether large blocks were requested since the last look. */
static bool is_used(uint32_t knob)
{
    static uint64_t seen;
    if (knob != KNOB_big_cache_scale_percent)
        return true;
    uint64_t bytes, now = hak_load_relaxed(&hak_stat_globals.spans_reused) +
                          hak_load_relaxed(&hak_stat_globals.spans_fresh) +
                          hak_span_sets_served(&bytes);
    bool is_used = now - seen >= SPANS_USED;
    seen = now;
    return is_used;
}

/* The contest with a match to play that has played the fewest; KNOB_COUNT: none. *is_starved:
 * there would be one but for the budget. */
static uint32_t next_knob(uint64_t now, bool *is_starved)
{
    static const struct contest_budget rich = {.cost_ns = 1};
    uint32_t best = KNOB_COUNT;
    for (uint32_t i = 0; i < KNOB_COUNT; i++) {
        const struct contest *contest = &board.contests[i];
        if (!is_used(i))
            continue;
        if (!hak_contest_wants(contest, &board.budget, now))
            *is_starved = *is_starved || hak_contest_wants(contest, &rich, now);
        else if (best == KNOB_COUNT ||
                 contest->matches + contest->voids <
                     board.contests[best].matches + board.contests[best].voids)
            best = i;
    }
    return best;
}

static void begin_match(uint64_t now)
{
    bool is_starved = false;
    if (now < play.wait_until_ms)
        return;
    play.knob = next_knob(now, &is_starved);
    play.is_rest = play.knob == KNOB_COUNT;
    if (play.is_rest && !is_starved) {
        play.wait_until_ms = now + hak_policy_read(match_ms);
        return;
    }
    if (!play.is_rest)
        hak_contest_draw(&board.contests[play.knob], hak_os_random());
    play.window = 0;
    play.mixtures[0] = play.mixtures[1] = (struct mixture){.amounts = {0}};
    begin_window(now);
}

static void begin_measuring(uint64_t now)
{
    set_clock(true);
    read_counters(&play.before);
    play.held_kib_ms = 0;
    play.began_ms = play.held_ms = now;
    play.stage = STAGE_MEASURED;
}

static void note_match(uint64_t now, enum contest_event event)
{
    const struct contest *contest = &board.contests[play.knob];
    uint32_t number = ++board.note_count;
    hak_stat_global_add(matches_played, event != CONTEST_VOID);
    hak_stat_global_add(values_taken, event == CONTEST_TAKEN);
    hak_stat_global_add(values_recalled, event == CONTEST_RECALLED);
    board.notes[number % HAK_MATCHES_KEPT] = (struct match_note){
        .clock_ms = now,
        .knob = (uint16_t)play.knob,
        .arm = (uint16_t)contest->plays,
        .event = event,
        .saving = event == CONTEST_VOID ? 0 : contest->saving,
        .number = number,
    };
}

static void finish(uint64_t now)
{
    struct trial_price price = price_now();
    if (play.is_rest) {
        hak_contest_rest(&board.budget, &play.trials[0], &price);
    } else {
        bool is_void = hak_mixture_distance(&play.mixtures[0], &play.mixtures[1]) > MIXTURE_MOST;
        note_match(now, hak_contest_finish(&board.contests[play.knob], &board.budget, play.trials,
                                           &price, is_void, now));
    }
    end_match(now, 0);
}

/* The cost of a full window. */
static void end_window(struct reading *end, uint64_t volume_kib, uint64_t now)
{
    uint32_t side =
        play.is_rest ? 0 : hak_contest_arm(&board.contests[play.knob], play.window) != 0;
    play.trials[play.window] = (struct trial){
        .volume_kib = volume_kib,
        .slow_ns = end->slow_ns - play.before.slow_ns,
        .purge_ns = end->purge_ns - play.before.purge_ns,
        .faults = end->faults - play.before.faults,
        .held_kib_ms = play.held_kib_ms,
        .ms = now - play.began_ms,
    };
    for (uint32_t i = 0; i < HAK_MIXTURE_GROUPS; i++)
        play.mixtures[side].amounts[i] += end->mixture.amounts[i];
    set_clock(false);
    play.window++;
    if (play.window == (play.is_rest ? 1 : HAK_MATCH_WINDOWS))
        finish(now);
    else
        begin_window(now);
}

static void measure(uint64_t now)
{
    play.held_kib_ms += (hak_held_bytes() >> 10) * (now - play.held_ms);
    play.held_ms = now;
    if (now - play.began_ms < hak_policy_read(match_ms) * 3 / 4)
        return;
    struct reading end;
    read_counters(&end);
    uint64_t volume_kib = subtract(&end.mixture, &play.before.mixture);
    if (volume_kib >= hak_policy_read(match_bytes) >> 10 &&
        end.operations - play.before.operations >= hak_policy_read(match_operations))
        end_window(&end, volume_kib, now);
}

/* The program did too little, or something else, for too long. */
static bool is_late(uint64_t now)
{
    return play.stage != STAGE_BETWEEN &&
           now - play.began_ms > LATE_WINDOWS * hak_policy_read(match_ms);
}

static void step(uint64_t now)
{
    if (is_late(now)) {
        if (!play.is_rest) {
            board.contests[play.knob].voids++;
            note_match(now, CONTEST_VOID);
        }
        end_match(now, LATE_WINDOWS * hak_policy_read(match_ms));
    } else if (play.stage == STAGE_BETWEEN) {
        begin_match(now);
    } else if (play.stage == STAGE_MEASURED) {
        measure(now);
    } else if (now - play.began_ms >= hak_policy_read(match_ms) / 4) {
        begin_measuring(now);
    }
}

/* Usual values, for good. */
static void stop(void)
{
    hak_store_relaxed(&hak_matches_are_on, 0);
    for (uint32_t i = 0; i < KNOB_COUNT; i++)
        hak_contest_stop(&board.contests[i]);
    end_match(0, 0);
    board.mode = MATCHES_STOPPED;
}

/* The child of a vfork shares its parent's memory and plays no match. */
void hak_matches_look(void)
{
    if (!hak_os_ask_begin()) {
        if (hak_flag_take(&is_busy)) {
            stop();
            hak_flag_give(&is_busy);
        }
        return;
    }
    if (hak_os_pid() == home_pid) {
        uint64_t blocked = hak_os_block_signals();
        if (hak_flag_take(&is_busy)) {
            step(hak_os_clock_ms());
            hak_flag_give(&is_busy);
        }
        hak_os_restore_signals(blocked);
    }
    hak_os_ask_end();
}

bool hak_matches_copy(struct match_board *copy)
{
    if (!hak_flag_take(&is_busy))
        return false;
    *copy = board;
    hak_flag_give(&is_busy);
    return true;
}

/* A child has one thread and does not finish the match of another: the values in force stay. */
static void settle_in_child(void)
{
    hak_store_relaxed(&hak_matches_are_on, 0);
    end_match(0, 0);
    board.mode = board.mode == MATCHES_OFF ? MATCHES_OFF : MATCHES_STOPPED;
    hak_flag_give(&is_busy);
}

void hak_matches_begin(void)
{
    if (HAK_LIKELY((hak_conf_number(learn) & LEARN_MATCHES) == 0) || hak_harden_has(HARDEN_WATCHED))
        return;
    bool may_act = hak_policy_read(learn_acts) != 0;
    for (uint32_t i = 0; i < KNOB_COUNT; i++)
        hak_contest_begin(&board.contests[i], hak_match_knobs[i].count, KNOB_COUNT, may_act);
    board.mode = may_act ? MATCHES_PLAYED : MATCHES_SHADOW;
    home_pid = hak_os_pid();
    hak_process_on_fork(settle_in_child);
    hak_store_relaxed(&hak_matches_are_on, 1);
}

void hak_matches_bring(const struct match_line *line)
{
    if (board.mode == MATCHES_OFF)
        return;
    struct contest *contest = &board.contests[line->knob];
    hak_match_line_to(line, &contest->arms[line->arm]);
    contest->matches += line->matches;
}

void hak_matches_tell(struct learned_program *program)
{
    if (board.mode == MATCHES_OFF || !hak_flag_await(&is_busy))
        return;
    program->match_count = 0;
    for (uint32_t knob = 0; knob < KNOB_COUNT; knob++)
        for (uint32_t i = 1; i < board.contests[knob].arm_count; i++) {
            const struct arm *arm = &board.contests[knob].arms[i];
            struct match_line line = {.knob = knob, .arm = i};
            hak_match_line_from(&line, arm);
            if (arm->matches != 0)
                hak_learned_put_match(program, &line);
        }
    hak_flag_give(&is_busy);
}
