/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/limits.h"
#include "conf/conf.h"
#include "hardened/sample.h"
#include "misuse/report.h"
#include "misuse/zero_size.h"
#include "os/find_object.h"
#include "os/frames.h"
#include "os/libc_block.h"
#include "os/next_symbol.h"
#include "os/program.h"
#include "stats/counters.h"

#include <errno.h>

/* Pointers that are not hakmem's: from before the preload, or from a library bound to another
 * malloc (RTLD_DEEPBIND). What cannot have come from any allocator is misuse, and so is what
 * glibc's own free would end the process at: no program that works does it. */

/* libc's own, which come behind ours in the order of search: absent in static programs. Looked up
 * before main, since a thread that frees may hold what the loader's lock waits for. */
struct original {
    void (*free)(void *block);
    void *(*realloc)(void *block, size_t bytes);
};
static struct original original;

__attribute__((constructor)) static void find_original(void)
{
    if (hak_word_peek(&original.realloc) != NULL)
        return;
    void *(*resize)(void *, size_t);
    void (*give)(void *);
    *(void **)&give = hak_next_symbol("__libc_free");
    *(void **)&resize = hak_next_symbol("__libc_realloc");
    hak_word_publish(&original.free, give);
    hak_word_publish(&original.realloc, resize);
}

#define USER_ADDRESS_BITS 56 /* the largest user address space of the supported machines */
#define STACK_ABOVE_BYTES (64 * HAK_KIB)

/* Blocks of libc's may lie right above a thread's stack. It ends where its thread-local variables
 * are, if these are above it; those of the main thread, and of code on a stack of its own, are not.
 */
static bool is_on_stack(uintptr_t address)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    uintptr_t variables = (uintptr_t)&errno;
    if (address - frame >= STACK_ABOVE_BYTES || (frame < variables && variables < address))
        return false;
    return !hak_os_seems_mapped_by_libc(address);
}

static void reject(const void *block, const char *what)
{
    uintptr_t address = (uintptr_t)block;
    if (address < HAK_GRANULE_BYTES)
        hak_misuse(what, block, 0, "an address near NULL");
    if (address >> USER_ADDRESS_BITS)
        hak_misuse(what, block, 0, "not a user-space address");
    if (address % 8 != 0)
        hak_misuse(what, block, 0, "not aligned as any block is");
    if (hak_conf.source[CONF_foreign] > CONF_MODE)
        return; /* the option was set: such pointers are known */
    if (is_on_stack(address))
        hak_misuse(what, block, 0, "on the stack of the calling thread");
    if (hak_os_is_in_program(address))
        hak_misuse(what, block, 0, "in the program's own code or data");
    if (hak_os_is_unreadable(address))
        hak_misuse(what, block, 0, "no memory is there");
    struct found_object library;
    if (hak_find_object(address, &library))
        hak_misuse(what, block, 0, "in the code or data of a library");
    if (!hak_os_may_be_libc_block(address))
        hak_misuse(what, block, 0, "neither from hakmem nor from libc");
}

static void give_empty(void *block)
{
    if (!hak_zero_size_give(block))
        hak_misuse("double free", block, 0, "already free, or never allocated");
}

void hak_foreign_free(void *block)
{
    if (hak_guarded_holds(block)) {
        hak_sample_free(block, HAK_OS_CALLER());
        return;
    }
    if (hak_zero_size_holds(block)) {
        give_empty(block);
        return;
    }
    reject(block, "invalid free");
    hak_stat_global_add(foreign_frees, 1);
    if (hak_conf_number(foreign) == FOREIGN_ABORT)
        hak_misuse("foreign free", block, 0, "not from hakmem (option foreign=abort)");
    if (hak_conf_number(foreign) != FOREIGN_FORWARD)
        return;
    find_original();
    void (*give)(void *) = hak_word_peek(&original.free);
    if (give == NULL)
        return;
    hak_stat_global_add(fallback, 1);
    give(block);
}

/* The old size is unknown to us, so only the allocator the block came from can move it. */
void *hak_foreign_realloc(void *block, size_t bytes)
{
    reject(block, "invalid realloc");
    hak_stat_global_add(foreign_frees, 1);
    find_original();
    void *(*resize)(void *, size_t) = hak_word_peek(&original.realloc);
    if (hak_conf_number(foreign) == FOREIGN_ABORT || resize == NULL)
        hak_misuse("foreign realloc", block, 0, "not from hakmem");
    hak_stat_global_add(fallback, 1);
    return resize(block, bytes);
}
