/* SPDX-License-Identifier: MIT */
/* policy/policy_table.h - the numbers that mechanisms read.
 *
 * Owns        HAK_POLICY_TABLE and the one published table.
 * Invariants  every row stays within its clamps: a bad table makes hakmem slow or large, never
 *             wrong.
 * Threads     relaxed loads; written at start.
 * Tests       tests/unit/policy/policy_test.c
 */
#ifndef HAK_POLICY_POLICY_TABLE_H
#define HAK_POLICY_POLICY_TABLE_H

#include "base/atomic.h"
#include "base/limits.h"

/* name, initial value, least, most, meaning */
#define HAK_POLICY_TABLE(X)                                                                        \
    X(thread_cache_bytes, 8 * HAK_MIB, 64 * HAK_KIB, 256 * HAK_MIB,                                \
      "maximum in the bins of one processor or thread; half of it when one grows to more than 15 " \
      "slots and 32 KiB; a quarter is left to blocks below 4 KiB")                                 \
    X(process_cache_bytes, 32 * HAK_MIB, 64 * HAK_KIB, HAK_TIB,                                    \
      "maximum in all bins, or an eighth of a limit; at least 64 KiB per cache")                   \
    X(cache_percent, 50, 0, 100,                                                                   \
      "maximum in all bins, of the memory held when one grows to more than 15 slots and 32 KiB; "  \
      "4 MiB is always allowed")                                                                   \
    X(free_cache_bytes, HAK_MIB, 0, HAK_TIB,                                                       \
      "maximum in the bins of all caches without a thread, until they are older than `decay`")     \
    X(class_cache_bytes, 96 * HAK_KIB, 4 * HAK_KIB, 64 * HAK_MIB,                                  \
      "maximum in one bin of blocks of up to 1 KiB; of larger ones below 4 KiB, as many blocks")   \
    X(large_class_cache_bytes, 384 * HAK_KIB, 4 * HAK_KIB, 64 * HAK_MIB,                           \
      "maximum in one bin of blocks of 4 KiB or more; if that is more, 15 blocks, or as many as "  \
      "1 MiB holds")                                                                               \
    X(span_cache_bytes, 4 * HAK_MIB, 0, HAK_TIB,                                                   \
      "maximum in one heap's span cache: spans of freed large blocks of up to 1 MiB")              \
    X(span_cache_percent, 12, 0, 100,                                                              \
      "maximum in all span caches, of the peak of live large blocks; each may keep 1 MiB, and "    \
      "as much in the last four")                                                                  \
    X(quiet_ms, 500, 10, 60000, "bins without a miss for this long are shrunk")                    \
    X(decay_ms, 125, 0, UINT64_MAX / 2, "free memory is returned to the kernel after this time")   \
    X(retain_bytes, 16 * HAK_MIB, 0, HAK_TIB,                                                      \
      "free span memory that stays warm regardless of age, at most a quarter of the live spans")   \
    X(free_policy, 2, 0, 2,                                                                        \
      "old free memory: 0 stays, 1 is returned at once, 2 is returned as needed")                  \
    X(prewarm_bytes, 0, 0, HAK_TIB, "minimum of live and warm memory together")                    \
    X(limit_bytes, 0, 0, HAK_TIB, "maximum memory held, or none; requests beyond it are refused")  \
    X(soft_limit_bytes, 0, 0, HAK_TIB,                                                             \
      "above this no free memory is kept; 0: the control group's value")                           \
    X(big_cache_bytes, HAK_TIB, 0, HAK_TIB, "maximum warm free span memory, regardless of age")    \
    X(big_cache_slack_bytes, 16 * HAK_MIB, 0, HAK_TIB,                                             \
      "live and warm span memory together may exceed the peak of live span memory by this")        \
    X(big_cache_slack_percent, 12, 0, 1000,                                                        \
      "or by this share of the peak, if that is more; doubled while that pays")                    \
    X(big_cache_from_bytes, 4 * HAK_MIB, 0, HAK_TIB,                                               \
      "until large blocks have totalled more than this, their memory is kept only once some was "  \
      "reused")                                                                                    \
    X(big_cache_episodes, 32, 1, HAK_TIB, "reuses of spans before their keep time is learned")     \
    X(pool_episodes, 32, 1, HAK_TIB,                                                               \
      "reuses of granules of slabs before their keep time is learned")                             \
    X(big_fault_ms, 1400, 0, 1000000,                                                              \
      "keeping memory for this long costs as much as purging it and touching it again")            \
    X(flush_keep_percent, 50, 0, 90,                                                               \
      "share of a full bin that a flush leaves in it; if no refill came since the last flush, "    \
      "nothing, or half of that where blocks have 4 KiB or more")                                  \
    X(big_cache_scale_percent, 100, 0, 1000,                                                       \
      "scale applied to big_cache_slack_bytes and big_cache_slack_percent")                        \
    X(match_ms, 250, 10, 60000, "minimum length of a window of a match")                           \
    X(match_bytes, 16 * HAK_MIB, 0, HAK_TIB, "minimum that the program allocates in it")           \
    X(match_operations, 2000, 0, HAK_TIB, "minimum number of slow operations in it")               \
    X(learn_acts, 1, 0, 1, "1: what is learned is applied; 0: it is only recorded")                \
    X(spin_rounds, 128, 0, 100000,                                                                 \
      "pauses while polling a held lock before sleeping; 0 where there is one processor")          \
    X(huge_heap_superslabs, 8, 0, HAK_MIB,                                                         \
      "a new superslab may be a huge page once there are this many superslabs")                    \
    X(huge_class_bytes, 2 * HAK_MIB, 0, HAK_TIB,                                                   \
      "and the requesting heap has this much memory in slabs of the class")                        \
    X(huge_block_bytes, 4 * HAK_KIB, 0, HAK_TIB,                                                   \
      "and its blocks are no larger than this: of larger ones it is unknown which pages are "      \
      "touched")                                                                                   \
    X(huge_large_bytes, 4 * HAK_MIB, 4 * HAK_MIB, HAK_TIB,                                         \
      "a large block of this size may be huge pages where the program filled the last ones")       \
    X(huge_slow_us, 1000, 0, 60000000,                                                             \
      "after a huge page that took this long, the next ones are not requested")                    \
    X(mapping_percent, 50, 0, 90,                                                                  \
      "share of the kernel's maximum number of mappings that hakmem may use")                      \
    X(moved_pieces_most, 8192, 0, HAK_MIB,                                                         \
      "runs of pages that realloc may have moved, at most an eighth of the allowed mappings")

