/* SPDX-License-Identifier: MIT */
/* tests/unit/slab/remote_test.c - publish, pending stacks and collect, step by step in one
 * thread. */
#include "check.h"
#include "heap/supply.h"
#include "process/start.h"
#include "slab/remote.h"
#include "slabs.h"
#include "threads.h"

#include <setjmp.h>

static struct slab_owner owner = {.heap_id = 5};
static struct slab_owner other_owner = {.heap_id = 6};
static struct stat_block stats;
static void *blocks[HAK_SLAB_BLOCKS_MAX];

/* A slab of 64-byte blocks of which `taken` are out. */
static struct slab *slab_with(uint32_t taken)
{
    CHECK(hak_process_start());
    struct slab *slab = make_slab(hak_class_of(64), &owner, &stats);
    CHECK(slab != NULL);
    CHECK_EQ(hak_slab_take(slab, blocks, taken), taken);
    return slab;
}

static uint32_t remote_count(struct slab *slab)
{
    return hak_load_relaxed(&slab->remote_count);
}

TEST(a_published_block_is_used_until_it_is_collected)
{
    struct slab *slab = slab_with(4);
    hak_remote_publish(slab, 0, 1u << 2);
    CHECK_EQ(slab->used, 4);
    CHECK_EQ(remote_count(slab), 1);
    CHECK_EQ(hak_pending_take_all(&owner), slab);
    bool is_done = false;
    CHECK_EQ(hak_remote_collect(slab, &is_done), 1);
    CHECK(is_done);
    CHECK_EQ(slab->used, 3);
    CHECK_EQ(remote_count(slab), 0);
    CHECK(hak_slab_is_sound(slab));
    CHECK_EQ(hak_slab_take(slab, blocks, 1), 1);
    CHECK_EQ((uintptr_t)blocks[0], slab->start + 2 * 64);
}

TEST(a_slab_is_on_a_pending_stack_once_however_often_it_is_published)
{
    struct slab *slab = slab_with(6);
    hak_remote_publish(slab, 0, 1u << 0);
    hak_remote_publish(slab, 0, 1u << 3);
    hak_remote_publish(slab, 0, 3u << 4);
    CHECK_EQ(hak_pending_take_all(&owner), slab);
    CHECK_EQ(hak_pending_next(slab), NULL);
    CHECK_EQ(hak_pending_take_all(&owner), NULL);
    /* Its token is held: nobody pushes it while it is being collected. */
    hak_remote_publish(slab, 0, 1u << 1);
    CHECK_EQ(hak_pending_take_all(&owner), NULL);
    bool is_done = false;
    CHECK_EQ(hak_remote_collect(slab, &is_done), 5);
    CHECK(is_done);
    hak_remote_publish(slab, 0, 1u << 2);
    CHECK_EQ(hak_pending_take_all(&owner), slab);
}

TEST(a_publisher_between_count_and_bits_keeps_the_token_with_the_collector)
{
    struct slab *slab = slab_with(5);
    hak_remote_publish(slab, 0, 1u << 0);
    hak_pending_take_all(&owner);
    hak_fetch_add_acq_rel(&slab->remote_count, 2); /* the first half of a publication */
    bool is_done = true;
    CHECK_EQ(hak_remote_collect(slab, &is_done), 1);
    CHECK(!is_done);
    CHECK_EQ(remote_count(slab), 2);
    hak_fetch_or_release(&hak_slab_remote_words(slab)[0], 6u); /* the second half */
    CHECK_EQ(hak_remote_collect(slab, &is_done), 2);
    CHECK(is_done);
    CHECK_EQ(slab->used, 2);
}

