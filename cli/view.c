/* SPDX-License-Identifier: MIT */
#include "view.h"

#include "amount.h"
#include "os/rseq.h"
#include "pane.h"
#include "stats/summary.h"
#include "verdict.h"
#include "view_learned.h"
#include "view_sites.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WIDE_COLUMNS 132
/* A low terminal shows so many lines of sizes, and fewer of what comes before. */
#define SIZES_LEAST 5
/* Call sites that are shown where all is shown once. */
#define SITES_ONCE 20

static void add_part(struct pane *pane, const char *name, const char *colour, uint64_t part,
                     uint64_t whole)
{
    const struct view *view = pane->view;
    double percent = whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
    struct pane_bar bar = pane_bar(view, part, whole, pane->columns - 42);
    pane_add(pane, "  %-24s %8s %5.1f%% %s%s", name, bytes_of(part).text, percent,
             pane_style(view, colour), bar.text);
}

static void add_memory(struct pane *pane, const struct target *now)
{
    const struct snapshot *of = &now->page.snapshot;
    uint64_t whole = of->window_committed_bytes;
    char title[64];
    snprintf(title, sizeof title, "Where the heap's %s of addresses are", bytes_of(whole).text);
    pane_add_title(pane, title);
    add_part(pane, "live, up to 128K", GREEN, of->small_live_bytes, whole);
    add_part(pane, "live, larger", GREEN, of->large_live_bytes, whole);
    for (int i = HELD_FREE; i <= HELD_KEPT; i++)
        add_part(pane, hak_held_word((enum held_part)i), YELLOW,
                 hak_held_part(of, (enum held_part)i), whole);
    add_part(pane, "returned", GREY, of->slab_clean_bytes + of->span_clean_bytes, whole);
    if (of->span_lost_bytes + of->hole_bytes != 0)
        add_part(pane, "mapped by others, lost", GREY, of->span_lost_bytes + of->hole_bytes, whole);
    bool is_processor = of->rseq_reason == RSEQ_PROCESSOR;
    pane_add(pane, "  rseq %s%s", is_processor ? "processor" : "thread: ",
             is_processor ? "" : hak_rseq_meaning(of->rseq_reason));
    if (*hak_summary_advice(of) != '\0')
        pane_add(pane, "  advice: %s", hak_summary_advice(of));
}

struct rate {
    const char *name;
    uint64_t now, before;
    bool is_bytes;
};

#define RATE_BYTES 128

static void write_rate(char *to, const struct rate *rate, double seconds)
{
    double change = rate->now >= rate->before ? (double)(rate->now - rate->before) : 0;
    struct amount total = rate->is_bytes ? bytes_of(rate->now) : count_of((double)rate->now);
    struct amount each = {"-"};
    if (seconds > 0)
        each = rate->is_bytes ? amount_of(change / seconds, 1024) : count_of(change / seconds);
    snprintf(to, RATE_BYTES, "  %-21s%7s %8s", rate->name, each.text, total.text);
}

static uint64_t calls(const struct snapshot *of)
{
    return of->map_calls + of->protect_calls + of->advise_calls + of->move_calls;
}

static uint64_t new_slabs(const struct snapshot *of)
{
    return of->sums[HAK_STAT_recycled_slabs] + of->sums[HAK_STAT_purged_slabs] +
           of->sums[HAK_STAT_fresh_slabs];
}

static uint64_t waits(const struct snapshot *of)
{
    uint64_t sum = 0;
    for (int i = 0; i < HAK_LOCK_COUNT; i++)
        sum += of->waits[i];
    return sum;
}

