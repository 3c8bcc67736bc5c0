/* SPDX-License-Identifier: MIT */
#include "heap/route.h"

#include "base/bits.h"
#include "heap/cpu_cache.h"
#include "os/os.h"

#define PLACES 1024u
#define WAYS 2u
/* Of a word: the address or a hash of several, the class from 1 on, the kind, the distance by 8. */
#define KEY_BITS 48u
#define CLASS_SHIFT KEY_BITS
#define KIND_SHIFT 54u
#define DISTANCE_SHIFT 57u
#define KEY_MASK (((uint64_t)1 << CLASS_SHIFT) - 1)
#define SITE_MASK (((uint64_t)1 << KIND_SHIFT) - 1)
hak_static_assert(HAK_ROUTE_DISTANCE_MOST / 8 < 128, "a distance fits its bits");
hak_static_assert(HAK_LONG_CLASS_COUNT < 64, "a class has a bit, and a number of six bits");

/* A frame has the link and the return address below what the caller goes on with. */
#define FRAME_WORDS 2u

HAK_AT_HAND _Atomic uint64_t hak_route_classes;
_Atomic uint64_t hak_route_sites;
static _Atomic uint64_t places[PLACES];
static _Atomic uint32_t held; /* enum route_hold */
_Atomic uint32_t hak_route_watched = HAK_LONG_CLASS_COUNT;
static _Atomic(void *) noted[HAK_ROUTE_NOTED_MOST];
static _Atomic uint32_t passed_count; /* blocks since the class is watched */
static _Atomic uint32_t noted_step;   /* one of so many is noted */

static uint64_t site_at(uintptr_t address, uint32_t class_index)
{
    return (address & KEY_MASK) | (uint64_t)(class_index + 1) << CLASS_SHIFT;
}

/* The site where its last frame was called from `above`. */
static uint64_t site_above(uint64_t site, uintptr_t above)
{
    return ((hak_bit_mix(site) ^ above) & KEY_MASK) | (site & ~KEY_MASK);
}

static uint64_t site_of(const struct route *route)
{
    uint64_t site = site_at(route->frames[0], route->class_index);
    for (uint32_t i = 1; i < HAK_ROUTE_FRAMES && route->frames[i] != 0; i++)
        site = site_above(site, route->frames[i]);
    return site;
}

static uint32_t place_of(uint64_t site)
{
    return (uint32_t)(hak_bit_mix(site) % (PLACES / WAYS)) * WAYS;
}

HAK_INLINE uint64_t find(uint64_t site)
{
    uint32_t place = place_of(site);
    for (uint32_t i = 0; i < WAYS; i++) {
        uint64_t word = hak_load_relaxed(&places[place + i]);
        if ((word & SITE_MASK) == site)
            return word;
    }
    return 0;
}

static enum route_kind kind_of(uint64_t word)
{
    return (enum route_kind)(word >> KIND_SHIFT & 7);
}

/* A word of a caller's frame, which nobody checks. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static uintptr_t read_stack(
    uintptr_t at)
{
    return *(const volatile uintptr_t *)at;
}

/* Whether the stack certainly goes on from `stack` to the word at `at` above it. */
HAK_INLINE bool is_stack(uintptr_t stack, uintptr_t at)
{
    return stack / HAK_PAGE_BYTES_LEAST == at / HAK_PAGE_BYTES_LEAST ||
           (hak_os_is_on_main_stack(stack) && hak_os_is_on_main_stack(at));
}

/* The word of the site as its callers have it, where it is split; each step leads further up the
 * stack. 0: the stack may end before, or it is no site of the table. */
static uint64_t find_split(uint64_t site, uint64_t word, uintptr_t frame)
{
    uintptr_t stack = frame + FRAME_WORDS * sizeof(uintptr_t), at = stack;
    while (kind_of(word) == ROUTE_SPLIT) {
        at += (uint32_t)(word >> DISTANCE_SHIFT) * 8;
        if (!is_stack(stack, at))
            return 0;
        site = site_above(site, read_stack(at));
        word = find(site);
        at += sizeof(uintptr_t);
    }
    return word;
}

