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
    X(jemalloc, "dirty_decay_ms", "decay", "ms", "free memory older than that goes back")          \
    X(jemalloc, "muzzy_decay_ms", "", "", "memory goes back in one step: decay")                   \
    X(jemalloc, "background_thread", "maintenance", "true=on,false=off",                           \
      "one thread, from 32 MiB on")                                                                \
    X(jemalloc, "max_background_threads", "", "", "it is one")                                     \
    X(jemalloc, "narenas", "", "", "there are as many heaps as processors run its threads")        \
    X(jemalloc, "percpu_arena", "", "", "caches belong to processors where that is possible")      \
    X(jemalloc, "oversize_threshold", "", "", "blocks above 128 KiB are spans of their own")       \
    X(jemalloc, "tcache", "thread_cache", "true=4M,false=64K", "it can be small, but not off")     \
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
    X(jemalloc, "prof_prefix", "", "", "hakmem profile chooses the file")

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
    X(tcmalloc, "HEAPCHECK", "heap_profile", "*=leaks", "samples show what was not freed")

#define MIGRATE_MIMALLOC(X)                                                                        \
    X(mimalloc, "MIMALLOC_PURGE_DELAY", "decay", "ms", "")                                         \
    X(mimalloc, "MIMALLOC_SHOW_STATS", "stats", "true=text,false=off", "")                         \
    X(mimalloc, "MIMALLOC_VERBOSE", "HAKMEM_SHOW_CONF", "true=1,false=0", "")                      \
    X(mimalloc, "MIMALLOC_SHOW_ERRORS", "", "", "detected misuse is always reported")              \
    X(mimalloc, "MIMALLOC_ALLOW_LARGE_OS_PAGES", "thp", "true=on,false=auto",                      \
      "transparent huge pages only")                                                               \
    X(mimalloc, "MIMALLOC_ALLOW_THP", "thp", "true=auto,false=off", "")                            \
    X(mimalloc, "MIMALLOC_RESERVE_HUGE_OS_PAGES", "", "", "transparent huge pages only: thp")      \
    X(mimalloc, "MIMALLOC_RESERVE_OS_MEMORY", "", "",                                              \
      "nothing is reserved; prewarm takes and touches memory at the start")                        \
    X(mimalloc, "MIMALLOC_EAGER_COMMIT", "", "", "addresses are mapped as they are needed")        \
    X(mimalloc, "MIMALLOC_ARENA_EAGER_COMMIT", "", "", "addresses are mapped as they are needed")  \
    X(mimalloc, "MIMALLOC_PURGE_DECOMMITS", "", "", "memory is returned by madvise")               \
    X(mimalloc, "MIMALLOC_USE_NUMA_NODES", "", "", "free memory is kept by node")                  \
    X(mimalloc, "MIMALLOC_DISALLOW_OS_ALLOC", "", "", "limit bounds the memory held")

#define MIGRATE_GLIBC(X)                                                                           \
    X(glibc, "MALLOC_ARENA_MAX", "", "", "there are as many heaps as processors run its threads")  \
    X(glibc, "MALLOC_ARENA_TEST", "", "", "there are as many heaps as processors run its threads") \
    X(glibc, "MALLOC_TRIM_THRESHOLD_", "retain", "bytes", "free memory kept regardless of age")    \
    X(glibc, "MALLOC_TOP_PAD_", "", "", "memory grows in steps of 2 to 64 MiB")                    \
    X(glibc, "MALLOC_MMAP_THRESHOLD_", "", "", "large blocks begin at 128 KiB")                    \
    X(glibc, "MALLOC_MMAP_MAX_", "", "", "large blocks have no mappings of their own")             \
    X(glibc, "MALLOC_PERTURB_", "harden", "0=none,1=zero", "freed memory is cleared")              \
    X(glibc, "MALLOC_CHECK_", "mode", "0=balanced,1=hardened,2=hardened,3=hardened", "")           \
    X(glibc, "glibc.malloc.arena_max", "", "",                                                     \
      "there are as many heaps as processors run its threads")                                     \
    X(glibc, "glibc.malloc.trim_threshold", "retain", "bytes",                                     \
      "free memory kept regardless of age")                                                        \
    X(glibc, "glibc.malloc.mmap_threshold", "", "", "large blocks begin at 128 KiB")               \
    X(glibc, "glibc.malloc.hugetlb", "thp", "0=auto,1=on", "transparent huge pages only")          \
    X(glibc, "glibc.malloc.tcache_count", "", "", "thread_cache bounds the bytes of all sizes")    \
    X(glibc, "glibc.malloc.perturb", "harden", "0=none,1=zero", "freed memory is cleared")

#define MIGRATE_TABLE(X)                                                                           \
    MIGRATE_JEMALLOC(X) MIGRATE_TCMALLOC(X) MIGRATE_MIMALLOC(X) MIGRATE_GLIBC(X)

#endif
