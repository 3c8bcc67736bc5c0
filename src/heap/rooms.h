/* SPDX-License-Identifier: MIT */
/* heap/rooms.h - where the slots of a cache's bins are.
 *
 * Owns        the memory of struct bins, and what part of it each bin has: a room, a power of two
 *             of words, of which the last is the NULL. Rooms that bins outgrew are reused by
 *             others.
 * Invariants  a bin is closed while it moves to another room, and its old slots are unchanged until
 *             it is open again: if the move is left unfinished by a jump, or by a copy of the
 *             process, the blocks are found in the old room, and every room by its bin's header. A
 *             limit moves alone, by one store. A processor's bins have all the address space that
 *             they may ever need from the start: only touched pages use memory. A slot's begin with
 *             a page and move with all that is in them.
 * Threads     the lock CACHES; what bins lead to, as heap/bins.h says.
 * Tests       tests/unit/heap/bins_test.c
 */
#ifndef HAK_HEAP_ROOMS_H
#define HAK_HEAP_ROOMS_H

#include "heap/cache.h"
#include "os/lock.h"

/* The lock CACHES: of all slots of all caches, and of the lists of caches. */
extern struct hak_lock hak_caches_lock_word;

/* Around a change of slots; false: another thread has it, or the thread was interrupted with it. */
bool hak_rooms_try_lock(void);
void hak_rooms_unlock(void);

/* Memory for bins, all closed; NULL: out of memory. And how much that is. */
size_t hak_rooms_bytes(bool is_processors);
struct bins *hak_rooms_create(uint32_t *word_count, bool is_processors);

/* The same, back again. */
void hak_rooms_destroy(struct bins *bins, uint32_t word_count, bool is_processors);

/* The cache has these bins now, of which none has slots. */
void hak_rooms_start(struct cache *cache, struct bins *bins, uint32_t word_count);

/* Lets threads find the cache's bins. Where each call is checked (HARDEN_WATCHED) they find closed
 * ones instead, and only slow paths use those of the cache. */
void hak_rooms_show(const struct cache *cache);

/* Lets a bin hold `capacity` blocks; false: there is no room, or the thread is not on the cache
 * any more, and all is as before. What it holds beyond its capacity stays until it is popped. */
bool hak_room_resize(struct cache *cache, uint32_t class_index, uint32_t capacity);

/* Opens bins that were left closed, and notes anew where the slots of all are. */
void hak_rooms_mend(struct cache *cache);

#endif
