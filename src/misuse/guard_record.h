/* SPDX-License-Identifier: MIT */
/* misuse/guard_record.h - the record of one block next to a guard page.
 *
 * Owns        struct guard_record: the block, its pages, the threads and callers that allocated and
 *             freed it, and the filler around it on these pages. Two pools keep records:
 *             misuse/sampled_guard.h, misuse/fence.h.
 *
 *                 | no access | filler | block | filler | no access
 *                             ^ start  ^ block          ^ end
 *
 * Invariants  the pages are accessible only while the state is LIVE, or while the thread that
 *             changed it works on them. The thread that moves the state from LIVE frees the block;
 *             a thread that fails to has freed it twice.
 * Threads     any, without a lock; handlers too. FREE -> BUSY -> LIVE -> BUSY -> FREE: the step
 *             from LIVE is an exchange (acquire), that to it a store (release), each the other's
 *             partner; those from and to FREE are the pool's. Members that reports read are written
 *             word by word, so that a late report may be wrong but is never torn.
 * Tests       tests/unit/misuse/sampled_guard_test.c, tests/unit/misuse/fence_test.c
 */
#ifndef HAK_MISUSE_GUARD_RECORD_H
#define HAK_MISUSE_GUARD_RECORD_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/text.h"
#include "os/thread_label.h"

#define HAK_GUARDED_FRAMES 6u

enum guarded_state { GUARDED_FREE, GUARDED_BUSY, GUARDED_LIVE };

/* The callers: return addresses, innermost first; 0: no more. */
struct guarded_trace {
    uintptr_t addresses[HAK_GUARDED_FRAMES];
    struct thread_label thread;
};

/* What is known of an address, for reports. */
struct guarded_view {
    uintptr_t block; /* that it belongs to, or lies next to; 0: there never was one */
    size_t bytes;    /* requested */
    uintptr_t form;  /* as in struct guard_record */
    enum guarded_state state;
    struct guarded_trace taken;
    struct guarded_trace given;
};

struct guard_record {
    _Atomic uint32_t state; /* enum guarded_state */
    bool is_dirty;          /* the kernel did not take the memory back */
    unsigned char filler;
    uint32_t filler_bytes_most; /* so much before and behind the block is filled */
    uintptr_t block;            /* 0: never used */
    size_t bytes;
    uintptr_t form; /* how it was requested, for the pool's caller */
    uintptr_t start, end;
    struct guarded_trace taken;
    struct guarded_trace given;
};

/* So much before and behind a block is filled where a pool keeps few blocks. */
#define HAK_GUARD_FILLER_BYTES 128u

/* Adds the requested bytes of a LIVE block, and the block; nothing for another. */
void hak_guard_record_sum(const struct guard_record *record, size_t *bytes, size_t *count);

/* Describes the block of a BUSY record, whose pages are accessible, and fills what is around it;
 * the caller makes it LIVE. */
void hak_guard_record_open(struct guard_record *record, const struct guard_record *block,
                           const struct guarded_trace *trace);

/* Makes a LIVE block BUSY, by the freeing thread. Misuse, reported: it is no live block's start, or
 * was written around. */
void hak_guard_record_seize(struct guard_record *record, const void *block,
                            const struct guarded_trace *trace);

/* Misuse, called `what`, of what is not the start of a live block. */
void hak_guard_record_check(const struct guard_record *record, const void *block, const char *what);

/* Fills the view; any state will do. */
void hak_guard_record_view(const struct guard_record *record, struct guarded_view *view);

/* Tells of misuse with all that is known of the block, and aborts. */
_Noreturn void hak_guard_record_report(const char *what, const void *block,
                                       const struct guard_record *record, const char *state);

/* Adds `words`, the thread and the places of the calls to a line; nothing for an empty trace. */
void hak_guarded_tell(struct text *text, const char *words, const struct guarded_trace *trace);

#endif
