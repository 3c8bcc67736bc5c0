# SPDX-License-Identifier: MIT
# Option profile: what one run learned, the next one begins with. A file that anybody else may have
# written is ignored in one line, and what cannot be written leaves the old file. If this fails,
# programs start cold, or start with what somebody else wrote.
. "$(dirname "$0")/lib.sh"
needs sed stat
learner=$OUT/tests/preload_learner
file=$work/learned

# learns NAME WORD SETTING...: the program with the file; NAME.out, .err, and .stats.
learns() {
    name=$1
    word=$2
    shift 2
    status=0
    (cd "$work/preloaded" && exec timeout "$limit_s" env LD_PRELOAD="$PRELOAD_LIB" \
        HAKMEM_PROFILE="$file" HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/$name.stats" "$@" \
        "$learner" "$word") >"$work/$name.out" 2>"$work/$name.err" </dev/null || status=$?
    equal "$name: exit status" "$status" 0
}
silent() { equal "$1 says nothing" "$(cat "$work/$1.err")" ""; }
says() {
    equal "$1 says one line: $(cat "$work/$1.err")" "$(wc -l <"$work/$1.err")" 1
    check "$1 says '$2': $(cat "$work/$1.err")" grep -qF -- "$2" "$work/$1.err"
}
line() { sed -n "s/^$1 //p" "$file"; }

# How long memory is kept.
learns cold small
equal "it begins with decay" "$(counter cold pool_keep_ms)" 125
silent cold
teach() { # a busy machine may take several runs; which keep time it is depends on the machine
    taught=125
    for i in 1 2 3 4; do
        [ "$taught" != 125 ] || { rm -f "$work/$1.stats" && learns "$1" waves; }
        taught=$(counter "$1" pool_keep_ms)
    done
    silent "$1"
    check "it learns how long to keep slabs: $taught" [ "$taught" != 125 ]
}
teach teaching
equal "mode of the file" "$(stat -c %a "$file")" 600
equal "nothing is left beside it" "$(ls "$work" | grep -c 'learned\.')" 0
learns warm small
equal "the next run begins with it" "$(counter warm pool_keep_ms)" "$taught"
for i in 1 2 3 4 5; do learns forgetting small; done
rm "$work/forgetting.stats"
learns forgetting small
equal "and no run for ever" "$(counter forgetting pool_keep_ms)" 125

# Other settings are other evidence, and leave it.
rm "$file"
teach again
learns other small HAKMEM_DECAY=1s
equal "another decay, another time" "$(counter other pool_keep_ms)" 1000
learns warm_again small
equal "what was learned waits" "$(counter warm_again pool_keep_ms)" "$taught"

# The memory of the first second; a busy machine may let no program have it in its first second.
rm "$file"
learns first waves
for i in 1 2 3 4; do
    rm "$file"
    learns cold_large large
    learns warm_large large
    [ "$(line first_second | cut -d' ' -f2)" -le 50000000 ] || break
done
silent warm_large
check "it is written: $(line first_second)" [ "$(line first_second | cut -d' ' -f2)" -gt 50000000 ]
# It is for people: faults before main are no fewer, and memory that is not needed at once costs.
learns lasting waves
equal "nothing is touched for it" \
    "$(awk '$1 == "policy_prewarm_bytes:" { sum += $2 } END { print sum + 0 }' \
        "$work/lasting.stats")" 0
held() { cat "$work/$1.out"; }
check "a warm start is no larger: $(held lasting) after $(held first)" \
    [ "$(held lasting)" -lt $(($(held first) + 1000000)) ]
cp "$file" "$work/before"
learns forked fork
check "a child writes nothing" cmp -s "$file" "$work/before"
for i in 1 2 3 4; do
    rm "$file"
    learns closed closed
    ! grep -q '^first_second 1 5' "$file" || break
done
check "closed descriptors: it is written" grep -q '^first_second 1 5' "$file"

# Words of learn.
rm "$file"
learns nothing small HAKMEM_LEARN=none
says nothing "without effect, since nothing is learned: profile (environment)"
check "without learning there is no file" [ ! -e "$file" ]
learns by_mode small HAKMEM_MODE=learning
check "mode learning writes it" [ -s "$file" ]

# What is refused is said and stays as it is.
refuses() {
    cp -P "$file" "$work/before"
    learns "$1" small
    says "$1" "hakmem: $file: $2, ignored"
    check "$1: it stays" cmp -s "$file" "$work/before"
}
chmod 620 "$file"
refuses open "is writable by other users"
chmod 600 "$file"
sed -i 's/^hakmem learned 1/hakmem learned 2/' "$file"
refuses version "was written by another version of hakmem"
sed -i 's/^hakmem learned 2/hakmem learned 1/; s/^first_second /first_second 1/' "$file"
refuses changed "has a wrong checksum"
learns strict small HAKMEM_ABORT_CONF=1
says strict "has a wrong checksum, ignored"
mv "$file" "$work/elsewhere"
ln -s "$work/elsewhere" "$file"
refuses linked "is a symbolic link"
rm "$file"
: >"$file"
learns empty small
silent empty
check "an empty file is as good as none" [ -s "$file" ]
head -c 40000 /dev/zero >"$file"
refuses long "is larger than 36 KiB"
rm "$file"
mkdir "$file"
learns folder small
says folder "hakmem: $file: is not a regular file, ignored"
rmdir "$file"
if [ "$(id -u)" = 0 ]; then
    learns mine small
    chown nobody "$file"
    refuses foreign "belongs to another user"
    rm "$file"
fi

# What cannot be written.
private="unshare --map-root-user --mount"
if $private true 2>/dev/null; then
    learns mounted_first small
    # shellcheck disable=SC2016
    $private sh -c 'mount --bind "$0" "$0" && LD_PRELOAD="$1" HAKMEM_PROFILE="$0" exec "$2" small' \
        "$file" "$PRELOAD_LIB" "$learner" 2>"$work/mounted.err" >"$work/mounted.out"
    says mounted "the file is a mount point: its directory is to be mounted"
    rm "$file"
fi
file=$work/none/such
learns nowhere small
says nowhere "what was learned cannot be written to $work/none/such: no such file or directory"
file=$work/learned
learns small_first small
cp "$file" "$work/before"
status=0
(ulimit -f 0 && cd "$work/preloaded" && exec env LD_PRELOAD="$PRELOAD_LIB" \
    HAKMEM_PROFILE="$file" "$learner" small) 2>"$work/full.err" || status=$?
equal "a full disk: exit status" "$status" 0
check "a full disk: the file stays" cmp -s "$file" "$work/before"
equal "and nothing beside it" "$(ls "$work" | grep -c 'learned\.')" 0
