#!/bin/sh
# SPDX-License-Identifier: MIT
# title: random blocks up to 64 KiB, trimmed all the time
# packages: stress-ng
# stress-ng: blocks of up to 64 KiB taken, resized and freed at random, of which little is touched,
# with a malloc_trim now and then. One operation is one of its own.
. "$(dirname "$0")/lib.sh"
needs stress-ng
measured stress-ng --malloc 1 --malloc-ops 100000 --seed 42 --temp-path "$work"
throughput 100000
