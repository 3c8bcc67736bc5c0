/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "base/bits.h"
#include "base/check.h"

/* The throwing C++ allocation functions by their mangled names ([new.delete], Itanium C++ ABI). The
 * nothrow forms are left to the C++ library: theirs call these and catch what a handler throws, which
 * C cannot. This file is compiled with exceptions so that bad_alloc passes through it. */

typedef void (*new_handler)(void);

/* std::get_new_handler and std::__throw_bad_alloc, present when the program has libstdc++. */
extern new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));
extern void _ZSt17__throw_bad_allocv(void) __attribute__((weak, noreturn));

static void *take(size_t bytes, size_t alignment)
{
    return alignment == 0 ? hak_malloc(bytes) : hak_aligned_slow(alignment, bytes);
}

/* [new.delete.single]: call the handler and try again while there is one. */
static HAK_NOINLINE void *new_slow(size_t bytes, size_t alignment)
{
    for (;;) {
        new_handler handler = _ZSt15get_new_handlerv != NULL ? _ZSt15get_new_handlerv() : NULL;
        if (handler == NULL)
            break;
        handler();
        void *block = take(bytes, alignment);
        if (block != NULL)
            return block;
    }
    hak_require(_ZSt17__throw_bad_allocv != NULL, "operator new is out of memory");
    _ZSt17__throw_bad_allocv();
}

void *hak_new(size_t bytes)
{
    void *block = hak_malloc(bytes);
    return HAK_LIKELY(block != NULL) ? block : new_slow(bytes, 0);
}

void *hak_new_aligned(size_t bytes, size_t alignment)
{
    void *block = hak_aligned_slow(alignment, bytes);
    return HAK_LIKELY(block != NULL) ? block : new_slow(bytes, alignment);
}

HAK_LIBC_ALIAS(_Znwm, hak_new)
HAK_LIBC_ALIAS(_Znam, hak_new)
HAK_LIBC_ALIAS(_ZnwmSt11align_val_t, hak_new_aligned)
HAK_LIBC_ALIAS(_ZnamSt11align_val_t, hak_new_aligned)
