/* SPDX-License-Identifier: MIT */
/* docs/model/lost_lock.pml - slow paths that are left by a jump, and the heaps that they were in.
 *
 * Owns        the protocol behind hak_heaps_mend and the notes of struct held_heaps.
 * Invariants  a heap is lost only if who was inside has left it by a jump; nobody works in a lost
 *             one, or in one that is half changed; no note is forgotten while its lock is had, none
 *             is left over; no other thread waits for ever.
 * Threads     one that is interrupted by handlers of two levels, any of which may jump to what it
 *             interrupted; and one without handlers. Two heaps.
 * Checked by  tests/model/spin/run.sh
 *
 * Left        What a thread holds, or is about to take, is a stack of notes, each with the heap and
 *             with the frame of who wrote it. A slow path that finds notes of a frame that is not
 *             above it looks whether the lock is its thread's: then the heap is lost. Depths stand
 *             for frames: a handler is deeper than all that it interrupted; what was left may have
 *             been at any depth.
 * One word    How many notes there are and the frame of the last one change by one store: between
 *             two stores a handler would find a frame of the past there and take its own thread's
 *             live slow path for a left one. The heap is noted before that store, and again after
 *             it, since a handler before it writes to the same place.
 * Time-out    Who has waited for a while goes elsewhere (one more heap is made): at any time here.
 * Memory      every store is seen at once; a handler sees its thread's stores in program order.
 * Left out    who is nested waits for nothing (heap_locks.pml). A frame that was left may be above
 *             a deeper slow path: it is found later. The end of a thread: all of it is left.
 * Scenario    JUMP_BETWEEN  a handler jumps to one that returns to a slow path below: what it held
 *             may stay locked and never be found lost; all else holds
 * Mutants     BUG_*: each takes one rule away; a search must find the harm.
 */

#ifndef REQUESTS
#define REQUESTS 2              /* of the first thread, besides its handlers' */
#endif
#ifndef OTHER_REQUESTS
#define OTHER_REQUESTS 1
#endif
#ifndef SIGNALS
#define SIGNALS 2
#endif
#define LEVELS 3
#define HEAPS 2
#define NONE 9
#define ME 1                    /* the words of the two threads */
#define OTHER 2

byte word[HEAPS];               /* 0: free */
bit lost[HEAPS];
bit half_changed[HEAPS];

/* The notes of the thread with handlers. */
byte count, frame;              /* one word: how many, and the frame of the last */
byte note_heap[6];
byte note_frame[6];             /* of the note below; BUG_FRAME_*: of this one */

byte level;
hidden byte to;
byte signals = SIGNALS;
byte depth[LEVELS] = 1;         /* of each level's code */
bit blocked;                    /* signals */
bit is_slow[LEVELS];            /* it is inside a slow path */
bit is_left[LEVELS];            /* this slow path has been left */

/* Ghosts. */
byte inside[HEAPS];             /* who will go on there: level + 1, or OTHER_GHOST */
#define OTHER_GHOST 8
bit is_over;
byte finished;

#if defined(BUG_FRAME_APART) || defined(BUG_FRAME_TWICE)
#define LAST_FRAME note_frame[count - 1]
#else
#define LAST_FRAME frame
#endif

#ifdef JUMP_BETWEEN
#define MAY_JUMP_BETWEEN true
#else
#define MAY_JUMP_BETWEEN (!is_slow[0])
#endif

#ifdef BUG_TRIES_NOTED
#define IS_NOTED(x) false
#else
#define IS_NOTED(x) \
	((count > 0 && note_heap[0] == x) || (count > 1 && note_heap[1] == x) || \
	(count > 2 && note_heap[2] == x) || (count > 3 && note_heap[3] == x))
#endif

/* The note's place is `at`. */
inline note(x) {
#if defined(BUG_FRAME_APART)
	atomic { at = count; count++ }
	atomic { note_heap[at] = x; note_frame[at] = depth[mine] }
#elif defined(BUG_FRAME_TWICE)
	atomic { at = count; note_heap[at] = x; note_frame[at] = depth[mine] }
	count = at + 1;
	atomic { note_heap[at] = x; note_frame[at] = depth[mine] }
#else
	atomic { at = count; note_heap[at] = x; note_frame[at] = frame }
	atomic { count = at + 1; frame = depth[mine] }
	note_heap[at] = x
#endif
}

inline forget(place) {
	count = place;
#if !defined(BUG_FRAME_APART) && !defined(BUG_FRAME_TWICE)
	frame = note_frame[count];
	/* What nobody can meet any more. */
	if
	:: mine == 0 -> note_heap[count] = 0; note_frame[count] = 0
	:: else
	fi
#endif
}

/* hak_heap_try_enter. */
inline heap_try(x) {
	if
	:: atomic { IS_NOTED(x) -> has = 0 }
	:: atomic { !IS_NOTED(x) -> skip }
		note(x);
		atomic {
			if
			:: word[x] == 0 -> word[x] = ME; has = 1
			:: else -> has = 0
			fi
		}
		if
#ifndef BUG_LOST_UNSEEN
		:: atomic { has && lost[x] -> word[x] = 0; has = 0 }
			atomic { forget(at); at = 0 }
#endif
		:: atomic { !has -> forget(at); at = 0 }
		:: atomic { else -> inside[x] = mine + 1 }
		fi
	fi
}

