/* SPDX-License-Identifier: MIT */
/* hakmem/hakmem.h - hakmem by its own names: allocation, heaps, statistics, options.
 *
 * A program need not include this to use hakmem: malloc and its family are hakmem's when the
 * library is preloaded or linked. These functions are for programs that want more.
 *
 * Linked      with libhakmem.so, libhakmem.a or hakmem.o all functions are available.
 * Preloaded   a program that must also run without hakmem defines HAKMEM_WEAK before it includes
 *             this header. All functions are then weak: without hakmem their addresses are NULL.
 *                 #define HAKMEM_WEAK
 *                 #include <hakmem/hakmem.h>
 *                 if (hakmem_thread_idle != NULL)
 *                     hakmem_thread_idle();
 *             Such code needs -fPIE (the default of most compilers) or -fPIC: without,
 *             the linker makes the address NULL.
 *
 * Blocks      of malloc, of the C++ operators and of these functions are interchangeable: each may
 *             be passed to free, realloc, malloc_usable_size or their twins here, by any thread.
 * Sizes       are bytes (size_t), from 0 to PTRDIFF_MAX. A request for 0 bytes returns a unique
 *             block. Blocks are aligned to 16, those of requests of up to 8 bytes to 8.
 * Errors      functions that return a block return NULL with errno ENOMEM when memory runs out or a
 *             size is above PTRDIFF_MAX; nothing has changed then. Others return 0 or an error
 *             number of <errno.h> and leave errno alone.
 * Misuse      (a second free, a pointer that was never a block, a destroyed heap), where detected,
 *             is reported in one line on standard error and ends the process with SIGABRT. The line
 *             goes to the standard error of process start, never to a file that the program has
 *             since opened in its place.
 * Threads     every function may be called by any thread at any time, also in constructors,
 *             destructors and children of fork. Functions on heaps are not for signal handlers.
 */
#ifndef HAKMEM_HAKMEM_H
#define HAKMEM_HAKMEM_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header: major * 10000 + minor * 100 + patch. From 1.0.0 on a function keeps
 * its name and meaning in all later versions of the same major version; before, it may change. */
#define HAKMEM_VERSION 100
#define HAKMEM_VERSION_TEXT "0.1.0"

#if defined(HAKMEM_WEAK)
#define HAKMEM_API __attribute__((weak, visibility("default"), nothrow))
#else
#define HAKMEM_API __attribute__((visibility("default"), nothrow))
#endif
#define HAKMEM_USE_RESULT __attribute__((warn_unused_result))
#define HAKMEM_BLOCK __attribute__((malloc, warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that serves, as HAKMEM_VERSION. */
HAKMEM_API int hakmem_version(void);

/* ---- the family of malloc; each is what the name without hakmem_ is -------------------------- */

/* A block of `bytes`, contents undefined (C17 7.22.3.4). */
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(1))) void *hakmem_malloc(size_t bytes);

/* A block of `count` times `bytes`, all zero; a product that overflows is ENOMEM (C17 7.22.3.2). */
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(1, 2))) void *hakmem_calloc(size_t count,
                                                                              size_t bytes);

/* Resizes the block to `bytes`, moving it if necessary; contents are kept up to the smaller size
 * (C17 7.22.3.5). block == NULL: as malloc. bytes == 0: frees it and returns NULL (as glibc). NULL
 * with ENOMEM: the block is unchanged. A block of a heap stays a block of that heap. */
HAKMEM_API HAKMEM_USE_RESULT __attribute__((alloc_size(2))) void *hakmem_realloc(void *block,
                                                                                 size_t bytes);

/* realloc to `count` times `bytes`; a product that overflows is ENOMEM (POSIX.1-2024). */
HAKMEM_API HAKMEM_USE_RESULT __attribute__((alloc_size(2, 3))) void *hakmem_reallocarray(
    void *block, size_t count, size_t bytes);

/* Frees a block, also one of a heap; NULL does nothing. Keeps errno (POSIX.1-2024). */
HAKMEM_API void hakmem_free(void *block);

/* Frees a block whose requested size the caller knows (C23 7.24.3.4). */
HAKMEM_API void hakmem_free_sized(void *block, size_t bytes);

/* The same for a block of hakmem_aligned_alloc (C23 7.24.3.5). */
HAKMEM_API void hakmem_free_aligned_sized(void *block, size_t alignment, size_t bytes);

/* A block aligned to `alignment`, which must be a power of two, else NULL with EINVAL. `bytes` need
 * not be a multiple of it (C17 7.22.3.1 as amended). */
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(2), alloc_align(1))) void *hakmem_aligned_alloc(
    size_t alignment, size_t bytes);

/* Stores such a block in *result and returns 0. EINVAL: the alignment is not a power of two
 * multiple of sizeof(void *). ENOMEM: no memory. Then *result is as it was; errno always is
 * (POSIX.1-2017). */
