/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "api/user_heap.h"
#include "base/bits.h"
#include "base/check.h"
#include "hardened/hardened.h"
#include "hardened/sample.h"
#include "heap/limit.h"
#include "heap/private_heap.h"
#include "heap/route.h"
#include "misuse/report.h"
#include "misuse/zero_size.h"
#include "process/background.h"
#include "process/start.h"
#include "profile/sampler.h"
#include "slab/size_class.h"
#include "span/large.h"
#include "stats/exact.h"

#include <errno.h>
#include <string.h>

/* What a small block that must move to grow is made larger by: one part in so many. */
#define GROWTH_SHARE 4
/* What a move that shrinks a block saves of it, at least (docs/adr/0032). */
#define SAVED_SHARE 3

/* Bytes usable in a live block of ours; 0 for a foreign pointer. */
static size_t usable_bytes(const void *block, const char *what)
{
    if (!hak_region_holds(block))
        return 0;
    uint32_t tag = hak_tag_read(hak_granule_of(block));
    if (tag == HAK_TAG_HOLE)
        return 0;
    if (!hak_tag_is_slab(tag))
        return hak_large_usable_bytes(block, what);
    struct slab *slab = hak_owner_read(hak_granule_of(block));
    hak_slab_index_of(slab, block, what);
    return slab->block_bytes;
}

void *hak_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (HAK_UNLIKELY(__builtin_mul_overflow(count, bytes, &total))) {
        errno = ENOMEM;
        return NULL;
    }
    if (total >= HAK_ZERO_KNOWLEDGE_BYTES)
        return hak_calloc_slow(total);
    void *block = NULL;
    if (HAK_UNLIKELY(hak_route_is_on()))
        block = hak_malloc_routed(total, HAK_OS_CALLER());
    if (block == NULL)
        block = hak_malloc(total);
    if (HAK_LIKELY(block != NULL))
        memset(block, 0, total);
    return block;
}

/* Malloc and free on behalf of a call that is counted already. */
static void *malloc_again(size_t bytes, enum hak_partition partition)
{
    if (HAK_UNLIKELY(hak_harden_has(HARDEN_COUNTED)))
        return hak_malloc_uncounted(bytes, (int)partition, false);
    return HAK_UNLIKELY(partition == PARTITION_LONG) ? hak_long_slow(bytes) : hak_malloc(bytes);
}

/* Of a block in the window. */
static enum hak_partition partition_of(const void *block)
{
    uint32_t tag = hak_tag_read(hak_granule_of(block));
    return hak_tag_is_class(tag) ? hak_class_partition(hak_tag_class(tag)) : PARTITION_ORDINARY;
}

static void free_again(void *block)
{
    if (HAK_UNLIKELY(hak_harden_has(HARDEN_COUNTED)))
        hak_free_uncounted(block);
    else
        hak_free(block);
}

/* A block that grows in small steps is copied less often when each move leaves room for more. */
static size_t with_slack(size_t old_bytes, size_t bytes)
{
    size_t roomy_bytes = old_bytes + old_bytes / GROWTH_SHARE;
    bool is_step = bytes > old_bytes && bytes < roomy_bytes;
    if (!is_step || roomy_bytes > HAK_CLASS_BYTES_MAX || hak_policy_read(limit_bytes) != 0)
        return bytes;
    return roomy_bytes;
}

/* Memory for a small block that moves; what it needs may be there where more is not. One that
 * shrinks can stay: at a limit nobody empties caches for it, and nothing is refused. */
HAK_INLINE void *new_place(size_t old_bytes, size_t bytes, enum hak_partition partition)
{
    if (bytes <= old_bytes && HAK_UNLIKELY(hak_policy_read(limit_bytes) != 0))
        return hak_malloc_uncounted(bytes, (int)partition, true);
    size_t wished_bytes = with_slack(old_bytes, bytes);
    void *moved = malloc_again(wished_bytes, partition);
    if (HAK_UNLIKELY(moved == NULL) && wished_bytes > bytes)
        moved = malloc_again(bytes, partition);
    return moved;
}

/* What the block holds, as far as there is room. */
HAK_INLINE void copy(void *moved, const void *block, size_t bytes)
{
    memcpy(moved, block, bytes);
    hak_stat_add_here(hak_own_cache(), realloc_copied_bytes, bytes);
}

/* The block's sample, if it is one, has so many bytes and not what the block leaves room for. */
static void note_bytes(const void *block, size_t bytes)
{
    if (!hak_sampler_watches() || !hak_region_holds(block))
        return;
    uint32_t tag = hak_tag_read(hak_granule_of(block));
    if (hak_tag_is_slab(tag) && !hak_tag_is_class(tag))
        hak_sampler_resize(block, bytes);
}

