/* SPDX-License-Identifier: MIT */
/* span/large.h - blocks above the size classes: one span each.
 *
 * Owns        the SPAN tag and the owner entry of a large block's first granule.
 * Invariants  the block starts in the first page of its span, at a varying cache line where the
 *             alignment allows: one of the first sixteen, or of those that its tail leaves room
 *             for. The thread that changes the span's `user` from the block to NULL frees it.
 * Threads     any thread allocates and frees; that exchange decides between two frees.
 * Tests       tests/unit/span/large_test.c, tests/unit/span/large_recent_test.c, tests/model/
 */
#ifndef HAK_SPAN_LARGE_H
#define HAK_SPAN_LARGE_H

#include "span/large_group.h"
#include "span/span_move.h"

enum large_content { LARGE_ANY, LARGE_ZERO };

/* Whether a block may take one more granule to start at a varying cache line; where memory is
 * limited or short, only blocks of 1 MiB or more may. */
enum large_room { LARGE_ROOMY, LARGE_PACKED };

/* At least `bytes`, aligned to `alignment`, a power of two and at least 16. */
struct large_request {
    size_t bytes;
    size_t alignment;
    enum large_content content;
    enum large_room room;
    uint32_t heap_id; /* of the heap whose freed memory is served first; 0: none */
};

/* A block in steps, for heaps' caches of spans. Whether a span cache may have what fits; a recent
 * span of the cache; any other of it, whose heap is held, NULL: it has none; and the block in that
 * span (NULL: one of the span heap's), NULL: no memory. */
struct span_cache;
bool hak_large_fits_cache(const struct large_request *request);
struct span *hak_large_find_recent(struct span_cache *cache, const struct large_request *request);
struct span *hak_large_find(struct span_cache *cache, const struct large_request *request);
void *hak_large_take_in(struct span *span, const struct large_request *request);

/* A block of at most HAK_SPAN_CACHE_BYTES_MOST in a recent span of the cache; NULL: none fits. */
void *hak_large_take_recent(struct span_cache *cache, size_t bytes);

/* Frees a block if the cache, which is in use, has a place for another recent span: makes the
 * block's span that. *displaced: one that another thread put there meanwhile, which is to go
 * elsewhere; or NULL. False: it has no place, or such blocks go another way. Nothing was done. */
bool hak_large_give_recent(struct span_cache *cache, void *block, struct span **displaced);

/* Frees a large block; anything that is not the start of one is misuse, reported. */
void hak_large_give(void *block);

/* The same for one that cannot be used again: its memory goes to the kernel, its addresses are
 * lost. */
void hak_large_lose(void *block);

/* The same in steps: its span is the caller's. Whether a cache may have it; into the cache,
 * whose heap is held and which may hold so much; or back to the span heap, at once to the kernel
 * where few blocks ever came back. */
struct span *hak_large_end(void *block);
bool hak_large_may_keep(const struct span *span);
void hak_large_keep(struct span_cache *cache, struct span *span, size_t most_bytes);
void hak_large_release(struct span *span);
void hak_large_give_up(struct span *span);

/* Frees the spans of a cache as hak_span_cache_drop says. */
void hak_large_drop_cached(struct span_cache *cache, uint64_t before_ms, size_t keep_bytes,
                           uint32_t keep_count);

/* The largest size that takes no more memory than `bytes` where memory is not limited; `bytes` is
 * at most HAK_REQUEST_BYTES_MAX. */
size_t hak_large_good_bytes(size_t bytes);

/* Bytes usable from `block` on; misuse as above is reported as `what`. */
size_t hak_large_usable_bytes(const void *block, const char *what);

/* Resizes the block in place to `bytes`, returning what is behind; false: it cannot grow. */
bool hak_large_resize(void *block, size_t bytes);

/* Grows the block by moving its pages; NULL: it is unchanged, and must be copied. */
void *hak_large_move(void *block, size_t bytes);

/* The same in two steps, for blocks that start where their spans do, whose places both stay taken.
 * First a block of `bytes` of zero memory for the pages of a live one; NULL: only a copy can help.
 * Then what both have is moved, but for the first `kept_bytes` (span/span_move.h); SPAN_DAMAGED:
 * the new block is gone. */
void *hak_large_take_target(const void *block, size_t bytes);
enum span_move hak_large_carry(const void *block, void *target, size_t kept_bytes);

/* True when a live large block starts at `block`. */
bool hak_large_is_block(const void *block);

/* What blocks and groups (span/large_group.h) do together: these find a block's record, or free it.
 * Puts a live block that no other thread knows yet into the group; freeing it takes it out. */
void hak_large_join(void *block, struct list_link *group);

/* The group of a live block, NULL: none; misuse is reported as `what`. */
struct list_link *hak_large_group_of(const void *block, const char *what);

/* Frees all blocks of the group. A concurrent free of one of them is misuse, reported. */
void hak_large_give_group(struct list_link *group);

/* Bytes of the spans of all live large blocks, and their number; exact while no thread works on a
 * span cache. */
size_t hak_large_live_bytes(void);
size_t hak_large_live_count(void);

/* The same including span caches, at a cost independent of their number; and the peak of these
 * bytes. */
size_t hak_large_held_bytes(void);
size_t hak_large_peak_bytes(void);

#endif
