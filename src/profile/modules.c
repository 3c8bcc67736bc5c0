/* SPDX-License-Identifier: MIT */
#include "profile/modules.h"

#include "base/bits.h"
#include "os/frames.h"
#include "os/unwind.h"
#include "profile/sites.h"

#include <elf.h>
#include <string.h>

/* A file's first page has its headers. */
#define HEADER_BYTES 4096u
/* A module's notes are looked through so far. */
#define NOTES_MOST 16u

static bool is_readable(uintptr_t start, size_t bytes)
{
    uintptr_t end = start + bytes;
    for (uintptr_t at = start & ~(uintptr_t)7; at < end; at = (at | (HEADER_BYTES - 1)) + 1)
        if (!hak_os_is_readable(at))
            return false;
    return true;
}

/* The program headers of a mapped file, and their number; NULL: it is not to be read. */
static const Elf64_Phdr *headers_of(const struct os_module *module, uint32_t *count)
{
    const Elf64_Ehdr *file = (const Elf64_Ehdr *)module->start;
    if (!is_readable(module->start, sizeof *file) || memcmp(file->e_ident, ELFMAG, SELFMAG) != 0 ||
        file->e_phentsize != sizeof(Elf64_Phdr) ||
        file->e_phoff + file->e_phnum * sizeof(Elf64_Phdr) > HEADER_BYTES)
        return NULL;
    *count = file->e_phnum;
    return (const Elf64_Phdr *)(module->start + file->e_phoff);
}

static void find_build_id(struct board_module *to, uintptr_t start, size_t bytes)
{
    uintptr_t end = start + bytes;
    for (uint32_t i = 0; i < NOTES_MOST && start + sizeof(Elf64_Nhdr) < end; i++) {
        const Elf64_Nhdr *note = (const Elf64_Nhdr *)start;
        const char *name = (const char *)(note + 1);
        const char *content = name + hak_align_up(note->n_namesz, 4);
        if ((uintptr_t)content + note->n_descsz > end)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
            to->build_id_bytes = (uint32_t)hak_least(note->n_descsz, HAK_BOARD_BUILD_ID_BYTES);
            memcpy(to->build_id, content, to->build_id_bytes);
            return;
        }
        start = (uintptr_t)content + hak_align_up(note->n_descsz, 4);
    }
}

static void read_headers(struct board_module *to, const struct os_module *module, uintptr_t address)
{
    uint32_t count = 0;
    const Elf64_Phdr *headers = headers_of(module, &count);
    for (uint32_t i = 0; headers != NULL && i < count; i++) {
        uintptr_t start = module->bias + headers[i].p_vaddr;
        if (headers[i].p_type == PT_LOAD && address - start < headers[i].p_memsz) {
            to->start = start;
            to->end = start + headers[i].p_memsz;
            to->file_offset = headers[i].p_offset;
        }
        if (headers[i].p_type == PT_NOTE && to->build_id_bytes == 0 &&
            is_readable(start, headers[i].p_memsz))
            find_build_id(to, start, headers[i].p_memsz);
    }
}

/* The end of the path, if it is too long. */
static void write_path(char *to, const char *path)
{
    size_t length = strlen(path);
    size_t cut = length >= HAK_BOARD_PATH_BYTES ? length - HAK_BOARD_PATH_BYTES + 1 : 0;
    memcpy(to, path + cut, length - cut + 1);
}

static void publish(struct profile_board *board, const struct board_module *module)
{
    uint64_t index = hak_load_relaxed(&board->head.module_count);
    if (index == HAK_BOARD_MODULES) {
        hak_sites_note_dropped(modules_full);
        return;
    }
    struct board_module *to = &board->modules[index];
    size_t state_bytes = sizeof to->state;
    memcpy((char *)to + state_bytes, (const char *)module + state_bytes, sizeof *to - state_bytes);
    /* release: partner is the acquire of the board's readers */
    hak_store_release(&to->state, BOARD_READY);
    hak_store_relaxed(&board->head.module_count, index + 1);
}

/* The newest that has the address; NULL: none. */
static const struct board_module *find(const struct profile_board *board, uintptr_t address)
{
    for (uint64_t i = hak_load_relaxed(&board->head.module_count); i > 0; i--) {
        const struct board_module *module = &board->modules[i - 1];
        if (address - module->start < module->end - module->start)
            return module;
    }
    return NULL;
}

/* What an address of the module says beside where it is loaded. */
static void describe(struct board_module *found, const struct os_module *module, uintptr_t address)
{
    char program[HAK_BOARD_PATH_BYTES];
    if (module->path[0] == '\0') {
        hak_os_program_path(program, sizeof program);
        write_path(found->path, program);
    }
    read_headers(found, module, address);
}

static bool find_loaded(uintptr_t address, struct os_module *module, struct board_module *found)
{
    if (!hak_os_module_of(address, module))
        return false;
    *found =
        (struct board_module){.start = module->start, .end = module->end, .bias = module->bias};
    write_path(found->path, module->path);
    return true;
}

bool hak_module_describe(uintptr_t address, struct board_module *found)
{
    struct os_module module;
    bool is_found = find_loaded(address, &module, found);
    if (is_found)
        describe(found, &module, address);
    return is_found;
}

static void add(struct profile_board *board, uintptr_t address)
{
    struct os_module module;
    struct board_module found;
    if (!find_loaded(address, &module, &found))
        return;
    const struct board_module *known = find(board, address);
    if (known != NULL && known->bias == found.bias &&
        (found.path[0] == '\0' || strcmp(known->path, found.path) == 0))
        return;
    describe(&found, &module, address);
    publish(board, &found);
}

void hak_modules_add(struct profile_board *board, const uint64_t *frames, uint32_t frame_count)
{
    for (uint32_t i = 0; i < frame_count; i++)
        add(board, (uintptr_t)frames[i] - 1);
}

void hak_modules_copy(struct profile_board *to, const struct profile_board *from)
{
    for (uint64_t i = 0; i < hak_load_relaxed(&from->head.module_count); i++)
        if (hak_load_acquire(&from->modules[i].state) == BOARD_READY)
            publish(to, &from->modules[i]);
}
