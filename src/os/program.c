/* SPDX-License-Identifier: MIT */
#include "os/program.h"

#include "base/limits.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

struct headers {
    const ElfW(Phdr) * segments;
    size_t count;
    uintptr_t bias; /* from linked to actual addresses */
};

/* Where the headers were linked to be: they say it themselves, or, in static programs, follow the
 * file's header at the start of the first segment. False: they do not. */
static bool find_linked(const struct headers *headers, uintptr_t *linked)
{
    for (size_t i = 0; i < headers->count; i++) {
        const ElfW(Phdr) *segment = &headers->segments[i];
        *linked = segment->p_vaddr + (segment->p_type == PT_PHDR ? 0 : sizeof(ElfW(Ehdr)));
        if (segment->p_type == PT_PHDR || (segment->p_type == PT_LOAD && segment->p_offset == 0))
            return ((uintptr_t)headers->segments - *linked) % HAK_PAGE_BYTES_LEAST == 0;
    }
    return false;
}

static struct headers find_headers(void)
{
    struct headers headers = {(const ElfW(Phdr) *)getauxval(AT_PHDR), getauxval(AT_PHNUM), 0};
    uintptr_t linked = 0;
    if (headers.segments == NULL || !find_linked(&headers, &linked))
        headers.count = 0;
    headers.bias = (uintptr_t)headers.segments - linked;
    return headers;
}

bool hak_os_is_in_program(uintptr_t address)
{
    struct headers headers = find_headers();
    bool is_in = false;
    for (size_t i = 0; i < headers.count && !is_in; i++) {
        const ElfW(Phdr) *segment = &headers.segments[i];
        is_in = segment->p_type == PT_LOAD &&
                address - headers.bias - segment->p_vaddr < segment->p_memsz;
    }
    return is_in;
}

static bool has_note_of_go(const ElfW(Phdr) * segment, uintptr_t bias)
{
    const char *at = (const char *)(bias + segment->p_vaddr);
    const char *end = at + segment->p_memsz;
    while (segment->p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)at;
        const char *name = at + sizeof *note;
        if (note->n_namesz == 4 && memcmp(name, "Go\0", 4) == 0)
            return true;
        at = name + ((note->n_namesz + 3) & ~3u) + ((note->n_descsz + 3) & ~3u);
    }
    return false;
}

bool hak_os_program_is_go(void)
{
    struct headers headers = find_headers();
    bool is_go = false;
    for (size_t i = 0; i < headers.count && !is_go; i++)
        is_go = has_note_of_go(&headers.segments[i], headers.bias);
    return is_go;
}

const char *hak_os_program_name(void)
{
    const char *path = (const char *)getauxval(AT_EXECFN);
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    return slash != NULL ? slash + 1 : path != NULL ? path : "";
}
