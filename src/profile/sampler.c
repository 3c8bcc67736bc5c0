/* SPDX-License-Identifier: MIT */
#include "profile/sampler.h"

#include "base/bits.h"
#include "heap/private_heap.h"
#include "os/unwind.h"
#include "process/slow_path.h"
#include "profile/show.h"
#include "profile/site_rules.h"
#include "profile/size_log.h"

/* Enough to identify the freeing code. */
#define FREEING_FRAMES 8u
/* It is looked for at the first ends of a site's samples, then at one in so many. */
#define FREEING_FIRST 8u
#define FREEING_ONE_IN 8u

HAK_AT_HAND _Atomic bool hak_sampler_has_begun;

HAK_AT_HAND static _Atomic(void *) sample_heap; /* its handle */

/* The heap is made with the first sample. */
static void *heap_of_samples(void)
{
    void *none = NULL;
    /* acquire: partner is the release below; what the record was filled with is seen */
    void *handle = hak_load_acquire(&sample_heap);
    if (HAK_LIKELY(handle != NULL))
        return handle;
    void *made = hak_private_create(PRIVATE_INNER);
    if (made == NULL || atomic_compare_exchange_strong_explicit(
                            &sample_heap, &none, made, memory_order_release, memory_order_acquire))
        return made;
    struct private_heap *extra = hak_private_enter(made, "invalid heap");
    if (extra != NULL)
        hak_private_destroy(extra);
    return none;
}

static void *take_block(uint32_t class_index, bool wants_zero)
{
    void *handle = heap_of_samples();
    struct private_heap *heap = handle == NULL ? NULL : hak_private_enter(handle, "invalid heap");
    /* Samples of both partitions share slabs: they are few, and some live long. */
    return heap == NULL ? NULL
                        : hak_private_take(heap, hak_class_ordinary(class_index), wants_zero);
}

static void note_for_profile(struct live_sample *sample, const uintptr_t *frames, uint32_t count,
                             bool may_grow)
{
    sample->site = hak_sites_find(frames, count, may_grow);
    if (may_grow) {
        hak_show_sample(sample->sum.bytes);
        hak_show_modules((uint32_t)sample->site);
    }
    hak_sites_note_taken((uint32_t)sample->site, sample->sum, sample->birth_ns / 1000000);
}

/* Finds the site of the sample's request and publishes it. */
static void find_site(struct live_sample *sample, const struct sampled_request *request,
                      uint32_t class_index, bool may_grow)
{
    uintptr_t frames[HAK_BOARD_FRAMES], stacks[HAK_BOARD_FRAMES];
    bool is_profiled = hak_draw_is_for(DRAW_FOR_PROFILE);
    uint32_t count = hak_os_unwind_stacks(request->caller, frames, stacks,
                                          is_profiled ? HAK_BOARD_FRAMES : HAK_SITE_FRAMES);
    if (is_profiled)
        note_for_profile(sample, frames, count, may_grow);
    if (may_grow && count != 0 && hak_draw_is_for(DRAW_FOR_RULES))
        sample->ticket = hak_rules_begin(frames, stacks, count, class_index, request->weight);
}

/* Counts the sample; `block` NULL: its end will not be seen. */
static void note(const struct sampled_request *request, const void *block, uint32_t class_index,
                 bool may_grow)
{
    uint64_t now_ns = hak_os_clock_ns();
    struct live_sample sample = {
        .sum = {.count = request->weight, .bytes = request->weight * hak_most(request->bytes, 1)},
        .birth_ns = now_ns,
        .site = HAK_LIVE_NO_SITE,
        .heap = (uintptr_t)request->heap,
        .logged_bytes = hak_most(request->bytes, 1),
    };
    /* Samples that are not tracked to their end are no evidence. */
    find_site(&sample, request, block == NULL ? HAK_CLASS_NONE : class_index, may_grow);
    hak_store_relaxed(&hak_sampler_has_begun, true);
    hak_draw_pace(now_ns);
    if (block != NULL && hak_live_add(block, &sample, may_grow)) {
        hak_size_log_begin(&sample);
        return;
    }
    hak_rules_end(sample.ticket, sample.sum.count);
    if (sample.site == HAK_LIVE_NO_SITE)
        return;
    hak_sites_note_dropped(untracked);
    hak_sites_note_ended((uint32_t)sample.site, sample.sum, 0);
}

