/* SPDX-License-Identifier: MIT */
#include "profile/output.h"

#include "os/copy_mark.h"
#include "os/flag.h"
#include "os/os.h"
#include "profile/pprof.h"
#include "profile/sites.h"
#include "profile/text_forms.h"

#include <errno.h>
#include <string.h>

const struct profile_form_names hak_profile_forms[PROFILE_FORM_COUNT] = {
#define X(name, suffix) {#name, suffix},
    HAK_PROFILE_FORM_TABLE(X)
#undef X
};

enum profile_form hak_profile_form_of(const char *name)
{
    enum profile_form form = PROFILE_FORM_pprof;
    while (form < PROFILE_FORM_COUNT && strcmp(name, hak_profile_forms[form].name) != 0)
        form++;
    return form;
}

int hak_profile_output(const struct profile_target *to, enum profile_form form)
{
    static void (*const writes[PROFILE_FORM_COUNT])(struct profile_writer *) = {
#define X(name, suffix) hak_##name##_write,
        HAK_PROFILE_FORM_TABLE(X)
#undef X
    };
    if (!hak_flag_await_second(&hak_copy_mark->is_writing_profile))
        return EBUSY;
    struct profile_writer writer = hak_profile_writer(to);
    writes[form](&writer);
    int error = hak_profile_writer_end(&writer);
    hak_flag_give(&hak_copy_mark->is_writing_profile);
    return error;
}

bool hak_profile_output_has_any(void)
{
    for (uint32_t i = 0, count = hak_sites_count(); i < count; i++)
        if (hak_sites_at(i) != NULL && hak_load_relaxed(&hak_sites_at(i)->samples) != 0)
            return true;
    return false;
}