inline work(x) {
	atomic { assert(!half_changed[x]); half_changed[x] = 1 }
	half_changed[x] = 0
}

inline heap_leave(x, place) {
	atomic {
		assert(word[x] == ME && inside[x] == mine + 1);
		assert(count > place);
		word[x] = 0;
		inside[x] = 0
	}
	atomic { forget(place); place = 0 }
}

#ifdef BUG_NO_MEND
#define IS_LEFT false
#else
#define IS_LEFT (count > 0 && (is_over || LAST_FRAME >= depth[mine]))
#endif

/* hak_heaps_mend, with signals blocked. */
inline mend() {
	do
#ifndef BUG_MEND_INTERRUPTED
	:: atomic { IS_LEFT && !blocked -> blocked = 1 }
	:: atomic { IS_LEFT && blocked -> gone = note_heap[count - 1];
#else
	:: atomic { IS_LEFT -> gone = note_heap[count - 1];
#endif
		if
#ifdef BUG_LOSES_OTHERS
		:: word[gone] != 0 ->
#else
		:: word[gone] == ME ->
#endif
			assert(inside[gone] == 0);
#ifndef BUG_NOT_LOST
			lost[gone] = 1;
#endif
		:: else -> gone = NONE
		fi
	   }
	   if
	   :: atomic { gone != NONE -> word[gone] = 0; gone = NONE }
	   :: atomic { gone == NONE -> skip }
	   fi;
	   atomic { assert(count > 0); forget(count - 1) }
	:: atomic { !IS_LEFT -> blocked = 0; break }
	od
}

/* A refill: the heap h, and perhaps the other one to take a slab from. Waits for none here. */
inline slow_path() {
	mend();
	heap_try(h);
	if
	:: atomic { has -> has = 0; first = at; at = 0 }
		if
		:: atomic { true -> skip }
		:: atomic { mine == 0 -> skip }
			heap_try(1 - h);
			if
			:: atomic { has -> has = 0 }
				work(1 - h);
				heap_leave(1 - h, at)
			:: atomic { !has -> skip }
			fi
		fi;
		work(h);
		heap_leave(h, first)
	:: atomic { !has -> skip }
	fi;
	is_slow[mine] = 0
}

/* To the code at level `to`: what it was in, and what is between, is left. */
inline jump(target) {
	to = target;
	depth[mine] = 1;
	depth[to] = (to == 0 -> 1 : depth[to - 1] + 1);
	k = target;
	do
	:: k < mine ->
		if
		:: is_slow[k] ->
			is_left[k] = 1;
			is_slow[k] = 0;
			if
			:: inside[0] == k + 1 -> inside[0] = 0
			:: else
			fi;
			if
			:: inside[1] == k + 1 -> inside[1] = 0
			:: else
			fi
		:: else
		fi;
		k++
	:: else -> break
	od;
	k = 0
}

proctype code(byte mine) provided (level == _pid - 1) {
	byte left = REQUESTS, h, at, first, k, gone = NONE;
	bit has;

next:	if
	:: atomic { left > 0 || mine > 0 ->
		left = left - (mine == 0);
		if
		:: h = 0
		:: mine > 0 -> h = 1
		fi;
		if
		:: true
		:: depth[mine] = depth[mine] + (mine == 0 -> 2 : 1)
		fi;
		is_slow[mine] = 1
	   }
	:: atomic { left == 0 && mine == 0 -> is_over = 1 }
		mend();
		assert(count == 0);
#ifndef JUMP_BETWEEN
		/* Each lock is free or the other's. */
		assert(word[0] != ME && word[1] != ME);
#endif
		goto over
	:: atomic { mine == 0 -> is_over = 1 }          /* it does nothing more, for ever */
		goto over
	fi;
	{ slow_path() } unless { atomic { is_left[mine] -> is_left[mine] = 0 } };
	atomic {
		h = 0; at = 0; first = 0; has = 0; gone = NONE;
		if
		:: mine == 0 -> depth[0] = 1
		:: mine > 0 -> to = mine - 1; depth[mine] = 1
		:: mine > 0 -> jump(0)
		:: mine > 1 && MAY_JUMP_BETWEEN -> jump(1)
		fi;
		level = to
	}
	goto next;
over:	finished++
}

proctype kernel() {
	do
	:: atomic { signals > 0 && level < LEVELS - 1 && !is_over && !blocked ->
		signals--;
		depth[level + 1] = depth[level] + 1;
		level++
	   }
	od
}

proctype other() {
	byte left = OTHER_REQUESTS, h;

	do
	:: left > 0 ->
		atomic {
			left--;
			if
			:: h = 0
			:: h = 1
			fi
		}
		if
		:: atomic { word[h] == 0 -> word[h] = OTHER }
			if
#ifndef BUG_LOST_UNSEEN
			:: lost[h] -> word[h] = 0
#endif
			:: atomic { else -> inside[h] = OTHER_GHOST }
				work(h);
				atomic { assert(word[h] == OTHER); word[h] = 0; inside[h] = 0 }
			fi
#ifndef BUG_NO_TIME_OUT
		:: word[h] != 0                 /* and elsewhere */
#endif
		fi
	:: else -> break
	od;
	finished++
}

init {
	atomic {
		run code(0);
		run code(1);
		run code(2);
		run kernel();
		run other()
	}
	/* Code that was left stands still; nothing else does (pan -E). */
	timeout -> assert(finished == 2)
}
