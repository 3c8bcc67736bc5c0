# SPDX-License-Identifier: MIT
"""./hak bench: measures, compares, reports."""
import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from . import command, launcher, page, peers, plan, results, run, suite, tables

ROOT = Path(__file__).absolute().parents[2]
REPEATS, QUICK_REPEATS = 10, 3
QUICK_ALLOCATORS = ("hakmem", "system", "mimalloc", "jemalloc", "tcmalloc", "gperftools")
INTERRUPTED = 130
USAGE = f"""\
  ./hak bench                        measure all cases under all allocators
  ./hak bench -- CMD ARGS            measure a program of yours under all allocators that are built
                                     (--peers) or installed: its time, CPU, peak and average memory
  ./hak bench --mimalloc-bench DIR   measure the programs of a built copy of that suite
  ./hak bench compare A B            two allocators or libraries (A.so), measured now, or two
                                     sessions of out/bench; exit status 1 if A is slower anywhere
  ./hak bench report [SESSION]       a web page of the last (or named) session

allocators: {', '.join(peers.DEFAULT)}, noop,
or a file NAME.so, each optionally with variables: hakmem@HAKMEM_MODE=minimal@HAKMEM_THP=off
"""


def arguments():
    parser = argparse.ArgumentParser(prog="./hak bench", epilog=USAGE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="-- CMD ARGS | compare A B | report [SESSION]")
    parser.add_argument("--quick", action="store_true",
                        help=f"fewer cases, short runs, {', '.join(QUICK_ALLOCATORS)} only")
    parser.add_argument("--only", metavar="A,B", help="cases whose name or group contains a word")
    parser.add_argument("--allocators", metavar="A,B", help="instead of all; the first is compared "
                        "with each other")
    parser.add_argument("--repeats", type=int, metavar="N", help=f"runs of each, beside a warm-up "
                        f"(default {REPEATS}, quick {QUICK_REPEATS}; a command: "
                        f"{command.REPEATS}, fewer if it is long)")
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
    parser.add_argument("--into", metavar="DIR", help="folder of the written files (default of "
                        "report: docs/benchmarks; of a command: a new folder of out/bench)")
    parser.add_argument("--mimalloc-bench", metavar="DIR", type=Path, help="measure the programs "
                        "of a built copy of mimalloc-bench, with the arguments that it has")
    parser.add_argument("--status", type=int, default=0, metavar="N",
                        help="command: its exit status of success (default 0)")
    parser.add_argument("--timeout", type=float, default=launcher.TIMEOUT_S, metavar="SECONDS",
                        help=f"command: the longest run (default {launcher.TIMEOUT_S})")
    parser.add_argument("--name", default="report", help="report: name of the written files")
    parser.add_argument("--readme", action="store_true",
                        help="report: also write the table into README.md, between its marks")
    words = sys.argv[1:]
    place = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:place])
    options.program = words[place + 1:]
    if place < len(words):
        if not options.program or options.words:
            parser.error("-- is followed by a program, and nothing else comes before it")
        options.words = ["program"]
    options.command, *options.words = options.words or ["run"]
    expected = {"run": (0,), "compare": (2,), "report": (0, 1), "program": (0,)}
    if len(options.words) not in expected.get(options.command, ()):
        parser.error("expected nothing, -- CMD ARGS, compare A B, or report [SESSION]")
    if options.command == "compare" and len(set(options.words)) == 1:
        parser.error("compare: name two allocators (the noise is measured anyway)")
    if options.repeats is not None and options.repeats < 1:
        parser.error("--repeats: at least 1")
    # ./hak has gone to the root; folders that were typed are seen from where it was called.
    options.folder = Path(os.environ.get("HAK_FOLDER") or os.getcwd())
    options.into = options.folder / options.into if options.into else None
    if options.mimalloc_bench:
        options.mimalloc_bench = (options.folder / options.mimalloc_bench).resolve()
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


def choose(console, options):
    """The cases that are asked for."""
    if options.mimalloc_bench:
        found, missing = suite.discover(options.mimalloc_bench)
        for name, reason in missing:
            console.print(f"[yellow]skipped[/] {name}: {reason}", highlight=False)
        cases = plan.chosen(found, options.only)
    else:
        cases = plan.select(ROOT, options.only, options.quick)
        missing = sorted({case.words()[0] for case in cases
                          if not (ROOT / case.words()[0]).exists()})
        if missing:
            sys.exit(f"not built: {', '.join(missing)} (./hak build)")
    if not cases:
        sys.exit(f"no case's name or group contains {options.only}" if options.only else "no case")
    return cases


