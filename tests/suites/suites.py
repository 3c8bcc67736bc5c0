#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Other programs' own test suites, on the C library's allocator and on hakmem.

suites.py run [OPTIONS] [NAME...]  a portion: packages that were not done for this library, one
                                   after the other, those that were done longest ago first; what is
                                   cut goes on
    --budget-s N   how long a portion is; inf: until none is left
    --jobs N       processes that build and test (default 2)
    --limit-s N    how long a build, or a run on the system's allocator, may take (default 280)
    --keep         builds stay, so that another library needs only the runs
suites.py left [NAME...]           packages that are not done for this library
suites.py list                     the packages and what became of them
suites.py publish                  writes docs/COMPATIBILITY.md and docs/compatibility.jsonl

A package is a row of packages.toml. Each step is written to out/suites/log when it is over, and
what it printed to out/suites/logs. Exit status: 0 no difference that is not explained, 1 there is
one, 77 sources or a chroot are not to be had here.
"""
import argparse
import datetime
import fnmatch
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib

import readers
from places import PATH, ROOT, STORE, Chroot, Missing, Place, last_line
from results import EXIT, State, Step, count, judge, publish

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
# Of a way to run: the build whose library is preloaded, and the settings.
WAYS = {"hakmem": ("release", {}), "hardened": ("release", {"HAKMEM_MODE": "hardened"}),
        "tiny": ("tiny", {})}
AGAIN = 3
# So many packages have their build dependencies installed at once.
GROUP = 8
LIMIT_S = 280
TOO_LONG = 124
NOTHING = "nothing"
LEAST_FREE_BYTES = 6 << 30
LOG_BYTES = 64 << 20


def packages():
    with open(HERE / "packages.toml", "rb") as file:
        return tomllib.load(file)["package"]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def git(*words):
    done = subprocess.run(["git", "-C", str(ROOT), *words, "--", "src", "include"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.strip()


def commit():
    """The source's last commit; with a + if the source differs from it."""
    return (git("log", "-1", "--format=%h") or "-") + ("+" if git("status", "--short") else "")


def library(build):
    """A build's library; it is made if it is not there."""
    path = ROOT / "out" / build / "libhakmem.so"
    if not path.exists():
        subprocess.run(["./hak", "build", build, "hakmem_shared"], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
    return path


def replace(source, target):
    """Copies a file to a name that programs may have mapped: theirs stays as it is."""
    new = target.with_name(f"{target.name}.new")
    shutil.copy(source, new)
    os.replace(new, target)


class Reporter:
    """One line a step, also in a log; on a terminal, a line that shows what runs and how much is
    left."""

    def __init__(self, total, log):
        self.total, self.done, self.log = total, 0, log
        self.progress = None
        if sys.stderr.isatty():
            try:
                from rich.console import Console  # pylint: disable=import-outside-toplevel
                from rich.progress import (  # pylint: disable=import-outside-toplevel
                    BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn)
            except ImportError:
                return
            self.progress = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                TimeElapsedColumn(), console=Console(stderr=True))
            self.task = self.progress.add_task("suites", total=total)
            self.progress.start()

    def show(self, what):
        if self.progress:
            self.progress.update(self.task, description=what)

    def say(self, line):
        (self.progress.console if self.progress else sys.modules["builtins"]).print(line)
        sys.stdout.flush()
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(f"{now()} {line}\n")

    def finish_one(self):
        self.done += 1
        if self.progress:
            self.progress.update(self.task, completed=self.done)

    def stop(self):
        if self.progress:
            self.progress.stop()


def now():
    return datetime.datetime.now().isoformat(timespec="seconds")


def default_build():
    return "(debian/rules build-arch || debian/rules build)"


def build_folders(tree):
    """Folders in which a build may have left a suite, the likeliest first."""
    patterns = ("obj", "obj-*", "build*", "_build*", "debian/build*", "*/obj-*")
    named = sorted(path for pattern in patterns for path in tree.glob(pattern)
                   if path.is_dir() and path.name != "build-aux")
    return [*named, tree]


