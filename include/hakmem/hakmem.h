/* SPDX-License-Identifier: MIT */
/* hakmem/hakmem.h - hakmem by its own names: allocation, heaps, statistics, options.
 *
 * A program need not include this to use hakmem: malloc and its family are hakmem's when the
 * library is preloaded or linked. These functions are for programs that want more.
 *
 * Linked      with libhakmem.so, libhakmem.a or hakmem.o all functions are there.
 * Preloaded   a program that is also to run without hakmem defines HAKMEM_WEAK before it includes
 *             this header. All functions are then weak: without hakmem their addresses are NULL.
 *                 #define HAKMEM_WEAK
 *                 #include <hakmem/hakmem.h>
 *                 if (hakmem_thread_idle != NULL)
 *                     hakmem_thread_idle();
 *
 * Blocks      of malloc, of the C++ operators and of these functions are of one kind: each may be
 *             given to free, realloc, malloc_usable_size or their twins here, by any thread.
 * Sizes       are bytes (size_t), from 0 to PTRDIFF_MAX. A request for 0 bytes returns a block of
 *             its own. Blocks are aligned to 16, those of requests of up to 8 bytes to 8.
 * Errors      functions that return a block return NULL with errno ENOMEM when memory does not
 *             suffice or a size is above PTRDIFF_MAX; everything is then as it was. Others return 0
 *             or an error number of <errno.h> and leave errno alone.
 * Misuse      (a second free, a pointer that was never a block, a destroyed heap) is reported in
 *             one line on standard error where it is seen, and ends the process with SIGABRT. Such
 *             lines go to what standard error was when the process started; a program that has put
 *             another file in its place since finds none in that.
 * Threads     every function may be called by any thread at any time, in constructors, destructors
 *             and children of fork, too. Functions on heaps are not for signal handlers.
 */
#ifndef HAKMEM_HAKMEM_H
#define HAKMEM_HAKMEM_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header: major * 10000 + minor * 100 + patch. A function that exists in one
 * version exists in all later ones of the same major version, with the same meaning. */
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

/* Makes the block `bytes` long, moving it if need be; contents are kept up to the smaller size (C17
 * 7.22.3.5). block == NULL: as malloc. bytes == 0: frees it and returns NULL (as glibc). NULL with
 * ENOMEM: the block is as it was. A block of a heap stays a block of that heap. */
HAKMEM_API HAKMEM_USE_RESULT __attribute__((alloc_size(2))) void *hakmem_realloc(void *block,
                                                                                 size_t bytes);

/* realloc to `count` times `bytes`; a product that overflows is ENOMEM (POSIX.1-2024). */
HAKMEM_API HAKMEM_USE_RESULT __attribute__((alloc_size(2, 3))) void *hakmem_reallocarray(
    void *block, size_t count, size_t bytes);

/* Frees a block, also one of a heap; NULL does nothing. Keeps errno (POSIX.1-2024). */
HAKMEM_API void hakmem_free(void *block);

/* Frees a block of which the caller knows the size asked for (C23 7.24.3.4). */
HAKMEM_API void hakmem_free_sized(void *block, size_t bytes);

/* The same for a block of hakmem_aligned_alloc (C23 7.24.3.5). */
HAKMEM_API void hakmem_free_aligned_sized(void *block, size_t alignment, size_t bytes);

/* A block at a multiple of `alignment`, a power of two, else NULL with EINVAL. `bytes` need not be
 * a multiple of it (C17 7.22.3.1 as amended). */
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(2), alloc_align(1))) void *hakmem_aligned_alloc(
    size_t alignment, size_t bytes);

/* Stores such a block in *result and returns 0. EINVAL: the alignment is not a power of two
 * multiple of sizeof(void *). ENOMEM: no memory. Then *result is as it was; errno always is
 * (POSIX.1-2017). */
HAKMEM_API HAKMEM_USE_RESULT __attribute__((nonnull(1))) int hakmem_posix_memalign(void **result,
                                                                                   size_t alignment,
                                                                                   size_t bytes);

