/* SPDX-License-Identifier: MIT */
/* api/cpp_runtime.h - what operator new needs of the C++ library.
 *
 * Owns        nothing: the functions are the program's C++ library's, if it has one.
 * Invariants  a program that is linked with a C++ library has it from the start. One in C may load
 *             it later, as Python does with a module: then it is asked for by its file's name, by
 *             the first request that needs it, which has failed. A static program has what is
 *             linked.
 * Threads     any. The loader may take its lock, and allocate.
 * Tests       tests/preload/operators.cpp, tests/preload/late_cpp.c
 */
#ifndef HAK_API_CPP_RUNTIME_H
#define HAK_API_CPP_RUNTIME_H

#include "base/compiler.h"

typedef void new_handler(void);

/* std::get_new_handler(); NULL: there is none, or no library. */
new_handler *hak_cpp_new_handler(void);

/* throw std::bad_alloc(). Without a library nobody could catch it: abort. */
_Noreturn void hak_cpp_throw_bad_alloc(void);

/* True: hak_catch catches nothing here, since the library came later. */
bool hak_cpp_is_late(void);

/* The library's own operator new that does not throw, which calls the one that does: hakmem's, or
 * the program's. Alignment 0: an ordinary one. NULL where it fails. */
void *hak_cpp_new_nothrow(size_t bytes, size_t alignment, bool is_array);

#endif
