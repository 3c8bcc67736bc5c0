/* SPDX-License-Identifier: MIT */
/* os/elf.h - the headers and notes of a loaded ELF file.
 *
 * Owns        struct os_elf: where the program headers of one file are.
 * Invariants  read where the file is mapped; no file is opened and nothing allocated. Any bytes may
 *             be there: nothing outside [start, end) is read, and of what is left to the file's
 *             headers only pages that can be read. A file whose headers do not fit into its first
 *             page is refused.
 *             Calls: futex, once for each page that is read.
 * Threads     any, while nobody unloads the file.
 * Tests       tests/unit/os/elf_test.c, tests/fuzz/elf_fuzz.c
 */
#ifndef HAK_OS_ELF_H
#define HAK_OS_ELF_H

#include "base/compiler.h"

#include <elf.h>
#include <link.h>

struct os_elf {
    const ElfW(Phdr) * segments;
    uint32_t segment_count;
    uintptr_t bias; /* addresses less those that the file has for itself */
    uintptr_t start, end;
    uintptr_t header_page; /* is known to be readable; UINTPTR_MAX: none is */
};

/* The file that is mapped from `start` on, at most up to `end`; false: none that can be read. */
bool hak_elf_open(struct os_elf *elf, uintptr_t start, uintptr_t end);

/* The running program; false: the kernel does not say where its headers are. */
bool hak_elf_open_program(struct os_elf *elf);

/* The loaded segment that the address is in; NULL: none. */
const ElfW(Phdr) * hak_elf_segment_at(const struct os_elf *elf, uintptr_t address);

/* The content of the first note of this owner (three letters, or two and a 0) and type, 0 for any;
 * NULL: there is none. */
const void *hak_elf_note(const struct os_elf *elf, const char owner[4], uint32_t type,
                         size_t *bytes);

#endif
