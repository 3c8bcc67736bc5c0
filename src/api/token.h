/* SPDX-License-Identifier: MIT */
/* api/token.h - allocation functions as Clang calls them with -fsanitize=alloc-token.
 *
 * Owns        the list of these functions.
 * Invariants  a token names a partition: 0 and all even ones the ordinary one, 1 and all odd ones
 *             the long one. Of tokens beyond 32 bits, as Clang makes them without a bound, the
 *             highest bit decides, which says that the type has pointers. With the fast ABI the
 *             token is part of the name: there are 0 and 1, for -falloc-token-max=2.
 *             Sources: Clang's page about allocation tokens; names and arguments as in LLVM's
 *             AllocToken.cpp.
 * Threads     as the functions that they stand for.
 * Tests       tests/preload/tokens.cpp
 */
#ifndef HAK_API_TOKEN_H
#define HAK_API_TOKEN_H

#include "api/long.h"

/* X(libc's name, parameters, arguments, ordinary function, long function, result) */
#define HAK_TOKEN_FUNCTIONS(X)                                                                     \
    X(malloc, (size_t bytes), (bytes), hak_malloc, hak_long_malloc, void *)                        \
    X(calloc, (size_t count, size_t bytes), (count, bytes), hak_calloc, hak_long_calloc, void *)   \
    X(realloc, (void *block, size_t bytes), (block, bytes), hak_realloc, hak_long_realloc, void *) \
    X(reallocarray, (void *block, size_t count, size_t bytes), (block, count, bytes),              \
      hak_libc_reallocarray, hak_long_reallocarray, void *)                                        \
    X(aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes), hak_aligned_alloc,      \
      hak_long_aligned_alloc, void *)                                                              \
    X(memalign, (size_t alignment, size_t bytes), (alignment, bytes), hak_memalign,                \
      hak_long_memalign, void *)                                                                   \
    X(valloc, (size_t bytes), (bytes), hak_valloc, hak_valloc, void *)                             \
    X(pvalloc, (size_t bytes), (bytes), hak_pvalloc, hak_pvalloc, void *)                          \
    X(posix_memalign, (void **result, size_t alignment, size_t bytes), (result, alignment, bytes), \
      hak_posix_memalign, hak_long_posix_memalign, int)                                            \
    X(_Znwm, (size_t bytes), (bytes), hak_new, hak_long_new, void *)                               \
    X(_Znam, (size_t bytes), (bytes), hak_new_array, hak_long_new_array, void *)                   \
    X(_ZnwmRKSt9nothrow_t, (size_t bytes, const void *nothrow), (bytes, nothrow), hak_new_nothrow, \
      hak_long_new_nothrow, void *)                                                                \
    X(_ZnamRKSt9nothrow_t, (size_t bytes, const void *nothrow), (bytes, nothrow),                  \
      hak_new_array_nothrow, hak_long_new_array_nothrow, void *)                                   \
    X(_ZnwmSt11align_val_t, (size_t bytes, size_t alignment), (bytes, alignment), hak_new_aligned, \
      hak_long_new_aligned, void *)                                                                \
    X(_ZnamSt11align_val_t, (size_t bytes, size_t alignment), (bytes, alignment),                  \
      hak_new_array_aligned, hak_long_new_array_aligned, void *)                                   \
    X(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t bytes, size_t alignment, const void *nothrow),   \
      (bytes, alignment, nothrow), hak_new_aligned_nothrow, hak_long_new_aligned_nothrow, void *)  \
    X(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t bytes, size_t alignment, const void *nothrow),   \
      (bytes, alignment, nothrow), hak_new_array_aligned_nothrow,                                  \
      hak_long_new_array_aligned_nothrow, void *)

#endif
