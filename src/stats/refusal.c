/* SPDX-License-Identifier: MIT */
#include "stats/refusal.h"

#include "base/bits.h"
#include "base/limits.h"
#include "base/text.h"
#include "conf/conf.h"
#include "heap/limit.h"
#include "os/confine.h"
#include "os/stderr.h"
#include "region/region.h"

static _Atomic uint32_t is_told;

/* New memory comes in steps: so near to the limit it is the limit that refused. What has no room
 * among the addresses is refused with any limit. */
static bool is_limit(size_t bytes)
{
    size_t most = hak_least(hak_region.window_bytes, hak_region_most_bytes());
    return hak_policy_read(limit_bytes) != 0 && bytes <= most &&
           !hak_limit_admits(bytes + 2 * HAK_MIB);
}

void hak_refusal_tell(size_t bytes)
{
    char line[256];
    struct text text = {.start = line, .bytes = sizeof line};
    if (hak_load_relaxed(&is_told) != 0 || hak_os_is_confined() || !is_limit(bytes) ||
        hak_fetch_add_relaxed(&is_told, 1) != 0)
        return;
    hak_text_add(&text, "hakmem: the limit of ");
    hak_conf_add_round(&text, &hak_conf_rows[CONF_limit], (int64_t)hak_policy_read(limit_bytes));
    hak_text_add(&text, " (option limit) is reached: a request of ");
    hak_text_add_number(&text, bytes, 10);
    hak_text_add(&text, " bytes gets NULL; further refusals are not reported");
    hak_os_stderr_line(&text);
}
