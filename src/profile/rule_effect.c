/* SPDX-License-Identifier: MIT */
#include "profile/rule_effect.h"

#include "base/bits.h"
#include "heap/draw.h"
#include "heap/route.h"
#include "heap/supply.h"
#include "learn/holdback.h"

static struct holdback holdback;
static uint64_t classes_of_rules;
static uint32_t watched_class = HAK_LONG_CLASS_COUNT;

void hak_rule_effect_of(uint64_t classes)
{
    classes_of_rules = classes;
}

uint64_t hak_rule_effect_classes(void)
{
    return classes_of_rules;
}

/* The page that the block begins on; false: it is in no shared slab of the class any more. */
static bool find_page(struct page_of_blocks *page, const void *block, uint32_t class_index)
{
    struct slab *slab = hak_slab_at(block);
    if (slab == NULL || hak_word_peek(&slab->class_index) != class_index ||
        hak_word_peek(&slab->is_private))
        return false;
    uintptr_t start = hak_word_peek(&slab->start);
    uintptr_t page_start = (uintptr_t)block & ~(uintptr_t)(HAK_PAGE_BYTES_LEAST - 1);
    uintptr_t offset = hak_excess(page_start, start);
    uintptr_t end = page_start + HAK_PAGE_BYTES_LEAST - start;
    uint32_t block_bytes = hak_size_classes[class_index].block_bytes;
    uint32_t first = (uint32_t)(offset / block_bytes);
    uint32_t behind = (uint32_t)((end + block_bytes - 1) / block_bytes);
    behind = (uint32_t)hak_least(behind, hak_word_peek(&slab->word_count) * 64u);
    if ((uintptr_t)block < start || behind <= first)
        return false;
    *page = (struct page_of_blocks){.slab = slab,
                                    .slab_generation = hak_word_peek(&slab->generation),
                                    .first = (uint16_t)first,
                                    .count = (uint16_t)(behind - first)};
    return true;
}

/* What threads change meanwhile may be seen in its old or new state. */
static bool is_used(const struct page_of_blocks *page)
{
    struct slab *slab = page->slab;
    if (hak_word_peek(&slab->generation) != page->slab_generation)
        return false;
    uint32_t behind = (uint32_t)hak_least(page->first + page->count, hak_word_peek(&slab->bump));
    for (uint32_t i = page->first; i < behind; i++)
        if ((hak_load_relaxed(&slab->words[i / 64]) >> (i % 64) & 1) == 0)
            return true;
    return false;
}

/* One of the classes with rules; HAK_LONG_CLASS_COUNT: there is none. */
static uint32_t draw_class(void)
{
    uint64_t classes = classes_of_rules;
    uint32_t count = hak_bit_count(classes);
    if (count == 0)
        return HAK_LONG_CLASS_COUNT;
    return hak_bit_of_rank(classes, (uint32_t)(hak_draw_random() % count));
}

static void begin_window(void)
{
    enum route_hold hold = HOLD_NONE;
    if (holdback.draw < HAK_HOLDBACK_SHARE)
        hold = HOLD_ALL;
    else if (holdback.draw < HAK_HOLDBACK_ONE / 2)
        hold = HOLD_HALF;
    hak_route_hold(hold);
    watched_class = hak_holdback_is_compared(&holdback) ? draw_class() : HAK_LONG_CLASS_COUNT;
    hak_route_watch(watched_class);
}

static void observe(uint64_t volume, uint64_t generation_bytes)
{
    void *blocks[HAK_ROUTE_NOTED_MOST];
    struct page_of_blocks page;
    if (watched_class != HAK_LONG_CLASS_COUNT)
        for (uint32_t i = 0, count = hak_route_take_noted(blocks); i < count; i++)
            if (find_page(&page, blocks[i], watched_class))
                hak_holdback_add(&holdback, &page, watched_class, volume);
    if (hak_holdback_turn(&holdback, volume, generation_bytes,
                          (uint32_t)(hak_draw_random() % HAK_HOLDBACK_ONE)))
        begin_window();
}

void hak_rule_effect_look(struct site_log *log, uint64_t volume, uint64_t generation_bytes)
{
    struct held_page page;
    if (classes_of_rules == 0 && holdback.count == 0)
        return;
    hak_holdback_look(&holdback, hak_os_clock_ms(), is_used);
    while (hak_holdback_take(&holdback, volume, generation_bytes, &page))
        hak_effect_note(&log->classes[page.class_index].effect, &page);
    observe(volume, generation_bytes);
}
