/* SPDX-License-Identifier: MIT */
/* base/assembly.h - what assembly files ask of the preprocessor, in one place.
 *
 * Owns        nothing.
 * Invariants  the counterpart of base/compiler.h: names of libc's are given in builds that take
 *             malloc's place, hakmem's own in all.
 * Tests       tests/golden/, tests/install/exports.txt
 */
#ifndef HAK_BASE_ASSEMBLY_H
#define HAK_BASE_ASSEMBLY_H

#define HAK_PUBLIC_ALIAS(name, target)                                                             \
    .globl name;                                                                                   \
    .type name, @function;                                                                         \
    .set name, target;
#if HAK_INTERPOSE
#define HAK_LIBC_ALIAS(name, target) HAK_PUBLIC_ALIAS(name, target)
#else
#define HAK_LIBC_ALIAS(name, target)
#endif

#endif
