# SPDX-License-Identifier: MIT
# memcached with four threads serves what was stored, evicts, flushes, and answers as without
# hakmem. If this fails, caches that live for months are not to be put on hakmem.
. "$(dirname "$0")/lib.sh"
needs memcached python3

# Four clients beside each other, with keys of their own; what they read is the output.
cat >"$work/load.py" <<'END'
import hashlib
import socket
import sys
import threading

ROUNDS = int(sys.argv[2])


def client(number, digests):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    stream = connection.makefile("rwb")
    digest = hashlib.sha256()

    def ask(text, body=b""):
        stream.write(text.encode() + b"\r\n" + (body + b"\r\n" if body else b""))
        stream.flush()
        line = stream.readline()
        digest.update(line)
        return line

    def get(keys):
        line = ask("get " + " ".join(keys))
        while line.startswith(b"VALUE"):
            digest.update(stream.read(int(line.split()[3]) + 2))
            line = stream.readline()
            digest.update(line)

    for index in range(ROUNDS):
        size = 1 + index * 7919 % 3000 if index % 100 else 200000
        ask(f"set {number}:{index % 500} {index} 0 {size}", bytes([65 + index % 26]) * size)
        if index % 3 == 0:
            get([f"{number}:{(index * 31 + shift) % 500}" for shift in range(20)])
        if index % 5 == 0:
            ask(f"append {number}:{index % 500} 0 0 4", b"tail")
        if index % 7 == 0:
            ask(f"delete {number}:{index * 13 % 500}")
    ask(f"set {number}:count 0 0 1", b"5")
    ask(f"incr {number}:count 37")
    digests[number] = digest.hexdigest()


digests = [None] * 4
for wave in range(5):
    threads = [threading.Thread(target=client, args=(number, digests)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(digests)
END
if full; then rounds=20000; else rounds=600; fi
user=$(id -un 2>/dev/null || id -u) # it may have no name

# run NAME LIBRARY: a server, the load, the server's end.
run() {
    rm -f "$work/socket"
    server "$1" "$2" memcached -u "$user" -U 0 -s "$work/socket" -t 4 -m 256
    becomes "$1 listens" listens "$work/socket"
    python3 "$work/load.py" "$work/socket" $rounds >"$work/$1.load" ||
        fail "$1: the clients' end: $(cat "$work/$1.err")"
    [ -z "$2" ] || mapped
    ends TERM
}
run plain ''
run memcached "$PRELOAD_LIB"
equal "all waves are told" "$(wc -l <"$work/memcached.load")" 5
check "the clients got the same" cmp "$work/plain.load" "$work/memcached.load"
check "stderr is the same" cmp "$work/plain.err" "$work/memcached.err"
served memcached
check "its threads came to hakmem" [ "$(counter memcached threads_started)" -ge 5 ]
