/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "base/bits.h"
#include "base/check.h"

#include <dlfcn.h>

/* The C++ allocation functions by their mangled names ([new.delete], Itanium C++ ABI). This file is
 * compiled with exceptions so that bad_alloc passes through it. */

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

/* [new.delete.single]: what a handler throws is NULL here. C cannot catch it; the C++ library's own
 * form can, and comes back to the throwing form above. No other library is asked: one that is
 * linked beside us would answer with blocks of its own. */
static HAK_NOINLINE void *nothrow_slow(size_t bytes, size_t alignment, const void *nothrow)
{
    if (_ZSt15get_new_handlerv == NULL || _ZSt15get_new_handlerv() == NULL)
        return NULL;
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL)
        return NULL;
    void *block = NULL;
    if (alignment == 0) {
        void *(*form)(size_t, const void *);
        *(void **)&form = dlsym(library, "_ZnwmRKSt9nothrow_t");
        block = form != NULL ? form(bytes, nothrow) : NULL;
    } else {
        void *(*form)(size_t, size_t, const void *);
        *(void **)&form = dlsym(library, "_ZnwmSt11align_val_tRKSt9nothrow_t");
        block = form != NULL ? form(bytes, alignment, nothrow) : NULL;
    }
    dlclose(library);
    return block;
}

void *hak_new_nothrow(size_t bytes, const void *nothrow)
{
    void *block = hak_malloc(bytes);
    return HAK_LIKELY(block != NULL) ? block : nothrow_slow(bytes, 0, nothrow);
}

void *hak_new_aligned_nothrow(size_t bytes, size_t alignment, const void *nothrow)
{
    void *block = hak_aligned_slow(alignment, bytes);
    return HAK_LIKELY(block != NULL) ? block : nothrow_slow(bytes, alignment, nothrow);
}

HAK_LIBC_ALIAS(_ZnwmRKSt9nothrow_t, hak_new_nothrow)
HAK_LIBC_ALIAS(_ZnamRKSt9nothrow_t, hak_new_nothrow)
HAK_LIBC_ALIAS(_ZnwmSt11align_val_tRKSt9nothrow_t, hak_new_aligned_nothrow)
HAK_LIBC_ALIAS(_ZnamSt11align_val_tRKSt9nothrow_t, hak_new_aligned_nothrow)
HAK_LIBC_ALIAS(_Znwm, hak_new)
HAK_LIBC_ALIAS(_Znam, hak_new)
HAK_LIBC_ALIAS(_ZnwmSt11align_val_t, hak_new_aligned)
HAK_LIBC_ALIAS(_ZnamSt11align_val_t, hak_new_aligned)

/* LLVM and google/tcmalloc: a compiler may pass a hint how often the block will be used. All blocks
 * of a size are alike here. */
HAK_LIBC_ALIAS(_Znwm12__hot_cold_t, hak_new)
HAK_LIBC_ALIAS(_Znam12__hot_cold_t, hak_new)
HAK_LIBC_ALIAS(_ZnwmRKSt9nothrow_t12__hot_cold_t, hak_new_nothrow)
HAK_LIBC_ALIAS(_ZnamRKSt9nothrow_t12__hot_cold_t, hak_new_nothrow)
HAK_LIBC_ALIAS(_ZnwmSt11align_val_t12__hot_cold_t, hak_new_aligned)
HAK_LIBC_ALIAS(_ZnamSt11align_val_t12__hot_cold_t, hak_new_aligned)
HAK_LIBC_ALIAS(_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t, hak_new_aligned_nothrow)
HAK_LIBC_ALIAS(_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t, hak_new_aligned_nothrow)

/* The same sources, after P0901: the block, and the bytes that the caller may use. */
static struct sized_block sized(void *block)
{
    return (struct sized_block){block, hak_malloc_usable_size(block)};
}

struct sized_block hak_new_sized(size_t bytes)
{
    return sized(hak_new(bytes));
}

struct sized_block hak_new_aligned_sized(size_t bytes, size_t alignment)
{
    return sized(hak_new_aligned(bytes, alignment));
}

HAK_WEAK_ALIAS(__size_returning_new, hak_new_sized)
HAK_WEAK_ALIAS(__size_returning_new_hot_cold, hak_new_sized)
HAK_WEAK_ALIAS(__size_returning_new_aligned, hak_new_aligned_sized)
HAK_WEAK_ALIAS(__size_returning_new_aligned_hot_cold, hak_new_aligned_sized)
