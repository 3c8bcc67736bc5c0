/* SPDX-License-Identifier: MIT */
#include "stats/summary.h"

#include "os/rseq.h"

/* Below this there is nothing to be won. */
#define WORTH_BYTES ((uint64_t)4 * HAK_MIB)
/* Bins with at most this much are not made smaller (price=compact). */
#define SMALL_CACHE_BYTES ((uint64_t)256 * HAK_KIB)
#define USUAL_DECAY_MS 125u
#define CLASSES_SHOWN 3
/* No class takes more: " 1023.9 MiB of 131072," */
#define CLASS_COLUMNS 22

/* Where a line's size ends, where its words begin, and the same for lines of parts. */
enum { SIZE_END = 23, WORDS = 25, PERCENT_END = 31, PART_WORDS = 35 };

static const char *const words[HELD_COUNT] = {
#define X(kind, word, meaning) word,
    HAK_HELD_TABLE(X)
#undef X
};

static const char *const meanings[HELD_COUNT] = {
#define X(kind, word, meaning) meaning,
    HAK_HELD_TABLE(X)
#undef X
};

uint64_t hak_held_part(const struct snapshot *snapshot, enum held_part part)
{
    switch (part) {
    case HELD_LIVE:
        return snapshot->live_bytes;
    case HELD_FREE:
        return snapshot->slab_free_bytes;
    case HELD_CACHES:
        return snapshot->cached_bytes;
    case HELD_RETURNING:
        return snapshot->withheld_bytes + snapshot->homeward_bytes;
    case HELD_KEPT:
        return snapshot->slab_warm_bytes + snapshot->span_warm_bytes;
    default:
        return snapshot->metadata_bytes + snapshot->table_bytes;
    }
}

uint64_t hak_held_sum(const struct snapshot *snapshot)
{
    uint64_t sum = 0;
    for (int i = 0; i < HELD_COUNT; i++)
        sum += hak_held_part(snapshot, (enum held_part)i);
    return sum;
}

const char *hak_held_word(enum held_part part)
{
    return words[part];
}

/* Kept memory is returned without advice after the default decay. */
static const char *advice_on_kept(const struct snapshot *snapshot)
{
    if (snapshot->policy_free_policy == POLICY_FREE_KEEP && snapshot->policy_decay_ms != 0)
        return "HAKMEM_FREE_POLICY=adaptive: with keep no free memory is returned.";
    if (snapshot->policy_prewarm_bytes >= hak_held_part(snapshot, HELD_KEPT) / 2 &&
        snapshot->policy_prewarm_bytes != 0)
        return "a lower HAKMEM_PREWARM: it asks for most of what is kept.";
    if (snapshot->policy_decay_ms > USUAL_DECAY_MS)
        return "HAKMEM_DECAY=125ms: free memory is kept for longer than that now.";
    return "";
}

/* Caches of large blocks are bounded by need. */
static const char *advice_on_caches(const struct snapshot *snapshot)
{
    if (snapshot->policy_thread_cache_bytes <= SMALL_CACHE_BYTES ||
        snapshot->span_cached_bytes > snapshot->cached_bytes / 2)
        return "";
    if (snapshot->rseq_reason == RSEQ_CHOSEN)
        return "HAKMEM_CACHES=processor: caches of sleeping threads keep their blocks.";
    return "HAKMEM_PRICE=compact: smaller caches, and more work.";
}

static const char *advice_on_returning(const struct snapshot *snapshot)
{
    if (snapshot->withheld_bytes > snapshot->homeward_bytes)
        return "a lower HAKMEM_QUARANTINE: freed blocks wait there.";
    return "";
}

static const char *advice_on(const struct snapshot *snapshot, enum held_part part)
{
    switch (part) {
    case HELD_CACHES:
        return advice_on_caches(snapshot);
    case HELD_RETURNING:
        return advice_on_returning(snapshot);
    case HELD_KEPT:
        return advice_on_kept(snapshot);
    default:
        return "";
    }
}

const char *hak_summary_advice(const struct snapshot *snapshot)
{
    uint64_t held = hak_held_sum(snapshot);
    uint64_t most = held / 4 > WORTH_BYTES ? held / 4 : WORTH_BYTES;
    const char *advice = "";
    for (int i = 0; i < HELD_COUNT; i++) {
        uint64_t bytes = hak_held_part(snapshot, (enum held_part)i);
        const char *found = advice_on(snapshot, (enum held_part)i);
        if (bytes < most || *found == '\0')
            continue;
        most = bytes;
        advice = found;
    }
    if (snapshot->huge_excess_bytes >= most)
        advice = "HAKMEM_THP=off: huge pages brought in untouched memory.";
    return advice;
}

