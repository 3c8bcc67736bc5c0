/* SPDX-License-Identifier: MIT */
/* os/own_code.h - hakmem's own code in a program that it is linked into.
 *
 * Owns        the two functions that hakmem.o begins and ends with.
 * Invariants  linkers keep the order of an object's code, so that hakmem's lies between the two,
 *             and nobody else's; but for what they put elsewhere by its name (.text.unlikely).
 *             Where it is linked otherwise than by hakmem.o and libhakmem.a, as in the Rust crate,
 *             nothing is known of any code.
 * Threads     any.
 * Tests       tests/install/linked_install.sh
 */
#ifndef HAK_OS_OWN_CODE_H
#define HAK_OS_OWN_CODE_H

#include "base/compiler.h"

void hak_own_begin(void);
void hak_own_end(void);

/* Whether the address is known to be of hakmem's code; of a library's nothing is. */
bool hak_own_code_holds(uintptr_t address);

#endif
