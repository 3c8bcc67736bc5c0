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
limit_s=1200

# start NAME LIBRARY LOG: with I/O threads and lazy frees, so that blocks are freed by other threads
# than took them; LOG is yes or no.
start() {
    server "$1" "$2" redis-server --port 0 --unixsocket "$work/socket" \
        --dir "$work/preloaded" --save '' --appendonly "$3" --io-threads 2 \
        --io-threads-do-reads yes --lazyfree-lazy-user-del yes --lazyfree-lazy-expire yes \
        --enable-debug-command local
    becomes "$1 answers" answers
}
answers() { [ "$(ask PING 2>&1)" = PONG ]; }
stop() {
    ask SHUTDOWN "$@" >/dev/null 2>&1 || :
    ends
    check "redis-server says nothing on stderr: $(head -c 300 "$work/$server_name.err")" \
        [ ! -s "$work/$server_name.err" ]
}
digest() { ask DEBUG DIGEST; }
ask() { redis-cli -s "$work/socket" "$@"; }

# Waits for what redis does in a child: `idle COMMAND FIELD`.
background() {
    ask "$1" >/dev/null
    tries=0
    until [ "$(ask INFO persistence | tr -d '\r' | sed -n "s/^$2://p")" = 0 ]; do
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || fail "$1 does not end"
        sleep 0.1
    done
}

start redis "$PRELOAD_LIB" no
mapped
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
before=$(digest)
check "there is a digest: $before" [ "${#before}" = 40 ]
keys=$(ask DBSIZE)
check "there are keys" [ "$keys" -gt 5000 ]
stop SAVE

start redis "$PRELOAD_LIB" no
equal "the keys are all there after a restart" "$(ask DBSIZE)" "$keys"
equal "and are what they were" "$(digest)" "$before"
equal "a value is intact" "$(ask STRLEN lua:20000)" 200
ask FLUSHALL ASYNC >/dev/null
equal "everything can be deleted" "$(ask DBSIZE)" 0
stop NOSAVE

# Without hakmem redis reads the same from what was saved.
start plain libc.so.6 no
equal "another malloc reads the same" "$(digest)" "$before"
stop NOSAVE

# With a log of all writes, which is rewritten, and a dump, by children while clients write.
rm -f dump.rdb
start redis "$PRELOAD_LIB" yes
if full; then requests=500000; else requests=3000; fi
redis-benchmark -s "$work/socket" -q -n $requests -c 10 -P 4 -r 3000 -d 400 \
    -t set,incr,lpush,sadd,hset,zadd >"$work/logged.out" 2>&1 &
clients=$!
background BGREWRITEAOF aof_rewrite_in_progress
background BGSAVE rdb_bgsave_in_progress
background BGREWRITEAOF aof_rewrite_in_progress
wait $clients
check "the load ran to its end" grep -q 'ZADD.*requests per second' "$work/logged.out"
for field in aof_last_bgrewrite_status aof_last_write_status rdb_last_bgsave_status; do
    equal "$field" "$(ask INFO persistence | tr -d '\r' | sed -n "s/^$field://p")" ok
done
before=$(digest)
stop NOSAVE
start redis "$PRELOAD_LIB" yes
equal "the log holds all that was written" "$(digest)" "$before"
stop NOSAVE
start plain libc.so.6 yes
equal "another malloc reads the same from the log" "$(digest)" "$before"
stop NOSAVE

served redis
check "its threads came to hakmem" [ "$(counter redis threads_started)" -gt 2 ]
check "redis's own requests came to hakmem" [ "$(counter redis refills)" -gt 1000 ]
