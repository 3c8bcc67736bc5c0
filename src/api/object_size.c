/* SPDX-License-Identifier: MIT */
#include "hakmem/hakmem.h"

#include "base/text.h"
#include "hardened/block.h"
#include "misuse/guarded.h"
#include "misuse/report.h"
#include "misuse/zero_size.h"
#include "os/module.h"
#include "os/thread_label.h"
#include "region/tag_map.h"
#include "span/span.h"

/* Nothing here calls a function of libc before a fault is certain: memcpy of libhakmem-bounds.so
 * asks here. */

/* Where an address lies that is none of the program's in a block it was given: before a guarded
 * block, with no other in between, or where hardened mode knows that no block is in use. */
enum where { IN_BLOCK, BEFORE_BLOCK, IN_FREE_MEMORY };

struct extent {
    uintptr_t start;
    size_t bytes;
    enum where where;
};

/* The owner of a block that is in use sees its mark as it was when the block became its own. */
static bool is_free(const void *start)
{
    _Atomic uint64_t *mark = hak_mark_at(start);
    return mark != NULL && hak_mark_unpack(hak_load_relaxed(mark)).state != MARK_LIVE;
}

static bool find_small(struct slab *slab, uintptr_t address, struct extent *found)
{
    if (slab == NULL || address < slab->start) /* given back meanwhile; the guard before it */
        return false;
    uint32_t index = hak_block_index(slab->reciprocal, address - slab->start);
    if (index >= slab->block_count)
        return false;
    found->start = slab->start + (size_t)index * slab->block_bytes;
    found->bytes = slab->block_bytes;
    if (HAK_LIKELY(!hak_hardened_is_on()) || slab->is_private)
        return true;
    if (hak_hardened_block_look((char *)found->start, slab, &found->bytes))
        return true;
    found->where = IN_FREE_MEMORY;
    return is_free((const void *)found->start);
}

/* A hardened block starts where its span does, or a page behind. */
static bool find_in_span(const struct span *span, struct extent *found)
{
    found->start = (uintptr_t)hak_load_relaxed(&span->user);
    found->bytes = hak_load_relaxed(&span->user_bytes);
    if (HAK_UNLIKELY(found->start == 0)) /* it was freed meanwhile */
        return false;
    if (HAK_LIKELY(!hak_hardened_is_on()) || span->group != NULL)
        return true;
    if (hak_hardened_block_look((char *)found->start, NULL, &found->bytes))
        return true;
    found->start += hak_os_page_bytes();
    return hak_hardened_block_look((char *)found->start, NULL, &found->bytes);
}

/* The first granule of the span in which one of these granules lay when it was last asked about. It
 * is believed only if it still is one that reaches so far. */
#define MEMO_GRANULES 16u
#define MEMO_COUNT 1024u
static _Atomic uint32_t memos[MEMO_COUNT];

static const struct span *span_from(uint32_t first, uint32_t granule)
{
    const struct span *span = hak_span_live_at(first);
    bool holds = span != NULL && granule - first < hak_word_peek(&span->count);
    return holds ? span : NULL;
}

/* Only the first granule of a large block has a tag: it is looked for backwards. */
static bool find_large(uint32_t granule, struct extent *found)
{
    _Atomic uint32_t *memo = &memos[granule / MEMO_GRANULES % MEMO_COUNT];
    const struct span *span = span_from(hak_load_relaxed(memo), granule);
    if (HAK_UNLIKELY(span == NULL)) {
        uint32_t first = granule;
        while (first > 0 && hak_tag_read(first) == HAK_TAG_NONE)
            first--;
        span = span_from(first, granule);
        if (span == NULL)
            return false;
        hak_store_relaxed(memo, first);
    }
    return find_in_span(span, found);
}

static bool find_guarded(const void *address, struct extent *found)
{
    struct guarded_view view;
    hak_guarded_look(address, &view);
    *found = (struct extent){.start = view.block, .bytes = view.bytes};
    if ((uintptr_t)address < view.block) {
        if (view.block - (uintptr_t)address >= hak_os_page_bytes()) /* a guard page is nearer */
            return false;
        found->where = BEFORE_BLOCK;
    }
    return view.block != 0 && view.state == GUARDED_LIVE;
}

