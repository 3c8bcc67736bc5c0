/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "profiles/symbols.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is asked of libdw, which is loaded when it is first needed: the command runs without it. */
#define LIBDW_TABLE(X)                                                                             \
    X(dwarf_attr_integrate)                                                                        \
    X(dwarf_diename)                                                                               \
    X(dwarf_dieoffset)                                                                             \
    X(dwarf_filesrc)                                                                               \
    X(dwarf_formstring)                                                                            \
    X(dwarf_formudata)                                                                             \
    X(dwarf_getscopes)                                                                             \
    X(dwarf_getscopes_die)                                                                         \
    X(dwarf_getsrc_die)                                                                            \
    X(dwarf_getsrcfiles)                                                                           \
    X(dwarf_haspc)                                                                                 \
    X(dwarf_lineno)                                                                                \
    X(dwarf_linesrc)                                                                               \
    X(dwarf_offdie)                                                                                \
    X(dwarf_tag)                                                                                   \
    X(dwfl_begin)                                                                                  \
    X(dwfl_end)                                                                                    \
    X(dwfl_module_addrdie)                                                                         \
    X(dwfl_module_getsym_info)                                                                     \
    X(dwfl_module_getsymtab)                                                                       \
    X(dwfl_module_build_id)                                                                        \
    X(dwfl_module_getdwarf)                                                                        \
    X(dwfl_module_nextcu)                                                                          \
    X(dwfl_offline_section_address)                                                                \
    X(dwfl_report_begin)                                                                           \
    X(dwfl_report_elf)                                                                             \
    X(dwfl_report_end)                                                                             \
    X(dwfl_standard_find_debuginfo)

static struct {
#define X(name) __typeof__(&name) name;
    LIBDW_TABLE(X)
#undef X
} dw;

/* False: it is not here, or too old. */
static bool load_libdw(void)
{
    static enum { UNKNOWN, THERE, ABSENT } state;
    void *library = state == UNKNOWN ? dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
    if (state == UNKNOWN)
        state = library != NULL ? THERE : ABSENT;
    if (library != NULL) {
#define X(name)                                                                                    \
    state = (dw.name = (__typeof__(dw.name))dlsym(library, #name)) != NULL ? state : ABSENT;
        LIBDW_TABLE(X)
#undef X
    }
    return state == THERE;
}

const char *symbols_missing(void)
{
    return load_libdw() ? NULL : "libdw.so.1 of elfutils is not installed";
}

char *symbol_demangle(const char *name)
{
    bool is_mangled = name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
    return is_mangled ? cplus_demangle(name, DMGL_ANSI | DMGL_AUTO) : NULL;
}

/* The file of one module, opened; its addresses are those of the file itself. */
struct session {
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwarf_Die *last_unit;       /* in which an address was found without an index of addresses */
    struct function *functions; /* of the symbol table, sorted by address */
    size_t function_count;
    bool has_functions;
};

struct function {
    uint64_t start, bytes; /* 0: not known */
    const char *name;
    int rank; /* of two names of one function that of the higher rank is used */
};

static char *debug_folders;

static bool read_all(int fd, void *to, size_t bytes, uint64_t offset)
{
    return offset < INT64_MAX && pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Where the module's mapping lies less where its file says: the segment is the one that holds the
 * mapping's offset. */
static bool find_bias(struct module *module, int fd)
{
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    if (!read_all(fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof segment)
        return false;
    for (uint32_t i = 0; i < head.e_phnum; i++) {
        if (!read_all(fd, &segment, sizeof segment, head.e_phoff + i * sizeof segment))
            return false;
        uint64_t page = segment.p_align > 1 ? segment.p_align - 1 : 0;
        uint64_t first = segment.p_offset & ~page;
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0 || module->offset < first ||
            module->offset >= segment.p_offset + segment.p_filesz)
            continue;
        module->bias = module->start - module->offset + segment.p_offset - segment.p_vaddr;
        module->has_bias = true;
        return true;
    }
    return false;
}

static bool has_build_id(struct session *session, const char *wanted)
{
    const unsigned char *id;
    GElf_Addr address;
    int bytes = dw.dwfl_module_build_id(session->module, &id, &address);
    if (*wanted == '\0')
        return true;
    if (bytes <= 0 || strlen(wanted) != (size_t)bytes * 2)
        return false;
    for (int i = 0; i < bytes; i++) {
        char digits[3];
        snprintf(digits, sizeof digits, "%02x", id[i]);
        if (memcmp(digits, wanted + (size_t)i * 2, 2) != 0)
            return false;
    }
    return true;
}

static int no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path,
                  Elf **elf)
{
    (void)module, (void)data, (void)name, (void)base, (void)path, (void)elf;
    return -1;
}

static bool session_open(struct session *session, struct module *module, const char *build_id,
                         const char *path)
{
    static Dwfl_Callbacks callbacks;
    callbacks = (Dwfl_Callbacks){.find_elf = no_elf,
                                 .find_debuginfo = dw.dwfl_standard_find_debuginfo,
                                 .section_address = dw.dwfl_offline_section_address,
                                 .debuginfo_path = &debug_folders};
    struct stat about;
    *session = (struct session){0};
    /* A profile names any path: no device is opened for it. */
    int fd = stat(path, &about) == 0 && S_ISREG(about.st_mode)
                 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                 : -1;
    if (fd < 0)
        return false;
    bool had_bias = module->has_bias;
    if (had_bias || find_bias(module, fd))
        session->dwfl = dw.dwfl_begin(&callbacks);
    if (session->dwfl != NULL) {
        dw.dwfl_report_begin(session->dwfl);
        session->module = dw.dwfl_report_elf(session->dwfl, base_name(path), path, -1, 0, true);
        dw.dwfl_report_end(session->dwfl, NULL, NULL);
    }
    close(fd);
    if (session->module != NULL && has_build_id(session, build_id))
        return true;
    if (session->dwfl != NULL)
        dw.dwfl_end(session->dwfl);
    module->has_bias = had_bias;
    return false;
}

static name_id function_name(struct profile *profile, const char *name)
{
    char *readable = symbol_demangle(name);
    name_id id = profile_name_of(profile, readable == NULL ? name : readable);
    free(readable);
    return id;
}

/* The linker's name of a function if there is one: it has the namespace and the class. */
static name_id die_name(struct profile *profile, Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;
    if (dw.dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) != NULL ||
        dw.dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute) != NULL)
        name = dw.dwarf_formstring(&attribute);
    if (name == NULL)
        name = dw.dwarf_diename(die);
    return name == NULL ? 0 : function_name(profile, name);
}

