# SPDX-License-Identifier: MIT
# redis-server on hakmem serves, saves, and rewrites under load. If this fails, the service that
# people change their malloc for first does not survive it.
#
# Debian's redis-server is linked with libjemalloc.so, under the names of libc: malloc, free,
# calloc, realloc and malloc_usable_size. A preloaded library comes before it, so hakmem serves
# redis, and jemalloc is there only for its mallctl and malloc_stats_print, which then speak of an
# idle heap.
. "$(dirname "$0")/lib.sh"
needs redis-server redis-cli redis-benchmark

cd "$work/preloaded"
at_end() {
    [ -z "${server:-}" ] || kill -KILL "$server" 2>/dev/null || :
}

# The time limit is for the server itself, should this script be killed. I/O threads and lazy frees,
# so that blocks are freed by other threads than took them.
limit_s=250
start() {
    timeout "$limit_s" env LD_PRELOAD="$PRELOAD_LIB" HAKMEM_STATS=text \
        HAKMEM_STATS_FILE="$work/redis.stats" redis-server --port 0 --unixsocket "$work/socket" \
        --dir "$work/preloaded" --save '' --io-threads 2 --io-threads-do-reads yes \
        --lazyfree-lazy-user-del yes --lazyfree-lazy-expire yes \
        >"$work/redis.out" 2>"$work/redis.err" </dev/null &
    server=$!
    tries=0
    until [ "$(ask PING 2>&1)" = PONG ]; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "redis-server does not answer: $(cat "$work/redis.out")"
        sleep 0.1
    done
}
stop() {
    ask SHUTDOWN "$@" >/dev/null 2>&1 || :
    status=0
    wait "$server" || status=$?
    server=
    equal "redis-server ends well" "$status" 0
}
ask() { redis-cli -s "$work/socket" "$@"; }

# Waits for what redis does in a child: `idle COMMAND FIELD`.
background() {
    ask "$1" >/dev/null
    tries=0
    until [ "$(ask INFO persistence | tr -d '\r' | sed -n "s/^$2://p")" = 0 ]; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "$1 does not end"
        sleep 0.1
    done
}

start
# Keys, values of every size, lists, sets, hashes, sorted sets; the clients run on the system's
# malloc.
redis-benchmark -s "$work/socket" -q -n 5000 -c 20 -P 8 -r 5000 \
    -t set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,mset \
    >"$work/benchmark.out" 2>&1
redis-benchmark -s "$work/socket" -q -n 1000 -c 10 -r 500 -d 20000 -t set,get \
    >>"$work/benchmark.out" 2>&1
check "the load ran to its end" grep -q 'MSET.*requests per second' "$work/benchmark.out"
ask EVAL "for i = 1, 20000 do redis.call('SET', 'lua:' .. i, string.rep('v', i % 300)) end" 0 \
    >/dev/null
background BGSAVE rdb_bgsave_in_progress
equal "the child that saved ended well" \
    "$(ask INFO persistence | tr -d '\r' | sed -n 's/^rdb_last_bgsave_status://p')" ok
background BGREWRITEAOF aof_rewrite_in_progress
ask DEL $(seq -f 'lua:%.0f' 1 2 999) >/dev/null
before=$(ask DEBUG DIGEST 2>/dev/null || ask DBSIZE)
keys=$(ask DBSIZE)
check "there are keys" [ "$keys" -gt 5000 ]
stop SAVE

start
equal "the keys are all there after a restart" "$(ask DBSIZE)" "$keys"
equal "and are what they were" "$(ask DEBUG DIGEST 2>/dev/null || ask DBSIZE)" "$before"
equal "a value is intact" "$(ask STRLEN lua:20000)" 200
ask FLUSHALL ASYNC >/dev/null
equal "everything can be deleted" "$(ask DBSIZE)" 0
stop NOSAVE

check "redis-server says nothing on stderr: $(head -c 300 "$work/redis.err")" \
    [ ! -s "$work/redis.err" ]
served redis
check "its threads came to hakmem" [ "$(counter redis threads_started)" -gt 2 ]
check "redis's own requests came to hakmem" [ "$(counter redis refills)" -gt 1000 ]
check "what one thread took another freed" [ "$(counter redis remote_blocks)" -gt 0 ]