/* As the functions without _long, for blocks that will stay: those of up to 4 KiB lie in memory of
 * their own, apart from blocks that come and go and would leave their pages half empty. realloc
 * keeps that. (Clang's allocation tokens and operator new with __hot_cold_t reach the same memory.)
 */
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(1))) void *hakmem_malloc_long(size_t bytes);
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(1, 2))) void *hakmem_calloc_long(size_t count,
                                                                                   size_t bytes);
HAKMEM_API HAKMEM_BLOCK __attribute__((alloc_size(2), alloc_align(1))) void *
hakmem_aligned_alloc_long(size_t alignment, size_t bytes);

/* Bytes that may be used from `block` on, at least what was asked for; 0 for NULL and for blocks
 * that are not hakmem's (glibc manual: malloc_usable_size). */
HAKMEM_API size_t hakmem_usable_size(const void *block);

/* The bytes that a request for `bytes` gets at least: asking for these instead costs nothing more.
 * 0: more than any request may be. */
HAKMEM_API __attribute__((const)) size_t hakmem_good_size(size_t bytes);

/* 1 if `block` is the address of a block that hakmem serves or served there, so that free and
 * realloc here are right for it; else 0. Any address may be asked about. For blocks of up to
 * 128 KiB the answer does not tell live ones from freed ones. */
HAKMEM_API int hakmem_is_owned(const void *block);

/* Bytes from `address` to the end of the block that it lies in; SIZE_MAX: it lies in no block of
 * hakmem's. Any address may be asked about, inside a block as well. The end of a block is that of
 * hakmem_usable_size: in hardened mode what was asked for, else what may be used. For blocks of up
 * to 128 KiB the answer tells live ones from freed ones in hardened mode only. */
HAKMEM_API size_t hakmem_object_size(const void *address);

/* Reports in one line that `function`, called at `caller`, was about to write or read `bytes` at
 * `address` beyond the end of a block, and aborts; returns if it would stay inside, or if the
 * address lies in no block. libhakmem-bounds.so calls it. */
enum hakmem_access { HAKMEM_WRITE, HAKMEM_READ };
HAKMEM_API void hakmem_bounds_stop(const char *function, enum hakmem_access access,
                                   const void *address, size_t bytes, const void *caller);

/* ---- heaps ----------------------------------------------------------------------------------- */

/* A heap is a set of blocks that can be freed one by one or all at once. Any number of threads may
 * use one heap at a time. Blocks may be freed by hakmem_free or free as well, by any thread; they
 * need not be freed at all before the heap is destroyed. Heaps share nothing: each size class in
 * use takes at least 64 KiB of address space and as much memory as is touched, each heap about
 * 14 KiB for its record, which the next heap uses again.
 *
 * After fork the child has copies of all heaps. A heap that another thread was busy in for longer
 * than 20 ms is frozen in the child: allocations from it are ENOMEM, frees into it are accepted,
 * and destroying it gives nothing back.
 *
 * The handle of a destroyed heap is misuse, reported for certain until its record has been used for
 * 65534 further heaps. Freeing a block of a heap during or after its destruction is misuse, too;
 * after it is reported while the memory is not in use again. */
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

/* Frees a block of this heap at once for the next request; NULL does nothing. A block that is not
 * of this heap is misuse. */
HAKMEM_API void hakmem_heap_free(hakmem_heap *heap, void *block);

/* Frees all blocks of the heap and the heap; NULL does nothing. No thread may use the heap or a
 * block of it from now on. The memory serves other requests at once. */
HAKMEM_API void hakmem_heap_destroy(hakmem_heap *heap);

/* Gives what the heap holds without need to other requests, not to the kernel (hakmem_trim). */
HAKMEM_API void hakmem_heap_trim(hakmem_heap *heap);

/* The heap that a live block belongs to; NULL: to none. */
HAKMEM_API hakmem_heap *hakmem_heap_of(const void *block);

/* What a heap holds at this moment. */
struct hakmem_heap_stats {
    uint64_t live_block_count;
    uint64_t live_bytes; /* of live blocks, rounded up to what their sizes take */
    uint64_t held_bytes; /* that only this heap can allocate from: live and free */
};

/* Fills the first `stats_bytes` bytes of *stats, zero where this version has no more; 0, or EINVAL:
 * stats_bytes is 0. For a frozen heap all is 0. */
