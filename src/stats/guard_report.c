/* SPDX-License-Identifier: MIT */
#include "stats/guard_report.h"

#include "base/text.h"
#include "conf/conf.h"
#include "misuse/guarded.h"
#include "misuse/harden.h"
#include "misuse/report.h"
#include "os/fault_watch.h"
#include "os/flag.h"
#include "os/module.h"
#include "os/os.h"
#include "os/signal_names.h"
#include "os/stderr.h"
#include "process/start.h"
#include "stats/counters.h"

#define TOLD_MOST 8u

/* One report at a time has the room for its lines. */
static char line[HAK_MISUSE_STATE_BYTES];
static _Atomic uint32_t is_writing;
static _Atomic uint32_t told_count;
static _Atomic uintptr_t last_place, last_address;

static struct text begin(const char *words)
{
    struct text text = {.start = line, .bytes = sizeof line};
    hak_text_add(&text, "hakmem: ");
    hak_text_add(&text, words);
    return text;
}

static const char *name_of(enum access access)
{
    switch (access) {
    case ACCESS_READ:
        return "read";
    case ACCESS_WRITE:
        return "written";
    case ACCESS_EXECUTE:
        return "executed";
    default:
        return "accessed";
    }
}

static const char *what_of(uintptr_t address, const struct guarded_view *view)
{
    if (view->block == 0)
        return "invalid access";
    if (view->state != GUARDED_LIVE)
        return "use after free";
    return address < view->block ? "underflow" : "overflow";
}

/* "written 3 bytes behind its end by thread 12 (worker)" */
static void add_access(struct text *text, const struct os_fault *fault,
                       const struct guarded_view *view)
{
    uintptr_t address = (uintptr_t)fault->address, end_of = view->block + view->bytes;
    struct thread_label self = hak_os_thread_label();
    hak_text_add(text, name_of(fault->access));
    hak_text_add(text, " ");
    if (address < view->block) {
        hak_text_add_number(text, view->block - address, 10);
        hak_text_add(text, " bytes before its start");
    } else if (address < end_of) {
        hak_text_add_number(text, address - view->block, 10);
        hak_text_add(text, " bytes from its start");
    } else {
        hak_text_add_number(text, address - end_of, 10);
        hak_text_add(text, " bytes behind its end");
    }
    hak_os_thread_label_add(text, &self);
}

static void tell_hit(const struct os_fault *fault, const struct guarded_view *view)
{
    struct text text = begin(what_of((uintptr_t)fault->address, view));
    hak_text_add(&text, ": pointer 0x");
    hak_text_add_number(&text, (uintptr_t)fault->address, 16);
    if (view->block == 0) {
        hak_text_add(&text, ", no block, where guarded blocks are kept");
    } else {
        hak_text_add(&text, ", block of ");
        hak_text_add_number(&text, view->bytes, 10);
        hak_text_add(&text, " bytes, ");
        add_access(&text, fault, view);
    }
    hak_os_stderr_line(&text);
    text = begin("at ");
    hak_os_module_add(&text, fault->places, HAK_OS_FAULT_FRAMES);
    hak_os_stderr_line(&text);
}

static void tell_trace(const char *words, const struct guarded_trace *trace)
{
    struct text text = begin("");
    size_t used = text.used;
    hak_guarded_tell(&text, words, trace);
    if (text.used != used)
        hak_os_stderr_line(&text);
}

static void tell(const struct os_fault *fault)
{
    struct guarded_view view;
    hak_guarded_look(fault->address, &view);
    hak_stat_global_add(guarded_caught, 1);
    tell_hit(fault, &view);
    if (view.block == 0)
        return;
    tell_trace("allocated", &view.taken);
    if (view.state != GUARDED_LIVE)
        tell_trace("freed", &view.given);
}

/* The same instruction at the same address: a handler of hakmem's has told it before another one,
 * or the program lets it run again. */
static bool is_new(const struct os_fault *fault)
{
    bool is_same = hak_load_relaxed(&last_place) == fault->places[0] &&
                   hak_load_relaxed(&last_address) == (uintptr_t)fault->address;
    hak_store_relaxed(&last_place, fault->places[0]);
    hak_store_relaxed(&last_address, (uintptr_t)fault->address);
    return !is_same && hak_fetch_add_relaxed(&told_count, 1) < TOLD_MOST;
}

void hak_guard_report(const struct os_fault *fault)
{
    if (!hak_flag_await(&is_writing))
        return; /* a fork has left it so, or the report itself has faulted */
    if (is_new(fault))
        tell(fault);
    hak_flag_give(&is_writing);
}

static bool is_watched(const void *address)
{
    return hak_guarded_holds(address);
}

/* What the slots hold must not change: the instruction is to fault again. */
static void tell_first(const struct os_fault *fault, bool is_fatal)
{
    if (is_fatal)
        hak_guarded_freeze();
    hak_guard_report(fault);
}

__attribute__((constructor)) static void start_guard_reports(void)
{
    const struct os_fault_watch watch = {is_watched, tell_first, hak_harden_has(HARDEN_FENCED)};
    if (hak_process_start() && (hak_conf_number(guard_rate) != 0 || hak_harden_has(HARDEN_FENCED)))
        hak_os_fault_watch_start(&watch, hak_os_libcs_sigaction());
}
