/* SPDX-License-Identifier: MIT */
/* docs/model/remote.pml - blocks that are published while slabs move: the token rule.
 *
 * Owns        the protocol behind hak_flush, hak_remote_publish, hak_remote_collect,
 *             hak_pending_push, hak_pending_take_all, hak_heap_collect, hak_heap_surrender,
 *             hak_heap_receive and hak_remote_recount.
 * Invariants  remote_count > 0 exactly while the slab is on one pending stack or in one hand;
 *             checked in every state where either side changes, not only at the end.
 * Threads     two flushers, which bring blocks home under the lock of their heap or, where it is
 *             busy, publish them; two thieves, which enter either heap, collect, retire, hand out
 *             and take slabs from the other one; then somebody who enters both.
 * Checked by  tests/model/spin/run.sh
 *
 * Locks       Here a heap is entered in one step, by whoever finds it free; who may wait for one
 *             and what handlers do is heap_locks.pml's business.
 * Scenarios   (default) two slabs of one word   ONE_SLAB  one slab of two words
 *             DOUBLE_FREE  both flushers free one block   PUSH_BEFORE_OR  (c) before (b)
 *             FORK  all others vanish at any step; heaps that they were in are lost, the child
 *             repairs the others (pan -E)
 * Mutants     BUG_*: each takes one rule away; a search must find the harm.
 */

#ifdef ONE_SLAB
#define SLABS 1
#define WORDS 2
#else
#define SLABS 2
#define WORDS 1
#endif
#define HEAPS 2
#define NOBODY 9
#define LAST 4                  /* the last one's id; 0 and 1: thieves; 2 and 3: flushers */
#ifndef ACTIONS
#define ACTIONS 1               /* of each thief */
#endif
#define BITS(x) (((x) & 1) + (((x) >> 1) & 1) + (((x) >> 2) & 1))

/* The slab record. Indices: s for slabs, AT(s, w) for words, h for heaps. */
#define AT(s, w) ((s) * WORDS + (w))
byte slab_heap[SLABS];          /* atomic; changed only by who holds the heap it names */
byte remote_word[SLABS * WORDS];/* atomic: published, not collected */
short remote_count[SLABS];      /* atomic */
byte remote_dups[SLABS];        /* atomic: counted by a publisher, but its bit was there already */
byte link[SLABS];               /* next slab of the pending stack + 1; 0 ends it */
byte free_word[SLABS * WORDS];  /* plain: holder of slab_heap only */
short used[SLABS];              /* plain: holder of slab_heap only */
bit retired[SLABS];             /* plain */

/* The heap record; never freed. */
byte pending[HEAPS];            /* atomic: top slab + 1 */
byte holder[HEAPS] = NOBODY;    /* the lock */
#ifdef FORK
byte under_way;                 /* publications that have begun and not ended */
bit lost[HEAPS];                /* in the child */
#define BEGIN under_way++;
#define END under_way--;
#define IS_WHOLE(h) (!lost[h])
#else
#define BEGIN
#define END
#define IS_WHOLE(h) true
#endif

/* One block handed out again after it was collected: it returns by a flusher. */
byte again_slab, again_word, again_mask;
bit again_spent;

/* Ghosts: for assertions only, nothing acts on them. */
byte hands[SLABS];              /* threads that may push or collect this slab */
byte on_stack[SLABS];           /* linked into a stack, or into the untouched part of a taken one */
byte reports;                   /* double frees reported */
byte finished;
#ifdef FORK
bit forked;                     /* from here on nobody but the child's only thread takes a step */
#define ALIVE (!forked || _pid == 0)
#else
#define ALIVE true
#endif

/* Belongs into every step that changes remote_count, hands or on_stack. HARM_ONLY switches the
 * ghosts off: mutants must then be caught by what they do to blocks and plain data alone. */
