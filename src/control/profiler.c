/* SPDX-License-Identifier: MIT */
#include "control/profiler.h"

static bool refuse(struct text *answer)
{
    hak_text_add(answer, "this build has no profiler");
    return false;
}

bool hak_control_profiler_start(struct text *answer)
{
    return refuse(answer);
}

bool hak_control_profiler_stop(struct text *answer)
{
    return refuse(answer);
}
