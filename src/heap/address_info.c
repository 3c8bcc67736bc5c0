/* SPDX-License-Identifier: MIT */
#include "heap/address_info.h"

#include "heap/cache_list.h"
#include "heap/supply.h"
#include "misuse/guarded.h"
#include "misuse/mark.h"
#include "os/os.h"
#include "span/span.h"

/* The start of a large block is looked for so far before an address. */
#define GRANULES_LOOKED_AT 1048576u

const char *hak_address_meaning(enum address_kind kind)
{
    static const char *const meanings[ADDRESS_COUNT] = {
#define X(kind, meaning) meaning,
        HAK_ADDRESS_TABLE(X)
#undef X
    };
    return meanings[kind];
}

static bool is_in_bin(const struct cache *cache, uint32_t class_index, const void *block)
{
    void **bottom = (void **)(void *)hak_word_peek(&cache->bins);
    bottom += hak_word_peek(&cache->rooms[class_index].bottom);
    uint32_t count = hak_cache_count(cache, class_index);
    for (uint32_t i = 1; i <= count; i++)
        if (hak_word_peek(bottom - i) == block)
            return true;
    return false;
}

static enum address_kind kind_of_used(const struct slab *slab, const void *block)
{
    uint32_t class_index = slab->class_index;
    if (hak_mark_is_freed_at(block))
        return ADDRESS_FREED;
    for (const struct cache *i = hak_caches_first(); i != NULL; i = i->next)
        if (is_in_bin(i, class_index, block))
            return ADDRESS_CACHED;
    return ADDRESS_LIVE;
}

static bool has_bit(const _Atomic uint64_t *words, uint32_t index)
{
    return (hak_load_relaxed(&words[index / 64]) >> (index % 64) & 1) != 0;
}

static struct address_info in_slab(struct slab *slab, uintptr_t address)
{
    if (address < slab->start)
        return (struct address_info){.kind = ADDRESS_GUARD};
    uint32_t index = hak_block_index(slab->reciprocal, address - slab->start);
    if (index >= slab->block_count)
        return (struct address_info){.kind = ADDRESS_TAIL};
    struct address_info where = {.block = slab->start + (size_t)index * slab->block_bytes,
                                 .block_bytes = slab->block_bytes};
    if (index >= hak_word_peek(&slab->bump))
        where.kind = ADDRESS_UNUSED;
    else if (has_bit(slab->words, index))
        where.kind = ADDRESS_FREED;
    else if (has_bit(hak_slab_remote_words(slab), index))
        where.kind = ADDRESS_HOMEWARD;
    else
        where.kind = kind_of_used(slab, (const void *)where.block);
    return where;
}

static struct address_info in_span(const struct span *span, uintptr_t address)
{
    uintptr_t block = (uintptr_t)hak_load_relaxed(&span->user);
    size_t bytes = hak_load_relaxed(&span->user_bytes);
    if (block == 0) /* it was freed meanwhile */
        return (struct address_info){.kind = ADDRESS_FREE};
    struct address_info where = {.kind = ADDRESS_LARGE, .block = block, .block_bytes = bytes};
    /* Hardened mode's blocks begin at the start of a span, or a page behind it. */
    if (hak_mark_is_freed_at((const void *)block) ||
        hak_mark_is_freed_at((const void *)(block + hak_os_page_bytes())))
        where.kind = ADDRESS_FREED;
    if (address - block >= bytes)
        where.kind = ADDRESS_LARGE_END;
    return where;
}

/* Only the first granule of a large block has a tag. */
static struct address_info in_granule(uint32_t granule, uintptr_t address)
{
    for (uint32_t back = 0; back <= granule && back < GRANULES_LOOKED_AT; back++) {
        uint32_t tag = hak_tag_read(granule - back);
        if (tag == HAK_TAG_NONE)
            continue;
        const struct span *span = hak_span_live_at(granule - back);
        if (span != NULL && back < hak_word_peek(&span->count))
            return in_span(span, address);
        break;
    }
    return (struct address_info){.kind = ADDRESS_FREE};
}

static struct address_info in_window(const void *address)
{
    uint32_t granule = hak_granule_of(address);
    uint32_t tag = hak_tag_read(granule);
    if (tag == HAK_TAG_HOLE)
        return (struct address_info){.kind = ADDRESS_HOLE};
    struct slab *slab = hak_tag_is_slab(tag) ? hak_owner_read(granule) : NULL;
    if (slab != NULL)
        return in_slab(slab, (uintptr_t)address);
    return in_granule(granule, (uintptr_t)address);
}

static struct address_info in_guarded(const void *address)
{
    struct guarded_view view;
    hak_guarded_look(address, &view);
    if (view.block == 0)
        return (struct address_info){.kind = ADDRESS_RECORDS};
    return (struct address_info){.kind = view.state == GUARDED_LIVE ? ADDRESS_GUARDED
                                                                    : ADDRESS_GUARDED_FREED,
                                 .block = view.block,
                                 .block_bytes = view.bytes};
}

struct address_info hak_address_info(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    if (at < HAK_GRANULE_BYTES)
        return (struct address_info){.kind = ADDRESS_NEAR_NULL};
    if (hak_region_holds(address))
        return in_window(address);
    if (hak_guarded_holds(address))
        return in_guarded(address);
    if ((at >= hak_region.records_start && at < hak_region.records_end) ||
        at - (uintptr_t)hak_marks < hak_mark_reserved_bytes())
        return (struct address_info){.kind = ADDRESS_RECORDS};
    return (struct address_info){.kind = ADDRESS_FOREIGN};
}
