/* SPDX-License-Identifier: MIT */
/* os/find_object.h - the loaded file that an address is in, without a lock: glibc 2.35's
 * _dl_find_object (<bits/dl_find_object.h>).
 *
 * Owns        nothing.
 * Invariants  false where libc has no such function, and before constructors ran: the shared
 *             library asks for the name at run time, since it runs with older libcs; in a static
 *             program libc sets the function up late.
 * Threads     any, signal handlers too, beside dlopen and dlclose as well.
 * Tests       tests/unit/os/unwind_test.c, tools/check_names.py
 */
#ifndef HAK_OS_FIND_OBJECT_H
#define HAK_OS_FIND_OBJECT_H

#include "base/compiler.h"

struct link_map;
struct found_object {
    uint64_t flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    void *eh_frame;
    uint64_t reserved[7];
};

bool hak_find_object(uintptr_t address, struct found_object *found);

#endif
