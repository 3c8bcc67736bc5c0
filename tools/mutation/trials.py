# SPDX-License-Identifier: MIT
"""Whether a change makes a test fail: its file is compiled, test programs are linked with it and
run one after another until one fails.

A changed allocator hangs and eats memory. Each program has a time limit by how long it takes
unchanged, and it and what it starts are looked at while it runs: their number and their resident
memory. (A limit of address space or of data would refuse the window, which the tests take whole.)
When it is over all that it started is ended, since the worker is their reaper.
"""
import ctypes
import dataclasses
import functools
import json
import os
import pathlib
import re
import resource
import select
import shlex
import signal
import subprocess
import time

import choose_tests
from checklib import ROOT

ARCHIVE = "libhakmem_test.a"
MEMORY_BYTES_MOST = 4 << 30
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
LOOK_SECONDS = 0.05
FILE_BYTES_MOST = 1 << 30
DESCENDANTS_MOST = 500
LINE_BYTES_MOST = 4096
SKIPPED = 77
TIME_LIMIT = "time limit"
SECONDS_LEAST = 8
SECONDS_FACTOR = 5
UNCHANGED_SECONDS_MOST = 120
PR_SET_CHILD_SUBREAPER = 36


@dataclasses.dataclass(frozen=True)
class Cost:
    """What a program takes unchanged."""
    seconds: float    # on the clock: longer on a busy machine
    processor: float  # of processors: hardly longer
    failed: str       # what failed in its first run, and not in the second; "": nothing


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of tests, and with which variables it is run."""
    build: str
    name: str
    variables: tuple

    def __str__(self):
        return " ".join([f"{self.build}.{self.name}", *self.variables])


def layers_above(folder):
    """Folders of src/ that may include this one: their tests may notice what it does."""
    rows = re.findall(r"^(\w+): *(.*)$", (ROOT / "src/LAYERS").read_text(), re.M)
    above = {folder}
    while True:
        more = {name for name, words in rows if above & set(words.split())} - above
        if not more:
            return above
        above |= more


def programs_for(file, builds):
    """The programs whose tests concern a file, with 0 for those of its own folder, else 1."""
    folder = pathlib.Path(file).parts[1]
    above = layers_above(folder)
    found = {}
    for build in builds:
        for name, words in choose_tests.tests(build):
            is_again = "-E" in words  # with a variable set
            kind, *rest = name.split(".")[2 if is_again else 1:]
            is_near = kind == "unit" and rest[0] == folder
            concerns = kind in ("model", "race") or kind == "unit" and rest[0] in above
            inside = [word for word in words if f"/out/{build}/tests/" in word]
            if inside and (is_near or concerns and not is_again):
                variables = tuple(word for word in words if re.match(r"HAK\w+=", word))
                program = Program(build, pathlib.Path(inside[0]).name, variables)
                found[program] = int(not is_near)
    return found


def become_reaper():
    """What a program leaves behind becomes a child of this process."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants():
    """{process: resident bytes} of what this one started, with all that they started."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            # A process may have any bytes as its name, and may have ended.
            fields = pathlib.Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        row = int(name), int(fields[21]) * PAGE_BYTES
        children.setdefault(int(fields[1]), []).append(row)
    found = list(children.get(os.getpid(), ()))
    for pid, _ in found:
        found += children.get(pid, ())
    return dict(found)


def end_descendants():
    while pids := descendants():
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.002)


def processor_seconds():
    """Of all that this process started and that has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hold_to_limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MOST, FILE_BYTES_MOST))


def passed_limit(end):
    """The limit that what was started has passed, or ""."""
    started = descendants()
    if time.monotonic() > end:
        return TIME_LIMIT
    if len(started) > DESCENDANTS_MOST:
        return "limit of processes"
    return "limit of memory" if sum(started.values()) > MEMORY_BYTES_MOST else ""


def watch(child, end):
    """What fails in a program of tests that was started, up to its first failure; "": nothing."""
    said = b""
    is_open = True
    while child.poll() is None or is_open:
        if failed := passed_limit(end):
            return failed
        if not select.select([child.stdout] if is_open else [], [], [], LOOK_SECONDS)[0]:
            is_open = is_open and child.poll() is None  # else somebody else has it
            continue
        chunk = os.read(child.stdout.fileno(), 65536)
        if found := re.search(rb"^FAILED +(\w+)$", said + chunk, re.M):
            return found[1].decode()
        said = (said + chunk)[-LINE_BYTES_MOST:]
        is_open = bool(chunk)
        if not is_open:
            time.sleep(0.001)  # it is about to end
    status = child.returncode
    return "" if status in (0, SKIPPED) else f"exit status {status}"