def has_target(makefile, target):
    text = makefile.read_text(errors="replace")
    # It may be one of several targets of a rule.
    return re.search(rf"^(?:[^\s:=]+ +)*{target}(?: +[^\s:]+)* *::?(?!=)", text, re.M) is not None


def find_suite(tree, jobs):
    """(folder, command) of the tests of a tree that was built."""
    for folder in build_folders(tree):
        if (folder / "CTestTestfile.cmake").exists():
            return folder, f"ctest -j{jobs} --timeout 200"
        if (folder / "meson-info").exists():
            return folder, f"meson test --no-rebuild --num-processes {jobs}"
        if (folder / "Build").exists() and (folder / "Build.PL").exists():
            return folder, "./Build test"
        makefiles = [folder / name for name in ("GNUmakefile", "Makefile", "makefile")]
        for makefile in [path for path in makefiles if path.exists()]:
            if "TEST_LOGS" in makefile.read_text(errors="replace"):
                return folder, f"make -k -j{jobs} check"
            for target in ("check", "check-am", "test"):
                if has_target(makefile, target):
                    return folder, f"make -k {target.removesuffix('-am')}"
    return None


class Package:
    """One row of the list, in a place."""

    jobs, keep, most_s = 2, False, LIMIT_S

    def __init__(self, row, place, state, libraries):
        self.row, self.place, self.state, self.libraries = row, place, state, libraries
        self.name = row["name"]
        self.identity = "+".join(digest(path) for path in libraries.values())
        self.tree = place.tree(self.name)
        self.inside = place.inside / self.name
        self.logs = STORE / "logs"
        self.version = "?"
        self.logs.mkdir(parents=True, exist_ok=True)

    @property
    def limit_s(self):
        """How long a run on the system's allocator may take."""
        return self.row.get("limit_s", self.most_s)

    def log(self, step, attempt=1):
        return self.logs / f"{self.name}.{step}{'' if attempt == 1 else f'.{attempt}'}.log"

    def add(self, step, attempt, result):
        self.state.add_step(self.name, self.version, self.identity, step, attempt, result)

    def begin(self):
        """Forgets steps of another version, of a source that is gone, and runs of another
        library."""
        self.version = version_of(self.tree)
        self.state.forget_others(self.name, self.version, self.identity)
        if self.state.step(self.name, "build") is None:
            self.state.forget(self.name)
            self.place.remove(self.name)

    def build(self):
        """Builds the source and what its tests need. None if there is a build; else a step."""
        log = self.log("build")
        log.unlink(missing_ok=True)
        begin = time.monotonic()
        version = self.place.source(self.name, log)
        if version is None:
            return Step(1, 0, 0, "", {}, "the mirror lacks its source, or a part of it")
        if not self.place.fetch(self.name, version, log, self.row.get("needs", "")):
            return Step(1, 0, 0, "", {}, f"no build dependency: {last_line(log)}")
        self.version = version_of(self.tree)
        command = self.row.get("build") or default_build()
        limit_s = self.row.get("build_s", self.most_s)
        variables = {"DEB_BUILD_OPTIONS": f"nocheck nodoc parallel={self.jobs}",
                     "DEB_BUILD_PROFILES": "nodoc", "PATH": f"/usr/lib/ccache:{PATH}",
                     "DEB_CFLAGS_APPEND": "-g0", "DEB_CXXFLAGS_APPEND": "-g0"}
        status = self.place.run(command, self.inside, log, limit_s, more=variables)
        if status == TOO_LONG:
            return Step(status, 0, 0, "", {}, f"not built within {limit_s:g} s")
        if status != 0:
            return Step(status, 0, 0, "", {}, f"cannot be built: {last_line(log)}")
        if self.suite() is None:
            return Step(1, 0, 0, "", {}, "no tests found")
        folder, command = self.suite()
        prepare = self.row.get("prepare")
        if prepare is None and command.endswith(f"-j{self.jobs} check"):
            prepare = f"make -k -j{self.jobs} check TESTS= DEJATOOL="
        if prepare and self.place.run(prepare, folder, log, limit_s, more=variables) == TOO_LONG:
            return Step(TOO_LONG, 0, 0, "", {}, f"tests not built within {limit_s:g} s")
        return Step(0, time.monotonic() - begin, 0, "", {}, command)

    def suite(self):
        """(folder as the place sees it, command)."""
        if "test" in self.row:
            return self.inside / self.row.get("folder", "."), self.row["test"]
        found = find_suite(self.tree / self.row.get("folder", "."), self.jobs)
        return found and (self.inside / found[0].relative_to(self.tree), found[1])

    def run(self, way, attempt):
        """Runs the suite one way; proves which allocator served."""
        folder, command = self.suite()
        log = self.log(way, attempt)
        log.unlink(missing_ok=True)
        proof = self.place.store / "proof"
        shutil.rmtree(proof, ignore_errors=True)
        proof.mkdir()
        proof.chmod(0o777)
        for path in readers.leftovers(self.tree):
            path.unlink()
        inside = self.place.inside / "proof"
        variables = {}
        if way != "system":
            build, settings = WAYS[way]
            replace(self.libraries[build], self.place.store / f"libhakmem-{build}.so")
            variables = {"LD_PRELOAD": str(self.place.inside / f"libhakmem-{build}.so"),
                         "HAKMEM_STATS": "raw", "HAKMEM_STATS_FILE": f"{inside}/stats", **settings}
        words = " ".join(f"{name}={value}" for name, value in variables.items())
        script = f"exec env {words} sh -c 'cat /proc/self/maps >{inside}/maps; {command}'"
        begin = time.monotonic()
        # What takes this much longer than on the system's allocator is a difference.
        limit_s = self.limit_s * (1 if way == "system" else 2)
        status = self.place.run(script, folder, log, limit_s)
        seconds = time.monotonic() - begin
        processes, note = self.proof(proof, way)
        text = read_end(log)
        reader, outcomes = readers.read(text, self.tree, self.row.get("reader"))
        if not outcomes and readers.only_driver(text):
            reader = NOTHING
        elif not outcomes:
            reader, outcomes = "status", {EXIT: readers.FAIL if status else readers.PASS}
        return Step(status, seconds, processes, reader, outcomes, note)

    @staticmethod
    def proof(folder, way):
        """(processes that hakmem served, what is wrong with that)."""
        maps = folder / "maps"
        is_mapped = maps.exists() and "libhakmem" in maps.read_text(errors="replace")
        if is_mapped != (way != "system"):
            return 0, f"hakmem is {'' if is_mapped else 'not '}mapped"
        processes = served = elsewhere = 0
        if (folder / "stats").exists():
            with open(folder / "stats", encoding="ascii", errors="replace") as file:
                for line in file:
                    if line.startswith("pid: "):
                        processes += 1
                    elif line.startswith("fresh_slabs: ") and line != "fresh_slabs: 0\n":
                        served += 1
                    elif line.startswith("fallback: ") and line != "fallback: 0\n":
                        elsewhere += 1
        if way != "system" and (served == 0 or elsewhere):
            others = f", {elsewhere} of them also by others" if elsewhere else ""
            return served, f"{served} of {processes} processes served{others}"
        return served, ""

    def steps(self, way):
        """The attempts of a way that were made."""
        made = [self.state.step(self.name, way, attempt) for attempt in range(1, AGAIN + 2)]
        return [step for step in made if step is not None]

    def next_step(self, ways):
        """(way, attempt) of the run that comes next; None: all is known."""
        plain = self.steps("system")
        if plain and self.obstacle(plain[0]):
            return None
        for way in ("system", *ways):
            if not self.steps(way):
                return way, 1
        # What was once the same has been shown to be unsteady, and more runs do not change that.
        differ = [way for way in ways if judge(plain, self.steps(way))[0]]
        for attempt in range(2, AGAIN + 2):
            for way in [*differ, "system"] if differ else []:
                if len(self.steps(way)) < attempt:
                    return way, attempt
        return None

    def reason(self, way, test):
        """Why a test differs, as the list has it."""
        for pattern, why in self.row.get("explained", {}).items():
            of, _, name = pattern.partition(": ")
            if of in (way, "all") and fnmatch.fnmatchcase(test, name):
                return why
        return None

    def result(self, ways):
        """The row that is published."""
        plain = self.steps("system")
        row = {"package": self.name, "version": self.version, "state": "done",
               "tests": count(plain[0].outcomes), "reader": plain[0].reader,
               "status": plain[0].status, "seconds": round(plain[0].seconds, 1), "ways": {},
               "unsteady": [], "commit": self.state.source_of(self.identity, commit()),
               "libraries": self.identity,
               "when": datetime.date.today().isoformat()}
        if self.obstacle(plain[0]):
            return lost(self, self.obstacle(plain[0]))
        for way in ways:
            steps = self.steps(way)
            differs, shaky = judge(plain, steps)
            for test, what in differs.items():
                why = self.reason(way, test)
                if why:
                    what["reason"] = why
            notes = sorted({step.note for step in steps if step.note})
            row["ways"][way] = {"tests": count(steps[0].outcomes), "status": steps[0].status,
                                "processes": steps[0].processes, "differs": differs,
                                "seconds": round(steps[0].seconds, 1)}
            if notes:
                row["ways"][way]["proof"] = notes
            row["unsteady"] = sorted(set(row["unsteady"]) | set(shaky))
        return row

    def obstacle(self, plain):
        """Why a run on the system's allocator is nothing to compare with; None if it is."""
        if plain.status == TOO_LONG:
            return f"its tests take longer than {self.limit_s:g} s"
        if plain.reader == NOTHING:
            return "its check has nothing to run"
        if plain.reader == "status" and plain.status != 0:
            return ("its tests end badly on the system's allocator, too, and no reader knows their "
                    "output")
        return None

    def finish(self, row):
        self.state.finish(self.name, self.version, self.identity, now(), row)
        if row["state"] != "done" or not self.keep:
            self.state.forget(self.name)
            self.place.remove(self.name)


