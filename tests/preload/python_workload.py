# SPDX-License-Identifier: MIT
"""What python3 does all day, with an output that is the same each time."""
import collections
import hashlib
import json
import multiprocessing
import re
import subprocess
import sys
import threading
import zlib


def documents(count):
    state = 12345
    for number in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        yield {"number": number, "words": [f"w{(state >> shift) % 997}" for shift in range(12)],
               "text": "x" * (state % 3000), "nested": {"list": list(range(state % 40))}}


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def grow_and_shrink(results, index):
    """Lists and dictionaries that are resized again and again."""
    table, total = {}, 0
    for number in range(20000):
        table[number] = [index] * (number % 50)
        if number % 3 == 0:
            total += len(table.pop(number // 2, []))
    results[index] = (total, len(table))


def square_sum(number):
    return sum(value * value for value in range(number * 1000))


def main():
    text = json.dumps(list(documents(2000)))
    print("json", digest(json.loads(text)))
    words = collections.Counter(re.findall(r"w(\d+)", text))
    print("re", words.most_common(5), len(re.sub(r"x{3,}", "", text)))
    print("zlib", zlib.crc32(zlib.decompress(zlib.compress(text.encode()))))
    results = [None] * 8
    threads = [threading.Thread(target=grow_and_shrink, args=(results, index))
               for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("threads", results)
    for number in range(5):
        print(subprocess.run([sys.executable, "-c", f"print('child', sum(range({number}000)))"],
                             capture_output=True, text=True, check=True).stdout.strip())
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, pool.map(square_sum, range(12)))


if __name__ == "__main__":
    main()
