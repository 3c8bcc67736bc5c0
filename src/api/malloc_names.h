/* SPDX-License-Identifier: MIT */
/* api/malloc_names.h - libc's and C++'s names of the hot path's functions.
 *
 * Owns        HAK_MALLOC_NAMES, for C and for assembly.
 * Invariants  plain macros, nothing that only C knows. LIBC(name, function) for names in builds
 *             that take malloc's place, PUBLIC for those in all.
 * Tests       tests/install/exports.txt
 */
#ifndef HAK_API_MALLOC_NAMES_H
#define HAK_API_MALLOC_NAMES_H

/* The C++ allocation functions by their mangled names ([new.delete], Itanium C++ ABI); the others
 * are in aligned.c, long.c and glibc.c. */
#define HAK_MALLOC_NAMES(LIBC, PUBLIC)                                                             \
    LIBC(malloc, hak_malloc)                                                                       \
    LIBC(free, hak_free)                                                                           \
    LIBC(cfree, hak_free)                                                                          \
    LIBC(__libc_malloc, hak_malloc)                                                                \
    LIBC(__libc_free, hak_free)                                                                    \
    LIBC(free_sized, hak_free_sized)                                                               \
    LIBC(free_aligned_sized, hak_free_aligned_sized)                                               \
    PUBLIC(hakmem_malloc, hak_malloc)                                                              \
    PUBLIC(hakmem_free, hak_free)                                                                  \
    LIBC(_Znwm, hak_new)                                                                           \
    LIBC(_Znam, hak_new_array)                                                                     \
    LIBC(_ZnwmRKSt9nothrow_t, hak_new_nothrow)                                                     \
    LIBC(_ZnamRKSt9nothrow_t, hak_new_array_nothrow)                                               \
    LIBC(_ZdlPv, hak_delete)                                                                       \
    LIBC(_ZdaPv, hak_delete_array)                                                                 \
    LIBC(_ZdlPvm, hak_delete_sized)                                                                \
    LIBC(_ZdaPvm, hak_delete_array_sized)                                                          \
    LIBC(_ZdlPvRKSt9nothrow_t, hak_delete)                                                         \
    LIBC(_ZdaPvRKSt9nothrow_t, hak_delete_array)                                                   \
    LIBC(_ZdlPvSt11align_val_t, hak_delete_aligned)                                                \
    LIBC(_ZdaPvSt11align_val_t, hak_delete_array_aligned)                                          \
    LIBC(_ZdlPvmSt11align_val_t, hak_delete_sized_aligned)                                         \
    LIBC(_ZdaPvmSt11align_val_t, hak_delete_array_sized_aligned)                                   \
    LIBC(_ZdlPvSt11align_val_tRKSt9nothrow_t, hak_delete_aligned)                                  \
    LIBC(_ZdaPvSt11align_val_tRKSt9nothrow_t, hak_delete_array_aligned)

#endif
