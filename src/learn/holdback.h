/* SPDX-License-Identifier: MIT */
/* learn/holdback.h - what the rules of call sites change, measured: now and then none acts.
 *
 * Owns        struct holdback: the window of volume that lasts, its draw, and pages under
 *             observation. struct rule_effect: what those of a class have shown.
 * Invariants  a generation (learn/site_log.h) has 64 windows, and each has a draw of its own. In
 *             one of 128, chosen so, rules do not act: the window is held back. Windows, not single
 *             blocks: as many blocks, strewn over all pages, would pin more of these. Larger shares
 *             cost too much: docs/adr/0051-what-rules-change-is-measured.md.
 * Argument    Held-back windows and as many others are compared. From each, a few pages are taken
 *             that ordinary blocks came from, and observed for two generations: for which share of
 *             the time was a block on them in use? Where rules change nothing, both kinds of page
 *             are in use for the same share in the mean, whatever the program does, since only the
 *             draw tells them apart. The difference is the share of the ordinary slabs that rules
 *             keep free. The time between two looks counts as what the second one sees.
 * Threads     one at a time.
 * Tests       tests/unit/learn/holdback_test.c
 */
#ifndef HAK_LEARN_HOLDBACK_H
#define HAK_LEARN_HOLDBACK_H

#include "base/compiler.h"

/* A draw is one of so many; one below the share holds its window back. */
#define HAK_HOLDBACK_ONE 65536u
#define HAK_HOLDBACK_SHARE (HAK_HOLDBACK_ONE / 128)
#define HAK_HOLDBACK_WINDOWS 64u
/* In two generations two windows are compared, in the mean; pages without room are left out. */
#define HAK_HOLDBACK_PAGES 128u
/* Of either kind, before the effect counts as measured. */
#define HAK_EFFECT_PAGES_LEAST 32u
/* Between two looks, at least. */
#define HAK_HOLDBACK_LOOK_MS 5u

/* Of a slab, whatever that is: these blocks, as long as it is the same slab. */
struct page_of_blocks {
    void *slab;
    uint32_t slab_generation;
    uint16_t first, count;
};

/* What rules of a class change, in sums that forget. */
struct rule_effect {
    double pages[2]; /* observed while rules acted, and while they were held back */
    double used[2];  /* the sum of the shares of their time in which they were in use */
};

struct held_page {
    struct page_of_blocks page;
    uint64_t volume;
    uint64_t seen_ms, used_ms;
    uint8_t class_index;
    bool is_held; /* its window was held back */
};

struct holdback {
    uint64_t window_end; /* volume */
    uint64_t look_ms;
    uint32_t draw;
    uint32_t first, count; /* of the ring */
    struct held_page pages[HAK_HOLDBACK_PAGES];
};

/* True: a new window has begun, with this draw. */
bool hak_holdback_turn(struct holdback *holdback, uint64_t volume, uint64_t generation_bytes,
                       uint32_t draw);

/* Whether pages of this window are compared with others. */
bool hak_holdback_is_compared(const struct holdback *holdback);

/* A page that a block of the class came from in this window, which is compared. One that is
 * observed already is left out. */
void hak_holdback_add(struct holdback *holdback, const struct page_of_blocks *page,
                      uint32_t class_index, uint64_t volume);

/* Looks at all pages, if it is time. */
void hak_holdback_look(struct holdback *holdback, uint64_t now_ms,
                       bool (*is_used)(const struct page_of_blocks *page));

/* Takes the oldest page, if it was observed for two generations; false: there is none. */
bool hak_holdback_take(struct holdback *holdback, uint64_t volume, uint64_t generation_bytes,
                       struct held_page *page);

/* Adds a page that was looked at. */
void hak_effect_note(struct rule_effect *effect, const struct held_page *page);

/* Only this share of the sums counts from now on. */
void hak_effect_forget(struct rule_effect *effect, double kept);

/* For how much longer pages are in use while rules are held back, as a share of the time: of the
 * class's ordinary slabs, what its rules keep free. False: too few pages were observed. */
bool hak_effect_share(const struct rule_effect *effect, double *share);

#endif
