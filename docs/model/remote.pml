/* SPDX-License-Identifier: MIT */
/* docs/model/remote.pml - blocks freed by threads that do not own their slab: the token rule.
 *
 * Owns        the protocol behind hak_remote_publish, hak_remote_collect, hak_pending_push,
 *             hak_pending_take_all, hak_heap_collect, hak_heap_park, hak_heap_adopt,
 *             hak_heap_surrender and hak_heap_receive.
 * Invariants  remote_count > 0 exactly while the slab is on one pending stack or in one hand;
 *             checked in every state where either side changes, not only at the end.
 * Threads     two publishers; two heap threads that drain, retire, park, adopt and take; a tick
 *             that runs when all of them are done.
 * Checked by  tests/model/spin/run.sh
 *
 * Scenarios   (default) two slabs of one word   ONE_SLAB  one slab of two words
 *             DOUBLE_FREE  both publishers free one block   PUSH_BEFORE_OR  (c) before (b)
 *             FORK  publishers and heap threads vanish at any step; the child repairs (pan -E)
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
#define NONE 9                  /* no heap */
#define TICK 2                  /* the id of the tick as a holder of heaps; 0 and 1: heap threads */
#ifndef ACTIONS
#define ACTIONS 2               /* of the second heap thread; the first does one more */
#endif
#define BITS(x) (((x) & 1) + (((x) >> 1) & 1) + (((x) >> 2) & 1))

#define ACTIVE 0
#define PARKED 1
#define CLAIMED 2

/* The slab record. Indices: s for slabs, AT(s, w) for words, h for heaps. */
#define AT(s, w) ((s) * WORDS + (w))
byte slab_heap[SLABS];          /* atomic; changed only by who holds the heap it names */
byte remote_word[SLABS * WORDS];/* atomic: freed by strangers, not collected */
short remote_count[SLABS];      /* atomic */
byte remote_dups[SLABS];        /* atomic: counted by a publisher, but its bit was there already */
byte link[SLABS];               /* next slab of the pending stack + 1; 0 ends it */
byte free_word[SLABS * WORDS];  /* plain: holder of slab_heap only */
short used[SLABS];              /* plain: holder of slab_heap only */
bit retired[SLABS];             /* plain */

/* The heap record; never freed. */
byte pending[HEAPS];            /* atomic: top slab + 1 */
byte state[HEAPS];              /* atomic */
bit vacant_not_empty[HEAPS];    /* atomic hint: the tick looks at parked heaps with this bit */

/* One block handed out again after it was collected: it returns by a publisher. */
byte again_slab, again_word, again_mask;
bit again_spent;

/* Ghosts: for assertions only, nothing acts on them. */
byte hands[SLABS];              /* threads that may push or collect this slab */
byte on_stack[SLABS];           /* linked into a stack, or into the untouched part of a taken one */
byte holder[HEAPS];             /* who holds the heap: exclusive */
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
	od;
	/* The state is read after the push: one of us and the parking thread sees the other. */
	atomic {
		ALIVE ->
		if
		:: state[h] == PARKED -> vacant_not_empty[h] = 1
		:: else
		fi
	}
}

inline publish_add(s, k) {
	atomic {
		ALIVE ->
		assert(!retired[s]);
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

/* hak_remote_publish. The caller's table entry is cleared before: `m` is the only copy. */
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
}

/* One word of a collection: exchange with 0, merge. The merge touches what only the holder
 * touches, so it may share a step with the exchange; the first assertion is the licence. */
inline collect_word(s, w) {
	atomic {
		ALIVE ->
		assert(holder[slab_heap[s]] == me && !retired[s]);
		taken = remote_word[AT(s, w)];
		remote_word[AT(s, w)] = 0;
		count = count + BITS(taken);
#ifdef DOUBLE_FREE
		reports = reports + BITS(taken & free_word[AT(s, w)]);
		taken = taken & ~free_word[AT(s, w)];
#endif
		assert((taken & free_word[AT(s, w)]) == 0);     /* no block is collected twice */
		free_word[AT(s, w)] = free_word[AT(s, w)] | taken;
#ifndef BUG_FLIGHT_IS_NOT_USED
		used[s] = used[s] - BITS(taken);
#endif
		assert(used[s] >= 0);
		taken = 0
	}
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
		:: remote_count[s] == 0 -> hands[s]--; to = NONE
#ifdef BUG_NO_REQUEUE
		:: else -> hands[s]--; to = NONE
#else
		:: else -> to = slab_heap[s]
#endif
		fi;
		TOKEN_IS_SOUND(s)
	}
	if
	:: to != NONE -> pending_push(to, s)
	:: else
	fi;
	to = 0
}

