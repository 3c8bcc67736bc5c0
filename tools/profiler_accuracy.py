#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what sampling heap profilers say of programs with what is true.

    profiler_accuracy.py HAKMEM_FOLDER [--tcmalloc LIBRARY] [--runs N] [--seeds N]
                         [--write docs/PROFILER.md]

HAKMEM_FOLDER has libhakmem.so and hakmem. jemalloc is Debian's libjemalloc.so.2, with prof;
tcmalloc is gperftools' libtcmalloc.so.4. tools/profiler_trap.cpp is sampled once in 512 KiB, N
times; where the profile keeps a pace, ten times as often. Of tools/profiler_sites.cpp each of the
eight workloads is sampled once in 4 KiB, with so many seeds; --runs 0 prints that table alone."""
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
FINE_RATE = 4096
WORKLOADS = ("one_size", "any_size", "pairs", "churn", "threads", "grown", "large", "phases")
SITE_PATTERN = r"_ZN12_GLOBAL__N_14siteILi(\d+)E.*"
MANY_SAMPLES = 2000
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

## Eight workloads, site by site

`tools/profiler_sites.cpp` has 64 call sites that hold from 64 KiB to 16 MiB each, in one of eight
ways; its truth is counted block by block. At one sample in 4 KiB, without a pace, {seeds} seeds
each, a cell says how many sites are found right: first, within 5 %, those of which {many}
samples or more are due; then, within 2/sqrt(samples), the others; last the sum of all sites as a
part of the truth. Without bias about 95 % of the others are right: it is two standard deviations.
jemalloc and tcmalloc are compared with what their blocks take, hakmem with what was asked for.

{sites}

| workload | what its sites do |
| --- | --- |
| `one_size` | each keeps blocks of a size of its own, 16 to 3,859 bytes |
| `any_size` | keep blocks of 8 bytes to 64 KiB |
| `pairs` | keep blocks of 200 bytes; beside each of the largest site's, 100 pairs |
| `churn` | keep 16 bytes to 8 KiB; three times, half of all is freed at random and allocated anew |
| `threads` | the same by four threads that free each other's blocks |
| `grown` | keep blocks of up to 64 KiB that realloc brought there by halves |
| `large` | keep 16 KiB to 1 MiB by calloc, then 1 to 128 KiB by aligned_alloc |
| `phases` | three times, all are filled and 70 % are freed; at last other sizes come in the gaps |

{versions}.
"""


def compile_to(program, source):
    """A program that is loaded where it is linked, so that addresses name its functions."""
    subprocess.run(["g++", "-std=c++17", "-O2", "-g", "-no-pie", "-fno-builtin", "-o", program,
                    ROOT / "tools" / source, "-ldl", "-pthread"], check=True)


def ranges(program, pattern):
    """Start and end of each function whose name matches; its name is what the group matched."""
    found = {}
    for line in subprocess.run(["nm", "-S", program], capture_output=True, text=True,
                               check=True).stdout.splitlines():
        words = line.split()
        match = re.fullmatch(pattern, words[3]) if len(words) == 4 else None
        if match:
            found[match[1]] = (int(words[0], 16), int(words[0], 16) + int(words[1], 16))
    return found


def site_of(addresses, where):
    """The site that a stack leads through; None: another."""
    for address in addresses:
        for name, (start, end) in where.items():
            if start <= address - 1 < end:
                return name
    return None


def scaled(count, size, rate):
    """What so many sampled blocks stand for, as pprof and jeprof compute it."""
    return 0 if count == 0 else size / -math.expm1(-(size / count) / rate)


def read_heap_v2(text, where, rate):
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
        live[site] += scaled(int(match[1]), int(match[2]), rate)
        allocated[site] += scaled(int(match[3]), int(match[4]), rate)
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
    live, allocated = read_heap_v2(pathlib.Path(dumps[0]).read_text(), where, RATE)
    for dump in dumps:
        os.unlink(dump)
    return truth, live, allocated


def of_tcmalloc(program, work, where, options):
    """By MallocExtension::GetHeapSample at the end."""
    folder = str(pathlib.Path(options.tcmalloc).parent)
    truth = run(program, work, LD_PRELOAD=options.tcmalloc, LD_LIBRARY_PATH=folder,
                TCMALLOC_SAMPLE_PARAMETER=str(RATE))
    live, _ = read_heap_v2((work / "tcmalloc.heap").read_text(), where, RATE)
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


def sites_of_hakmem(program, work, words, options):
    """The text that the library writes at the end, and what it counts: bytes as asked for."""
    said = subprocess.run(words, capture_output=True, text=True, check=True, cwd=work,
                          env={**os.environ, "LD_PRELOAD": str(options.hakmem / "libhakmem.so"),
                               "HAKMEM_HEAP_PROFILE": "heap_v2", "HAKMEM_STATS_FILE": "hakmem",
                               "HAKMEM_HEAP_PROFILE_RATE": str(FINE_RATE),
                               "HAKMEM_HEAP_PROFILE_SAMPLES": "0"}).stdout
    text = (work / "hakmem.heap").read_text()
    (work / "hakmem.heap").unlink()
    return said, read_heap_v2(text, ranges(program, SITE_PATTERN), 1)[0], 1