static void *move(void *block, size_t old_bytes, size_t bytes, struct os_caller caller)
{
    hakmem_heap *heap_of_block = hak_private_handle_of(block, "invalid realloc");
    void *moved = heap_of_block == NULL
                      ? new_place(old_bytes, bytes, partition_of(block))
                      : hak_user_heap_take(heap_of_block, bytes, 0, false, caller);
    if (moved == NULL)
        return NULL;
    copy(moved, block, hak_least(old_bytes, bytes));
    note_bytes(moved, bytes);
    free_again(block);
    return moved;
}

/* A large block, of a heap of the program's or of none. */
static void note_resized(const void *block, size_t bytes, struct os_caller caller)
{
    hakmem_heap *heap = hak_private_handle_of(block, "invalid realloc");
    uint64_t weight = heap == NULL ? hak_draw_coin(bytes) : 0;
    if (heap != NULL)
        hak_user_heap_note(heap, block, bytes, bytes, caller);
    else if (weight != 0)
        hak_sampler_note(&(struct sampled_request){bytes, weight, caller, NULL}, block);
}

static void *resize_within_limit(void *block, size_t old_bytes, size_t bytes)
{
    size_t more_bytes = hak_align_up(hak_excess(bytes, old_bytes), HAK_GRANULE_BYTES);
    if (!hak_limit_begin_growth(more_bytes))
        return NULL;
    void *moved = hak_large_resize(block, bytes) ? block : hak_large_move(block, bytes);
    hak_limit_end_growth(more_bytes);
    return moved;
}

/* A large block without a copy; NULL: only that can help. Its life ends, another one begins. */
static void *resize_large(void *block, size_t old_bytes, size_t bytes, struct os_caller caller)
{
    struct live_sample sample;
    bool is_sample = hak_sampler_lift(block, &sample);
    void *moved = resize_within_limit(block, old_bytes, bytes);
    if (is_sample && moved == NULL)
        hak_sampler_put_back(block, &sample);
    else if (is_sample)
        hak_sampler_end_lifted(&sample);
    if (moved != NULL && hak_draw_is_on())
        note_resized(moved, bytes, caller);
    return moved;
}

/* A block that gives up no more than `spare_bytes` stays where it is. */
HAK_INLINE bool fits(size_t old_bytes, size_t spare_bytes, size_t bytes)
{
    return bytes <= old_bytes && bytes >= old_bytes - spare_bytes;
}

/* The same for a block that would become, or stay, a small one. Half of it may be unused, and more
 * of a line, which served a shorter class that had no blocks yet (heap/refill.h); of one above 4
 * KiB that is in a slab, less than what saves a third by moving: there memory matters more than the
 * copy. */
HAK_INLINE bool stays(size_t old_bytes, size_t bytes)
{
    size_t most_bytes = old_bytes - old_bytes / SAVED_SHARE;
    if (old_bytes <= HAK_CACHE_LINE_BYTES && bytes > 8)
        return bytes <= old_bytes;
    if (!fits(old_bytes, old_bytes / 2, bytes))
        return false;
    if (old_bytes <= HAK_CLASS_EVEN_BYTES_MAX || old_bytes > HAK_CLASS_BYTES_MAX)
        return true;
    return bytes > most_bytes || hak_size_classes[hak_class_of(bytes)].block_bytes > most_bytes;
}

/* Another size for a live block of ours; NULL: refused, and the block is as it was. */
static void *resize(void *block, size_t old_bytes, size_t bytes, struct os_caller caller)
{
    bool is_large = old_bytes > HAK_CLASS_BYTES_MAX && bytes > HAK_CLASS_BYTES_MAX;
    /* A large one that stays one gives its end back. */
    size_t spare_bytes = hak_most(old_bytes / 8, HAK_GRANULE_BYTES);
    if (is_large ? fits(old_bytes, spare_bytes, bytes) : stays(old_bytes, bytes)) {
        /* Large blocks are sampled anew when they are resized by more than a granule. */
        if (old_bytes <= HAK_CLASS_BYTES_MAX)
            note_bytes(block, bytes);
        return block;
    }
    void *moved = is_large ? resize_large(block, old_bytes, bytes, caller) : NULL;
    if (moved == NULL)
        return move(block, old_bytes, bytes, caller);
    hak_limit_settle();
    if (moved == block)
        hak_background_consider();
    return moved;
}

/* A guarded block becomes an ordinary one. */
static HAK_NOINLINE void *resize_guarded(void *block, size_t bytes, struct os_caller caller)
{
    size_t old_bytes = hak_guarded_usable_bytes(block, "invalid realloc");
    void *moved = malloc_again(bytes, PARTITION_ORDINARY);
    if (moved == NULL)
        return bytes <= old_bytes ? block : NULL;
    memcpy(moved, block, hak_least(old_bytes, bytes));
    hak_sample_free(block, caller);
    return moved;
}

