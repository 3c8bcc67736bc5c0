/* SPDX-License-Identifier: MIT */
/* tests/unit/os/listen_test.c - a signal reaches the listener and its earlier handler. */
#include "os/listen.h"

#include "check.h"
#include "os/os.h"

static int heard_count, handled_count;

static void hear(void)
{
    heard_count++;
}

static void handle(int number)
{
    handled_count += number;
}

TEST(signals_have_names_and_numbers)
{
    CHECK_EQ(hak_os_signal_find("USR2"), SIGUSR2);
    CHECK_EQ(hak_os_signal_find("SIGUSR1"), SIGUSR1);
    CHECK_EQ(hak_os_signal_find("1"), SIGHUP);
    CHECK_EQ(hak_os_signal_find("40"), 40);
}

TEST(signals_that_cannot_be_caught_are_refused)
{
    static const char *const wrong[] = {"",   "KILL", "9",    "SEGV", "11",
                                        "19", "0",    "65",   "33",   "1 ",
                                        "-1", "0x1",  "usr3", "SIG",  "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(hak_os_signal_find(wrong[i]), 0);
}

TEST(the_listener_hears_and_the_process_goes_on)
{
    CHECK(hak_os_signal_listen(SIGUSR2, hear));
    raise(SIGUSR2);
    raise(SIGUSR2);
    CHECK_EQ(heard_count, 2);
}

TEST(an_earlier_handler_is_called_as_before)
{
    signal(SIGUSR2, handle);
    CHECK(hak_os_signal_listen(SIGUSR2, hear));
    raise(SIGUSR2);
    CHECK_EQ(heard_count, 1);
    CHECK_EQ(handled_count, SIGUSR2);
}

TEST(a_later_handler_takes_the_signal_over)
{
    CHECK(hak_os_signal_listen(SIGUSR2, hear));
    signal(SIGUSR2, handle);
    raise(SIGUSR2);
    CHECK_EQ(heard_count, 0);
    CHECK_EQ(handled_count, SIGUSR2);
}
