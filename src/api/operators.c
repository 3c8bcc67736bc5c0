/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "api/hardened.h"
#include "api/tally.h"
#include "base/bits.h"
#include "base/check.h"

/* The C++ allocation functions by their mangled names ([new.delete], Itanium C++ ABI). This file is
 * compiled with exceptions so that bad_alloc passes through it. */

typedef void (*new_handler)(void);

/* std::get_new_handler, present when the program has libstdc++. */
extern new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));

/* What `throw std::bad_alloc()` is made of (Itanium C++ ABI). A static program has all of it when
 * it catches this type by name; one that only catches everything needs -Wl,-u,_ZTISt9bad_alloc. */
extern void *__cxa_allocate_exception(size_t bytes) __attribute__((weak));
extern _Noreturn void __cxa_throw(void *thrown, const void *type, void (*destroy)(void *))
    __attribute__((weak));
extern const void *const _ZTVSt9bad_alloc[] __attribute__((weak));
extern const char _ZTISt9bad_alloc[] __attribute__((weak));
extern void _ZNSt9bad_allocD1Ev(void *thrown) __attribute__((weak));

/* The pointer to the virtual functions lies behind their offset and their type. */
#define FIRST_VIRTUAL 2

static _Noreturn void throw_bad_alloc(void)
{
    hak_require(__cxa_throw != NULL && _ZTISt9bad_alloc != NULL, "operator new is out of memory");
    const void *const **thrown = __cxa_allocate_exception(sizeof *thrown);
    *thrown = &_ZTVSt9bad_alloc[FIRST_VIRTUAL];
    __cxa_throw(thrown, _ZTISt9bad_alloc, _ZNSt9bad_allocD1Ev);
}

static void *take(size_t bytes, size_t alignment, enum mark_kind kind)
{
    if (HAK_UNLIKELY(hak_is_hardened()) && hak_tally_request(bytes))
        return hak_hardened_take((struct request){bytes, alignment, kind, false});
    return alignment == 0 ? hak_malloc(bytes) : hak_aligned(alignment, bytes);
}

/* [new.delete.single]: call the handler and try again while there is one. */
static HAK_NOINLINE void *take_or_throw(size_t bytes, size_t alignment, enum mark_kind kind)
{
    for (;;) {
        void *block = take(bytes, alignment, kind);
        if (HAK_LIKELY(block != NULL))
            return block;
        new_handler handler = _ZSt15get_new_handlerv != NULL ? _ZSt15get_new_handlerv() : NULL;
        if (handler == NULL)
            break;
        handler();
    }
    throw_bad_alloc();
}

static void *take_single(size_t bytes, size_t alignment)
{
    return take_or_throw(bytes, alignment, MARK_NEW);
}

static void *take_array(size_t bytes, size_t alignment)
{
    return take_or_throw(bytes, alignment, MARK_NEW_ARRAY);
}

/* [new.delete.single]: what a handler throws is NULL here; no other library's form is asked, which
 * would answer with blocks of its own. */
static HAK_NOINLINE void *take_or_null(size_t bytes, size_t alignment, enum mark_kind kind)
{
    void *block = take(bytes, alignment, kind);
    if (HAK_LIKELY(block != NULL))
        return block;
    if (_ZSt15get_new_handlerv == NULL || _ZSt15get_new_handlerv() == NULL)
        return NULL;
    return hak_catch(kind == MARK_NEW ? take_single : take_array, bytes, alignment);
}

void *hak_new_slow(size_t bytes)
{
    return take_or_throw(bytes, 0, MARK_NEW);
}

void *hak_new_array_slow(size_t bytes)
{
    return take_or_throw(bytes, 0, MARK_NEW_ARRAY);
}

void *hak_new_nothrow_slow(size_t bytes)
{
    return take_or_null(bytes, 0, MARK_NEW);
}

void *hak_new_array_nothrow_slow(size_t bytes)
{
    return take_or_null(bytes, 0, MARK_NEW_ARRAY);
}

/* [new.delete.single] leaves alignments that are no power of two undefined; the C++ library of GCC
 * throws, or returns NULL, and so do we. */
void *hak_new_aligned(size_t bytes, size_t alignment)
{
    if (HAK_UNLIKELY(!hak_is_power_of_two(alignment)))
        throw_bad_alloc();
    return take_or_throw(bytes, alignment, MARK_NEW);
}

void *hak_new_array_aligned(size_t bytes, size_t alignment)
{
    if (HAK_UNLIKELY(!hak_is_power_of_two(alignment)))
        throw_bad_alloc();
    return take_or_throw(bytes, alignment, MARK_NEW_ARRAY);
}

void *hak_new_aligned_nothrow(size_t bytes, size_t alignment, const void *nothrow)
{
    (void)nothrow;
    return hak_is_power_of_two(alignment) ? take_or_null(bytes, alignment, MARK_NEW) : NULL;
}

void *hak_new_array_aligned_nothrow(size_t bytes, size_t alignment, const void *nothrow)
{
    (void)nothrow;
    return hak_is_power_of_two(alignment) ? take_or_null(bytes, alignment, MARK_NEW_ARRAY) : NULL;
}

HAK_LIBC_ALIAS(_ZnwmSt11align_val_t, hak_new_aligned)
HAK_LIBC_ALIAS(_ZnamSt11align_val_t, hak_new_array_aligned)
HAK_LIBC_ALIAS(_ZnwmSt11align_val_tRKSt9nothrow_t, hak_new_aligned_nothrow)
HAK_LIBC_ALIAS(_ZnamSt11align_val_tRKSt9nothrow_t, hak_new_array_aligned_nothrow)
HAK_LIBC_ALIAS(_ZnwmSt11align_val_t12__hot_cold_t, hak_new_aligned)
HAK_LIBC_ALIAS(_ZnamSt11align_val_t12__hot_cold_t, hak_new_array_aligned)
HAK_LIBC_ALIAS(_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t, hak_new_aligned_nothrow)
HAK_LIBC_ALIAS(_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t, hak_new_array_aligned_nothrow)

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
