/* SPDX-License-Identifier: MIT */
#include "os/program.h"

#include "os/elf.h"

#include <string.h>
#include <sys/auxv.h>

bool hak_os_is_in_program(uintptr_t address)
{
    struct os_elf program;
    return hak_elf_open_program(&program) && hak_elf_segment_at(&program, address) != NULL;
}

bool hak_os_program_is_go(void)
{
    struct os_elf program;
    size_t bytes;
    return hak_elf_open_program(&program) && hak_elf_note(&program, "Go\0", 0, &bytes) != NULL;
}

uintptr_t hak_os_program_entry(void)
{
    return getauxval(AT_ENTRY);
}

const char *hak_os_program_name(void)
{
    const char *path = (const char *)getauxval(AT_EXECFN);
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    return slash != NULL ? slash + 1 : path != NULL ? path : "";
}
