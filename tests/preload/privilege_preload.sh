# SPDX-License-Identifier: MIT
# A program that runs with another user's rights does not listen to the environment of its caller.
# If this fails, anyone may have a setuid program append statistics to a file that is not theirs.
#
# The loader refuses LD_PRELOAD paths for such a program, so this is one that is linked with hakmem.
# It is a copy that is owned by user daemon and run by nobody: neither has rights here.
. "$(dirname "$0")/lib.sh"
needs setpriv stat
[ "$(id -u)" = 0 ] || skip "only root may make a copy that belongs to somebody else"

chmod 755 "$work"
mkdir "$work/open"
chmod 777 "$work/open"
cp "$OUT/tests/errno_linked" "$work/ordinary"
cp "$OUT/tests/errno_linked" "$work/privileged"
chown daemon "$work/privileged" && chmod 4755 "$work/privileged" || skip "chown is not possible"
chmod 755 "$work/ordinary"

# as_nobody NAME PROGRAM SETTING...
as_nobody() {
    name=$1
    program=$2
    shift 2
    status=0
    (cd / && exec timeout "$limit_s" setpriv --reuid=nobody --regid=nogroup --clear-groups \
        env "$@" "$program") >"$work/$name.out" 2>"$work/$name.err" </dev/null || status=$?
    equal "$name: ends well, $(tail -n 3 "$work/$name.out")" "$status" 0
}

as_nobody ordinary "$work/ordinary" HAKMEM_PROFILE="$work/open/ordinary.learned" \
    HAKMEM_SHOW_CONF=1 HAKMEM_BOGUS=1 \
    HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/open/ordinary"
check "an ordinary program listens" grep -q '^hakmem: decay=' "$work/ordinary.err"
check "and complains" grep -q BOGUS "$work/ordinary.err"
equal "what it learned is its user's" "$(stat -c %U "$work/open/ordinary.learned")" nobody
equal "its statistics are its user's" "$(stat -c %U "$work/open/ordinary")" nobody

case $(findmnt -n -o OPTIONS -T "$work" 2>/dev/null) in
*nosuid*) skip "no setuid programs in ${TMPDIR:-/tmp}" ;;
esac
as_nobody privileged "$work/privileged" HAKMEM_PROFILE="$work/open/learned" \
    HAKMEM_SHOW_CONF=1 HAKMEM_BOGUS=1 HAKMEM_ABORT_CONF=1 \
    HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/open/privileged"
check "a privileged one does not: $(head -c 200 "$work/privileged.err")" \
    [ ! -s "$work/privileged.err" ]
check "it wrote no file" [ ! -e "$work/open/privileged" ]
check "and none of what it learned" [ ! -e "$work/open/learned" ]