HAKMEM_API __attribute__((nonnull(2))) int hakmem_heap_stats_get(hakmem_heap *heap,
                                                                 struct hakmem_heap_stats *stats,
                                                                 size_t stats_bytes);

/* ---- the process ----------------------------------------------------------------------------- */

/* Gives the kernel all memory that is free, but for about `pad_bytes`, and returns the bytes given
 * (glibc manual: malloc_trim, which returns 1 or 0). Blocks in the caches of
 * other running threads stay there. */
HAKMEM_API size_t hakmem_trim(size_t pad_bytes);

/* A hint that the calling thread will not allocate for some time: the blocks of its cache go back
 * to the heaps, where other threads can have them. */
HAKMEM_API void hakmem_thread_idle(void);

/* A program may define this to choose its own settings, "name=value,name=value". They are read when
 * the process starts; the user's environment wins over them. Where hakmem is preloaded the program
 * must show the name to it: -Wl,--export-dynamic-symbol=hakmem_conf. */
extern const char *hakmem_conf __attribute__((visibility("default")));

/* Writes the value of the option `name` (docs/CONFIG.md), ended by 0, to `value`: numbers in bytes
 * or milliseconds, -1 for never. EINVAL: there is no such option. ERANGE: value_bytes do not
 * suffice; 256 always do. */
HAKMEM_API __attribute__((nonnull(1, 2))) int hakmem_option_get(const char *name, char *value,
                                                                size_t value_bytes);

/* Sets an option while the program runs, in the words of the environment ("64M", "2s"): foreign,
 * decay, retain, free_policy, limit, soft_limit, thread_cache, big_cache; of prewarm, what is kept;
 * price, which changes the options that were not set; guard_rate, unless it was 0 at the start.
 * It holds for what happens from then on: magazines that are larger than a lower thread_cache
 * shrink when they are quiet. EINVAL: there is no such option, or the value is wrong or out of
 * range. EBUSY: the option is read when the process starts, so it is too late. */
HAKMEM_API __attribute__((nonnull(1, 2))) int hakmem_option_set(const char *name,
                                                                const char *value);

/* Statistics of the process: the numbers that HAKMEM_STATS, malloc_stats, malloc_info and mallinfo2
 * give, too. Those marked + add up to window_committed_bytes. Values are of slightly different
 * moments while other threads run. New fields are added at the end only. */
struct hakmem_stats {
    uint64_t window_committed_bytes;   /* address space made usable so far */
    uint64_t metadata_bytes;           /* committed for hakmem's own records */
    uint64_t large_live_bytes;         /* + live blocks above 128 KiB, in whole 64 KiB */
    uint64_t slab_free_resident_bytes; /* + free, between slabs, still resident */
    uint64_t span_free_resident_bytes; /* + free in larger runs, still resident */
    uint64_t span_free_clean_bytes;    /* + free in larger runs, without memory behind them */
    uint64_t returned_bytes;           /* given back to the kernel so far, in all */
    uint64_t superslab_count;          /* pieces of 2 MiB divided into slabs */
    uint64_t slab_count;               /* slabs in use */
    uint64_t thread_heap_count;        /* caches of processors and of threads */
    uint64_t private_heap_count;       /* made by hakmem_heap_new so far */
    uint64_t foreign_free_count;       /* frees of pointers that are not hakmem's */
    uint64_t out_of_memory_count;      /* requests refused with ENOMEM */
    uint64_t kernel_call_count;        /* mmap, munmap, mprotect and madvise calls so far */
    uint64_t live_bytes;               /* blocks of the program: small, large and guarded */
    uint64_t small_live_bytes;         /* + live blocks up to 128 KiB, by their usable sizes */
    uint64_t small_live_block_count;
    uint64_t large_live_block_count;
    uint64_t cached_bytes;          /* + free blocks in caches */
    uint64_t remote_free_bytes;     /* + freed while their heap was busy; in quarantine */
    uint64_t block_free_bytes;      /* + free blocks in slabs, and tails that fit none */
    uint64_t slab_free_clean_bytes; /* + free, between slabs, without memory behind them */
    uint64_t unusable_bytes;        /* + in the window, but mapped by others or given up */
    uint64_t table_bytes;           /* committed for the maps of the window */
    uint64_t busy_heap_count;    /* heaps busy at this moment: their cached blocks count as live */
    uint64_t guarded_live_bytes; /* live blocks beside guard pages, by the bytes asked for */
};

