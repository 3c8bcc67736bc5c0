# SPDX-License-Identifier: MIT
# Where statistics go: to the file that is named, whole, whatever else appends to it; and if it
# cannot be written, the program says so in one line and ends as it would have. If this fails, a
# full disk or a wrong path changes what programs do.
. "$(dirname "$0")/lib.sh"
needs sh python3
python=$(python3 -c 'import sys; print(sys.executable)') # and no script of that name

# asked NAME SETTING... -- COMMAND...: runs a command with settings and hakmem.
asked() {
    name=$1
    shift
    settings=
    while [ "$1" != -- ]; do
        settings="$settings $1"
        shift
    done
    shift
    status=0
    # shellcheck disable=SC2086
    timeout "$limit_s" env $settings LD_PRELOAD="$PRELOAD_LIB" "$@" \
        >"$work/$name.out" 2>"$work/$name.err" </dev/null || status=$?
}
exits="import os, sys; sys.exit(7)"

for form in text raw json xml openmetrics; do
    asked form HAKMEM_STATS=$form -- "$python" -c "$exits"
    equal "$form: the exit status" $status 7
    check "$form: something is printed" [ "$(wc -l <"$work/form.err")" -ge 1 ]
    asked file HAKMEM_STATS=$form HAKMEM_STATS_FILE="$work/$form-%p" -- "$python" -c "$exits"
    equal "$form: nothing on stderr" "$(cat "$work/file.err")" ""
    equal "$form: a file named after the process" "$(ls "$work" | grep -c "^$form-[0-9]*\$")" 1
done

# Appended, and one after the other.
for i in 1 2 3; do
    asked append HAKMEM_STATS=json HAKMEM_STATS_FILE="$work/lines" -- "$python" -c "$exits"
done
equal "three reports are three lines" "$(wc -l <"$work/lines")" 3
check "each of them is an object" "$python" -c '
import json, sys
assert len({json.loads(line)["pid"] for line in open(sys.argv[1])}) == 3' "$work/lines"

# What cannot be written.
mkdir "$work/folder"
# refused PATH REASON: one line with the reason; the program's own end.
refused() {
    asked refused HAKMEM_STATS=1 HAKMEM_STATS_FILE="$1" -- "$python" -c "$exits"
    equal "$1: the exit status" $status 7
    equal "$1: one line, $(cat "$work/refused.err")" "$(wc -l <"$work/refused.err")" 1
    check "$1: $(cat "$work/refused.err")" grep -q \
        "^hakmem: statistics cannot be written to $1: $2" "$work/refused.err"
}
refused /dev/full "no space left"
refused "$work/folder" "a directory"
refused "$work/none/such" "no such file"
refused "$work/lines/below" "not a directory"
refused "/proc/version" "[a-z]"
mkfifo "$work/pipe"
refused "$work/pipe" "it has no reader"

# A closed standard error, and one whose reader is gone, are no reason to die.
status=0
env HAKMEM_STATS=1 LD_PRELOAD="$PRELOAD_LIB" "$python" -c "$exits" 2>&- || status=$?
equal "closed: the exit status" $status 7
# After the reader has gone, so that the report meets a broken pipe.
mkfifo "$work/broken"
(: 3<"$work/broken") &
reader=$!
status=0
env HAKMEM_STATS=1 LD_PRELOAD="$PRELOAD_LIB" "$python" -c "
import select, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
gone = select.poll()
gone.register(2, 0)
gone.poll()
sys.exit(7)" 2>"$work/broken" || status=$?
wait $reader
equal "a broken pipe: the exit status" $status 7
status=0
(ulimit -f 0; env HAKMEM_STATS=1 HAKMEM_STATS_FILE="$work/limited" LD_PRELOAD="$PRELOAD_LIB" \
    "$python" -c "$exits" 2>/dev/null) || status=$?
equal "a file size limit: the exit status" $status 7
# No file in /dev/shm is so small. The program runs for as long as a black box takes to come.
works="
import time
end = time.monotonic() + 0.5
while time.monotonic() < end:
    kept = [bytes(5000) for i in range(500)] + [bytes(3000000)]"
if [ -w /dev/shm ]; then
    for setting in HAKMEM_STATS_SHM=on HAKMEM_BLACKBOX=on HAKMEM_HEAP_PROFILE=on; do
        (ulimit -f 8; env "$setting" PYTHONMALLOC=malloc LD_PRELOAD="$PRELOAD_LIB" \
            "$python" -c "$works" 2>"$work/limited.err") || fail "$setting under a file size limit"
        said=$(cat "$work/limited.err")
        equal "$setting, in a small file: one line, $said" "$(wc -l <"$work/limited.err")" 1
        check "says of which file, and why: $said" \
            grep -q ' /dev/shm/hakmem\..*: file too large' "$work/limited.err"
    done
fi

# While the program runs, until it was printed often enough.
# prints NAME LINES PROGRAM SETTING...
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }
prints() {
    name=$1
    lines=$2
    program=$3
    shift 3
    env HAKMEM_STATS=json HAKMEM_STATS_FILE="$work/$name" "$@" LD_PRELOAD="$PRELOAD_LIB" \
        "$python" -c "$program" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    server=$!
    becomes "$name: there are $lines lines" has_lines "$work/$name" "$lines"
    kill "$server"
    wait "$server" || :
    server=
}
prints idle 5 'import time; time.sleep(300)' HAKMEM_STATS_INTERVAL=50ms
prints slow_paths 3 'while True: [bytearray(3000 + i) for i in range(2000)]' \
    HAKMEM_STATS_INTERVAL=20ms HAKMEM_MAINTENANCE=off

asked wrong HAKMEM_STATS_SIGNAL=KILL -- "$python" -c "$exits"
equal "a signal that cannot be had: one line" "$(wc -l <"$work/wrong.err")" 1
check "it says what can be had" grep -q "USR1" "$work/wrong.err"
equal "the exit status" $status 7
asked strict HAKMEM_ABORT_CONF=1 HAKMEM_STATS_SIGNAL=KILL -- "$python" -c "$exits"
equal "it is a wrong setting like others" $status 134
for signal in USR2 SIGUSR2 12; do
    rm -f "$work/signal"
    asked signal HAKMEM_STATS_SIGNAL=$signal HAKMEM_STATS_FILE="$work/signal" -- "$python" -c "
import os, signal, time
os.kill(os.getpid(), signal.SIGUSR2)
path = os.environ['HAKMEM_STATS_FILE']
end = time.monotonic() + 100
while time.monotonic() < end and not (os.path.exists(path) and os.path.getsize(path)):
    time.sleep(0.01)"
    equal "$signal: the program goes on" $status 0
    equal "$signal: prints once, at the signal only" \
        "$(grep -c '^hakmem statistics' "$work/signal")" 1
done
asked own HAKMEM_STATS_SIGNAL=USR2 HAKMEM_STATS_FILE="$work/own" -- "$python" -c "
import os, signal, sys, time
got = []
signal.signal(signal.SIGUSR2, lambda *ignored: got.append(1))
os.kill(os.getpid(), signal.SIGUSR2)
time.sleep(0.1)
sys.exit(len(got))"
equal "the program's own handler is its own" $status 1
