# SPDX-License-Identifier: MIT
"""Reads what became of each test of a suite from what the suite prints or leaves in its folder.

A reader returns {test: outcome}, with outcome one of pass, fail, skip. `read` takes the first one
that finds a test: result files of automake and DejaGnu, then the formats of CTest, Meson, pytest,
unittest, cargo, GoogleTest, Autotest, automake's lines, prove, TAP. Programs under prove may print
lines of TAP beside its own.
"""
import re

PASS, FAIL, SKIP = "pass", "fail", "skip"
WORDS = {
    "pass": PASS, "passed": PASS, "ok": PASS, "xfail": PASS, "xfailed": PASS,
    "expected failure": PASS, "expectedfail": PASS, "fail": FAIL, "failed": FAIL, "xpass": FAIL,
    "unexpectedpass": FAIL, "error": FAIL, "not ok": FAIL, "timeout": FAIL, "not run": FAIL,
    "unexpected success": FAIL, "skip": SKIP, "skipped": SKIP, "ignored": SKIP,
    "unsupported": SKIP, "untested": SKIP, "unresolved": FAIL, "kfail": PASS,
}


def outcome(word):
    return WORDS.get(word.strip().lower(), FAIL)


def add(found, name, word):
    """Adds a test. Names may repeat: the second one gets a number."""
    name = re.sub(r"\s+", " ", name).strip()[:200]
    unique, count = name, 1
    while unique in found:
        count += 1
        unique = f"{name} ({count})"
    found[unique] = outcome(word)


def by_lines(pattern, text, flags=re.M):
    """Tests of a pattern whose groups are called name and word."""
    found = {}
    for match in re.finditer(pattern, text, flags):
        add(found, match["name"], match["word"])
    return found


def ctest(text):
    """`1/9 Test #1: name ....   Passed    0.01 sec`"""
    pattern = (r"^\s*\d+/\d+ Test +#\d+: (?P<name>\S+) \.*(?:\s*\*\*\*)?\s*"
               r"(?P<word>Passed|Failed|Skipped|Timeout|Not Run|Exception|Subprocess|Required)")
    return by_lines(pattern, text)


def meson(text):
    """`1/9 suite / name    OK    0.01s`"""
    pattern = (r"^\s*\d+/\d+ (?P<name>\S.*?)\s+(?P<word>OK|FAIL|SKIP|TIMEOUT|ERROR|EXPECTEDFAIL|"
               r"UNEXPECTEDPASS)\s+\d+\.\d+s")
    return by_lines(pattern, text)


def pytest(text):
    """`PASSED path::name`, as `-rA` prints it, or `path::name PASSED`, as `-v` does."""
    word = "PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS"
    found = by_lines(rf"^(?P<name>\S+::.*?) (?P<word>{word})\s+\[", text)
    return found or by_lines(rf"^(?P<word>{word}) (?P<name>\S+::\S.*?)(?: - .*)?$", text)


def unittest(text):
    """`test_x (module.Class) ... ok`"""
    pattern = (r"^(?P<name>\w+ \([\w.]+\))(?:\n.*?)?\s\.\.\. .*?"
               r"(?P<word>ok|FAIL|ERROR|skipped|expected failure|unexpected success)\b")
    return by_lines(pattern, text)


def cargo(text):
    """`test module::name ... ok`"""
    return by_lines(r"^test (?P<name>\S.*?) \.\.\. (?P<word>ok|FAILED|ignored)", text)


def googletest(text):
    """`[       OK ] Suite.name (0 ms)`"""
    pattern = (r"^\[ +(?P<word>OK|FAILED|SKIPPED) +\] (?P<name>\S+?)(?:, where .*)? "
               r"\(\d+ ms\)")
    return by_lines(pattern, text)


def autotest(text):
    """`  1: name     ok`"""
    pattern = (r"^ *(?P<name>\d+: \S.*?)\s{2,}(?P<word>ok|FAILED|skipped|expected failure|"
               r"unexpected success)(?: .*)?$")
    return by_lines(pattern, text)


def automake(text):
    """`PASS: name`"""
    pattern = r"^(?P<word>PASS|FAIL|SKIP|XFAIL|XPASS|ERROR): (?P<name>\S.*)$"
    return by_lines(pattern, text)