HAKMEM_API HAKMEM_USE_RESULT __attribute__((nonnull(1))) int hakmem_posix_memalign(void **result,
                                                                                   size_t alignment,
                                                                                   size_t bytes);

/* As the functions without _long, for long-lived blocks: those of up to 4 KiB go to slabs of their
 * own, apart from short-lived blocks, which would leave their pages half empty. realloc keeps a
 * block there. (Clang's allocation tokens and operator new with __hot_cold_t use the same slabs.)
 */
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(1))) void *hakmem_malloc_long(size_t bytes);
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(1, 2))) void *hakmem_calloc_long(size_t count,
                                                                                   size_t bytes);
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(2), alloc_align(1))) void *
hakmem_aligned_alloc_long(size_t alignment, size_t bytes);

/* Usable bytes of `block`, at least the requested size; 0 for NULL and for blocks that are not
 * hakmem's (glibc manual: malloc_usable_size). */
HAKMEM_API size_t hakmem_usable_size(const void *block);

/* A size worth requesting instead of `bytes`: it takes no more memory, and is the smallest block
 * for 0. It says nothing about a block that was requested with `bytes`: what may be written there
 * is what hakmem_usable_size returns, which can be `bytes`. 0: it would be above the maximum
 * request. */
HAKMEM_API __attribute__((const)) size_t hakmem_good_size(size_t bytes);

/* 1 if `block` is the address of a present or past block of hakmem's, so that it belongs to
 * hakmem's free and realloc; else 0. Any address is allowed. For blocks of up to 128 KiB the answer
 * does not distinguish live from freed. */
HAKMEM_API int hakmem_is_owned(const void *block);

/* Bytes from `address` to the end of the block that contains it; SIZE_MAX: no block of hakmem's
 * does. Any address is allowed, also inside a block. The end of a block is that of
 * hakmem_usable_size: in hardened mode the requested size, else the usable size. For blocks of up
 * to 128 KiB the answer distinguishes live from freed in hardened mode only. 0: the address is
 * hakmem's and nobody may use it, as behind the end of a block; in a block of up to 128 KiB that
 * hardened mode knows to be free; and just before a guarded block. */
HAKMEM_API size_t hakmem_object_size(const void *address);

/* Reports in one line that `function`, called at `caller`, was about to write or read `bytes` at
 * `address` beyond the end of a block, or where nobody may, and aborts; returns if the access stays
 * inside, or if the address is none of hakmem's. libhakmem-bounds.so calls it. */
enum hakmem_access { HAKMEM_WRITE, HAKMEM_READ };
HAKMEM_API void hakmem_bounds_stop(const char *function, enum hakmem_access access,
                                   const void *address, size_t bytes, const void *caller);

/* ---- heaps ----------------------------------------------------------------------------------- */

/* A heap is a set of blocks that can be freed one by one or all at once. Any number of threads may
 * use one heap at a time. Blocks may also be freed by hakmem_free or free, in any thread; they need
 * not be freed before the heap is destroyed. Heaps share nothing: each size class in use takes at
 * least 64 KiB of address space and as much memory as is touched, each heap about 14 KiB for its
 * record, which the next heap reuses.
 *
 * After fork the child has copies of all heaps. A heap that another thread was busy in for longer
 * than 20 ms is frozen in the child: allocations from it are ENOMEM, frees into it are accepted,
 * and destroying it returns no memory.
 *
 * Using the handle of a destroyed heap is misuse, and always reported until its record has been
 * used for 65534 further heaps. Freeing a block of a heap during or after its destruction is
 * misuse, too; after the destruction it is reported while the memory is not reused. */
typedef struct hakmem_heap hakmem_heap;

/* A new heap; NULL with ENOMEM: no memory. */
HAKMEM_API HAKMEM_USE_RESULT hakmem_heap *hakmem_heap_new(void);

/* As the functions without heap_, with blocks of the heap. */
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(2))) void *hakmem_heap_malloc(hakmem_heap *heap,
                                                                                size_t bytes);
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(2, 3))) void *hakmem_heap_calloc(
    hakmem_heap *heap, size_t count, size_t bytes);
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(3), alloc_align(2))) void *
hakmem_heap_aligned_alloc(hakmem_heap *heap, size_t alignment, size_t bytes);

/* realloc within the heap. block == NULL: a new block of the heap. bytes == 0: frees the block and
 * returns NULL. A block that is not of this heap is misuse. */
HAKMEM_API HAKMEM_USE_RESULT __attribute__((alloc_size(3))) void *hakmem_heap_realloc(
    hakmem_heap *heap, void *block, size_t bytes);

/* Frees a block of this heap for immediate reuse; NULL does nothing. A block that is not of this
 * heap is misuse. */
