/* SPDX-License-Identifier: MIT */
#include "process/prewarm.h"

#include "base/bits.h"
#include "base/text.h"
#include "conf/conf.h"
#include "heap/cgroup.h"
#include "heap/limit.h"
#include "heap/supply.h"
#include "misuse/zero_size.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/stderr.h"
#include "policy/policy_table.h"
#include "process/learned.h"
#include "process/matches.h"
#include "process/start.h"
#include "region/mappings.h"
#include "region/meta.h"
#include "span/large.h"
#include "span/span_free.h"

/* The share of prewarmed memory that is taken for metadata: enough for slabs of blocks of 16 bytes,
 * and for the caches of one processor per 4 MiB. */
#define RECORDS_SHARE 16
/* Of the memory that there is, a share that is left to others. */
#define SPARED_SHARE 10

/* With huge pages if the kernel has some, since all of the block is touched. They are refused from
 * then on, so that memory returned later is not filled again. Both in one piece, whose ends alone
 * divide mappings: it may be long. */
static void touch_block(char *start, size_t bytes)
{
    size_t whole_bytes = hak_align_down(bytes, HAK_SUPERSLAB_BYTES);
    struct granule_range range = {hak_granule_of(start),
                                  (uint32_t)(whole_bytes >> HAK_GRANULE_SHIFT)};
    bool is_wished = whole_bytes != 0 && hak_conf_number(thp) == THP_AUTO &&
                     hak_mappings_admit_advice(range.first) &&
                     hak_mappings_admit_advice(range.first + range.count - 1) &&
                     hak_os_wish_huge_pages(start, whole_bytes);
    hak_os_touch(start, bytes);
    if (is_wished)
        hak_os_refuse_huge_pages(start, whole_bytes);
}

static void tell_prewarm(size_t wished_bytes, size_t bytes)
{
    char line[256];
    struct text text = {.start = line, .bytes = sizeof line};
    const struct conf_row *row = &hak_conf_rows[CONF_prewarm];
    hak_text_add(&text, "hakmem: prewarm=");
    hak_conf_add_round(&text, row, (int64_t)wished_bytes);
    hak_text_add(&text, " is more than the memory that is available: ");
    hak_conf_add_round(&text, row, (int64_t)bytes);
    hak_text_add(&text, bytes == 0 ? " is touched" : " are touched");
    hak_os_stderr_line(&text);
}

/* More than there is would have the kernel end this process, or another. What is not touched now
 * is not kept later, either, nor after a change of the price, which follows the options. */
static size_t fit_prewarm(size_t wished_bytes)
{
    size_t room = hak_own_cgroup_room_bytes();
    size_t most = (room - room / SPARED_SHARE) / (RECORDS_SHARE + 1);
    size_t bytes = hak_align_down(most * RECORDS_SHARE, HAK_SUPERSLAB_BYTES);
    if (HAK_LIKELY(wished_bytes <= bytes))
        return wished_bytes;
    tell_prewarm(wished_bytes, bytes);
    hak_conf_lower(CONF_prewarm, (int64_t)bytes);
    hak_store_relaxed(&hak_policy.prewarm_bytes, bytes);
    return bytes;
}

void hak_prewarm(void)
{
    size_t bytes = hak_policy_read(prewarm_bytes);
    if (HAK_LIKELY(bytes == 0) || !hak_limit_admits(bytes))
        return;
    bytes = fit_prewarm(bytes);
    if (bytes == 0)
        return;
    size_t block_bytes = bytes - hak_supply_touch(bytes);
    if (block_bytes != 0) {
        /* LARGE_ZERO, so that it is not watched: it says nothing about what the program fills. */
        struct large_request request =
            hak_supply_request(block_bytes, HAK_SUPERSLAB_BYTES, LARGE_ZERO);
        char *start = hak_supply_large(NULL, &request);
        if (start == NULL)
            return;
        touch_block(start, block_bytes);
        hak_large_give(start);
    }
    hak_zero_size_start();
    hak_region_touch_tables();
    hak_os_touch(&hak_span_free, sizeof hak_span_free);
    hak_os_touch(hak_lock_waits, sizeof hak_lock_waits); /* written when somebody first waits */
    hak_meta_prewarm(bytes / RECORDS_SHARE);
}

/* Before main and the program's own constructors, so that the first requests do not pay for it. */
__attribute__((constructor)) static void prewarm(void)
{
    if (!hak_process_start())
        return;
    hak_matches_begin();
    hak_learned_load();
    hak_prewarm();
}
