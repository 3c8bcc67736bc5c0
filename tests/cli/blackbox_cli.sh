# SPDX-License-Identifier: MIT
# What leaked when a process is killed at a random moment, under a limit: hakmem autopsy attributes
# it to the functions that did. If this fails, the black box tells of other leaks than there were.
#
#   BLACKBOX_TEST_SEED   the first of the seeds, which follow one another: 1
. "$(dirname "$0")/lib.sh"
needs awk od
leaker=$OUT/tests/cli_leaker
rate=4096
runs=${HAK_FULL:+200}
runs=${runs:-6}
first=${BLACKBOX_TEST_SEED:-1}
leaker_pid=
at_end() {
    [ -z "$leaker_pid" ] || kill -KILL "$leaker_pid" 2>/dev/null || :
    [ -z "$leaker_pid" ] || rm -f "/dev/shm/hakmem.profile.$leaker_pid"
}

read_truth() {
    od -A n -t u8 -N 40 -v -w8 "$work/file" | awk '{ print NR - 1, $1 }' >"$work/truth"
}

# leak_and_die SEED: the live bytes of each function are in $work/truth.
leak_and_die() {
    truncate -s 0 "$work/file"
    truncate -s 4096 "$work/file"
    env HAKMEM_BLACKBOX=on \
        HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=$rate HAKMEM_LIMIT=512M \
        LD_PRELOAD="$PRELOAD_LIB" "$leaker" "$1" 1<>"$work/file" 2>"$work/leaker.err" &
    leaker_pid=$!
    # When 8 MB have leaked, and up to four tenths of a second later.
    for _ in $(seq 400); do
        read_truth
        awk '{ sum += $2 } END { exit !(sum > 8e6) }' "$work/truth" && break
        sleep 0.05
    done
    sleep "0.$(awk -v seed="$1" 'BEGIN { srand(seed); printf "%03d", rand() * 400 }')"
    kill -KILL "$leaker_pid"
    wait "$leaker_pid" 2>/dev/null || :
    read_truth
}

# compare: what autopsy says and what was; a function of more than 4 MiB within five deviations of
# its samples, together no less than 95 %, a table's rounding included.
compare() {
    awk -v rate=$rate '
        FNR == NR { true_bytes[$1] = $2; sum += $2; next }
        match($0, /yard::leak<[0-4]>/) {
            site = substr($0, RSTART + 11, 1)
            unit = $2 == "GiB" ? 2^30 : $2 == "MiB" ? 2^20 : $2 == "KiB" ? 1024 : 1
            found[site] += $1 * unit
        }
        END {
            if (sum < 8e6) { print "too little was leaked: " sum; exit 1 }
            for (site = 0; site < 5; site++) {
                attributed += found[site]
                off = found[site] - true_bytes[site]
                size = site == 4 ? 205536 : site == 3 ? 9095 : 2023
                most = 5 * sqrt(true_bytes[site] * (rate + size)) + 60000
                if (true_bytes[site] > 4 * 2^20 && (off > most || -off > most)) {
                    print "leak<" site ">: " found[site] " of " true_bytes[site]; bad = 1
                }
            }
            if (attributed < 0.95 * sum) { print attributed " of " sum; bad = 1 }
            exit bad
        }' "$work/truth" "$work/autopsy.out" >"$work/differs"
}

run=0
while [ "$run" -lt "$runs" ]; do
    leak_and_die $((first + run))
    asked autopsy 0 autopsy "$leaker_pid"
    check "seed $((first + run)), $(cat "$work/truth" "$work/autopsy.out" | head -n 40)" compare
    rm -f "/dev/shm/hakmem.profile.$leaker_pid"
    run=$((run + 1))
done
