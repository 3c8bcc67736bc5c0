# SPDX-License-Identifier: MIT
# curl fetches from python3's http.server, both on hakmem: one transfer, many beside each other,
# uploads that are refused. If this fails, a client that lives in OpenSSL's and curl's callbacks
# does.
. "$(dirname "$0")/lib.sh"
needs curl python3
# Where python3 is a shim, the program behind it.
python=$(python3 -c 'import sys; print(sys.executable)')

mkdir "$work/site"
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    seq $((n * n * 300)) >"$work/site/file$n"
done
cat >"$work/serve.py" <<'END'
import functools
import http.server
import signal
import sys

signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
    print("port", server.server_port, flush=True)
    server.serve_forever()
END
no_proxy='*'
export no_proxy

server http "$PRELOAD_LIB" "$python" "$work/serve.py" "$work/site"
becomes "the server listens" grep -q '^port [0-9]' "$work/http.out"
port=$(sed -n 's/^port //p' "$work/http.out")
url=http://127.0.0.1:$port

well one curl -sS "$url/file20"
check "what comes is what was there" cmp "$work/one.out" "$work/site/file20"
well many curl -sS --no-progress-meter --parallel --parallel-max 8 -o 'got#1' "$url/file[1-20]"
for n in 1 8 20; do
    check "file $n came" cmp "$work/preloaded/got$n" "$work/site/file$n"
done
same refused curl -sS -f -T "$work/site/file5" "$url/upload"
equal "an upload is refused" "$(cat "$work/refused.status")" 22
well version curl --version
mapped
ends TERM
served http
check "its threads came to hakmem" [ "$(counter http threads_started)" -gt 20 ]
