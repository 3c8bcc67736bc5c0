/* SPDX-License-Identifier: MIT */
#include "region/huge_pace.h"

#include "os/os.h"
#include "policy/policy_table.h"

bool hak_huge_is_slow(uint32_t granule)
{
    uint64_t before_ns = hak_os_clock_ns();
    hak_os_touch(hak_granule_address(granule), 1);
    return (hak_os_clock_ns() - before_ns) / 1000 >= hak_policy_read(huge_slow_us);
}
