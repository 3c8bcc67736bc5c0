/* SPDX-License-Identifier: MIT */
#include "heap/settings.h"

#include "conf/conf.h"
#include "heap/cgroup.h"
#include "os/confine.h"
#include "os/fault_watch.h"
#include "os/node.h"
#include "os/os.h"
#include "os/os_huge.h"

_Atomic uint32_t hak_settings_were_read;

void hak_settings_read(void)
{
    if (!hak_os_ask_begin())
        return;
    if (hak_flag_take(&hak_settings_were_read)) { /* for good */
        hak_os_read_huge_pages();
        hak_os_read_mappings_most();
        hak_os_read_nodes();
        hak_own_cgroup_read();
    }
    hak_os_ask_end();
}

static void prepare_for_confinement(void)
{
    hak_settings_read();
    hak_os_fault_watch_end();
}

void hak_settings_start(void)
{
    hak_os_on_confinement(prepare_for_confinement);
    if (hak_conf_number(maintenance) == MAINTENANCE_OFF || hak_conf_number(thp) == THP_ON)
        hak_settings_read();
}
