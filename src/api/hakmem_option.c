/* SPDX-License-Identifier: MIT */
#include "conf/conf.h"
#include "hakmem/hakmem.h"
#include "policy/option.h"
#include "process/start.h"

#include <errno.h>

/* Options by name while the program runs. */

int hakmem_option_get(const char *name, char *value, size_t value_bytes)
{
    hak_process_start();
    enum conf_option option = hak_conf_find(name);
    if (option == CONF_COUNT)
        return EINVAL;
    return hak_conf_read(option, value, value_bytes) ? 0 : ERANGE;
}

int hakmem_option_set(const char *name, const char *value)
{
    hak_process_start(); /* the environment is read first, and this is later */
    switch (hak_option_change(name, value)) {
    case OPTION_CHANGED:
        return 0;
    case OPTION_FROZEN:
        return EBUSY;
    default:
        return EINVAL;
    }
}
