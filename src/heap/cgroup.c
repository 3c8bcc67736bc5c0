/* SPDX-License-Identifier: MIT */
#include "heap/cgroup.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "heap/limit.h"
#include "os/cgroup.h"
#include "os/confine.h"

/* What is no hakmem memory needs room below memory.max, too. */
#define SHARE_OF_MAX_PERCENT 90
/* What the threads that can run at a time may keep cached, for each CPU of the quota. */
#define CACHE_BYTES_PER_CPU (8 * HAK_MIB)
#define PRESSURE_LOOK_MS 500
#define PRESSED_PERCENT 10

const char *hak_own_cgroup_root = "";

static _Atomic uint32_t tells_pressure;
static char pressure_path[HAK_CGROUP_PATH_BYTES];
static uint64_t last_stall_us;
static uint64_t last_look_ms;

static void apply_memory(const struct cgroup *cgroup)
{
    size_t bytes = cgroup->high_bytes;
    if (cgroup->max_bytes != SIZE_MAX)
        bytes = hak_least(bytes, cgroup->max_bytes / 100 * SHARE_OF_MAX_PERCENT);
    if (bytes != SIZE_MAX && hak_conf.source[CONF_soft_limit] == CONF_BUILT_IN)
        hak_store_relaxed(&hak_limit_group_bytes, hak_most(bytes, 1));
}

static void apply_cpus(uint32_t cpus)
{
    size_t bytes = (size_t)cpus * CACHE_BYTES_PER_CPU;
    if (bytes < hak_policy_read(process_cache_bytes))
        hak_store_relaxed(&hak_policy.process_cache_bytes, bytes);
    if (cpus == 1)
        hak_store_relaxed(&hak_policy.spin_rounds, 0);
}

void hak_own_cgroup_read(void)
{
    struct cgroup cgroup;
    hak_cgroup_read(&cgroup, hak_own_cgroup_root);
    apply_memory(&cgroup);
    if (cgroup.cpus != 0)
        apply_cpus(cgroup.cpus);
    for (size_t i = 0; i < sizeof pressure_path; i++)
        pressure_path[i] = cgroup.pressure_path[i];
    /* release: partner is the acquire in hak_own_cgroup_tells_pressure; the path is whole then */
    hak_store_release(&tells_pressure, pressure_path[0] != '\0');
}

size_t hak_own_cgroup_room_bytes(void)
{
    if (!hak_os_ask_begin())
        return SIZE_MAX;
    size_t bytes = hak_cgroup_room_bytes(hak_own_cgroup_root);
    hak_os_ask_end();
    return bytes;
}

bool hak_own_cgroup_tells_pressure(void)
{
    /* acquire: partner is the release in hak_own_cgroup_read */
    return hak_load_acquire(&tells_pressure) != 0;
}

static bool read_stall(uint64_t *stall_us)
{
    if (!hak_os_ask_begin())
        return false;
    bool is_read = hak_cgroup_stall_us(pressure_path, stall_us);
    hak_os_ask_end();
    return is_read;
}

bool hak_own_cgroup_is_pressed(uint64_t now_ms)
{
    uint64_t stall_us;
    uint64_t passed_ms = now_ms - last_look_ms;
    if (passed_ms < PRESSURE_LOOK_MS || !hak_own_cgroup_tells_pressure() || !read_stall(&stall_us))
        return false;
    uint64_t stalled_us = last_look_ms == 0 ? 0 : stall_us - last_stall_us;
    last_look_ms = now_ms;
    last_stall_us = stall_us;
    return stalled_us >= passed_ms * 1000 / 100 * PRESSED_PERCENT;
}
