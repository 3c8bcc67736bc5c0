# SPDX-License-Identifier: MIT
"""The machine and the build, without names of hosts or users and without absolute paths."""
import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from . import peers

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def _read(path):
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def _output(*words):
    """What a tool says; nothing if it is not installed."""
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def _found(pattern, text, otherwise="unknown"):
    match = re.search(pattern, text, re.M)
    return match[1].strip() if match else otherwise


def describe(root):
    """{what: value} of everything that a figure depends on beside the command line."""
    memory_kib = _found(r"^MemTotal:\s+(\d+)", _read("/proc/meminfo"), "0")
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _found(r"^model name\s*:\s*(.*)", _read("/proc/cpuinfo"), platform.machine()),
        "processors": os.cpu_count(),
        "memory_gib": round(int(memory_kib) / 2**20, 1),
        "kernel": platform.release(),
        "huge_pages": _found(r"\[(\w+)\]", _read(THP), "not supported"),
        "libc": os.confstr("CS_GNU_LIBC_VERSION"),
        "compiler": _found(r"\A(.+)", _output("cc", "--version")),
        "flags": _found(r"^HAKMEM_FLAGS:[A-Z]+=(.*)", _read(root / "out/release/CMakeCache.txt"))
        .replace(";", " "),
        "commit": peers.commit(root),
        "load_before": round(os.getloadavg()[0], 2),
    }
