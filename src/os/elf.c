/* SPDX-License-Identifier: MIT */
#include "os/elf.h"

#include "base/bits.h"
#include "base/limits.h"
#include "os/frames.h"

#include <string.h>
#include <sys/auxv.h>

static uintptr_t page_of(uintptr_t address)
{
    return hak_align_down(address, HAK_PAGE_BYTES_LEAST);
}

/* Whether all of it lies in the file and can be read. */
static bool is_readable(const struct os_elf *elf, uintptr_t at, size_t bytes)
{
    if (at < elf->start || at > elf->end || bytes > elf->end - at)
        return false;
    uintptr_t end = at + bytes;
    for (uintptr_t word = at & ~(uintptr_t)7; word < end;
         word = page_of(word) + HAK_PAGE_BYTES_LEAST)
        if (page_of(word) != elf->header_page && !hak_os_is_readable(word))
            return false;
    return true;
}

bool hak_elf_open(struct os_elf *elf, uintptr_t start, uintptr_t end)
{
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)start;
    *elf = (struct os_elf){.start = start, .end = end, .header_page = UINTPTR_MAX};
    if (start % alignof(ElfW(Ehdr)) != 0 || !is_readable(elf, start, sizeof *head))
        return false;
    elf->header_page = page_of(start);
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_phentsize != sizeof(ElfW(Phdr)) ||
        head->e_phoff % alignof(ElfW(Phdr)) != 0)
        return false;
    size_t bytes = head->e_phnum * sizeof(ElfW(Phdr));
    if (bytes > HAK_PAGE_BYTES_LEAST || head->e_phoff > HAK_PAGE_BYTES_LEAST - bytes ||
        !is_readable(elf, start + head->e_phoff, bytes))
        return false;
    elf->segments = (const ElfW(Phdr) *)(start + head->e_phoff);
    elf->segment_count = head->e_phnum;
    for (uint32_t i = 0; i < elf->segment_count; i++)
        if (elf->segments[i].p_type == PT_LOAD) {
            elf->bias = start - (elf->segments[i].p_vaddr - elf->segments[i].p_offset);
            return true;
        }
    return false;
}

/* Where the headers were linked to be: they say it themselves, or, in static programs, follow the
 * file's header at the start of the first segment. False: they do not. */
static bool find_linked(const struct os_elf *elf, uintptr_t *linked)
{
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const ElfW(Phdr) *segment = &elf->segments[i];
        *linked = segment->p_vaddr + (segment->p_type == PT_PHDR ? 0 : sizeof(ElfW(Ehdr)));
        if (segment->p_type == PT_PHDR || (segment->p_type == PT_LOAD && segment->p_offset == 0))
            return ((uintptr_t)elf->segments - *linked) % HAK_PAGE_BYTES_LEAST == 0;
    }
    return false;
}

bool hak_elf_open_program(struct os_elf *elf)
{
    uintptr_t linked;
    *elf = (struct os_elf){.segments = (const ElfW(Phdr) *)getauxval(AT_PHDR),
                           .segment_count = (uint32_t)getauxval(AT_PHNUM),
                           .end = UINTPTR_MAX,
                           .header_page = UINTPTR_MAX};
    if (elf->segments == NULL || !find_linked(elf, &linked))
        return false;
    elf->bias = (uintptr_t)elf->segments - linked;
    return true;
}

const ElfW(Phdr) * hak_elf_segment_at(const struct os_elf *elf, uintptr_t address)
{
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const ElfW(Phdr) *segment = &elf->segments[i];
        if (segment->p_type == PT_LOAD && address - elf->bias - segment->p_vaddr < segment->p_memsz)
            return segment;
    }
    return NULL;
}

/* Searches the notes of one segment, whose parts are aligned to 4 bytes, or 8 if it says so. */
static const void *find_note(const char *notes, const ElfW(Phdr) * segment, const char owner[4],
                             uint32_t type, size_t *bytes)
{
    size_t alignment = segment->p_align == 8 ? 8 : 4;
    for (size_t at = 0, end = segment->p_filesz; end - at >= sizeof(ElfW(Nhdr)) + 4;) {
        ElfW(Nhdr) note;
        memcpy(&note, notes + at, sizeof note);
        size_t content = at + hak_align_up(sizeof note + note.n_namesz, alignment);
        if (content > end || note.n_descsz > end - content)
            return NULL;
        if (note.n_namesz == 4 && memcmp(notes + at + sizeof note, owner, 4) == 0 &&
            (type == 0 || type == note.n_type)) {
            *bytes = note.n_descsz;
            return notes + content;
        }
        at = content + hak_least(hak_align_up(note.n_descsz, alignment), end - content);
    }
    return NULL;
}

const void *hak_elf_note(const struct os_elf *elf, const char owner[4], uint32_t type,
                         size_t *bytes)
{
    const void *found = NULL;
    for (uint32_t i = 0; i < elf->segment_count && found == NULL; i++) {
        const ElfW(Phdr) *segment = &elf->segments[i];
        uintptr_t start = elf->bias + segment->p_vaddr;
        if (segment->p_type == PT_NOTE && is_readable(elf, start, segment->p_filesz))
            found = find_note((const char *)start, segment, owner, type, bytes);
    }
    return found;
}