#ifdef HARM_ONLY
#define TOKEN_IS_SOUND(s) skip
#define LINK_IS_OURS(s) skip
#define LINK_IS_STACKED(s) skip
#define NO_HAND(s) skip
#else
#define LINK_IS_OURS(s) assert(on_stack[s] == 0 && hands[s] == 1)
#define LINK_IS_STACKED(s) assert(on_stack[s] == 1 && hands[s] == 0)
#define NO_HAND(s) assert(hands[s] == 0)
#define TOKEN_IS_SOUND(s) \
	assert(remote_count[s] >= 0); \
	assert(hands[s] + on_stack[s] <= 1); \
	assert((remote_count[s] > 0) == (hands[s] + on_stack[s] == 1))
#endif

/* hak_pending_push. Needs the token of s. `top` is a local of the caller. */
inline pending_push(h, s) {
	do
	:: atomic {
		ALIVE ->
		assert(!retired[s]);
		LINK_IS_OURS(s);
		top = pending[h];
		link[s] = top
	   }
	   atomic {
		ALIVE ->
		if
		:: pending[h] == top ->
			pending[h] = s + 1;
			on_stack[s]++;
			hands[s]--;
			TOKEN_IS_SOUND(s);
			top = 0;
			break
		:: else -> top = 0
		fi
	   }
	od
}

inline publish_add(s, k) {
	atomic {
		ALIVE ->
		assert(!retired[s]);
		BEGIN
		moved = (remote_count[s] == 0);
		remote_count[s] = remote_count[s] + k;
#ifdef BUG_FLIGHT_IS_NOT_USED
		used[s] = used[s] - k;
#endif
		if
		:: moved -> hands[s]++
		:: else
		fi;
		TOKEN_IS_SOUND(s)
	}
}

/* Returns in `twice` the bits that were set before. */
inline publish_or(s, w, m) {
	atomic {
		ALIVE ->
		assert(!retired[s]);
		twice = remote_word[AT(s, w)] & m;
		remote_word[AT(s, w)] = remote_word[AT(s, w)] | m
	}
	if
	:: twice == 0
	:: else ->
		/* Our bits are still counted: the slab cannot go away under our hands. Only the
		 * collector lowers remote_count; see BUG_PUBLISHER_SUBTRACTS for the reason. */
		atomic {
			ALIVE ->
			assert(!retired[s]);
			reports++;
#ifdef BUG_PUBLISHER_SUBTRACTS
			remote_count[s] = remote_count[s] - BITS(twice);
			TOKEN_IS_SOUND(s);
#else
			remote_dups[s] = remote_dups[s] + BITS(twice);
#endif
			twice = 0
		}
	fi
}

inline publish_push(s) {
	if
	:: moved ->
		atomic { ALIVE -> assert(!retired[s]); to = slab_heap[s]; moved = 0 }
		pending_push(to, s);
		to = 0
	:: else
	fi
}

/* hak_remote_publish. */
inline remote_publish(s, w, m) {
#ifdef BUG_OR_BEFORE_COUNT
	publish_or(s, w, m);
	publish_add(s, BITS(m));
	publish_push(s)
#else
	publish_add(s, BITS(m));
#ifdef PUSH_BEFORE_OR
	publish_push(s);
	publish_or(s, w, m)
#else
	publish_or(s, w, m);
	publish_push(s)
#endif
#endif
#ifdef FORK
	atomic { ALIVE -> END }
#endif
}

/* hak_slab_give_word, of the blocks in `taken`; who calls it holds the slab's heap. */
inline give(s, w) {
	assert(holder[slab_heap[s]] == me && !retired[s]);
#ifdef DOUBLE_FREE
	reports = reports + BITS(taken & free_word[AT(s, w)]);
	taken = taken & ~free_word[AT(s, w)];
#endif
	assert((taken & free_word[AT(s, w)]) == 0);     /* no block comes home twice */
	free_word[AT(s, w)] = free_word[AT(s, w)] | taken;
	used[s] = used[s] - BITS(taken);
	assert(used[s] >= 0);
	taken = 0
}

/* One word of a collection: exchange with 0, merge. The merge touches what only the holder
 * touches, so it may share a step with the exchange; the first assertion is the licence. */
