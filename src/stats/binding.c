/* SPDX-License-Identifier: MIT */
#include "stats/binding.h"

#include "base/atomic.h"
#include "os/stderr.h"
#include "stats/counters.h"

#include <string.h>

HAK_AT_HAND static bool are_names_elsewhere;

void hak_binding_note(bool is_elsewhere)
{
    are_names_elsewhere = is_elsewhere;
}

bool hak_is_shadowed(void)
{
    return are_names_elsewhere && hak_load_relaxed(&hak_stat_globals.threads_started) == 0;
}

void hak_binding_tell(void)
{
    static const char line[] =
        "hakmem: the library is mapped but serves nothing: another malloc comes first, the "
        "program's own or one preloaded before\n";
    if (hak_is_shadowed())
        hak_os_stderr_write(line, strlen(line));
}
