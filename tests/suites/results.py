# SPDX-License-Identifier: MIT
"""results.py - what was run, in out/suites/state.sqlite, and what is published of it.

A step is one build or one run of one package; it is kept until its package is done, so that a run
that is cut goes on with the next step. A result is what became of a package: a line of
docs/compatibility.jsonl and a row of docs/COMPATIBILITY.md. Lines of packages that were not run
here stay.
"""
import collections
import json
import sqlite3

from readers import FAIL, PASS, SKIP

SCHEMA = """
create table if not exists steps (package text, version text, libraries text, step text,
    attempt integer, status integer, seconds real, processes integer, reader text, outcomes text,
    note text, primary key (package, step, attempt));
create table if not exists results (package text primary key, version text, libraries text,
    at text, state text, row text);
create table if not exists builds (libraries text primary key, source text);
"""
Step = collections.namedtuple("Step", "status seconds processes reader outcomes note")


class State:
    """The steps and results of this machine."""

    def __init__(self, path):
        self.base = sqlite3.connect(path)
        self.base.executescript(SCHEMA)

    def step(self, package, name, attempt=1):
        row = self.base.execute(
            "select status, seconds, processes, reader, outcomes, note from steps "
            "where package = ? and step = ? and attempt = ?", (package, name, attempt)).fetchone()
        return row and Step(*row[:4], json.loads(row[4]), row[5])

    def add_step(self, package, version, libraries, name, attempt, step):
        self.base.execute("insert or replace into steps values (?,?,?,?,?,?,?,?,?,?,?)",
                          (package, version, libraries, name, attempt, *step[:4],
                           json.dumps(step.outcomes), step.note))
        self.base.commit()

    def forget_others(self, package, version, libraries):
        """Forgets steps of other versions, and runs of other libraries."""
        self.base.execute("delete from steps where package = ? and (version != ? or "
                          "step != 'build' and libraries != ?)", (package, version, libraries))
        self.base.commit()

    def forget(self, package):
        self.base.execute("delete from steps where package = ?", (package,))
        self.base.commit()

    def has_steps(self, package):
        return self.base.execute("select 1 from steps where package = ?",
                                 (package,)).fetchone() is not None

    def finish(self, package, version, libraries, when, row):
        """The package is done: with a result, or with the reason why there is none. Its build stays
        known."""
        self.base.execute("insert or replace into results values (?,?,?,?,?,?)",
                          (package, version, libraries, when, row["state"], json.dumps(row)))
        self.base.execute("delete from steps where package = ? and step != 'build'", (package,))
        self.base.commit()

    def source_of(self, libraries, source):
        """The source that these libraries were first met with: what is checked out may change."""
        self.base.execute("insert or ignore into builds values (?,?)", (libraries, source))
        self.base.commit()
        return self.base.execute("select source from builds where libraries = ?",
                                 (libraries,)).fetchone()[0]

    def is_done(self, package, libraries):
        return self.base.execute("select 1 from results where package = ? and libraries = ?",
                                 (package, libraries)).fetchone() is not None

    def last_done(self, package):
        row = self.base.execute("select at from results where package = ?", (package,)).fetchone()
        return row[0] if row else ""

    def rows(self):
        return [json.loads(row) for (row,) in
                self.base.execute("select row from results order by package")]


def count(outcomes):
    """How many tests passed, failed and were skipped."""
    counts = collections.Counter(outcomes.values())
    return {word: counts[word] for word in (PASS, FAIL, SKIP)}


def differing(plain, there):
    """Tests that became something else, or are in one run only. Without tests, the exit status."""
    names = sorted(set(plain.outcomes) | set(there.outcomes))
    found = [name for name in names
             if plain.outcomes.get(name, "missing") != there.outcomes.get(name, "missing")]
    if not found and bool(plain.status) != bool(there.status):
        found = [EXIT]
    return found


EXIT = "(exit status)"


def said(step, test):
    if test == EXIT:
        return f"exit status {step.status}"
    return step.outcomes.get(test, "missing")


def judge(plain_steps, steps):
    """(tests that differ in each repetition, tests whose outcome changes from run to run)."""
    differs, unsteady = {}, []
    for test in differing(plain_steps[0], steps[0]):
        plain = [said(step, test) for step in plain_steps]
        there = [said(step, test) for step in steps]
        if test == EXIT:
            plain = ["pass" if word.endswith(" 0") else "fail" for word in plain]
            there = ["pass" if word.endswith(" 0") else "fail" for word in there]
        if len(set(plain)) == 1 and len(set(there)) == 1:
            differs[test] = {"system": plain[0], "there": there[0], "runs": len(there)}
        elif not set(plain) & set(there):
            differs[test] = {"system": "/".join(sorted(set(plain))),
                             "there": "/".join(sorted(set(there))), "runs": len(there)}
        else:
            unsteady.append(test)
    return differs, unsteady


