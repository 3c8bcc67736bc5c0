/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "elo.h"

#include "ask.h"
#include "command.h"
#include "learn/match_line.h"
#include "learned_source.h"
#include "ps.h"
#include "serving.h"
#include "target.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WATCH_WORDS "watch 5"
/* Matches that are listed, newest first. */
#define LISTED 10u

static const char *const mode_words[] = {
    [MATCHES_OFF] = "off",
    [MATCHES_PLAYED] = "played",
    [MATCHES_SHADOW] = "shadow",
    [MATCHES_STOPPED] = "stopped",
};
static const char *const state_words[] = {
    [CONTEST_LEARN] = "LEARN",
    [CONTEST_CANARY] = "CANARY",
    [CONTEST_FROZEN] = "FROZEN",
};
static const char *const arm_words[] = {
    [ARM_OPEN] = "open",   [ARM_WON] = "won",           [ARM_HARMED] = "worse",
    [ARM_SPENT] = "spent", [ARM_RECALLED] = "recalled",
};
static const char *const event_words[] = {
    [CONTEST_PLAYED] = "played", [CONTEST_VOID] = "void",         [CONTEST_DROPPED] = "dropped",
    [CONTEST_TAKEN] = "taken",   [CONTEST_RECALLED] = "recalled", [CONTEST_CONFIRMED] = "confirmed",
};

/* What a process says is looked up only where it is a word. */
#define WORD(words, index) ((index) < sizeof(words) / sizeof *(words) ? (words)[index] : "unknown")

const char *knob_name(uint32_t knob)
{
    return knob < KNOB_COUNT ? hak_match_knobs[knob].name : "unknown";
}

uint64_t knob_value(uint32_t knob, uint32_t arm)
{
    return knob < KNOB_COUNT && arm < HAK_ARMS_MOST ? hak_match_knobs[knob].values[arm] : 0;
}

const char *contest_word(uint32_t state)
{
    return WORD(state_words, state);
}

/* How much more, in hundredths, `own` is than `usual` for each MiB allocated. */
static double more_percent(const struct arm *arm, uint64_t own, uint64_t usual)
{
    if (usual == 0 || arm->own.volume_kib == 0 || arm->usual.volume_kib == 0)
        return 0;
    double own_per = (double)own / (double)arm->own.volume_kib;
    double usual_per = (double)usual / (double)arm->usual.volume_kib;
    return (own_per / usual_per - 1) * 100;
}

static double memory_percent(const struct arm *arm)
{
    return more_percent(arm, arm->own.held_kib_ms, arm->usual.held_kib_ms);
}

static double faults_percent(const struct arm *arm)
{
    return more_percent(arm, arm->own.faults, arm->usual.faults);
}

static double time_percent(const struct arm *arm)
{
    return more_percent(arm, arm->own.slow_ns + arm->own.purge_ns,
                        arm->usual.slow_ns + arm->usual.purge_ns);
}

static double evidence(const struct wager *wager)
{
    return (double)hak_wager_value(wager) / (double)HAK_WAGER_ONE;
}

/* "+3.1 %"; "-" where there is nothing to compare. */
static const char *percent_text(char *text, double percent)
{
    snprintf(text, 32, "%+.1f %%", percent > -0.05 && percent < 0.05 ? 0 : percent);
    return text;
}

static void put_arm(const struct contest *contest, uint32_t index, uint64_t value)
{
    const struct arm *arm = &contest->arms[index];
    char time[32], faults[32], memory[32];
    char mark = contest->holds == index ? '*' : ' ';
    if (index == 0) {
        printf("%c %6" PRIu64 " %7d %8s %5s %5s %5s %9s %9s %9s %9s  usual\n", mark, value,
               arm->rating / 1000, "-", "-", "-", "-", "-", "-", "-", "-");
        return;
    }
    printf("%c %6" PRIu64 " %7d %8" PRIu32 " %5" PRIu32 " %5" PRIu32 " %5" PRIu32
           " %9s %9s %9s %9.3g  %s\n",
           mark, value, arm->rating / 1000, arm->matches, arm->won,
           arm->matches - arm->won - arm->lost, arm->lost, percent_text(time, time_percent(arm)),
           percent_text(faults, faults_percent(arm)), percent_text(memory, memory_percent(arm)),
           evidence(&arm->gain), WORD(arm_words, arm->state));
}

