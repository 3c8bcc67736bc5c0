/* SPDX-License-Identifier: MIT */
#include "api/replaced.h"

#include "api/api.h"
#include "api/cpp_runtime.h"

HAK_AT_HAND _Atomic uint8_t hak_operators_may_be_replaced = 1;

/* The forms that others are made of: X(name, hakmem's own). */
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

/* As the loader finds them. */
#define NEW HAK_LOADERS(_Znwm, hak_new)
#define NEW_ARRAY HAK_LOADERS(_Znam, hak_new_array)
#define NEW_ALIGNED HAK_LOADERS(_ZnwmSt11align_val_t, hak_new_aligned)
#define NEW_ARRAY_ALIGNED HAK_LOADERS(_ZnamSt11align_val_t, hak_new_array_aligned)
#define DELETE HAK_LOADERS(_ZdlPv, hak_delete)
#define DELETE_ARRAY HAK_LOADERS(_ZdaPv, hak_delete_array)
#define DELETE_ALIGNED HAK_LOADERS(_ZdlPvSt11align_val_t, hak_delete_aligned)
#define DELETE_ARRAY_ALIGNED HAK_LOADERS(_ZdaPvSt11align_val_t, hak_delete_array_aligned)

typedef void any_function(void);

static bool is_same(any_function *loaders, any_function *own)
{
    return loaders == own;
}

/* A program at a fixed address that takes an operator's address seems to replace it: everybody gets
 * that of a stub in the program. Then the forms call hakmem's own by a detour. */
static bool are_own(void)
{
#define X(name, own) is_same((any_function *)HAK_LOADERS(name, own), (any_function *)own) &&
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
    return alignment == 0 ? NEW(bytes) : NEW_ALIGNED(bytes, alignment);
}

static void *pass_array(size_t bytes, size_t alignment)
{
    return alignment == 0 ? NEW_ARRAY(bytes) : NEW_ARRAY_ALIGNED(bytes, alignment);
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
        (is_to_array ? DELETE_ARRAY : DELETE)(block);
    else
        (is_to_array ? DELETE_ARRAY_ALIGNED : DELETE_ALIGNED)(block, alignment);
}

void hak_delete_nothrow(void *block, const void *nothrow HAK_UNUSED)
{
    DELETE(block);
}

void hak_delete_array_nothrow(void *block, const void *nothrow HAK_UNUSED)
{
    DELETE_ARRAY(block);
}

void hak_delete_aligned_nothrow(void *block, size_t alignment, const void *nothrow HAK_UNUSED)
{
    DELETE_ALIGNED(block, alignment);
}

void hak_delete_array_aligned_nothrow(void *block, size_t alignment, const void *nothrow HAK_UNUSED)
{
    DELETE_ARRAY_ALIGNED(block, alignment);
}

HAK_WEAK_ALIAS(_ZdlPvRKSt9nothrow_t, hak_delete_nothrow)
HAK_WEAK_ALIAS(_ZdaPvRKSt9nothrow_t, hak_delete_array_nothrow)
HAK_WEAK_ALIAS(_ZdlPvSt11align_val_tRKSt9nothrow_t, hak_delete_aligned_nothrow)
HAK_WEAK_ALIAS(_ZdaPvSt11align_val_tRKSt9nothrow_t, hak_delete_array_aligned_nothrow)
