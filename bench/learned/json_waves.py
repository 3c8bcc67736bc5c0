# SPDX-License-Identifier: MIT
"""A service that reads a batch of documents three times a second, keeps a few of the last eleven
batches, and drops the rest: `json_waves.py SEED [WAVES]`, about three seconds without WAVES."""
import json
import random
import sys
import time

random.seed(int(sys.argv[1]))
BATCH = json.dumps([{"id": i, "name": "n" * random.randrange(10, 60),
                     "text": "t" * random.randrange(600, 6000)} for i in range(8000)])
kept = []
for wave in range(int(sys.argv[2]) if len(sys.argv) > 2 else 11):
    documents = json.loads(BATCH)
    kept.extend(documents[random.randrange(len(documents))] for _ in range(100))
    del documents, kept[:-1100]
    time.sleep(0.25)
print(len(kept))