def version_of(tree):
    """The version of an unpacked Debian source."""
    changelog = tree / "debian/changelog"
    if not changelog.exists():
        return "?"
    with open(changelog, encoding="utf-8", errors="replace") as file:
        return re.search(r"\((\S+)\)", file.readline())[1]


def read_end(log):
    """A log's text, or the end of it."""
    with open(log, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - LOG_BYTES))
        return file.read().decode(errors="replace").replace("\r\n", "\n")


def lost(package, note):
    return {"package": package.name, "version": package.version, "state": "none", "note": note,
            "libraries": package.identity, "when": datetime.date.today().isoformat()}


def unexplained(row):
    """What a result must not hold."""
    for way, result in row.get("ways", {}).items():
        for test, what in result["differs"].items():
            if "reason" not in what:
                yield (f"{row['package']}, {way}: {test}: {what['system']} on the system's "
                       f"allocator, {what['there']} on hakmem")
        for note in result.get("proof", []):
            yield f"{row['package']}, {way}: {note}"


def work(package, ways, end, report):
    """Takes a package further. Its result; None: the time is up."""
    package.begin()
    if package.state.step(package.name, "build") is None:
        report.show(f"{package.name}: builds")
        step = package.build()
        if step.status != 0:
            return lost(package, step.note)
        package.add("build", 1, step)
        report.say(f"{package.name} {package.version}: built in {step.seconds:.0f} s: {step.note}")
    while True:
        following = package.next_step(ways)
        if following is None:
            return package.result(ways)
        known = package.steps("system")
        if time.monotonic() + (known[0].seconds if known else 0) > end:
            return None
        way, attempt = following
        report.show(f"{package.name}: {way}, run {attempt}")
        step = package.run(way, attempt)
        package.add(way, attempt, step)
        counts = count(step.outcomes)
        report.say(f"{package.name}: {way} {attempt}: {counts['pass']} passed, {counts['fail']} "
                   f"failed, {counts['skip']} skipped ({step.reader}), exit status {step.status}, "
                   f"{step.seconds:.0f} s, {step.processes} processes {step.note}")


