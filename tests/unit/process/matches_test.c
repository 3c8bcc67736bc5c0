/* SPDX-License-Identifier: MIT */
/* tests/unit/process/matches_test.c - rows of the policy move for a window at a time, and are as
 * they were wherever the matches end. */
#include "process/matches.h"

#include "api/api.h"
#include "check.h"
#include "conf/conf.h"
#include "heap/slow_clock.h"
#include "learn/learned_file.h"
#include "os/confine.h"
#include "policy/policy_table.h"
#include "process/fork.h"
#include "process/start.h"

#include <pthread.h>
#include <time.h>

static struct match_board board;

static void begin(int64_t words)
{
    CHECK(hak_process_start());
    hak_conf.number[CONF_learn] = words;
    hak_store_relaxed(&hak_policy.match_ms, 10);
    hak_store_relaxed(&hak_policy.match_bytes, 64 * 1024);
    hak_store_relaxed(&hak_policy.match_operations, 10);
    hak_matches_begin();
}

/* What a program does in a few milliseconds. */
static void work(void)
{
    enum { BLOCKS = 3000 };
    static void *blocks[BLOCKS];
    for (uint32_t i = 0; i < BLOCKS; i++)
        blocks[i] = hak_malloc(16 + i % 50 * 16);
    for (uint32_t i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    for (int i = 0; i < 8; i++)
        hak_free(hak_malloc(2 << 20));
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static bool rows_are_usual(void)
{
    return hak_policy_read(flush_keep_percent) == 50 &&
           hak_policy_read(big_cache_scale_percent) == 100;
}

/* Works until so many matches were played. */
static void play(uint32_t matches)
{
    for (int i = 0; i < 20000 && board.note_count < matches; i++) {
        work();
        hak_matches_look();
        hak_matches_copy(&board);
    }
    CHECK(board.note_count >= matches);
}

TEST(without_the_word_nothing_is_played)
{
    begin(LEARN_BIG_CACHE | LEARN_DECAY);
    for (int i = 0; i < 50; i++) {
        work();
        hak_matches_tick();
    }
    CHECK(hak_matches_copy(&board));
    CHECK_EQ(board.mode, MATCHES_OFF);
    CHECK_EQ(board.note_count, 0);
    CHECK_EQ(hak_load_relaxed(&hak_slow_clock), 0);
    CHECK(rows_are_usual());
}

TEST(usual_values_are_the_initial_ones_of_their_rows)
{
    static const uint64_t initial[] = {
#define X(name, initial, least, most, meaning) initial,
        HAK_POLICY_TABLE(X)
#undef X
    };
    enum {
#define X(name, initial, least, most, meaning) ROW_##name,
        HAK_POLICY_TABLE(X)
#undef X
    };
#define X(row, count, usual, second, third, fourth, what) CHECK_EQ(initial[ROW_##row], (usual));
    HAK_KNOB_TABLE(X)
#undef X
}

TEST(every_value_is_within_the_clamps_of_its_row)
{
    static const uint64_t clamps[][2] = {
#define X(name, initial, least, most, meaning) {least, most},
        HAK_POLICY_TABLE(X)
#undef X
    };
    enum {
#define X(name, initial, least, most, meaning) ROW_##name,
        HAK_POLICY_TABLE(X)
#undef X
    };
#define X(row, count, usual, second, third, fourth, what)                                          \
    for (int i = 0; i < (count); i++) {                                                            \
        uint64_t value = ((const uint64_t[]){usual, second, third, fourth})[i];                    \
        CHECK(value >= clamps[ROW_##row][0] && value <= clamps[ROW_##row][1]);                     \
    }
    HAK_KNOB_TABLE(X)
#undef X
}

TEST(matches_are_played_and_noted)
{
    begin(LEARN_MATCHES);
    play(8);
    CHECK_EQ(board.mode, MATCHES_PLAYED);
    uint32_t counted = 0;
    for (uint32_t i = 0; i < KNOB_COUNT; i++) {
        counted += board.contests[i].matches + board.contests[i].voids;
        CHECK(board.contests[i].matches + board.contests[i].voids >= 3); /* in turns */
    }
    CHECK_EQ(counted, board.note_count);
    for (uint32_t i = 1; i <= board.note_count && i < HAK_MATCHES_KEPT; i++) {
        CHECK_EQ(board.notes[i].number, i);
        CHECK(board.notes[i].arm > 0);
    }
    CHECK(board.budget.cost_ns > 0);
}

TEST(rows_move_one_at_a_time_and_to_known_values)
{
    bool has_moved = false;
    begin(LEARN_MATCHES);
    for (int i = 0; i < 600; i++) {
        work();
        hak_matches_look();
        uint64_t keep = hak_policy_read(flush_keep_percent);
        uint64_t scale = hak_policy_read(big_cache_scale_percent);
        CHECK(keep == 50 || keep == 25 || keep == 75);
        CHECK(scale == 100 || scale == 50 || scale == 200 || scale == 400);
        hak_matches_copy(&board);
        bool holds_usual = board.contests[0].holds == 0 && board.contests[1].holds == 0;
        CHECK(!holds_usual || keep == 50 || scale == 100);
        has_moved = has_moved || keep != 50 || scale != 100;
    }
    CHECK(has_moved);
}

static void check_stopped(void)
{
    CHECK(rows_are_usual() || board.contests[0].holds != 0 || board.contests[1].holds != 0);
    CHECK_EQ(hak_load_relaxed(&hak_matches_are_on), 0);
    CHECK_EQ(hak_load_relaxed(&hak_slow_clock), 0);
    CHECK(hak_matches_copy(&board));
    CHECK_EQ(board.mode, MATCHES_STOPPED);
}

/* Ends the look of a process that is in the middle of anything: a child finds what held. */
TEST(a_child_of_any_moment_keeps_what_held_and_plays_nothing)
{
    begin(LEARN_MATCHES);
    for (int i = 0; i < 120; i++) {
        work();
        hak_matches_look();
        if (i % 4 != 0)
            continue;
        CHECK_EXITS(check_stopped(), 0);
    }
}

static void begin_a_match(void)
{
    begin(LEARN_MATCHES);
    for (int i = 0; i < 200 && rows_are_usual(); i++) {
        work();
        hak_matches_look();
    }
    CHECK(!rows_are_usual());
}

/* The background thread may look in the pause, and begin a window that has its time from then on:
 * what is waited for is the match that was given up. */
TEST(an_idle_program_has_its_usual_values)
{
    begin_a_match();
    bool is_given_up = false;
    for (int i = 0; i < 2000 && !is_given_up; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        hak_matches_look();
        is_given_up = hak_matches_copy(&board) && board.note_count > 0 &&
                      board.notes[board.note_count % HAK_MATCHES_KEPT].event == CONTEST_VOID &&
                      rows_are_usual();
    }
    CHECK(is_given_up);
}

TEST(a_program_that_confines_itself_has_its_usual_values)
{
    begin_a_match();
    hak_store_relaxed(&hak_os_confined, true);
    hak_matches_look();
    CHECK(rows_are_usual());
    CHECK_EQ(hak_load_relaxed(&hak_matches_are_on), 0);
    CHECK(hak_matches_copy(&board));
    CHECK_EQ(board.mode, MATCHES_STOPPED);
}

TEST(in_shadow_nothing_that_wins_holds)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.learn_acts, 0);
    begin(LEARN_MATCHES);
    play(2);
    CHECK_EQ(board.mode, MATCHES_SHADOW);
    for (uint32_t i = 0; i < KNOB_COUNT; i++) {
        CHECK_EQ(board.contests[i].may_act, 0);
        CHECK_EQ(board.contests[i].holds, 0);
    }
}

#define LOOKS 200000

static _Atomic int looks_left = LOOKS;

static void *play_on(void *argument)
{
    while (--looks_left > 0)
        hak_matches_look();
    return argument;
}

/* The end of a process comes while its other threads still play. */
TEST(what_is_known_is_told_whichever_thread_plays)
{
    static struct learned_program program;
    pthread_t thread;
    begin(LEARN_MATCHES);
    play(1);
    CHECK_EQ(pthread_create(&thread, NULL, play_on, NULL), 0);
    while (looks_left > 0) {
        program.match_count = UINT32_MAX;
        hak_matches_tell(&program);
        CHECK(program.match_count <= HAK_MATCH_LINES_MOST);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
}
