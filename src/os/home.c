/* SPDX-License-Identifier: MIT */
#include "os/home.h"

#include "os/output.h"

static uint32_t home_pid; /* 0: not known yet */

void hak_home_begin(void)
{
    home_pid = hak_os_pid();
}

bool hak_is_at_home(void)
{
    return home_pid == hak_os_pid();
}

bool hak_is_away(void)
{
    return home_pid != 0 && !hak_is_at_home();
}
