# SPDX-License-Identifier: MIT
"""./hak bench: measures, compares, reports."""
import argparse
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from . import launcher, page, peers, plan, results, run, tables

ROOT = Path(__file__).absolute().parents[2]
REPEATS, QUICK_REPEATS = 10, 3
QUICK_ALLOCATORS = ("hakmem", "system", "mimalloc", "jemalloc", "tcmalloc", "gperftools")
INTERRUPTED = 130
USAGE = f"""\
  ./hak bench                        measure all cases under all allocators
  ./hak bench compare A B            two allocators or libraries (A.so), measured now, or two
                                     sessions of out/bench; exit status 1 if A is slower anywhere
  ./hak bench report [SESSION]       a web page of the last (or named) session

allocators: {', '.join(peers.DEFAULT)}, noop,
or a file NAME.so, each optionally with variables: hakmem@HAKMEM_MODE=minimal@HAKMEM_THP=off
"""


def arguments():
    parser = argparse.ArgumentParser(prog="./hak bench", epilog=USAGE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="compare A B | report [SESSION]")
    parser.add_argument("--quick", action="store_true",
                        help=f"fewer cases, short runs, {', '.join(QUICK_ALLOCATORS)} only")
    parser.add_argument("--only", metavar="A,B", help="cases whose name or group contains a word")
    parser.add_argument("--allocators", metavar="A,B", help="instead of all; the first is compared "
                        "with each other")
    parser.add_argument("--repeats", type=int, metavar="N", help=f"runs of each, beside a warm-up "
                        f"(default {REPEATS}, quick {QUICK_REPEATS})")
    parser.add_argument("--resume", nargs="?", const="", metavar="SESSION",
                        help="go on with the last (or named) session that was cut")
    parser.add_argument("--syscalls", action="store_true",
                        help="also count memory system calls (strace, runs of their own)")
    parser.add_argument("--instructions", action="store_true",
                        help="also count instructions (callgrind, runs of their own)")
    parser.add_argument("--peers", action="store_true",
                        help="only fetch and build the allocators, and print their versions")
    parser.add_argument("--install", action="store_true",
                        help="install the Debian packages that bench/programs need")
    parser.add_argument("--list", action="store_true", help="only print the cases")
    parser.add_argument("--into", metavar="DIR", default="docs/benchmarks",
                        help="report: folder of the written files (default docs/benchmarks)")
    parser.add_argument("--name", default="report", help="report: name of the written files")
    parser.add_argument("--readme", action="store_true",
                        help="report: also write the table into README.md, between its marks")
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
            with console.status(f"preparing {name}") as status:
                peer = peers.resolve(ROOT, name, lambda text: status.update(text))
        except peers.PeerError as error:
            console.print(f"[yellow]skipped[/] {name}: {error}", highlight=False)
        else:
            ready.append(peer)
            console.print(f"[green]ready[/]   {name}: {peer.title} {peer.version}, {peer.origin}",
                          highlight=False)
    return ready


def begin(console, options, names):
    """(session, cases, peers) of a new session."""
    cases = plan.select(ROOT, options.only, options.quick)
    if not cases:
        sys.exit(f"no case's name or group contains {options.only}")
    missing = sorted({case.words()[0] for case in cases if not (ROOT / case.words()[0]).exists()})
    if missing:
        sys.exit(f"not built: {', '.join(missing)} (./hak build)")
    ready = prepare(console, names)
    if not ready:
        sys.exit("no allocator to measure")
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    session = run.Session.create(ROOT, options.quick, repeats)
    session.begin(cases, ready)
    return session, cases, ready


def resume(console, name):
    """(session, cases, peers) of one that was cut."""
    folder = run.find(ROOT, name or None)
    header = results.load(folder / "runs.jsonl").header
    known = {case.name: case for case in plan.discover(ROOT)}
    cases = [known[case["name"]] for case in header["cases"] if case["name"] in known]
    gone = [case["name"] for case in header["cases"] if case["name"] not in known or " ".join(
        known[case["name"]].words(header["quick"])) != case["command"]]
    if gone:
        raise run.SessionError(f"cases have changed since: {', '.join(gone)}")
    ready = prepare(console, [peer["name"] for peer in header["allocators"]])
    run.check_unchanged(header, ready)
    session, _ = run.Session.resume(ROOT, folder)
    console.print(f"resuming {folder.name}")
    return session, cases, ready