inline collect_word(s, w) {
	atomic {
		ALIVE ->
		taken = remote_word[AT(s, w)];
		remote_word[AT(s, w)] = 0;
		count = count + BITS(taken);
#ifdef BUG_FLIGHT_IS_NOT_USED
		used[s] = used[s] + BITS(taken);
#endif
		give(s, w)
	}
}

/* hak_flush: home under the heap's lock, if it is free and still the slab's own. */
inline flush(s, w, m) {
	atomic { ALIVE -> assert(!retired[s]); to = slab_heap[s] }
	atomic {
		ALIVE ->
		if
		:: holder[to] == NOBODY && IS_WHOLE(to) -> holder[to] = me; has = 1
		:: else -> to = 0
		fi
	}
	if
	:: has ->
		atomic {
			ALIVE ->
#ifndef BUG_NO_SECOND_LOOK
			has = (slab_heap[s] == to);
#endif
			if
			:: has ->
				taken = m;
				give(s, w)
			:: else
			fi
		}
		atomic { ALIVE -> holder[to] = NOBODY; to = 0 }
	:: else
	fi;
	if
	:: !has -> remote_publish(s, w, m)
	:: else
	fi;
	has = 0
}

/* hak_remote_collect. Needs the token of s. */
inline remote_collect(s) {
	collect_word(s, 0);
#if WORDS == 2
	collect_word(s, 1);
#endif
#ifdef DOUBLE_FREE
	atomic { ALIVE -> count = count + remote_dups[s]; remote_dups[s] = 0 }
#endif
	atomic {
		ALIVE ->
		remote_count[s] = remote_count[s] - count;
		count = 0;
		if
		:: remote_count[s] == 0 -> hands[s]--; to = NOBODY
#ifdef BUG_NO_REQUEUE
		:: else -> hands[s]--; to = NOBODY
#else
		:: else -> to = slab_heap[s]
#endif
		fi;
		TOKEN_IS_SOUND(s)
	}
	if
	:: to != NOBODY -> pending_push(to, s)
	:: else
	fi;
	to = 0
}

/* hak_heap_collect: hak_pending_take_all and one pass over what it took. A slab that is re-queued
 * waits for the next one: a publisher stopped between add and OR must not make us spin. */
inline pending_drain(h) {
	atomic { ALIVE -> assert(holder[h] == me); rest = pending[h]; pending[h] = 0 }
	do
	:: atomic { ALIVE && rest != 0 ->
		mine = rest - 1;
		LINK_IS_STACKED(mine);
		on_stack[mine]--;
		hands[mine]++;
#ifdef BUG_LINK_READ_LATE
	   }
#else
		rest = link[mine];              /* before the slab can be pushed again */
		assert(rest != mine + 1)        /* a slab behind itself: a list without end */
	   }
#endif
	   if
#ifndef BUG_NO_FORWARD
	   :: slab_heap[mine] != h ->
		atomic { ALIVE -> to = slab_heap[mine] }
		pending_push(to, mine);
		to = 0
#endif
	   :: else -> remote_collect(mine)
	   fi;
#ifdef BUG_LINK_READ_LATE
	   rest = link[mine];
#endif
	   mine = 0
	:: ALIVE && rest == 0 -> break
	od
}

/* A slab without live blocks goes back; a slab with a free block may hand it out again. */
inline slab_use(s) {
	if
	:: skip
	:: ALIVE && slab_heap[s] == my_heap && !retired[s] && used[s] == 0 ->
		atomic {
			ALIVE ->
			if
#ifdef BUG_FLIGHT_IS_NOT_USED
			:: true ->
#else
			:: remote_count[s] == 0 ->
#endif
				assert(remote_word[AT(s, 0)] == 0 && remote_word[AT(s, WORDS - 1)] == 0);
				assert(remote_count[s] == 0);
				retired[s] = 1
			:: else
			fi
		}
#if !defined(DOUBLE_FREE) && !defined(FORK)
	:: atomic {
		ALIVE && slab_heap[s] == my_heap && !retired[s] && !again_spent && (free_word[AT(s, 0)] & 1) ->
		assert(holder[my_heap] == me);
		again_spent = 1;
		free_word[AT(s, 0)] = free_word[AT(s, 0)] & ~1;
		used[s]++;
		again_slab = s; again_word = 0; again_mask = 1
	   }
#endif
	fi
}

