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


class RunError(Exception):
    """The program could not run, failed, or took too long."""


class Skipped(Exception):
    """The program is not there, and why."""


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
    tell); `rss`: pairs of milliseconds and KiB."""
    stdout: str
    stderr: str
    cost: Cost
    served: bool | None
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
    done = subprocess.run([compiler, "-O2", "-o", program, source], capture_output=True, text=True)
    if done.returncode:
        raise RunError(f"cannot build bench/launch/launch.c:\n{done.stderr}")
    return program


def clean_environment():
    """The variables every measured program starts with, whoever calls the tool."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}


def run(root, words, environment, library="/libc.so.6", timeout_s=TIMEOUT_S):
    """Runs the words (paths relative to root) with the clean environment and the given variables,
    and looks for the library (the end of its path) among the mappings.

    Returns Done; raises RunError unless the program ends with status 0.
    """
    launch = prepare(root)
    with tempfile.NamedTemporaryFile(prefix="hakbench-") as result:
        command = [str(launch), result.name, str(library),
                   *(f"{name}={value}" for name, value in environment.items()), *words]
        stdout, stderr = _finish(command, root, timeout_s)
        written = Path(result.name).read_text(encoding="utf-8")
    if not written:
        raise RunError(f"the launcher failed: {stderr.strip()}")
    values = json.loads(written)
    exit_status, signal_number = values.pop("exit_status"), values.pop("signal")
    if signal_number:
        name = signal.Signals(signal_number).name
        raise RunError(_with_last_line(f"died of {name}", stderr))
    if exit_status == SKIPPED:
        raise Skipped((stderr.strip() or stdout.strip() or "no reason given").splitlines()[-1])
    if exit_status:
        raise RunError(_with_last_line(f"ended with status {exit_status}", stderr))
    served = {1: True, 0: False, -1: None}[values.pop("served")]
    return Done(stdout, stderr, served=served, rss=values.pop("rss"), cost=Cost(**values))


def _finish(command, root, timeout_s):
    """Runs a command in a session of its own, all of which ends with it, also when interrupted."""
    process = subprocess.Popen(command, cwd=root, env=clean_environment(), text=True,
                               errors="replace", stdin=subprocess.DEVNULL, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        return process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise RunError(f"still running after {timeout_s} s") from None
    finally:
        _end(process)


def _end(process):
    """Ends what is left of a command's session; a script may clean up first."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    process.stderr.close()


def _with_last_line(message, stderr):
    lines = stderr.strip().splitlines()
    return f"{message}: {lines[-1]}" if lines else message
