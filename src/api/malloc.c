/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "cache/magazine.h"

/* The hot path, whole. Anything unusual - a thread without a heap, an empty or full bin, a large or
 * foreign or remote block, NULL - falls through to the slow function before anything is written. */

HAK_HOT void *hak_malloc(size_t bytes)
{
    if (HAK_LIKELY(bytes <= HAK_CLASS_HOT_BYTES_MAX)) {
        struct bin *bin = hak_bin_at(hak_thread, hak_bin_of_eighth[(bytes + 7) / 8]);
        void *block = hak_bin_pop(bin);
        if (HAK_LIKELY(block != NULL))
            return block;
    }
    return hak_malloc_slow(bytes);
}

HAK_HOT void hak_free(void *block)
{
    struct thread_cache *cache = hak_thread;
    size_t offset = (uintptr_t)block - cache->base;
    if (HAK_LIKELY(offset < cache->committed_bytes)) {
        uint32_t tag = hak_load_relaxed(&cache->tags[offset >> HAK_GRANULE_SHIFT]);
        size_t scaled = tag ^ cache->own_tag; /* own, small and cacheable: it is the bin */
        if (HAK_LIKELY(scaled < HAK_BIN_LIMIT)) {
            struct bin *bin = hak_bin_at(cache, scaled);
            if (HAK_LIKELY(!hak_bin_is_full(bin))) {
                hak_bin_push(bin, block);
                return;
            }
        }
    }
    hak_free_slow(block);
}

HAK_LIBC_ALIAS(malloc, hak_malloc)
HAK_LIBC_ALIAS(free, hak_free)
HAK_LIBC_ALIAS(cfree, hak_free)
HAK_LIBC_ALIAS(__libc_malloc, hak_malloc)
HAK_LIBC_ALIAS(__libc_free, hak_free)
/* C23: a size or alignment other than the requested one is undefined. Here it is not looked at,
 * which costs nothing. */
HAK_LIBC_ALIAS(free_sized, hak_free)
HAK_LIBC_ALIAS(free_aligned_sized, hak_free)

HAK_PUBLIC_ALIAS(hakmem_malloc, hak_malloc)
HAK_PUBLIC_ALIAS(hakmem_free, hak_free)

/* operator delete and delete[], plain, sized, aligned and nothrow: the further arguments say
 * nothing that the tag does not (Itanium C++ ABI names). */
HAK_LIBC_ALIAS(_ZdlPv, hak_free)
HAK_LIBC_ALIAS(_ZdaPv, hak_free)
HAK_LIBC_ALIAS(_ZdlPvm, hak_free)
HAK_LIBC_ALIAS(_ZdaPvm, hak_free)
HAK_LIBC_ALIAS(_ZdlPvRKSt9nothrow_t, hak_free)
HAK_LIBC_ALIAS(_ZdaPvRKSt9nothrow_t, hak_free)
HAK_LIBC_ALIAS(_ZdlPvSt11align_val_t, hak_free)
HAK_LIBC_ALIAS(_ZdaPvSt11align_val_t, hak_free)
HAK_LIBC_ALIAS(_ZdlPvmSt11align_val_t, hak_free)
HAK_LIBC_ALIAS(_ZdaPvmSt11align_val_t, hak_free)
HAK_LIBC_ALIAS(_ZdlPvSt11align_val_tRKSt9nothrow_t, hak_free)
HAK_LIBC_ALIAS(_ZdaPvSt11align_val_tRKSt9nothrow_t, hak_free)
