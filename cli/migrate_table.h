/* SPDX-License-Identifier: MIT */
/* cli/migrate_table.h - settings of other allocators, and what they are here.
 *
 * Owns        MIGRATE_TABLE: X(allocator, name, ours, form, note). `ours` is an option, or a
 *             variable in capitals, or "" where there is none. `form` says how the value is read:
 *             "ms", "bytes", "mib", "lg" (a power of two), or words, "true=on,false=off", where 1,
 *             t, y and yes are true, and `*` is any other value.
 *             The pages in docs/migrate are made from the rows.
 * Tests       tests/cli/migrate_cli.sh
 */
#ifndef HAK_CLI_MIGRATE_TABLE_H
#define HAK_CLI_MIGRATE_TABLE_H

#define MIGRATE_JEMALLOC(X)                                                                        \
    X(jemalloc, "dirty_decay_ms", "decay", "ms", "older free memory is returned")                  \
    X(jemalloc, "muzzy_decay_ms", "", "", "memory is returned in one step: decay")                 \
    X(jemalloc, "background_thread", "maintenance", "true=on,false=off",                           \
      "one thread, from 32 MiB on")                                                                \
    X(jemalloc, "max_background_threads", "", "", "there is one at most")                          \
    X(jemalloc, "narenas", "", "", "there are as many heaps as processors run its threads")        \
    X(jemalloc, "percpu_arena", "", "", "caches belong to processors where that is possible")      \
    X(jemalloc, "oversize_threshold", "", "", "blocks above 128 KiB are spans of their own")       \
    X(jemalloc, "tcache", "thread_cache", "true=8M,false=64K", "it can be small, but not off")     \
    X(jemalloc, "tcache_max", "", "", "thread_cache bounds the bytes of all sizes")                \
    X(jemalloc, "lg_tcache_max", "", "", "thread_cache bounds the bytes of all sizes")             \
    X(jemalloc, "thp", "thp", "always=on,never=off,default=auto", "")                              \
    X(jemalloc, "metadata_thp", "", "", "metadata is small")                                       \
    X(jemalloc, "retain", "", "",                                                                  \
      "addresses are kept anyway; hakmem's option retain bounds memory")                           \
    X(jemalloc, "zero", "harden", "true=zero,false=none", "memory is cleared when it is freed")    \
    X(jemalloc, "junk", "harden", "true=zero,alloc=zero,free=zero,false=none",                     \
      "freed memory is cleared, and writes to it are reported")                                    \
    X(jemalloc, "abort_conf", "HAKMEM_ABORT_CONF", "true=1,false=0", "")                           \
    X(jemalloc, "confirm_conf", "HAKMEM_SHOW_CONF", "true=1,false=0", "")                          \
    X(jemalloc, "abort", "", "", "detected misuse always aborts")                                  \
    X(jemalloc, "xmalloc", "", "", "a failed request returns NULL")                                \
    X(jemalloc, "stats_print", "stats", "true=text,false=off", "")                                 \
    X(jemalloc, "stats_interval", "", "", "it counts bytes; stats_interval of hakmem is a time")   \
    X(jemalloc, "prof", "heap_profile", "true=on,false=off", "read it with hakmem profile")        \
    X(jemalloc, "lg_prof_sample", "heap_profile_rate", "lg", "")                                   \
    X(jemalloc, "prof_leak", "heap_profile", "true=leaks,false=off", "reported on stderr at exit") \
    X(jemalloc, "prof_active", "", "", "hakmem ctl PID profile on starts the profiler later")      \
    X(jemalloc, "prof_final", "", "", "hakmem profile reads a live process; see also blackbox")    \
    X(jemalloc, "prof_prefix", "", "", "hakmem profile chooses the file")                          \
    X(jemalloc, "cache_oblivious", "", "", "large blocks always start at varying cache lines")     \
    X(jemalloc, "bin_shards", "", "",                                                              \
      "heaps share slabs; there are as many as processors run its threads")                        \
    X(jemalloc, "slab_sizes", "", "", "slab sizes are fixed")                                      \
    X(jemalloc, "disable_large_size_classes", "", "",                                              \
      "blocks above 128 KiB are spans of their own")                                               \
    X(jemalloc, "calloc_madvise_threshold", "", "", "calloc knows which memory is zero")           \
    X(jemalloc, "lg_extent_max_active_fit", "", "", "the choice of free memory has no option")     \
    X(jemalloc, "trust_madvise", "", "", "memory is returned by madvise")                          \
    X(jemalloc, "process_madvise_max_batch", "", "", "memory is returned by madvise")              \
    X(jemalloc, "mutex_max_spin", "", "", "waiting threads sleep after a short spin")              \
    X(jemalloc, "tcache_ncached_max", "", "", "thread_cache bounds the bytes of all sizes")        \
    X(jemalloc, "tcache_nslots_large", "", "", "bins grow with demand")                            \
    X(jemalloc, "tcache_nslots_small_max", "", "", "bins grow with demand")                        \
    X(jemalloc, "tcache_nslots_small_min", "", "", "bins grow with demand")                        \
    X(jemalloc, "lg_tcache_nslots_mul", "", "", "bins grow with demand")                           \
    X(jemalloc, "tcache_gc_incr_bytes", "", "", "quiet bins are shrunk with time")                 \
    X(jemalloc, "tcache_gc_delay_bytes", "", "", "quiet bins are shrunk with time")                \
    X(jemalloc, "lg_tcache_flush_small_div", "", "", "a full bin keeps a half, later nothing")     \
    X(jemalloc, "lg_tcache_flush_large_div", "", "", "a full bin keeps a quarter to a half")       \
    X(jemalloc, "narenas_ratio", "", "", "there are as many heaps as processors run its threads")  \
    X(jemalloc, "zero_realloc", "", "", "realloc(p, 0) frees and returns NULL, as glibc's does")   \
    X(jemalloc, "experimental_infallible_new", "", "",                                             \
      "operator new calls the new_handler, then throws")                                           \
    X(jemalloc, "experimental_tcache_gc", "", "", "quiet bins are shrunk with time")               \
    X(jemalloc, "debug_double_free_max_scan", "", "",                                              \
      "full bins are always searched for double frees")                                            \
    X(jemalloc, "lg_san_uaf_align", "", "",                                                        \
      "guard_rate places sampled blocks against guard pages")                                      \
    X(jemalloc, "san_guard_small", "", "", "guard_rate places sampled blocks against guard pages") \
    X(jemalloc, "san_guard_large", "", "", "guard_rate places sampled blocks against guard pages") \
    X(jemalloc, "utrace", "", "", "tracing by USDT probes")                                        \
    X(jemalloc, "log", "", "", "HAKMEM_STATS_SHM=1 and hakmem top show the last decisions")        \
    X(jemalloc, "stats_print_opts", "", "", "all forms have all statistics")                       \
    X(jemalloc, "stats_interval_opts", "", "", "all forms have all statistics")                    \
    X(jemalloc, "prof_thread_active_init", "", "", "all threads are sampled")                      \
    X(jemalloc, "prof_accum", "", "", "live and allocated bytes are both counted")                 \
    X(jemalloc, "prof_recent_alloc_max", "", "", "samples are kept by call site")                  \
    X(jemalloc, "prof_stats", "", "", "hakmem classes shows sampled sizes")                        \
    X(jemalloc, "prof_bt_max", "", "", "stacks have up to 32 frames")                              \
    X(jemalloc, "prof_gdump", "", "", "hakmem growth watches a process")                           \
    X(jemalloc, "prof_log", "", "", "samples are kept by call site")                               \
    X(jemalloc, "prof_sys_thread_name", "", "", "samples are not kept by thread")                  \
    X(jemalloc, "prof_time_resolution", "", "", "times are in milliseconds")                       \
    X(jemalloc, "prof_unbias", "", "", "profiles are unbiased")                                    \
    X(jemalloc, "prof_leak_error", "", "", "hakmem growth --most has an exit status for tests")    \
    X(jemalloc, "lg_prof_interval", "", "",                                                        \
      "hakmem ctl PID dump --heap-v2 writes a profile at any time")                                \
    X(jemalloc, "prof_pid_namespace", "", "", "files are named by the process's own PID")          \
    X(jemalloc, "huge_arena_pac_thp", "", "", "thp applies to all memory")                         \
    X(jemalloc, "hpa", "", "", "no huge page allocator; see option thp")                           \
    X(jemalloc, "hpa_slab_max_alloc", "", "", "no huge page allocator; see option thp")            \
    X(jemalloc, "hpa_hugification_threshold", "", "", "no huge page allocator; see option thp")    \
    X(jemalloc, "hpa_hugification_threshold_ratio", "", "",                                        \
      "no huge page allocator; see option thp")                                                    \
    X(jemalloc, "hpa_hugify_delay_ms", "", "", "no huge page allocator; see option thp")           \
    X(jemalloc, "hpa_hugify_sync", "", "", "no huge page allocator; see option thp")               \
    X(jemalloc, "hpa_min_purge_interval_ms", "", "", "no huge page allocator; see option thp")     \
    X(jemalloc, "hpa_min_purge_delay_ms", "", "", "no huge page allocator; see option thp")        \
    X(jemalloc, "hpa_dirty_mult", "", "", "no huge page allocator; see option thp")                \
    X(jemalloc, "hpa_purge_threshold", "", "", "no huge page allocator; see option thp")           \
    X(jemalloc, "hpa_purge_threshold_ratio", "", "", "no huge page allocator; see option thp")     \
    X(jemalloc, "hpa_sec_nshards", "", "", "no huge page allocator; see option thp")               \
    X(jemalloc, "hpa_sec_max_alloc", "", "", "no huge page allocator; see option thp")             \
    X(jemalloc, "hpa_sec_max_bytes", "", "", "no huge page allocator; see option thp")             \
    X(jemalloc, "hpa_sec_batch_fill_extra", "", "", "no huge page allocator; see option thp")      \
    X(jemalloc, "experimental_hpa_max_purge_nhp", "", "",                                          \
      "no huge page allocator; see option thp")                                                    \
    X(jemalloc, "experimental_hpa_enforce_hugify", "", "",                                         \
      "no huge page allocator; see option thp")                                                    \
    X(jemalloc, "experimental_hpa_start_huge_if_thp_always", "", "",                               \
      "no huge page allocator; see option thp")