static void add_label(struct line_writer *out, const char *label, uint64_t bytes)
{
    hak_line_add(out, label);
    hak_line_size_right(out, bytes, SIZE_END);
    hak_line_pad(out, WORDS);
}

static void add_words(struct line_writer *out, const char *label, const char *text)
{
    hak_line_add(out, label);
    hak_line_pad(out, WORDS);
    hak_line_words(out, text, WORDS);
    hak_line_end_line(out);
}

static void add_resident(struct line_writer *out, const struct snapshot *snapshot)
{
    if (snapshot->resident_bytes == 0)
        return;
    add_label(out, "resident", snapshot->resident_bytes);
    hak_line_add(out, "the process");
    if (snapshot->own_resident_bytes != 0) {
        hak_line_add(out, ", ");
        hak_line_size(out, snapshot->own_resident_bytes);
        hak_line_add(out, " of it hakmem's");
    }
    hak_line_add(out, "; peak ");
    hak_line_size(out, snapshot->resident_peak_bytes);
    hak_line_end_line(out);
}

static void add_part(struct line_writer *out, const struct snapshot *snapshot, enum held_part part,
                     uint64_t held)
{
    uint64_t bytes = hak_held_part(snapshot, part);
    if (bytes == 0 && part == HELD_RETURNING)
        return;
    hak_line_add(out, "  ");
    add_label(out, words[part], bytes);
    size_t from = out->line.used;
    hak_line_percent(out, bytes, held);
    hak_line_right(out, from, PERCENT_END);
    hak_line_add(out, " %  ");
    if (part == HELD_LIVE) {
        hak_line_number(out, snapshot->small_live_blocks + snapshot->large_live_blocks +
                                 snapshot->guarded_live_blocks);
    }
    hak_line_words(out, meanings[part], PART_WORDS);
    hak_line_end_line(out);
}

static void add_ratio(struct line_writer *out, const struct snapshot *snapshot, uint64_t held)
{
    bool is_known = snapshot->own_resident_bytes != 0;
    uint64_t ratio = hak_share(snapshot->own_resident_bytes, snapshot->live_bytes, 100);
    hak_line_add(out, "fragmentation");
    size_t from = out->line.used;
    hak_text_add_fraction(&out->line, is_known ? ratio : hak_share(held, snapshot->live_bytes, 100),
                          2);
    hak_line_right(out, from, SIZE_END);
    hak_line_pad(out, WORDS);
    hak_line_add(out, is_known ? "resident bytes of hakmem for each live byte"
                               : "held bytes for each live byte");
    hak_line_end_line(out);
}

static uint64_t class_held(const struct snapshot_class *of)
{
    return of->block_bytes * (of->live_blocks + of->cached_blocks + of->free_blocks);
}

/* The classes that hold most, the first one first; returns how many. */
static uint32_t find_largest(const struct snapshot *snapshot,
                             const struct snapshot_class *largest[CLASSES_SHOWN])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        const struct snapshot_class *next = &snapshot->classes[i];
        if (class_held(next) == 0)
            continue;
        for (uint32_t k = 0; k < count; k++) {
            const struct snapshot_class *smaller = largest[k];
            if (class_held(smaller) >= class_held(next))
                continue;
            largest[k] = next;
            next = smaller;
        }
        if (count < CLASSES_SHOWN)
            largest[count++] = next;
    }
    return count;
}

static void add_largest(struct line_writer *out, const struct snapshot *snapshot)
{
    const struct snapshot_class *largest[CLASSES_SHOWN];
    uint32_t count = find_largest(snapshot, largest);
    if (count == 0)
        return;
    add_label(out, "largest", class_held(largest[0]));
    hak_line_add(out, "in blocks of ");
    hak_line_number(out, largest[0]->block_bytes);
    hak_line_add(out, " bytes");
    for (uint32_t i = 1; i < count; i++) {
        hak_line_add(out, ",");
        if (out->line.used + CLASS_COLUMNS > HAK_LINE_COLUMNS)
            hak_line_end_line(out);
        hak_line_pad(out, WORDS - 1);
        hak_line_add(out, " ");
        hak_line_size(out, class_held(largest[i]));
        hak_line_add(out, " of ");
        hak_line_number(out, largest[i]->block_bytes);
    }
    hak_line_end_line(out);
}

