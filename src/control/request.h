/* SPDX-License-Identifier: MIT */
/* control/request.h - the contents of a request file.
 *
 * Owns        struct control_request, the first bytes of a file /dev/shm/hakmem.PID.request, which
 *             `hakmem ctl` leaves for the process PID; the words of a request.
 * Invariants  any bytes may be in the file. A request is for one process: of this id, in this space
 *             of process ids (containers may share /dev/shm), started at this time; after its
 *             deadline it is no longer awaited. The asker creates the file, complete from its first
 *             moment, and removes it. The process writes to `state` and to what follows `words`, in
 *             that order: TAKEN, the answer, ANSWERED. So a request is carried out at most once,
 *             and its sender knows whether it was begun. The last byte of `words`, behind their
 *             end, is HAK_REQUEST_LEFT where the answer is not awaited; the next sender then
 *             removes the file if the request was carried out or the process has ended.
 * Threads     pure functions.
 * Tests       tests/unit/control/request_test.c, tests/fuzz/request_fuzz.c
 */
#ifndef HAK_CONTROL_REQUEST_H
#define HAK_CONTROL_REQUEST_H

#include "base/compiler.h"

/* The same for all versions whose requests are understood by each other. */
#define HAK_REQUEST_MAGIC 0x31307165726b6168ull /* "hakreq01" */
#define HAK_REQUEST_SUFFIX ".request"
#define HAK_REQUEST_WORDS_BYTES 320
#define HAK_REQUEST_ANSWER_BYTES 384
#define HAK_REQUEST_LEFT 'L'
/* What is left waits for so long. */
#define HAK_REQUEST_LEFT_MS 43200000u
/* A process is watched for so long at most, unless it is asked again. */
#define HAK_REQUEST_WATCH_SECONDS_MOST 3600u

enum request_state { REQUEST_WAITS, REQUEST_TAKEN, REQUEST_ANSWERED };

struct control_request {
    uint64_t magic;
    uint64_t pid;         /* of the process, as it knows itself */
    uint64_t pid_space;   /* 0: not known */
    uint64_t start_ticks; /* 0: not known */
    uint64_t deadline_ms; /* by hak_os_clock_ms */
    char words[HAK_REQUEST_WORDS_BYTES];
    uint64_t state;   /* enum request_state */
    uint64_t is_done; /* 0: the answer says why not */
    char answer[HAK_REQUEST_ANSWER_BYTES];
    /* Then the statistics, the profile, the rules or the sizes, if requested. */
};

/* The process that finds a request; 0: not known. */
struct request_finder {
    uint64_t pid;
    uint64_t pid_space;
    uint64_t start_ticks;
    uint64_t now_ms;
};

enum request_kind {
    REQUEST_UNKNOWN,
    REQUEST_TRIM,
    REQUEST_DUMP,
    REQUEST_SET,
    REQUEST_PROFILE_ON,
    REQUEST_PROFILE_OFF,
    REQUEST_PROFILE_DUMP,
    REQUEST_WATCH,
    REQUEST_RULES,
    REQUEST_RULE,
    REQUEST_SIZES,
};

struct request_wish {
    enum request_kind kind;
    uint32_t seconds;                    /* of a watch */
    char name[64];                       /* of an option */
    char value[HAK_REQUEST_WORDS_BYTES]; /* or the line of a rule (learn/site_line.h),
                                            or the form of a profile */
};

/* True when the finder is to do it, now. */
bool hak_request_is_due(const struct control_request *request, const struct request_finder *finder);

/* Reads the words: trim, dump, set NAME=VALUE, profile on or off, profile dump [FORM], watch
 * SECONDS, rules, rule LINE, sizes. */
void hak_request_read(const struct control_request *request, struct request_wish *wish);

#endif