/* hak_heap_surrender and hak_heap_receive: both heaps are held. */
inline slab_take(s, from) {
	atomic {
		ALIVE ->
		if
		:: slab_heap[s] == from && !retired[s] -> slab_heap[s] = my_heap
		:: else
		fi
	}
}

/* Slow paths of a thread. */
proctype thief(byte me) {
	byte my_heap, left = ACTIONS;
	byte top, to, rest, mine, taken, count, other;

	do
	:: atomic { ALIVE && left > 0 -> left--;
		if
		:: holder[0] == NOBODY -> my_heap = 0
		:: holder[1] == NOBODY -> my_heap = 1
		fi;
		holder[my_heap] = me;
		other = 1 - my_heap
	   }
	   if
	   :: pending_drain(my_heap);
	      slab_use(0);
#if SLABS == 2
	      slab_use(1)
#endif
	   :: ALIVE && holder[other] != NOBODY
	   :: atomic { ALIVE && holder[other] == NOBODY -> skip
#ifndef BUG_STEAL_WITHOUT_LOCK
		holder[other] = me
#endif
	      }
#ifndef BUG_STEAL_WITHOUT_LOCK
	      pending_drain(other);
#endif
	      slab_take(0, other);
#if SLABS == 2
	      if
	      :: slab_take(1, other)
	      :: skip
	      fi;
#endif
#ifndef BUG_STEAL_WITHOUT_LOCK
	      atomic { ALIVE -> holder[other] = NOBODY };
#endif
	      slab_use(0)
#ifdef BUG_COLLECT_WITHOUT_TOKEN
	   :: atomic { slab_heap[0] == my_heap && !retired[0] && remote_count[0] > 0 -> skip }
	      remote_collect(0)                         /* a refill looks at its own slab */
#endif
	   fi;
	   atomic { ALIVE -> holder[my_heap] = NOBODY; my_heap = 0; other = 0 }
	:: ALIVE && left == 0 -> break
#ifdef FORK
	:: forked -> break
#endif
	od;
end:	atomic { ALIVE -> finished++ }
}

/* What each flusher frees, in order: of slab 0 blocks 0-2 of word 0, of the last slab and word
 * blocks 0-1. In DOUBLE_FREE and FORK block 2 stays in use: the slab outlives the misuse, and the
 * child of a fork frees it. */
proctype flusher(byte me) {
	byte top, to, twice, taken, s, w, m;
	bit moved, has;

	if
#ifdef DOUBLE_FREE
	:: me == 2 -> flush(0, 0, 1); flush(0, 0, 2)
	:: me == 3 -> flush(0, 0, 1); flush(SLABS - 1, WORDS - 1, 3)
#elif defined(FORK)
	:: me == 2 -> flush(0, 0, 1)
	:: me == 3 -> flush(SLABS - 1, WORDS - 1, 1)
#else
	:: me == 2 -> flush(0, 0, 3); flush(SLABS - 1, WORDS - 1, 1)
	:: me == 3 -> flush(SLABS - 1, WORDS - 1, 2); flush(0, 0, 4)
#endif
	fi;
	if
	:: atomic { ALIVE && again_mask != 0 ->
		s = again_slab; w = again_word; m = again_mask;
		again_slab = 0; again_word = 0; again_mask = 0 }
	   flush(s, w, m);
	   s = 0; w = 0; m = 0
	:: ALIVE
	fi;
end:	atomic { ALIVE -> finished++ }
}

#define ALL_FREED(s, w, all) \
	(free_word[AT(s, w)] | ((again_slab == (s) && again_word == (w)) -> again_mask : 0)) == (all)

/* The child of a fork has the publishers' memory but not the publishers: a count may have no bits,
 * a token no hand, a taken list no reader. Stacks and counts are made anew from the bits, for slabs
 * of heaps that are whole. */
