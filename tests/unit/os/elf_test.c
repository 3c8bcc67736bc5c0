/* SPDX-License-Identifier: MIT */
/* tests/unit/os/elf_test.c - headers and notes of whole files are read, of damaged ones none. */
#include "../../check.h"

#include "os/elf.h"

#include <sys/mman.h>

#define PIECE_BYTES ((size_t)65536)

extern const char __ehdr_start __attribute__((visibility("hidden")));

/* A file of two pieces, of a page or more each; its second segment has two notes. */
struct file {
    ElfW(Ehdr) head;
    ElfW(Phdr) segments[2];
    struct note {
        ElfW(Nhdr) head;
        char owner[4];
        char content[8];
    } notes[2];
    char rest[2 * PIECE_BYTES - 64 - 2 * 56 - 2 * 24];
};

static struct file *file_new(void)
{
    struct file *file =
        mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(file != MAP_FAILED);
    *file = (struct file){.head = {.e_ident = ELFMAG,
                                   .e_phoff = offsetof(struct file, segments),
                                   .e_phentsize = sizeof(ElfW(Phdr)),
                                   .e_phnum = 2},
                          .segments = {{.p_type = PT_LOAD, .p_vaddr = 0x10000, .p_memsz = 0x1800},
                                       {.p_type = PT_NOTE,
                                        .p_vaddr = 0x10000 + offsetof(struct file, notes),
                                        .p_filesz = sizeof file->notes,
                                        .p_align = 4}},
                          .notes = {{{4, 6, 1}, "One", "first"}, {{4, 8, 3}, "GNU", "second."}}};
    return file;
}

static bool is_open(const struct file *file, struct os_elf *elf)
{
    return hak_elf_open(elf, (uintptr_t)file, (uintptr_t)(file + 1));
}

static const void *note_of(const struct file *file, const char owner[4], uint32_t type)
{
    struct os_elf elf;
    size_t bytes;
    return is_open(file, &elf) ? hak_elf_note(&elf, owner, type, &bytes) : NULL;
}

TEST(the_running_program_has_its_segments_and_its_build_id)
{
    struct os_elf program, file;
    size_t bytes = 0, file_bytes = 0;
    CHECK(hak_elf_open_program(&program));
    CHECK(hak_elf_segment_at(&program, (uintptr_t)&__ehdr_start) != NULL);
    CHECK(hak_elf_segment_at(&program, (uintptr_t)&program) == NULL);
    CHECK(hak_elf_open(&file, (uintptr_t)&__ehdr_start, UINTPTR_MAX));
    CHECK_EQ(file.bias, program.bias);
    const void *id = hak_elf_note(&program, ELF_NOTE_GNU, NT_GNU_BUILD_ID, &bytes);
    CHECK(id == hak_elf_note(&file, ELF_NOTE_GNU, NT_GNU_BUILD_ID, &file_bytes));
    CHECK_EQ(bytes, file_bytes);
}

TEST(segments_and_notes_are_found_by_addresses_of_the_process)
{
    struct file *file = file_new();
    struct os_elf elf;
    size_t bytes = 0;
    CHECK(is_open(file, &elf));
    CHECK_EQ(elf.bias, (uintptr_t)file - 0x10000);
    CHECK(hak_elf_segment_at(&elf, (uintptr_t)file + 0x17ff) == file->segments);
    CHECK(hak_elf_segment_at(&elf, (uintptr_t)file + 0x1800) == NULL);
    CHECK(hak_elf_segment_at(&elf, (uintptr_t)file - 1) == NULL);
    CHECK(hak_elf_note(&elf, "GNU", 3, &bytes) == file->notes[1].content);
    CHECK_EQ(bytes, 8);
    CHECK(hak_elf_note(&elf, "One", 0, &bytes) == file->notes[0].content);
    CHECK_EQ(bytes, 6);
    CHECK(hak_elf_note(&elf, "GNU", 1, &bytes) == NULL);
    CHECK(hak_elf_note(&elf, "Two", 0, &bytes) == NULL);
}

TEST(a_damaged_head_is_refused)
{
    struct os_elf elf;
    struct file *file = file_new();
    file->head.e_ident[0] = 'E';
    CHECK(!is_open(file, &elf));
    file = file_new();
    file->head.e_phentsize = 32;
    CHECK(!is_open(file, &elf));
    file = file_new();
    file->head.e_phoff = UINT64_MAX - 55;
    CHECK(!is_open(file, &elf));
    file = file_new();
    file->head.e_phoff++;
    CHECK(!is_open(file, &elf));
    file = file_new();
    file->head.e_phnum = UINT16_MAX;
    CHECK(!is_open(file, &elf));
    file = file_new();
    file->segments[0].p_type = PT_NULL;
    CHECK(!is_open(file, &elf));
    CHECK(!hak_elf_open(&elf, (uintptr_t)file + 4, (uintptr_t)(file + 1)));
    CHECK(!hak_elf_open(&elf, (uintptr_t)file, (uintptr_t)file + 40));
}

TEST(notes_outside_the_file_or_their_segment_are_not_read)
{
    struct file *file = file_new();
    CHECK(note_of(file, "GNU", 3) != NULL);
    file->notes[0].head.n_descsz = UINT32_MAX;
    CHECK(note_of(file, "GNU", 3) == NULL);
    file = file_new();
    file->notes[0].head.n_namesz = UINT32_MAX;
    CHECK(note_of(file, "GNU", 3) == NULL);
    file = file_new();
    file->notes[1].head.n_descsz = 9;
    CHECK(note_of(file, "GNU", 3) == NULL);
    file = file_new();
    file->segments[1].p_filesz = SIZE_MAX;
    CHECK(note_of(file, "GNU", 3) == NULL);
    file = file_new();
    file->segments[1].p_vaddr = 0xf000;
    CHECK(note_of(file, "GNU", 3) == NULL);
}

TEST(pages_that_cannot_be_read_are_not)
{
    struct file *file = file_new();
    struct os_elf elf;
    file->segments[1].p_filesz = sizeof *file - offsetof(struct file, notes);
    CHECK(note_of(file, "GNU", 3) != NULL);
    CHECK_EQ(munmap((char *)file + PIECE_BYTES, PIECE_BYTES), 0);
    CHECK(is_open(file, &elf));
    CHECK(note_of(file, "GNU", 3) == NULL);
    CHECK_EQ(munmap(file, PIECE_BYTES), 0);
    CHECK(!is_open(file, &elf));
}
