/* SPDX-License-Identifier: MIT */
/* api/malloc_names.h - libc's and C++'s names of the hot path's functions.
 *
 * Owns        the list, for C and for assembly: who includes it says what HAK_LIBC_ALIAS and
 *             HAK_PUBLIC_ALIAS mean.
 * Invariants  plain macros, nothing that only C knows.
 * Tests       tests/install/exports.txt
 */
#ifndef HAK_API_MALLOC_NAMES_H
#define HAK_API_MALLOC_NAMES_H

HAK_LIBC_ALIAS(malloc, hak_malloc)
HAK_LIBC_ALIAS(free, hak_free)
HAK_LIBC_ALIAS(cfree, hak_free)
HAK_LIBC_ALIAS(__libc_malloc, hak_malloc)
HAK_LIBC_ALIAS(__libc_free, hak_free)
HAK_LIBC_ALIAS(free_sized, hak_free_sized)
HAK_LIBC_ALIAS(free_aligned_sized, hak_free_aligned_sized)

HAK_PUBLIC_ALIAS(hakmem_malloc, hak_malloc)
HAK_PUBLIC_ALIAS(hakmem_free, hak_free)

/* The C++ allocation functions by their mangled names ([new.delete], Itanium C++ ABI); the others
 * are in aligned.c and surface.c. */
HAK_LIBC_ALIAS(_Znwm, hak_new)
HAK_LIBC_ALIAS(_Znam, hak_new_array)
HAK_LIBC_ALIAS(_ZnwmRKSt9nothrow_t, hak_new_nothrow)
HAK_LIBC_ALIAS(_ZnamRKSt9nothrow_t, hak_new_array_nothrow)
/* LLVM and google/tcmalloc: a compiler may pass a hint how often the block will be used. All blocks
 * of a size are alike here. */
HAK_LIBC_ALIAS(_Znwm12__hot_cold_t, hak_new)
HAK_LIBC_ALIAS(_Znam12__hot_cold_t, hak_new_array)
HAK_LIBC_ALIAS(_ZnwmRKSt9nothrow_t12__hot_cold_t, hak_new_nothrow)
HAK_LIBC_ALIAS(_ZnamRKSt9nothrow_t12__hot_cold_t, hak_new_array_nothrow)

HAK_LIBC_ALIAS(_ZdlPv, hak_delete)
HAK_LIBC_ALIAS(_ZdaPv, hak_delete_array)
HAK_LIBC_ALIAS(_ZdlPvm, hak_delete_sized)
HAK_LIBC_ALIAS(_ZdaPvm, hak_delete_array_sized)
HAK_LIBC_ALIAS(_ZdlPvRKSt9nothrow_t, hak_delete)
HAK_LIBC_ALIAS(_ZdaPvRKSt9nothrow_t, hak_delete_array)
HAK_LIBC_ALIAS(_ZdlPvSt11align_val_t, hak_delete_aligned)
HAK_LIBC_ALIAS(_ZdaPvSt11align_val_t, hak_delete_array_aligned)
HAK_LIBC_ALIAS(_ZdlPvmSt11align_val_t, hak_delete_sized_aligned)
HAK_LIBC_ALIAS(_ZdaPvmSt11align_val_t, hak_delete_array_sized_aligned)
HAK_LIBC_ALIAS(_ZdlPvSt11align_val_tRKSt9nothrow_t, hak_delete_aligned)
HAK_LIBC_ALIAS(_ZdaPvSt11align_val_tRKSt9nothrow_t, hak_delete_array_aligned)

#endif
