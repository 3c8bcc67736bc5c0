# SPDX-License-Identifier: MIT
# Small programs stay small: the peak RSS of ls, of python3 and of an idle redis-server exceeds the
# one without hakmem by at most 1.25 MiB, 0.4 of which is the library's file, which all processes
# share; with huge pages as the machine has them and, for the first two and where root may set it,
# with huge pages everywhere. If this fails, a preload of hakmem in
# all processes costs a machine gigabytes.
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
    check "$* takes at most 1.25 MiB more" [ "$with_kb" -le $((without_kb + 1280)) ]
}

# The same of an idle redis-server. Debian's is linked with jemalloc: to see it on the system's
# malloc, libc is preloaded.
idle() {
    server idle "$1" redis-server --port 0 --unixsocket "$work/redis" --dir "$work" --save '' >&2
    until [ "$(redis-cli -s "$work/redis" PING 2>&1)" = PONG ]; do sleep 0.1; done
    sleep 0.5
    awk '$1 == "VmHWM:" { print $2 }' "/proc/$server_process/status"
    redis-cli -s "$work/redis" SHUTDOWN NOSAVE >/dev/null 2>&1
    wait "$server"
}
least_idle() {
    for run in 1 2 3 4 5; do idle "$1" || echo failed; done | sort -n | head -n 1
}
redis_stays_small() {
    command -v redis-server >/dev/null && command -v redis-cli >/dev/null || return 0
    without_kb=$(least_idle libc.so.6)
    with_kb=$(least_idle "$PRELOAD_LIB")
    echo "redis-server: $without_kb KiB, with hakmem $with_kb KiB, huge pages $(cat $huge)"
    check "there is a peak without hakmem" [ "$without_kb" -gt 1000 ]
    check "redis-server takes at most 1.25 MiB more" \
        [ "$with_kb" -le $((without_kb + 1280)) ]
}

# What programs call of the library's code lies together (cmake/usual_functions.txt), where the
# linker can do that.
# code_of COMMAND...: KiB of the code, how many are resident at the least in five runs of a program
# that prints its mappings, and the same of what is behind the code.
code_of() {
    for run in 1 2 3 4 5; do
        LD_PRELOAD=$PRELOAD_LIB "$@" |
            awk '/^[0-9a-f]+-/ { is_gap = /---p/ }
                /^[0-9a-f]+-/ && !is_gap { is_behind = is_code; is_code = /r-xp.*libhakmem/ }
                !is_gap && (is_code || is_behind) && /^(Size|Rss):/ { printf "%d ", $2 }
                END { print "" }'
    done | sort -n -k 2 | head -n 1
}
code_stays_out() {
    readelf -SW "$PRELOAD_LIB" | grep -q 'text[.]usual' || return 0
    # The list has functions as gcc makes them; clang inlines others.
    ! readelf -p .comment "$PRELOAD_LIB" | grep -q clang || return 0
    set -- $(code_of cat /proc/self/smaps) \
        $(code_of "$python" -c 'print(open("/proc/self/smaps").read())')
    echo "of $1 KiB of code $2 are resident in cat, $6 in python3, of $3 KiB behind it $4 and $8"
    check "half of the code or more is not resident in cat" [ "$2" -le $(($1 / 2)) ]
    check "nor in python3" [ "$6" -le $(($1 / 2)) ]
    # With some linkers the tables for unwinding and texts alone are behind the code.
    readelf -lW "$PRELOAD_LIB" | grep -q '^ *[0-9]* *[.]eh_frame_hdr [.].*texts' || return 0
    check "tables for unwinding and texts are not resident" [ "$4$8" -eq 0 ]
}

huge=/sys/kernel/mm/transparent_hugepage/enabled
[ -r $huge ] || huge=/dev/null
stays_small "$ls" -l /
stays_small "$python" -c pass
redis_stays_small
code_stays_out

old=$(sed 's/.*\[\(.*\)\].*/\1/' $huge)
[ -n "$old" ] && [ "$old" != always ] && [ -w $huge ] || exit 0
at_end() { echo "$old" >$huge; }
# Should this script be killed, somebody else restores what the machine had.
setsid sh -c "for s in \$(seq 60); do sleep 1; [ -d '$work' ] || exit; done
    echo $old >$huge" >/dev/null 2>&1 </dev/null &
echo always >$huge 2>/dev/null || exit 0
stays_small "$ls" -l /
stays_small "$python" -c pass
