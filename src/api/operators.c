/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "base/bits.h"
#include "base/check.h"
#include "hardened/hardened.h"
#include "stats/tally.h"

/* What is unusual about operator new ([new.delete]): the handler, bad_alloc, hardened mode. This
 * file, and those that call it, are compiled with exceptions so that bad_alloc passes through. */

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
    return alignment == 0 ? hak_malloc_slow(bytes) : hak_aligned_slow(alignment, bytes);
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
void *hak_new_aligned_slow(size_t bytes, size_t alignment, int kind)
{
    if (HAK_UNLIKELY(!hak_is_power_of_two(alignment)))
        throw_bad_alloc();
    return take_or_throw(bytes, alignment, (enum mark_kind)kind);
}

void *hak_new_aligned_nothrow_slow(size_t bytes, size_t alignment, int kind)
{
    if (HAK_UNLIKELY(!hak_is_power_of_two(alignment)))
        return NULL;
    return take_or_null(bytes, alignment, (enum mark_kind)kind);
}
