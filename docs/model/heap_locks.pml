/* SPDX-License-Identifier: MIT */
/* docs/model/heap_locks.pml - a heap is a lock: who may wait for one, and what handlers do.
 *
 * Owns        the protocol behind hak_heap_enter, hak_heap_try_enter, hak_heap_leave and hak_flush.
 * Invariants  one thread at a time works in a heap; no schedule leaves a request waiting for ever,
 *             though no wait here has a time-out; a slow path that interrupted a holder, and one
 *             that has a heap, wait for no heap; a flush never waits; no batch is lost.
 * Threads     two, each interrupted by handlers of two levels, which allocate and free as well.
 * Checked by  tests/model/spin/run.sh
 *
 * Memory      every store is seen at once. A handler sees its thread's stores in program order on
 *             every machine, so the order of the note matters to the compiler only; what is
 *             published is changed by atomic read-modify-writes; word and lower lock are acquire
 *             and release.
 * Note        `noted` counts the heaps that this thread has or is about to take. It rises before
 *             the word is taken and falls after it is released: a handler may see it early or
 *             late, never miss a lock that it would wait for.
 * Left out    slabs (remote.pml) and caches; how long a waiter spins; left locks (lost_lock.pml);
 *             fork (heap_fork.pml); which heap is near. The lower locks (the table's, the pool's,
 *             those of spans and region) are one: among themselves they are taken in rising rank.
 *             Steps that no other thread and no handler can tell apart are one.
 * Mutants     BUG_*: each takes one rule away; a search must find the harm.
 */

#ifndef REQUESTS
#define REQUESTS 1              /* of each thread, besides its handlers' */
#endif
#ifndef SIGNALS
#define SIGNALS 2               /* in all, to either thread */
#endif
#ifndef HEAPS_MOST
#define HEAPS_MOST 2
#endif
#define LEVELS 3
#define NONE 9

byte heaps = 1;                 /* changed under the lower lock */
byte word[2];                   /* of a heap; 0: free; else the holder's thread + 1 */
byte published[2];              /* batches that wait for a heap's next holder */
byte lower;                     /* as word */

byte level[2];                  /* of the handler that runs; 0: the thread itself */
byte noted[2];                  /* heaps that the thread has or is about to take */
bit blocked[2];                 /* signals */
byte signals = SIGNALS;

/* Ghosts. */
byte working[2];                /* threads at work in the heap */
byte away;                      /* batches that were freed and are not home yet */
byte finished;

/* HARM_ONLY: mutants are caught by a hang, by two in one heap or by a lost batch, not by the
 * model's own rule. */
#ifdef HARM_ONLY
#define RULE(holds) skip
#else
#define RULE(holds) assert(holds)
#endif

/* hak_heap_try_enter. */
inline heap_try(x) {
#ifndef BUG_NOTE_AFTER_TAKE
	noted[t]++;
#endif
	atomic {
		if
#ifdef BUG_NOTE_AFTER_TAKE
		:: word[x] == 0 -> word[x] = t + 1; has = 1
		:: else -> has = 0
#else
		:: word[x] == 0 -> word[x] = t + 1; has = 1
		:: else -> has = 0; noted[t]--
#endif
		fi
	}
#ifdef BUG_NOTE_AFTER_TAKE
	atomic { noted[t] = noted[t] + has }
#endif
}

/* hak_heap_enter_within, of unlimited patience. */
inline heap_wait(x) {
	RULE(noted[t] == 0);
#ifndef BUG_NOTE_AFTER_TAKE
	noted[t]++;
#endif
	atomic { word[x] == 0 -> word[x] = t + 1; has = 1 }
#ifdef BUG_NOTE_AFTER_TAKE
	noted[t]++
#endif
}

/* What was published is taken first. */
inline work(x) {
	atomic {
		working[x]++;
		assert(working[x] == 1);
		taken = published[x];
#ifndef BUG_PLAIN_EMPTY
		published[x] = 0
#endif
	}
}

inline work_end(x) {
#ifdef BUG_PLAIN_EMPTY
	published[x] = 0;
#endif
	away = away - taken;
	taken = 0;
	working[x]--
}

/* Work ends, then hak_heap_leave. */
inline heap_leave(x) {
#ifdef BUG_FORGET_BEFORE_RELEASE
	atomic { work_end(x); noted[t]-- }
	word[x] = 0
#else
	atomic { work_end(x); word[x] = 0 }
	noted[t]--
#endif
}

/* Signals are blocked meanwhile, or a handler inside is refused: the same here. */
inline lower_lock() {
#ifdef BUG_LOWER_OPEN
	atomic { lower == 0 -> lower = t + 1 }
#else
	atomic { lower == 0 -> blocked[t] = 1; lower = t + 1 }
#endif
}

