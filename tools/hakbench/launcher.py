# SPDX-License-Identifier: MIT
"""One run of one program under one allocator: its output and what it cost.

Imports the standard library only, so that the demonstration can use it too.
"""
import json
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 600


class RunError(Exception):
    """The program could not run, failed, or took too long."""


@dataclass(frozen=True)
class Cost:
    """What a run cost: times in seconds, memory in KiB."""
    wall_s: float
    user_s: float
    system_s: float
    peak_rss_kib: int
    minor_faults: int
    major_faults: int
    voluntary_switches: int
    involuntary_switches: int


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


def run(root, words, environment, timeout_s=TIMEOUT_S):
    """Runs the words (paths relative to root) with the clean environment and the given variables.

    Returns (stdout, stderr, Cost); raises RunError unless the program ends with status 0.
    """
    launch = prepare(root)
    with tempfile.NamedTemporaryFile(prefix="hakbench-") as result:
        command = [str(launch), result.name, *(f"{k}={v}" for k, v in environment.items()), *words]
        try:
            done = subprocess.run(command, cwd=root, env=clean_environment(), text=True,
                                  errors="replace", capture_output=True, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise RunError(f"still running after {timeout_s} s") from None
        written = Path(result.name).read_text(encoding="utf-8")
    if not written:
        raise RunError(f"the launcher failed: {done.stderr.strip()}")
    values = json.loads(written)
    exit_status, signal_number = values.pop("exit_status"), values.pop("signal")
    if signal_number:
        name = signal.Signals(signal_number).name
        raise RunError(_with_last_line(f"died of {name}", done.stderr))
    if exit_status:
        raise RunError(_with_last_line(f"ended with status {exit_status}", done.stderr))
    return done.stdout, done.stderr, Cost(**values)


def _with_last_line(message, stderr):
    lines = stderr.strip().splitlines()
    return f"{message}: {lines[-1]}" if lines else message
