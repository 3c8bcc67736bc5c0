#!/bin/sh
# SPDX-License-Identifier: MIT
# title: a Python script: words, dictionaries, JSON
# packages: python3
# python3: words, dictionaries, sorted lists, JSON; every object of its own in malloc. One operation
# is one word counted.
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
[ -x "$python" ] || { needs python3; python=python3; }
export PYTHONMALLOC=malloc PYTHONHASHSEED=0
measured "$python" -S -B "$(dirname "$0")/words.py" 100000
says 100000
throughput 100000