HAKMEM_API void hakmem_heap_free(hakmem_heap *heap, void *block);

/* Frees the heap and all its blocks; NULL does nothing. No thread may use the heap or its blocks
 * from now on. The memory is available to other requests at once. */
HAKMEM_API void hakmem_heap_destroy(hakmem_heap *heap);

/* Makes the heap's unused memory available to other requests; it is not returned to the kernel
 * (hakmem_trim). */
HAKMEM_API void hakmem_heap_trim(hakmem_heap *heap);

/* The heap that a live block belongs to; NULL: none. */
HAKMEM_API hakmem_heap *hakmem_heap_of(const void *block);

/* What a heap holds at this moment. */
struct hakmem_heap_stats {
    uint64_t live_block_count;
    uint64_t live_bytes; /* in live blocks, by their usable sizes; above 128 KiB in whole 64 KiB */
    uint64_t held_bytes; /* memory that only this heap can allocate from: live and free */
};

/* Fills the first `stats_bytes` bytes of *stats, zero where this version has no more; 0, or EINVAL:
 * stats_bytes is 0. For a frozen heap all is 0. */
HAKMEM_API __attribute__((nonnull(2))) int hakmem_heap_stats_get(hakmem_heap *heap,
                                                                 struct hakmem_heap_stats *stats,
                                                                 size_t stats_bytes);

/* ---- the process ----------------------------------------------------------------------------- */

/* Returns all free memory to the kernel except about `pad_bytes`; returns the number of bytes
 * (glibc manual: malloc_trim, which returns 1 or 0). Blocks in the caches of other running threads
 * stay there. */
HAKMEM_API size_t hakmem_trim(size_t pad_bytes);

/* A hint that the calling thread will not allocate for some time: the blocks of its cache are
 * flushed to the heaps, where other threads can use them. */
HAKMEM_API void hakmem_thread_idle(void);

/* A program may define this to choose its own settings, "name=value,name=value". They are read at
 * process start; the user's environment takes precedence. Where hakmem is preloaded the program
 * must export the name: -Wl,--export-dynamic-symbol=hakmem_conf. */
extern const char *hakmem_conf __attribute__((visibility("default")));

/* Writes the value of the option `name` (docs/CONFIG.md), NUL-terminated, to `value`: numbers in
 * bytes or milliseconds, -1 for never. EINVAL: there is no such option. ERANGE: value_bytes is too
 * small; 256 always suffice. */
HAKMEM_API __attribute__((nonnull(1, 2))) int hakmem_option_get(const char *name, char *value,
                                                                size_t value_bytes);

/* Sets an option at run time, with values as in the environment ("64M", "2s"): foreign, decay,
 * retain, free_policy, limit, soft_limit, thread_cache, big_cache; prewarm, but only how much is
 * kept; price, which changes the options that were not set; guard_rate, unless it was 0 at start;
 * heap_profile_rate and heap_profile_samples, when sampling begins again. The change applies from
 * then on: bins larger than a lower thread_cache shrink when they are quiet. EINVAL: there is no
 * such option, or the value is wrong or out of range. EBUSY: the option is read only at process
 * start. */
HAKMEM_API __attribute__((nonnull(1, 2))) int hakmem_option_set(const char *name,
                                                                const char *value);

/* Statistics of the process: the same numbers as HAKMEM_STATS, malloc_stats, malloc_info and
 * mallinfo2 report. Those marked + add up to window_committed_bytes. Values are from slightly
 * different moments while other threads run. New fields are added at the end only. */
struct hakmem_stats {
    uint64_t window_committed_bytes;   /* address space committed so far */
    uint64_t metadata_bytes;           /* committed for hakmem's metadata */
    uint64_t large_live_bytes;         /* + live blocks above 128 KiB, in whole 64 KiB */
    uint64_t slab_free_resident_bytes; /* + free, between slabs, still resident */
    uint64_t span_free_resident_bytes; /* + free in larger runs, still resident */
    uint64_t span_free_clean_bytes;    /* + free in larger runs, purged */
    uint64_t returned_bytes;           /* returned to the kernel so far */
    uint64_t superslab_count;          /* regions of 2 MiB divided into slabs */
    uint64_t slab_count;               /* slabs in use */
    uint64_t cache_count;              /* caches of processors and of threads */
    uint64_t private_heap_count;       /* heaps created by hakmem_heap_new so far */
    uint64_t foreign_free_count;       /* frees of pointers that are not hakmem's */
    uint64_t out_of_memory_count;      /* requests refused with ENOMEM */
    uint64_t kernel_call_count;        /* mmap, munmap, mprotect and madvise calls so far */
    uint64_t live_bytes;               /* in live blocks: small, large and guarded */
    uint64_t small_live_bytes;         /* + live blocks up to 128 KiB, by their usable sizes */
    uint64_t small_live_block_count;
    uint64_t large_live_block_count;
    uint64_t cached_bytes;          /* + free blocks in caches */
    uint64_t remote_free_bytes;     /* + freed while their heap was busy; in quarantine */
    uint64_t block_free_bytes;      /* + free blocks in slabs, and tails too short for a block */
    uint64_t slab_free_clean_bytes; /* + free, between slabs, purged */
    uint64_t unusable_bytes;        /* + in the window, but mapped by other code or abandoned */
    uint64_t table_bytes;           /* committed for the maps of the window */
    uint64_t busy_heap_count;    /* heaps busy at this moment: their cached blocks count as live */
    uint64_t guarded_live_bytes; /* live blocks next to guard pages, by requested size */
};