/* Whose the caches are, and why. */
static void add_rseq(struct line_writer *out, const struct snapshot *snapshot)
{
    const char *meaning = hak_rseq_meaning(snapshot->rseq_reason);
    hak_line_add(out, "rseq");
    hak_line_pad(out, WORDS);
    hak_line_add(out, snapshot->rseq_reason == RSEQ_PROCESSOR ? "processor:" : "thread:");
    hak_line_words(out, meaning, WORDS);
    hak_line_end_line(out);
}

/* Why no option is named. */
static const char *why_none(const struct snapshot *snapshot)
{
    uint64_t own = snapshot->own_resident_bytes;
    uint64_t kept = hak_held_part(snapshot, HELD_KEPT);
    if (own != 0 && snapshot->resident_bytes > 2 * own + WORTH_BYTES)
        return "none: most of what is resident is not hakmem's.";
    if (kept >= WORTH_BYTES && kept >= hak_held_sum(snapshot) / 4)
        return "none: kept memory is returned after option decay, while the program runs.";
    return "none: no option is known to make this smaller.";
}

static void add_advice(struct line_writer *out, const struct snapshot *snapshot)
{
    const char *advice = hak_summary_advice(snapshot);
    if (snapshot->out_of_memory != 0) {
        hak_line_add(out, "refused");
        hak_line_number_right(out, snapshot->out_of_memory, SIZE_END);
        hak_line_pad(out, WORDS);
        hak_line_add(out, "requests: memory ran out, or a limit was reached");
        hak_line_end_line(out);
    }
    add_words(out, HAK_SUMMARY_LAST, *advice != '\0' ? advice : why_none(snapshot));
}

static void add_two_digits(struct line_writer *out, uint64_t value, const char *before)
{
    hak_line_add(out, before);
    hak_line_add(out, value < 10 ? "0" : "");
    hak_line_number(out, value);
}

/* 2026-11-24 05:34:18 UTC: days since the year 0 of a calendar whose years begin with March. */
static void add_time(struct line_writer *out, uint64_t unix_ms)
{
    uint64_t seconds = unix_ms / 1000, days = seconds / 86400 + 719468;
    uint64_t era = days / 146097, day = days % 146097;
    uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    uint64_t month = (5 * day + 2) / 153;
    day -= (153 * month + 2) / 5;
    month = month < 10 ? month + 3 : month - 9;
    hak_line_number(out, era * 400 + year + (month <= 2));
    add_two_digits(out, month, "-");
    add_two_digits(out, day + 1, "-");
    add_two_digits(out, seconds / 3600 % 24, " ");
    add_two_digits(out, seconds / 60 % 60, ":");
    add_two_digits(out, seconds % 60, ":");
    hak_line_add(out, " UTC");
}

static void add_head(struct line_writer *out, const struct snapshot *snapshot)
{
    hak_line_add(out, HAK_SUMMARY_HEAD);
    if (snapshot->pid != 0) {
        hak_line_add(out, ", process ");
        hak_line_number(out, snapshot->pid);
    }
    if (snapshot->unix_ms != 0) {
        hak_line_add(out, ", ");
        add_time(out, snapshot->unix_ms);
    }
    hak_line_end_line(out);
}

void hak_summary_add(struct line_writer *out, const struct snapshot *snapshot)
{
    uint64_t held = hak_held_sum(snapshot);
    add_head(out, snapshot);
    if (snapshot->shadowed != 0)
        add_words(out, "shadowed", "mapped, but serves nothing: another malloc comes first.");
    add_resident(out, snapshot);
    add_label(out, "held", held);
    hak_line_add(out, "by hakmem; the touched part of it is resident:");
    hak_line_end_line(out);
    for (int i = 0; i < HELD_COUNT; i++)
        add_part(out, snapshot, (enum held_part)i, held);
    if (snapshot->live_bytes != 0)
        add_ratio(out, snapshot, held);
    add_largest(out, snapshot);
    add_rseq(out, snapshot);
    add_advice(out, snapshot);
}

void hak_emit_summary(const struct snapshot *snapshot, emit_writer *write, void *target)
{
    char line[HAK_LINE_BYTES];
    struct line_writer out = hak_line_on(line, write, target);
    hak_summary_add(&out, snapshot);
}
