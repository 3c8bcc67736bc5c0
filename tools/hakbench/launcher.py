# SPDX-License-Identifier: MIT
"""One run of one program under one allocator: its output and what it cost.

Imports the standard library only, so that the demonstration can use it too.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 600
SKIPPED = 77
MOST_OUTPUT_BYTES = 1 << 20
SEEN = {1: True, 0: False, -1: None}


class RunError(Exception):
    """The program could not run, failed, or took too long."""


class Skipped(Exception):
    """The program is not there, and why."""


@dataclass(frozen=True)
class Place:
    """Where and with what a program runs. By default that is the root of the repository, the clean
    environment and an empty standard input; `status` is the exit status of success."""
    folder: Path | None = None
    environment: dict | None = None
    stdin: Path | None = None
    status: int = 0
    timeout_s: float = TIMEOUT_S


@dataclass(frozen=True)
class Cost:
    """What a run cost: times in seconds, memory in KiB."""
    wall_s: float
    user_s: float
    system_s: float
    peak_rss_kib: int
    average_rss_kib: int
    minor_faults: int
    major_faults: int
    voluntary_switches: int
    involuntary_switches: int


@dataclass(frozen=True)
class Done:
    """A program that ended well. `served`: whether the library was seen mapped (None: too short to
    tell); `largest` names the largest process, `largest_served` says the same of it; `left`
    counts the processes that it left behind, which were ended; `rss`: pairs of milliseconds and
    KiB."""
    stdout: str
    stderr: str
    cost: Cost
    served: bool | None
    largest: str
    largest_served: bool | None
    left: int
    rss: list


def prepare(root):
    """Compiles bench/launch/launch.c into out/bench/ if that is not done; returns its path."""
    source = root / "bench/launch/launch.c"
    program = root / "out/bench/launch"
    if program.exists() and program.stat().st_mtime >= source.stat().st_mtime:
        return program
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise RunError("no C compiler (cc) to build bench/launch/launch.c")
    program.parent.mkdir(parents=True, exist_ok=True)
    made = program.with_name(f"launch.{os.getpid()}")
    done = subprocess.run([compiler, "-O2", "-o", made, source], capture_output=True, text=True)
    if done.returncode:
        raise RunError(f"cannot build bench/launch/launch.c:\n{done.stderr}")
    made.replace(program)  # another tool may be running the old one
    return program


def clean_environment():
    """The variables every measured program starts with, whoever calls the tool."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}


def run(root, words, environment, library="/libc.so.6", place=Place()):
    """Runs the words in their place (by default paths are relative to root) with the given
    variables beside its own, and looks for the library (the end of its path) among the mappings.

    Returns Done; raises RunError unless the program ends with the status of success.
    """
    launch = prepare(root)
    with tempfile.NamedTemporaryFile(prefix="hakbench-") as result:
        command = [str(launch), result.name, str(library),
                   *(f"{name}={value}" for name, value in environment.items()), "--", *words]
        stdout, stderr = _finish(command, root, place)
        written = Path(result.name).read_text(encoding="utf-8")
    if not written:
        raise RunError(f"the launcher failed: {stderr.strip()}")
    values = json.loads(written)
    exit_status, signal_number = values.pop("exit_status"), values.pop("signal")
    if signal_number:
        raise RunError(_with_last_line(f"died of {_signal_name(signal_number)}", stderr))
    if exit_status != place.status:
        if exit_status == SKIPPED and place.environment is None:
            raise Skipped((stderr.strip() or stdout.strip() or "no reason given").splitlines()[-1])
        raise RunError(_with_last_line(f"ended with status {exit_status}", stderr))
    return Done(stdout, stderr, served=SEEN[values.pop("served")], largest=values.pop("largest"),
                largest_served=SEEN[values.pop("largest_served")], left=values.pop("left"),
                rss=values.pop("rss"), cost=Cost(**values))


def _finish(command, root, place):
    """Runs a command in a session of its own, all of which ends with it, also when interrupted; the
    launcher ends what has left the session. The ends of its standard output and error, which go to
    files: nothing runs beside the program."""
    base = clean_environment() if place.environment is None else place.environment
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr, \
            open(place.stdin or os.devnull, "rb") as stdin:
        process = subprocess.Popen(command, cwd=place.folder or root, env=base, stdin=stdin,
                                   start_new_session=True, stdout=stdout, stderr=stderr)
        try:
            process.wait(timeout=place.timeout_s)
        except subprocess.TimeoutExpired:
            raise RunError(f"still running after {place.timeout_s:g} s") from None
        finally:
            _end(process)
        return _tail(stdout), _tail(stderr)


def _tail(file):
    file.seek(max(file.seek(0, os.SEEK_END) - MOST_OUTPUT_BYTES, 0))
    return file.read().decode(errors="replace")


def _end(process):
    """Ends what is left of a command's session; a script may clean up first."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _signal_name(number):
    """Most of the real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _with_last_line(message, stderr):
    lines = stderr.strip().splitlines()
    return f"{message}: {lines[-1]}" if lines else message
