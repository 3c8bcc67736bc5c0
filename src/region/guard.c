/* SPDX-License-Identifier: MIT */
#include "region/guard.h"

#include "base/check.h"
#include "os/os.h"
#include "region/mappings.h"

/* A guard divides one mapping in three. */
#define MAPPINGS_PER_GUARD 2u
/* Of all mappings that guards may be: they give way before what is moved or advised does. */
#define SHARE_OF_GUARDS 2u

static _Atomic uint32_t raised_count;

/* Counted before it is compared, so that threads cannot pass the bound together. */
static bool take(void)
{
    uint32_t most = hak_mappings_most() / SHARE_OF_GUARDS / MAPPINGS_PER_GUARD;
    if (hak_fetch_add_relaxed(&raised_count, 1) < most && hak_mappings_take(MAPPINGS_PER_GUARD))
        return true;
    hak_fetch_add_relaxed(&raised_count, -1u);
    return false;
}

static void give(uint32_t count)
{
    hak_mappings_give(MAPPINGS_PER_GUARD * count);
    hak_fetch_sub_relaxed(&raised_count, count);
}

bool hak_guard_raise(void *start, size_t bytes)
{
    if (!take())
        return false;
    if (hak_os_deny(start, bytes))
        return true;
    give(1);
    return false;
}

bool hak_guard_lower(void *start, size_t bytes, uint32_t count)
{
    if (HAK_UNLIKELY(!hak_os_allow(start, bytes)))
        return false;
    give(count);
    return true;
}

void hak_guard_undo(void *start, size_t bytes)
{
    bool is_lowered = hak_guard_lower(start, bytes, 1);
    hak_require(is_lowered, "the kernel does not lower a guard");
}
