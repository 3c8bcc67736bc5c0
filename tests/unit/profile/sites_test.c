/* SPDX-License-Identifier: MIT */
/* tests/unit/profile/sites_test.c - stacks have sites, which are never lost and are bounded. */
#include "profile/sites.h"

#include "../../check.h"
#include "process/start.h"

static struct profile_board board;

static uint32_t find(uintptr_t seed, uint32_t depth)
{
    uintptr_t frames[HAK_BOARD_FRAMES + 8];
    for (uint32_t i = 0; i < depth; i++)
        frames[i] = 0x400000 + seed * 64 + i;
    return hak_sites_find(frames, depth, true);
}

TEST(a_stack_has_one_site)
{
    CHECK(hak_process_start());
    uint32_t site = find(1, 5);
    CHECK(site != 0);
    CHECK_EQ(find(1, 5), site);
    CHECK(find(1, 4) != site);
    CHECK(find(2, 5) != site);
    CHECK_EQ(hak_sites_at(site)->frame_count, 5);
    CHECK_EQ(hak_sites_at(site)->frames[4], 0x400000 + 64 + 4);
    CHECK_EQ(hak_sites_count(), 4);
    CHECK_EQ(find(0, 0), 0);
    CHECK_EQ(hak_sites_at(find(9, HAK_BOARD_FRAMES + 8))->frame_count, HAK_BOARD_FRAMES);
}

TEST(sums_are_shown_where_a_board_is_and_brought_there_where_one_comes_later)
{
    CHECK(hak_process_start());
    uint32_t first = find(1, 5);
    hak_sites_note_taken(first, (struct sample_sum){10, 1000}, 70);
    hak_sites_show(&board, 40);
    CHECK_EQ(hak_load_relaxed(&board.sites[first].allocated_bytes), 1000);
    CHECK_EQ(board.sites[first].frames[4], 0x400000 + 64 + 4);
    hak_sites_note_taken(first, (struct sample_sum){1, 7}, 71);
    hak_sites_note_ended(first, (struct sample_sum){10, 1000}, 5000000);
    uint32_t second = find(2, 3);
    hak_sites_note_taken(second, (struct sample_sum){2, 8}, 72);
    const struct board_site *shown = &board.sites[first];
    CHECK_EQ(hak_load_relaxed(&shown->allocated_bytes), 1007);
    CHECK_EQ(hak_load_relaxed(&shown->allocated_count), 11);
    CHECK_EQ(hak_load_relaxed(&shown->freed_count), 10);
    CHECK_EQ(hak_load_relaxed(&shown->samples), 2);
    CHECK_EQ(hak_load_relaxed(&shown->ended_samples), 1);
    CHECK_EQ(hak_load_relaxed(&shown->life_us), 50000);
    CHECK_EQ(hak_load_relaxed(&shown->life[2]), 1); /* 4 to 16 ms */
    CHECK_EQ(hak_load_relaxed(&shown->first_ms), 70);
    CHECK_EQ(hak_load_relaxed(&shown->last_ms), 71);
    CHECK_EQ(hak_load_relaxed(&shown->oldest_ms), 70);
    CHECK_EQ(hak_load_relaxed(&board.sites[second].allocated_bytes), 8);
    CHECK_EQ(hak_load_relaxed(&board.head.site_count), 3);
    hak_sites_note_ended(first, (struct sample_sum){1, 7}, 1);
    CHECK_EQ(hak_load_relaxed(&shown->oldest_ms), 0); /* none is live */

    hak_sites_show(NULL, 0);
    hak_sites_note_taken(first, (struct sample_sum){1, 1}, 80);
    CHECK_EQ(hak_load_relaxed(&shown->allocated_bytes), 1007);
    hak_sites_show(&board, 40);
    CHECK_EQ(hak_load_relaxed(&shown->allocated_bytes), 1008);
}

TEST(freeing_sites_are_shown_and_leave_room_for_allocating_sites)
{
    CHECK(hak_process_start());
    uintptr_t frames[3] = {0x500000, 0x500001, 0x500002};
    uint32_t site = find(1, 5), freeing = hak_sites_find_freeing(frames, 3);
    CHECK(freeing != 0 && freeing != site);
    CHECK_EQ(hak_sites_find_freeing(frames, 3), freeing);
    CHECK_EQ(hak_sites_find_freeing(frames, 0), 0);
    hak_sites_note_freed_by(site, freeing);
    hak_sites_show(&board, 40);
    CHECK_EQ(hak_load_relaxed(&board.sites[site].freed_by), freeing);
    CHECK_EQ(board.sites[freeing].frames[2], 0x500002);
    hak_sites_note_freed_by(site, 7);
    CHECK_EQ(hak_load_relaxed(&board.sites[site].freed_by), 7);
    for (uint32_t i = 0; hak_sites_count() < HAK_BOARD_SITES / 2; i++)
        CHECK(find(100 + i, 3) != 0);
    frames[0] = 0x600000;
    CHECK_EQ(hak_sites_find_freeing(frames, 3), 0);
    CHECK(find(5000, 3) != 0);
    frames[0] = 0x500000;
    CHECK_EQ(hak_sites_find_freeing(frames, 3), freeing);
}

TEST(stacks_are_cut_when_sites_run_short_and_the_rest_is_counted)
{
    CHECK(hak_process_start());
    uint32_t whole = 0, cut = 0, other = 0;
    for (uintptr_t i = 0; i < 3 * HAK_BOARD_SITES; i++) {
        uint32_t site = find(i, 20), frames = (uint32_t)hak_sites_at(site)->frame_count;
        whole += frames == 20;
        cut += frames == 8 || frames == 3;
        other += site == 0;
    }
    CHECK(whole > HAK_BOARD_SITES / 2);
    CHECK(cut > HAK_BOARD_SITES / 5);
    CHECK(other > 0);
    CHECK_EQ(whole + cut + other, 3 * HAK_BOARD_SITES);
    CHECK(hak_sites_count() <= HAK_BOARD_SITES);
    CHECK_EQ(hak_load_relaxed(&hak_sites_dropped.sites_full), other);
    CHECK_EQ(find(3, 20), find(3, 20)); /* known ones are found still */
    CHECK_EQ(hak_sites_at(find(3, 20))->frame_count, 20);
}

TEST(life_times_add_up_without_running_over)
{
    CHECK(hak_process_start());
    uint32_t site = find(1, 5);
    for (int i = 0; i < 100; i++)
        hak_sites_note_ended(site, (struct sample_sum){1ull << 40, 1}, 1ull << 50);
    CHECK(hak_load_relaxed(&hak_sites_at(site)->life_us) <= 1ull << 62);
}
