/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bounds.h"
#include "os/linkage.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

HAK_ASK_LIBC(dlsym)

struct bounds_next hak_bounds_next;
bool hak_bounds_is_checking;

/* Where libhakmem.so is: it moves and clears blocks before they are the program's. */
static uintptr_t hakmem_start, hakmem_end;

void hak_bounds_find_next(void)
{
    int saved = errno;
#define X(name, result, parameters)                                                                \
    hak_bounds_next.name = (result(*) parameters)dlsym(RTLD_NEXT, #name);
    BOUNDS_TABLE(X)
    BOUNDS_FORTIFIED_TABLE(X)
#undef X
    errno = saved;
}

static int look_at_object(struct dl_phdr_info *object, size_t object_bytes, void *unused)
{
    (void)object_bytes;
    (void)unused;
    uintptr_t wanted = (uintptr_t)hakmem_object_size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || wanted - start >= part->p_memsz)
            continue;
        hakmem_start = start;
        hakmem_end = start + part->p_memsz;
        return 1;
    }
    return 0;
}

__attribute__((constructor)) static void start(void)
{
    static const char line[] =
        "hakmem: libhakmem-bounds.so checks nothing: libhakmem.so is not loaded\n";
    int saved = errno;
    hak_bounds_find_next();
    if (hakmem_object_size == NULL || hakmem_bounds_stop == NULL) {
        if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
            errno = saved; /* nobody reads it */
    } else {
        dl_iterate_phdr(look_at_object, NULL);
        hak_bounds_is_checking = true;
    }
    errno = saved;
}

void hak_bounds_stop(const char *function, enum hakmem_access access, const void *address,
                     size_t bytes, const void *caller)
{
    if ((uintptr_t)caller - hakmem_start >= hakmem_end - hakmem_start)
        hakmem_bounds_stop(function, access, address, bytes, caller);
}
