# SPDX-License-Identifier: MIT
"""./hak bench: measures, compares, reports."""
import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from . import launcher, peers, plan, report
from .results import Measured
from .run import Session, arms_for, estimate_s

ROOT = Path(__file__).absolute().parents[2]
REPEATS, QUICK_REPEATS = 10, 3
USAGE = """\
  ./hak bench                   run all programs under all allocators
  ./hak bench compare A B       run both; exit status 1 if A is slower than B anywhere
  ./hak bench report [SESSION]  write the last (or named) session of out/bench to docs/benchmarks/

allocators: hakmem, system, mimalloc, mimalloc2, jemalloc, gperftools, noop, each optionally with
variables: hakmem@HAKMEM_MODE=minimal@HAKMEM_THP=off
"""


def arguments():
    parser = argparse.ArgumentParser(prog="./hak bench", epilog=USAGE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="compare A B | report [SESSION]")
    parser.add_argument("--quick", action="store_true", help="short runs, less certain")
    parser.add_argument("--only", metavar="WORD", help="cases whose names contain the word")
    parser.add_argument("--allocators", metavar="A,B", help="instead of all; the first is compared "
                        "with each other")
    parser.add_argument("--repeats", type=int, metavar="N", help=f"runs of each, beside a warm-up "
                        f"(default {REPEATS}, quick {QUICK_REPEATS})")
    parser.add_argument("--peers", action="store_true",
                        help="only fetch the allocators, and print their versions")
    parser.add_argument("--list", action="store_true", help="only print the cases")
    parser.add_argument("--name", default="core", help="report: name of the written files")
    options = parser.parse_args()
    options.command, *options.words = options.words or ["run"]
    expected = {"run": (0,), "compare": (2,), "report": (0, 1)}
    if len(options.words) not in expected.get(options.command, ()):
        parser.error("expected nothing, compare A B, or report [SESSION]")
    if options.command == "compare" and len(set(options.words)) == 1:
        parser.error("compare: name two allocators (the noise is measured anyway)")
    if options.repeats is not None and options.repeats < 1:
        parser.error("--repeats: at least 1")
    return options


def prepare(console, names):
    """The peers that can be had; those that cannot are skipped by name."""
    ready = []
    for name in names:
        try:
            with console.status(f"preparing {name}"):
                ready.append(peers.resolve(ROOT, name))
        except peers.PeerError as error:
            console.print(f"[yellow]skipped[/] {name}: {error}")
        else:
            console.print(f"[green]ready[/]   {name}: {ready[-1].title} {ready[-1].version}")
    return ready


def measure(console, options, names):
    """Runs the session; returns it, and whether it was cut short."""
    cases = plan.select(options.only)
    if not cases:
        sys.exit(f"no case's name contains {options.only}")
    missing = sorted({case.words()[0] for case in cases if not (ROOT / case.words()[0]).exists()})
    if missing:
        sys.exit(f"not built: {', '.join(missing)} (./hak build)")
    ready = prepare(console, names)
    if not ready:
        sys.exit("no allocator to measure")
    noop = next(iter(prepare(console, ["noop"])), None) if any(
        case.minus_noop for case in cases) else None
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    session = Session(ROOT, options.quick, repeats)
    session.begin(cases, ready)
    bars = Progress(TextColumn("{task.description:<28}"), BarColumn(), TimeElapsedColumn(),
                    TextColumn("left"), TimeRemainingColumn(), console=console)
    try:
        with bars:
            task = bars.add_task("", total=estimate_s(cases, ready, noop, options.quick, repeats))
            for case in cases:
                bars.update(task, description=case.title)
                session.measure(case, arms_for(case, ready, noop),
                                lambda seconds: bars.advance(task, seconds))
                if not console.is_terminal:
                    console.print(f"measured {case.title}")
    except KeyboardInterrupt:
        console.print("interrupted: what was measured is kept")
        return session, True
    return session, False


def run(console, options):
    names = peers.DEFAULT
    if options.allocators:
        names = list(dict.fromkeys(options.allocators.split(",")))
    if options.peers:
        return 0 if prepare(console, names) else 1
    session, interrupted = measure(console, options, names)
    measured = Measured(session.path)
    report.show(console, measured)
    if measured.results():
        written = report.publish(session.path, session.folder, "report")
        console.print(f"written: {written.relative_to(ROOT)}")
        console.print("./hak bench report writes it to docs/benchmarks/")
    return 130 if interrupted else 1 if session.failures else 0


def compare(console, options):
    session, interrupted = measure(console, options, options.words)
    measured = Measured(session.path)
    report.show(console, measured)
    fine = report.compare(console, measured, *options.words)
    return 130 if interrupted else 0 if fine and not session.failures else 1


def publish(console, options):
    sessions = sorted((ROOT / "out/bench").glob("*/runs.jsonl"))
    if options.words:
        sessions = [path for path in sessions if path.parent.name == options.words[0]]
    if not sessions:
        sys.exit("no such session in out/bench (./hak bench makes one)")
    written = report.publish(sessions[-1], ROOT / "docs/benchmarks", options.name)
    console.print(f"written: {written.relative_to(ROOT)}")
    return 0


def list_cases(console):
    for case in plan.CORE:
        console.print(f"{case.name:<20} {' '.join(case.words())}", highlight=False)
    return 0


def main():
    options = arguments()
    console = Console(width=None if sys.stdout.isatty() else 140)
    if options.list:
        return list_cases(console)
    commands = {"run": run, "compare": compare, "report": publish}
    try:
        return commands[options.command](console, options)
    except launcher.RunError as error:
        console.print(f"[red]error[/] {error}")
        return 1


sys.exit(main())