/* What a value saves and what it costs: "saves 11.0 % of the time and 4.2 % of the faults at +3.0 %
 * of the memory". */
static void put_effect(const struct arm *arm)
{
    const struct {
        double percent;
        const char *of;
    } parts[] = {{time_percent(arm), "time"},
                 {faults_percent(arm), "faults"},
                 {memory_percent(arm), "memory"}};
    const char *between = "saves ";
    for (int i = 0; i < 3; i++)
        if (parts[i].percent <= -0.05) {
            printf("%s%.1f %% of the %s", between, -parts[i].percent, parts[i].of);
            between = " and ";
        }
    between = *between == 's' ? "costs " : " at ";
    for (int i = 0; i < 3; i++)
        if (parts[i].percent >= 0.05) {
            printf("%s%.1f %% more %s", between, parts[i].percent, parts[i].of);
            between = " and ";
        }
}

static void put_receipt(const struct contest *contest, uint32_t index, const uint64_t *values)
{
    const struct arm *arm = &contest->arms[index];
    if (arm->state == ARM_OPEN || arm->matches == 0)
        return;
    printf("  %" PRIu64 " %s %" PRIu64 ", %" PRIu32 " of %" PRIu32 " matches: ", values[index],
           arm->state == ARM_WON || arm->state == ARM_RECALLED ? "beats" : "does not beat",
           values[0], arm->won, arm->matches);
    put_effect(arm);
    if (arm->state == ARM_WON && contest->state == CONTEST_CANARY)
        printf("; on trial, round %" PRIu32 " of 8", contest->rounds);
    else if (arm->state == ARM_WON && contest->holds == index)
        printf("; it is in force");
    else if (arm->state == ARM_WON)
        printf("; it would be in force, but learning is not applied");
    else if (arm->state == ARM_RECALLED)
        printf("; it was reverted");
    putchar('\n');
}

static void put_knob(const struct contest *contest, uint32_t knob)
{
    printf("\n%s, %s: %s\n", hak_match_knobs[knob].name, hak_match_knobs[knob].what,
           WORD(state_words, contest->state));
    printf("   VALUE  RATING  MATCHES   WON DRAWN  LOST      TIME    FAULTS    MEMORY  EVIDENCE\n");
    for (uint32_t i = 0; i < contest->arm_count && i < HAK_ARMS_MOST; i++)
        put_arm(contest, i, hak_match_knobs[knob].values[i]);
    for (uint32_t i = 1; i < contest->arm_count && i < HAK_ARMS_MOST; i++)
        put_receipt(contest, i, hak_match_knobs[knob].values);
}

static void put_notes(const struct match_board *board, uint64_t clock_ms)
{
    if (board->note_count == 0)
        return;
    printf("\nlast matches (the saving of the value, and what followed)\n");
    for (uint32_t i = 0; i < LISTED && i < board->note_count; i++) {
        const struct match_note *note = &board->notes[(board->note_count - i) % HAK_MATCHES_KEPT];
        char saved[32];
        if (note->knob >= KNOB_COUNT || note->arm >= HAK_ARMS_MOST)
            continue;
        printf("%7.1f s ago  %s = %" PRIu64 ": %s, %s\n",
               (double)(clock_ms - note->clock_ms) / 1000, hak_match_knobs[note->knob].name,
               hak_match_knobs[note->knob].values[note->arm],
               percent_text(saved, note->saving / 10000.0), WORD(event_words, note->event));
    }
}

static void put_board(const struct match_board *board, uint64_t clock_ms)
{
    const struct contest_budget *budget = &board->budget;
    double cost = (double)budget->cost_ns / 1e9, regret = (double)budget->regret_ns / 1e9;
    printf("matches: %s; %" PRIu32 " so far; they cost %.3f s of %.3f s, %.1f %% (2 %% at most)\n",
           WORD(mode_words, board->mode), board->note_count, regret, cost,
           cost > 0 ? regret / cost * 100 : 0);
    for (uint32_t i = 0; i < KNOB_COUNT; i++)
        put_knob(&board->contests[i], i);
    put_notes(board, clock_ms);
}

