/* SPDX-License-Identifier: MIT */
/* cli/elf_file.h - the parts of an ELF file of this machine that say what it binds.
 *
 * Owns        struct elf_file, a whole file in memory, and where its dynamic section says that its
 *             symbols and names are.
 * Invariants  nothing outside the file is read, whatever is in it.
 * Threads     pure functions.
 * Tests       tests/cli/run_cli.sh, tests/cli/doctor_cli.sh
 */
#ifndef HAK_CLI_ELF_FILE_H
#define HAK_CLI_ELF_FILE_H

#include "base/compiler.h"

#include <elf.h>

struct elf_file {
    const char *start;
    size_t bytes;
    Elf64_Ehdr head;
    Elf64_Phdr dynamic;  /* of no bytes: there is none */
    Elf64_Addr names;    /* DT_STRTAB */
    Elf64_Addr symbols;  /* DT_SYMTAB */
    Elf64_Addr hash;     /* DT_HASH, or 0 */
    Elf64_Addr gnu_hash; /* DT_GNU_HASH, or 0 */
};

/* `own`: the header of a file of this machine. False: the file is of another kind of machine, or
 * cut short. */
bool elf_open(struct elf_file *file, const char *start, size_t bytes, const unsigned char *own);

/* Copies the name of the loader to `name`; false: none is named. */
bool elf_loader(const struct elf_file *file, char *name, size_t name_bytes);

/* Copies the name of the library that is needed as number `index`; false: there are not so many. */
bool elf_needed(const struct elf_file *file, int index, char *name, size_t name_bytes);

/* Whether the file defines the function for other files of the process, too. */
bool elf_defines(const struct elf_file *file, const char *name);

#endif
