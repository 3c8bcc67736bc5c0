#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh - searches the protocol models in docs/model with spin, each one to its end.
#
# Usage   run.sh [MODEL...]      all models without arguments
#         run.sh --record        all, and writes docs/model/verified.txt
# Prints  one line per search. Right models must have no error in a complete search; mutants
#         (BUG_*) must be caught, in the way that is named here.
#         A search of the same model finds the same again: what verified.txt lists, by a hash of
#         the model and of how it is searched, is searched with HAK_FULL only. What was changed is
#         always searched.
# Exits   0 all as it must be, 1 not so, 77 spin or a C compiler is missing.
# Needs   about 1.2 GB and 3 minutes for all, most of it for `remote`; 40 s for the mutants.

compiler=${CC:-gcc}
depth=20000
memory_mib=2000

for tool in spin "$compiler"; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "skipped: $tool is not installed"
		exit 77
	}
done

here=$(cd "$(dirname "$0")" && pwd) || exit 1
models=$(cd "$here/../../../docs/model" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 1

record=$models/verified.txt
searches_all=${HAK_FULL:-}
new_record=/dev/null
if [ "${1:-}" = --record ]; then
	shift
	searches_all=1
	new_record=$work/verified.txt
fi
wanted=" ${*:-remote heap_locks lost_lock heap_fork cache_drain} "
failed=0

fail() {
	echo "$1: FAILED: $2"
	grep -E '^pan:|errors:|^error:' out 2>/dev/null | sed 's/^/    /'
	failed=1
}

# search OPTIMISATION FLAVOUR MODEL [NAME...]: leaves the verifier's words in ./out. (-O2 would take
# longer to compile than it saves.) FLAVOUR is
#   safety  assertions and threads that wait for ever
#   ends    the same and, as no state is marked as progress, any run that never ends
#   frozen  assertions only: threads that stand still at the end are meant
search() {
	optimisation=$1 flavour=$2 model=$3
	shift 3
	rm -f pan pan.* out
	defines=
	for name; do defines="$defines -D$name"; done
	case $flavour in
	safety) build=-DSAFETY run= ;;
	ends) build=-DNP run=-l ;;
	frozen) build=-DSAFETY run=-E ;;
	esac
	# shellcheck disable=SC2086
	spin -a $defines "$models/$model.pml" >out 2>&1 &&
		"$compiler" $optimisation -w $build -DCOLLAPSE -DMEMLIM=$memory_mib -o pan pan.c >>out 2>&1 &&
		./pan -m$depth $run >out 2>&1
	[ -s out ] && grep -q 'errors:' out
}

is_wanted() {
	case $wanted in *" $1 "*) return 0 ;; *) return 1 ;; esac
}

# The name of a search: the model and its macros, without the flavour.
title() {
	shift
	echo "$*"
}

# verified FLAVOUR MODEL [NAME...]
verified() {
	is_wanted "$2" || return 0
	what=$(title "$@")
	sum=$({ echo "$*" && sed -n '/^search()/,/^}/p' "$here/run.sh" && cat "$models/$2.pml"; } |
		sha256sum | cut -c1-32)
	if [ -z "$searches_all" ] && line=$(grep "^$sum " "$record"); then
		echo "${line#* }, before"
		return
	fi
	search -O1 "$@" || { fail "$what" "the search did not run"; return; }
	if grep -q 'errors: 0$' out && ! grep -Eq \
		'search depth too small|not completed|out of memory|reached -DMEMLIM|aborted|truncated' out
	then
		count=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' out)
		case $1 in ends) how='verified, every run ends' ;; *) how=verified ;; esac
		echo "$what: $how, $count states"
		echo "$sum $what: $how, $count states" >>"$new_record"
	else
		fail "$what" "not verified"
	fi
}

# caught SYMPTOM FLAVOUR MODEL NAME...: the symptom is a word of the verifier's first complaint,
# which comes sooner than an optimised verifier would be compiled.
caught() {
	symptom=$1
	shift
	is_wanted "$2" || return 0
	what=$(title "$@")
	search -O0 "$@" || { fail "$what" "the search did not run"; return; }
	if grep -q 'errors: 1$' out && grep -q "^pan:1: $symptom" out; then
		echo "$what: bug found, as it must"
	else
		fail "$what" "the bug was not found (expected: $symptom)"
	fi
}

assertion='assertion violated'
hang='invalid end state'