/* Fills the first `stats_bytes` bytes of *stats, zero where this version has no more; 0, or EINVAL:
 * stats_bytes is 0. */
HAKMEM_API __attribute__((nonnull(1))) int hakmem_stats_get(struct hakmem_stats *stats,
                                                            size_t stats_bytes);

/* Writes all statistics (docs/STATS.md) to the descriptor `fd`, whatever file that is now, in one
 * of the forms "text", "raw", "json", "xml", "openmetrics" and "summary", the first lines of text;
 * NULL: in the form of the option stats, text if that is off. Returns 0. EINVAL: there is no such
 * form. EBUSY: another thread has been printing for a second. EAGAIN: the reader of a pipe or a
 * socket took nothing for a second. Else the error of write(2). */
HAKMEM_API int hakmem_stats_print(int fd, const char *form);

/* Start sampling about one allocation per mean_bytes for the heap profile, which other processes
 * read (`hakmem profile PID`; 0: the option heap_profile_rate), and stop it: blocks sampled before
 * are tracked until they are freed. */
HAKMEM_API void hakmem_profile_start(size_t mean_bytes);
HAKMEM_API void hakmem_profile_stop(void);

/* Writes the samples so far to the descriptor `fd`, whatever file that is now, for pprof
 * (profile.proto, uncompressed, addresses without names). Allocates nothing. Returns 0. EBUSY:
 * another thread has been writing for a second. EAGAIN: the reader of a pipe or a socket took
 * nothing for a second. Else the error of write(2). */
HAKMEM_API int hakmem_profile_write(int fd);

/* The same in one of the forms "pprof", "heap_v2" (jemalloc's text), "folded" (live bytes by stack,
 * one per line) and "json" (as `hakmem profile --json` prints it), all without function names,
 * which `hakmem profile FILE` finds. EINVAL: there is no such form. */
HAKMEM_API __attribute__((nonnull(2))) int hakmem_profile_print(int fd, const char *form);

/* Where hakmem's resident memory is: each resident page of hakmem's large mappings is assigned to
 * one part, or divided by the bytes of its blocks. Those marked + add up to resident_bytes, which
 * is the Rss of these mappings in /proc/self/smaps; before Linux 6.7, without pages that are shared
 * since a fork. New fields are added at the end only. */
struct hakmem_residency {
    uint64_t resident_bytes;    /* of the mappings */
    uint64_t live_bytes;        /* + live blocks */
    uint64_t cached_bytes;      /* + free blocks in caches */
    uint64_t withheld_bytes;    /* + freed while their heap was busy; in quarantine */
    uint64_t slab_free_bytes;   /* + free in slabs, on pages without a block in use */
    uint64_t pinned_bytes;      /* + free in slabs, on pages with a block in use */
    uint64_t retained_bytes;    /* + free outside slabs and blocks, kept for reuse */
    uint64_t huge_excess_bytes; /* + never used since it was clean: brought in by huge pages */
    uint64_t metadata_bytes;    /* + hakmem's metadata and tables */
    uint64_t untouched_bytes;   /* in live blocks, not resident */
    uint64_t mapping_start;     /* addresses of the mapping of blocks */
    uint64_t mapping_end;
    uint64_t busy_heap_count; /* heaps busy at this moment: their free blocks count as live */
    uint64_t record_start;    /* addresses of the mapping of metadata and tables */
    uint64_t record_end;
    uint64_t mark_start; /* addresses of hardened mode's marks; 0: it is off */
    uint64_t mark_end;
};

/* Fills the first `residency_bytes` bytes of *residency, zero where this version has no more; 0, or
 * EINVAL: residency_bytes is 0, or ENOSYS: the kernel does not tell. Inspects every page: some
 * milliseconds per GiB. Exact while other threads stand still. */
HAKMEM_API __attribute__((nonnull(1))) int hakmem_residency_get(struct hakmem_residency *residency,
                                                                size_t residency_bytes);

#ifdef __cplusplus
}
#endif

#endif