static void add_rates(struct pane *pane, const struct target *now, const struct target *before)
{
    const struct snapshot *of = &now->page.snapshot;
    const struct snapshot *was = before == NULL ? of : &before->page.snapshot;
    double seconds =
        before == NULL ? 0 : (double)(now->page.clock_ms - before->page.clock_ms) / 1000;
    const struct rate rates[] = {
        {"bins filled", of->sums[HAK_STAT_refills], was->sums[HAK_STAT_refills], false},
        {"bins flushed", of->sums[HAK_STAT_flushes], was->sums[HAK_STAT_flushes], false},
        {"slabs made", new_slabs(of), new_slabs(was), false},
        {"slabs returned", of->sums[HAK_STAT_retired_slabs], was->sums[HAK_STAT_retired_slabs],
         false},
        {"large blocks taken", of->sums[HAK_STAT_spans_taken], was->sums[HAK_STAT_spans_taken],
         false},
        {"slabs from other heaps", of->sums[HAK_STAT_stolen_slabs],
         was->sums[HAK_STAT_stolen_slabs], false},
        {"freed into busy heaps", of->sums[HAK_STAT_remote_blocks],
         was->sums[HAK_STAT_remote_blocks], false},
        {"returned to kernel", of->purged_bytes, was->purged_bytes, true},
        {"memory system calls", calls(of), calls(was), false},
        {"lock waits", waits(of), waits(was), false},
        {"page faults", now->faults, before == NULL ? now->faults : before->faults, false},
    };
    const size_t count = sizeof rates / sizeof *rates;
    char title[160], first[RATE_BYTES], second[RATE_BYTES];
    snprintf(title, sizeof title, "%-22s%8s %8s%-22s%8s %8s", "Slow paths", "a second", "so far",
             "", "a second", "so far");
    pane_add_title(pane, title);
    for (size_t i = 0; i < count / 2; i++) {
        write_rate(first, &rates[i], seconds);
        write_rate(second, &rates[i + count / 2], seconds);
        pane_add(pane, "%s%s", first, second);
    }
}

static void add_event(struct pane *pane, struct event event, uint64_t clock_ms)
{
    char number[32];
    enum event_kind kind = hak_event_kind(event);
    const char *unit = hak_event_unit(kind);
    if (strcmp(unit, "bytes") == 0)
        snprintf(number, sizeof number, "%s", bytes_of(hak_event_number(event)).text);
    else
        snprintf(number, sizeof number, "%s %" PRIu64, unit, hak_event_number(event));
    double age = clock_ms > event.when_ms ? (double)(clock_ms - event.when_ms) / 1000 : 0;
    pane_add(pane, "  %8.1fs ago  %-18s %10s", age, hak_event_name(kind), number);
}

static void add_decisions(struct pane *pane, const struct target *now, int most)
{
    const struct event *events = now->page.events;
    pane_add_title(pane, "Last decisions");
    for (int i = 0; i < most && i < HAK_EVENTS_KEPT; i++) {
        enum event_kind kind = hak_event_kind(events[i]);
        if (kind != EVENT_NONE && kind < EVENT_COUNT)
            add_event(pane, events[i], now->page.clock_ms);
    }
}

static void add_policy(struct pane *pane, const struct target *now)
{
    const struct snapshot *of = &now->page.snapshot;
    char decay[32] = "never";
    if (of->policy_decay_ms < UINT64_MAX / 4)
        snprintf(decay, sizeof decay, "%" PRIu64 "ms", of->policy_decay_ms);
    pane_add(pane, "  decay %s, retain %s, thread cache %s, all %s", decay,
             bytes_of(of->policy_retain_bytes).text, bytes_of(of->policy_thread_cache_bytes).text,
             bytes_of(of->policy_process_cache_bytes).text);
}

static uint64_t held_bytes(const struct snapshot_class *of)
{
    return (of->live_blocks + of->cached_blocks + of->free_blocks) * of->block_bytes;
}

static uint64_t idle_bytes(const struct snapshot_class *of)
{
    return (of->cached_blocks + of->free_blocks) * of->block_bytes;
}

static enum view_order order_in_force;

