/* SPDX-License-Identifier: MIT */
/* tests/fuzz/elf_fuzz.c - any bytes as a loaded ELF file: nothing outside it is read, and what is
 * found lies in it. */
#include "fuzz.h"

#include "os/elf.h"

/* A file with one loaded segment and one of notes, which the input damages. */
static void make_file(struct input *input, char *bytes, size_t byte_count)
{
    ElfW(Ehdr) head = {
        .e_ident = ELFMAG, .e_phoff = sizeof head, .e_phentsize = sizeof(ElfW(Phdr)), .e_phnum = 2};
    ElfW(Phdr) segments[2] = {
        {.p_type = PT_LOAD, .p_memsz = byte_count, .p_filesz = byte_count},
        {.p_type = PT_NOTE, .p_vaddr = sizeof head + sizeof segments, .p_filesz = 100}};
    size_t used = sizeof head + sizeof segments;
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, segments, sizeof segments);
    for (uint32_t i = input_byte(input) % 8; i > 0; i--)
        bytes[input_below(input, used)] = (char)input_byte(input);
    while (!input_is_over(input) && used < byte_count)
        bytes[used++] = (char)input_byte(input);
}

static void read_file(const char *bytes, size_t byte_count)
{
    struct os_elf file;
    size_t content_bytes = 0;
    uintptr_t start = (uintptr_t)bytes;
    if (!hak_elf_open(&file, start, start + byte_count))
        return;
    const ElfW(Phdr) *segment = hak_elf_segment_at(&file, start);
    CHECK(segment == NULL || (uintptr_t)(segment + 1) <= start + byte_count);
    const char *content = hak_elf_note(&file, ELF_NOTE_GNU, 0, &content_bytes);
    CHECK(content == NULL || (content >= bytes && content + content_bytes <= bytes + byte_count));
    for (size_t i = 0; content != NULL && i < content_bytes; i++)
        CHECK(content[i] == *(const volatile char *)&content[i]);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    struct input input = {bytes, bytes + byte_count};
    char *copy = malloc(byte_count + 1);
    memcpy(copy, bytes, byte_count);
    read_file(copy, byte_count);
    free(copy);
    size_t made_bytes = 200 + input_below(&input, 400);
    char *made = calloc(1, made_bytes);
    make_file(&input, made, made_bytes);
    read_file(made, made_bytes);
    free(made);
    return 0;
}
