/* SPDX-License-Identifier: MIT */
/* docs/model/heap_fork.pml - fork beside slow paths: what it waits for, and what the child may use.
 *
 * Owns        the protocol behind hak_heaps_stop, hak_caches_await, hak_heaps_restart_in_child and
 *             the states of a thread's cache.
 * Invariants  what the child uses is whole: heaps, caches, what the lower locks protect; no block
 *             is in two of its places; a heap is lost to it only if its holder never goes on;
 *             fork and all other threads come to an end.
 * Threads     two that refill and flush, one of which may stop for ever; one that forks.
 * Checked by  tests/model/spin/run.sh
 *
 * Patience    It ends when nothing else can go on. So a wait that is in vain though its holder
 *             would go on, did fork not hold what that one needs, is seen.
 * Caches      BUSY while their thread may be changing them, WAITS while it waits for a lock that
 *             fork holds, with its bins as they are at rest. The child takes over what is not BUSY.
 * Memory      every store is seen at once; a copy is of one moment.
 * Left out    handlers that fork; publications under way (remote.pml, FORK); copies of the process
 *             that no handler of fork hears of.
 * Mutants     BUG_*: each takes one rule away; a search must find the harm.
 */

#ifndef REQUESTS
#define REQUESTS 2              /* of each thread */
#endif
#define HEAPS 2
#define FORKER 9

mtype = { IDLE, BUSY, WAITS };

byte word[HEAPS];               /* 0: free; else the holder's pid */
byte table, lower;              /* locks, as word */
mtype cache[2] = IDLE;

/* The data. A bit a block. */
byte free_blocks[HEAPS];
byte cached[2];
bit heap_half[HEAPS], cache_half[2], lower_half;

/* Ghosts. */
bit stopped[2];
byte finished;

/* hak_heap_enter: tries all, then may ask the table for one more (there is none here), then
 * waits. */
inline heap_enter() {
	do
	:: atomic { word[h] == 0 -> word[h] = _pid; break }
	:: atomic { word[h] != 0 && word[1 - h] == 0 -> h = 1 - h; word[h] = _pid; break }
	:: atomic { word[h] != 0 && word[1 - h] != 0 && !has_asked -> skip }
#ifndef BUG_BUSY_AT_THE_TABLE
		cache[me] = WAITS;
#endif
		atomic { table == 0 -> table = _pid; has_asked = 1 }
		atomic { table = 0; cache[me] = BUSY }
	:: atomic { word[h] != 0 && word[1 - h] != 0 -> cache[me] = WAITS }
		if
		:: atomic { word[h] == 0 -> word[h] = _pid }
			cache[me] = BUSY;
			break
		/* The time-out: elsewhere. */
		:: word[h] != 0 && stopped[1 - me] -> cache[me] = IDLE; goto next
		fi
	od
}

/* Blocks that come from below. */
inline from_below() {
	atomic { lower == 0 -> lower = _pid; lower_half = 1 }
	atomic { lower_half = 0; lower = 0 }
}

inline refill() {
#ifdef BUG_BINS_CHANGED_BEFORE
	cache_half[me] = 1;
#endif
	heap_enter();
	heap_half[h] = 1;
	if
	:: true
	:: atomic { true -> skip }
		from_below()
	:: me == 0 -> stopped[me] = 1; goto gone
	fi;
	atomic {
		hand = free_blocks[h] & (me + 1);
		free_blocks[h] = free_blocks[h] & ~hand;
		heap_half[h] = 0
	}
#ifdef BUG_BINS_UNDER_NO_FLAG
	cache[me] = IDLE;
#endif
	word[h] = 0;
	cache_half[me] = 1;
	atomic { cached[me] = cached[me] | hand; hand = 0; cache_half[me] = 0 }
}