def check_room():
    """The chroot goes when the disk is nearly full; what is needed of it comes again."""
    if shutil.disk_usage(STORE).free < LEAST_FREE_BYTES:
        shutil.rmtree(STORE / "root", ignore_errors=True)
    if shutil.disk_usage(STORE).free < LEAST_FREE_BYTES:
        raise Missing("less than 6 GB of the disk are free")


def remaining(rows, place, ways):
    """Packages that are not done for the current libraries, in the order of work."""
    state = State(STORE / "state.sqlite")
    libraries = {WAYS[way][0]: library(WAYS[way][0]) for way in ways}
    todo = [Package(row, place, state, libraries) for row in rows]
    todo = [package for package in todo if not state.is_done(package.name, package.identity)]
    return sorted(todo, key=lambda package: (not state.has_steps(package.name),
                                             state.last_done(package.name)))


def gather(group):
    """Has what those of the packages need that are not built."""
    missing = [package for package in group
               if package.state.step(package.name, "build") is None
               and package.place.source(package.name, package.log("build"))]
    if len(missing) > 1:
        missing[0].place.gather([package.name for package in missing], STORE / "gather.log")


def work_all(todo, ways, end):
    """Works on packages until the time is up; whether one has a difference nobody explained."""
    report, bad = Reporter(len(todo), STORE / "log"), []
    try:
        if todo:
            source = todo[0].state.source_of(todo[0].identity, commit())
            report.say(f"libraries {todo[0].identity} of {source}: {len(todo)} packages to do")
        for number, package in enumerate(todo):
            if time.monotonic() > end:
                break
            if number % GROUP == 0:
                gather(todo[number:number + GROUP])
            row = work(package, ways, end, report)
            if row is None:
                break
            package.finish(row)
            report.finish_one()
            report.say(f"{package.name}: {row.get('note') or summary(row)}")
            bad += unexplained(row)
    finally:
        report.stop()
    for line in bad:
        report.say(f"FAILED: {line}")
    report.say(f"suites: {report.done} packages done, {len(todo) - report.done} remain")
    return bool(bad)


