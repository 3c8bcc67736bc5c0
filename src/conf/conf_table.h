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
      "a row of values for the options that nobody set")                                           \
    X(price, CHOICE, 1, 0, 2, "speed|even|compact",                                                \
      "what memory costs: time is spent to save it, or it is spent to save time")                  \
    X(stats, CHOICE, 0, 0, 6, "off|text|raw|json|xml|openmetrics|exact",                           \
      "print statistics when the process ends, in this form; raw: `name: value` a line; exact: "   \
      "as text, and every request is counted, which makes malloc slow")                            \
    X(stats_file, TEXT, 0, 0, 0, "",                                                               \
      "append them to this file instead of standard error; %p in it is the process's id")          \
    X(stats_interval, MS, HAK_CONF_NEVER_MS, 10, HAK_CONF_NEVER_MS, "",                            \
      "print them also each time so much has passed")                                              \
    X(stats_signal, TEXT, 0, 0, 0, "",                                                             \
      "print them also when the process gets this signal, such as USR2 or 12")                     \
    X(stats_shm, CHOICE, 0, 0, 2, "off|on|never",                                                  \
      "show them in /dev/shm/hakmem.PID, for `hakmem top PID`; off: when that asks for it; "       \
      "never: "                                                                                    \
      "not then either, and nothing that `hakmem ctl PID` asks is done")                           \
    X(crash_report, CHOICE, 0, 0, 1, "off|on",                                                     \
      "say at a crash what the address is, with counters and the last decisions")                  \
    X(foreign, CHOICE, 0, 0, 2, "ignore|forward|abort",                                            \
      "what free does with pointers that are not hakmem's: count them, pass them to libc, die")    \
    X(deepbind, CHOICE, 0, 0, 1, "off|on",                                                         \
      "whether dlopen heeds RTLD_DEEPBIND, by which libraries, such as PHP's, use libc's malloc "  \
      "instead of hakmem, where that is preloaded")                                                \
    X(decay, MS, 125, 0, HAK_CONF_NEVER_MS, "",                                                    \
      "how long free memory is kept before the kernel gets it back")                               \
    X(retain, BYTES, 16 * HAK_MIB, 0, HAK_TIB, "",                                                 \
      "free memory kept however old it is, within a quarter of what is live")                      \
    X(big_cache, BYTES, HAK_TIB, 0, HAK_TIB, "",                                                   \
      "most free memory of large blocks kept for the next ones; it is bounded by need anyway")     \
    X(free_policy, CHOICE, 2, 0, 2, "keep|batch|adaptive",                                         \
      "free memory stays; goes back all at once when it is old; or bit by bit, and some is kept")  \
    X(prewarm, BYTES, 0, 0, HAK_TIB, "",                                                           \
      "memory taken and touched at the start, and kept from then on")                              \
    X(limit, BYTES, 0, 0, HAK_TIB, "",                                                             \
      "most memory that hakmem may hold; beyond it requests are refused (0: no limit)")            \
    X(soft_limit, BYTES, 0, 0, HAK_TIB, "",                                                        \
      "from so much on nothing free is kept (0: as memory.high of the control group)")             \
    X(thread_cache, BYTES, 4 * HAK_MIB, 64 * HAK_KIB, 256 * HAK_MIB, "",                           \
      "most bytes of free blocks that one processor or thread keeps at hand")                      \
    X(caches, CHOICE, 0, 0, 1, "processor|thread",                                                 \
      "whose free blocks are kept at hand together: each processor's, where kernel and libc "      \
      "allow "                                                                                     \
      "that, or each thread's")                                                                    \
    X(thp, CHOICE, 1, 0, 2, "off|auto|on",                                                         \
      "huge pages: never; for slabs of classes that grow; wherever the kernel has them")           \
    X(maintenance, CHOICE, 1, 0, 1, "off|on",                                                      \
      "a thread of hakmem's own gives memory back, once the heap has reached 64 MiB")              \
    X(harden, SET, 0, 0, 127, "exact|random|quarantine|zero|canary|guards|sized",                  \
      "what stops misuse, at a price (docs/HARDEN.md)")                                            \
    X(quarantine, BYTES, 8 * HAK_MIB, 0, HAK_GIB, "",                                              \
      "freed memory that waits before it is used again, with harden=quarantine")                   \
    X(guard_rate, BYTES, HAK_MIB, 0, HAK_TIB, "",                                                  \
      "about one allocation in so many bytes that slow paths hand out ends at a page without "     \
      "access, and is watched (0: none)")                                                          \
    X(learn, SET, 2, 0, 127, "drain|big_cache|decay|sites|thread_cache|thp|growth",                \
      "what may be learned while the program runs; big_cache: how long free large memory is kept " \
      "(the others follow in a later version)")                                                    \
    X(profile, TEXT, 0, 0, 0, "",                                                                  \
      "file of what was learned, read at the start and written at the end; follows with learn")

#endif
