/* SPDX-License-Identifier: MIT */
/* docs/model/gate_pair.pml - two owners that are each other's stranger: gates before claims.
 *
 * Owns        the rule that a thread with a claim never enters its own gate.
 * Invariants  no schedule leaves a thread waiting for ever.
 * Threads     two owners; each works in its heap and enters the other's as a stranger.
 * Checked by  tests/model/spin/run.sh
 *
 * Memory      every store is seen at once: gate.pml has the store buffers.
 * Mutants     BUG_CLAIM_THEN_ENTER  own gate entered while a claim is held
 */

#define ROUNDS 3
#define POLLS 1

bit gate[2];
bit claimed[2];
byte working[2];

inline gate_enter() {
	do
	:: gate[me] = 1;
		if
		:: atomic { claimed[me] == 0 -> break }
		:: claimed[me] == 1 -> gate[me] = 0
		fi;
		claimed[me] == 0
	od
}

inline gate_leave() {
	gate[me] = 0
}

inline work(h) {
	atomic { working[h]++; assert(working[h] == 1) }
	working[h]--
}

/* The other heap, with the bounded wait; `inner` is what is done under the claim. */
inline other_claimed(enters) {
	if
	:: atomic { claimed[1 - me] == 0 -> claimed[1 - me] = 1 }
		polls = POLLS;
		do
		:: atomic { gate[1 - me] == 0 -> polls = 0 }
			work(1 - me);
			if
			:: enters -> gate_enter(); work(me); gate_leave()
			:: else
			fi;
			break
		:: atomic { gate[1 - me] == 1 && polls > 0 -> polls-- }
		:: gate[1 - me] == 1 && polls == 0 -> break
		od;
		claimed[1 - me] = 0
	:: claimed[1 - me] == 1
	fi
}

proctype owner(byte me) {
	byte left = ROUNDS, polls;

	do
	:: left > 0 ->
		left--;
		if
		:: gate_enter(); work(me); gate_leave()                    /* a refill */
		:: gate_enter(); work(me); other_claimed(false); gate_leave() /* stage 2, own gate held */
		:: other_claimed(false)                                    /* the tick, trim */
#ifdef BUG_CLAIM_THEN_ENTER
		:: other_claimed(true)
#endif
		fi
	:: else -> break
	od
}

init {
	atomic { run owner(0); run owner(1) }
}
