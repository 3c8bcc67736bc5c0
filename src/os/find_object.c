/* SPDX-License-Identifier: MIT */
#include "os/find_object.h"

#include "base/atomic.h"
#include "os/next_symbol.h"
#include "os/own_code.h"

/* Before hakmem's other constructors, some of which look for objects. */
#define FIRST 101

typedef int find_function(void *address, struct found_object *found);

#if HAK_SHARED

static _Atomic(find_function *) find;

/* The loader is not to be asked in the middle of some thread's call. */
__attribute__((constructor(FIRST))) static void look_for_it(void)
{
    find_function *found;
    *(void **)&found = hak_next_symbol("_dl_find_object");
    hak_store_relaxed(&find, found);
}

static find_function *finder(void)
{
    return hak_load_relaxed(&find);
}

#else

extern find_function find_weakly __asm__("_dl_find_object") __attribute__((weak));

/* In a static program it faults before libc has set it up, which is soon before constructors. */
static _Atomic bool is_set_up;

__attribute__((constructor(FIRST))) static void note_it(void)
{
    hak_store_relaxed(&is_set_up, true);
}

static find_function *finder(void)
{
    return hak_load_relaxed(&is_set_up) ? &find_weakly : NULL;
}

#endif

bool hak_find_object(uintptr_t address, struct found_object *found)
{
    find_function *function = finder();
    return function != NULL && function((void *)address, found) == 0;
}

#ifdef HAK_HAS_BOUNDS
bool hak_own_code_holds(uintptr_t address)
{
    uintptr_t begin = (uintptr_t)(void *)hak_own_begin, end = (uintptr_t)(void *)hak_own_end;
    return address >= begin && address < end;
}
#else
bool hak_own_code_holds(uintptr_t address)
{
    (void)address;
    return false;
}
#endif