#define MIGRATE_TCMALLOC(X)                                                                        \
    X(tcmalloc, "TCMALLOC_RELEASE_RATE", "decay", "0=never,1=125ms",                               \
      "free memory is returned by age, not at a rate")                                             \
    X(tcmalloc, "TCMALLOC_AGGRESSIVE_DECOMMIT", "decay", "true=0ms,false=125ms", "")               \
    X(tcmalloc, "TCMALLOC_HEAP_LIMIT_MB", "limit", "mib", "requests beyond it get NULL")           \
    X(tcmalloc, "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", "", "",                                   \
      "it is the total of all threads; thread_cache is per processor or thread")                   \
    X(tcmalloc, "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD", "", "",                                   \
      "large requests are not reported")                                                           \
    X(tcmalloc, "TCMALLOC_SAMPLE_PARAMETER", "heap_profile_rate", "bytes",                         \
      "heap_profile=on starts the profiler")                                                       \
    X(tcmalloc, "TCMALLOC_SKIP_MMAP", "", "", "memory comes from mmap")                            \
    X(tcmalloc, "TCMALLOC_SKIP_SBRK", "", "", "memory comes from mmap")                            \
    X(tcmalloc, "MALLOCSTATS", "stats", "0=off,1=text,2=text", "")                                 \
    X(tcmalloc, "HEAPPROFILE", "heap_profile", "*=on", "read it with hakmem profile")              \
    X(tcmalloc, "HEAPCHECK", "heap_profile", "*=leaks", "samples show what was not freed")         \
    X(tcmalloc, "TCMALLOC_DISABLE_MEMORY_RELEASE", "decay", "true=never,false=125ms", "")          \
    X(tcmalloc, "TCMALLOC_TRANSFER_NUM_OBJ", "", "", "batches follow demand")                      \
    X(tcmalloc, "TCMALLOC_MEMFS_MALLOC_PATH", "", "",                                              \
      "transparent huge pages only; see option thp")                                               \
    X(tcmalloc, "TCMALLOC_MEMFS_LIMIT_MB", "", "", "transparent huge pages only; see option thp")  \
    X(tcmalloc, "TCMALLOC_MEMFS_ABORT_ON_FAIL", "", "",                                            \
      "transparent huge pages only; see option thp")                                               \
    X(tcmalloc, "TCMALLOC_MEMFS_IGNORE_MMAP_FAIL", "", "",                                         \
      "transparent huge pages only; see option thp")                                               \
    X(tcmalloc, "TCMALLOC_MEMFS_MAP_PRIVATE", "", "",                                              \
      "transparent huge pages only; see option thp")                                               \
    X(tcmalloc, "TCMALLOC_MEMFS_DISABLE_FALLBACK", "", "",                                         \
      "transparent huge pages only; see option thp")                                               \
    X(tcmalloc, "TCMALLOC_DEVMEM_START", "", "", "memory comes from mmap")                         \
    X(tcmalloc, "TCMALLOC_DEVMEM_LIMIT", "", "", "memory comes from mmap")                         \
    X(tcmalloc, "HEAP_PROFILE_ALLOCATION_INTERVAL", "", "",                                        \
      "hakmem ctl PID dump --pprof writes a profile at any time")                                  \
    X(tcmalloc, "HEAP_PROFILE_DEALLOCATION_INTERVAL", "", "",                                      \
      "hakmem ctl PID dump --pprof writes a profile at any time")                                  \
    X(tcmalloc, "HEAP_PROFILE_INUSE_INTERVAL", "", "",                                             \
      "hakmem ctl PID dump --pprof writes a profile at any time")                                  \
    X(tcmalloc, "HEAP_PROFILE_TIME_INTERVAL", "", "",                                              \
      "hakmem ctl PID dump --pprof writes a profile at any time")                                  \
    X(tcmalloc, "HEAP_PROFILE_MMAP", "", "", "only allocations are sampled")                       \
    X(tcmalloc, "PERFTOOLS_VERBOSE", "", "", "hakmem prints nothing unless asked")

