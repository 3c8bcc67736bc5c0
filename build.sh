#!/bin/sh
# ./build.sh TARGET: builds one target into out/release/TARGET.
set -eu
cd "$(dirname "$0")"
[ $# -eq 1 ] || { echo "usage: ./build.sh TARGET    (for example larson_hakmem)" >&2; exit 2; }
exec ./hak build release "$1"
