/* SPDX-License-Identifier: MIT */
/* tests/unit/os/node_test.c - where a thread runs. */
#define _GNU_SOURCE
#include "os/node.h"

#include "check.h"
#include "faults.h"
#include "os/os.h"
#include "os/os_fault.h"

#include <errno.h>

static bool machine_has_nodes(void)
{
    char text[64] = "";
    hak_os_read_file("/sys/devices/system/node/online", text, sizeof text - 1);
    return strpbrk(text, ",-") != NULL;
}

TEST(the_nodes_are_the_machines_unless_they_are_faked)
{
    CHECK(!hak_os_has_nodes());
    errno = 77;
    hak_os_read_nodes();
    CHECK_EQ(hak_os_has_nodes(), machine_has_nodes());
    CHECK(machine_has_nodes() || hak_os_node() == 0);
    CHECK(hak_os_node() < HAK_NODES_MOST);
    CHECK_EQ(errno, 77);
}

TEST(a_faked_topology_is_believed)
{
    need_faults();
    hak_store_relaxed(&hak_os_fault.node, 3);
    hak_store_relaxed(&hak_os_fault.node_count, 1);
    CHECK(!hak_os_has_nodes());
    CHECK_EQ(hak_os_node(), 0);
    hak_store_relaxed(&hak_os_fault.node_count, 4);
    CHECK(hak_os_has_nodes());
    CHECK_EQ(hak_os_node(), 3);
    hak_store_relaxed(&hak_os_fault.node, HAK_NODES_MOST + 1);
    CHECK_EQ(hak_os_node(), 1);
}
