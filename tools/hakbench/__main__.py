# SPDX-License-Identifier: MIT
"""./hak bench: measures, compares, reports."""
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from . import arguments, command, launcher, page, peers, plan, results, run, suite, tables

ROOT = Path(__file__).absolute().parents[2]
FAILED, WRONG, INTERRUPTED = 1, 2, 130


def complain(status, text):
    """One line on standard error; returns the status."""
    line = re.sub(r"[^ -~\u00a0-\uffff]+", " ", str(text))
    print(f"./hak bench: {line}", file=sys.stderr, flush=True)
    return status


def prepare(console, names):
    """The peers that can be had; those that cannot are skipped by name."""
    ready = []
    for name in names:
        try:
            with console.status(Text(f"preparing {name}")) as status:
                peer = peers.resolve(ROOT, name, lambda text: status.update(Text(text)))
        except peers.PeerError as error:
            tables.tell(console, "yellow", "skipped", f"{name}: {error}")
        else:
            ready.append(peer)
            tables.tell(console, "green", "ready",
                        f"{name}: {peer.title} {peer.version}, {peer.origin}")
    return ready


def choose(console, options):
    """The cases that are asked for."""
    if options.mimalloc_bench:
        found, missing = suite.discover(options.mimalloc_bench)
        for name, reason in missing:
            tables.tell(console, "yellow", "skipped", f"{name}: {reason}")
        cases = plan.chosen(found, options.only)
    else:
        cases = plan.select(ROOT, options.only, options.quick)
        missing = sorted({case.words()[0] for case in cases
                          if not (ROOT / case.words()[0]).exists()})
        if missing:
            raise run.SessionError(f"not built: {', '.join(missing)} (./hak build)")
    if not cases:
        raise run.SessionError("no case's name or group contains " + " or ".join(options.only)
                               if options.only else "no case")
    return cases


def begin(console, options, names, least=1):
    """(session, cases, peers) of a new session."""
    cases = choose(console, options)
    ready = prepare(console, names)
    if len(ready) < least:
        raise run.SessionError("no allocator to measure" if least == 1 else
                               "compare: both allocators are needed")
    repeats = options.repeats or (arguments.QUICK_REPEATS if options.quick else arguments.REPEATS)
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
    bars = Progress(TextColumn("{task.description:<28}", markup=False), BarColumn(),
                    TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console,
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
    names = options.allocators or (arguments.QUICK_ALLOCATORS if options.quick else peers.DEFAULT)
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
        written = page.publish(measured, session.path, session.folder, "report", session.shared)
        console.print(f"written: {written.relative_to(ROOT)}")
        console.print("./hak bench report writes it to docs/benchmarks/")
    elif not interrupted:
        session.discard()
    return INTERRUPTED if interrupted else 1 if session.failures else 0


def run_program(console, options):
    """All allocators on a program of the user's."""
    with tempfile.TemporaryDirectory(prefix="hakbench-") as spool:
        place = command.place_of(options, options.folder,
                                 command.standard_input(console, Path(spool)))
        case = command.case_of(options.program, place)
        if os.environ.get("LD_PRELOAD"):
            console.print("LD_PRELOAD of your environment is left out")
        ready = prepare(console, options.allocators) if options.allocators \
            else peers.at_hand(ROOT)
        if not ready:
            raise command.CommandError("no allocator to measure")
        with console.status(Text(f"trying {case.title}")):
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
        written = page.publish(measured, session.path, session.folder, "report", session.shared)
        console.print(f"written: {os.path.relpath(written, options.folder)}", soft_wrap=True)
    elif not interrupted:
        session.discard()
    return INTERRUPTED if interrupted else 0 if measured.results() else 1


def compare(console, options):
    paths = [_session_path(options, word) for word in options.words]
    if all(paths):
        return compare_sessions(console, options, *map(results.load, paths))
    for word, path in zip(options.words, paths):
        if not path:
            _check_allocator(word)
    if any(paths):
        raise run.SessionError("compare: two sessions, or two allocators")
    if options.allocators:
        raise run.SessionError("--allocators goes with the names of two sessions")
    peers.check_first(options.words)
    session, cases, ready = begin(console, options, options.words, least=2)
    interrupted = measure(console, options, session, cases, ready)
    measured = results.load(session.path)
    tables.show(console, measured)
    fine = tables.compare(console, measured, *options.words)
    if not measured.results() and not interrupted:
        session.discard()
    return INTERRUPTED if interrupted else 0 if fine and not session.failures else FAILED


def compare_sessions(console, options, first, second):
    """What one allocator did in two sessions."""
    names = options.allocators or [first.reference]
    if len(names) > 1:
        raise run.SessionError("compare: one of --allocators for two sessions")
    for word, measured in zip(options.words, (first, second)):
        if names[0] not in measured.versions:
            raise run.SessionError(f"{word} has no {names[0]}, but {', '.join(measured.versions)} "
                                   "(--allocators NAME)")
    console.print(f"{names[0]}: {options.words[0]} against {options.words[1]}", soft_wrap=True)
    return 0 if tables.compare_sessions(console, first, second, names[0]) else FAILED


def _check_allocator(word):
    try:
        peers.known(ROOT, word)
    except peers.PeerError as error:
        raise run.SessionError(f"compare: {word} is no session of out/bench, and: {error}"
                               ) from None


def _session_path(options, word):
    """The runs of a session that the word names, or None."""
    for path in (options.folder / word, ROOT / word):
        if path.suffix == ".jsonl" and path.exists():
            return path
    path = ROOT / "out/bench" / word / "runs.jsonl"
    return path if word and path.exists() else None


def publish(console, options):
    word = options.words[0] if options.words else None
    path = _session_path(options, word) if word else None
    path = path or run.find(ROOT, word) / "runs.jsonl"
    measured = results.load(path)
    if not measured.results():
        raise run.SessionError(f"{os.path.relpath(path, ROOT)} has no figure to report")
    folder = options.into or ROOT / "docs/benchmarks"
    written = page.publish(measured, path, folder, options.name)
    console.print(f"written: {os.path.relpath(written, ROOT)}", soft_wrap=True)
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


COMMANDS = {"run": run_all, "compare": compare, "report": publish, "program": run_program}


def perform(console, options):
    """Does what was asked for. Returns the exit status; what was wrong is told in one line."""
    try:
        if options.list:
            return list_cases(console, options)
        if options.install:
            return install(console)
        return COMMANDS[options.command](console, options)
    except command.CommandError as error:
        return complain(FAILED, f"not compared: {error}")
    except (launcher.RunError, run.SessionError, suite.SuiteError, peers.PeerError,
            ValueError) as error:
        return complain(WRONG, error)


def open_standard_files():
    """Without standard input or output, the next file that is opened would be taken for it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    # Words of a command line need not be UTF-8.
    sys.stdout.reconfigure(errors="backslashreplace")


def main():
    open_standard_files()
    options = arguments.parse(ROOT, sys.argv[1:])
    if "HAK_WORDS_ONLY" in os.environ:  # ./hak, before it builds
        return 0
    console = Console(width=None if sys.stdout.isatty() else 140, markup=False)
    try:
        status = perform(console, options)
        sys.stdout.flush()
    except OSError as error:
        # What could not be written is not tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return FAILED
        return complain(FAILED, f"{error.filename or 'cannot write the output'}: {error.strerror}")
    return status


if __name__ == "__main__":
    sys.exit(main())
