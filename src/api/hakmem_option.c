/* SPDX-License-Identifier: MIT */
#include "conf/conf.h"
#include "hakmem/hakmem.h"
#include "policy/policy_table.h"
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

/* Where a number of the policy follows the option; false: the option is read at the start only. */
static bool find_policy(enum conf_option option, _Atomic uint64_t **policy)
{
    switch ((int)option) {
    case CONF_foreign:
        *policy = NULL; /* free reads the option itself */
        return true;
#define X(option, row)                                                                             \
    case CONF_##option:                                                                            \
        *policy = &hak_policy.row;                                                                 \
        return true;
        HAK_POLICY_OPTION_TABLE(X)
#undef X
    default:
        return false;
    }
}

int hakmem_option_set(const char *name, const char *value)
{
    hak_process_start(); /* the environment is read first, and this is later */
    _Atomic uint64_t *policy;
    enum conf_option option = hak_conf_find(name);
    if (option == CONF_COUNT)
        return EINVAL;
    if (!find_policy(option, &policy))
        return EBUSY;
    if (!hak_conf_change(option, value))
        return EINVAL;
    if (policy != NULL)
        hak_store_relaxed(policy,
                          (uint64_t)__atomic_load_n(&hak_conf.number[option], __ATOMIC_RELAXED));
    return 0;
}
