# SPDX-License-Identifier: MIT
# hakmem reserves far more address space than it uses, and runs all the same where the kernel
# promises no more memory than there is: vm.overcommit_memory=2, the rule of many database servers.
# If this fails, no program starts there.
#
# The setting is the whole machine's. It is changed for about a second, where root may do so and
# where what is already promised leaves enough room, and is restored by this script and, should the
# script be killed, by a process that outlives it.
. "$(dirname "$0")/lib.sh"
needs python3 ls sort setsid

mode=/proc/sys/vm/overcommit_memory
ratio=/proc/sys/vm/overcommit_ratio
[ -w $mode ] && [ -w $ratio ] || skip "vm.overcommit_memory cannot be set here"
old_mode=$(cat $mode)
old_ratio=$(cat $ratio)
# With a ratio it is exact what is restored; a limit in KiB would be lost.
[ "$(cat /proc/sys/vm/overcommit_kbytes)" = 0 ] || skip "vm.overcommit_kbytes is in use"

# All memory twice may be promised: enough for what runs beside this test.
memory_kb=$(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo)
promised_kb=$(awk '$1 == "Committed_AS:" { print $2 }' /proc/meminfo)
[ $((memory_kb * 2 - promised_kb)) -gt 4194304 ] || skip "too much memory is promised already"

restore() {
    echo "$old_mode" >$mode
    echo "$old_ratio" >$ratio
}
at_end() { restore; }
echo 200 >$ratio 2>/dev/null || skip "vm.overcommit_ratio cannot be set here"

# The plain runs, and everything slow, come before.
python=$(python3 -c 'import sys; print(sys.executable)')
seq 20000 -1 1 >"$work/numbers"
cat >"$work/much.py" <<'END'
import threading
held = []
def fill():
    held.append([bytes(number % 70000) for number in range(2000)])
threads = [threading.Thread(target=fill) for number in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sum(len(block) for blocks in held for block in blocks))
# More than there is: an error that can be caught, and then everything works.
try:
    held.append(bytearray(1 << 44))
    print("not refused")
except MemoryError:
    print("refused")
held.clear()
print(len(bytearray(50 << 20)))
END
plainly ls ls -l /usr
plainly sort sort -n "$work/numbers"
plainly much "$python" "$work/much.py"
"$python" -c pass

undo="echo $old_mode >$mode; echo $old_ratio >$ratio"
setsid sh -c "for s in \$(seq 30); do sleep 1; [ -d '$work' ] || exit; done; $undo" \
    >/dev/null 2>&1 </dev/null &
echo 2 >$mode 2>/dev/null || skip "vm.overcommit_memory cannot be set here"
equal "the rule is in force" "$(cat $mode)" 2
preloaded ls ls -l /usr
preloaded sort sort -n "$work/numbers"
preloaded much "$python" "$work/much.py"
restore
equal "the rule is as before" "$(cat $mode)" "$old_mode"

for name in ls sort much; do
    equal "$name ends well: $(head -c 300 "$work/$name.err")" "$(cat "$work/$name.status")" 0
    quiet $name
    check "$name: stdout is the same" cmp -s "$work/$name.plain.out" "$work/$name.out"
    served $name
done
check "what there is not is refused" grep -q '^refused$' "$work/much.out"