static bool is_diverted(enum route_kind kind)
{
    switch (kind) {
    case ROUTE_LONG:
        return hak_load_relaxed(&held) != HOLD_ALL;
    case ROUTE_HALF:
        return hak_load_relaxed(&held) == HOLD_NONE;
    default:
        return kind == ROUTE_ALWAYS;
    }
}

enum hak_partition hak_route_find(uint32_t class_index, struct os_caller caller)
{
    uint64_t site = site_at(caller.address, class_index), word = find(site);
    if (HAK_LIKELY(word == 0))
        return PARTITION_ORDINARY;
    word = find_split(site, word, caller.frame);
    return is_diverted(kind_of(word)) ? PARTITION_LONG : PARTITION_ORDINARY;
}

void hak_route_hold(enum route_hold hold)
{
    hak_store_relaxed(&held, hold);
}

/* All relaxed: only addresses of blocks are told, never what a thread wrote there. */
uint32_t hak_route_take_noted(void *blocks[HAK_ROUTE_NOTED_MOST])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < HAK_ROUTE_NOTED_MOST; i++) {
        void *block = hak_load_relaxed(&noted[i]);
        if (block == NULL)
            continue;
        hak_store_relaxed(&noted[i], NULL);
        blocks[count++] = block;
    }
    return count;
}

void hak_route_watch(uint32_t class_index)
{
    void *forgotten[HAK_ROUTE_NOTED_MOST];
    hak_route_take_noted(forgotten);
    hak_store_relaxed(&passed_count, 0);
    if (class_index < HAK_LONG_CLASS_COUNT)
        hak_store_relaxed(&noted_step,
                          HAK_ROUTE_NOTED_BYTES / hak_size_classes[class_index].block_bytes);
    hak_store_relaxed(&hak_route_watched, class_index);
}

HAK_NOINLINE void hak_route_note_slow(void *block)
{
    uint32_t number = hak_fetch_add_relaxed(&passed_count, 1);
    uint32_t step = hak_load_relaxed(&noted_step);
    if (number % step != 0)
        return;
    if (number / step < HAK_ROUTE_NOTED_MOST)
        hak_store_relaxed(&noted[number / step], block);
    else
        hak_store_relaxed(&hak_route_watched, HAK_LONG_CLASS_COUNT);
}

static bool enter(uint64_t *words, const struct route *route)
{
    uint64_t site = site_of(route);
    uint32_t place = place_of(site);
    for (uint32_t i = 0; i < WAYS; i++) {
        if (words[place + i] != 0)
            continue;
        words[place + i] = site | (uint64_t)route->kind << KIND_SHIFT |
                           (uint64_t)(route->distance / 8) << DISTANCE_SHIFT;
        return true;
    }
    return false;
}

/* The bin that the hot path finds for the sizes of a class. */
static void set_sizes(uint32_t class_index, uint8_t bin)
{
    uint32_t below = class_index == 0 ? 0 : hak_size_classes[class_index - 1].block_bytes;
    uint32_t first = below / hak_hot_size_step + 1;
    uint32_t last = hak_size_classes[class_index].block_bytes / hak_hot_size_step;
    for (uint32_t i = first; i <= last; i++)
        hak_word_publish(&hak_hot_sizes[i], bin);
}

static void set_classes(uint64_t classes)
{
    uint64_t before = hak_load_relaxed(&hak_route_classes);
    hak_store_relaxed(&hak_route_classes, classes);
    for (uint32_t i = 0; i < HAK_LONG_CLASS_COUNT; i++)
        if (((before ^ classes) >> i & 1) != 0)
            set_sizes(i, (classes >> i & 1) != 0 ? 0 : (uint8_t)HAK_BIN_OF_CLASS(i));
}

uint32_t hak_route_publish(const struct route *routes, uint32_t count)
{
    static uint64_t words[PLACES]; /* of the only writer */
    uint64_t classes = 0, sites = 0;
    uint32_t entered = 0;
    for (uint32_t i = 0; i < PLACES; i++)
        words[i] = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!enter(words, &routes[i]))
            continue;
        classes |= (uint64_t)1 << routes[i].class_index;
        sites += routes[i].kind != ROUTE_SPLIT;
        entered++;
    }
    for (uint32_t i = 0; i < PLACES; i++)
        hak_store_relaxed(&places[i], words[i]);
    set_classes(classes);
    hak_store_relaxed(&hak_route_sites, sites);
    return entered;
}