#define MIGRATE_MIMALLOC(X)                                                                        \
    X(mimalloc, "MIMALLOC_PURGE_DELAY", "decay", "ms", "")                                         \
    X(mimalloc, "MIMALLOC_SHOW_STATS", "stats", "true=text,false=off", "")                         \
    X(mimalloc, "MIMALLOC_VERBOSE", "HAKMEM_SHOW_CONF", "true=1,false=0", "")                      \
    X(mimalloc, "MIMALLOC_SHOW_ERRORS", "", "", "detected misuse is always reported")              \
    X(mimalloc, "MIMALLOC_ALLOW_LARGE_OS_PAGES", "thp", "true=on,false=auto",                      \
      "transparent huge pages only")                                                               \
    X(mimalloc, "MIMALLOC_ALLOW_THP", "thp", "true=auto,false=off", "")                            \
    X(mimalloc, "MIMALLOC_RESERVE_HUGE_OS_PAGES", "", "",                                          \
      "transparent huge pages only; see option thp")                                               \
    X(mimalloc, "MIMALLOC_RESERVE_OS_MEMORY", "", "",                                              \
      "nothing is reserved; prewarm takes and touches memory at the start")                        \
    X(mimalloc, "MIMALLOC_EAGER_COMMIT", "", "", "addresses are mapped as they are needed")        \
    X(mimalloc, "MIMALLOC_ARENA_EAGER_COMMIT", "", "", "addresses are mapped as they are needed")  \
    X(mimalloc, "MIMALLOC_PURGE_DECOMMITS", "", "", "memory is returned by madvise")               \
    X(mimalloc, "MIMALLOC_USE_NUMA_NODES", "", "", "free memory is kept by node")                  \
    X(mimalloc, "MIMALLOC_DISALLOW_OS_ALLOC", "", "", "limit bounds the memory held")              \
    X(mimalloc, "MIMALLOC_LARGE_OS_PAGES", "thp", "true=on,false=auto",                            \
      "transparent huge pages only")                                                               \
    X(mimalloc, "MIMALLOC_RESET_DELAY", "decay", "ms", "")                                         \
    X(mimalloc, "MIMALLOC_RESERVE_HUGE_OS_PAGES_AT", "", "",                                       \
      "transparent huge pages only; see option thp")                                               \
    X(mimalloc, "MIMALLOC_EAGER_REGION_COMMIT", "", "", "addresses are mapped as they are needed") \
    X(mimalloc, "MIMALLOC_EAGER_COMMIT_DELAY", "", "", "addresses are mapped as they are needed")  \
    X(mimalloc, "MIMALLOC_RESET_DECOMMITS", "", "", "memory is returned by madvise")               \
    X(mimalloc, "MIMALLOC_PAGE_RESET", "", "", "unused pages of slabs are returned anyway")        \
    X(mimalloc, "MIMALLOC_SEGMENT_CACHE", "", "", "big_cache and retain bound free memory")        \
    X(mimalloc, "MIMALLOC_SEGMENT_RESET", "", "", "memory is returned after option decay")         \
    X(mimalloc, "MIMALLOC_ABANDONED_PAGE_PURGE", "", "", "slabs belong to shared heaps")           \
    X(mimalloc, "MIMALLOC_ABANDONED_PAGE_RESET", "", "", "slabs belong to shared heaps")           \
    X(mimalloc, "MIMALLOC_ABANDONED_RECLAIM_ON_FREE", "", "", "slabs belong to shared heaps")      \
    X(mimalloc, "MIMALLOC_MAX_SEGMENT_RECLAIM", "", "", "slabs belong to shared heaps")            \
    X(mimalloc, "MIMALLOC_PAGE_RECLAIM_ON_FREE", "", "", "slabs belong to shared heaps")           \
    X(mimalloc, "MIMALLOC_PAGE_MAX_RECLAIM", "", "", "slabs belong to shared heaps")               \
    X(mimalloc, "MIMALLOC_PAGE_CROSS_THREAD_MAX_RECLAIM", "", "", "slabs belong to shared heaps")  \
    X(mimalloc, "MIMALLOC_PAGE_FULL_RETAIN", "", "", "empty slabs are kept for option decay")      \
    X(mimalloc, "MIMALLOC_PAGE_MAX_CANDIDATES", "", "", "slabs are found by how full they are")    \
    X(mimalloc, "MIMALLOC_PURGE_EXTEND_DELAY", "", "", "memory is returned by its age alone")      \
    X(mimalloc, "MIMALLOC_ARENA_PURGE_MULT", "", "", "memory is returned by its age alone")        \
    X(mimalloc, "MIMALLOC_MINIMAL_PURGE_SIZE", "", "", "memory is returned by its age alone")      \
    X(mimalloc, "MIMALLOC_ARENA_RESERVE", "", "", "nothing is reserved")                           \
    X(mimalloc, "MIMALLOC_ARENA_MAX_OBJECT_SIZE", "", "", "all blocks come from one window")       \
    X(mimalloc, "MIMALLOC_ARENA_IS_NUMA_LOCAL", "", "", "free memory is kept by node")             \
    X(mimalloc, "MIMALLOC_DISALLOW_ARENA_ALLOC", "", "", "all blocks come from one window")        \
    X(mimalloc, "MIMALLOC_MAX_VABITS", "", "", "all blocks come from a window of 1 TiB")           \
    X(mimalloc, "MIMALLOC_PAGEMAP_COMMIT", "", "", "metadata is mapped as it is needed")           \
    X(mimalloc, "MIMALLOC_PAGE_COMMIT_ON_DEMAND", "", "",                                          \
      "addresses are mapped as they are needed")                                                   \
    X(mimalloc, "MIMALLOC_RETRY_ON_OOM", "", "",                                                   \
      "free memory is collected before a request is refused")                                      \
    X(mimalloc, "MIMALLOC_VISIT_ABANDONED", "", "", "blocks cannot be visited")                    \
    X(mimalloc, "MIMALLOC_GENERIC_COLLECT", "", "", "maintenance follows time and demand")         \
    X(mimalloc, "MIMALLOC_DESTROY_ON_EXIT", "", "",                                                \
      "the kernel frees all memory of a process at its end")                                       \
    X(mimalloc, "MIMALLOC_MAX_ERRORS", "", "", "misuse ends the program")                          \
    X(mimalloc, "MIMALLOC_MAX_WARNINGS", "", "", "hakmem prints nothing unless asked")             \
    X(mimalloc, "MIMALLOC_OS_TAG", "", "", "of macOS only")                                        \
    X(mimalloc, "MIMALLOC_GUARDED_SAMPLE_RATE", "", "",                                            \
      "guard_rate is in bytes: one guarded block in so many")                                      \
    X(mimalloc, "MIMALLOC_GUARDED_SAMPLE_SEED", "", "", "samples are random")                      \
    X(mimalloc, "MIMALLOC_GUARDED_MIN", "", "", "blocks of all sizes are sampled")                 \
    X(mimalloc, "MIMALLOC_GUARDED_MAX", "", "", "blocks of all sizes are sampled")                 \
    X(mimalloc, "MIMALLOC_GUARDED_PRECISE", "", "", "fence_alignment of mode fence")

