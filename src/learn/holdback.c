/* SPDX-License-Identifier: MIT */
#include "learn/holdback.h"

static bool is_held(const struct holdback *holdback)
{
    return holdback->draw < HAK_HOLDBACK_SHARE;
}

bool hak_holdback_turn(struct holdback *holdback, uint64_t volume, uint64_t generation_bytes,
                       uint32_t draw)
{
    if (volume < holdback->window_end)
        return false;
    holdback->window_end = volume + generation_bytes / HAK_HOLDBACK_WINDOWS;
    holdback->draw = draw;
    return true;
}

bool hak_holdback_is_compared(const struct holdback *holdback)
{
    return is_held(holdback) || holdback->draw >= HAK_HOLDBACK_ONE - HAK_HOLDBACK_SHARE;
}

static struct held_page *page_at(struct holdback *holdback, uint32_t index)
{
    return &holdback->pages[(holdback->first + index) % HAK_HOLDBACK_PAGES];
}

static bool is_same(const struct page_of_blocks *left, const struct page_of_blocks *right)
{
    return left->slab == right->slab && left->slab_generation == right->slab_generation &&
           left->first == right->first;
}

void hak_holdback_add(struct holdback *holdback, const struct page_of_blocks *page,
                      uint32_t class_index, uint64_t volume)
{
    if (holdback->count == HAK_HOLDBACK_PAGES)
        return;
    for (uint32_t i = 0; i < holdback->count; i++)
        if (is_same(&page_at(holdback, i)->page, page))
            return;
    *page_at(holdback, holdback->count++) = (struct held_page){
        .page = *page,
        .volume = volume,
        .class_index = (uint8_t)class_index,
        .is_held = is_held(holdback),
    };
}

void hak_holdback_look(struct holdback *holdback, uint64_t now_ms,
                       bool (*is_used)(const struct page_of_blocks *page))
{
    uint64_t passed_ms = now_ms - holdback->look_ms;
    if (passed_ms < HAK_HOLDBACK_LOOK_MS)
        return;
    for (uint32_t i = 0; holdback->look_ms != 0 && i < holdback->count; i++) {
        struct held_page *page = page_at(holdback, i);
        page->seen_ms += passed_ms;
        if (is_used(&page->page))
            page->used_ms += passed_ms;
    }
    holdback->look_ms = now_ms;
}

bool hak_holdback_take(struct holdback *holdback, uint64_t volume, uint64_t generation_bytes,
                       struct held_page *page)
{
    if (holdback->count == 0 || volume - page_at(holdback, 0)->volume < 2 * generation_bytes)
        return false;
    *page = *page_at(holdback, 0);
    holdback->first = (holdback->first + 1) % HAK_HOLDBACK_PAGES;
    holdback->count--;
    return true;
}

void hak_effect_note(struct rule_effect *effect, const struct held_page *page)
{
    if (page->seen_ms == 0)
        return;
    effect->pages[page->is_held]++;
    effect->used[page->is_held] += (double)page->used_ms / (double)page->seen_ms;
}

void hak_effect_forget(struct rule_effect *effect, double kept)
{
    for (int i = 0; i < 2; i++) {
        effect->pages[i] *= kept;
        effect->used[i] *= kept;
    }
}

bool hak_effect_share(const struct rule_effect *effect, double *share)
{
    if (effect->pages[false] < HAK_EFFECT_PAGES_LEAST ||
        effect->pages[true] < HAK_EFFECT_PAGES_LEAST)
        return false;
    *share = effect->used[true] / effect->pages[true] - effect->used[false] / effect->pages[false];
    return true;
}