inline slab_repair(s) {
	hands[s] = 0;
	on_stack[s] = 0;
	if
	:: IS_WHOLE(slab_heap[s]) ->
		remote_count[s] = BITS(remote_word[AT(s, 0)]);
		remote_dups[s] = 0;
		if
		:: remote_count[s] > 0 ->
			link[s] = pending[slab_heap[s]];
			pending[slab_heap[s]] = s + 1;
			on_stack[s] = 1
		:: else
		fi
	:: else -> hands[s] = remote_count[s] > 0       /* for ever in a hand that is gone */
	fi
}

#ifdef FORK
#ifdef BUG_NO_CHILD_REPAIR
#define MAY_BE_TORN false
#elif defined(BUG_LOST_HEAP_HAS_NO_TOKENS)
#define MAY_BE_TORN (under_way != 0)
#else
#define MAY_BE_TORN (under_way != 0 || lost[0] || lost[1])
#endif

inline child_repair() {
	d_step {
		lost[0] = holder[0] != NOBODY;
		lost[1] = holder[1] != NOBODY;
		holder[0] = NOBODY;
		holder[1] = NOBODY;
		if
		:: MAY_BE_TORN ->
			pending[0] = 0;
			pending[1] = 0;
			slab_repair(0);
			slab_repair(1)
		:: else -> NO_HAND(0); NO_HAND(1)
		fi;
		under_way = 0
	}
}
#endif

init {
	byte me = LAST, pass, h, top, to, rest, mine, taken, count, twice;
	bit moved, has;

	atomic {
		used[0] = 3;
#if SLABS == 2
		slab_heap[1] = 1;
		used[1] = 2;
#else
		used[0] = 5;
#endif
		run thief(0);
		run thief(1);
		run flusher(2);
		run flusher(3)
	}
#ifdef FORK
	/* Any moment may be the last. */
	d_step { true -> forked = 1 }
	child_repair();
	flush(0, 0, 4);
#else
	finished == 4;
#endif

	/* Quiet: every token is on a stack, none in a hand. */
	d_step {
		if
		:: IS_WHOLE(slab_heap[0]) -> NO_HAND(0); TOKEN_IS_SOUND(0)
		:: else
		fi;
		if
		:: IS_WHOLE(slab_heap[SLABS - 1]) -> NO_HAND(SLABS - 1); TOKEN_IS_SOUND(SLABS - 1)
		:: else
		fi
	}
	/* The last one enters both heaps twice: a slab may be forwarded, then collected. */
	do
	:: pass < 2 ->
		h = 0;
		do
		:: h < HEAPS && IS_WHOLE(h) ->
			holder[h] = me;
			pending_drain(h);
			holder[h] = NOBODY;
			h++
		:: h < HEAPS && !IS_WHOLE(h) -> h++
		:: h == HEAPS -> break
		od;
		pass++
	:: else -> break
	od;

#ifdef FORK
	/* What was on its way in a dead flusher's hand is lost; what has a bit is not. */
	if
	:: IS_WHOLE(slab_heap[0]) ->
		assert(remote_count[0] == 0 && remote_word[0] == 0);
		assert(free_word[0] & 4);
		assert(used[0] == 3 - BITS(free_word[0]))
	:: else
	fi;
	if
	:: IS_WHOLE(slab_heap[1]) -> assert(remote_count[1] == 0 && remote_word[1] == 0)
	:: else
	fi
#else
	/* Nothing is lost: all freed blocks are in the free bitmap, all counts and stacks are empty. */
	assert(pending[0] == 0 && pending[1] == 0);
	assert(holder[0] == NOBODY && holder[1] == NOBODY);
	assert(remote_count[0] == 0 && remote_word[0] == 0 && remote_dups[0] == 0);
	assert(remote_count[SLABS - 1] == 0 && remote_word[SLABS * WORDS - 1] == 0);
	assert(ALL_FREED(SLABS - 1, WORDS - 1, 3));
#ifdef DOUBLE_FREE
	assert(ALL_FREED(0, 0, 3) && used[0] == 1);
	assert(reports == 1)
#else
	assert(ALL_FREED(0, 0, 7));
	assert(used[0] == ((again_mask != 0 && again_slab == 0) -> 1 : 0));
	assert(reports == 0)
#endif
#endif
}