TEST(blocks_of_every_bitmap_word_are_collected)
{
    struct slab *slab = slab_with(HAK_TINY ? 8 : 1024);
    for (uint32_t word = 0; word < slab->word_count; word++)
        hak_remote_publish(slab, word, hak_bit_low_mask(slab->block_count - word * 64));
    bool is_done = false;
    hak_pending_take_all(&owner);
    CHECK_EQ(hak_remote_collect(slab, &is_done), slab->block_count);
    CHECK(is_done);
    CHECK_EQ(slab->used, 0);
    CHECK(hak_slab_is_sound(slab));
    hak_supply_retire(slab);
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(a_slab_is_pushed_to_the_owner_it_has_now)
{
    struct slab *slab = slab_with(3);
    hak_store_release(&slab->owner, &other_owner);
    hak_remote_publish(slab, 0, 1);
    CHECK_EQ(hak_pending_take_all(&owner), NULL);
    CHECK_EQ(hak_pending_take_all(&other_owner), slab);
}

TEST(a_chain_holds_every_slab_that_was_pushed)
{
    struct slab *first = slab_with(1), *second = slab_with(1), *third = slab_with(1);
    hak_remote_publish(first, 0, 1);
    hak_remote_publish(second, 0, 1);
    hak_remote_publish(third, 0, 1);
    struct slab *chain = hak_pending_take_all(&owner);
    CHECK_EQ(chain, third);
    CHECK_EQ(hak_pending_next(third), second);
    CHECK_EQ(hak_pending_next(second), first);
    CHECK_EQ(hak_pending_next(first), NULL);
}

TEST(a_block_published_twice_is_a_double_free)
{
    struct slab *slab = slab_with(3);
    hak_remote_publish(slab, 0, 1u << 1);
    CHECK_ABORTS(hak_remote_publish(slab, 0, 1u << 1), "double free");
    CHECK_ABORTS(hak_remote_publish(slab, 0, 3u << 1), "already freed by another thread");
}

TEST(a_block_published_after_its_owner_freed_it_is_a_double_free)
{
    struct slab *slab = slab_with(3);
    bool is_done;
    hak_slab_give(slab, blocks[1]);
    hak_remote_publish(slab, 0, 1u << 1);
    CHECK_REPORTS(hak_remote_collect(slab, &is_done), "double free", "already free");
}

TEST(a_block_published_that_was_never_taken_is_an_invalid_free)
{
    struct slab *slab = slab_with(3);
    bool is_done;
    hak_remote_publish(slab, 0, 1u << 3);
    CHECK_REPORTS(hak_remote_collect(slab, &is_done), "invalid free", "never allocated");
}

static sigjmp_buf outside;

static void jump_out(int number)
{
    (void)number;
    siglongjmp(outside, 1);
}

/* Leaves a publication of the slab's first block by a jump: out of its report of a double free. */
static void *leave_a_publication(void *slab)
{
    signal(SIGABRT, jump_out);
    hak_remote_publish(slab, 0, 1);
    if (sigsetjmp(outside, 1) == 0)
        hak_remote_publish(slab, 0, 1);
    CHECK(hak_remote_is_own());
    return NULL;
}

TEST(a_publication_that_a_jump_left_is_under_way_until_it_is_forgotten)
{
    struct slab *slab = slab_with(2);
    CHECK(!hak_remote_is_own());
    hak_remote_publish(slab, 0, 2);
    CHECK(!hak_remote_is_own());
    leave_a_publication(slab);
    CHECK(!hak_remote_forget_others());
    CHECK(hak_remote_is_own());
    hak_remote_forget_own();
    CHECK(!hak_remote_is_own());
    CHECK(!hak_remote_forget_others());
}

TEST(a_copy_finds_once_that_publications_of_others_were_under_way)
{
    struct slab *slab = slab_with(2);
    CHECK(!hak_remote_forget_others());
    in_thread(leave_a_publication, slab);
    CHECK(!hak_remote_is_own());
    CHECK(hak_remote_forget_others());
    CHECK(!hak_remote_forget_others());
}

TEST(a_slab_whose_count_a_copy_does_not_know_is_counted_and_pushed_again)
{
    struct slab *slab = slab_with(5), *idle = slab_with(5);
    hak_fetch_or_release(&hak_slab_remote_words(slab)[0], 6u); /* and not counted yet */
    hak_fetch_add_acq_rel(&idle->remote_count, 3);             /* and no bits yet */
    hak_pending_restore(idle);
    CHECK_EQ(remote_count(idle), 0);
    CHECK_EQ(hak_pending_take_all(&owner), NULL);
    hak_pending_restore(slab);
    CHECK_EQ(remote_count(slab), 2);
    CHECK_EQ(hak_pending_take_all(&owner), slab);
    bool is_done = false;
    CHECK_EQ(hak_remote_collect(slab, &is_done), 2);
    CHECK(is_done);
}
