#!/bin/sh
# SPDX-License-Identifier: MIT
# title: a theorem prover: ten queens
# packages: z3
# z3: ten queens on a board of integers, for each place of the first. One operation is one problem.
. "$(dirname "$0")/lib.sh"
needs z3
awk 'BEGIN {
    n = 10
    for (i = 0; i < n; i++) printf "(declare-const q%d Int)\n", i
    for (i = 0; i < n; i++) printf "(assert (and (>= q%d 0) (< q%d %d)))\n", i, i, n
    for (i = 0; i < n; i++) for (j = 0; j < i; j++) {
        printf "(assert (distinct q%d q%d))\n", i, j
        printf "(assert (distinct (- q%d q%d) %d %d))\n", i, j, i - j, j - i
    }
    for (k = 0; k < n; k++) printf "(push)(assert (= q0 %d))(check-sat)(pop)\n", k
    print "(echo \"end\")"
}' >"$work/queens.smt2"
measured z3 smt.random_seed=42 "$work/queens.smt2"
says end
[ "$(grep -c '^sat$' "$work/out")" = 10 ] || fail "z3 did not solve all problems"
throughput 10