/* Whether locks may be taken: code that a handler interrupted may hold them. A copy of the process
 * is settled first. */
static bool may_grow(void)
{
    if (!hak_thread_is_outside()) {
        hak_sites_note_dropped(in_handlers);
        return false;
    }
    hak_copy_look();
    return true;
}

HAK_NOINLINE void *hak_sampler_take(const struct sampled_request *request, uint32_t class_index,
                                    bool is_zero)
{
    bool is_free = may_grow();
    void *block = is_free ? take_block(class_index, is_zero) : NULL;
    note(request, block, hak_class_ordinary(class_index), is_free);
    return block;
}

HAK_NOINLINE void hak_sampler_note(const struct sampled_request *request, const void *block)
{
    note(request, block, HAK_CLASS_NONE, may_grow());
}

/* Its chance to be a sample was that of its first size: the sum over samples, weighted with the
 * inverse of that chance, has the true sum of the current sizes as its mean. */
void hak_sampler_resize(const void *block, size_t bytes)
{
    struct live_sample sample;
    struct live_place place;
    if (!hak_live_hold(block, &sample, &place))
        return;
    uint64_t before_bytes = sample.sum.bytes;
    bytes = hak_most(bytes, 1);
    sample.sum.bytes = sample.sum.count * bytes;
    if (sample.site != HAK_LIVE_NO_SITE)
        hak_sites_note_resized((uint32_t)sample.site, before_bytes, sample.sum.bytes);
    hak_size_log_resize(&sample, bytes);
    hak_live_let_go(block, &sample, &place);
}

bool hak_sampler_lift(const void *block, struct live_sample *sample)
{
    return hak_sampler_watches() && hak_live_remove(block, sample);
}

void hak_sampler_put_back(const void *block, const struct live_sample *sample)
{
    if (!hak_live_add(block, sample, false))
        hak_sampler_end_lifted(sample);
}

void hak_sampler_end_lifted(const struct live_sample *sample)
{
    uint64_t now_ns = hak_os_clock_ns();
    hak_rules_end(sample->ticket, sample->sum.count);
    hak_size_log_end(sample, now_ns);
    if (sample->site != HAK_LIVE_NO_SITE)
        hak_sites_note_ended((uint32_t)sample->site, sample->sum,
                             hak_excess(now_ns, sample->birth_ns));
}

/* Whether the end of a sample of this site is one at which the freeing code is looked for. */
static bool wants_freeing(uint64_t site)
{
    const struct board_site *record =
        site == HAK_LIVE_NO_SITE || site == 0 ? NULL : hak_sites_at((uint32_t)site);
    uint64_t ended = record == NULL ? 1 : hak_load_relaxed(&record->ended_samples);
    return record != NULL && (ended < FREEING_FIRST || ended % FREEING_ONE_IN == 0);
}

/* The site of the code that frees; 0: it is not looked for, or finds no room. */
static uint32_t freeing_site(struct os_caller caller)
{
    uintptr_t frames[FREEING_FRAMES];
    if (!hak_draw_is_for(DRAW_FOR_PROFILE) || !hak_thread_is_outside())
        return 0;
    hak_copy_look();
    uint32_t count = hak_os_unwind(caller, frames, FREEING_FRAMES);
    uint32_t site = hak_sites_find_freeing(frames, count);
    if (site != 0)
        hak_show_modules(site);
    return site;
}

HAK_NOINLINE void hak_sampler_end(const void *block)
{
    struct live_sample sample;
    if (!hak_live_remove(block, &sample))
        return;
    uint32_t freeing = wants_freeing(sample.site) ? freeing_site(HAK_OS_CALLER()) : 0;
    if (freeing != 0)
        hak_sites_note_freed_by((uint32_t)sample.site, freeing);
    hak_sampler_end_lifted(&sample);
}

void hak_sampler_end_heap(const void *heap)
{
    hak_live_remove_heap((uintptr_t)heap, hak_sampler_end_lifted);
}
