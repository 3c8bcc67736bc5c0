# SPDX-License-Identifier: MIT
"""The demonstration of ./hak run: the same programs under the system allocator and under hakmem.

Each program runs REPEATS times under both in turn, undisturbed; the medians are shown. What needs
an onlooker (memory system calls, hakmem's own statistics) is counted in a further, shorter run.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hakbench import counters, launcher, plan

try:
    from rich import box
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
except ImportError:
    Console = None

ROOT = Path(__file__).absolute().parents[1]
LIBRARY = ROOT / "out/release/libhakmem.so"
REPEATS = 3
MEMORY_CALLS = "mmap,munmap,mremap,madvise,mprotect,brk"
HEADINGS = ("Program", "Allocator", "Time", "Speed", "Peak memory", "Page faults",
            "Memory calls", "Fell back", "Foreign frees")
PYTHON_WORK = """
import json, re
for _ in range(10):
    people = [{"id": i, "name": f"person {i % 997}", "tags": [str(i % k) for k in range(1, 9)]}
              for i in range(12000)]
    people = json.loads(json.dumps(people))
    words = {}
    for word in re.findall(r"[a-z]+ ?[0-9]*", json.dumps(people)):
        words[word] = words.get(word, 0) + 1
    lines = sorted(" ".join(reversed(re.split(r"\\W+", str(person)))) for person in people)
"""


class DemoError(Exception):
    """Something that the demonstration needs is missing or wrong."""


@dataclass(frozen=True)
class Program:
    """What is run; `counted` is the same for the run that is looked at. Words from the root."""
    title: str
    words: list
    counted: list
    is_benchmark: bool = True


@dataclass(frozen=True)
class Line:
    """One line of the table; None is what was not counted."""
    program: str
    allocator: str
    time_s: float
    throughput: float | None
    peak_rss_kib: int
    page_faults: int
    memory_calls: int | None
    fallback: int | None
    foreign_frees: int | None

    def cells(self):
        def count(number):
            return "-" if number is None else f"{number:,}"
        speed = "-" if self.throughput is None else f"{self.throughput:.1f} M/s"
        return (self.program, self.allocator, f"{self.time_s:.2f} s", speed,
                f"{self.peak_rss_kib / 1024:.1f} MiB", count(self.page_faults),
                count(self.memory_calls), count(self.fallback), count(self.foreign_frees))


def programs():
    mixed, larson = "out/release/bench_random_mixed_system", "out/release/larson_system"
    python = [sys.executable, "-c", PYTHON_WORK]
    return [
        Program("Python", python, python, False),
        Program("bench_random_mixed",
                [mixed, "10000000", "8192"], [mixed, "200000", "8192"]),
        Program("larson",
                [larson, *"2 8 1024 10000 100 12345 4".split()],
                [larson, *"1 8 1024 1000 10 12345 4".split()]),
    ]


def preload(allocator):
    return {"LD_PRELOAD": str(LIBRARY)} if allocator == "hakmem" else {}


def count_memory_calls(words, variables):
    """The memory system calls of a run and its threads; None if strace cannot tell."""
    strace = shutil.which("strace")
    if not strace:
        return None
    with tempfile.NamedTemporaryFile(prefix="hakmem-demo-") as file:
        setting = [part for name, value in variables.items() for part in ("-E", f"{name}={value}")]
        done = subprocess.run([strace, "-f", "-c", "-o", file.name, "-e", f"trace={MEMORY_CALLS}",
                               *setting, *words], cwd=ROOT, env=launcher.clean_environment(),
                              capture_output=True, timeout=launcher.TIMEOUT_S)
        summary = Path(file.name).read_text(encoding="utf-8", errors="replace")
    total = re.search(r"^100\.00\s+\S+\s+(?:\d+\s+)?(\d+)\s+(?:\d+\s+)?total$", summary, re.M)
    return int(total[1]) if total and done.returncode == 0 else None


def read_own_counters(words):
    """(requests that fell back, foreign frees) of a run under hakmem, as it counted itself."""
    with tempfile.TemporaryDirectory(prefix="hakmem-demo-") as folder:
        path = Path(folder) / "statistics"
        launcher.run(ROOT, words, preload("hakmem") | counters.environment(path))
        counted = counters.parse(path.read_text(encoding="utf-8")) if path.exists() else {}
    missing = [name for name in ("fallback", "foreign_frees") if name not in counted]
    if missing:
        raise DemoError(f"hakmem's exit statistics (HAKMEM_STATS=json) lack "
                        f"{' and '.join(missing)}: who served the programs cannot be shown")
    return counted["fallback"], counted["foreign_frees"]


def measure(program, advance):
    """The table's two lines of a program; advance(text) is called before each run."""
    runs = {"system": [], "hakmem": []}
    for number in range(REPEATS):
        for allocator, kept in runs.items():
            advance(f"{program.title}, {allocator}, run {number + 1} of {REPEATS}")
            done = launcher.run(ROOT, program.words, preload(allocator))
            throughput = (plan.read_output(done.stdout)["throughput"] if program.is_benchmark
                          else None)
            kept.append((done.cost, throughput))
    lines = []
    for allocator, kept in runs.items():
        advance(f"{program.title}, {allocator}, counting")
        costs = [cost for cost, _ in kept]
        own = read_own_counters(program.counted) if allocator == "hakmem" else (None, None)
        lines.append(Line(
            program.title, allocator, statistics.median(cost.wall_s for cost in costs),
            statistics.median(speed for _, speed in kept) if program.is_benchmark else None,
            statistics.median(cost.peak_rss_kib for cost in costs),
            statistics.median(cost.minor_faults + cost.major_faults for cost in costs),
            count_memory_calls(program.counted, preload(allocator)), *own))
    return lines