static void put_trial_json(const char *name, const struct trial *trial)
{
    printf("\"%s\": {\"volume_kib\": %" PRIu64 ", \"slow_ns\": %" PRIu64 ", \"purge_ns\": %" PRIu64
           ", \"faults\": %" PRIu64 ", \"held_kib_ms\": %" PRIu64 ", \"ms\": %" PRIu64 "}",
           name, trial->volume_kib, trial->slow_ns, trial->purge_ns, trial->faults,
           trial->held_kib_ms, trial->ms);
}

static void put_arm_json(const struct arm *arm, uint64_t value)
{
    printf("{\"value\": %" PRIu64 ", \"state\": \"%s\", \"rating\": %.3f, \"matches\": %" PRIu32
           ", \"won\": %" PRIu32 ", \"lost\": %" PRIu32
           ", \"evidence\": %.6g, \"evidence_of_harm\": %.6g, ",
           value, WORD(arm_words, arm->state), arm->rating / 1000.0, arm->matches, arm->won,
           arm->lost, evidence(&arm->gain), evidence(&arm->harm));
    put_trial_json("own", &arm->own);
    fputs(", ", stdout);
    put_trial_json("usual", &arm->usual);
    putchar('}');
}

static void put_knob_json(const struct contest *contest, uint32_t knob)
{
    printf("{\"name\": \"%s\", \"state\": \"%s\", \"holds\": %" PRIu64 ", \"threshold\": %" PRIu32
           ", \"matches\": %" PRIu32 ", \"voids\": %" PRIu32 ", \"values\": [",
           hak_match_knobs[knob].name, WORD(state_words, contest->state),
           hak_match_knobs[knob].values[contest->holds % HAK_ARMS_MOST], contest->threshold,
           contest->matches, contest->voids);
    for (uint32_t i = 0; i < contest->arm_count && i < HAK_ARMS_MOST; i++) {
        fputs(i == 0 ? "" : ", ", stdout);
        put_arm_json(&contest->arms[i], hak_match_knobs[knob].values[i]);
    }
    fputs("]}", stdout);
}

static void put_board_json(const struct match_board *board, uint64_t clock_ms)
{
    printf("{\"matches\": \"%s\", \"played\": %" PRIu32 ", \"cost_ns\": %" PRIu64
           ", \"regret_ns\": %" PRId64 ",\n \"knobs\": [",
           WORD(mode_words, board->mode), board->note_count, board->budget.cost_ns,
           board->budget.regret_ns);
    for (uint32_t i = 0; i < KNOB_COUNT; i++) {
        fputs(i == 0 ? "" : ",\n  ", stdout);
        put_knob_json(&board->contests[i], i);
    }
    fputs("],\n \"last\": [", stdout);
    uint32_t kept = board->note_count < HAK_MATCHES_KEPT ? board->note_count : HAK_MATCHES_KEPT;
    bool is_first = true;
    for (uint32_t i = 0; i < kept; i++) {
        const struct match_note *note = &board->notes[(board->note_count - i) % HAK_MATCHES_KEPT];
        if (note->knob >= KNOB_COUNT || note->arm >= HAK_ARMS_MOST)
            continue;
        printf("%s{\"number\": %" PRIu32 ", \"ago_ms\": %" PRIu64
               ", \"knob\": \"%s\", \"value\": %" PRIu64 ", \"saving_ppm\": %" PRId32
               ", \"event\": \"%s\"}",
               is_first ? "" : ",\n  ", note->number, clock_ms - note->clock_ms,
               hak_match_knobs[note->knob].name, hak_match_knobs[note->knob].values[note->arm],
               note->saving, WORD(event_words, note->event));
        is_first = false;
    }
    puts("]}");
}

/* Reads the process's published results; one that publishes none is asked to. */
static bool read_process(struct target *target, int pid, uint32_t wait_ms, const char **why)
{
    struct ask ask;
    if (target_read(target, pid, why))
        return true;
    if (!target->is_silent || (*why = serving_obstacle(pid)) != NULL ||
        !ask_and_wait(&ask, pid, WATCH_WORDS, wait_ms, why))
        return false;
    ask_end(&ask);
    return target_read(target, pid, why);
}

