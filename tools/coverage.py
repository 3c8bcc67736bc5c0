# SPDX-License-Identifier: MIT
"""Lines of src/ that the tests of out/coverage ran: a table, the uncovered lines in
out/coverage/uncovered.txt, and exit status 1 below 90 %."""
import collections
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from checklib import ROOT

LEAST_PERCENT = 90
BUILD = ROOT / "out/coverage"


def executions():
    """{file: {line: times}} over all objects of the library; of inline code the sum."""
    lines = collections.defaultdict(collections.Counter)
    notes = sorted((BUILD / "CMakeFiles/hakmem_test.dir/src").rglob("*.gcno"))
    with tempfile.TemporaryDirectory() as folder:
        for note in notes:
            subprocess.run(["gcov", "--json-format", note], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for packed in Path(folder).glob("*.gz"):
                for file in json.loads(gzip.decompress(packed.read_bytes()))["files"]:
                    path = Path(os.path.normpath(BUILD / file["file"]))
                    if not path.is_relative_to(ROOT / "src"):
                        continue
                    for line in file["lines"]:
                        lines[path.relative_to(ROOT)][line["line_number"]] += line["count"]
                packed.unlink()
    return lines


def ranges(numbers):
    """7 8 9 12 -> 7-9 12"""
    runs = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{a}-{b}" if a != b else str(a) for a, b in runs)


def main():
    lines = executions()
    uncovered = []
    covered_count = all_count = 0
    for path in sorted(lines):
        missed = [number for number, times in lines[path].items() if times == 0]
        covered = len(lines[path]) - len(missed)
        covered_count += covered
        all_count += len(lines[path])
        count = len(lines[path])
        print(f"{100 * covered / count:6.1f} %  {covered:4} of {count:4}  {path}")
        if missed:
            uncovered.append(f"{path}: {ranges(missed)}\n")
    (BUILD / "uncovered.txt").write_text("".join(uncovered))
    percent = 100 * covered_count / max(all_count, 1)
    print(f"{percent:6.1f} %  {covered_count} of {all_count} lines of src/; "
          f"the others are in {(BUILD / 'uncovered.txt').relative_to(ROOT)}")
    sys.exit(percent < LEAST_PERCENT)


main()