def summary(row):
    differ = sum(len(result["differs"]) for result in row["ways"].values())
    return (f"{sum(row['tests'].values())} tests, {differ} differ, "
            f"{len(row['unsteady'])} unsteady")


def publish_all():
    publish(State(STORE / "state.sqlite").rows(), ROOT / "docs/compatibility.jsonl",
            ROOT / "docs/COMPATIBILITY.md", tuple(WAYS), {row["name"] for row in packages()})


def chosen(options):
    return [row for row in packages() if not options.names or row["name"] in options.names]


def run(options):
    end = time.monotonic() + options.budget_s
    if "HAK_FULL" not in os.environ and not options.names:
        raise Missing("other programs' suites take long: ./hak test --full")
    check_room()
    todo = remaining(chosen(options), Chroot(), tuple(WAYS))
    for package in todo:
        package.jobs, package.keep, package.most_s = options.jobs, options.keep, options.limit_s
    try:
        return work_all(todo, tuple(WAYS), end)
    finally:
        if (STORE / "state.sqlite").exists():
            publish_all()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "left", "list", "publish"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budget-s", type=float, default=240)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=LIMIT_S)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_intermixed_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    STORE.mkdir(parents=True, exist_ok=True)
    try:
        if options.command == "publish":
            publish_all()
        elif options.command == "left":
            for package in remaining(chosen(options), Place(STORE), tuple(WAYS)):
                print(package.name)
        elif options.command == "list":
            state = State(STORE / "state.sqlite")
            done = {row["package"]: row for row in state.rows()}
            for row in packages():
                found = done.get(row["name"])
                print(f"{row['name']}: "
                      + ("not run" if found is None else found.get("note") or summary(found)))
        else:
            return int(run(options))
        return 0
    except Missing as missing:
        print(f"skipped: {missing}")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
