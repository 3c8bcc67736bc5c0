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
    X(mode, CHOICE, 2, 0, 5, "minimal|fast|balanced|learning|research|hardened",                   \
      "values for all options that are not set otherwise")                                         \
    X(price, CHOICE, 1, 0, 2, "speed|even|compact",                                                \
      "what memory costs beside time: speed spends memory, compact spends time")                   \
    X(stats, CHOICE, 0, 0, 6, "off|text|raw|json|xml|openmetrics|exact",                           \
      "print statistics in this form when the process ends; raw: lines of `name: value`; "         \
      "exact: text, and every request is counted, which makes malloc slow")                        \
    X(stats_file, TEXT, 0, 0, 0, "",                                                               \
      "append them to this file instead of standard error; %p becomes the process id")             \
    X(stats_interval, MS, HAK_CONF_NEVER_MS, 10, HAK_CONF_NEVER_MS, "",                            \
      "print them at this interval, too")                                                          \
    X(stats_signal, TEXT, 0, 0, 0, "",                                                             \
      "print them when the process receives this signal, too, such as USR2 or 12")                 \
    X(stats_shm, CHOICE, 0, 0, 2, "off|on|never",                                                  \
      "publish them in /dev/shm/hakmem.PID, for `hakmem top PID`; off: when it asks for them; "    \
      "never: not then either, and no request of `hakmem ctl PID` is answered")                    \
    X(heap_profile, CHOICE, 0, 0, 2, "off|on|leaks",                                               \
      "sample allocations, for `hakmem profile PID`: who allocates, and who holds it; leaks: "     \
      "tell at the end what was not freed")                                                        \
    X(heap_profile_rate, BYTES, 512 * HAK_KIB, 1, HAK_TIB, "",                                     \
      "about one allocation in so many bytes is sampled for it")                                   \
    X(heap_profile_samples, COUNT, 1000, 0, 1000000, "",                                           \
      "about so many samples a second at most: where more would come, the distance between them "  \
      "doubles, and their weight; 0: any number")                                                  \
    X(blackbox, CHOICE, 0, 0, 1, "off|on",                                                         \
      "sample allocations, and keep the profile and the last statistics for `hakmem autopsy` "     \
      "when the process is killed")                                                                \
    X(crash_report, CHOICE, 0, 0, 1, "off|on",                                                     \
      "report at a crash what the address is, with counters and the last decisions")               \
    X(foreign, CHOICE, 0, 0, 2, "ignore|forward|abort",                                            \
      "what free does with pointers that are not hakmem's: count them, pass them to "              \
      "libc, or abort")                                                                            \
    X(deepbind, CHOICE, 0, 0, 1, "off|on",                                                         \
      "whether dlopen honours RTLD_DEEPBIND; libraries opened so, such as PHP's, then "            \
      "use libc's malloc beside a preloaded hakmem")                                               \
    X(decay, MS, 125, 0, HAK_CONF_NEVER_MS, "",                                                    \
      "how long free memory is kept before it goes back to the kernel")                            \
    X(retain, BYTES, 16 * HAK_MIB, 0, HAK_TIB, "",                                                 \
      "free memory that is kept whatever its age, within a quarter of what is live")               \
    X(big_cache, BYTES, HAK_TIB, 0, HAK_TIB, "",                                                   \
      "bound of the free memory that is kept for large blocks; need bounds it, too")               \
    X(free_policy, CHOICE, 2, 0, 2, "keep|batch|adaptive",                                         \
      "old free memory stays; goes back all at once; or goes back bit by bit, and some "           \
      "is kept")                                                                                   \
    X(prewarm, BYTES, 0, 0, HAK_TIB, "",                                                           \
      "memory that is allocated and touched at the start, and kept from then on")                  \
    X(limit, BYTES, 0, 0, HAK_TIB, "",                                                             \
      "bound of the memory that hakmem holds; beyond it requests are refused (0: none)")           \
    X(soft_limit, BYTES, 0, 0, HAK_TIB, "",                                                        \
      "above this size no free memory is kept (0: memory.high of the control group)")              \
    X(thread_cache, BYTES, 4 * HAK_MIB, 64 * HAK_KIB, 256 * HAK_MIB, "",                           \
      "bound of the free blocks in the cache of one processor or thread")                          \
    X(caches, CHOICE, 0, 0, 1, "processor|thread",                                                 \
      "free blocks are cached for each processor, where kernel and libc allow that, or "           \
      "for each thread")                                                                           \
    X(thp, CHOICE, 1, 0, 2, "off|auto|on",                                                         \
      "huge pages: never; for slabs of size classes that grow; wherever the kernel has "           \
      "them")                                                                                      \
    X(maintenance, CHOICE, 1, 0, 1, "off|on",                                                      \
      "a background thread gives memory back, once the heap has reached 32 MiB")                   \
    X(harden, SET, 0, 0, 127, "exact|random|quarantine|zero|canary|guards|sized",                  \
      "checks that stop misuse, each at a cost (docs/HARDEN.md)")                                  \
    X(quarantine, BYTES, 8 * HAK_MIB, 0, HAK_GIB, "",                                              \
      "freed memory that is withheld from reuse, with harden=quarantine")                          \
    X(guard_rate, BYTES, HAK_MIB, 0, HAK_TIB, "",                                                  \
      "one allocation per about this many bytes that slow paths take is placed against a "         \
      "guard page (0: none)")                                                                      \
    X(learn, SET, 6, 0, 127, "drain|big_cache|decay|sites|thread_cache|thp|growth",                \
      "what is learned while the program runs; big_cache: how long free large memory is kept; "    \
      "decay: how long free memory of slabs is kept; sites: which call sites keep what they "      \
      "allocate, so that it lies apart (the others have no effect yet)")                           \
    X(profile, TEXT, 0, 0, 0, "",                                                                  \
      "file for what was learned, read at the start and written at the end; `hakmem learned` "     \
      "shows it")

#endif
