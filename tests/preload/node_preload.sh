# SPDX-License-Identifier: MIT
# node: Buffers and zlib in worker threads, child processes, a server and its clients. V8 makes its
# own heap from mmap; Buffers, the parser and libuv take theirs from malloc, and one thread frees
# what another took. If this fails, so does a JavaScript service.
. "$(dirname "$0")/lib.sh"
command -v node >/dev/null || skip "no node: its 52 MB are installed by ./hak test --full"

cat >"$work/program.js" <<'END'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { execFileSync } = require('child_process');
const crypto = require('crypto');
const http = require('http');
const zlib = require('zlib');

function digest(seed, count) {
    const hash = crypto.createHash('sha256');
    for (let i = 0; i < count; i++) {
        const bytes = Buffer.alloc(1000 + (i * 7919 + seed) % 60000, i & 255);
        hash.update(zlib.inflateSync(zlib.deflateSync(bytes)));
        hash.update(JSON.stringify(JSON.parse(JSON.stringify({ i, text: 'x'.repeat(i) }))));
    }
    return hash.digest('hex');
}

async function serve(socket) {
    const server = http.createServer((request, response) => {
        const parts = [];
        request.on('data', (part) => parts.push(part));
        request.on('end', () => response.end(zlib.gzipSync(Buffer.concat(parts))));
    });
    await new Promise((resolve) => server.listen(socket, resolve));
    const replies = Array.from({ length: 40 }, (_, i) => new Promise((resolve, reject) => {
        const request = http.request({ socketPath: socket, method: 'POST' }, (response) => {
            const parts = [];
            response.on('data', (part) => parts.push(part));
            response.on('end', () => resolve(zlib.gunzipSync(Buffer.concat(parts)).length));
        });
        request.on('error', reject);
        request.end(Buffer.alloc(i * 5000, i));
    }));
    console.log((await Promise.all(replies)).join(' '));
    await new Promise((resolve) => server.close(resolve));
}

async function main() {
    const workers = [0, 1, 2, 3].map((seed) => new Promise((resolve, reject) => {
        const worker = new Worker(__filename, { workerData: seed });
        let result;
        worker.on('message', (message) => { result = message; });
        worker.on('error', reject);
        worker.on('exit', () => resolve(result));
    }));
    for (const result of await Promise.all(workers)) {
        const bytes = Buffer.from(result);
        console.log(bytes.length, crypto.createHash('md5').update(bytes).digest('hex'));
    }
    console.log(execFileSync(process.execPath, ['-p', '"child".repeat(3)']).toString().trim());
    await serve('./socket');
}

if (isMainThread) {
    main();
} else {
    // An ArrayBuffer changes its owner: taken here, freed by the main thread.
    const bytes = new Uint8Array(500000).fill(workerData);
    bytes.set(Buffer.from(digest(workerData, ROUNDS)));
    parentPort.postMessage(bytes.buffer, [bytes.buffer]);
}
END
if full; then rounds=2000; else rounds=200; fi
sed -i "s/ROUNDS/$rounds/" "$work/program.js"

well node node "$work/program.js"
check "the workers came to hakmem" [ "$(counter node threads_started)" -gt 4 ]
check "the child came to hakmem, too" [ "$(reports node)" -ge 2 ]
