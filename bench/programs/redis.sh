#!/bin/sh
# SPDX-License-Identifier: MIT
# title: a Redis server under its own benchmark
# packages: redis-server redis-tools
# redis: a server in memory under redis-benchmark, sets and lists of 64 to 512 bytes. One operation
# is one request; the time is that of the requests. Debian links redis with jemalloc: without
# BENCH_PRELOAD it gets libc's malloc, by preloading libc itself.
. "$(dirname "$0")/lib.sh"
needs redis-server redis-cli redis-benchmark
BENCH_PRELOAD=${BENCH_PRELOAD:-libc.so.6}
socket=$work/redis.sock
at_end() { [ -z "${server:-}" ] || { kill "$server" 2>/dev/null; wait "$server" || :; }; }
env LD_PRELOAD="$BENCH_PRELOAD" redis-server --port 0 --unixsocket "$socket" --save '' \
    --appendonly no --daemonize no --dir "$work" >"$work/log" 2>&1 &
server=$!
tries=100
until redis-cli -s "$socket" ping >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "redis-server does not answer"
    sleep 0.1
done
load() { redis-benchmark -s "$socket" -q -P 16 -c 20 "$@" >/dev/null 2>&1 || fail "no answer"; }
start_clock
load -n 200000 -r 50000 -d 64 -t set
load -n 200000 -r 50000 -d 512 -t set
load -n 100000 -r 50000 -d 128 -t lpush,lpop
stop_clock
[ "$(redis-cli -s "$socket" dbsize)" -gt 40000 ] || fail "keys are missing"
throughput 600000