def tap(text):
    """`ok 1 - name`, `not ok 2 - name # TODO reason`. Numbers begin again with each plan."""
    found = {}
    plan = 0
    for line in text.splitlines():
        if re.match(r"^1\.\.\d+", line):
            plan += 1
        match = re.match(r"^(ok|not ok) +(\d+)(?: *-? *([^#]*))?(# *(SKIP|TODO).*)?", line, re.I)
        if match:
            word = match[1]
            if match[5]:
                word = "skip" if match[5].upper() == "SKIP" else "ok"
            add(found, f"{plan}.{match[2]} {match[3] or ''}", word)
    return found


def prove(text):
    """`t/name.t .. ok`, as prove and Perl's own t/TEST print it. What a failing test prints may
    stand before its word: it is in prove's summary."""
    pattern = (r"^(?P<name>[\w./+-]+) ?\.{2,} *(?P<word>ok|skipped|FAILED|Failed|Dubious|"
               r"Wstat)\b")
    found = by_lines(pattern, text)
    for match in re.finditer(r"^(\S+) +\(Wstat: (\d+) .*Failed: (\d+)\)$", text, re.M):
        if match[2] != "0" or match[3] != "0":
            found[match[1]] = FAIL
    return found


def lines(text):
    """The last resort: lines that say that something is well, or is not. Numbers do not count."""
    found = {}
    for line in text.splitlines():
        name = re.sub(r"0x[0-9a-f]+|\d+", "N", line).strip()
        if re.search(r"\b(?:FAIL|FAILED|failed|FAILURE|failure|not ok|NOT OK)\b", line):
            add(found, name, "fail")
        elif re.search(r"\b(?:OK|Ok|ok|PASS|PASSED|passed|Passed|pass|SUCCESS|success|successful|"
                       r"successfully|succeeded)\b", line):
            add(found, name, "pass")
    return found


READERS = {reader.__name__: reader for reader in (
    ctest, meson, pytest, unittest, cargo, googletest, autotest, automake, prove, tap, lines)}


def trs(folder):
    """automake's result files: each says `:test-result: PASS name` for each of its tests."""
    found = {}
    for path in sorted(folder.rglob("*.trs")):
        stem = str(path.relative_to(folder))[:-len(".trs")]
        results = re.findall(r"^:test-result: (\w+)(.*)$", path.read_text(errors="replace"), re.M)
        for number, (word, name) in enumerate(results, 1):
            more = f" {name.strip() or number}" if len(results) > 1 else ""
            add(found, stem + more, word)
    return found


def dejagnu(folder):
    """DejaGnu's summaries: `PASS: name`."""
    pattern = (r"^(?P<word>PASS|FAIL|XPASS|XFAIL|UNSUPPORTED|UNTESTED|UNRESOLVED|KFAIL): "
               r"(?P<name>.*)$")
    found = {}
    for path in sorted(folder.rglob("*.sum")):
        for name, result in by_lines(pattern, path.read_text(errors="replace")).items():
            found[f"{path.stem}: {name}"] = result
    return found


FOLDER_READERS = {"trs": trs, "dejagnu": dejagnu}


def only_driver(text):
    """Whether there was nothing to run: make alone said something, or CTest or Meson that they have
    no tests."""
    if re.search(r"^No tests (?:were found!!!|defined\.)$", text, re.M):
        return True
    own = (r"(?:make(?:\[\d+\])?: (?:Entering|Leaving) directory .*|Making check in .*|"
           r"make(?:\[\d+\])?: (?:Nothing to be done for|'.*' is up to date).*|make +\S+|\s*)")
    return all(re.fullmatch(own, line) for line in text.splitlines())


def leftovers(folder):
    """Result files, which a run must not take for its own."""
    return [path for kind in ("*.trs", "*.sum") for path in folder.rglob(kind)]


def read(text, folder, reader=None):
    """(the reader's name, {test: outcome}); ("none", {}) where no reader finds a test. Colours do
    not count."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    for name, function in FOLDER_READERS.items():
        if reader in (None, name):
            found = function(folder)
            if found:
                return name, found
    for name, function in READERS.items():
        if reader in (None, name):
            found = function(text)
            if found:
                return name, found
    return "none", {}
