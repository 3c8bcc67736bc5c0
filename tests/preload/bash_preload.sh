# SPDX-License-Identifier: MIT
# bash runs scripts with subshells, pipes, arrays and traps as ever. bash brings a malloc of its own
# in some builds; Debian's uses libc's, and so hakmem. If this fails, a login shell may not start.
. "$(dirname "$0")/lib.sh"
needs bash

cat >"$work/script.bash" <<'END'
set -eu
declare -A table
for i in {1..3000}; do
    table[$((i * 7919 % 1009))]+="$i,"
done
echo "${#table[@]} ${table[5]}"
text=
for i in {1..300}; do text+=$(printf '%x' $((i * i))); done
echo "${#text} ${text//[a-f]/-}"
for i in {1..30}; do (echo "subshell $i $((i * i))"); done
seq 1000 | while read -r line; do echo $((line * 2)); done | tail -n 3
echo "${text:100:50}" | tr a-f A-F | sed 's/[0-9]//g'
diff <(seq 50) <(seq 50) && echo equal
trap 'echo trapped; exit 3' USR1
kill -USR1 $$
END
same bash bash "$work/script.bash"
equal "the trap's exit status arrives" "$(cat "$work/bash.status")" 3
check "nothing is said on stderr" [ ! -s "$work/bash.err" ]
