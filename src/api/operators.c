/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "api/cpp_runtime.h"
#include "api/replaced.h"
#include "base/bits.h"
#include "base/check.h"
#include "hardened/hardened.h"
#include "heap/route.h"
#include "stats/exact.h"

/* What is unusual about operator new ([new.delete]): the handler, bad_alloc, hardened mode. This
 * file, and those that call it, are compiled with exceptions so that bad_alloc passes through. */

/* What an operator asks for beside its size. */
struct form {
    size_t alignment; /* 0: ordinary */
    enum mark_kind kind;
    enum hak_partition partition;
};

static void *take(size_t bytes, struct form form)
{
    if (HAK_UNLIKELY(hak_is_hardened()) && hak_exact_request(bytes))
        return hak_hardened_take(&(struct request){.bytes = bytes,
                                                   .alignment = form.alignment,
                                                   .kind = form.kind,
                                                   .partition = form.partition});
    if (HAK_UNLIKELY(form.partition == PARTITION_LONG))
        return form.alignment == 0 ? hak_long_slow(bytes)
                                   : hak_long_aligned_slow(form.alignment, bytes);
    return form.alignment == 0 ? hak_malloc_slow(bytes) : hak_aligned(form.alignment, bytes);
}

/* [new.delete.single]: call the handler and try again while there is one. */
static HAK_NOINLINE void *take_or_throw(size_t bytes, struct form form)
{
    for (;;) {
        void *block = take(bytes, form);
        if (HAK_LIKELY(block != NULL))
            return block;
        new_handler *handler = hak_cpp_new_handler();
        if (handler == NULL)
            break;
        handler();
    }
    hak_cpp_throw_bad_alloc();
}

#define TAKE_AS(name, kind, partition)                                                             \
    static void *name(size_t bytes, size_t alignment)                                              \
    {                                                                                              \
        return take_or_throw(bytes, (struct form){alignment, kind, partition});                    \
    }
TAKE_AS(take_single, MARK_NEW, PARTITION_ORDINARY)
TAKE_AS(take_array, MARK_NEW_ARRAY, PARTITION_ORDINARY)
TAKE_AS(take_long_single, MARK_NEW, PARTITION_LONG)
TAKE_AS(take_long_array, MARK_NEW_ARRAY, PARTITION_LONG)

/* [new.delete.single]: what a handler throws is NULL here. Another library's form, which might
 * answer with blocks of its own, is asked only where hak_catch cannot catch. */
static HAK_NOINLINE void *take_or_null(size_t bytes, struct form form)
{
    void *block = take(bytes, form);
    if (HAK_LIKELY(block != NULL))
        return block;
    if (hak_cpp_new_handler() == NULL)
        return NULL;
    if (hak_cpp_is_late())
        return hak_cpp_new_nothrow(bytes, form.alignment, form.kind == MARK_NEW_ARRAY);
    bool is_long = form.partition == PARTITION_LONG;
    if (form.kind == MARK_NEW)
        return hak_catch(is_long ? take_long_single : take_single, bytes, form.alignment);
    return hak_catch(is_long ? take_long_array : take_array, bytes, form.alignment);
}

/* NULL: no call site is diverted, or not this one. */
HAK_INLINE void *take_routed(size_t bytes, struct os_caller caller)
{
    return HAK_UNLIKELY(hak_route_is_on()) ? hak_malloc_routed(bytes, caller) : NULL;
}

void *hak_new_slow(size_t bytes)
{
    void *block = take_routed(bytes, HAK_OS_CALLER());
    return block != NULL ? block : take_single(bytes, 0);
}

void *hak_new_array_slow(size_t bytes)
{
    if (hak_is_replaced())
        return hak_pass_new_array(bytes, 0);
    void *block = take_routed(bytes, HAK_OS_CALLER());
    return block != NULL ? block : take_array(bytes, 0);
}

void *hak_new_nothrow_slow(size_t bytes)
{
    if (hak_is_replaced())
        return hak_pass_new_nothrow(bytes, 0, false);
    void *block = take_routed(bytes, HAK_OS_CALLER());
    return block != NULL ? block
                         : take_or_null(bytes, (struct form){0, MARK_NEW, PARTITION_ORDINARY});
}

void *hak_new_array_nothrow_slow(size_t bytes)
{
    if (hak_is_replaced())
        return hak_pass_new_nothrow(bytes, 0, true);
    void *block = take_routed(bytes, HAK_OS_CALLER());
    return block != NULL
               ? block
               : take_or_null(bytes, (struct form){0, MARK_NEW_ARRAY, PARTITION_ORDINARY});
}

/* [new.delete.single] leaves alignments that are no power of two undefined; the C++ library of GCC
 * throws, or returns NULL, and so do we. */
void *hak_new_aligned_slow(size_t bytes, size_t alignment, int kind, int partition)
{
    struct form form = {alignment, (enum mark_kind)kind, (enum hak_partition)partition};
    if (hak_is_replaced() && kind == MARK_NEW_ARRAY && partition == PARTITION_ORDINARY)
        return hak_pass_new_array(bytes, alignment);
    if (HAK_UNLIKELY(!hak_is_power_of_two(alignment)))
        hak_cpp_throw_bad_alloc();
    return take_or_throw(bytes, form);
}

void *hak_new_aligned_nothrow_slow(size_t bytes, size_t alignment, int kind, int partition)
{
    struct form form = {alignment, (enum mark_kind)kind, (enum hak_partition)partition};
    if (hak_is_replaced() && partition == PARTITION_ORDINARY)
        return hak_pass_new_nothrow(bytes, alignment, kind == MARK_NEW_ARRAY);
    if (HAK_UNLIKELY(!hak_is_power_of_two(alignment)))
        return NULL;
    return take_or_null(bytes, form);
}

void *hak_new_long_slow(size_t bytes, int kind)
{
    return take_or_throw(bytes, (struct form){0, (enum mark_kind)kind, PARTITION_LONG});
}

void *hak_new_long_nothrow_slow(size_t bytes, int kind)
{
    return take_or_null(bytes, (struct form){0, (enum mark_kind)kind, PARTITION_LONG});
}
