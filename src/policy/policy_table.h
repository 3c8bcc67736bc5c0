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
    X(thread_cache_bytes, 4 * HAK_MIB, 64 * HAK_KIB, 256 * HAK_MIB,                                \
      "what the bins of one processor or thread may hold")                                         \
    X(process_cache_bytes, 32 * HAK_MIB, 64 * HAK_KIB, HAK_TIB,                                    \
      "what all bins may hold, or an eighth of a limit; 64 KiB each at least")                     \
    X(free_cache_bytes, HAK_MIB, 0, HAK_TIB,                                                       \
      "what the bins of all caches without a thread may hold, until they are older than "          \
      "`decay`")                                                                                   \
    X(class_cache_bytes, 96 * HAK_KIB, 4 * HAK_KIB, 64 * HAK_MIB,                                  \
      "what one bin of blocks below 4 KiB may hold")                                               \
    X(large_class_cache_bytes, 192 * HAK_KIB, 4 * HAK_KIB, 64 * HAK_MIB,                           \
      "what one bin of blocks from 4 KiB on may hold, or two blocks")                              \
    X(span_cache_bytes, 4 * HAK_MIB, 0, HAK_TIB,                                                   \
      "what one heap keeps of the spans of freed large blocks of up to 1 MiB")                     \
    X(span_cache_percent, 12, 0, 100,                                                              \
      "the same of all heaps together, of the most large blocks that were ever live; "             \
      "each may keep one")                                                                         \
    X(quiet_ms, 500, 10, 60000, "bins without a miss for this long are shrunk")                    \
    X(decay_ms, 125, 0, UINT64_MAX / 2, "free memory goes back to the kernel after this time")     \
    X(retain_bytes, 16 * HAK_MIB, 0, HAK_TIB,                                                      \
      "free span memory that stays warm whatever its age, within a quarter of the live "           \
      "spans")                                                                                     \
    X(free_policy, 2, 0, 2, "old free memory: 0 stays, 1 goes back at once, 2 goes back by need")  \
    X(prewarm_bytes, 0, 0, HAK_TIB, "live and warm memory together do not fall below this")        \
    X(limit_bytes, 0, 0, HAK_TIB,                                                                  \
      "bound of the memory held, or none; beyond it requests are refused")                         \
    X(soft_limit_bytes, 0, 0, HAK_TIB,                                                             \
      "above this no free memory is kept; 0: what the control group says")                         \
    X(big_cache_bytes, HAK_TIB, 0, HAK_TIB, "bound of the warm free span memory, however young")   \
    X(big_cache_slack_bytes, 16 * HAK_MIB, 0, HAK_TIB,                                             \
      "live and warm span memory may together exceed the most that was ever live by this")         \
    X(big_cache_slack_percent, 12, 0, 1000,                                                        \
      "or by this share of it, if that is more; doubled while that pays")                          \
    X(big_cache_from_bytes, 4 * HAK_MIB, 0, HAK_TIB,                                               \
      "until large blocks were more than this together, their memory is kept only once "           \
      "some is wanted again")                                                                      \
    X(big_cache_episodes, 32, 1, HAK_TIB,                                                          \
      "spans of 1 MiB or more must be reused so often before their keep time is learned")          \
    X(pool_episodes, 32, 1, HAK_TIB,                                                               \
      "granules of slabs must be reused so often before their keep time is learned")               \
    X(big_fault_ms, 1400, 0, 1000000,                                                              \
      "keeping memory for this long costs as much as purging it and touching it again")            \
    X(flush_keep_percent, 50, 0, 90,                                                               \
      "of a full bin, the share that a flush leaves in it; half of that if no refill came since")  \
    X(big_cache_scale_percent, 100, 0, 1000,                                                       \
      "how much of big_cache_slack_bytes or big_cache_slack_percent holds")                        \
    X(match_ms, 250, 10, 60000, "a window of a match takes so long at least")                      \
    X(match_bytes, 16 * HAK_MIB, 0, HAK_TIB, "and the program allocates so much in it")            \
    X(match_operations, 2000, 0, HAK_TIB, "and there are so many slow operations in it")           \
    X(learn_acts, 1, 0, 1, "1: what is learned holds; 0: it is noted, and nothing else")           \
    X(signal_looks, 1, 0, 1,                                                                       \
      "1: now and then a slow path asks the kernel whether the program handles signals")           \
    X(spin_rounds, 64, 0, 100000,                                                                  \
      "polls of a held lock before sleeping; 0 where there is one processor")                      \
    X(huge_heap_superslabs, 8, 0, HAK_MIB,                                                         \
      "a new superslab may be a huge page once there are this many superslabs")                    \
    X(huge_class_bytes, 2 * HAK_MIB, 0, HAK_TIB,                                                   \
      "and the heap that asks for it has this much memory in slabs of the class")                  \
    X(huge_block_bytes, 4 * HAK_KIB, 0, HAK_TIB,                                                   \
      "and its blocks are no longer than this: of longer ones it is not known what is "            \
      "touched")                                                                                   \
    X(mapping_percent, 50, 0, 90,                                                                  \
      "share of the mappings allowed by the kernel that hakmem may cause")                         \
    X(moved_pieces_most, 8192, 0, HAK_MIB,                                                         \
      "runs of pages that realloc may have moved, within an eighth of the mappings "               \
      "allowed")

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
    X(free_cache_bytes, 4 * HAK_MIB, HAK_MIB, 128 * HAK_KIB)                                       \
    X(class_cache_bytes, 512 * HAK_KIB, 96 * HAK_KIB, 16 * HAK_KIB)                                \
    X(large_class_cache_bytes, HAK_MIB, 192 * HAK_KIB, 32 * HAK_KIB)                               \
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
