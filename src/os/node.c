/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/node.h"

#include "os/confine.h"
#include "os/os.h"
#include "os/os_fault.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As "0-1" or "0,2"; a single one is a number alone. */
#define ONLINE "/sys/devices/system/node/online"

static _Atomic bool has_nodes;

void hak_os_read_nodes(void)
{
    char text[64];
    hak_os_read_text(ONLINE, text, sizeof text);
    hak_store_relaxed(&has_nodes, strpbrk(text, "-,") != NULL);
}

static uint32_t faked_count(void)
{
    return HAK_CHECK_LEVEL < 2 ? 0 : hak_load_relaxed(&hak_os_fault.node_count);
}

bool hak_os_has_nodes(void)
{
    return faked_count() != 0 ? faked_count() > 1 : hak_load_relaxed(&has_nodes);
}

uint32_t hak_os_node(void)
{
    unsigned cpu = 0, node = 0;
    if (!hak_os_has_nodes() || hak_os_is_confined())
        return 0;
    if (faked_count() != 0)
        return hak_load_relaxed(&hak_os_fault.node) % HAK_NODES_MOST;
    int saved = errno;
#ifdef __GLIBC__
    getcpu(&cpu, &node); /* the vDSO answers */
#else
    syscall(SYS_getcpu, &cpu, &node, NULL);
#endif
    errno = saved;
    return node % HAK_NODES_MOST;
}