def sites_of_jemalloc(program, work, words, _):
    """Its dump at the end; bytes as served."""
    settings = (f"prof:true,prof_final:true,lg_prof_sample:{FINE_RATE.bit_length() - 1},"
                "prof_prefix:jeprof")
    said = subprocess.run(words, capture_output=True, text=True, check=True, cwd=work,
                          env={**os.environ, "LD_PRELOAD": "libjemalloc.so.2",
                               "MALLOC_CONF": settings}).stdout
    dump, = work.glob("jeprof.*.heap")
    text = dump.read_text()
    dump.unlink()
    return said, read_heap_v2(text, ranges(program, SITE_PATTERN), FINE_RATE)[0], 2


def sites_of_tcmalloc(program, work, words, options):
    """Its samples at the end; bytes as served."""
    folder = str(pathlib.Path(options.tcmalloc).parent)
    said = subprocess.run([*words, work / "tcmalloc.heap"], capture_output=True, text=True,
                          check=True, cwd=work,
                          env={**os.environ, "LD_PRELOAD": options.tcmalloc,
                               "LD_LIBRARY_PATH": folder,
                               "TCMALLOC_SAMPLE_PARAMETER": str(FINE_RATE)}).stdout
    text = (work / "tcmalloc.heap").read_text()
    return said, read_heap_v2(text, ranges(program, SITE_PATTERN), FINE_RATE)[0], 2


class Sites:
    """How many sites of a workload one profiler finds right."""

    def __init__(self):
        self.many, self.few, self.sums = [], [], []

    def add(self, said, live, column):
        """One run."""
        whole = 0
        for number, *numbers in map(str.split, said.splitlines()):
            truth, samples = float(numbers[column - 1]), float(numbers[-1])
            whole += truth
            off = abs(live[number] / truth - 1)
            if samples >= MANY_SAMPLES:
                self.many.append(off <= 0.05)
            else:
                self.few.append(off <= 2 / math.sqrt(samples))
        self.sums.append(sum(live[str(number)] for number in range(64)) / whole)

    def cell(self):
        """For the table."""
        many = f"{sum(self.many)} of {len(self.many)}" if self.many else "none"
        return (f"{many}; {sum(self.few)} of {len(self.few)} "
                f"({100 * sum(self.few) / len(self.few):.1f} %); {statistics.mean(self.sums):.3f}")


def find_sites(profile, program, work, seeds, options, workloads=WORKLOADS):
    """{workload: Sites} of one profiler."""
    found = {}
    for workload in workloads:
        found[workload] = Sites()
        for seed in range(1, seeds + 1):
            words = [program, workload, str(seed)]
            found[workload].add(*profile(program, work, words, options))
    return found


def share_right(found):
    """Of all sites of all workloads, the part that is right."""
    right = [is_right for sites in found.values() for is_right in sites.many + sites.few]
    return sum(right) / len(right)


def table_of_sites(work, options):
    """Eight workloads under each profiler."""
    program = work / "sites"
    compile_to(program, "profiler_sites.cpp")
    profilers = {"hakmem": sites_of_hakmem, "jemalloc": sites_of_jemalloc}
    if options.tcmalloc:
        profilers["tcmalloc"] = sites_of_tcmalloc
    results = {}
    for name, profile in profilers.items():
        results[name] = find_sites(profile, program, work, options.seeds, options)
        print(name, {workload: sites.cell() for workload, sites in results[name].items()},
              file=sys.stderr)
    lines = ["| workload | " + " | ".join(results) + " |", "| --- |" + " --- |" * len(results)]
    lines += [f"| `{workload}` | " +
              " | ".join(found[workload].cell() for found in results.values()) + " |"
              for workload in WORKLOADS]
    lines.append("| all sites that are right | " +
                 " | ".join(f"{100 * share_right(found):.1f} %" for found in results.values()) +
                 " |")
    return "\n".join(lines)


def main():
    """Prints the table, and writes the document."""
    parser = argparse.ArgumentParser()
    parser.add_argument("hakmem", type=pathlib.Path)
    parser.add_argument("--tcmalloc")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    options.hakmem = options.hakmem.resolve()
    if options.runs == 0:
        with tempfile.TemporaryDirectory() as folder:
            print(table_of_sites(pathlib.Path(folder), options))
        return
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
        compile_to(program, "profiler_trap.cpp")
        where = ranges(program, f"({'|'.join(SITES)})")
        for name, profile in profilers:
            runs = options.runs * (10 if profile is of_hakmem else 1)
            rows.append(row(name, [profile(program, work, where, options) for _ in range(runs)]))
            print(rows[-1], file=sys.stderr)
        sites = table_of_sites(work, options)
    text = TEXT.format(sites=sites, seeds=options.seeds, many=f"{MANY_SAMPLES:,}",
                       runs=options.runs, runs_paced=options.runs * 10, table="\n".join(rows),
                       versions=", ".join(versions), expected=1 / math.sqrt(122))
    if options.write:
        options.write.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
