/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "conf/conf.h"
#include "heap/address_info.h"
#include "heap/cache.h"
#include "heap/census.h"
#include "misuse/guarded.h"
#include "misuse/report.h"
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

struct line {
    char characters[256];
    struct text text;
};

static void begin(struct line *line, const char *words)
{
    line->text = (struct text){.start = line->characters, .bytes = sizeof line->characters - 1};
    hak_text_add(&line->text, "hakmem: ");
    hak_text_add(&line->text, words);
}

static void add(struct line *line, const char *words)
{
    hak_text_add(&line->text, words);
}

static void add_number(struct line *line, uint64_t number, uint32_t base)
{
    hak_text_add_number(&line->text, number, base);
}

static void end(struct line *line)
{
    line->characters[line->text.used++] = '\n';
    hak_os_stderr_write(line->characters, line->text.used);
}

static void tell_distance(struct line *line, uintptr_t address, uintptr_t block)
{
    add_number(line, address >= block ? address - block : block - address, 10);
    add(line, address >= block ? " from its start" : " before its start");
}

static void tell_address(struct line *line, const struct crash *crash)
{
    struct address_info where = hak_address_info(crash->fault.address);
    add(line, " at address 0x");
    add_number(line, (uintptr_t)crash->fault.address, 16);
    add(line, ", ");
    add(line, hak_address_meaning(where.kind));
    if (where.block != 0) {
        add(line, " of ");
        add_number(line, where.block_bytes, 10);
        add(line, " bytes, ");
        tell_distance(line, (uintptr_t)crash->fault.address, where.block);
    }
    if (crash->is_refused)
        add(line, "; the page is guarded against this");
}

/* Which thread, and where it was. */
static void tell_place(const struct crash *crash)
{
    static char words[HAK_MISUSE_STATE_BYTES]; /* one report is all there is */
    struct text text = {.start = words, .bytes = sizeof words - 1};
    struct thread_label self = hak_os_thread_label();
    hak_text_add(&text, "hakmem: crash:");
    hak_os_thread_label_add(&text, &self);
    hak_text_add(&text, " at ");
    hak_os_module_add(&text, crash->fault.places, HAK_OS_FAULT_FRAMES);
    words[text.used++] = '\n';
    hak_os_stderr_write(words, text.used);
}

static void tell_counter(const char *name, uint64_t value)
{
    struct line line;
    if (value == 0)
        return;
    begin(&line, "crash: ");
    add(&line, name);
    add(&line, ": ");
    add_number(&line, value, 10);
    end(&line);
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
        struct line line;
        if (kind == EVENT_NONE || kind >= EVENT_COUNT)
            continue;
        begin(&line, "crash: ");
        add_number(&line, now > events[i].when_ms ? now - events[i].when_ms : 0, 10);
        add(&line, " ms before: ");
        add(&line, hak_event_name(kind));
        add(&line, ", ");
        add_number(&line, hak_event_number(events[i]), 10);
        add(&line, " ");
        add(&line, hak_event_unit(kind));
        end(&line);
    }
}

static void report(const struct crash *crash)
{
    struct line line;
    begin(&line, "crash: ");
    add(&line, crash->name);
    if (crash->is_fault)
        tell_address(&line, crash);
    else
        add(&line, ", sent");
    end(&line);
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