def load(path):
    if not path.exists():
        return {}
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["package"]: row for row in rows}


def publish(rows, lines_path, page_path, ways, names):
    """Writes both files, of the packages with these names. A result without tests does not replace
    one with them."""
    known = load(lines_path)
    for row in rows:
        if row["state"] == "done" or known.get(row["package"], row)["state"] != "done":
            known[row["package"]] = row
    ordered = [known[name] for name in sorted(known) if name in names]
    lines_path.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in ordered),
                          encoding="utf-8")
    page_path.write_text(page(ordered, ways), encoding="utf-8")


HEAD = """# Compatibility: other programs' own test suites

Written by `./hak test --full` from [compatibility.jsonl](compatibility.jsonl). Debian's source of
each package is built, and its own tests run on the C library's allocator and then on hakmem: with
default settings, in hardened mode, and as the `tiny` build, whose caches and heaps hold only a few
elements and which checks all its structures. Only the loopback network is available. Outcomes are
compared test by test; a suite that differs is run again, up to three times each way, until no test
differed in every run. CPython, gawk, jq, redis, SQLite and three crates are in
[FOREIGN.md](FOREIGN.md).
"""
RULES = """
* **tests**: passed / failed / skipped on the C library's allocator.
* **same**: each test had the same outcome. *N differ*: N tests differed in every repetition.
* **processes**: how many processes hakmem served while the suite ran with default settings: each
  left statistics, and none of its requests went to another allocator.
"""


def cell(result):
    if result is None:
        return ""
    if result["differs"]:
        return f"{len(result['differs'])} differ"
    return "same"


def page(rows, ways):
    """The document."""
    done = [row for row in rows if row["state"] == "done"]
    tests = sum(sum(row["tests"].values()) for row in done)
    differences = [(row, way, test, what) for row in done for way in ways
                   for test, what in row["ways"].get(way, {"differs": {}})["differs"].items()]
    parts = [HEAD, f"{len(done)} packages, {tests:,} tests; "
             f"{len(differences)} different outcomes.", RULES,
             "| package | version | tests | hakmem | hardened | tiny | processes | source | when |",
             "| --- | --- | ---: | --- | --- | --- | ---: | --- | --- |"]
    for row in done:
        counts = " / ".join(f"{row['tests'][word]:,}" for word in (PASS, FAIL, SKIP))
        cells = " | ".join(cell(row["ways"].get(way)) for way in ways)
        processes = row["ways"].get("hakmem", {}).get("processes", 0)
        parts.append(f"| {row['package']} | {row['version']} | {counts} | {cells} | "
                     f"{processes:,} | {row['commit']} | {row['when']} |")
    parts += [*explained(differences), *unsteady(done), *without(rows)]
    return "\n".join(parts) + "\n"


def explained(differences):
    """One line for tests of a package that differ in the same way and for the same reason."""
    if not differences:
        return
    yield "\n## Differences\n"
    yield "| package | way | test | system | there | reason |"
    yield "| --- | --- | --- | --- | --- | --- |"
    alike = {}
    for row, way, test, what in differences:
        what_became = (what["system"], what["there"], what.get("reason", "not explained yet"))
        alike.setdefault((row["package"], way, *what_became), []).append(test.replace("|", "\\|"))
    for (package, way, system, there, reason), (first, *others) in alike.items():
        more = f", and {len(others)} more" if others else ""
        yield f"| {package} | {way} | {first}{more} | {system} | {there} | {reason} |"


def unsteady(rows):
    found = [f"* {row['package']}: {', '.join(row['unsteady'][:8])}"
             + (f", and {len(row['unsteady']) - 8} more" if len(row["unsteady"]) > 8 else "")
             for row in rows if row["unsteady"]]
    if found:
        yield "\n## Unsteady tests\n"
        yield "Their outcome changes from run to run.\n"
        yield from found


def without(rows):
    found = [f"* {row['package']} {row['version']}: {row['note']}" for row in rows
             if row["state"] != "done"]
    if found:
        yield "\n## Packages without a result\n"
        yield from found