/* option, row: numbers that an option sets, at the start and while the program runs. */
#define HAK_POLICY_OPTION_TABLE(X)                                                                 \
    X(decay, decay_ms)                                                                             \
    X(big_cache, big_cache_bytes)                                                                  \
    X(retain, retain_bytes)                                                                        \
    X(free_policy, free_policy)                                                                    \
    X(prewarm, prewarm_bytes)                                                                      \
    X(limit, limit_bytes)                                                                          \
    X(soft_limit, soft_limit_bytes)                                                                \
    X(thread_cache, thread_cache_bytes)

/* row, with price=speed, even, compact: numbers that follow the price of memory, besides the
 * options that it implies (conf/conf_modes.h). */
#define HAK_POLICY_PRICE_TABLE(X)                                                                  \
    X(process_cache_bytes, 128 * HAK_MIB, 32 * HAK_MIB, 8 * HAK_MIB)                               \
    X(cache_percent, 100, 50, 25)                                                                  \
    X(free_cache_bytes, 4 * HAK_MIB, HAK_MIB, 128 * HAK_KIB)                                       \
    X(class_cache_bytes, 512 * HAK_KIB, 96 * HAK_KIB, 16 * HAK_KIB)                                \
    X(large_class_cache_bytes, HAK_MIB, 384 * HAK_KIB, 32 * HAK_KIB)                               \
    X(quiet_ms, 2000, 500, 100)                                                                    \
    X(big_cache_slack_bytes, 64 * HAK_MIB, 16 * HAK_MIB, HAK_MIB)                                  \
    X(big_cache_slack_percent, 25, 12, 2)                                                          \
    X(big_cache_from_bytes, 0, 4 * HAK_MIB, 4 * HAK_MIB)                                           \
    X(big_fault_ms, 14000, 1400, 140)

/* The values of row free_policy. */
enum policy_free { POLICY_FREE_KEEP, POLICY_FREE_BATCH, POLICY_FREE_ADAPTIVE };

struct policy_table {
#define X(name, initial, least, most, meaning) _Atomic uint64_t name;
    HAK_POLICY_TABLE(X)
#undef X
};
extern struct policy_table hak_policy;

#define hak_policy_read(name) hak_load_relaxed(&hak_policy.name)

#endif
