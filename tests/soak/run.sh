# SPDX-License-Identifier: MIT
# run.sh [limit | hardened] - everything at once for HAK_SOAK_SECONDS (30; with HAK_FULL 900), after
# a second for each seed that once failed; with `limit` under a limit that refuses requests, with
# `hardened` in that mode. A seed that fails goes into seeds.txt.
. "$(dirname "$0")/../preload/lib.sh"

seconds=30
! full || seconds=900
seconds=${HAK_SOAK_SECONDS:-$seconds}
limit_s=$((seconds + 100))
settings=SOAK=1
served=served
case ${1:-} in
limit) settings='HAKMEM_LIMIT=24M SOAK_MAY_FAIL=1' ;;
hardened) settings=HAKMEM_MODE=hardened served=served_hardened ;;
esac

soak() {
    echo "seed $2, $1 s, $settings"
    # shellcheck disable=SC2086 # settings are words
    preloaded "seed_$2" env $settings "$OUT/tests/soak" "$1" "$2"
    equal "seed $2: ends well, $(tail -n 5 "$work/seed_$2.err")" "$(cat "$work/seed_$2.status")" 0
    "$served" "seed_$2"
}

for kept in $(sed 's/#.*//' "$(dirname "$0")/seeds.txt"); do
    soak 1 "$kept"
done
seed=${HAK_SOAK_SEED:-$(date +%s)}
soak "$seconds" "$seed"
cat "$work/seed_$seed.out"
for what in exchanges resizes threads libraries signals heaps fork _Fork clone vfork posix_spawn; do
    check "some $what" [ "$(sed -n "s/^$what: //p" "$work/seed_$seed.out")" -gt 0 ]
done
