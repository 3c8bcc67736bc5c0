/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "conf/conf.h"
#include "heap/address_info.h"
#include "heap/cache.h"
#include "heap/census.h"
#include "misuse/guarded.h"
#include "misuse/report.h"
#include "misuse/zero_size.h"
#include "os/crash.h"
#include "os/module.h"
#include "os/os.h"
#include "os/stderr.h"
#include "process/start.h"
#include "span/large.h"
#include "stats/counters.h"
#include "stats/event_log.h"
#include "stats/guard_report.h"

/* The option crash_report. The thread may be anywhere, also inside hakmem: only data that can be
 * read without a lock is reported, and each line is written separately. */

#define DECISIONS_TOLD 16

#define LINE_BYTES 256

static struct text begin(char line[LINE_BYTES], const char *words)
{
    struct text text = {.start = line, .bytes = LINE_BYTES};
    hak_text_add(&text, "hakmem: crash: ");
    hak_text_add(&text, words);
    return text;
}

static void tell_distance(struct text *text, uintptr_t address, uintptr_t block)
{
    hak_text_add_number(text, address >= block ? address - block : block - address, 10);
    hak_text_add(text, address >= block ? " from its start" : " before its start");
}

static void tell_address(struct text *text, const struct crash *crash)
{
    struct address_info where = hak_address_info(crash->fault.address);
    hak_text_add(text, " at address 0x");
    hak_text_add_number(text, (uintptr_t)crash->fault.address, 16);
    hak_text_add(text, ", ");
    hak_text_add(text, hak_zero_size_holds(crash->fault.address)
                           ? "in a block of 0 bytes, as of malloc(0) (zero_size=ordinary allows it)"
                           : hak_address_meaning(where.kind));
    if (where.block != 0) {
        hak_text_add(text, " of ");
        hak_text_add_number(text, where.block_bytes, 10);
        hak_text_add(text, " bytes, ");
        tell_distance(text, (uintptr_t)crash->fault.address, where.block);
    }
    if (crash->is_refused)
        hak_text_add(text, "; the page is guarded against this");
}

/* Which thread, and where it was. */
static void tell_place(const struct crash *crash)
{
    static char words[HAK_MISUSE_STATE_BYTES]; /* one report is all there is */
    struct text text = {.start = words, .bytes = sizeof words};
    struct thread_label self = hak_os_thread_label();
    hak_text_add(&text, "hakmem: crash:");
    hak_os_thread_label_add(&text, &self);
    hak_text_add(&text, " at ");
    hak_os_module_add(&text, crash->fault.places, HAK_OS_FAULT_FRAMES);
    hak_os_stderr_line(&text);
}

static void tell_counter(const char *name, uint64_t value)
{
    char line[LINE_BYTES];
    if (value == 0)
        return;
    struct text text = begin(line, name);
    hak_text_add(&text, ": ");
    hak_text_add_number(&text, value, 10);
    hak_os_stderr_line(&text);
}

static void tell_counters(void)
{
    tell_counter("window_committed_bytes", hak_load_relaxed(&hak_region.committed_bytes));
    tell_counter("active_caches", hak_load_relaxed(&hak_active_caches));
#define X(name, meaning) tell_counter(#name, hak_load_relaxed(&hak_stat_globals.name));
    HAK_STAT_GLOBAL_TABLE(X)
#undef X
#define X(name, meaning) tell_counter(#name, hak_census_counter(HAK_STAT_##name));
    HAK_STAT_TABLE(X)
#undef X
}

static void tell_decisions(void)
{
    struct event events[HAK_EVENTS_KEPT];
    uint64_t now = hak_os_clock_ms();
    hak_events_copy(events);
    for (int i = 0; i < DECISIONS_TOLD; i++) {
        enum event_kind kind = hak_event_kind(events[i]);
        char line[LINE_BYTES];
        if (kind == EVENT_NONE || kind >= EVENT_COUNT)
            continue;
        struct text text = begin(line, "");
        hak_text_add_number(&text, now > events[i].when_ms ? now - events[i].when_ms : 0, 10);
        hak_text_add(&text, " ms before: ");
        hak_text_add(&text, hak_event_name(kind));
        hak_text_add(&text, ", ");
        hak_text_add_number(&text, hak_event_number(events[i]), 10);
        hak_text_add(&text, " ");
        hak_text_add(&text, hak_event_unit(kind));
        hak_os_stderr_line(&text);
    }
}

static void report(const struct crash *crash)
{
    char line[LINE_BYTES];
    struct text text = begin(line, crash->name);
    if (crash->is_fault)
        tell_address(&text, crash);
    else
        hak_text_add(&text, ", sent");
    hak_os_stderr_line(&text);
    tell_place(crash);
    if (crash->is_fault && hak_guarded_holds(crash->fault.address))
        hak_guard_report(&crash->fault);
    tell_counters();
    tell_decisions();
}

__attribute__((constructor)) static void start_crash_report(void)
{
    hak_process_start();
    if (hak_conf_number(crash_report) != CRASH_REPORT_ON)
        return;
    hak_os_stderr_keep();
    hak_os_crash_listen(report);
}
