# SPDX-License-Identifier: MIT
"""The figures of README are those of the documents that it names. If this fails, README promises
what nobody measured."""
import re

import pytest
from conftest import ROOT

README = (ROOT / "README.md").read_text()
REASONS = re.sub(r"\s+", " ", README.split("## Three reasons")[1].split("<!-- hakbench")[0])
SUITE = (ROOT / "docs/benchmarks/suite.md").read_text()


def means():
    """Of each allocator: its mean time and peak memory, hakmem's being 1."""
    rows = re.findall(r"^\| \**([\w ]+?)\** \| .* \| \**([\d.]+)\** \| \**([\d.]+)\** \|.*of",
                      SUITE, re.M)
    return {name.replace("system", "glibc"): (time, memory) for name, time, memory in rows}


def test_readme_names_the_build_that_was_measured():
    build = re.search(r"^\| \*\*hakmem\*\* \| \*\*(\w+)\*\*", SUITE, re.M)[1]
    assert build in README.split("<!-- hakbench: begin -->")[1].split("<!-- hakbench: end -->")[0]


def test_the_times_are_those_of_the_session():
    first = REASONS.split("2. **Memory.**")[0]
    said = dict(re.findall(r"(\w+) (?:took )?(\d\.\d\d)", first))
    assert said == {name: time for name, (time, _) in means().items() if name != "hakmem"}
    assert f"{re.search(r'the (.*) cases that all of them', SUITE)[1]} benchmark cases" in first


def test_the_memory_is_that_of_the_session():
    found = {name: memory for name, (_, memory) in means().items()
             if name not in ("hakmem", "glibc")}
    said = re.search(r"was (\d\.\d\d) \((\w+)\) to (\d\.\d\d) \((\w+)\) times", REASONS).groups()
    least, most = (choose(found, key=lambda name: float(found[name])) for choose in (min, max))
    assert said == (found[least], least, found[most], most)
    assert f"that of glibc {means()['glibc'][1]}." in REASONS


@pytest.mark.parametrize("column, pattern", [
    ("hakmem hardened", r"missed (\w+) in hardened"), ("hakmem", r"and (\d+) by default"),
    ("system", r"glibc missed (\d+)"), ("tcmalloc", r"tcmalloc (\d+)"),
    ("jemalloc", r"jemalloc (\d+)")])
def test_the_misuse_is_that_of_the_matrix(column, pattern):
    lines = (ROOT / "docs/ATTACKS.md").read_text().splitlines()
    heads, last = ([cell.strip() for cell in line.split("|")] for line in lines
                   if line.startswith(("| misuse", "| **not missed**")))
    stopped, of = re.fullmatch(r"(\d+) of (\d+)", last[heads.index(column)]).groups()
    said = re.search(pattern, REASONS.split("3. **Misuse.**")[1])[1]
    assert {"none": 0}.get(said, said) in (int(of) - int(stopped), str(int(of) - int(stopped)))
