/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "base/bits.h"
#include "misuse/harden.h"
#include "slab/size_class.h"
#include "span/large.h"
#include "stats/binding.h"

#include <stdlib.h>

/* glibc, reallocarray(3). As libc's it calls the program's realloc, which need not be hakmem's: a
 * program may have a malloc of its own, and a library that counts may be preloaded before. */
void *hak_libc_reallocarray(void *block, size_t count, size_t bytes)
{
    return realloc(block, hak_product(count, bytes));
}

/* Where the loader's search leads, since this library is not linked to its own names. In a program
 * at a fixed address that takes a function's address, everybody gets that of a stub in the program:
 * so all four must be elsewhere, and what was served counts as well (hak_is_shadowed). */
__attribute__((constructor)) static void note_binding(void)
{
    hak_binding_note(HAK_INTERPOSE != 0 && !hak_is_same_code(malloc, hak_malloc) &&
                     !hak_is_same_code(calloc, hak_calloc) &&
                     !hak_is_same_code(realloc, hak_realloc) && !hak_is_same_code(free, hak_free));
}

/* FreeBSD, realloc(3): as realloc, but a block that cannot be resized is freed. With 0 bytes it is
 * freed already. */
void *hak_reallocf(void *block, size_t bytes)
{
    void *moved = hak_realloc(block, bytes);
    if (moved == NULL && bytes != 0)
        hak_free(block);
    return moved;
}

/* macOS, malloc_good_size(3): the size that a request of `bytes` may as well be. */
size_t hak_malloc_good_size(size_t bytes)
{
    if (bytes <= HAK_CLASS_BYTES_MAX)
        return hak_size_classes[hak_class_of(bytes)].block_bytes;
    if (bytes > HAK_REQUEST_BYTES_MAX)
        return bytes;
    return hak_large_good_bytes(bytes);
}

HAK_LIBC_ALIAS(reallocarray, hak_libc_reallocarray)
HAK_WEAK_ALIAS(reallocf, hak_reallocf)
HAK_WEAK_ALIAS(malloc_good_size, hak_malloc_good_size)

/* Where hardened mode compares sizes, the owner knows the one that it asked for. */
struct sized_block hak_sized(void *block, size_t bytes)
{
    bool is_compared = hak_harden_has(HARDEN_SIZED);
    return (struct sized_block){block, is_compared ? bytes : hak_malloc_usable_size(block)};
}

struct sized_block hak_new_sized(size_t bytes)
{
    return hak_sized(hak_new(bytes), bytes);
}

struct sized_block hak_new_aligned_sized(size_t bytes, size_t alignment)
{
    return hak_sized(hak_new_aligned(bytes, alignment), bytes);
}

HAK_WEAK_ALIAS(__size_returning_new, hak_new_sized)
HAK_WEAK_ALIAS(__size_returning_new_aligned, hak_new_aligned_sized)