/* By trying only; what finds its heap busy is published (remote.pml): here, it stays. */
inline flush() {
	cache_half[me] = 1;
	atomic { hand = cached[me]; cached[me] = 0; cache_half[me] = 0 }
	if
	:: atomic { word[h] == 0 -> word[h] = _pid }
		heap_half[h] = 1;
		atomic { free_blocks[h] = free_blocks[h] | hand; hand = 0; heap_half[h] = 0 }
		word[h] = 0
	:: word[h] != 0 -> atomic { cached[me] = hand; hand = 0 }
	fi
}

proctype thread(byte me) {
	byte h, hand, left = REQUESTS;
	bit has_asked;

	do
	:: atomic { left > 0 ->
		left--;
		if
		:: h = 0
		:: h = 1
		fi
	   }
	   cache[me] = BUSY;
	   if
	   :: refill()
	   :: flush()
	   :: atomic { true -> skip }
		from_below()                    /* a large block */
	   fi;
	   cache[me] = IDLE;
next:	   atomic { h = 0; has_asked = 0 }
	:: left == 0 -> break
	od;
gone:	finished++
}

inline take_heap(x) {
	if
	:: atomic { word[x] == 0 -> word[x] = FORKER; claimed = claimed | (1 << x) }
#ifndef BUG_NO_PATIENCE
	:: timeout -> skip
#endif
	fi
}

/* hak_caches_await: a cache may become busy again after it. */
inline await(who) {
#ifndef BUG_NO_PATIENCE
	if
	:: cache[who] != BUSY
	:: timeout -> assert(stopped[who])      /* it waited in vain */
	fi
#else
	skip
#endif
}

#ifdef BUG_BUSY_TAKEN_OVER
#define IS_TAKEN_OVER(who) true
#else
#define IS_TAKEN_OVER(who) (cache[who] != BUSY)
#endif
#ifdef BUG_LOCKS_RESET
#define IS_WHOLE(x) true
#else
#define IS_WHOLE(x) (word[x] == FORKER || word[x] == 0)
#endif
#define CHILD_HAS(what, is_there, both) \
	if \
	:: is_there -> assert((both & (what)) == 0); both = both | (what) \
	:: else \
	fi

/* The first look of the child, at one moment. */
inline copy() {
	d_step {
		assert(!lower_half);
		assert(!IS_WHOLE(0) || !heap_half[0]);
		assert(!IS_WHOLE(1) || !heap_half[1]);
		assert(!IS_TAKEN_OVER(0) || !cache_half[0]);
		assert(!IS_TAKEN_OVER(1) || !cache_half[1]);
		/* Only who stopped inside makes the child lose a heap. */
		assert(IS_WHOLE(0) || stopped[0]);
		assert(IS_WHOLE(1) || stopped[0]);
		CHILD_HAS(free_blocks[0], IS_WHOLE(0), seen);
		CHILD_HAS(free_blocks[1], IS_WHOLE(1), seen);
		CHILD_HAS(cached[0], IS_TAKEN_OVER(0), seen);
		CHILD_HAS(cached[1], IS_TAKEN_OVER(1), seen);
		seen = 0
	}
}

proctype forker() {
	byte claimed, seen;

#ifdef BUG_LOWER_FIRST
	atomic { lower == 0 -> lower = FORKER }
#endif
	atomic { table == 0 -> table = FORKER }
#ifdef BUG_HEAPS_NOT_STOPPED
	skip;
#else
	take_heap(0);
	take_heap(1);
#endif
	await(0);
	await(1);
#ifndef BUG_LOWER_FIRST
#ifndef BUG_LOWER_NOT_STOPPED
	atomic { lower == 0 -> lower = FORKER }
#endif
#endif
	copy();
	lower = 0;
	atomic { claimed & 1 -> word[0] = 0 } unless { atomic { !(claimed & 1) -> skip } };
	atomic { claimed & 2 -> word[1] = 0 } unless { atomic { !(claimed & 2) -> skip } };
	table = 0;
	finished++
}

init {
	atomic {
		free_blocks[0] = 1;
		free_blocks[1] = 2;
		run thread(0);
		run thread(1);
		run forker()
	}
	finished == 3
}
