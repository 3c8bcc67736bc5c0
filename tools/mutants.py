#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do the tests notice when the code is wrong? Changes one thing of src/slab, src/span or src/heap
at a time, and runs the tests that concern it: a change that makes none fail survives.

    ./hak mutants                          60 changes of each folder, and the record
    ./hak mutants --folder span            of one folder
    ./hak mutants --file src/span/large.c  all changes of one file, or as many as --sample says
    ./hak mutants --seed 2 --sample 20     other changes, fewer of them
    ./hak mutants --quick                  those that tests/mutants.toml lists as killed

With --test, as CTest calls it, --quick, and after it the sample if HAK_FULL is set.

Changes that compile to the same code, or to none, do not count, nor those that tests/mutants.toml
lists as equivalent, each with its reason. Exit status 1: of the recorded sample fewer were killed
than the record says, or a listed change is not what the list says.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib

from checklib import ROOT
from mutation import changes, trials

RECORD = ROOT / "tests/mutants.toml"
FOLDERS = ("slab", "span", "heap")
BUILDS = ("debug", "tiny")
# Programs that compute for longer are left to the tests themselves.
PROCESSOR_SECONDS_MOST = 5

worker = None


def start_worker(folder):
    global worker
    place = pathlib.Path(folder) / str(os.getpid())
    place.mkdir()
    worker = trials.Trials(place)


def judge(change, programs):
    return worker.judge(change, programs)


def cost_of(program):
    return worker.cost_of(program)


def all_changes(file):
    return changes.changes_of(file, trials.compile_commands(BUILDS[0])[file])


def files_of(folder):
    return [file for file in trials.compile_commands(BUILDS[0])
            if file.startswith(f"src/{folder}/")]


def name_of(row):
    """The name of the change that a row of the record lists."""
    return row["file"], row["code"], row["change"], row.get("turn", 1)


def killed_percent(count):
    return 100 * count["killed"] / max(count["killed"] + count["survived"], 1)


class Session:
    """Judges changes on all processors and prints each verdict."""

    def __init__(self, pool, record, is_quick):
        self.pool = pool
        self.equivalent = {name_of(row) for row in record.get("equivalent", ())}
        self.is_quick = is_quick
        self.costs = {}
        self.survivors = []
        self.by_folder = {}

    def programs(self, file):
        """What is run for a file, in order."""
        found = trials.programs_for(file, BUILDS[:1] if self.is_quick else BUILDS)
        if self.is_quick:
            found = {program: rank for program, rank in found.items() if rank == 0}
        unknown = [program for program in found if program not in self.costs]
        for program, cost in zip(unknown, self.pool.map(cost_of, unknown)):
            self.costs[program] = cost
            if cost.failed:
                print(f"{program} failed unchanged, and passed when it was run again: "
                      f"{cost.failed}", flush=True)
        own = pathlib.Path(file).stem

        def order(program):
            is_own = f"_{own}_" in program.name and not program.variables
            build = BUILDS.index(program.build)
            return found[program], not is_own, build, self.costs[program].processor
        return {program: self.costs[program] for program in sorted(found, key=order)
                if self.costs[program].processor <= PROCESSOR_SECONDS_MOST}

    def verdicts(self, candidates, most):
        """Judges changes until so many count: (change, verdict, by what) as they come."""
        candidates = iter(candidates)
        running, counted = {}, 0
        while True:
            while counted + len(running) < most and (change := next(candidates, None)):
                job = self.pool.submit(judge, change, self.programs(change.file))
                running[job] = change
            if not running:
                return
            done, _ = concurrent.futures.wait(running, return_when="FIRST_COMPLETED")
            for job in done:
                verdict, by_what = job.result()
                change = running.pop(job)
                if verdict == "equal" and self.is_quick:  # a listed change that is none any more
                    verdict = "survived"
                if verdict == "survived" and change.name in self.equivalent:
                    verdict = "equivalent"
                counted += verdict in ("killed", "survived")
                yield change, verdict, by_what

    def judge(self, label, candidates, most):
        """Returns how many of 100 were killed."""
        count = dict.fromkeys(("killed", "survived", "equivalent", "equal"), 0)
        for change, verdict, by_what in self.verdicts(candidates, most):
            count[verdict] += 1
            if verdict == "survived":
                self.survivors.append(change)
            if verdict != "equal":
                judged = count["killed"] + count["survived"]
                print(f"{label} {judged:3}/{most} {verdict:10} {change.file}:{change.line}: "
                      f"{change.change}{'; ' + by_what if by_what else ''}", flush=True)
        self.by_folder[label] = count
        return killed_percent(count)

    def table(self):
        print(f"\n{'':24}{'killed':>10}{'survived':>10}{'equivalent':>12}{'same code':>11}")
        for label, count in self.by_folder.items():
            print(f"{label:24}{count['killed']:>10}{count['survived']:>10}"
                  f"{count['equivalent']:>12}{count['equal']:>11}"
                  f"   {killed_percent(count):.1f} % killed")
        for change in self.survivors:
            turn = f", number {change.turn}" if change.turn > 1 else ""
            print(f"survived: {change.file}:{change.line}: {change.change}{turn}\n"
                  f"          {change.code}")


