#!/bin/sh
# SPDX-License-Identifier: MIT
# packages: python3
# python3: words, dictionaries, sorted lists, JSON; every object of its own in malloc. One operation
# is one word counted.
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
[ -x "$python" ] || { needs python3; python=python3; }
cat >"$work/words.py" <<'END'
import collections
import json
import sys

count = int(sys.argv[1])
words = [f"w{i * i % 9973}" for i in range(count)]
places = collections.defaultdict(list)
for number, word in enumerate(words):
    places[word].append((number, word + "!"))
text = json.dumps({word: sorted(found, reverse=True) for word, found in places.items()})
print(sum(len(found) for found in json.loads(text).values()))
END
export PYTHONMALLOC=malloc PYTHONHASHSEED=0
measured "$python" -S -B "$work/words.py" 100000
says 100000
throughput 100000
