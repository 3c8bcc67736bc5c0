# SPDX-License-Identifier: MIT
# nginx with two workers serves files, packed and in parts, under load, reads its settings again
# and ends its workers gently. If this fails, a web server does not run on hakmem.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin
needs nginx python3

mkdir -p "$work/site"
for n in 1 2 3 4 5 6 7 8; do
    seq $((n * n * 700)) >"$work/site/file$n.txt"
done
user=
[ "$(id -u)" != 0 ] || user='user root;'
cat >"$work/nginx.conf" <<END
daemon off;
$user
worker_processes 2;
pid $work/nginx.pid;
error_log stderr crit;
events { worker_connections 128; }
http {
    types { text/plain txt; }
    access_log off;
    gzip on;
    gzip_types text/plain;
    client_body_temp_path $work/temporary;
    proxy_temp_path $work/temporary_proxy;
    fastcgi_temp_path $work/temporary_fastcgi;
    uwsgi_temp_path $work/temporary_uwsgi;
    scgi_temp_path $work/temporary_scgi;
    server {
        listen unix:$work/inner;
        root $work/site;
    }
    server {
        listen unix:$work/socket;
        root $work/site;
        location /proxy/ {
            proxy_pass http://unix:$work/inner:/;
        }
    }
}
END
cat >"$work/load.py" <<'END'
import hashlib
import http.client
import socket
import sys
import threading
import zlib

ROUNDS = int(sys.argv[2])


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])


# A worker that ends closes its connection behind an answer; the request that was on its way is made
# again (RFC 9112, 9.3.1).
def ask(connection, path, headers):
    for last in [False] * 5 + [True]:
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer, answer.read()
        except ConnectionError:
            connection.close()
            if last:
                raise


def client(number, digests):
    digest = hashlib.sha256()
    connection = Connection("localhost")
    for index in range(ROUNDS):
        path = f"/file{1 + (index * 5 + number) % 9}.txt"
        headers = [{"Accept-Encoding": "gzip"}, {"Range": "bytes=100-4999"},
                   {"Long": "x" * (index % 3000)}][index % 3]
        if index % 4 == 3:
            path = "/proxy" + path
        answer, body = ask(connection, path, headers)
        if answer.getheader("Content-Encoding") == "gzip":
            body = zlib.decompress(body, 31)
        digest.update(str(answer.status).encode() + hashlib.md5(body).digest())
        if index % 50 == 49:
            connection.close()
            connection = Connection("localhost")
    digests[number] = digest.hexdigest()


digests = [None] * 6
threads = [threading.Thread(target=client, args=(number, digests)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(digests)
END
if full; then rounds=5000; else rounds=200; fi

workers() { cat "/proc/$server_process/task/$server_process/children"; }
# Two workers, none of which is one of $workers.
are_new() {
    [ "$(workers | wc -w)" = 2 ] || return 1
    for worker in $workers; do
        ! workers | grep -qw "$worker" || return 1
    done
}

# run NAME LIBRARY: a server, load, new workers, load, the server's end.
run() {
    rm -f "$work/socket" "$work/inner"
    server "$1" "$2" nginx -e stderr -p "$work" -c "$work/nginx.conf"
    becomes "$1 listens" listens "$work/socket"
    python3 "$work/load.py" "$work/socket" $rounds >"$work/$1.load" ||
        fail "$1: the clients' end: $(cat "$work/$1.err")"
    workers=$(workers)
    kill -HUP "$server_process"
    python3 "$work/load.py" "$work/socket" $rounds >>"$work/$1.load" ||
        fail "$1: the clients' end: $(cat "$work/$1.err")"
    becomes "$1: the workers are new ones" are_new
    [ -z "$2" ] || mapped
    ends QUIT
}
run plain ''
run nginx "$PRELOAD_LIB"
equal "both loads are told" "$(wc -l <"$work/nginx.load")" 2
check "the clients got the same" cmp "$work/plain.load" "$work/nginx.load"
check "stderr is the same: $(head -n 3 "$work/nginx.err")" cmp "$work/plain.err" "$work/nginx.err"
served nginx
check "the workers and their successors came to hakmem" [ "$(reports nginx)" -ge 5 ]
