/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "base/bits.h"
#include "base/limits.h"
#include "conf/conf.h"
#include "harden/checks.h"
#include "observe/stat.h"
#include "os/os.h"

/* Pointers that are not hakmem's: from before the preload, or from a library bound to another
 * malloc (RTLD_DEEPBIND). What cannot have come from any allocator is misuse. */

/* libc's own, where there is one beside us: absent in static programs. */
extern void __libc_free(void *block) __attribute__((weak));
extern void *__libc_realloc(void *block, size_t bytes) __attribute__((weak));

#define USER_ADDRESS_BITS 56 /* the largest user address space of the supported machines */
#define STACK_ABOVE_BYTES (64 * HAK_KIB)

static void reject(const void *block, const char *what)
{
    uintptr_t address = (uintptr_t)block;
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (address < HAK_GRANULE_BYTES)
        hak_misuse(what, block, 0, "an address near NULL");
    if (address >> USER_ADDRESS_BITS)
        hak_misuse(what, block, 0, "not a user-space address");
    if (address % 8 != 0)
        hak_misuse(what, block, 0, "not aligned as any block is");
    if (address - frame < STACK_ABOVE_BYTES)
        hak_misuse(what, block, 0, "on the stack of the calling thread");
}

void hak_foreign_free(void *block)
{
    reject(block, "invalid free");
    hak_stat_global_add(foreign_frees, 1);
    if (hak_conf_number(foreign) == FOREIGN_ABORT)
        hak_misuse("foreign free", block, 0, "not from hakmem (option foreign=abort)");
    if (hak_conf_number(foreign) == FOREIGN_FORWARD && __libc_free != NULL) {
        hak_stat_global_add(fallback, 1);
        __libc_free(block);
    }
}

/* The old size is unknown to us, so only the allocator the block came from can move it. */
void *hak_foreign_realloc(void *block, size_t bytes)
{
    reject(block, "invalid realloc");
    hak_stat_global_add(foreign_frees, 1);
    if (hak_conf_number(foreign) == FOREIGN_ABORT || __libc_realloc == NULL)
        hak_misuse("foreign realloc", block, 0, "not from hakmem");
    hak_stat_global_add(fallback, 1);
    return __libc_realloc(block, bytes);
}