# HARM_ONLY: the mutants are caught by lost or twice collected blocks, by a race on plain data, by
# a list without end, not by a rule about the token that the model itself keeps.
verified safety remote
verified safety remote ONE_SLAB
verified safety remote ONE_SLAB PUSH_BEFORE_OR
verified safety remote DOUBLE_FREE
verified frozen remote FORK
verified ends   remote ONE_SLAB
caught "$assertion" safety remote HARM_ONLY BUG_OR_BEFORE_COUNT
caught "$assertion" safety remote HARM_ONLY BUG_COLLECT_WITHOUT_TOKEN
caught "$assertion" safety remote HARM_ONLY BUG_NO_REQUEUE
caught "$assertion" safety remote HARM_ONLY BUG_LINK_READ_LATE
caught "$assertion" safety remote HARM_ONLY BUG_NO_FORWARD
caught "$assertion" safety remote HARM_ONLY BUG_STEAL_WITHOUT_LOCK
caught "$assertion" safety remote HARM_ONLY BUG_NO_SECOND_LOOK
caught "$assertion" safety remote HARM_ONLY BUG_FLIGHT_IS_NOT_USED
caught "$assertion" safety remote HARM_ONLY DOUBLE_FREE BUG_PUBLISHER_SUBTRACTS
caught "$assertion" frozen remote HARM_ONLY FORK BUG_NO_CHILD_REPAIR
caught "$assertion" frozen remote HARM_ONLY FORK BUG_LOST_HEAP_HAS_NO_TOKENS

# HARM_ONLY here: by a hang, by two in one heap, by a lost batch.
verified safety heap_locks
caught "$hang"      safety heap_locks HARM_ONLY BUG_NESTED_WAITS
caught "$hang"      safety heap_locks HARM_ONLY BUG_SECOND_WAITS
caught "$hang"      safety heap_locks HARM_ONLY BUG_FLUSH_WAITS
caught "$hang"      safety heap_locks HARM_ONLY BUG_NOTE_AFTER_TAKE
caught "$hang"      safety heap_locks HARM_ONLY BUG_FORGET_BEFORE_RELEASE
caught "$hang"      safety heap_locks HARM_ONLY BUG_LOWER_OPEN
caught "$assertion" safety heap_locks HARM_ONLY BUG_WORK_OUTSIDE
caught "$assertion" safety heap_locks HARM_ONLY BUG_PLAIN_EMPTY

verified frozen lost_lock
verified frozen lost_lock JUMP_BETWEEN
caught "$assertion" frozen lost_lock BUG_FRAME_APART
caught "$assertion" frozen lost_lock BUG_FRAME_TWICE
caught "$assertion" frozen lost_lock SIGNALS=3 JUMP_BETWEEN BUG_TRIES_NOTED
caught "$assertion" frozen lost_lock BUG_MEND_INTERRUPTED
caught "$assertion" frozen lost_lock BUG_NO_MEND
caught "$assertion" frozen lost_lock BUG_NOT_LOST
caught "$assertion" frozen lost_lock BUG_LOST_UNSEEN
caught "$assertion" frozen lost_lock BUG_LOSES_OTHERS
caught "$assertion" frozen lost_lock BUG_NO_TIME_OUT

verified safety heap_fork
verified ends   heap_fork
caught "$assertion" safety heap_fork BUG_BUSY_AT_THE_TABLE
caught "$assertion" safety heap_fork BUG_BINS_CHANGED_BEFORE
caught "$assertion" safety heap_fork BUG_BINS_UNDER_NO_FLAG
caught "$assertion" safety heap_fork BUG_BUSY_TAKEN_OVER
caught "$assertion" safety heap_fork BUG_LOCKS_RESET
caught "$assertion" safety heap_fork BUG_HEAPS_NOT_STOPPED
caught "$assertion" safety heap_fork BUG_LOWER_NOT_STOPPED
caught "$assertion" safety heap_fork BUG_LOWER_FIRST
caught "$hang"      safety heap_fork BUG_NO_PATIENCE

verified safety cache_drain
verified safety cache_drain RESIZE
verified safety cache_drain RESIZE ONE_SLOT
caught "$assertion" safety cache_drain BUG_FENCE_BEFORE_SWAP
caught "$assertion" safety cache_drain BUG_WORK_BEFORE_FENCE
caught "$assertion" safety cache_drain BUG_COUNT_KEPT
caught "$assertion" safety cache_drain RESIZE BUG_CLOSE_OUTSIDE
caught "$assertion" safety cache_drain RESIZE BUG_CLOSE_UNCHECKED
caught "$assertion" safety cache_drain RESIZE BUG_OPEN_BEFORE_COPY
caught "$assertion" safety cache_drain RESIZE BUG_DRAIN_UNLOCKED
caught "$assertion" safety cache_drain RESIZE ONE_SLOT BUG_LIMIT_FIRST

[ "$new_record" = /dev/null ] || [ $failed != 0 ] || cp "$new_record" "$record"
exit $failed