static uint64_t key_of(const struct snapshot_class *of)
{
    switch (order_in_force) {
    case ORDER_FREE:
        return idle_bytes(of);
    case ORDER_LIVE:
        return of->live_blocks * of->block_bytes;
    case ORDER_SIZE:
        return UINT64_MAX - of->block_bytes;
    default:
        return held_bytes(of);
    }
}

static int compare(const void *left, const void *right)
{
    uint64_t left_key = key_of(left), right_key = key_of(right);
    return (left_key < right_key) - (left_key > right_key);
}

/* Scrolling ends with the last row. */
static uint32_t first_shown(const struct view *view, uint32_t count, int most)
{
    int last = most > 0 && (int)count > most ? (int)count - most : 0;
    return (uint32_t)(view->first < last ? view->first : last);
}

static void add_sizes(struct pane *pane, const struct target *now, int most)
{
    static const char *const orders[] = {"held", "free", "live", "size"};
    const struct snapshot *of = &now->page.snapshot;
    struct snapshot_class classes[HAK_SNAPSHOT_CLASSES];
    uint32_t count = 0;
    uint64_t largest = 1;
    char title[96];
    for (uint32_t i = 0; i < of->class_count; i++) {
        if (of->classes[i].slabs == 0 ||
            strstr(bytes_of(of->classes[i].block_bytes).text, pane->view->filter) == NULL)
            continue;
        classes[count++] = of->classes[i];
        if (held_bytes(&of->classes[i]) > largest)
            largest = held_bytes(&of->classes[i]);
    }
    order_in_force = pane->view->order;
    qsort(classes, count, sizeof *classes, compare);
    snprintf(title, sizeof title, "%8s %7s %8s %8s %8s %8s  by %s", "Size", "slabs", "live",
             "cached", "free", "held", orders[pane->view->order]);
    pane_add_title(pane, title);
    uint32_t first = first_shown(pane->view, count, most);
    for (uint32_t i = first; i < count && (int)(i - first) < most; i++) {
        const struct snapshot_class *row = &classes[i];
        struct pane_bar bar = pane_bar(pane->view, held_bytes(row), largest, pane->columns - 56);
        pane_add(pane, "%8s %7s %8s %8s %8s %8s  %s%s", bytes_of(row->block_bytes).text,
                 count_of((double)row->slabs).text, count_of((double)row->live_blocks).text,
                 count_of((double)row->cached_blocks).text, count_of((double)row->free_blocks).text,
                 bytes_of(held_bytes(row)).text, pane_style(pane->view, BLUE), bar.text);
    }
    int beyond = (int)(count - first) - most;
    if (beyond > 0 && most > 0)
        pane->count--, pane_add(pane, "%8s %d more sizes", "...", beyond + 1);
    if (count == 0)
        pane_add(pane, "  no block of up to 128K%s",
                 *pane->view->filter == '\0' ? " yet" : " of such a size");
}

static void add_verdict(struct pane *pane, const struct target *now)
{
    char verdict[512];
    verdict_write(verdict, sizeof verdict, now);
    pane_add_words(pane, pane_style(pane->view, GREEN), verdict);
}

static void add_resident(struct pane *pane, const struct target *now)
{
    const struct view *view = pane->view;
    char line[256];
    snprintf(line, sizeof line, "resident %s%s%s = heap %s + hakmem's metadata %s + all else %s",
             pane_style(view, "\033[1m"),
             bytes_of(now->heap_bytes + now->record_bytes + now->other_bytes).text,
             pane_style(view, "\033[0m"), bytes_of(now->heap_bytes).text,
             bytes_of(now->record_bytes).text, bytes_of(now->other_bytes).text);
    pane_add_words(pane, "", line);
}

static void add_histories(struct pane *pane)
{
    const struct view *view = pane->view;
    char resident[HISTORY_TEXT_BYTES], live[HISTORY_TEXT_BYTES];
    int columns = (pane->columns - 36) / 2;
    if (view->interval_ms == 0 || view->resident.count == 0)
        return;
    history_draw(&view->resident, columns, view->is_ascii, resident);
    history_draw(&view->live, columns, view->is_ascii, live);
    pane_add(pane, "resident %s%s%s %s   live %s%s%s %s", pane_style(view, BLUE), resident,
             pane_style(view, "\033[0m"),
             bytes_of(view->resident.values[view->resident.count - 1]).text, pane_style(view, BLUE),
             live, pane_style(view, "\033[0m"),
             bytes_of(view->live.values[view->live.count - 1]).text);
}

