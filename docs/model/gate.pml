/* SPDX-License-Identifier: MIT */
/* docs/model/gate.pml - how a stranger enters a heap whose owner pays no atomic instruction.
 *
 * Owns        the protocol behind hak_gate_enter and hak_gate_leave (owner), hak_gate_mark,
 *             hak_gate_barrier, hak_gate_await and hak_gate_release (stranger).
 * Invariants  the owner's and a stranger's work exclude each other, and each sees all that the
 *             one before it stored; no schedule leaves a thread waiting for ever.
 * Threads     one owner, interrupted by signal handlers; two strangers.
 * Checked by  tests/model/spin/run.sh
 *
 * Memory      x86-TSO, written out: each thread's plain stores enter a buffer of its own (first in,
 *             first out) and reach memory later, by themselves or by a barrier. Loads are served by
 *             the thread's own buffer first.
 * Scenarios   OWNER_MAY_STOP  the owner stops for good inside the gate
 *             ATOMIC_BOTH_SIDES  no membarrier: the owner's gate=1 is an exchange
 *             STRANGER_MAY_STOP  a stranger stops for good inside its claim: the owner hangs, a
 *             limit that is known; with OWNER_WAIT_BOUNDED it does not
 *             OWNER_WAIT_BOUNDED  the owner gives up waiting and serves itself elsewhere
 * Mutants     BUG_*: each takes one rule away; a search must find the harm.
 */

#ifndef ROUNDS
#define ROUNDS 3                /* slow paths of the owner */
#endif
#ifndef CLAIMS
#define CLAIMS 2                /* claims tried by each stranger */
#endif
#define POLLS 2                 /* the bound of the stranger's wait */
#define OWNER 0
#define DEPTH 4                 /* of a store buffer */

/* Memory. */
bit gate;
bit claimed;
byte heap_version;              /* stands for everything in the heap */

/* Store buffers: {variable, value}. */
mtype = { GATE, CLAIM, HEAP };
chan buffer[3] = [DEPTH] of { mtype, byte };

/* Ghosts. */
byte working;                   /* threads at work in the heap */
byte newest;                    /* the version that was stored last */
byte signals = 1;               /* handlers that may still interrupt the owner */

inline memory_write(variable, value) {
	if
	:: variable == GATE -> gate = value
	:: variable == CLAIM -> claimed = value
	:: variable == HEAP -> heap_version = value
	fi
}

/* A thread whose buffer is full waits, as on the machine. */
#define STORE(who, variable, value) buffer[who]!variable(value)

/* One store reaches memory, at a time of the processor's choice. */
proctype drainer(byte who) {
	mtype variable;
	byte value;
end:	do
	:: d_step { buffer[who]?variable(value) -> memory_write(variable, value); variable = 0; value = 0 }
	od
}

/* A full barrier of thread `who` at this moment; membarrier is this on every thread's processor. */
#define BARRIER(who) empty(buffer[who])

/* The heap is read, changed and written. Old contents here are a lost update in the allocator. */
inline work(who) {
	atomic {
		working++;
		assert(working == 1);
		if
		:: buffer[who]??[HEAP, eval(newest)]             /* our own store, still in the buffer */
		:: else -> assert(heap_version == newest)
		fi
	}
	atomic {
		STORE(who, HEAP, newest + 1);
		newest++;
		working--
	}
}

#ifdef ATOMIC_BOTH_SIDES
#define GATE_CLOSE atomic { BARRIER(OWNER) -> gate = 1; mine = 1 }
#else
#define GATE_CLOSE atomic { STORE(OWNER, GATE, 1) -> mine = 1 }
#endif

/* hak_gate_enter: `inside` tells whether the owner has the heap; `mine` is what the owner itself
 * last stored to gate, which is what its own load of gate returns. */
inline gate_enter() {
	do
	:: true ->
		GATE_CLOSE;
		signal_point();
		if
		:: atomic { claimed == 0 -> inside = 1; break }
		:: atomic { claimed == 1 -> STORE(OWNER, GATE, 0); mine = 0 }
		fi;
		signal_point();
#ifdef BUG_ENTER_AFTER_WAIT
		claimed == 0;
		atomic { STORE(OWNER, GATE, 1); mine = 1; inside = 1; break }
#else
		if
		:: claimed == 0
#ifdef OWNER_WAIT_BOUNDED
		:: atomic { claimed == 1 -> inside = 0; break }
#endif
		fi
#endif
	od
}

inline gate_leave() {
	atomic { STORE(OWNER, GATE, 0); mine = 0; inside = 0 }
}

/* A handler that allocates, on the owner's stack: it meets the gate as its thread left it. */
inline signal_point() {
	if
	:: true
	:: atomic { signals > 0 -> signals-- }
	   if
#ifndef BUG_HANDLER_ENTERS
	   :: mine == 1                         /* nested: served from elsewhere */
	   :: mine == 0 ->
#else
	   :: true ->
#endif
		GATE_CLOSE;
		if
		:: atomic { claimed == 0 -> skip }
		   work(OWNER)
		:: claimed == 1                  /* a handler does not wait, it goes elsewhere */
		fi;
		atomic { STORE(OWNER, GATE, 0); mine = 0 }
	   fi
	fi
}

proctype owner() {
	byte left = ROUNDS;
	bit mine, inside;

	do
	:: left > 0 ->
		left--;
		gate_enter();
		if
		:: inside ->
			signal_point();
#ifdef OWNER_MAY_STOP
			if
			:: true
			:: goto end
			fi;
#endif
			work(OWNER);
			signal_point();
			gate_leave()
		:: else
		fi
	:: else -> break
	od;
end:	false
}

proctype stranger(byte who) {
	byte left = CLAIMS, polls;

	do
	:: left > 0 ->
		left--;
		if                                              /* hak_gate_mark */
		:: atomic { BARRIER(who) && claimed == 0 -> claimed = 1 }
		:: atomic { BARRIER(who) && claimed == 1 -> goto next }
		fi;
#ifndef BUG_NO_MEMBARRIER
#ifndef ATOMIC_BOTH_SIDES
		BARRIER(OWNER);                                 /* hak_gate_barrier */
#endif
#endif
		polls = POLLS;                                  /* hak_gate_await */
		do
		:: atomic { gate == 0 -> polls = 0 }
			work(who);
#ifdef STRANGER_MAY_STOP
			if
			:: true
			:: goto end
			fi;
#endif
			break
#ifndef BUG_UNBOUNDED_WAIT
		:: atomic { gate == 1 && polls > 0 -> polls-- }
		:: gate == 1 && polls == 0 -> break                /* the heap is skipped */
#endif
		od;
#ifdef BUG_RELEASE_OVERTAKES
		claimed = 0;                                       /* a store that passes the work's */
#else
		STORE(who, CLAIM, 0);
#endif
next:		skip
	:: else -> break
	od;
end:	false
}

init {
	atomic {
		run owner();
		run stranger(1);
		run stranger(2);
		run drainer(0);
		run drainer(1);
		run drainer(2)
	}
}
