/* SPDX-License-Identifier: MIT */
#include "api/cpp_runtime.h"

#include "base/check.h"
#include "os/next_symbol.h"

/* std::get_new_handler, and what `throw std::bad_alloc()` is made of (Itanium C++ ABI), present
 * when the program has a C++ library. A static program has all of it when it catches this type by
 * name; one that only catches everything needs -Wl,-u,_ZTISt9bad_alloc. */
extern new_handler *_ZSt15get_new_handlerv(void) __attribute__((weak));
extern void *__cxa_allocate_exception(size_t bytes) __attribute__((weak));
extern void __cxa_throw(void *thrown, const void *type, void (*destroy)(void *))
    __attribute__((weak));
extern const void *const _ZTVSt9bad_alloc[] __attribute__((weak));
extern const char _ZTISt9bad_alloc[] __attribute__((weak));
extern void _ZNSt9bad_allocD1Ev(void *thrown) __attribute__((weak));

/* The pointer to the virtual functions lies behind their offset and their type. */
#define FIRST_VIRTUAL 2

/* What the program was linked with, or else what came later. */
static void *find(const void *linked, const char *name)
{
    return linked != NULL ? (void *)linked : hak_late_symbol(name);
}

bool hak_cpp_is_late(void)
{
    return __cxa_throw == NULL && hak_late_symbol("__cxa_throw") != NULL;
}

new_handler *hak_cpp_new_handler(void)
{
    new_handler *(*get)(void);
    *(void **)&get = find((void *)_ZSt15get_new_handlerv, "_ZSt15get_new_handlerv");
    return get == NULL ? NULL : get();
}

void hak_cpp_throw_bad_alloc(void)
{
    void *(*allocate)(size_t);
    void (*throw_it)(void *, const void *, void (*)(void *));
    void (*destroy)(void *);
    *(void **)&allocate = find((void *)__cxa_allocate_exception, "__cxa_allocate_exception");
    *(void **)&throw_it = find((void *)__cxa_throw, "__cxa_throw");
    *(void **)&destroy = find((void *)_ZNSt9bad_allocD1Ev, "_ZNSt9bad_allocD1Ev");
    const void *const *virtuals = find(_ZTVSt9bad_alloc, "_ZTVSt9bad_alloc");
    const void *type = find(_ZTISt9bad_alloc, "_ZTISt9bad_alloc");
    hak_require(throw_it != NULL && allocate != NULL && virtuals != NULL && type != NULL,
                "operator new is out of memory");
    const void *const **thrown = allocate(sizeof *thrown);
    *thrown = &virtuals[FIRST_VIRTUAL];
    throw_it(thrown, type, destroy);
    __builtin_unreachable();
}

void *hak_cpp_new_nothrow(size_t bytes, size_t alignment, bool is_array)
{
    static const char tag;
    void *(*take)(size_t, const void *);
    void *(*take_aligned)(size_t, size_t, const void *);
    if (alignment == 0) {
        *(void **)&take = hak_late_symbol(is_array ? "_ZnamRKSt9nothrow_t" : "_ZnwmRKSt9nothrow_t");
        return take == NULL ? NULL : take(bytes, &tag);
    }
    *(void **)&take_aligned = hak_late_symbol(is_array ? "_ZnamSt11align_val_tRKSt9nothrow_t"
                                                       : "_ZnwmSt11align_val_tRKSt9nothrow_t");
    return take_aligned == NULL ? NULL : take_aligned(bytes, alignment, &tag);
}