static bool is_function(Dwarf_Die *die)
{
    int tag = dw.dwarf_tag(die);
    return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
           tag == DW_TAG_entry_point;
}

/* Where an inlined function was called. */
static void read_call(struct profile *profile, Dwarf_Die *unit, Dwarf_Die *inlined,
                      struct line *line)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    Dwarf_Files *files;
    size_t count;
    line->file = 0;
    line->number = 0;
    if (dw.dwarf_formudata(dw.dwarf_attr_integrate(inlined, DW_AT_call_file, &attribute),
                           &number) == 0 &&
        dw.dwarf_getsrcfiles(unit, &files, &count) == 0 && number < count) {
        const char *file = dw.dwarf_filesrc(files, number, NULL, NULL);
        line->file = file == NULL ? 0 : profile_name_of(profile, file);
    }
    if (dw.dwarf_formudata(dw.dwarf_attr_integrate(inlined, DW_AT_call_line, &attribute),
                           &number) == 0 &&
        number <= INT32_MAX)
        line->number = (uint32_t)number;
}

/* The unit that holds an address; compilers other than gcc write no index of addresses. */
static Dwarf_Die *find_unit(struct session *session, uint64_t address, Dwarf_Addr *bias)
{
    Dwarf_Die *unit = dw.dwfl_module_addrdie(session->module, address, bias);
    if (unit != NULL)
        return unit;
    if (session->last_unit != NULL && dw.dwfl_module_getdwarf(session->module, bias) != NULL &&
        dw.dwarf_haspc(session->last_unit, address - *bias) > 0)
        return session->last_unit;
    while ((unit = dw.dwfl_module_nextcu(session->module, unit, bias)) != NULL)
        if (dw.dwarf_haspc(unit, address - *bias) > 0)
            return session->last_unit = unit;
    return NULL;
}

/* Where the code of a unit is from. */
static struct line find_line(struct profile *profile, Dwarf_Die *unit, Dwarf_Addr address)
{
    struct line line = {0};
    int number = 0;
    Dwarf_Line *at = dw.dwarf_getsrc_die(unit, address);
    const char *file = at == NULL ? NULL : dw.dwarf_linesrc(at, NULL, NULL);
    if (file == NULL)
        return line;
    line.file = profile_name_of(profile, file);
    if (dw.dwarf_lineno(at, &number) == 0 && number > 0)
        line.number = (uint32_t)number;
    return line;
}

/* The functions inlined one into the other at an address, innermost first, and the one around them;
 * the number of them, 0 if there is no debug information. `line` is where the innermost is. */
