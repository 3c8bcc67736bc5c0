# SPDX-License-Identifier: MIT
# redis's own tests of its data types, of expiry, of saving and of scripting.
. "$(dirname "$0")/lib.sh"

oks() { grep -c '\[.*ok.*\]: ' || :; }
bads() { sed -n 's/.*\[.*err.*\]: //p' | sed 's/ ([0-9]* ms)//'; }

begin redis
needs tclsh
source_of redis
(cd "$work/redis" && make -j2 MALLOC=libc) >"$work/build.log" 2>&1 ||
    fail "redis cannot be built: $(tail -n 5 "$work/build.log")"
only=
for unit in ${portion:-unit/type/list unit/type/hash unit/type/set unit/type/zset \
    unit/type/string unit/type/stream unit/sort unit/expire unit/scripting unit/dump unit/other \
    integration/rdb integration/aof integration/convert-zipmap-hash-on-load}; do
    only="$only --single $unit"
done
# shellcheck disable=SC2086 # the units are words
compare sh -c 'cp -r "$1" . && cd redis && shift && ./runtest --clients 2 "$@"' sh \
    "$work/redis" $only