def run(command, variables, seconds):
    """Runs a program of tests: what fails in it, or ""."""
    environment = {**os.environ, **dict(pair.split("=") for pair in variables)}
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          preexec_fn=hold_to_limits, start_new_session=True) as child:
        failed = watch(child, time.monotonic() + seconds)
        end_descendants()
    return failed


class Trials:
    """Compiles, links and runs in a folder; each worker has one."""

    def __init__(self, place):
        become_reaper()
        self.place = place
        self.links = {}
        self.originals = {}

    def compiled(self, build, file, source):
        """The object that the file becomes with that text; None: it does not compile."""
        (self.place / "changed.c").write_bytes(f'#line 1 "{ROOT / file}"\n'.encode() + source)
        target = self.place / "changed.o"
        done = subprocess.run(
            [*compile_commands(build)[file], "-O2", "-g0", "-w", "-Wno-error", "-iquote",
             str((ROOT / file).parent), "-o", str(target), "-c", str(self.place / "changed.c")],
            cwd=ROOT / "out" / build, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=600)
        return target.read_bytes() if done.returncode == 0 else None

    def original(self, build, file):
        if (build, file) not in self.originals:
            self.originals[build, file] = self.compiled(build, file, (ROOT / file).read_bytes())
        return self.originals[build, file]

    def linked(self, build, name, object_file=None):
        """The program, with an object before the archive that has its like."""
        if (build, name) not in self.links:
            self.links[build, name] = subprocess.run(
                ["ninja", "-C", f"out/{build}", "-t", "commands", "-s", f"tests/{name}"], cwd=ROOT,
                check=True, capture_output=True, text=True).stdout.strip().splitlines()[-1]
        program = self.place / name
        command = self.links[build, name].replace(f"-o tests/{name} ", f"-Wl,-S -o {program} ")
        command = command.replace(ARCHIVE, f"{object_file or ''} {ARCHIVE}")
        subprocess.run(command, shell=True, cwd=ROOT / "out" / build, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600)
        return program

    def failure(self, program, seconds, object_file=None):
        """What fails in a program with that object."""
        path = self.linked(program.build, program.name, object_file)
        failed = run([path], program.variables, seconds)
        if failed == TIME_LIMIT:  # or was the machine busy?
            failed = run([path], program.variables, 2 * seconds)
        path.unlink()
        return failed

    def cost_of(self, program):
        """What the unchanged program takes; it passes, if need be in a second run."""
        failures = []
        while len(failures) < 2:
            start, begun = time.monotonic(), processor_seconds()
            failed = self.failure(program, UNCHANGED_SECONDS_MOST)
            if not failed:
                seconds = time.monotonic() - start
                return Cost(seconds, processor_seconds() - begun, "".join(failures))
            failures.append(failed)
        raise SystemExit(f"mutants: {program} fails unchanged: {' and '.join(failures)}")

    def judge(self, change, programs):
        """(verdict, by what): killed, survived, or equal (the same code, or none).

        programs: in the order of their runs, what each takes unchanged.
        """
        source = change.applied_to((ROOT / change.file).read_bytes())
        object_of = {}
        for build in dict.fromkeys(program.build for program in programs):
            code = self.compiled(build, change.file, source)
            if code is not None and code != self.original(build, change.file):
                object_of[build] = self.place / f"{build}.o"
                object_of[build].write_bytes(code)
        if not object_of:
            return "equal", ""
        for program, cost in programs.items():
            if program.build in object_of:
                most = max(SECONDS_LEAST, SECONDS_FACTOR * cost.seconds)
                if failed := self.failure(program, most, object_of[program.build]):
                    return "killed", f"{program}: {failed}"
        return "survived", ""


@functools.cache
def compile_commands(build):
    """{file: how the build compiles it for its tests}, without the file and its object."""
    commands = {}
    for row in json.loads((ROOT / f"out/{build}/compile_commands.json").read_text()):
        words = shlex.split(row["command"])
        if f"CMakeFiles/{ARCHIVE[3:-2]}.dir/" in row["command"] and row["file"].endswith(".c"):
            del words[words.index("-o"):]
            is_cached = pathlib.Path(words[0]).name == "ccache"
            commands[str(pathlib.Path(row["file"]).relative_to(ROOT))] = words[is_cached:]
    return commands
