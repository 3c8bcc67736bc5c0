/* SPDX-License-Identifier: MIT */
/* conf/conf_table.h - the options, one row each.
 *
 * Owns        HAK_CONF_TABLE: X(name, kind, default, least, most, choices, meaning). The struct,
 *             the parser, the range errors, the listing and docs/CONFIG.md are made from it.
 * Invariants  kinds: BYTES (K, M, G, T suffixes), MS (ms, s suffixes; -1 or never), CHOICE (the
 *             value is the position among `choices`, words separated by '|'), SET (words of
 *             `choices` with '+' between them, `all`, `none`; the value has bit i for word i, and
 *             `most` is all bits), COUNT (a plain number), TEXT.
 * Tests       tests/unit/conf/conf_value_test.c, tests/unit/conf/conf_test.c
 */
#ifndef HAK_CONF_CONF_TABLE_H
#define HAK_CONF_CONF_TABLE_H

#include "base/limits.h"

#define HAK_CONF_NEVER_MS (INT64_MAX / 2)

#define HAK_CONF_TABLE(X)                                                                          \
    X(mode, CHOICE, 2, 0, 7, "minimal|fast|balanced|learning|research|hardened|fence|realtime",    \
      "values for all options that are not set otherwise")                                         \
    X(price, CHOICE, 1, 0, 2, "speed|even|compact",                                                \
      "trade between time and memory: speed uses more memory, compact more time")                  \
    X(stats, CHOICE, 0, 0, 6, "off|text|raw|json|xml|openmetrics|exact",                           \
      "print statistics in this form when the process ends; raw: lines of `name: value`; "         \
      "exact: text, and every request is counted, which makes malloc slow")                        \
    X(stats_file, TEXT, 0, 0, 0, "",                                                               \
      "append statistics to this file instead of standard error; %p becomes the process "          \
      "id")                                                                                        \
    X(stats_interval, MS, HAK_CONF_NEVER_MS, 10, HAK_CONF_NEVER_MS, "",                            \
      "also print statistics at this interval")                                                    \
    X(stats_signal, TEXT, 0, 0, 0, "",                                                             \
      "also print statistics when the process receives this signal, such as USR2 or 12")           \
    X(stats_shm, CHOICE, 0, 0, 2, "off|on|never",                                                  \
      "publish statistics in /dev/shm/hakmem.PID, for `hakmem top PID`; off: only when it "        \
      "asks; never: not then either, and requests of `hakmem ctl PID` get no answer")              \
    X(heap_profile, CHOICE, 0, 0, 6, "off|on|leaks|pprof|heap_v2|folded|json",                     \
      "sample allocations, for `hakmem profile PID`: which code allocates, and what is "           \
      "still live; leaks: report at the end what was not freed; the other four: write it "         \
      "then, to hakmem.PID.pprof, .heap, .folded or .profile.json, or STATS_FILE.pprof ...")       \
    X(heap_profile_rate, BYTES, 512 * HAK_KIB, 1, HAK_TIB, "",                                     \
      "average number of bytes between two samples of the heap profiler")                          \
    X(heap_profile_samples, COUNT, 1000, 0, 1000000, "",                                           \
      "bound of the samples a second: where more would come, the distance between them "           \
      "doubles, and so does their weight; 0: no bound")                                            \
    X(blackbox, CHOICE, 0, 0, 1, "off|on",                                                         \
      "sample allocations, and keep the profile and the last statistics for `hakmem autopsy` "     \
      "when the process is killed")                                                                \
    X(crash_report, CHOICE, 0, 0, 1, "off|on",                                                     \
      "at a crash, report what the faulting address belongs to, counters, and the last "           \
      "events")                                                                                    \
    X(foreign, CHOICE, 0, 0, 2, "ignore|forward|abort",                                            \
      "what free does with pointers that are not hakmem's: count them, pass them to "              \
      "libc, or abort")                                                                            \
    X(deepbind, CHOICE, 0, 0, 1, "off|on",                                                         \
      "whether dlopen honours RTLD_DEEPBIND; libraries opened so, such as PHP's, then "            \
      "use libc's malloc beside a preloaded hakmem")                                               \
    X(decay, MS, 125, 0, HAK_CONF_NEVER_MS, "",                                                    \
      "how long free memory is kept before it goes back to the kernel")                            \
    X(retain, BYTES, 16 * HAK_MIB, 0, HAK_TIB, "",                                                 \
      "free memory of large blocks that is kept whatever its age, within a quarter of those "      \
      "that are live")                                                                             \
    X(big_cache, BYTES, HAK_TIB, 0, HAK_TIB, "",                                                   \
      "bound of the free memory that is kept for large blocks; where less was needed, "            \
      "less is kept")                                                                              \
    X(free_policy, CHOICE, 2, 0, 2, "keep|batch|adaptive",                                         \
      "free memory older than `decay`: keep holds it, batch returns all of it at once, "           \
      "adaptive returns it in steps and holds what `retain` allows")                               \
    X(prewarm, BYTES, 0, 0, HAK_TIB, "",                                                           \
      "memory that is touched at the start, as huge pages unless `thp` is off, and held from "     \
      "then on; records for it, a sixteenth, come on top")                                         \
    X(limit, BYTES, 0, 0, HAK_TIB, "",                                                             \
      "bound of the memory that hakmem holds; beyond it requests are refused (0: none)")           \
    X(soft_limit, BYTES, 0, 0, HAK_TIB, "",                                                        \
      "above this size no free memory is kept (0: memory.high of the control group)")              \
    X(thread_cache, BYTES, 4 * HAK_MIB, 64 * HAK_KIB, 256 * HAK_MIB, "",                           \
      "bound of the free blocks in one processor's or thread's cache")                             \
    X(caches, CHOICE, 0, 0, 1, "processor|thread",                                                 \
      "free blocks are cached for each processor, where kernel and libc allow that, or "           \
      "for each thread")                                                                           \
    X(thp, CHOICE, 1, 0, 2, "off|auto|on",                                                         \
      "huge pages; off: never; auto: for slabs of size classes that grow; on: wherever the "       \
      "kernel has them")                                                                           \
    X(maintenance, CHOICE, 1, 0, 1, "off|on",                                                      \
      "a background thread gives memory back, once the heap has reached 32 MiB")                   \
    X(harden, SET, 0, 0, 127, "exact|random|quarantine|zero|canary|guards|sized",                  \
      "checks that stop misuse, each at a cost (docs/HARDEN.md)")                                  \
    X(quarantine, BYTES, 8 * HAK_MIB, 0, HAK_GIB, "",                                              \
      "freed memory that is withheld from reuse, with harden=quarantine")                          \
    X(guard_rate, BYTES, HAK_MIB, 0, HAK_TIB, "",                                                  \
      "one allocation per about this many bytes that slow paths take is placed against a "         \
      "guard page (0: none)")                                                                      \
    X(fence, TEXT, 0, 0, 0, "",                                                                    \
      "which blocks get pages of their own before a page without access, for debugging: all, "     \
      "none, a size, SIZE..SIZE, or FILE+OFFSET of a call on the way to malloc "                   \
      "(docs/FENCE.md)")                                                                           \
    X(fence_side, CHOICE, 0, 0, 1, "end|start",                                                    \
      "which side of a fenced block lies at the page without access")                              \
    X(fence_alignment, CHOICE, 4, 0, 4, "1|2|4|8|16",                                              \
      "bound of the alignment that fenced blocks get unasked: with 1 each ends at the page to "    \
      "the byte, which not every program bears")                                                   \
    X(fence_quarantine, BYTES, 2 * HAK_GIB, 0, 512 * HAK_GIB, "",                                  \
      "address space of freed fenced blocks that is withheld from reuse")                          \
    X(learn, SET, 3, 0, 15, "big_cache|decay|sites|matches",                                       \
      "what is learned while the program runs; big_cache: how long free large memory is kept; "    \
      "decay: how long free memory of slabs is kept; sites: which call sites keep what they "      \
      "allocate, so that it lies apart; matches: numbers are tried in turns, and the better one "  \
      "is kept (docs/MATCHES.md)")                                                                 \
    X(profile, TEXT, 0, 0, 0, "",                                                                  \
      "file for what was learned, read at the start and written at the end; `hakmem learned` "     \
      "shows it")

#endif
