#!/bin/sh
# SPDX-License-Identifier: MIT
# A redis server, filled with 300,000 keys of 100 bytes, of which 70 % go, then filled with 180:
# `redis_refill.sh SEED`, about three seconds. The server becomes this process.
command -v redis-server >/dev/null || exit 77
folder=$(mktemp -d)
socket=$folder/socket
preloaded=$LD_PRELOAD
unset LD_PRELOAD
(
    while ! redis-cli -s "$socket" ping >/dev/null 2>&1; do sleep 0.05; done
    redis-cli -s "$socket" DEBUG POPULATE 300000 a 100 >/dev/null
    redis-cli -s "$socket" EVAL "math.randomseed(ARGV[1])
        for i = 0, 299999 do
            if math.random() < 0.7 then redis.call('DEL', 'a:' .. i) end
        end" 0 "$1" >/dev/null
    sleep 0.5
    redis-cli -s "$socket" DEBUG POPULATE 300000 b 180 >/dev/null
    sleep 0.5
    redis-cli -s "$socket" SHUTDOWN NOSAVE >/dev/null 2>&1
    rm -rf "$folder"
) &
LD_PRELOAD=$preloaded exec redis-server --port 0 --unixsocket "$socket" --save '' --dir "$folder" \
    --enable-debug-command local --loglevel warning