/* Fills the first `stats_bytes` bytes of *stats, zero where this version has no more; 0, or EINVAL:
 * stats_bytes is 0. */
HAKMEM_API __attribute__((nonnull(1))) int hakmem_stats_get(struct hakmem_stats *stats,
                                                            size_t stats_bytes);

/* Writes all statistics (docs/STATS.md) to the descriptor `fd`, whatever file that is now, in one
 * of the forms "text", "raw", "json", "xml", "openmetrics" and "summary", the first lines of text;
 * NULL: in the form of the option stats, text if that is off. Returns 0. EINVAL: there is no such
 * form. EBUSY: another thread has been printing for a second. Else what write(2) met. */
HAKMEM_API int hakmem_stats_print(int fd, const char *form);

/* Begins to sample about one allocation in so many bytes for the heap profile, which other
 * processes read (`hakmem profile PID`); 0: as option heap_profile_rate says. Or ends it: what was
 * sampled is followed until it is freed all the same. */
HAKMEM_API void hakmem_profile_start(size_t mean_bytes);
HAKMEM_API void hakmem_profile_stop(void);

/* Writes what was sampled so far to the descriptor `fd`, whatever file that is now, as pprof reads
 * it (profile.proto, not compressed, addresses without names). Allocates nothing. Returns 0. EBUSY:
 * another thread has been writing for a second. Else what write(2) met. */
HAKMEM_API int hakmem_profile_write(int fd);

/* The same in one of the forms "pprof", "heap_v2" (jemalloc's text), "folded" (live bytes by stack,
 * one a line) and "json" (what `hakmem profile --json` prints), all without names of functions,
 * which `hakmem profile FILE` finds. EINVAL: there is no such form. */
HAKMEM_API __attribute__((nonnull(2))) int hakmem_profile_print(int fd, const char *form);

/* Where the memory is that the process has for hakmem: each resident page of hakmem's large
 * mappings is given to one part, or divided by the bytes of its blocks. Those marked + add up to
 * resident_bytes, which is the Rss of these mappings in /proc/self/smaps; before Linux 6.7, without
 * pages that are shared since a fork. New fields are added at the end only. */
struct hakmem_residency {
    uint64_t resident_bytes;    /* of the mappings */
    uint64_t live_bytes;        /* + blocks of the program */
    uint64_t cached_bytes;      /* + free blocks in caches */
    uint64_t withheld_bytes;    /* + freed while their heap was busy; in quarantine */
    uint64_t slab_free_bytes;   /* + free in slabs, on pages without a block in use */
    uint64_t pinned_bytes;      /* + free in slabs, on pages with a block in use */
    uint64_t retained_bytes;    /* + free beside slabs and blocks, kept for the next ones */
    uint64_t huge_excess_bytes; /* + never used since it was clean: what huge pages brought in */
    uint64_t metadata_bytes;    /* + hakmem's own records and tables */
    uint64_t untouched_bytes;   /* of live blocks, and not resident */
    uint64_t mapping_start;     /* addresses of the mapping of blocks */
    uint64_t mapping_end;
    uint64_t busy_heap_count; /* heaps busy at this moment: their free blocks count as live */
    uint64_t record_start;    /* addresses of the mapping of records and tables */
    uint64_t record_end;
    uint64_t mark_start; /* addresses of what hardened mode knows of each block; 0: it is off */
    uint64_t mark_end;
};

/* Fills the first `residency_bytes` bytes of *residency, zero where this version has no more; 0, or
 * EINVAL: residency_bytes is 0, or ENOSYS: the kernel does not tell. Looks at every page: some
 * milliseconds for each GiB. Exact while other threads stand still. */
HAKMEM_API __attribute__((nonnull(1))) int hakmem_residency_get(struct hakmem_residency *residency,
                                                                size_t residency_bytes);

#ifdef __cplusplus
}
#endif

#endif
