/* SPDX-License-Identifier: MIT */
/* docs/model/cache_drain.pml - bins of processors: pop, push, other slots, and a drain.
 *
 * Owns        the protocol of docs/adr/0025-caches-by-processor.md, without slots of threads.
 * Invariants  no block is served twice, none is lost; every pop is counted once; what works on bins
 *             without a sequence is alone there.
 * Threads     two, on two processors, preempted and moved at any step; a third that drains.
 * Checked by  tests/model/spin/run.sh
 *
 * Sequences   A thread reads its processor's number, the table's entry, the bin, and commits by one
 *             store. The kernel aborts it, before its next step, whenever it was preempted or
 *             moved since it began, and when a fence comes to its processor. So all that is done
 *             on bins through one processor is done one after the other.
 * Drain       empty bins go into the table, under the lock; a fence; then no sequence has the old
 *             ones, nor can one get them: they are emptied without haste, their count is taken, and
 *             they are the next empty ones.
 * Resizing    RESIZE: a bin's slots move, under the lock, which is only tried: the bin is closed by
 *             a sequence that looks whether these are the bins it means, its slots are copied by a
 *             thread that may have moved meanwhile, and it is opened by one plain store. A push
 *             reads top first: of a closed bin it is above no limit, of an open one it comes with
 *             the limit. As in the code, top falls from EMPTY to limit, and is 0 while the
 *             bin is closed.
 * Memory      every store is seen at once: on a processor a sequence sees its own stores, and the
 *             fence is a full barrier on all.
 * Left out    more than one class, batches (a sequence of n slots and one commit: the same),
 *             fork, a fence that fails (what the old bins hold is lost then, and not touched).
 * Mutants     BUG_*: each takes one rule away; a search must find the harm.
 */

#define THREADS 2
#define CPUS 2
#define NOWHERE 9               /* preempted */
#ifdef ONE_SLOT
#define SLOTS 1                 /* of a bin */
#else
#define SLOTS 2
#endif
#define EMPTY (SLOTS + 1)       /* top of an empty bin */
#define LOWEST 1                /* limit of an open one */
#define BLOCKS 2
#ifndef OPERATIONS
#define OPERATIONS 2            /* of the second thread */
#endif
#ifdef RESIZE
#define FIRST_OPERATIONS 1      /* of the first one */
#define PLACES 2                /* for the slots of a bin */
#else
#define FIRST_OPERATIONS 2
#define PLACES 1
#endif
#ifndef DRAINS
#define DRAINS 2
#endif

/* Bins of one class: {top, limit, closed_top, base} are one header. */
#define AREAS 3                 /* one a processor and an empty one */
byte top[AREAS] = EMPTY;
byte limit[AREAS] = LOWEST;
byte closed_top[AREAS];
byte base[AREAS];               /* where the slots are; a part of top and limit in the code */
byte popped[AREAS];
byte slot[AREAS * PLACES * SLOTS];
#define SLOT(a, b, i) slot[((a) * PLACES + (b)) * SLOTS + (i)]

byte entry[CPUS];               /* the table */
bit locked;
byte counted;                   /* pops of bins that were drained */

/* Where a thread's sequence runs; NOWHERE: it was aborted, or there is none. */
byte runs_on[THREADS] = NOWHERE;

/* Ghosts. */
mtype = { HOME, CACHED, LIVE };
mtype block[BLOCKS + 1] = HOME; /* block 0 is none */
byte pops;
byte finished;

/* A step of a sequence, which is not done if it was aborted. */
#define STEP runs_on[me] != NOWHERE
#define ABORTED runs_on[me] == NOWHERE

/* The first step of a sequence, on any processor: another thread's there is preempted, and so
 * aborted. */
inline begin() {
	if
	:: runs_on[me] = 0
	:: runs_on[me] = 1
	fi;
	if
	:: runs_on[1 - me] == runs_on[me] -> runs_on[1 - me] = NOWHERE
	:: else
	fi
}