static uint32_t add_inlined(struct profile *profile, struct session *session, uint32_t location,
                            Dwarf_Die *unit, Dwarf_Addr address, struct line line)
{
    Dwarf_Addr bias = 0;
    Dwarf_Die *scopes = NULL, innermost;
    int count = dw.dwarf_getscopes(unit, address, &scopes);
    if (count <= 0)
        return 0;
    /* What is around an inlined function is asked of its own entry. */
    Dwarf *dwarf = dw.dwfl_module_getdwarf(session->module, &bias);
    bool is_found = dw.dwarf_offdie(dwarf, dw.dwarf_dieoffset(&scopes[0]), &innermost) != NULL;
    free(scopes);
    scopes = NULL;
    count = is_found ? dw.dwarf_getscopes_die(&innermost, &scopes) : 0;
    uint32_t added = 0;
    for (int i = 0; i < count; i++) {
        if (!is_function(&scopes[i]))
            continue;
        line.function = die_name(profile, &scopes[i]);
        profile_add_line(profile, location, line);
        added++;
        if (dw.dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
            break;
        read_call(profile, unit, &scopes[i], &line);
    }
    free(scopes);
    return added;
}

static int compare_functions(const void *left, const void *right)
{
    const struct function *first = left, *second = right;
    if (first->start != second->start)
        return first->start < second->start ? -1 : 1;
    return first->rank - second->rank;
}

/* libdw's own search goes through all symbols for each address. */
static void read_functions(struct session *session)
{
    int count = dw.dwfl_module_getsymtab(session->module);
    session->has_functions = true;
    session->functions = grow(NULL, count > 0 ? (size_t)count : 0, sizeof *session->functions);
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr start;
        const char *name =
            dw.dwfl_module_getsym_info(session->module, i, &symbol, &start, NULL, NULL, NULL);
        int type = GELF_ST_TYPE(symbol.st_info), binding = GELF_ST_BIND(symbol.st_info);
        if (name == NULL || *name == '\0' || symbol.st_shndx == SHN_UNDEF ||
            (type != STT_FUNC && type != STT_GNU_IFUNC))
            continue;
        session->functions[session->function_count++] =
            (struct function){.start = start,
                              .bytes = symbol.st_size,
                              .name = name,
                              .rank = binding == STB_GLOBAL ? 2 : binding == STB_WEAK};
    }
    qsort(session->functions, session->function_count, sizeof *session->functions,
          compare_functions);
}

/* The name of the function that holds an address; NULL: no symbol does. */
static const char *find_function(struct session *session, uint64_t address)
{
    if (!session->has_functions)
        read_functions(session);
    size_t low = 0, high = session->function_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (session->functions[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct function *found = low == 0 ? NULL : &session->functions[low - 1];
    bool is_inside = found != NULL && (found->bytes == 0 || address - found->start < found->bytes);
    return is_inside ? found->name : NULL;
}

static void find_lines(struct profile *profile, struct session *session, uint32_t location,
                       uint64_t address)
{
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = find_unit(session, address, &bias);
    struct line line = {0};
    if (unit != NULL) {
        line = find_line(profile, unit, address - bias);
        if (add_inlined(profile, session, location, unit, address - bias, line) > 0)
            return;
    }
    const char *name = find_function(session, address);
    if (name == NULL)
        return;
    line.function = function_name(profile, name);
    profile_add_line(profile, location, line);
}

static bool is_wanted(const struct profile *profile, uint32_t location, uint32_t module)
{
    const struct location *at = &profile->locations[location];
    return at->module == module && at->line_count == 0;
}

static void find_module(struct profile *profile, uint32_t index, const char *root)
{
    struct session session;
    struct module *module = &profile->modules[index];
    const char *path = profile_text(profile, module->path);
    const char *build_id = profile_text(profile, module->build_id);
    char inside[4200];
    snprintf(inside, sizeof inside, "%s%s", root, path);
    if (*path != '/' || (!session_open(&session, module, build_id, inside) &&
                         !session_open(&session, module, build_id, path)))
        return;
    for (uint32_t i = 0; i < profile->location_count; i++)
        if (is_wanted(profile, i, index))
            find_lines(profile, &session, i, profile->locations[i].address - module->bias);
    free(session.functions);
    dw.dwfl_end(session.dwfl);
}

void symbols_find(struct profile *profile, const char *root)
{
    char folders[4200];
    if (!load_libdw())
        return;
    snprintf(folders, sizeof folders, ":.debug:%s/usr/lib/debug:/usr/lib/debug", root);
    debug_folders = folders;
    for (uint32_t module = 1; module < profile->module_count; module++) {
        bool is_needed = false;
        for (uint32_t i = 0; i < profile->location_count && !is_needed; i++)
            is_needed = is_wanted(profile, i, module);
        if (is_needed)
            find_module(profile, module, root);
    }
    debug_folders = NULL;
}
