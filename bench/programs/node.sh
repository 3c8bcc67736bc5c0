#!/bin/sh
# SPDX-License-Identifier: MIT
# title: a JavaScript program: buffers and JSON
# packages: nodejs
# node: buffers and strings beside the engine's own heap, JSON. One operation is one record.
. "$(dirname "$0")/lib.sh"
needs node
cat >"$work/records.js" <<'END'
const count = Number(process.argv[2]);
const kept = new Map();
for (let i = 0; i < count; i++) {
    const record = { id: i, name: `record ${i % 997}`, body: Buffer.alloc(200 + i % 9000, i) };
    const text = JSON.stringify({ id: record.id, name: record.name });
    kept.set(i % 2000, [JSON.parse(text), record.body]);
}
console.log([...kept.values()].reduce((sum, [record]) => sum + (record.id >= 0), 0));
END
measured node "$work/records.js" 200000
says 2000
throughput 200000
