# SPDX-License-Identifier: MIT
"""words.py COUNT - words, dictionaries, sorted lists and JSON; prints COUNT."""
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
