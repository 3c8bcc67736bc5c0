/* SPDX-License-Identifier: MIT */
#include "misuse/harden.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "misuse/mark.h"
#include "os/random.h"

_Atomic uint32_t hak_harden = HARDEN_UNSTARTED;

uint64_t hak_harden_secret;
static HAK_TLS uint64_t random_state;

void hak_harden_start(bool is_fenced)
{
    uint32_t set = (uint32_t)hak_conf_number(harden);
    if (is_fenced)
        set |= HARDEN_FENCED;
    if (set != 0 || hak_conf_number(guard_rate) != 0)
        hak_harden_secret = hak_os_random();
    if (set != 0) {
        hak_mark_start();
        set |= HARDEN_EXACT;
    }
    if (hak_conf_number(stats) == STATS_EXACT)
        set |= HARDEN_COUNTED;
    hak_store_relaxed(&hak_harden, set);
}

uint64_t hak_random(void)
{
    if (HAK_UNLIKELY(random_state == 0))
        random_state = hak_bit_mix(hak_harden_secret ^ (uintptr_t)&random_state);
    random_state += 0x9e3779b97f4a7c15ull;
    return hak_bit_mix(random_state ^ hak_harden_secret);
}