/* The block that an address lies in, or behind the end of which it lies before the next; and where
 * it lies else, if no block can be there. */
static bool find_block(const void *address, struct extent *found)
{
    bool is_found = false;
    found->where = IN_BLOCK;
    if (HAK_LIKELY(hak_region_holds(address))) {
        uint32_t granule = hak_granule_of(address);
        if (HAK_LIKELY(hak_tag_is_slab(hak_tag_read(granule))))
            is_found = find_small(hak_owner_read(granule), (uintptr_t)address, found);
        else
            is_found = find_large(granule, found);
    } else if (hak_guarded_holds(address)) {
        is_found = find_guarded(address, found);
    } else if (hak_zero_size_holds(address)) {
        found->start = (uintptr_t)address;
        found->bytes = 0;
        is_found = true;
    }
    return is_found && (found->where == BEFORE_BLOCK || (uintptr_t)address >= found->start);
}

static size_t bytes_left(const struct extent *block, const void *address)
{
    if (HAK_UNLIKELY(block->where != IN_BLOCK))
        return 0;
    size_t offset = (uintptr_t)address - block->start;
    return offset < block->bytes ? block->bytes - offset : 0;
}

size_t hakmem_object_size(const void *address)
{
    struct extent block;
    return find_block(address, &block) ? bytes_left(&block, address) : SIZE_MAX;
}

static void add_what(struct text *text, const char *function, enum hakmem_access access,
                     enum where where)
{
    static const char *const words[][2] = {
        [IN_BLOCK] = {[HAKMEM_WRITE] = "overflow by ", [HAKMEM_READ] = "overread by "},
        [BEFORE_BLOCK] = {[HAKMEM_WRITE] = "underflow by ", [HAKMEM_READ] = "underread by "},
        [IN_FREE_MEMORY] = {"use of free memory by ", "use of free memory by "},
    };
    hak_text_add(text, words[where][access]);
    hak_text_add(text, function);
}

/* How many bytes, from where, and how far from those that the block has. */
static void add_range(struct text *text, const struct extent *block, enum hakmem_access access,
                      const void *address, size_t bytes)
{
    bool is_before = block->where == BEFORE_BLOCK;
    uintptr_t offset = (uintptr_t)address - block->start;
    size_t beyond = is_before ? -offset : bytes - bytes_left(block, address);
    hak_text_add(text, access == HAKMEM_WRITE ? "write of " : "read of ");
    hak_text_add_number(text, bytes, 10);
    hak_text_add(text, is_before ? " bytes at offset -" : " bytes at offset ");
    hak_text_add_number(text, is_before ? beyond : offset, 10);
    hak_text_add(text, " of the block at 0x");
    hak_text_add_number(text, block->start, 16);
    hak_text_add(text, ", ");
    if (block->where == IN_FREE_MEMORY) {
        hak_text_add(text, "which is free,");
        return;
    }
    hak_text_add_number(text, beyond, 10);
    hak_text_add(text, beyond == 1 ? " byte " : " bytes ");
    hak_text_add(text, is_before ? "before its start," : "beyond its end,");
}

void hakmem_bounds_stop(const char *function, enum hakmem_access access, const void *address,
                        size_t bytes, const void *caller)
{
    struct extent block;
    if (!find_block(address, &block) || bytes <= bytes_left(&block, address))
        return;
    char what[64], state[HAK_MISUSE_STATE_BYTES];
    struct text name = {.start = what, .bytes = sizeof what - 1};
    add_what(&name, function, access, block.where);
    what[name.used] = '\0';

    struct text text = {.start = state, .bytes = sizeof state - 1};
    add_range(&text, &block, access, address, bytes);
    struct thread_label thread = hak_os_thread_label();
    hak_os_thread_label_add(&text, &thread);
    hak_text_add(&text, " at ");
    hak_os_module_add(&text, &(uintptr_t){(uintptr_t)caller}, 1);
    state[text.used] = '\0';
    hak_misuse(what, address, block.bytes, state);
}