static void print(void *seen, bool is_json)
{
    const struct target *target = seen;
    if (is_json)
        put_board_json(&target->page.matches, target->page.clock_ms);
    else
        put_board(&target->page.matches, target->page.clock_ms);
}

static int show(int pid, bool is_json)
{
    static struct target target;
    const char *why;
    if (!read_process(&target, pid, ASK_WAIT_MS, &why))
        return complain(EXIT_FAILED, "elo: %s", why);
    if (target.page.matches.mode == MATCHES_OFF)
        return complain(EXIT_FAILED,
                        "elo: process %d plays no matches: start it with HAKMEM_MODE=learning, or "
                        "with matches in HAKMEM_LEARN",
                        pid);
    print(&target, is_json);
    return EXIT_DONE;
}

static bool look(int pid, void *seen)
{
    struct target *target = seen;
    const char *why;
    return read_process(target, pid, PROCESS_WAIT_MS, &why) &&
           target->page.matches.mode != MATCHES_OFF;
}

static int show_all(bool is_json)
{
    static struct target target;
    processes_show(&(struct process_view){.key = "elo",
                                          .none = "no process of this user is known to play "
                                                  "matches: start one with HAKMEM_MODE=learning",
                                          .seen = &target,
                                          .look = look,
                                          .print = print},
                   is_json);
    return EXIT_DONE;
}

static void put_line(const char *name, const struct match_line *line)
{
    printf("%-20s %-24s %6" PRIu64 " %7" PRIu32 " %8" PRIu32 " %5" PRIu32 " %5" PRIu32 " %5" PRIu32
           " %9.4g %9.4g\n",
           name, hak_match_knobs[line->knob].name, hak_match_knobs[line->knob].values[line->arm],
           line->rating, line->matches, line->won, line->matches - line->won - line->lost,
           line->lost, line->gain / 1000.0, line->harm / 1000.0);
}

static void put_line_json(const char *name, const struct match_line *line, bool is_first)
{
    fputs(is_first ? "" : ",\n ", stdout);
    fputs("{\"program\": ", stdout);
    put_json_string(name);
    printf(", \"knob\": \"%s\", \"value\": %" PRIu64 ", \"rating\": %" PRIu32
           ", \"matches\": %" PRIu32 ", \"won\": %" PRIu32 ", \"lost\": %" PRIu32
           ", \"evidence\": %.3f, \"evidence_of_harm\": %.3f}",
           hak_match_knobs[line->knob].name, hak_match_knobs[line->knob].values[line->arm],
           line->rating, line->matches, line->won, line->lost, line->gain / 1000.0,
           line->harm / 1000.0);
}

/* What is saved of each program: half of it counts in the next run. */
static int show_file(const char *path, bool is_json)
{
    static struct learned learned;
    const char *wrong = learned_source_read(&learned, path);
    bool is_first = true;
    if (wrong != NULL)
        return complain(EXIT_FAILED, "elo: %s %s", path, wrong);
    if (is_json)
        putchar('[');
    else
        printf("%-20s %-24s %6s %7s %8s %5s %5s %5s %9s %9s\n", "PROGRAM", "NUMBER", "VALUE",
               "RATING", "MATCHES", "WON", "DRAWN", "LOST", "EVIDENCE", "OF HARM");
    for (uint32_t i = 0; i < learned.count; i++)
        for (uint32_t at = 0; at < learned.programs[i].match_count; at++, is_first = false) {
            if (is_json)
                put_line_json(learned.programs[i].name, &learned.programs[i].matches[at], is_first);
            else
                put_line(learned.programs[i].name, &learned.programs[i].matches[at]);
        }
    if (is_json)
        puts("]");
    return EXIT_DONE;
}

int command_elo(int argument_count, char **arguments)
{
    (void)argument_count;
    bool is_json = false;
    char **words = arguments + 1;
    int status = words_read("elo", words, (struct word_option[]){{"--json", &is_json, NULL}, {0}});
    if (status != EXIT_DONE)
        return status;
    if (words[0] == NULL)
        return show_all(is_json);
    if (words[1] != NULL)
        return complain(EXIT_USAGE, "elo: one process or file at a time, not also '%.60s'",
                        words[1]);
    int pid = process_number_from(words[0]);
    return pid != 0 ? show(pid, is_json) : show_file(words[0], is_json);
}