static void add_head(struct pane *pane, const struct target *now)
{
    const struct view *view = pane->view;
    const struct snapshot *of = &now->page.snapshot;
    uint64_t seconds = now->up_ms / 1000;
    struct timespec clock;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &clock);
    uint64_t clock_ms = (uint64_t)clock.tv_sec * 1000 + (uint64_t)clock.tv_nsec / 1000000;
    uint64_t age_ms = clock_ms > now->page.clock_ms ? clock_ms - now->page.clock_ms : 0;
    char stale[64] = "";
    if (view->is_paused)
        snprintf(stale, sizeof stale, "  %sPAUSED%s", pane_style(view, "\033[1;33m"),
                 pane_style(view, "\033[0m"));
    else if (age_ms > 3000)
        snprintf(stale, sizeof stale, "  %sas of %" PRIu64 "s ago%s",
                 pane_style(view, "\033[1;31m"), age_ms / 1000, pane_style(view, "\033[0m"));
    pane_add(pane,
             "%s%s%s, process %d, up %" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ", %" PRIu64
             " cache%s, %s live%s",
             pane_style(view, "\033[1m"), now->name, pane_style(view, "\033[0m"), now->pid,
             seconds / 3600, seconds / 60 % 60, seconds % 60, of->active_caches,
             of->active_caches == 1 ? "" : "s", bytes_of(of->live_bytes).text, stale);
    if (now->has_ended) {
        add_verdict(pane, now);
        return;
    }
    if (now->has_smaps)
        add_resident(pane, now);
    else
        pane_add(pane, "resident %s%s%s", pane_style(view, "\033[1m"),
                 bytes_of(now->other_bytes).text, pane_style(view, "\033[0m"));
    add_verdict(pane, now);
    add_histories(pane);
}

static void add_foot(struct pane *pane)
{
    static const char *const help[] = {
        "q quit   c call sites, sizes   s sort order      + - slower, faster",
        "up down, k j, page up, page down: scroll   / filter rows   p pause",
        "kept: free and still resident; returned: address space only",
        "held: live, cached and free blocks of a size, in the slabs that it has",
        "the heap's parts add up to its address space; resident is the kernel's count",
    };
    const struct view *view = pane->view;
    if (view->interval_ms == 0)
        return;
    if (view->shows_help) {
        pane_add(pane, "%s", "");
        for (size_t i = 0; i < sizeof help / sizeof *help; i++)
            pane_add_words(pane, "  ", help[i]);
        return;
    }
    if (view->is_typing || *view->filter != '\0')
        pane_add(pane, "%sonly: %s%s%s", pane_style(view, GREY), view->filter,
                 view->is_typing ? "_" : "", pane_style(view, "\033[0m"));
    else
        pane_add(pane,
                 "%severy %.2gs   q quit  c %s  s sort  jk scroll  / filter  p pause  h help%s",
                 pane_style(view, GREY), view->interval_ms / 1000.0,
                 view->shows_sites ? "sizes" : "call sites", pane_style(view, "\033[0m"));
}

/* Two panes of `rows` lines beside each other. */
static void fill_wide(struct pane *left, struct pane *right, const struct target *now,
                      const struct target *before, int rows)
{
    add_memory(left, now);
    add_rates(left, now, before);
    view_add_learned(left, now);
    add_decisions(left, now, rows - left->count - 2);
    add_policy(left, now);
    if (!left->view->shows_sites)
        add_sizes(right, now, rows - 1);
    else
        view_add_sites(right, now->pid, rows - 1);
    if (left->view->rows == 0)
        view_add_sites(right, now->pid, SITES_ONCE);
    pane_keep(left, rows);
    pane_keep(right, rows);
}

