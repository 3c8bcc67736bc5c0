/* SPDX-License-Identifier: MIT */
/* conf/conf_modes.h - modes and prices: several options set by one word.
 *
 * Owns        HAK_CONF_MODE_TABLE and HAK_CONF_PRICE_TABLE: X(word, "name:value,name:value"), in
 *             the order of the choices of `mode` and of `price`. What a row does not name has its
 *             default. The tables of docs/CONFIG.md are made from them.
 * Invariants  a row sets nothing that was set explicitly; a mode may set the price, and its other
 *             values win over those of the price. All modes run the same machine code: a row is
 *             option values and nothing else. Research mode also sets a row of the policy: what is
 *             learned is recorded and takes no effect (learn_acts).
 * Threads     constant data.
 * Tests       tests/unit/conf/conf_start_test.c, tests/preload/modes_preload.sh
 */
#ifndef HAK_CONF_CONF_MODES_H
#define HAK_CONF_CONF_MODES_H

#define HAK_CONF_MODE_TABLE(X)                                                                     \
    X(minimal, "thp:off,maintenance:off,guard_rate:0,learn:none")                                  \
    X(fast, "price:speed,guard_rate:0")                                                            \
    X(balanced, "")                                                                                \
    X(learning, "learn:all")                                                                       \
    X(research, "learn:all,stats:text,stats_shm:on,crash_report:on")                               \
    X(hardened, "foreign:abort,harden:all,guard_rate:0")                                           \
    X(fence, "foreign:abort,harden:all,guard_rate:0,fence:all")                                    \
    X(realtime, "prewarm:64M,free_policy:keep,maintenance:off,thp:off,guard_rate:0,learn:none,"    \
                "stats_shm:never")

/* What the price says to numbers that are no options is in policy/policy_table.h. */
#define HAK_CONF_PRICE_TABLE(X)                                                                    \
    X(speed, "thread_cache:16M,decay:1s,retain:256M")                                              \
    X(even, "")                                                                                    \
    X(compact, "thread_cache:256K,decay:25ms,retain:1M")

#endif