def listed(rows):
    """The changes that the record lists, and what of it is no longer in the code."""
    found, problems = [], []
    by_file = {}
    for row in rows:
        if row["file"] not in by_file:
            by_file[row["file"]] = {change.name: change for change in all_changes(row["file"])}
        change = by_file[row["file"]].get(name_of(row))
        if change:
            found.append(change)
        else:
            problems.append(f"{row['file']} has no such change any more: {row['code']}: "
                            f"{row['change']}; list another one in tests/mutants.toml")
    return found, problems


def run_quick(session, record):
    chosen, problems = listed(record.get("quick", ()))
    session.judge("quick", chosen, len(chosen))
    session.table()
    return problems + [f"no test of src/{change.folder} notices {change.file}:{change.line}: "
                       f"{change.change}" for change in session.survivors]


def run_sample(session, record, options):
    problems = []
    is_recorded = (options.seed, options.sample) == (record["seed"], record["sample"])
    for folder in options.folder or FOLDERS:
        ranked = sorted((change for file in files_of(folder) for change in all_changes(file)),
                        key=lambda change: change.rank(options.seed))
        percent = session.judge(folder, ranked, options.sample)
        least = record["killed_percent"][folder]
        if is_recorded and percent < least:
            problems.append(f"src/{folder}: {percent:.1f} % killed; the record is {least} %")
    session.table()
    return problems


def run_file(session, options):
    ranked = sorted(all_changes(options.file), key=lambda change: change.rank(options.seed))
    session.judge(options.file, ranked, options.sample or len(ranked))
    session.table()


def parsed(record):
    parser = argparse.ArgumentParser(prog="hak mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", choices=FOLDERS, action="append", help="only this folder")
    parser.add_argument("--file", help="only this file, whole unless --sample is given")
    parser.add_argument("--seed", type=int, default=record["seed"])
    parser.add_argument("--sample", type=int, help="so many changes of each folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="so many at a time")
    parser.add_argument("--quick", action="store_true", help="only the listed changes")
    parser.add_argument("--test", action="store_true", help="--quick, and more with HAK_FULL=1")
    options = parser.parse_args()
    if "HAK_WORDS_ONLY" in os.environ:  # ./hak, before it builds
        sys.exit(0)
    if options.file and options.file not in trials.compile_commands(BUILDS[0]):
        parser.error(f"the tests are not built with a file {options.file}")
    if not options.file and not options.sample:
        options.sample = record["sample"]
    return options


def bring_up_to_date():
    """What is built already; both builds are configured."""
    for build in BUILDS:
        subprocess.run(["cmake", "--build", ROOT / "out" / build], check=True,
                       stdout=subprocess.DEVNULL)


def judge_all(options, record):
    """What is not as the record says."""
    is_quick = options.quick or options.test
    is_sampled = not options.quick and (not options.test or os.environ.get("HAK_FULL"))
    problems = []
    if is_sampled:
        bring_up_to_date()
    with (tempfile.TemporaryDirectory(prefix="hakmem-mutants-") as folder,
          concurrent.futures.ProcessPoolExecutor(options.jobs, initializer=start_worker,
                                                 initargs=(folder,)) as pool):
        if is_quick:
            problems += run_quick(Session(pool, record, is_quick=True), record)
        if is_sampled and options.file:
            run_file(Session(pool, record, is_quick=False), options)
        elif is_sampled:
            problems += run_sample(Session(pool, record, is_quick=False), record, options)
    return problems


def main():
    record = tomllib.loads(RECORD.read_text())
    problems = judge_all(parsed(record), record)
    for problem in problems:
        print(f"FAILED {problem}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
