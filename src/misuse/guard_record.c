/* SPDX-License-Identifier: MIT */
#include "misuse/guard_record.h"

#include "base/bits.h"
#include "misuse/harden.h"
#include "misuse/report.h"
#include "os/module.h"
#include "stats/counters.h"

#include <string.h>

hak_static_assert(HAK_GUARDED_FRAMES <= HAK_OS_MODULE_ADDRESSES, "all are told");

static void copy_trace(struct guarded_trace *to, const struct guarded_trace *from)
{
    for (uint32_t i = 0; i < HAK_GUARDED_FRAMES; i++)
        hak_word_publish(&to->addresses[i], hak_word_peek(&from->addresses[i]));
    hak_word_publish(&to->thread.id, hak_word_peek(&from->thread.id));
    for (size_t i = 0; i < sizeof to->thread.name / sizeof *to->thread.name; i++)
        hak_word_publish(&to->thread.name[i], hak_word_peek(&from->thread.name[i]));
}

void hak_guarded_tell(struct text *text, const char *words, const struct guarded_trace *trace)
{
    uintptr_t calls[HAK_GUARDED_FRAMES] = {0};
    if (trace->addresses[0] == 0)
        return;
    /* The address of the call, not the return address, which may be on another line. */
    for (uint32_t i = 0; i < HAK_GUARDED_FRAMES && trace->addresses[i] != 0; i++)
        calls[i] = trace->addresses[i] - 1;
    hak_text_add(text, words);
    hak_os_thread_label_add(text, &trace->thread);
    hak_text_add(text, " at ");
    hak_os_module_add(text, calls, HAK_GUARDED_FRAMES);
}

_Noreturn void hak_guard_record_report(const char *what, const void *block,
                                       const struct guard_record *record, const char *state)
{
    char words[HAK_MISUSE_STATE_BYTES];
    struct text text = {.start = words, .bytes = sizeof words - 1};
    struct guarded_view view;
    hak_guard_record_view(record, &view);
    hak_text_add(&text, state);
    hak_guarded_tell(&text, ", allocated", &view.taken);
    hak_guarded_tell(&text, ", freed", &view.given);
    words[text.used] = '\0';
    hak_stat_global_add(guarded_caught, 1);
    hak_misuse(what, block, view.bytes, words);
}

void hak_guard_record_sum(const struct guard_record *record, size_t *bytes, size_t *count)
{
    /* acquire: partner is the pool's release that stored LIVE */
    if (hak_load_acquire(&record->state) != GUARDED_LIVE)
        return;
    *bytes += hak_word_peek(&record->bytes);
    *count += 1;
}

void hak_guard_record_view(const struct guard_record *record, struct guarded_view *view)
{
    view->block = hak_word_peek(&record->block);
    view->bytes = hak_word_peek(&record->bytes);
    view->form = hak_word_peek(&record->form);
    /* acquire: partner is the pool's release that stored LIVE, or FREE */
    view->state = (enum guarded_state)hak_load_acquire(&record->state);
    copy_trace(&view->taken, &record->taken);
    copy_trace(&view->given, &record->given);
}

/* The end of the filler before a block is the block. */
static unsigned char *filler_start(const struct guard_record *record)
{
    size_t before = record->block - record->start;
    return (unsigned char *)(record->block - hak_least(before, record->filler_bytes_most));
}

static size_t filler_behind(const struct guard_record *record)
{
    return hak_least(record->end - record->block - record->bytes, record->filler_bytes_most);
}

/* The filler contains no zero, the value that most off-by-one writes store. */
static void fill(struct guard_record *record)
{
    unsigned char *before = filler_start(record);
    record->filler = (unsigned char)(hak_random() | 0x80);
    memset(before, record->filler, record->block - (uintptr_t)before);
    memset((void *)(record->block + record->bytes), record->filler, filler_behind(record));
}

void hak_guard_record_open(struct guard_record *record, const struct guard_record *block,
                           const struct guarded_trace *trace)
{
    hak_word_publish(&record->block, block->block);
    hak_word_publish(&record->bytes, block->bytes);
    hak_word_publish(&record->form, block->form);
    hak_word_publish(&record->start, block->start);
    hak_word_publish(&record->end, block->end);
    record->filler_bytes_most = block->filler_bytes_most;
    copy_trace(&record->taken, trace);
    hak_word_publish(&record->given.addresses[0], 0);
    fill(record);
}

void hak_guard_record_check(const struct guard_record *record, const void *block, const char *what)
{
    /* acquire: partner is the pool's release that stored LIVE */
    uint32_t state = hak_load_acquire(&record->state);
    if (HAK_UNLIKELY(hak_word_peek(&record->block) != (uintptr_t)block))
        hak_guard_record_report(what, block, record, "not the start of a guarded block");
    if (HAK_UNLIKELY(state != GUARDED_LIVE))
        hak_guard_record_report(what, block, record, "a guarded block, already free");
}

/* "the bytes behind this guarded block were overwritten, first at offset 17" */
static _Noreturn void report_filler(const struct guard_record *record, const unsigned char *wrong)
{
    char words[96];
    struct text text = {.start = words, .bytes = sizeof words - 1};
    bool is_before = (uintptr_t)wrong < record->block;
    hak_text_add(&text, "the bytes ");
    hak_text_add(&text, is_before ? "before" : "behind");
    hak_text_add(&text, " this guarded block were overwritten, first at offset ");
    hak_text_add(&text, is_before ? "-" : "");
    hak_text_add_number(
        &text, is_before ? record->block - (uintptr_t)wrong : (uintptr_t)wrong - record->block, 10);
    words[text.used] = '\0';
    hak_guard_record_report(is_before ? "underflow" : "overflow", (const void *)record->block,
                            record, words);
}

/* Reports the changed byte that is nearest to the block. */
static void check_fillers(const struct guard_record *record)
{
    const unsigned char *block = (const unsigned char *)record->block;
    const unsigned char *behind = block + record->bytes;
    for (size_t i = 0; i < filler_behind(record); i++)
        if (HAK_UNLIKELY(behind[i] != record->filler))
            report_filler(record, behind + i);
    size_t before = record->block - (uintptr_t)filler_start(record);
    for (size_t i = 1; i <= before; i++)
        if (HAK_UNLIKELY(block[-(ptrdiff_t)i] != record->filler))
            report_filler(record, block - i);
}

void hak_guard_record_seize(struct guard_record *record, const void *block,
                            const struct guarded_trace *trace)
{
    bool is_start = hak_word_peek(&record->block) == (uintptr_t)block;
    hak_guard_record_check(record, block, is_start ? "double free" : "invalid free");
    uint32_t state = GUARDED_LIVE;
    /* acquire: partner is the pool's release that stored LIVE */
    if (HAK_UNLIKELY(!hak_cas_acquire(&record->state, &state, GUARDED_BUSY)))
        hak_guard_record_report("double free", block, record,
                                "a guarded block, freed at the same time");
    check_fillers(record);
    copy_trace(&record->given, trace);
}