inline end_sequence() {
	runs_on[me] = NOWHERE;
	a = 0;
	b = 0;
	n = 0;
	most = 0;
	seen = 0
}

/* A thread has one block at most. */
proctype thread(byte me) {
	byte left = (me == 0 -> FIRST_OPERATIONS : OPERATIONS), mine = 2 * me, a, b, n, most, seen;

next:	if
	:: atomic { left == 0 -> finished++; goto end }
	:: atomic { left > 0 && mine == 0 -> left--; goto takes }
	:: atomic { left > 0 && mine != 0 -> left--; goto frees }
#ifdef RESIZE
	:: atomic { left > 0 && !locked -> left--; locked = 1; goto resizes }
#endif
	fi;

takes:	atomic { begin(); a = entry[runs_on[me]] }
	if
	:: atomic { STEP && top[a] > 0 && top[a] < EMPTY -> seen = SLOT(a, base[a], top[a] - 1) }
	:: atomic { STEP && (top[a] == 0 || top[a] == EMPTY) -> end_sequence(); goto refill }
	:: atomic { ABORTED -> end_sequence(); goto takes }
	fi;
	if
	:: atomic { STEP ->
		top[a]++;
		popped[a]++;
		pops++;
		assert(block[seen] == CACHED);
		block[seen] = LIVE;
		mine = seen;
		end_sequence();
		goto next
	   }
	:: atomic { ABORTED -> end_sequence(); goto takes }
	fi;
refill:	atomic {
		if
		:: block[1] == HOME -> block[1] = LIVE; mine = 1
		:: block[1] != HOME && block[2] == HOME -> block[2] = LIVE; mine = 2
		:: else
		fi;
		goto next
	}

frees:	atomic { begin(); a = entry[runs_on[me]] }
	if
#ifdef BUG_LIMIT_FIRST
	:: atomic { STEP -> most = limit[a] }
#else
	:: atomic { STEP -> n = top[a]; b = base[a] }
#endif
	:: atomic { ABORTED -> end_sequence(); goto frees }
	fi;
	if
#ifdef BUG_LIMIT_FIRST
	:: atomic { STEP -> n = top[a]; b = base[a] }
#else
	:: atomic { STEP -> most = limit[a] }
#endif
	:: atomic { ABORTED -> end_sequence(); goto frees }
	fi;
	if
	:: atomic { STEP && n > most -> assert(n - 1 >= LOWEST); SLOT(a, b, n - 2) = mine }
	:: atomic { STEP && n <= most ->
		end_sequence();
		block[mine] = HOME;
		mine = 0;
		goto next
	   }
	:: atomic { ABORTED -> end_sequence(); goto frees }
	fi;
	if
	:: atomic { STEP ->
		top[a]--;
		block[mine] = CACHED;
		mine = 0;
		end_sequence();
		goto next
	   }
	:: atomic { ABORTED -> end_sequence(); goto frees }
	fi;

#ifdef RESIZE
resizes:
	/* Whose bins: those of the processor that it was on a while ago. */
	atomic {
		if
		:: a = entry[0]
		:: a = entry[1]
		fi
	}
	atomic {
#ifndef BUG_CLOSE_OUTSIDE
		begin();
#endif
#if !defined(BUG_CLOSE_OUTSIDE) && !defined(BUG_CLOSE_UNCHECKED)
		if
		:: entry[runs_on[me]] != a || top[a] == 0 ->
			end_sequence();
			locked = 0;
			goto next
		:: else
		fi;
#elif defined(BUG_CLOSE_UNCHECKED)
		if
		:: top[a] == 0 ->
			end_sequence();
			locked = 0;
			goto next
		:: else
		fi;
#endif
		n = top[a];
		closed_top[a] = n;
		top[a] = 0;
		limit[a] = 0;
		runs_on[me] = NOWHERE
	}
#ifdef BUG_OPEN_BEFORE_COPY
	atomic {
		base[a] = 1 - base[a];
		closed_top[a] = 0;
		top[a] = n;
		limit[a] = LOWEST;
		most = 1 - base[a]
	}
	seen = n - 1;
	do
	:: atomic { seen < SLOTS -> SLOT(a, 1 - most, seen) = SLOT(a, most, seen); seen++ }
	:: atomic { seen == SLOTS -> break }
	od;
	atomic { locked = 0; end_sequence(); goto next }
#else
	seen = n - 1;
	do
	:: atomic { seen < SLOTS -> SLOT(a, 1 - base[a], seen) = SLOT(a, base[a], seen); seen++ }
	:: atomic { seen == SLOTS -> break }
	od;
	atomic {
		base[a] = 1 - base[a];
		closed_top[a] = 0;
		top[a] = n;
		limit[a] = LOWEST
	}
	atomic { locked = 0; end_sequence(); goto next }
#endif
#endif
end:	skip
}

