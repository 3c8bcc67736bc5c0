# SPDX-License-Identifier: MIT
# Small programs stay small: the peak RSS of ls and of python3 exceeds the one without hakmem by at
# most 1 MiB, with huge pages as the machine has them and, where root may set it, with huge pages
# everywhere. If this fails, a preload of hakmem in all processes costs a machine gigabytes.
. "$(dirname "$0")/lib.sh"
needs python3 ls setsid

python=$(python3 -c 'import sys; print(sys.executable)')
ls=$(command -v ls)
peak=$OUT/tests/preload_peak

# least LIBRARY COMMAND...: the least of seven peaks, as how much of a file is mapped varies.
least() {
    for run in 1 2 3 4 5 6 7; do
        "$peak" "$@" || echo failed
    done | sort -n | head -n 1
}

# stays_small COMMAND...
stays_small() {
    without_kb=$(least '' "$@")
    with_kb=$(least "$PRELOAD_LIB" "$@")
    echo "$*: $without_kb KiB, with hakmem $with_kb KiB, huge pages $(cat $huge)"
    check "there is a peak without hakmem" [ "$without_kb" -gt 100 ]
    check "$* takes at most 1 MiB more" [ "$with_kb" -le $((without_kb + 1024)) ]
}

huge=/sys/kernel/mm/transparent_hugepage/enabled
[ -r $huge ] || huge=/dev/null
stays_small "$ls" -l /
stays_small "$python" -c pass

old=$(sed 's/.*\[\(.*\)\].*/\1/' $huge)
[ -n "$old" ] && [ "$old" != always ] && [ -w $huge ] || exit 0
at_end() { echo "$old" >$huge; }
# Should this script be killed, somebody else restores what the machine had.
setsid sh -c "for s in \$(seq 60); do sleep 1; [ -d '$work' ] || exit; done
    echo $old >$huge" >/dev/null 2>&1 </dev/null &
echo always >$huge 2>/dev/null || exit 0
stays_small "$ls" -l /
stays_small "$python" -c pass
