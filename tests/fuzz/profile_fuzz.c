/* SPDX-License-Identifier: MIT */
/* tests/fuzz/profile_fuzz.c - any bytes as a heap profile: pprof, heap_v2, folded, JSON or a board.
 * What a reader takes, each writer writes, and what it wrote reads back with the same sums. */
#include "fuzz.h"
#include "profiles/board.h"
#include "profiles/formats.h"
#include "profiles/rows.h"

#include <stdio.h>

static struct profile_board board;

enum { SITES = 32 };

/* Fills with the input, again and again. */
static void fill(void *to, size_t bytes, struct input *input, const unsigned char *first)
{
    for (unsigned char *place = to; bytes > 0; bytes--) {
        if (input_is_over(input))
            input->next = first;
        *place++ = (unsigned char)input_byte(input);
    }
}

/* A board of these bytes with a head that is right. */
static bool read_as_board(struct profile *profile, struct input *input)
{
    const unsigned char *first = input->next;
    fill(&board.head, sizeof board.head, input, first);
    fill(board.modules, sizeof board.modules, input, first);
    fill(board.sites, SITES * sizeof *board.sites, input, first);
    board.head.magic = HAK_BOARD_MAGIC;
    board.head.version = HAK_BOARD_VERSION;
    board.head.layout = hak_board_layout();
    board.head.file_bytes = sizeof board;
    for (size_t i = 0; i < HAK_BOARD_MODULES; i++)
        board.modules[i].state = board.modules[i].path[0] % 2;
    for (size_t i = 0; i < SITES; i++)
        board.sites[i].state = BOARD_READY;
    CHECK(is_board(&board, sizeof board));
    return board_read(profile, &board, &board, 0);
}

static void sums_check(const struct profile *left, const struct profile *right, uint64_t most)
{
    for (enum value value = 0; value < VALUE_COUNT; value++) {
        uint64_t first = profile_sum(left, value), second = profile_sum(right, value);
        CHECK(first == second || first > most);
    }
}

/* Of any profile. Numbers of more than 63 bits have no place in pprof. */
static void pprof_check(struct profile *profile)
{
    char *text;
    size_t bytes;
    struct profile again;
    FILE *to = open_memstream(&text, &bytes);
    CHECK(pprof_write(profile, to));
    CHECK_EQ(fclose(to), 0);
    profile_begin(&again);
    CHECK(profile_read(&again, text, bytes));
    CHECK_EQ(again.site_count, profile->site_count);
    sums_check(profile, &again, INT64_MAX);
    profile_end(&again);
    free(text);
}

/* What was written as JSON reads back with the same sums. */
static void json_check(const struct profile *profile)
{
    char *text;
    size_t bytes;
    struct profile again;
    FILE *to = open_memstream(&text, &bytes);
    json_write(profile, to);
    CHECK_EQ(fclose(to), 0);
    profile_begin(&again);
    CHECK(profile_read(&again, text, bytes));
    CHECK_EQ(again.site_count, profile->site_count);
    CHECK_EQ(profile_sum(&again, VALUE_LIVE_BYTES), profile_sum(profile, VALUE_LIVE_BYTES));
    profile_end(&again);
    free(text);
}

static void views_check(const struct profile *profile)
{
    struct rows rows;
    FILE *to = fopen("/dev/null", "w");
    struct table table = {.to = to, .columns = 80, .rows_most = 8};
    CHECK(to != NULL);
    heap_v2_write(profile, to);
    folded_write(profile, VALUE_LIVE_BYTES, to);
    json_write(profile, to);
    flame_write(profile, to);
    rows_make(&rows, profile, BY_LINE);
    rows_sort(&rows, ORDER_LIVE);
    table_profile(&table, &rows, profile);
    table_leaks(&table, &rows, profile, 1);
    table_growth(&table, &rows, profile, 0.1);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < rows.count; i++)
        sum = add_bounded(sum, rows.start[i].values[VALUE_LIVE_BYTES]);
    CHECK_EQ(sum, profile_sum(profile, VALUE_LIVE_BYTES));
    rows_free(&rows);
    fclose(to);
}

/* Each row of a profile has grown by nothing since itself. */
static void growth_check(struct profile *profile)
{
    struct rows rows, before;
    rows_make(&rows, profile, BY_FUNCTION);
    rows_make(&before, profile, BY_FUNCTION);
    rows_compare(&rows, profile, &before, profile);
    CHECK_EQ(rows.count, before.count);
    rows_sort(&rows, ORDER_GROWTH);
    for (uint32_t i = 0; i < rows.count; i++)
        CHECK_EQ(row_growth(&rows.start[i]), 0);
    rows_free(&rows);
    rows_free(&before);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    struct profile profile;
    struct input input = {bytes, bytes + byte_count};
    profile_begin(&profile);
    bool is_read = byte_count > 0 && bytes[0] == 'B'
                       ? read_as_board(&profile, &input)
                       : profile_read(&profile, (const char *)bytes, byte_count);
    CHECK(is_read == (*profile.wrong == '\0'));
    if (is_read) {
        pprof_check(&profile);
        profile_name_unknown(&profile);
        views_check(&profile);
        json_check(&profile);
        growth_check(&profile);
    }
    profile_end(&profile);
    return 0;
}