/* hak_heap_collect: hak_pending_take_all and one pass over what it took. A slab that is re-queued
 * waits for the next pass: a publisher stopped between add and OR must not make us spin. */
inline pending_drain(h) {
	atomic { ALIVE -> vacant_not_empty[h] = 0 }
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

inline heap_look_back(h) {
	atomic {
		ALIVE ->
		if
		:: pending[h] != 0 -> vacant_not_empty[h] = 1
		:: else
		fi
	}
}

/* The end of hak_heap_park and of a claim: the heap goes to whoever comes, then a look back for
 * the tick's hint. The look must not pass the store: an exchange, not a release store. */
inline heap_leave(h) {
#ifdef BUG_LOOK_BEFORE_PARK
	heap_look_back(h);
#endif
	atomic { ALIVE -> holder[h] = NONE; state[h] = PARKED }
#if !defined(BUG_LOOK_BEFORE_PARK) && !defined(BUG_NO_LOOK_BACK)
	heap_look_back(h)
#endif
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

/* hak_heap_surrender and hak_heap_receive, under the claim of `from`. */
inline slab_take(s, from) {
	atomic {
		ALIVE ->
		if
		:: slab_heap[s] == from && !retired[s] -> slab_heap[s] = my_heap
		:: else
		fi
	}
}

/* A thread with a heap: me is 0 or 1 and starts with the heap of that number. */
proctype heap_thread(byte me) {
	byte my_heap = me, left = ACTIONS + 1 - me;
	byte top, to, rest, mine, taken, count, other;

	do
	:: ALIVE && left > 0 && my_heap != NONE -> left--;
		if
		:: pending_drain(my_heap);                      /* a refill */
		   slab_use(0);
#if SLABS == 2
		   slab_use(1)
#endif
		:: heap_leave(my_heap); my_heap = NONE          /* hak_heap_park: thread exit */
#ifdef BUG_COLLECT_WITHOUT_TOKEN
		:: atomic { slab_heap[0] == my_heap && !retired[0] && remote_count[0] > 0 -> skip }
		   remote_collect(0)                            /* a refill looks at its own slab */
#endif
		:: other = 1 - my_heap;                         /* stage 2: slabs of a parked heap */
		   if
#ifdef BUG_TAKE_WITHOUT_CLAIM
		   :: atomic { state[other] != CLAIMED -> skip }
#else
		   :: atomic { ALIVE && state[other] == PARKED ->
			state[other] = CLAIMED; assert(holder[other] == NONE); holder[other] = me }
		      pending_drain(other);
#endif
		      slab_take(0, other);
#if SLABS == 2
		      if
		      :: slab_take(1, other)
		      :: skip
		      fi;
#endif
#ifndef BUG_TAKE_WITHOUT_CLAIM
		      heap_leave(other)
#endif
		   :: ALIVE && state[other] != PARKED           /* the CAS failed */
		   fi;
		   other = 0
		fi
	:: ALIVE && left > 0 && my_heap == NONE -> left--;        /* a new thread: hak_heap_adopt */
		if
		:: atomic { ALIVE && state[0] == PARKED ->
			state[0] = ACTIVE; assert(holder[0] == NONE); holder[0] = me; my_heap = 0 }
		:: atomic { ALIVE && state[1] == PARKED ->
			state[1] = ACTIVE; assert(holder[1] == NONE); holder[1] = me; my_heap = 1 }
		:: ALIVE && state[0] != PARKED && state[1] != PARKED
		fi
	:: ALIVE && left == 0 -> break
#ifdef FORK
	:: forked -> break
#endif
	od;
	/* A heap that still has its thread refills some day: init does it, as the tick. */
end:	atomic { ALIVE -> if :: my_heap != NONE -> holder[my_heap] = TICK :: else fi; finished++ }
}

/* What each publisher frees, in order: of slab 0 blocks 0-2 of word 0, of the last slab and word
 * blocks 0-1. In DOUBLE_FREE and FORK block 2 stays in use: the slab outlives the misuse, and the
 * child of a fork frees it. */
proctype publisher(byte me) {
	byte top, to, twice, s, w, m;
	bit moved;

	if
#ifdef DOUBLE_FREE
	:: me == 0 -> remote_publish(0, 0, 1); remote_publish(0, 0, 2)
	:: me == 1 -> remote_publish(0, 0, 1); remote_publish(SLABS - 1, WORDS - 1, 3)
#elif defined(FORK)
	:: me == 0 -> remote_publish(0, 0, 1)
	:: me == 1 -> remote_publish(0, 0, 2); remote_publish(SLABS - 1, WORDS - 1, 1)
#else
	:: me == 0 -> remote_publish(0, 0, 3); remote_publish(SLABS - 1, WORDS - 1, 1)
	:: me == 1 -> remote_publish(SLABS - 1, WORDS - 1, 2); remote_publish(0, 0, 4)
#endif
	fi;
	if
	:: atomic { ALIVE && again_mask != 0 ->
		s = again_slab; w = again_word; m = again_mask;
		again_slab = 0; again_word = 0; again_mask = 0 }
	   remote_publish(s, w, m);
	   s = 0; w = 0; m = 0
	:: ALIVE
	fi;
end:	atomic { ALIVE -> finished++ }
}

#define ALL_FREED(s, w, all) \
	(free_word[AT(s, w)] | ((again_slab == (s) && again_word == (w)) -> again_mask : 0)) == (all)

/* The child of a fork has the publishers' memory but not the publishers: a count may have no bits,
 * a token no hand, a taken list no reader. Stacks and counts are made anew from the bits. */
inline slab_repair(s) {
	remote_count[s] = BITS(remote_word[AT(s, 0)]);
	remote_dups[s] = 0;
	hands[s] = 0;
	on_stack[s] = 0;
	if
	:: remote_count[s] > 0 ->
		link[s] = pending[slab_heap[s]];
		pending[slab_heap[s]] = s + 1;
		on_stack[s] = 1
	:: else
	fi
}

inline child_repair() {
	d_step {
		holder[0] = NONE; state[0] = PARKED; vacant_not_empty[0] = 1;
		holder[1] = NONE; state[1] = PARKED; vacant_not_empty[1] = 1;
#ifdef BUG_NO_CHILD_REPAIR
		hands[0] = 0; hands[1] = 0
#else
		pending[0] = 0;
		pending[1] = 0;
		slab_repair(0);
		slab_repair(1)
#endif
	}
}

init {
	byte me = TICK, pass, h, top, to, rest, mine, taken, count, twice;
	bit moved;

	atomic {
		holder[1] = 1;
		used[0] = 3;
#if SLABS == 2
		slab_heap[1] = 1;
		used[1] = 2;
#else
		used[0] = 5;
#endif
		run heap_thread(0);
		run heap_thread(1);
		run publisher(0);
		run publisher(1)
	}
#ifdef FORK
	/* Any moment may be the last. */
	d_step { true -> forked = 1 }
	child_repair();
	remote_publish(0, 0, 4);
#else
	finished == 4;
#endif

	/* Quiet: every token is on a stack, none in a hand. */
	d_step {
		NO_HAND(0);
		TOKEN_IS_SOUND(0);
		NO_HAND(SLABS - 1);
		TOKEN_IS_SOUND(SLABS - 1)
	}
	/* The tick. Three passes: a slab may be forwarded, then collected. A parked heap is visited
	 * only if its hint says so, a heap with a thread always (its next refill). */
	do
	:: pass < 3 ->
		h = 0;
		do
		:: h < HEAPS ->
			if
			:: state[h] == PARKED && vacant_not_empty[h] ->
				atomic { state[h] = CLAIMED; holder[h] = me }
				pending_drain(h);
				heap_leave(h)
			:: state[h] == ACTIVE -> pending_drain(h)
			:: else
			fi;
			h++
		:: else -> break
		od;
		pass++
	:: else -> break
	od;

	/* Nothing is lost: all freed blocks are in the free bitmap, all counts and stacks are empty. */
	assert(pending[0] == 0 && pending[1] == 0);
	assert(state[0] != CLAIMED && state[1] != CLAIMED);
	assert(remote_count[0] == 0 && remote_word[0] == 0 && remote_dups[0] == 0);
	assert(remote_count[SLABS - 1] == 0 && remote_word[SLABS * WORDS - 1] == 0);
#ifdef DOUBLE_FREE
	assert(ALL_FREED(0, 0, 3) && used[0] == 1);
	assert(reports == 1);
#elif defined(FORK)
	/* What was on its way in a dead publisher's hand is lost; what has a bit is not. */
	assert(free_word[0] & 4);
	assert(used[0] == 3 - BITS(free_word[0]));
#else
	assert(ALL_FREED(0, 0, 7));
	assert(used[0] == ((again_mask != 0 && again_slab == 0) -> 1 : 0));
	assert(reports == 0);
#endif
#ifndef FORK
	assert(ALL_FREED(SLABS - 1, WORDS - 1, 3))
#endif
}
