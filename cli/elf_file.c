/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "elf_file.h"

#include <stdio.h>
#include <string.h>

static const void *piece(const struct elf_file *file, uint64_t offset, uint64_t bytes)
{
    bool is_inside = offset <= file->bytes && bytes <= file->bytes - offset;
    return is_inside ? file->start + offset : NULL;
}

static bool read_header(const struct elf_file *file, uint32_t index, Elf64_Phdr *header)
{
    const void *from = NULL;
    if (file->head.e_phentsize == sizeof *header)
        from = piece(file, file->head.e_phoff + (uint64_t)index * sizeof *header, sizeof *header);
    if (from != NULL)
        memcpy(header, from, sizeof *header);
    return from != NULL;
}

/* The first program header of the type; false: there is none. */
static bool find_header(const struct elf_file *file, uint32_t type, Elf64_Phdr *header)
{
    for (uint32_t i = 0; i < file->head.e_phnum && read_header(file, i, header); i++)
        if (header->p_type == type)
            return true;
    return false;
}

/* What will be at `address` when the file is loaded, with all that follows in its segment; NULL:
 * nothing of the file. */
static const char *at_address(const struct elf_file *file, uint64_t address, uint64_t *bytes)
{
    Elf64_Phdr header;
    for (uint32_t i = 0; i < file->head.e_phnum && read_header(file, i, &header); i++) {
        uint64_t inside = address - header.p_vaddr;
        if (header.p_type != PT_LOAD || inside >= header.p_filesz)
            continue;
        *bytes = header.p_filesz - inside;
        return piece(file, header.p_offset + inside, *bytes);
    }
    return NULL;
}

static bool read_at(const struct elf_file *file, uint64_t address, void *to, size_t to_bytes)
{
    uint64_t bytes;
    const char *from = at_address(file, address, &bytes);
    if (from == NULL || bytes < to_bytes)
        return false;
    memcpy(to, from, to_bytes);
    return true;
}

/* The string that begins at an offset of the names; NULL: none that ends. */
static const char *name_at(const struct elf_file *file, uint64_t offset)
{
    uint64_t bytes;
    const char *name = at_address(file, file->names + offset, &bytes);
    return name != NULL && memchr(name, '\0', bytes) != NULL ? name : NULL;
}

static bool read_dynamic(const struct elf_file *file, uint64_t index, Elf64_Dyn *entry)
{
    uint64_t offset = index * sizeof *entry;
    const void *from = NULL;
    if (offset < file->dynamic.p_filesz)
        from = piece(file, file->dynamic.p_offset + offset, sizeof *entry);
    if (from != NULL)
        memcpy(entry, from, sizeof *entry);
    return from != NULL && entry->d_tag != DT_NULL;
}

static void read_tables(struct elf_file *file)
{
    Elf64_Dyn entry;
    if (!find_header(file, PT_DYNAMIC, &file->dynamic))
        file->dynamic.p_filesz = 0;
    for (uint64_t i = 0; read_dynamic(file, i, &entry); i++) {
        if (entry.d_tag == DT_STRTAB)
            file->names = entry.d_un.d_ptr;
        else if (entry.d_tag == DT_SYMTAB)
            file->symbols = entry.d_un.d_ptr;
        else if (entry.d_tag == DT_HASH)
            file->hash = entry.d_un.d_ptr;
        else if (entry.d_tag == DT_GNU_HASH)
            file->gnu_hash = entry.d_un.d_ptr;
    }
}

bool elf_open(struct elf_file *file, const char *start, size_t bytes, const unsigned char *own)
{
    *file = (struct elf_file){.start = start, .bytes = bytes};
    const void *head = piece(file, 0, sizeof file->head);
    if (head == NULL || memcmp(start, own, EI_DATA + 1) != 0)
        return false;
    memcpy(&file->head, head, sizeof file->head);
    Elf64_Ehdr own_head;
    memcpy(&own_head, own, sizeof own_head);
    if (file->head.e_machine != own_head.e_machine)
        return false;
    read_tables(file);
    return true;
}

bool elf_loader(const struct elf_file *file, char *name, size_t name_bytes)
{
    Elf64_Phdr header;
    if (!find_header(file, PT_INTERP, &header))
        return false;
    const char *from = piece(file, header.p_offset, header.p_filesz);
    size_t bytes = from == NULL ? 0 : strnlen(from, header.p_filesz);
    snprintf(name, name_bytes, "%.*s", (int)(bytes < name_bytes ? bytes : name_bytes),
             from == NULL ? "" : from);
    return true;
}

bool elf_needed(const struct elf_file *file, int index, char *name, size_t name_bytes)
{
    Elf64_Dyn entry;
    for (uint64_t i = 0; read_dynamic(file, i, &entry); i++) {
        if (entry.d_tag != DT_NEEDED || index-- > 0)
            continue;
        const char *from = name_at(file, entry.d_un.d_val);
        snprintf(name, name_bytes, "%s", from == NULL ? "" : from);
        return true;
    }
    return false;
}

/* The symbol that follows the last one of the hash table in GNU's form: its chains end with an odd
 * word. */
static uint64_t gnu_symbol_count(const struct elf_file *file)
{
    uint32_t head[4], last = 0, word; /* buckets, first symbol, words of the filter, its shift */
    if (!read_at(file, file->gnu_hash, head, sizeof head))
        return 0;
    uint64_t buckets = file->gnu_hash + sizeof head + (uint64_t)head[2] * sizeof(uint64_t);
    for (uint64_t i = 0; i < head[0]; i++) {
        if (!read_at(file, buckets + i * sizeof word, &word, sizeof word))
            return 0;
        last = word > last ? word : last;
    }
    if (last < head[1])
        return 0;
    uint64_t chains = buckets + (uint64_t)head[0] * sizeof word;
    do {
        if (!read_at(file, chains + (uint64_t)(last - head[1]) * sizeof word, &word, sizeof word))
            return 0;
        last++;
    } while (word % 2 == 0);
    return last;
}

static uint64_t symbol_count(const struct elf_file *file)
{
    uint32_t head[2]; /* buckets, chains: of these one for each symbol */
    if (file->gnu_hash != 0)
        return gnu_symbol_count(file);
    return file->hash != 0 && read_at(file, file->hash, head, sizeof head) ? head[1] : 0;
}

static bool is_definition(const Elf64_Sym *symbol)
{
    int type = ELF64_ST_TYPE(symbol->st_info), binding = ELF64_ST_BIND(symbol->st_info);
    int visibility = ELF64_ST_VISIBILITY(symbol->st_other);
    return symbol->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC) &&
           (binding == STB_GLOBAL || binding == STB_WEAK) &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

bool elf_defines(const struct elf_file *file, const char *name)
{
    uint64_t count = symbol_count(file);
    Elf64_Sym symbol;
    for (uint64_t i = 0; i < count; i++) {
        if (!read_at(file, file->symbols + i * sizeof symbol, &symbol, sizeof symbol))
            return false;
        const char *found = is_definition(&symbol) ? name_at(file, symbol.st_name) : NULL;
        if (found != NULL && strcmp(found, name) == 0)
            return true;
    }
    return false;
}