/* One more heap, whose maker has it before others see it: nobody can take it away. */
inline heap_make() {
	atomic {
		if
		:: heaps < HEAPS_MOST ->
			h = heaps;
			assert(word[h] == 0);
			noted[t]++;
			word[h] = t + 1;
			heaps++;
			has = 1
		:: else
		fi;
		lower = 0;
		blocked[t] = 0
	}
}

/* hak_heap_enter: all are tried, then one more is made, and only a thread that has none waits. Who
 * may not wait does not wait for the table either. */
inline heap_find() {
	do
	:: atomic { !has && tries > 0 -> tries-- }
		heap_try(h);
		atomic {
			if
			:: !has -> h = (h + 1) % heaps
			:: else -> break
			fi
		}
	:: atomic { tries == 0 && heaps < HEAPS_MOST }
		if
		:: atomic { is_nested && lower != 0 -> h = NONE; break }
		:: lower_lock();
			heap_make();
			atomic {
				if
				:: has -> break
				:: else -> tries = heaps        /* somebody else made it */
				fi
			}
		fi
#ifndef BUG_NESTED_WAITS
	:: atomic { tries == 0 && heaps == HEAPS_MOST && is_nested -> h = NONE; break }
	:: atomic { tries == 0 && heaps == HEAPS_MOST && !is_nested }
#else
	:: atomic { tries == 0 && heaps == HEAPS_MOST }
#endif
		heap_wait(h);
		break
	od
}

/* hak_refill: from the heap, from another one, from below. ENOMEM if no heap is found. */
inline allocate() {
	heap_find();
	if
	:: atomic { h != NONE -> has = 0; tries = 0 }
#ifndef BUG_WORK_OUTSIDE
		work(h);
#endif
		if
		:: atomic { true -> skip }
		:: lower_lock();
		   atomic { lower = 0; blocked[t] = 0 }
		:: atomic { heaps > 1 -> before = taken; taken = 0 }
#ifdef BUG_SECOND_WAITS
			heap_wait(1 - h);
#else
			heap_try(1 - h);
#endif
			if
			:: atomic { has -> has = 0 }
				work(1 - h);
				heap_leave(1 - h)
			:: atomic { !has -> skip }
			fi;
			atomic { taken = before; before = 0 }
		fi;
#ifdef BUG_WORK_OUTSIDE
		atomic { word[h] = 0; noted[t]-- }
		work(h);
		atomic { work_end(h) }
#else
		heap_leave(h)
#endif
	:: atomic { h == NONE -> tries = 0 }
	fi
}

/* hak_flush, of one batch of heap h: under its lock, else it is published. */
inline release() {
	atomic { tries = 0 }
#ifdef BUG_FLUSH_WAITS
	heap_wait(h);
#else
	heap_try(h);
#endif
	if
	:: atomic { !has -> published[h]++ }
	:: atomic { has -> has = 0 }
		work(h);
		atomic { taken++ }
		heap_leave(h)
	fi
}

/* A level of a thread: it takes steps while no handler of a higher level runs. */
proctype code() provided (level[(_pid - 1) / LEVELS] == (_pid - 1) % LEVELS) {
	byte t = (_pid - 1) / LEVELS, mine = (_pid - 1) % LEVELS, left = REQUESTS;
	byte h, tries, taken, before;
	bit is_nested, has;

end:	do
	:: atomic { left > 0 ->
		is_nested = noted[t] != 0;
		tries = heaps;
		if
		:: h = 0
		:: heaps > 1 -> h = 1
		fi;
		if
		:: goto allocates
		:: away++; goto releases
		fi
	   }
allocates:
	   allocate();
	   goto next;
releases:
	   release();
next:	   atomic {
		h = 0;
		is_nested = 0;
		left = left - (mine == 0);
		level[t] = level[t] - (mine != 0)
	   }
	:: atomic { left == 0 -> finished++; break }
	od
}

/* A thread that has finished is interrupted no more. */
proctype kernel() {
end:	do
	:: atomic { signals > 0 && finished < 2 && level[0] < LEVELS - 1 && !blocked[0] ->
		signals--; level[0]++ }
	:: atomic { signals > 0 && finished < 2 && level[1] < LEVELS - 1 && !blocked[1] ->
		signals--; level[1]++ }
	od
}

init {
	atomic {
		run code(); run code(); run code();
		run code(); run code(); run code();
		run kernel()
	}
	finished == 2 && level[0] == 0 && level[1] == 0;
	/* Each heap's next holder takes what is published. */
	d_step {
		assert(word[0] == 0 && word[1] == 0 && lower == 0);
		assert(noted[0] == 0 && noted[1] == 0);
		assert(away == published[0] + published[1])
	}
}
