/* SPDX-License-Identifier: MIT */
#include "control/profiler.h"

#include "conf/conf.h"
#include "heap/draw.h"
#include "profile/output.h"
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

bool hak_control_profiler_may_write(const char *form, struct text *answer)
{
    bool has_any = hak_profile_output_has_any();
    if (hak_profile_form_of(form) == PROFILE_FORM_COUNT)
        hak_text_add(answer, "this version of hakmem does not know that form of a profile");
    else if (!has_any)
        hak_text_add(answer, "nothing has been sampled yet; profile on starts that");
    else
        return true;
    return false;
}

int hak_control_profiler_write(const struct os_kept_fd *file, const char *form)
{
    struct profile_target to = {.fd = -1, .kept = file};
    return hak_profile_output(&to, hak_profile_form_of(form));
}
