/* SPDX-License-Identifier: MIT */
#include "control/profiler.h"

#include "conf/conf.h"
#include "heap/draw.h"
#include "profile/profile.h"

bool hak_control_profiler_start(struct text *answer)
{
    hak_profile_start(0);
    hak_text_add(answer, "sampling, one allocation in about ");
    hak_text_add_size(answer, (uint64_t)hak_conf_number(heap_profile_rate));
    return true;
}

bool hak_control_profiler_stop(struct text *answer)
{
    bool was_on = hak_draw_is_for(DRAW_FOR_PROFILE);
    hak_profile_stop();
    hak_text_add(answer, was_on ? "sampling has stopped" : "nothing was being sampled");
    return true;
}
