/* SPDX-License-Identifier: MIT */
#include "profile/modules.h"

#include "base/bits.h"
#include "os/confine.h"
#include "os/elf.h"
#include "os/module.h"
#include "os/program.h"
#include "os/shared.h"
#include "os/unwind.h"
#include "profile/sites.h"

#include <string.h>

static struct board_module modules[HAK_BOARD_MODULES];
HAK_AT_HAND static _Atomic uint32_t module_count; /* of those that are whole */

static void read_headers(struct board_module *to, uintptr_t address, bool is_program)
{
    struct os_elf file;
    size_t bytes = 0;
    /* Of a static program libc knows only where the code is, the kernel where the headers are. */
    if (!hak_elf_open(&file, to->start, to->end) && !(is_program && hak_elf_open_program(&file)))
        return;
    const void *build_id = hak_elf_note(&file, ELF_NOTE_GNU, NT_GNU_BUILD_ID, &bytes);
    to->build_id_bytes = (uint32_t)hak_least(bytes, HAK_BOARD_BUILD_ID_BYTES);
    if (build_id != NULL)
        memcpy(to->build_id, build_id, to->build_id_bytes);
    const ElfW(Phdr) *segment = hak_elf_segment_at(&file, address);
    if (segment != NULL) {
        to->start = file.bias + segment->p_vaddr;
        to->end = to->start + segment->p_memsz;
        to->file_offset = segment->p_offset;
    }
}

/* The end of the path, if it is too long. */
static void write_path(char *to, const char *path)
{
    size_t length = strlen(path);
    size_t cut = length >= HAK_BOARD_PATH_BYTES ? length - HAK_BOARD_PATH_BYTES + 1 : 0;
    memcpy(to, path + cut, length - cut + 1);
}

const struct board_module *hak_modules_find(uintptr_t address)
{
    for (uint32_t i = hak_modules_count(); i > 0; i--)
        if (address - modules[i - 1].start < modules[i - 1].end - modules[i - 1].start)
            return &modules[i - 1];
    return NULL;
}

/* Finds the path and the headers of the module at an address. */
static void describe(struct board_module *found, const struct os_module *module, uintptr_t address)
{
    char program[HAK_BOARD_PATH_BYTES];
    bool is_program = module->path[0] == '\0';
    if (is_program) {
        hak_os_program_path(program, sizeof program);
        write_path(found->path, program);
    }
    read_headers(found, address, is_program);
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

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* Whether the loader's path can be that of a known module: a relative one has been made whole. */
static bool may_be(const char *known, const char *path)
{
    if (*path == '\0') /* the program */
        return true;
    return *path == '/' ? strcmp(known, path) == 0 : strcmp(base_name(known), base_name(path)) == 0;
}

/* The loader keeps a path as it was asked by it, and the process may have gone elsewhere since. */
static void make_whole(struct board_module *found, uintptr_t address)
{
    char path[HAK_BOARD_PATH_BYTES];
    if (found->path[0] != '/' && hak_os_module_path(address, path, sizeof path))
        write_path(found->path, path);
}

static void add(uintptr_t address)
{
    struct os_module module;
    struct board_module found;
    if (!find_loaded(address, &module, &found))
        return;
    const struct board_module *known = hak_modules_find(address);
    if (known != NULL && known->bias == found.bias && may_be(known->path, found.path))
        return;
    uint32_t count = hak_load_relaxed(&module_count);
    if (count == HAK_BOARD_MODULES) {
        hak_sites_note_dropped(modules_full);
        return;
    }
    describe(&found, &module, address);
    make_whole(&found, address);
    modules[count] = found;
    /* release: partner is the acquire in hak_modules_count; and a copy of the process that is made
     * meanwhile has no part of one */
    hak_store_release(&module_count, count + 1);
}

void hak_modules_add(const uint64_t *frames, uint32_t frame_count)
{
    if (hak_load_relaxed(&module_count) == 0)
        add(hak_os_program_entry());
    for (uint32_t i = 0; i < frame_count; i++)
        add((uintptr_t)frames[i] - 1);
}

uint32_t hak_modules_count(void)
{
    /* acquire: partner is the release in add */
    return hak_load_acquire(&module_count);
}

const struct board_module *hak_modules_at(uint32_t index)
{
    return &modules[index];
}

/* Puts memory behind a module of a board where it has none from its beginning on. */
static bool back(struct board_module *module, uint64_t index)
{
    if (index < HAK_BOARD_FIRST_MODULES)
        return true;
    if (!hak_os_ask_begin())
        return false;
    bool is_backed = hak_os_shared_back(module, sizeof *module);
    hak_os_ask_end();
    return is_backed;
}

static void show_new(struct profile_board *board)
{
    uint32_t count = hak_load_relaxed(&module_count);
    for (uint64_t i = hak_load_relaxed(&board->head.module_count); i < count; i++) {
        struct board_module *to = &board->modules[i];
        size_t state_bytes = sizeof to->state;
        if (!back(to, i)) {
            hak_sites_note_dropped(modules_full);
            return;
        }
        memcpy((char *)to + state_bytes, (const char *)&modules[i] + state_bytes,
               sizeof *to - state_bytes);
        /* release: partner is the acquire of the board's readers */
        hak_store_release(&to->state, BOARD_READY);
        hak_store_relaxed(&board->head.module_count, i + 1);
    }
}

void hak_modules_show(struct profile_board *board)
{
    show_new(board);
    hak_store_relaxed(&board->head.dropped.modules_full,
                      hak_load_relaxed(&hak_sites_dropped.modules_full));
}