def begin(console, options, names):
    """(session, cases, peers) of a new session."""
    cases = choose(console, options)
    ready = prepare(console, names)
    if not ready:
        sys.exit("no allocator to measure")
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    session = run.Session.create(ROOT, options.quick, repeats)
    session.hidden = tuple(filter(None, [options.mimalloc_bench]))
    session.begin(cases, ready)
    return session, cases, ready


def resume(console, options):
    """(session, cases, peers) of one that was cut."""
    folder = run.find(ROOT, options.resume or None)
    header = results.load(folder / "runs.jsonl").header
    groups = {case["group"] for case in header["cases"]}
    if command.GROUP in groups or (suite.NAME in groups) != bool(options.mimalloc_bench):
        raise run.SessionError(f"{folder.name} is of other programs ({', '.join(groups)}): it is "
                               "resumed with --mimalloc-bench DIR, or not at all")
    known = {case.name: case for case in (suite.discover(options.mimalloc_bench)[0]
                                          if options.mimalloc_bench else plan.discover(ROOT))}
    cases = [known[case["name"]] for case in header["cases"] if case["name"] in known]
    gone = [case["name"] for case in header["cases"] if case["name"] not in known or shlex.join(
        known[case["name"]].words(header["quick"])) != case["command"]]
    if gone and not options.mimalloc_bench:
        raise run.SessionError(f"cases have changed since: {', '.join(gone)}")
    ready = prepare(console, [peer["name"] for peer in header["allocators"]])
    run.check_unchanged(header, ready)
    session, _ = run.Session.resume(ROOT, folder)
    session.hidden = tuple(filter(None, [options.mimalloc_bench]))
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
        console.print("interrupted: what was measured is kept" + (
            "" if options.program else "; ./hak bench --resume goes on"))
        return True
    return False


def run_all(console, options):
    names = QUICK_ALLOCATORS if options.quick else peers.DEFAULT
    if options.allocators:
        names = list(dict.fromkeys(options.allocators.split(",")))
    if options.peers:
        ready = prepare(console, names if options.allocators else peers.DEFAULT)
        return 0 if ready else 1
    started = (resume(console, options) if options.resume is not None
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


def run_program(console, options):
    """All allocators on a program of the user's."""
    with tempfile.TemporaryDirectory(prefix="hakbench-") as spool:
        place = command.place_of(options, options.folder,
                                 command.standard_input(console, Path(spool)))
        case = command.case_of(options.program, place)
        if os.environ.get("LD_PRELOAD"):
            console.print("LD_PRELOAD of your environment is left out")
        ready = prepare(console, options.allocators.split(",")) if options.allocators \
            else peers.at_hand(ROOT)
        with console.status(f"trying {case.title}"):
            trial = command.try_out(ROOT, case, ready)
        repeats, remark = command.repeats_of(options, trial.case, trial.peers)
        for line in [*trial.remarks, remark, command.not_at_hand(trial.peers)
                     if not options.allocators else None]:
            if line:
                console.print(line, highlight=False)
        session = run.Session.create(ROOT, False, repeats, options.into)
        session.begin([trial.case], trial.peers)
        interrupted = measure(console, options, session, [trial.case], trial.peers)
    measured = results.load(session.path)
    tables.show(console, measured)
    if measured.results():
        written = page.publish(measured, session.path, session.folder, "report")
        console.print(f"written: {os.path.relpath(written, options.folder)}", soft_wrap=True)
    return INTERRUPTED if interrupted else 0 if measured.results() else 1


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
    folder = options.into or ROOT / "docs/benchmarks"
    written = page.publish(measured, path, folder, options.name)
    console.print(f"written: {os.path.relpath(written, ROOT)}")
    if options.readme:
        page.write_readme(ROOT / "README.md", measured,
                          f"{os.path.relpath(folder, ROOT)}/{options.name}.svg")
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
    for case in choose(console, options):
        console.print(f"{case.name:<24} {case.group:<18} {shlex.join(case.words(options.quick))}",
                      highlight=False, soft_wrap=True)
    return 0


def main():
    options = arguments()
    console = Console(width=None if sys.stdout.isatty() else 140)
    if options.list:
        return list_cases(console, options)
    if options.install:
        return install(console)
    commands = {"run": run_all, "compare": compare, "report": publish, "program": run_program}
    try:
        return commands[options.command](console, options)
    except command.CommandError as error:
        console.print(f"[red]not compared[/]: {error}", highlight=False, soft_wrap=True)
        return 1
    except (launcher.RunError, run.SessionError, suite.SuiteError, ValueError) as error:
        console.print(f"[red]error[/] {error}", highlight=False)
        return 2


if __name__ == "__main__":
    sys.exit(main())
