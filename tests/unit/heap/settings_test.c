/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/settings_test.c - what is read of the machine is read once, not by a small
 * process, and not behind a filter. */
#include "heap/settings.h"

#include "api/api.h"
#include "check.h"
#include "conf/conf.h"
#include "hakmem/hakmem.h"
#include "os/confine.h"
#include "os/node.h"
#include "os/os.h"
#include "os/os_huge.h"

static bool were_read(void)
{
    return hak_load_relaxed(&hak_settings_were_read) != 0;
}

TEST(a_small_process_reads_nothing)
{
    hak_free(hak_malloc(4 * HAK_MIB));
    for (int i = 0; i < 500; i++)
        CHECK(hak_malloc(48) != NULL);
    CHECK(!were_read());
}

TEST(a_small_process_that_confines_itself_reads_before)
{
    hak_free(hak_malloc(1));
    CHECK(!were_read());
    hak_os_confine();
    CHECK(were_read());
}

TEST(a_program_that_forbids_the_thread_has_all_from_the_start)
{
    setenv("HAKMEM_MAINTENANCE", "off", 1);
    hak_conf_start(); /* again: programs start hakmem before main */
    hak_settings_start();
    CHECK(were_read());
}

TEST(behind_a_filter_nothing_is_read)
{
    hak_store_relaxed(&hak_os_confined, true); /* as before hakmem has started */
    void *block = hak_malloc(40 * HAK_MIB);
    CHECK(block != NULL);
    hak_settings_read();
    CHECK(!were_read());
    CHECK_EQ(hak_os_mappings_most(), 65530);
    CHECK(!hak_os_has_nodes());
    hak_free(block);
}