/* membarrier: one processor after the other is interrupted. */
inline fence_on(cpu) {
	atomic {
		if
		:: runs_on[0] == cpu -> runs_on[0] = NOWHERE
		:: runs_on[1] == cpu -> runs_on[1] = NOWHERE
		:: else
		fi
	}
}

/* Without a sequence: it must be alone on the bins, which are open. */
inline send_home(area) {
	assert(limit[area] == LOWEST);
	do
	:: atomic { top[area] < EMPTY ->
		seen = SLOT(area, base[area], top[area] - 1);
		assert(block[seen] == CACHED);
		block[seen] = HOME;
		top[area]++;
		seen = 0
	   }
	:: atomic { top[area] == EMPTY ->
		counted = counted + popped[area];
#ifndef BUG_COUNT_KEPT
		popped[area] = 0;
#endif
		base[area] = 0;
		break
	   }
	od
}

proctype drain() {
	byte left = DRAINS, cpu, old, spare = CPUS, seen;

	do
	:: atomic { left > 0 -> left-- }
		atomic {
			if
			:: cpu = 0
			:: cpu = 1
			fi
		}
#ifdef BUG_FENCE_BEFORE_SWAP
		fence_on(0);
		fence_on(1);
#endif
		atomic {
#ifndef BUG_DRAIN_UNLOCKED
			if
			:: locked -> goto next
			:: else
			fi;
#endif
			old = entry[cpu];
			entry[cpu] = spare
		}
#ifdef BUG_WORK_BEFORE_FENCE
		send_home(old);
#endif
#ifndef BUG_FENCE_BEFORE_SWAP
		fence_on(0);
		fence_on(1);
#endif
#ifndef BUG_WORK_BEFORE_FENCE
		send_home(old);
#endif
		spare = old;
next:		atomic { old = 0; cpu = 0 }
	:: left == 0 -> break
	od;
	finished++
}

init {
	byte a, i, found;

	atomic {
		entry[1] = 1;
		/* One block in the first processor's cache, one in the second thread's hand. */
		SLOT(0, 0, SLOTS - 1) = 1; top[0] = SLOTS;
		block[1] = CACHED; block[2] = LIVE;
		run thread(0);
		run thread(1);
		run drain()
	}
	finished == THREADS + 1;
	/* What is cached lies in one slot that a processor reaches. */
	d_step {
		do
		:: a < AREAS ->
			if
			:: entry[0] == a || entry[1] == a ->
				assert(limit[a] == LOWEST && closed_top[a] == 0);
				i = top[a] - 1;
				do
				:: i < SLOTS ->
					assert(block[SLOT(a, base[a], i)] == CACHED);
					assert(!(found & (1 << SLOT(a, base[a], i))));
					found = found | (1 << SLOT(a, base[a], i));
					i++
				:: else -> break
				od
			:: else -> assert(top[a] == EMPTY)
			fi;
			counted = counted + popped[a];
			i = 0;
			a++
		:: else -> break
		od;
		assert((block[1] == CACHED) == ((found >> 1) & 1));
		assert((block[2] == CACHED) == ((found >> 2) & 1));
		assert(counted == pops)
	}
}
