/* SPDX-License-Identifier: MIT */
/* tests/unit/profile/size_log_test.c - block-milliseconds are those of the blocks that lived. If
 * this fails, `hakmem classes` weighs sizes wrongly. */
#include "profile/size_log.h"

#include "check.h"
#include "os/os.h"

#define MS UINT64_C(1000000)
#define START (1000 * MS)

static struct size_spread spread;

static struct live_sample sample_of(uint64_t blocks, uint64_t bytes, uint64_t birth_ms)
{
    return (struct live_sample){
        .sum = {blocks, blocks * bytes}, .birth_ns = START + birth_ms * MS, .logged_bytes = bytes};
}

static const struct size_cell *cell_at(size_t bytes, uint64_t at_ms)
{
    CHECK(hak_size_log_read(&spread, START + at_ms * MS));
    return &spread.cells[hak_size_cell_of(bytes)];
}

TEST(nothing_sampled_is_nothing_known)
{
    CHECK(!hak_size_log_read(&spread, START));
    CHECK_EQ(spread.watched_ms, 0);
}

TEST(a_block_counts_for_as_long_as_it_lives)
{
    struct live_sample early = sample_of(3, 100, 0), late = sample_of(5, 112, 40);
    hak_size_log_begin(&early);
    CHECK_EQ(cell_at(100, 10)->block_ms, 30);
    CHECK_EQ(cell_at(100, 10)->slack_ms, 3 * 12 * 10);
    CHECK_EQ(spread.watched_ms, 10);
    CHECK_EQ(spread.samples, 1);
    hak_size_log_begin(&late);
    hak_size_log_end(&early, START + 50 * MS);
    CHECK_EQ(cell_at(100, 50)->block_ms, 3 * 50 + 5 * 10);
    CHECK_EQ(cell_at(100, 50)->slack_ms, 3 * 50 * 12);
    hak_size_log_end(&late, START + 60 * MS);
    CHECK_EQ(cell_at(100, 90)->block_ms, 3 * 50 + 5 * 20);
    CHECK_EQ(cell_at(100, 90)->slack_ms, 3 * 50 * 12);
    CHECK_EQ(spread.watched_ms, 90);
    CHECK_EQ(spread.samples, 2);
}

TEST(large_blocks_are_of_no_class)
{
    struct live_sample large = sample_of(1, 131073, 0), small = sample_of(1, 131072, 0);
    hak_size_log_begin(&large);
    CHECK(!hak_size_log_read(&spread, START + MS));
    hak_size_log_begin(&small);
    hak_size_log_end(&large, START + 5 * MS);
    CHECK_EQ(cell_at(131072, 7)->block_ms, 7);
    CHECK_EQ(spread.samples, 1);
}

TEST(a_size_is_in_its_cell)
{
    struct live_sample first = sample_of(1, 16, 0);
    hak_size_log_begin(&first);
    hak_size_log_end(&first, START);
    for (size_t bytes = 1; bytes <= 131072; bytes += bytes < 4096 ? 1 : 5) {
        struct live_sample sample = sample_of(1, bytes, 0);
        hak_size_log_begin(&sample);
        CHECK_EQ(cell_at(bytes, 1)->block_ms, 1);
        hak_size_log_end(&sample, START);
    }
}

TEST(a_moment_in_between_is_no_huge_sum)
{
    struct live_sample late = sample_of(2, 64, 30), first = sample_of(1, 32, 0);
    hak_size_log_begin(&first);
    hak_size_log_begin(&late);
    /* As seen by a reader that looked at the clock before the sample was taken. */
    CHECK_EQ(cell_at(64, 20)->block_ms, 0);
    CHECK_EQ(cell_at(64, 20)->slack_ms, 0);
    CHECK_EQ(cell_at(64, 31)->block_ms, 2);
}

/* The clock is the real one there. */
TEST(a_block_that_is_resized_counts_in_each_cell_for_as_long_as_it_is_there)
{
    struct live_sample sample = sample_of(3, 100, 0);
    sample.birth_ns = hak_os_clock_ns() - 500 * MS;
    uint64_t birth_ns = sample.birth_ns;
    hak_size_log_begin(&sample);
    hak_size_log_resize(&sample, 112); /* the same cell */
    CHECK_EQ(sample.logged_bytes, 100);
    hak_size_log_resize(&sample, 200);
    CHECK_EQ(sample.logged_bytes, 200);
    CHECK_EQ(sample.birth_ns, birth_ns);
    uint64_t end_ns = hak_os_clock_ns() + 1000 * MS;
    hak_size_log_end(&sample, end_ns);
    CHECK(hak_size_log_read(&spread, end_ns + 1000 * MS));
    const struct size_cell *small = &spread.cells[hak_size_cell_of(100)];
    const struct size_cell *large = &spread.cells[hak_size_cell_of(200)];
    CHECK(small->block_ms >= 3 * 500);
    CHECK_EQ(small->slack_ms, small->block_ms * 12);
    CHECK(large->block_ms >= 3 * 1000);
    CHECK_EQ(large->slack_ms, large->block_ms * 8);
    uint64_t whole_ms = 3 * (end_ns / MS - birth_ns / MS);
    CHECK_EQ(small->block_ms + large->block_ms, whole_ms);
    CHECK_EQ(spread.samples, 2);
}
