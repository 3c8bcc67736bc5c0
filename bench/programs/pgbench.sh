#!/bin/sh
# SPDX-License-Identifier: MIT
# title: a PostgreSQL server, four clients that read
# packages: postgresql postgresql-contrib
# pgbench: a PostgreSQL server under its own benchmark, select-only, 4 clients. One operation is one
# transaction. The server and its processes get the library, and pg_ctl, which starts it. A server
# does not run as root, so root runs it as nobody.
. "$(dirname "$0")/lib.sh"
needs pgbench
bin=
for folder in /usr/lib/postgresql/*/bin; do
    [ ! -x "$folder/initdb" ] || bin=$folder
done
[ -n "$bin" ] || { echo "skipped: no postgresql server"; exit 77; }
as=
if [ "$(id -u)" = 0 ]; then
    needs runuser
    as="runuser -u nobody --"
    chown nobody "$work"
fi
cd "$work"
at_end() {
    [ ! -f data/postmaster.pid ] || $as "$bin/pg_ctl" -D data -m fast stop >/dev/null
}
$as "$bin/initdb" -D data -U bench -A trust --no-sync >"$work/initdb.log" 2>&1 ||
    fail "initdb: $(tail -n 1 "$work/initdb.log")"
$as env ${BENCH_PRELOAD:+"LD_PRELOAD=$BENCH_PRELOAD"} "$bin/pg_ctl" -D data -w -l data/log \
    -o "-k $work -c listen_addresses= -c fsync=off" start >/dev/null || fail "no server"
# The library may lie where nobody may not read it.
[ -z "$BENCH_PRELOAD" ] ||
    grep -q "${BENCH_PRELOAD##*/}" "/proc/$(head -n 1 data/postmaster.pid)/maps" ||
    fail "the server runs without $BENCH_PRELOAD"
bench() { pgbench -h "$work" -U bench "$@" postgres 2>&1; }
bench -i -q -s 2 >"$work/fill.log" || fail "pgbench: $(tail -n 1 "$work/fill.log")"
start_clock
bench -n -S -c 4 -j 1 -t 5000 -M prepared >"$work/out" || fail "pgbench: $(tail -n 1 "$work/out")"
stop_clock
grep -q 'actually processed: 20000/20000' "$work/out" || fail "transactions are missing"
throughput 20000
