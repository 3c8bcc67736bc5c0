/* SPDX-License-Identifier: MIT */
#include "os/bare_exit.h"

#include "base/atomic.h"
#include "os/home.h"

static _Atomic(void (*)(void)) prepare_for_it;

void hak_os_on_bare_exit(void (*prepare)(void))
{
    hak_store_relaxed(&prepare_for_it, prepare);
}

void hak_os_bare_exit(void)
{
    void (*prepare)(void) = hak_load_relaxed(&prepare_for_it);
    if (prepare != NULL && hak_is_first_at_home())
        prepare();
}
