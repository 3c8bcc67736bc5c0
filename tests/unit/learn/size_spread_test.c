/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/size_spread_test.c - cells cover every request, lines say what the spread says,
 * and cutting changes nothing for the classes there are. If this fails, `hakmem classes` counts
 * bytes that are not there. */
#include "learn/size_spread.h"

#include "check.h"
#include "slab/size_class.h"

#include <string.h>

static struct size_spread spread, again;
static struct size_lines lines;
static char text[(HAK_SIZE_CELLS + 1) * HAK_SIZE_LINE_BYTES];

static size_t write_lines(void)
{
    struct text out = {.start = text, .bytes = sizeof text};
    hak_size_lines_write(&out, &lines);
    return out.used;
}

/* Something in every cell that there is. */
static void fill(void)
{
    memset(&spread, 0, sizeof spread);
    spread.watched_ms = 5000;
    spread.samples = 700;
    for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++)
        if (hak_size_cell_need(i) != 0)
            spread.cells[i] = (struct size_cell){1000 + i * 7919 % 5000, i};
}

/* Byte-milliseconds that the classes there are take beyond what was asked for. */
static uint64_t waste_of(const struct size_spread *of)
{
    uint64_t waste = 0;
    for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++) {
        uint32_t need = hak_size_cell_need(i);
        if (need == 0)
            continue;
        uint64_t block = hak_size_classes[hak_class_of(need)].block_bytes;
        waste += (block - need) * of->cells[i].block_ms + of->cells[i].slack_ms;
    }
    return waste;
}

TEST(every_request_has_the_smallest_cell_that_serves_it)
{
    for (size_t bytes = 1; bytes <= HAK_CLASS_BYTES_MAX; bytes++) {
        uint32_t cell = hak_size_cell_of(bytes), need = hak_size_cell_need(cell);
        CHECK(cell < HAK_SIZE_CELLS);
        CHECK(need >= bytes);
        CHECK_EQ(hak_class_of(need), hak_class_of(bytes));
        CHECK_EQ(hak_size_cell_of(need), cell);
        CHECK(need == 8 || need % 16 == 0);
        if (bytes > 8 && bytes <= 2048)
            CHECK_EQ(need, (bytes + 15) / 16 * 16);
    }
}

TEST(needs_ascend)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++) {
        uint32_t need = hak_size_cell_need(i);
        CHECK(need == 0 || need > last);
        last = need == 0 ? last : need;
    }
    CHECK_EQ(last, HAK_CLASS_BYTES_MAX);
}

TEST(a_block_costs_its_share_of_the_slab_that_it_has)
{
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        const struct size_class *size = &hak_size_classes[i];
        size_t slab = (size_t)size->granule_count << HAK_GRANULE_SHIFT;
        CHECK_EQ(hak_size_share_bytes(size->block_bytes),
                 (slab + size->block_count - 1) / size->block_count);
    }
}

TEST(a_written_spread_is_read_back)
{
    memset(&spread, 0, sizeof spread);
    spread.watched_ms = 12;
    spread.samples = 3;
    spread.cells[hak_size_cell_of(8)] = (struct size_cell){1, 0};
    spread.cells[hak_size_cell_of(100)] = (struct size_cell){HAK_SIZE_NUMBER_MOST, 77};
    spread.cells[hak_size_cell_of(131072)] = (struct size_cell){5, HAK_SIZE_NUMBER_MOST};
    again = spread;
    hak_size_spread_cut(&again, &lines);
    CHECK_EQ(lines.count, 3);
    size_t bytes = write_lines();
    CHECK_EQ(bytes, strlen("sizes 12 3\nsize 8 1 0\nsize 112 99999999999999 77\n"
                           "size 131072 5 99999999999999\n"));
    CHECK_EQ(hak_size_spread_read(&again, text, bytes), bytes);
    CHECK(memcmp(&spread, &again, sizeof spread) == 0);
    CHECK_EQ(hak_size_spread_read(&again, text, bytes - 1), 0);
}

TEST(other_forms_are_refused)
{
    static const char *const wrong[] = {
        "",
        "sizes 12 3\n",
        "sizes 0 3\nsize 8 1 0\n",
        "sizes 12 3\nsize 8 0 0\n",
        "sizes 12 3\nsize 24 1 0\n",
        "sizes 12 3\nsize 0 1 0\n",
        "sizes 12 3\nsize 131088 1 0\n",
        "sizes 12 3\nsize 32 1 0\nsize 16 1 0\n",
        "sizes 12 3\nsize 32 1 0\nsize 32 1 0\n",
        "sizes 12 3\nsize 32 01 0\n",
        "sizes 12 3\nsize 32 100000000000000 0\n",
        "sizes 12\nsize 32 1 0\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_EQ(hak_size_spread_read(&again, wrong[i], strlen(wrong[i])), 0);
        CHECK_EQ(again.watched_ms, 0);
    }
}

TEST(cutting_keeps_the_waste_of_todays_classes)
{
    fill();
    uint64_t waste = waste_of(&spread), blocks = 0;
    CHECK(hak_size_spread_used(&spread) > HAK_SIZE_LINES_MOST);
    for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++)
        blocks += spread.cells[i].block_ms;
    hak_size_spread_cut(&spread, &lines);
    CHECK_EQ(lines.count, HAK_SIZE_LINES_MOST);
    memset(&again, 0, sizeof again);
    hak_size_spread_add(&again, &lines);
    CHECK_EQ(waste_of(&again), waste);
    for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++)
        blocks -= again.cells[i].block_ms;
    CHECK_EQ(blocks, 0);
    CHECK_EQ(again.watched_ms, 5000);
    CHECK_EQ(again.samples, 700);
}

TEST(numbers_that_are_too_large_are_halved_together)
{
    memset(&spread, 0, sizeof spread);
    spread.watched_ms = 1000;
    spread.samples = 10;
    spread.cells[hak_size_cell_of(48)] = (struct size_cell){4 * HAK_SIZE_NUMBER_MOST, 0};
    spread.cells[hak_size_cell_of(64)] = (struct size_cell){800, 400};
    hak_size_spread_bound(&spread);
    CHECK_EQ(spread.watched_ms, 250);
    CHECK_EQ(spread.samples, 10);
    CHECK_EQ(spread.cells[hak_size_cell_of(48)].block_ms, HAK_SIZE_NUMBER_MOST);
    CHECK_EQ(spread.cells[hak_size_cell_of(64)].block_ms, 200);
    CHECK_EQ(spread.cells[hak_size_cell_of(64)].slack_ms, 100);
}

TEST(half_of_little_is_nothing)
{
    lines = (struct size_lines){.watched_ms = 1000, .samples = 9, .count = 2};
    lines.lines[0] = (struct size_line){16, {1, 5}};
    lines.lines[1] = (struct size_line){32, {100, 50}};
    hak_size_lines_halve(&lines);
    CHECK_EQ(lines.watched_ms, 500);
    CHECK_EQ(lines.samples, 4);
    CHECK_EQ(lines.count, 1);
    CHECK_EQ(lines.lines[0].need_bytes, 32);
    CHECK_EQ(lines.lines[0].cell.block_ms, 50);
    CHECK_EQ(lines.lines[0].cell.slack_ms, 25);
    for (int i = 0; i < 7; i++)
        hak_size_lines_halve(&lines);
    CHECK_EQ(lines.count, 0);
    CHECK_EQ(write_lines(), 0);
}