#define MIGRATE_GLIBC(X)                                                                           \
    X(glibc, "MALLOC_ARENA_MAX", "", "", "there are as many heaps as processors run its threads")  \
    X(glibc, "MALLOC_ARENA_TEST", "", "", "there are as many heaps as processors run its threads") \
    X(glibc, "MALLOC_TRIM_THRESHOLD_", "retain", "bytes", "free memory kept regardless of age")    \
    X(glibc, "MALLOC_TOP_PAD_", "", "", "memory grows in steps of 2 to 64 MiB")                    \
    X(glibc, "MALLOC_MMAP_THRESHOLD_", "", "", "large blocks begin at 128 KiB")                    \
    X(glibc, "MALLOC_MMAP_MAX_", "", "", "large blocks have no mappings of their own")             \
    X(glibc, "MALLOC_PERTURB_", "harden", "0=none,*=zero", "freed memory is cleared")              \
    X(glibc, "MALLOC_CHECK_", "mode", "0=balanced,1=hardened,2=hardened,3=hardened", "")           \
    X(glibc, "glibc.malloc.arena_max", "", "",                                                     \
      "there are as many heaps as processors run its threads")                                     \
    X(glibc, "glibc.malloc.trim_threshold", "retain", "bytes",                                     \
      "free memory kept regardless of age")                                                        \
    X(glibc, "glibc.malloc.mmap_threshold", "", "", "large blocks begin at 128 KiB")               \
    X(glibc, "glibc.malloc.hugetlb", "thp", "0=auto,1=on", "transparent huge pages only")          \
    X(glibc, "glibc.malloc.tcache_count", "", "", "thread_cache bounds the bytes of all sizes")    \
    X(glibc, "glibc.malloc.check", "mode", "0=balanced,1=hardened,2=hardened,3=hardened", "")      \
    X(glibc, "glibc.malloc.perturb", "harden", "0=none,*=zero", "freed memory is cleared")

#define MIGRATE_TABLE(X)                                                                           \
    MIGRATE_JEMALLOC(X) MIGRATE_TCMALLOC(X) MIGRATE_MIMALLOC(X) MIGRATE_GLIBC(X)

#endif