/* A block of size 0 becomes an ordinary one. */
static void *resize_empty(void *block, size_t bytes)
{
    if (!hak_zero_size_is_live(block))
        hak_misuse("invalid realloc", block, 0, "already free");
    void *moved = malloc_again(bytes, PARTITION_ORDINARY);
    if (moved != NULL)
        free_again(block);
    return moved;
}

/* The slab of an ordinary small block, with nobody to watch; NULL: anything else. */
HAK_INLINE const struct slab *ordinary_slab_of(const void *block)
{
    uint32_t index;
    if (hak_is_watched() || !hak_region_holds(block))
        return NULL;
    uint32_t granule = hak_granule_of(block), tag = hak_tag_read(granule);
    if (HAK_UNLIKELY(tag - 1 >= hak_tag_of(HAK_CLASS_COUNT) - 1))
        return NULL;
    const struct slab *slab = hak_owner_read(granule);
    bool is_start = hak_slab_find_start(slab, block, &index) && index < slab->block_count;
    return HAK_LIKELY(is_start) ? slab : NULL;
}

/* Another place for such a block. ISO C lets a shrinking realloc fail, but nobody expects it. */
static HAK_NOINLINE void *move_ordinary(void *block, size_t old_bytes, size_t bytes)
{
    void *moved = new_place(old_bytes, bytes, PARTITION_ORDINARY);
    if (HAK_UNLIKELY(moved == NULL))
        return bytes <= old_bytes ? block : NULL;
    copy(moved, block, hak_least(old_bytes, bytes));
    note_bytes(moved, bytes);
    hak_free(block);
    return moved;
}

static HAK_NOINLINE void *realloc_slow(void *block, size_t bytes, struct os_caller caller)
{
    if (bytes == 0) {
        hak_free(block);
        return NULL;
    }
    if (bytes > HAK_REQUEST_BYTES_MAX) {
        errno = ENOMEM;
        return NULL;
    }
    if (HAK_UNLIKELY(hak_is_watched()))
        hak_exact_realloc(bytes);
    if (HAK_UNLIKELY(hak_hardened_is_on() && hak_hardened_resize(&block, bytes)))
        return block;
    size_t old_bytes = usable_bytes(block, "invalid realloc");
    if (old_bytes == 0 && hak_guarded_holds(block))
        return resize_guarded(block, bytes, caller);
    if (old_bytes == 0)
        return hak_zero_size_holds(block) ? resize_empty(block, bytes)
                                          : hak_foreign_realloc(block, bytes);
    void *moved = resize(block, old_bytes, bytes, caller);
    /* ISO C lets a shrinking realloc fail, but nobody expects it. */
    return moved == NULL && bytes <= old_bytes ? block : moved;
}

void *hak_realloc(void *block, size_t bytes)
{
    if (block == NULL)
        return hak_malloc(bytes);
    const struct slab *slab = ordinary_slab_of(block);
    if (HAK_UNLIKELY(slab == NULL || bytes - 1 >= HAK_REQUEST_BYTES_MAX))
        return realloc_slow(block, bytes, HAK_OS_CALLER());
    size_t old_bytes = slab->block_bytes;
    return stays(old_bytes, bytes) ? block : move_ordinary(block, old_bytes, bytes);
}

void *hak_reallocarray(void *block, size_t count, size_t bytes)
{
    return hak_realloc(block, hak_product(count, bytes));
}

static HAK_NOINLINE size_t usable_slow(void *block)
{
    const char *what = "invalid malloc_usable_size";
    if (block == NULL)
        return 0;
    size_t bytes;
    if (HAK_UNLIKELY(hak_hardened_is_on() && hak_hardened_usable_bytes(block, &bytes)))
        return bytes;
    if (hak_guarded_holds(block))
        return hak_guarded_usable_bytes(block, what);
    if (HAK_UNLIKELY(hak_zero_size_holds(block)) && !hak_zero_size_is_live(block))
        hak_misuse(what, block, 0, "already free");
    return usable_bytes(block, what);
}

size_t hak_malloc_usable_size(void *block)
{
    const struct slab *slab = ordinary_slab_of(block);
    return HAK_LIKELY(slab != NULL) ? slab->block_bytes : usable_slow(block);
}

HAK_LIBC_ALIAS(calloc, hak_calloc)
HAK_LIBC_ALIAS(realloc, hak_realloc)
HAK_LIBC_ALIAS(__libc_calloc, hak_calloc)
HAK_LIBC_ALIAS(__libc_realloc, hak_realloc)
HAK_LIBC_ALIAS(malloc_usable_size, hak_malloc_usable_size)
