/* SPDX-License-Identifier: MIT */
#include "profile/profile.h"

#include "conf/conf.h"
#include "heap/cache_list.h"
#include "heap/draw.h"
#include "os/confine.h"
#include "os/os.h"
#include "process/fork.h"
#include "process/start.h"
#include "profile/leaks.h"
#include "profile/output.h"
#include "profile/show.h"

/* Distances drawn for another mean are invalid now. */
static void forget_draws(void)
{
    for (struct cache *cache = hak_caches_first(); cache != NULL; cache = cache->next)
        for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
            hak_store_relaxed(&cache->drawn[i], DRAW_NONE);
}

void hak_profile_start(uint64_t mean_bytes)
{
    if (!hak_process_start())
        return;
    if (mean_bytes == 0)
        mean_bytes = (uint64_t)hak_conf_number(heap_profile_rate);
    hak_draw_start(mean_bytes, (uint64_t)hak_conf_number(heap_profile_samples), hak_os_clock_ms());
    forget_draws();
    hak_caches_drain_idle(UINT64_MAX); /* new bins draw at once */
}

void hak_profile_stop(void)
{
    hak_draw_start(0, 0, 0);
}

__attribute__((constructor)) static void begin(void)
{
    if (hak_process_start() && hak_conf_number(heap_profile) >= HEAP_PROFILE_PPROF)
        hak_profile_output_start();
    hak_show_early_modules();
    hak_process_on_fork(hak_show_forget);
    hak_os_on_confinement(hak_show_prepare);
}

hak_static_assert(HEAP_PROFILE_JSON - HEAP_PROFILE_PPROF == (int)PROFILE_FORM_json,
                  "the option's forms are in the order of the table");

/* After the program's own destructors. */
__attribute__((destructor)) static void end(void)
{
    if (hak_conf_number(heap_profile) == HEAP_PROFILE_LEAKS)
        hak_leaks_tell();
    if (hak_conf_number(heap_profile) >= HEAP_PROFILE_PPROF)
        hak_profile_output_file(
            PROFILE_FORM_pprof +
            (enum profile_form)(hak_conf_number(heap_profile) - HEAP_PROFILE_PPROF));
    hak_show_end();
}