def measure(console, options, session, cases, ready):
    """Runs the session; True if it was cut short."""
    bars = Progress(TextColumn("{task.description:<28}"), BarColumn(), TimeElapsedColumn(),
                    TextColumn("left"), TimeRemainingColumn(), console=console,
                    speed_estimate_period=600)
    kinds = [kind for kind in ("syscalls", "instructions") if getattr(options, kind)]
    try:
        with bars:
            task = bars.add_task("", total=run.estimate_s(cases, ready, session.quick,
                                                          session.repeats))
            for case in cases:
                bars.update(task, description=case.title)
                session.measure(case, run.arms_for(ready),
                                lambda seconds: bars.advance(task, seconds))
                for kind in kinds:
                    bars.update(task, description=f"{case.title}, {kind}")
                    session.count(case, ready, kind)
                if not console.is_terminal:
                    console.print(f"measured {case.title}")
    except KeyboardInterrupt:
        console.print("interrupted: what was measured is kept; ./hak bench --resume goes on")
        return True
    return False


def run_all(console, options):
    names = QUICK_ALLOCATORS if options.quick else peers.DEFAULT
    if options.allocators:
        names = list(dict.fromkeys(options.allocators.split(",")))
    if options.peers:
        ready = prepare(console, names if options.allocators else peers.DEFAULT)
        return 0 if ready else 1
    started = (resume(console, options.resume) if options.resume is not None
               else begin(console, options, names))
    session = started[0]
    interrupted = measure(console, options, *started)
    measured = results.load(session.path)
    tables.show(console, measured)
    if measured.results():
        written = page.publish(measured, session.path, session.folder, "report")
        console.print(f"written: {written.relative_to(ROOT)}")
        console.print("./hak bench report writes it to docs/benchmarks/")
    return INTERRUPTED if interrupted else 1 if session.failures else 0


def compare(console, options):
    paths = [_session_path(word) for word in options.words]
    if all(paths):
        first, second = map(results.load, paths)
        allocator = options.allocators or first.reference
        console.print(f"{allocator}: {options.words[0]} against {options.words[1]}")
        return 0 if tables.compare_sessions(console, first, second, allocator) else 1
    started = begin(console, options, options.words)
    interrupted = measure(console, options, *started)
    measured = results.load(started[0].path)
    tables.show(console, measured)
    fine = tables.compare(console, measured, *options.words)
    return INTERRUPTED if interrupted else 0 if fine and not started[0].failures else 1


def _session_path(word):
    """The runs of a session that the word names, or None."""
    path = Path(word)
    if path.suffix == ".jsonl" and path.exists():
        return path
    path = ROOT / "out/bench" / word / "runs.jsonl"
    return path if path.exists() else None


def publish(console, options):
    word = options.words[0] if options.words else None
    path = _session_path(word) if word else None
    path = path or run.find(ROOT, word) / "runs.jsonl"
    measured = results.load(path)
    folder = ROOT / options.into
    written = page.publish(measured, path, folder, options.name)
    console.print(f"written: {os.path.relpath(written, ROOT)}")
    if options.readme:
        page.write_readme(ROOT / "README.md", measured, f"{options.into}/{options.name}.svg")
        console.print("written: README.md")
    return 0


def install(console):
    """Installs what the real programs need; without root it prints the command."""
    packages = sorted({package for script in (ROOT / "bench/programs").glob("*.sh")
                       for package in plan.packages(script) or ()})
    if not packages:
        console.print("bench/programs needs no packages")
        return 0
    words = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if os.geteuid() != 0:
        console.print(f"sudo {' '.join(words)}", soft_wrap=True, highlight=False)
        return 1
    return subprocess.run(words).returncode


def list_cases(console, options):
    for case in plan.select(ROOT, options.only, options.quick):
        console.print(f"{case.name:<24} {case.group:<18} {' '.join(case.words(options.quick))}",
                      highlight=False, soft_wrap=True)
    return 0


def main():
    options = arguments()
    console = Console(width=None if sys.stdout.isatty() else 140)
    if options.list:
        return list_cases(console, options)
    if options.install:
        return install(console)
    commands = {"run": run_all, "compare": compare, "report": publish}
    try:
        return commands[options.command](console, options)
    except (launcher.RunError, run.SessionError, ValueError) as error:
        console.print(f"[red]error[/] {error}", highlight=False)
        return 2


if __name__ == "__main__":
    sys.exit(main())
