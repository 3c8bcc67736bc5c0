/* SPDX-License-Identifier: MIT */
#include "api/replaced.h"

#include "api/api.h"
#include "api/cpp_runtime.h"

HAK_AT_HAND _Atomic uint8_t hak_operators_may_be_replaced = 1;

/* The forms that others are made of: X(name, as the loader finds it; hakmem's own). */
#define BASES(X)                                                                                   \
    X(_Znwm, hak_new)                                                                              \
    X(_Znam, hak_new_array)                                                                        \
    X(_ZnwmSt11align_val_t, hak_new_aligned)                                                       \
    X(_ZnamSt11align_val_t, hak_new_array_aligned)                                                 \
    X(_ZdlPv, hak_delete)                                                                          \
    X(_ZdaPv, hak_delete_array)                                                                    \
    X(_ZdlPvSt11align_val_t, hak_delete_aligned)                                                   \
    X(_ZdaPvSt11align_val_t, hak_delete_array_aligned)
BASES(HAK_DECLARE_LOADERS)

/* A program at a fixed address that takes an operator's address seems to replace it: everybody gets
 * that of a stub in the program. Then the forms call hakmem's own by a detour. */
static bool are_own(void)
{
#define X(name, own) hak_is_same_code(name, own) &&
    return BASES(X) true;
#undef X
}

bool hak_operators_are_replaced(void)
{
    if (!are_own())
        return true;
    hak_store_relaxed(&hak_operators_may_be_replaced, 0);
    return false;
}

void *hak_pass_new_array(size_t bytes, size_t alignment)
{
    return alignment == 0 ? _Znwm(bytes) : _ZnwmSt11align_val_t(bytes, alignment);
}

static void *pass_array(size_t bytes, size_t alignment)
{
    return alignment == 0 ? _Znam(bytes) : _ZnamSt11align_val_t(bytes, alignment);
}

void *hak_pass_new_nothrow(size_t bytes, size_t alignment, bool is_array)
{
    if (hak_cpp_is_late())
        return hak_cpp_new_nothrow(bytes, alignment, is_array);
    return hak_catch(is_array ? pass_array : hak_pass_new_array, bytes, alignment);
}

void hak_pass_delete(void *block, size_t bytes, size_t alignment, bool is_array)
{
    bool is_to_array = is_array && bytes != SIZE_MAX;
    if (alignment == 0)
        (is_to_array ? _ZdaPv : _ZdlPv)(block);
    else
        (is_to_array ? _ZdaPvSt11align_val_t : _ZdlPvSt11align_val_t)(block, alignment);
}

void hak_delete_nothrow(void *block, const void *nothrow HAK_UNUSED)
{
    _ZdlPv(block);
}

void hak_delete_array_nothrow(void *block, const void *nothrow HAK_UNUSED)
{
    _ZdaPv(block);
}

void hak_delete_aligned_nothrow(void *block, size_t alignment, const void *nothrow HAK_UNUSED)
{
    _ZdlPvSt11align_val_t(block, alignment);
}

void hak_delete_array_aligned_nothrow(void *block, size_t alignment, const void *nothrow HAK_UNUSED)
{
    _ZdaPvSt11align_val_t(block, alignment);
}

HAK_WEAK_ALIAS(_ZdlPvRKSt9nothrow_t, hak_delete_nothrow)
HAK_WEAK_ALIAS(_ZdaPvRKSt9nothrow_t, hak_delete_array_nothrow)
HAK_WEAK_ALIAS(_ZdlPvSt11align_val_tRKSt9nothrow_t, hak_delete_aligned_nothrow)
HAK_WEAK_ALIAS(_ZdaPvSt11align_val_tRKSt9nothrow_t, hak_delete_array_aligned_nothrow)