/* All there is, one below the other. */
static void fill_whole(struct pane *left, struct pane *right, const struct target *now,
                       const struct target *before)
{
    add_memory(left, now);
    add_rates(left, now, before);
    view_add_learned(left, now);
    add_decisions(right, now, 12);
    add_policy(right, now);
    add_sizes(right, now, PANE_LINES);
    view_add_sites(right, now->pid, SITES_ONCE);
}

/* The part that fits in `rows` lines. */
static void fill_low(struct pane *left, struct pane *right, const struct target *now,
                     const struct target *before, int rows)
{
    add_memory(left, now);
    add_rates(left, now, before);
    int room = rows - left->count > SIZES_LEAST ? rows - left->count : SIZES_LEAST;
    room = room > rows ? rows : room;
    add_sizes(right, now, room > 1 ? room - 1 : 0);
    pane_keep(right, room);
    pane_keep(left, rows - room);
}

void view_print(const struct view *view, const struct target *now, const struct target *before,
                FILE *to)
{
    static struct pane head, left, right, foot;
    bool is_wide = view->columns >= WIDE_COLUMNS;
    int columns = view->columns > 500 ? 500 : view->columns;
    int half = is_wide ? (columns - PANE_GAP) / 2 : columns;
    head = (struct pane){.view = view, .columns = columns};
    foot = (struct pane){.view = view, .columns = columns};
    left = (struct pane){.view = view, .columns = half};
    right = (struct pane){.view = view, .columns = half};
    add_head(&head, now);
    add_foot(&foot);
    if (view->rows != 0) {
        int room = view->rows - foot.count;
        pane_keep(&head, room > 1 ? room : 1);
        pane_keep(&foot, view->rows - head.count);
    }
    int rows = view->rows == 0 ? PANE_LINES : view->rows - head.count - foot.count;
    if (is_wide)
        fill_wide(&left, &right, now, before, rows);
    else if (view->rows == 0)
        fill_whole(&left, &right, now, before);
    else if (view->shows_sites)
        view_add_sites(&right, now->pid, rows - 1);
    else
        fill_low(&left, &right, now, before, rows);
    pane_print(&head, to);
    if (is_wide) {
        pane_print_beside(&left, &right, to);
    } else {
        pane_print(&left, to);
        pane_print(&right, to);
    }
    pane_print(&foot, to);
}

void view_print_list(const struct view *view, const struct process_row *rows, int count, int marked,
                     FILE *to)
{
    static struct pane pane;
    pane = (struct pane){.view = view, .columns = view->columns};
    int room = view->rows - 3;
    int first = marked < room ? 0 : marked - room + 1;
    char title[96];
    snprintf(title, sizeof title, "  %7s %-15s %8s %8s  %s", "PID", "NAME", "RESIDENT", "LIVE",
             "ALLOCATOR");
    pane_add_title(&pane, title);
    for (int i = first; i < count && i < first + room; i++)
        pane_add(&pane, "%s%s %7d %-15s %8s %8s  %s",
                 i == marked ? pane_style(view, "\033[7m") : "", i == marked ? ">" : " ",
                 rows[i].pid, rows[i].name, bytes_of(rows[i].resident_bytes).text,
                 rows[i].has_live ? bytes_of(rows[i].live_bytes).text : "-", rows[i].allocator);
    if (count == 0)
        pane_add(&pane, "  no process %s", *view->filter == '\0' ? "maps hakmem" : "of that name");
    if (view->is_typing || *view->filter != '\0')
        pane_add(&pane, "%sonly: %s%s", pane_style(view, GREY), view->filter,
                 view->is_typing ? "_" : "");
    else
        pane_add(&pane, "%senter: show   jk: move   /: only some names   q: quit",
                 pane_style(view, GREY));
    pane_print(&pane, to);
}
