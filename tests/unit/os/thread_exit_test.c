/* SPDX-License-Identifier: MIT */
/* tests/unit/os/thread_exit_test.c - what runs when a thread ends. */
#include "os/thread_exit.h"

#include "check.h"
#include "threads.h"

#include <errno.h>

static int ended_count;
static void *ended_with;

static void note(void *value)
{
    ended_count++;
    ended_with = value;
}

static void *set(void *value)
{
    errno = 77;
    CHECK(!hak_thread_is_first());
    CHECK_EQ(errno, 77);
    CHECK(value == NULL || hak_thread_exit_set(value));
    return NULL;
}

TEST(a_thread_that_set_a_value_is_noted_when_it_ends_and_no_other)
{
    CHECK(hak_thread_exit_start(note));
    in_thread(set, NULL);
    CHECK_EQ(ended_count, 0);
    in_thread(set, &ended_count);
    CHECK_EQ(ended_count, 1);
    CHECK_EQ(ended_with, (void *)&ended_count);
}

TEST(nothing_can_be_set_before_the_start)
{
    CHECK(!hak_thread_exit_set(&ended_count));
}

TEST(a_process_whose_keys_are_used_up_has_none)
{
    pthread_key_t other;
    while (pthread_key_create(&other, NULL) == 0)
        ;
    CHECK(!hak_thread_exit_start(note));
    CHECK(!hak_thread_exit_set(&ended_count));
}

TEST(the_first_thread_knows_that_it_is)
{
    CHECK(hak_thread_is_first());
    in_thread(set, NULL);
}