def measure_all():
    """The lines of all programs, with progress: a bar on a terminal, else a line a run."""
    steps = len(programs()) * 2 * (REPEATS + 1)
    if Console and sys.stdout.isatty():
        with Progress() as bar:
            task = bar.add_task("", total=steps + 1)

            def advance(text):
                bar.update(task, advance=1, description=text)
            lines = [line for program in programs() for line in measure(program, advance)]
            bar.update(task, completed=steps + 1, description="done")
            return lines
    done = 0

    def tell(text):
        nonlocal done
        done += 1
        print(f"[{done:2}/{steps}] {text}", flush=True)
    return [line for program in programs() for line in measure(program, tell)]


def show(lines):
    """Prints the table, a program's title only once."""
    rows = [line.cells() for line in lines]
    rows = [("" if place % 2 else row[0], *row[1:]) for place, row in enumerate(rows)]
    if Console:
        table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
        for place, heading in enumerate(HEADINGS):
            table.add_column(heading.replace(" ", "\n"), no_wrap=True,
                             justify="left" if place < 2 else "right")
        for place, row in enumerate(rows):
            table.add_row(*row, style="bold" if place % 2 else None, end_section=place % 2 == 1)
        # Below this width rich would leave out the last columns.
        Console(width=max(Console().width, 100)).print(table)
        return
    widths = [max(len(row[column]) for row in (HEADINGS, *rows)) for column in range(len(HEADINGS))]
    for row in (HEADINGS, *rows):
        print("  ".join(cell.ljust(width) if place < 2 else cell.rjust(width)
                        for place, (cell, width) in enumerate(zip(row, widths))))


def explain(lines):
    print(f"Each program ran {REPEATS} times under the system allocator and under hakmem in turn; "
          "the table shows medians.")
    print("Python works on JSON, dictionaries and regular expressions; bench_random_mixed takes "
          "and frees small blocks\nin random order; larson is a server of 4 threads that come and "
          "go, for 2 seconds. Speed: million operations a second.")
    print("Memory calls: how often the program asked the kernel for memory or gave some back, "
          "counted in a shorter run"
          + (" (needs strace)." if lines[0].memory_calls is None else "."))
    print("Fell back: requests that hakmem left to another allocator. "
          "Foreign frees: freed blocks that were not hakmem's.")
    print("\nTo run a program of yours on hakmem: ./hak run -- PROG ARGS")


def main():
    needed = [LIBRARY, *(ROOT / program.words[0] for program in programs())]
    missing = [os.path.relpath(path, ROOT) for path in needed if not path.exists()]
    if missing:
        raise DemoError(f"not built: {', '.join(missing)} (./hak build)")
    lines = measure_all()
    show(lines)
    explain(lines)


if __name__ == "__main__":
    try:
        main()
    except (DemoError, launcher.RunError, ValueError) as error:
        sys.exit(f"demonstration: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
