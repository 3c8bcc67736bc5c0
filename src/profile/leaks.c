/* SPDX-License-Identifier: MIT */
#include "profile/leaks.h"

#include "base/bits.h"
#include "base/text.h"
#include "heap/draw.h"
#include "os/os.h"
#include "os/stderr.h"
#include "profile/modules.h"
#include "profile/show.h"
#include "profile/sites.h"

#define FRAMES_TOLD 8u

static uint64_t live_of(const _Atomic uint64_t *taken, const _Atomic uint64_t *ended)
{
    uint64_t gone = hak_load_relaxed(ended);
    return hak_excess(hak_load_relaxed(taken), gone);
}

static uint64_t live_bytes(const struct board_site *site)
{
    return live_of(&site->allocated_bytes, &site->freed_bytes);
}

static void tell(struct text *text)
{
    hak_os_stderr_line(text);
    text->used = 0;
}

/* The file and the offset of an instruction of the call: "libz.so.1+0x1c2d0". The file may have
 * been unloaded since; the loader is asked about what no sample noted. */
static void add_call(struct text *text, uintptr_t return_address)
{
    uintptr_t address = return_address - 1;
    const struct board_module *module = hak_modules_find(address);
    struct board_module loaded;
    if (module == NULL && hak_module_describe(address, &loaded))
        module = &loaded;
    if (module != NULL) {
        hak_text_add(text, module->path);
        hak_text_add(text, "+");
        address -= module->bias;
    }
    hak_text_add(text, "0x");
    hak_text_add_number(text, address, 16);
}

static void tell_site(struct text *text, const struct board_site *site, uint64_t now_ms)
{
    hak_text_add(text, "hakmem: not freed: ");
    hak_text_add_size(text, live_bytes(site));
    hak_text_add(text, " in about ");
    hak_text_add_number(text, live_of(&site->allocated_count, &site->freed_count), 10);
    hak_text_add(text, " blocks, for ");
    hak_text_add_fraction(text, hak_excess(now_ms, hak_load_relaxed(&site->oldest_ms)) / 100, 1);
    hak_text_add(text, " s, allocated at ");
    if (site->frame_count == 0)
        hak_text_add(text, "other places");
    for (uint32_t i = 0; i < site->frame_count && i < FRAMES_TOLD; i++) {
        hak_text_add(text, i == 0 ? "" : " < ");
        add_call(text, site->frames[i]);
    }
    tell(text);
}

/* The next site after (after_ms, after) by the age of its oldest block; HAK_BOARD_SITES: none. */
static uint32_t next_oldest(uint64_t after_ms, uint32_t after)
{
    uint32_t next = HAK_BOARD_SITES;
    uint64_t next_ms = UINT64_MAX;
    for (uint32_t i = 0; i < hak_sites_count(); i++) {
        const struct board_site *site = hak_sites_at(i);
        uint64_t oldest_ms = site == NULL ? 0 : hak_load_relaxed(&site->oldest_ms);
        bool is_behind = oldest_ms > after_ms || (oldest_ms == after_ms && i > after);
        if (oldest_ms != 0 && is_behind && oldest_ms < next_ms && live_bytes(site) != 0) {
            next = i;
            next_ms = oldest_ms;
        }
    }
    return next;
}

void hak_leaks_tell(void)
{
    char line[4096];
    struct text text = {.start = line, .bytes = sizeof line};
    uint64_t bytes = 0, now_ms = hak_os_clock_ms(), after_ms = 0;
    uint32_t sites = 0, site = HAK_BOARD_SITES;
    hak_show_update_oldest();
    for (uint32_t i = 0; i < hak_sites_count(); i++) {
        uint64_t live = hak_sites_at(i) == NULL ? 0 : live_bytes(hak_sites_at(i));
        bytes += live;
        sites += live != 0;
    }
    hak_text_add(&text, "hakmem: about ");
    hak_text_add_size(&text, bytes);
    hak_text_add(&text, " not freed, allocated at ");
    hak_text_add_number(&text, sites, 10);
    hak_text_add(&text, " places, as far as was sampled");
    tell(&text);
    for (uint32_t i = 0; i < HAK_LEAKS_LINES; i++) {
        site = next_oldest(after_ms, site);
        if (site == HAK_BOARD_SITES)
            break;
        after_ms = hak_load_relaxed(&hak_sites_at(site)->oldest_ms);
        tell_site(&text, hak_sites_at(site), now_ms);
    }
}
