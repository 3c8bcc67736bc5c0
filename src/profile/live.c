/* SPDX-License-Identifier: MIT */
#include "profile/live.h"

#include "region/meta.h"

#define PLACES 8u
#define TAKEN 1u

/* Keys, then samples. */
struct table {
    uint32_t place_count;
    struct live_sample *samples;
    alignas(64) _Atomic uintptr_t keys[];
};

HAK_AT_HAND static _Atomic(struct table *) tables[HAK_LIVE_TABLES];
static struct meta_pool pools[HAK_LIVE_TABLES];

/* acquire: partner is the release in `make` */
static struct table *table_at(uint32_t index)
{
    return hak_load_acquire(&tables[index]);
}

static bool make(uint32_t index)
{
    uint32_t count = HAK_LIVE_FIRST << index;
    size_t keys_bytes = sizeof(struct table) + count * sizeof(uintptr_t);
    struct table *none = NULL;
    struct table *table =
        hak_meta_pool_take(&pools[index], keys_bytes + count * sizeof(struct live_sample));
    if (table == NULL)
        return false;
    table->place_count = count;
    table->samples = (struct live_sample *)(void *)((char *)table + keys_bytes);
    /* release: partner is the acquire in table_at */
    if (!atomic_compare_exchange_strong_explicit(&tables[index], &none, table, memory_order_release,
                                                 memory_order_relaxed))
        hak_meta_pool_give(&pools[index], table);
    return true;
}

/* The first of the block's places. */
static uint32_t place_of(const struct table *table, const void *block)
{
    uint64_t hash = ((uintptr_t)block >> 3) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(hash >> 32) % (table->place_count / PLACES) * PLACES;
}

static void write_sample(struct live_sample *to, const struct live_sample *from)
{
    hak_word_publish(&to->sum.count, from->sum.count);
    hak_word_publish(&to->sum.bytes, from->sum.bytes);
    hak_word_publish(&to->birth_ns, from->birth_ns);
    hak_word_publish(&to->site, from->site);
    hak_word_publish(&to->heap, from->heap);
    hak_word_publish(&to->ticket, from->ticket);
    hak_word_publish(&to->logged_bytes, from->logged_bytes);
}

static struct live_sample read_sample(const struct live_sample *from)
{
    return (struct live_sample){
        .sum = {.count = hak_word_peek(&from->sum.count), .bytes = hak_word_peek(&from->sum.bytes)},
        .birth_ns = hak_word_peek(&from->birth_ns),
        .site = hak_word_peek(&from->site),
        .heap = hak_word_peek(&from->heap),
        .ticket = hak_word_peek(&from->ticket),
        .logged_bytes = hak_word_peek(&from->logged_bytes)};
}

static bool add_in(struct table *table, const void *block, const struct live_sample *sample)
{
    uint32_t first = place_of(table, block);
    for (uint32_t i = first; i < first + PLACES; i++) {
        uintptr_t key = 0;
        /* acquire: partner is the release in `empty`, before which the sample was read */
        if (hak_load_relaxed(&table->keys[i]) != 0 ||
            !hak_cas_acquire(&table->keys[i], &key, TAKEN))
            continue;
        write_sample(&table->samples[i], sample);
        /* release: partner is the acquire in find_in, hak_live_remove_heap and hak_live_visit */
        hak_store_release(&table->keys[i], (uintptr_t)block);
        return true;
    }
    return false;
}

bool hak_live_add(const void *block, const struct live_sample *sample, bool may_grow)
{
    for (uint32_t i = 0; i < HAK_LIVE_TABLES; i++) {
        if (table_at(i) == NULL && !(may_grow && make(i)))
            return false;
        if (add_in(table_at(i), block, sample))
            return true;
    }
    return false;
}

/* Empties a place whose sample has been read; false: another thread did. */
static bool empty(_Atomic uintptr_t *place, uintptr_t key)
{
    /* release: partner is the acquire in add_in */
    return atomic_compare_exchange_strong_explicit(place, &key, 0, memory_order_release,
                                                   memory_order_relaxed);
}

/* False: the block is not there. */
static bool find_in(struct table *table, const void *block, struct live_place *place)
{
    uint32_t first = place_of(table, block);
    for (uint32_t i = first; i < first + PLACES; i++) {
        /* acquire: partner is the release in add_in, or in hak_live_let_go */
        if (hak_load_acquire(&table->keys[i]) != (uintptr_t)block)
            continue;
        *place = (struct live_place){&table->keys[i], &table->samples[i]};
        return true;
    }
    return false;
}

static bool find(const void *block, struct live_place *place)
{
    struct table *table;
    for (uint32_t i = 0; i < HAK_LIVE_TABLES && (table = table_at(i)) != NULL; i++)
        if (find_in(table, block, place))
            return true;
    return false;
}

bool hak_live_remove(const void *block, struct live_sample *sample)
{
    struct live_place place;
    if (!find(block, &place))
        return false;
    *sample = read_sample(place.sample);
    return empty(place.key, (uintptr_t)block);
}

bool hak_live_hold(const void *block, struct live_sample *sample, struct live_place *place)
{
    uintptr_t key = (uintptr_t)block;
    /* acquire: the block's own thread holds it, which has met the one that added it */
    if (!find(block, place) || !hak_cas_acquire(place->key, &key, TAKEN))
        return false;
    *sample = read_sample(place->sample);
    return true;
}

void hak_live_let_go(const void *block, const struct live_sample *sample,
                     const struct live_place *place)
{
    write_sample(place->sample, sample);
    /* release: partner is the acquire in find_in */
    hak_store_release(place->key, (uintptr_t)block);
}

/* Samples of the heap do not change meanwhile, since a heap that is being destroyed must not be
 * used. A sample that is being written cannot be mistaken for one of the heap: its word is the
 * handle of its own heap, or 0, before and after. */
void hak_live_remove_heap(uint64_t heap, void (*ended)(const struct live_sample *sample))
{
    struct table *table;
    for (uint32_t i = 0; i < HAK_LIVE_TABLES && (table = table_at(i)) != NULL; i++) {
        for (uint32_t j = 0; j < table->place_count; j++) {
            /* acquire: partner is the release in add_in, or in hak_live_let_go */
            uintptr_t key = hak_load_acquire(&table->keys[j]);
            if (key <= TAKEN || hak_word_peek(&table->samples[j].heap) != heap)
                continue;
            struct live_sample sample = read_sample(&table->samples[j]);
            if (empty(&table->keys[j], key))
                ended(&sample);
        }
    }
}

void hak_live_visit(void (*visit)(const struct live_sample *sample, void *context), void *context)
{
    struct table *table;
    for (uint32_t i = 0; i < HAK_LIVE_TABLES && (table = table_at(i)) != NULL; i++) {
        for (uint32_t j = 0; j < table->place_count; j++) {
            /* acquire: partner is the release in add_in, or in hak_live_let_go */
            if (hak_load_acquire(&table->keys[j]) <= TAKEN)
                continue;
            struct live_sample sample = read_sample(&table->samples[j]);
            visit(&sample, context);
        }
    }
}
