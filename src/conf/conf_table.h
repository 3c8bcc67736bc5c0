/* SPDX-License-Identifier: MIT */
/* conf/conf_table.h - the options, one row each.
 *
 * Owns        HAK_CONF_TABLE: X(name, kind, default, least, most, choices, meaning). The struct,
 *             the parser, the range errors, the listing and docs/CONFIG.md are made from it.
 * Invariants  kinds: BYTES (K, M, G, T suffixes), MS (ms, s suffixes; -1 or never), CHOICE (the
 *             value is the position among `choices`, words separated by '|'), SET (words of
 *             `choices` with '+' between them, `all`, `none`; the value has bit i for word i, and
 *             `most` is all bits), COUNT (a plain number), TEXT (`choices` says what is accepted
 *             where not any is).
 * Tests       tests/unit/conf/conf_value_test.c, tests/unit/conf/conf_test.c
 */
#ifndef HAK_CONF_CONF_TABLE_H
#define HAK_CONF_CONF_TABLE_H

#include "base/limits.h"

#define HAK_CONF_NEVER_MS (INT64_MAX / 2)

#define HAK_CONF_TABLE(X)                                                                          \
    X(mode, CHOICE, 2, 0, 7, "minimal|fast|balanced|learning|research|hardened|fence|realtime",    \
      "a preset for all options that are not set explicitly")                                      \
    X(price, CHOICE, 1, 0, 2, "speed|even|compact",                                                \
      "trade-off between time and memory: speed uses more memory, compact more time")              \
    X(stats, CHOICE, 0, 0, 6, "off|text|raw|json|xml|openmetrics|exact",                           \
      "print statistics in this form at exit; raw: lines of `name: value`; exact: text, with "     \
      "every request counted, which makes malloc slow")                                            \
    X(stats_file, TEXT, 0, 0, 0, "",                                                               \
      "append statistics to this file instead of standard error; %p becomes the process "          \
      "id")                                                                                        \
    X(stats_interval, MS, HAK_CONF_NEVER_MS, 10, HAK_CONF_NEVER_MS, "",                            \
      "also print statistics at this interval")                                                    \
    X(stats_signal, TEXT, 0, 0, 0,                                                                 \
      "a signal that hakmem can use: USR1, USR2, HUP, PROF ..., or its number up to 64",           \
      "also print statistics when the process receives this signal, such as USR2 or 12")           \
    X(stats_shm, CHOICE, 0, 0, 2, "off|on|never",                                                  \
      "publish statistics in /dev/shm/hakmem.PID, for `hakmem top PID`; off: only while it asks "  \
      "for them; never: not even then, and `hakmem ctl PID` gets no answer")                       \
    X(heap_profile, CHOICE, 0, 0, 6, "off|on|leaks|pprof|heap_v2|folded|json",                     \
      "sample allocations, for `hakmem profile PID`: which code allocates, and what is still "     \
      "live; leaks: report at exit what was not freed; the other four: write a profile at exit, "  \
      "to hakmem.PID.pprof, .heap, .folded or .profile.json, or STATS_FILE.pprof ...")             \
    X(heap_profile_rate, BYTES, 512 * HAK_KIB, 1, HAK_TIB, "",                                     \
      "average number of bytes between two heap profile samples")                                  \
    X(heap_profile_samples, COUNT, 1000, 0, 1000000, "",                                           \
      "maximum samples per second: beyond it the sampling interval doubles, and so does each "     \
      "sample's weight; 0: no maximum")                                                            \
    X(blackbox, CHOICE, 0, 0, 1, "off|on",                                                         \
      "sample allocations, and keep the profile and the last statistics for `hakmem autopsy` if "  \
      "the process is killed")                                                                     \
    X(crash_report, CHOICE, 0, 0, 1, "off|on",                                                     \
      "on a crash, report what the faulting address belongs to, the counters, and the last "       \
      "events")                                                                                    \
    X(foreign, CHOICE, 0, 0, 2, "ignore|forward|abort",                                            \
      "what free does with pointers that are not hakmem's: count them, pass them to libc, or "     \
      "abort; unset: count those that glibc's free would accept, and abort on others")             \
    X(deepbind, CHOICE, 0, 0, 1, "off|on",                                                         \
      "whether dlopen honours RTLD_DEEPBIND; libraries opened with it, such as PHP's, then use "   \
      "libc's malloc beside a preloaded hakmem")                                                   \
    X(decay, MS, 125, 0, HAK_CONF_NEVER_MS, "",                                                    \
      "how long free memory is kept before it is returned to the kernel")                          \
    X(retain, BYTES, 16 * HAK_MIB, 0, HAK_TIB, "",                                                 \
      "free large-block memory that is kept regardless of age, at most a quarter of the live "     \
      "large blocks")                                                                              \
    X(big_cache, BYTES, HAK_TIB, 0, HAK_TIB, "",                                                   \
      "maximum free memory kept for large blocks; less is kept where less was needed")             \
    X(free_policy, CHOICE, 2, 0, 2, "keep|batch|adaptive",                                         \
      "free memory older than `decay`: keep holds it, batch returns all of it at once, adaptive "  \
      "returns it in steps and holds what `retain` allows")                                        \
    X(prewarm, BYTES, 0, 0, HAK_TIB, "",                                                           \
      "memory that is touched at start, as huge pages unless `thp` is off, and held from then "    \
      "on; its metadata adds a sixteenth; at most nine tenths of the memory that is available to " \
      "the process")                                                                               \
    X(limit, BYTES, 0, 0, HAK_TIB, "",                                                             \
      "maximum memory that hakmem holds; requests beyond it are refused (0: no limit)")            \
    X(soft_limit, BYTES, 0, 0, HAK_TIB, "",                                                        \
      "above this much memory no free memory is kept (0: memory.high of the control group, or "    \
      "nine tenths of its memory.max)")                                                            \
    X(thread_cache, BYTES, 8 * HAK_MIB, 64 * HAK_KIB, 256 * HAK_MIB, "",                           \
      "maximum free memory in one processor's or thread's cache")                                  \
    X(caches, CHOICE, 0, 0, 1, "processor|thread",                                                 \
      "cache free blocks per processor, where kernel and libc allow it, or per thread")            \
    X(thp, CHOICE, 1, 0, 2, "off|auto|on",                                                         \
      "huge pages; off: never; auto: for slabs of growing size classes, and for large blocks of "  \
      "programs that fill them; on: wherever the kernel provides them")                            \
    X(maintenance, CHOICE, 1, 0, 1, "off|on",                                                      \
      "a background thread returns memory, once the heap has reached 32 MiB")                      \
    X(harden, SET, 0, 0, 127, "exact|random|quarantine|zero|canary|guards|sized",                  \
      "checks that stop misuse, each at a cost (docs/HARDEN.md)")                                  \
    X(quarantine, BYTES, 8 * HAK_MIB, 0, HAK_GIB, "",                                              \
      "freed memory that is withheld from reuse, with harden=quarantine")                          \
    X(zero_size, CHOICE, 0, 0, 1, "inaccessible|ordinary",                                         \
      "what malloc(0) returns: an address that nobody may read or write, or a small block, for "   \
      "programs that use it all the same")                                                         \
    X(guard_rate, BYTES, HAK_MIB, 0, HAK_TIB, "",                                                  \
      "one allocation per about this many bytes that slow paths take is placed against a "         \
      "guard page (0: none)")                                                                      \
    X(fence, TEXT, 0, 0, 0,                                                                        \
      "none, all, a size, SIZE..SIZE (units K, M, G, T), or FILE+0xOFFSET of a call",              \
      "for debugging, which blocks get their own pages next to a guard page, by their size or by " \
      "a call on the stack of malloc (docs/FENCE.md)")                                             \
    X(fence_side, CHOICE, 0, 0, 1, "end|start",                                                    \
      "which side of a fenced block lies at the guard page")                                       \
    X(fence_alignment, CHOICE, 4, 0, 4, "1|2|4|8|16",                                              \
      "maximum default alignment of fenced blocks: with 1 each block ends exactly at the guard "   \
      "page, which some programs do not tolerate")                                                 \
    X(fence_quarantine, BYTES, 2 * HAK_GIB, 0, 512 * HAK_GIB, "",                                  \
      "address space of freed fenced blocks that is withheld from reuse")                          \
    X(learn, SET, 3, 0, 15, "big_cache|decay|sites|matches",                                       \
      "what is learned at run time; big_cache: how long to keep free large blocks; decay: how "    \
      "long to keep free slab memory; sites: which call sites allocate long-lived blocks, which "  \
      "then get slabs of their own; matches: tuning values are tried in turns, and the better "    \
      "one is kept (docs/MATCHES.md)")                                                             \
    X(profile, TEXT, 0, 0, 0, "",                                                                  \
      "file for what was learned, read at start and written at exit; `hakmem learned` shows it")

#endif
