# SPDX-License-Identifier: MIT
# Programs on hakmem run under valgrind, whose small address space refuses large reservations. If
# this fails, users of hakmem lose their debugger for everything that is not memory.
. "$(dirname "$0")/lib.sh"
needs valgrind ls sort

seq 2000 -1 1 >"$work/numbers"
well sort valgrind --tool=none -q sort -n "$work/numbers"
equal "the smallest comes first" "$(head -n 1 "$work/sort.out")" 1
well ls valgrind --tool=none -q ls /etc
