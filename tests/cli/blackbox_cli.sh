# SPDX-License-Identifier: MIT
# What leaked when a process is killed at a random moment, by a signal under a limit of hakmem's or,
# with every second seed and where a memory control group can be made, by the kernel because the
# group is full: hakmem autopsy attributes it to the functions that did. If this fails, the black
# box tells of other leaks than there were.
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
group=
at_end() {
    [ -z "$leaker_pid" ] || kill -KILL "$leaker_pid" 2>/dev/null || :
    [ -z "$leaker_pid" ] || rm -f "/dev/shm/hakmem.profile.$leaker_pid"
    [ -z "$group" ] || rmdir "$group"
}

# find_group: makes the group, of either version, which does not swap; $limit is the file of its
# limit.
find_group() {
    for parent in /sys/fs/cgroup/memory /sys/fs/cgroup; do
        group=$parent/hakmem.blackbox.$$
        mkdir "$group" 2>/dev/null || continue
        for file in "$group/memory.swappiness" "$group/memory.swap.max"; do
            [ ! -w "$file" ] || echo 0 >"$file"
        done
        for limit in "$group/memory.limit_in_bytes" "$group/memory.max"; do
            [ ! -w "$limit" ] || return 0
        done
        rmdir "$group"
    done
    group=
}


read_truth() {
    od -A n -t u8 -N 40 -v -w8 "$work/file" | awk '{ print NR - 1, $1 }' >"$work/truth"
}

has_leaked() {
    read_truth
    awk '{ sum += $2 } END { exit !(sum > 32e6) }' "$work/truth"
}

# leak SEED COMMAND...: in the background, as a process of the command.
leak() {
    seed=$1
    shift
    truncate -s 0 "$work/file"
    truncate -s 4096 "$work/file"
    "$@" env HAKMEM_BLACKBOX=on \
        HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=$rate \
        LD_PRELOAD="$PRELOAD_LIB" "$leaker" "$seed" 1<>"$work/file" 2>"$work/leaker.err" &
    leaker_pid=$!
}

# leak_until_full SEED: a limit of 40 to 120 MiB. The live bytes of each function are in
# $work/truth.
leak_until_full() {
    awk -v seed="$1" 'BEGIN { srand(seed); print int(40 + rand() * 80) * 1048576 }' >"$limit"
    # shellcheck disable=SC2016
    leak "$1" sh -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' "$group"
    status=0
    wait "$leaker_pid" 2>/dev/null || status=$?
    equal "seed $1: the kernel kills it" "$status" 137
    kills=$((kills + 1))
    equal "seed $1: because the group is full" "$(cat "$group/memory.oom_control" \
        "$group/memory.events" 2>/dev/null | sed -n 's/^oom_kill //p')" "$kills"
    read_truth
}

# leak_and_die SEED: the same by a signal.
leak_and_die() {
    leak "$1" env HAKMEM_LIMIT=512M
    # When 32 MB have leaked, and up to four tenths of a second later.
    becomes "seed $1 leaks" has_leaked
    sleep "0.$(awk -v seed="$1" 'BEGIN { srand(seed); printf "%03d", rand() * 400 }')"
    kill -KILL "$leaker_pid"
    wait "$leaker_pid" 2>/dev/null || :
    read_truth
}

# compare: what autopsy says and what was; a function of more than 4 MiB within five deviations of
# samples of its largest block, which are six or more of its own, together no less than 95 %, a
# table's rounding included: a sum of 20 MB is wrong by 0.8 %.
compare() {
    awk -v rate=$rate '
        FNR == NR { true_bytes[$1] = $2; sum += $2; next }
        match($0, /yard::leak<[0-4]>/) {
            site = substr($0, RSTART + 11, 1)
            unit = $2 == "GiB" ? 2^30 : $2 == "MiB" ? 2^20 : $2 == "KiB" ? 1024 : 1
            found[site] += $1 * unit
        }
        END {
            if (sum < 20e6) { print "too little was leaked: " sum; exit 1 }
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

find_group
kills=0
run=0
while [ "$run" -lt "$runs" ]; do
    if [ -n "$group" ] && [ $((run % 2)) = 1 ]; then
        leak_until_full $((first + run))
    else
        leak_and_die $((first + run))
    fi
    asked autopsy 0 autopsy "$leaker_pid"
    check "seed $((first + run)), $(cat "$work/truth" "$work/autopsy.out" | head -n 40)" compare
    rm -f "/dev/shm/hakmem.profile.$leaker_pid"
    run=$((run + 1))
done
