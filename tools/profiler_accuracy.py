#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what sampling heap profilers say of a program with what is true.

    profiler_accuracy.py HAKMEM_FOLDER [--tcmalloc LIBRARY] [--runs N] [--write docs/PROFILER.md]

HAKMEM_FOLDER has libhakmem.so and hakmem. jemalloc is Debian's libjemalloc.so.2, with prof;
tcmalloc is gperftools' libtcmalloc.so.4. All sample one byte in 512 KiB; the profile that keeps a
pace is run ten times as often. The program is tools/profiler_trap.cpp."""
import argparse
import collections
import glob
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
RATE = 512 * 1024
SITES = ("keep_small", "keep_medium", "keep_large", "pass")
TEXT = """# Accuracy of the heap profiler

`tools/profiler_accuracy.py` runs a program with known live bytes under three sampling profilers,
{runs} times each ({runs_paced} where hakmem's sampling rate is bounded), at one sample in 512 KiB.
Three call sites keep about 64 MB each, in blocks of 100 bytes, 4,000 bytes and 100 KB. A fourth
site, `pass`, allocates and frees in pairs, a hundred times for each block of 4,000 bytes that is
kept. A profiler that samples by calls, by slow paths, or by countdowns in step with the program
attributes the bytes of one site to another.

The table shows the live bytes of each site relative to the true value: the mean of all runs with
its standard error in brackets, and the standard deviation of one run. An unbiased sampler has a
mean of 1.000 within the error. The deviation expected from chance alone is 1/sqrt(samples), about
{expected:.3f} for 122.

{table}

By default hakmem takes at most 1,000 samples a second (`heap_profile_samples`). This program
allocates 6.6 GB in less than a second, so hakmem then takes few samples of each site: the mean
remains correct, but a single run varies widely. Programs that allocate less than 500 MB a second do
not reach the bound.

jemalloc and tcmalloc count a block's size class instead of the requested size: 112 bytes for 100,
4,096 for 4,000, up to 112 KiB for 100 KB. This, and not their sampling, is why their means are
above 1.

`pass` holds nothing at the end. An empty cell means that the profiler does not report the value:
tcmalloc samples live blocks, and jemalloc counts allocated bytes only with `prof_accum`.
{versions}.
"""


def ranges(program):
    """Start and end of each site's function, in a program that is loaded where it is linked."""
    found = {}
    for line in subprocess.run(["nm", "-S", program], capture_output=True, text=True,
                               check=True).stdout.splitlines():
        words = line.split()
        if len(words) == 4 and words[3] in SITES:
            found[words[3]] = (int(words[0], 16), int(words[0], 16) + int(words[1], 16))
    return found


def site_of(addresses, where):
    """The site that a stack leads through; None: another."""
    for address in addresses:
        for name, (start, end) in where.items():
            if start <= address - 1 < end:
                return name
    return None


def scaled(count, size):
    """What so many sampled blocks stand for, as pprof and jeprof compute it."""
    return 0 if count == 0 else size / -math.expm1(-(size / count) / RATE)


def read_heap_v2(text, where):
    """Live and allocated bytes by site, of jemalloc's or gperftools' text."""
    live, allocated = collections.Counter(), collections.Counter()
    stack = []
    for line in text.splitlines():
        if line.startswith("MAPPED_LIBRARIES"):
            break
        if line.startswith("@"):
            stack = [int(word, 16) for word in line.split()[1:]]
            continue
        match = re.match(r" *(?:t\*:)? *(\d+): *(\d+) \[ *(\d+): *(\d+)\](?: @(.*))?", line)
        if match is None or line.startswith("heap profile"):
            continue
        if match[5] is not None:
            stack = [int(word, 16) for word in match[5].split()]
        site = site_of(stack, where)
        live[site] += scaled(int(match[1]), int(match[2]))
        allocated[site] += scaled(int(match[3]), int(match[4]))
    return live, allocated


def run(program, work, **settings):
    """Runs the program; its truth: live and allocated bytes by site."""
    ran = subprocess.run([program, work / "tcmalloc.heap"], capture_output=True, text=True,
                         check=True, cwd=work, env={**os.environ, **settings})
    return {words[0]: (int(words[1]), int(words[2]))
            for words in map(str.split, ran.stdout.splitlines())}


def of_hakmem(program, work, where, options, samples="1000"):
    """By the file that the library writes at the end."""
    truth = run(program, work, LD_PRELOAD=str(options.hakmem / "libhakmem.so"),
                HAKMEM_HEAP_PROFILE="pprof", HAKMEM_STATS_FILE="hakmem",
                HAKMEM_HEAP_PROFILE_SAMPLES=samples)
    command = [options.hakmem / "hakmem", "profile", "hakmem.pprof", "--json"]
    said = json.loads(subprocess.run(command, cwd=work, capture_output=True, check=True).stdout)
    live, allocated = collections.Counter(), collections.Counter()
    for site in said["sites"]:
        names = [frame["function"] for frame in site["stack"]]
        name = next((name for name in names if name in where), None)
        live[name] += site["live_bytes"]
        allocated[name] += site["allocated_bytes"]
    (work / "hakmem.pprof").unlink()
    return truth, live, allocated


def of_hakmem_whole(program, work, where, options):
    """Without a bound of samples a second, which the others do not have either."""
    return of_hakmem(program, work, where, options, samples="0")


def of_jemalloc(program, work, where, _):
    """By its dump at the end."""
    truth = run(program, work, LD_PRELOAD="libjemalloc.so.2",
                MALLOC_CONF="prof:true,prof_final:true,prof_accum:true,lg_prof_sample:19,"
                            "prof_prefix:jeprof")
    dumps = glob.glob(str(work / "jeprof.*.heap"))
    live, allocated = read_heap_v2(pathlib.Path(dumps[0]).read_text(), where)
    for dump in dumps:
        os.unlink(dump)
    return truth, live, allocated


def of_tcmalloc(program, work, where, options):
    """By MallocExtension::GetHeapSample at the end."""
    folder = str(pathlib.Path(options.tcmalloc).parent)
    truth = run(program, work, LD_PRELOAD=options.tcmalloc, LD_LIBRARY_PATH=folder,
                TCMALLOC_SAMPLE_PARAMETER=str(RATE))
    live, _ = read_heap_v2((work / "tcmalloc.heap").read_text(), where)
    return truth, live, None


def cell(values):
    """Mean, its error, and the deviation of one run."""
    mean, deviation = statistics.mean(values), statistics.stdev(values)
    return f"{mean:.3f} (±{deviation / math.sqrt(len(values)):.3f}), {deviation:.3f}"


def row(name, results):
    """One profiler's."""
    cells = [cell([live[site] / truth[site][0] for truth, live, _ in results])
             for site in SITES[:3]]
    cells.append(f"{max(live['pass'] for _, live, _ in results) / 1e6:.1f} MB")
    cells.append("" if results[0][2] is None else
                 cell([allocated["pass"] / truth["pass"][1] for truth, _, allocated in results]))
    return f"| {name} | " + " | ".join(cells) + " |"


def main():
    """Prints the table, and writes the document."""
    parser = argparse.ArgumentParser()
    parser.add_argument("hakmem", type=pathlib.Path)
    parser.add_argument("--tcmalloc")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    options.hakmem = options.hakmem.resolve()
    rows = ["| profiler | 100 bytes | 4,000 bytes | 100 KB | `pass`, live, at most "
            "| `pass`, allocated |",
            "| --- | --- | --- | --- | --- | --- |"]
    versions = ["jemalloc is Debian's 5.3.0"]
    profilers = [("hakmem, any number of samples", of_hakmem_whole),
                 ("hakmem, at most 1,000 a second", of_hakmem), ("jemalloc, `prof`", of_jemalloc)]
    if options.tcmalloc:
        profilers.append(("tcmalloc, sampling", of_tcmalloc))
        versions.append("tcmalloc is gperftools' 2.10")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        program = work / "trap"
        subprocess.run(["g++", "-O2", "-g", "-no-pie", "-fno-builtin", "-o", program,
                        ROOT / "tools/profiler_trap.cpp", "-ldl"], check=True)
        where = ranges(program)
        for name, profile in profilers:
            runs = options.runs * (10 if profile is of_hakmem else 1)
            rows.append(row(name, [profile(program, work, where, options) for _ in range(runs)]))
            print(rows[-1], file=sys.stderr)
    text = TEXT.format(runs=options.runs, runs_paced=options.runs * 10, table="\n".join(rows),
                       versions=", ".join(versions), expected=1 / math.sqrt(122))
    if options.write:
        options.write.write_text(text)
    else:
        print(text)


main()
