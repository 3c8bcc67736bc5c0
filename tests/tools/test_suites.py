# SPDX-License-Identifier: MIT
"""What tests/suites makes of other programs' tests. If this fails, the table of compatibility names
differences that are none, or hides some."""
import fcntl
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/suites"))
import places  # noqa: E402
import readers  # noqa: E402
import results  # noqa: E402
import suites  # noqa: E402
from results import Step  # noqa: E402

LIBRARY = Path(os.environ.get("PRELOAD_LIB", ROOT / "out/release/libhakmem.so"))


@pytest.mark.parametrize("reader, text, found", [
    ("ctest", " 1/3 Test  #1: one ......   Passed    0.01 sec\n"
     " 2/3 Test #12: two ...***Failed  1 s\n"
     "3/3 Test #13: three ...***Skipped   0.00 sec\n",
     {"one": "pass", "two": "fail", "three": "skip"}),
    ("meson", " 1/3 glib:core / array       OK              0.02s   9 subtests passed\n"
     "2/3 spaced name  FAIL            1.13s   exit status 1\n3/3 c SKIP 0.1s\n",
     {"glib:core / array": "pass", "spaced name": "fail", "c": "skip"}),
    ("pytest", "PASSED t/test_a.py::one[x]\nFAILED t/test_a.py::two - assert 1 == 2\n",
     {"t/test_a.py::one[x]": "pass", "t/test_a.py::two": "fail"}),
    ("pytest", "t/a.py::one PASSED     [ 50%]\nt/a.py::two SKIPPED (no x) [100%]\n",
     {"t/a.py::one": "pass"}),
    ("unittest", "test_x (m.Case) ... ok\ntest_y (m.Case)\nSays what. ... FAIL\n",
     {"test_x (m.Case)": "pass", "test_y (m.Case)": "fail"}),
    ("cargo", "test a::b ... ok\ntest a::c ... FAILED\ntest d ... ignored\n",
     {"a::b": "pass", "a::c": "fail", "d": "skip"}),
    ("googletest", "[ RUN      ] A.b\n[       OK ] A.b (0 ms)\n[  FAILED  ] A.c (1 ms)\n"
     "[  FAILED  ] A.c\n", {"A.b": "pass", "A.c": "fail"}),
    ("autotest", "  1: first thing              ok\n 12: second   thing  FAILED (x.at:9)\n"
     "  3: third  skipped (x.at:3)\n", {"1: first thing": "pass", "12: second thing": "fail",
                                        "3: third": "skip"}),
    ("automake", "PASS: a\nXFAIL: b\nFAIL: c\n", {"a": "pass", "b": "pass", "c": "fail"}),
    ("tap", "1..4\nok 1 - a\nnot ok 2 - b\nok 3 # SKIP no c\nnot ok 4 d # TODO later\n",
     {"1.1 a": "pass", "1.2 b": "fail", "1.3": "skip", "1.4 d": "pass"}),
    ("prove", "t/op/a.t .. ok\nt/op/b ....... FAILED at test 3\nt/c.t ... skipped: no d\n",
     {"t/op/a.t": "pass", "t/op/b": "fail", "t/c.t": "skip"}),
    ("lines", "inflate 0x1f after 12: OK\ninflate 0x2f after 13: OK\nzap failed\n",
     {"inflate N after N: OK": "pass", "inflate N after N: OK (2)": "pass", "zap failed": "fail"}),
])
def test_a_format_is_read_by_its_reader(tmp_path, reader, text, found):
    assert readers.read("noise\n" + text + "more noise\n", tmp_path) == (reader, found)


def test_what_prove_says_is_not_hidden_by_what_its_tests_print(tmp_path):
    text = ("t/a.t .. ok\nok 1 - of a process of the test\n"
            "t/b.t .. \n# Looks like you failed.\nDubious, test returned 1 (wstat 256, 0x100)\n"
            "t/b.t  (Wstat: 256 (exited 1) Tests: 61 Failed: 1)\n"
            "t/a.t  (Wstat: 0 Tests: 9 Failed: 0)\n  TODO passed:   4\nResult: FAIL\n")
    assert readers.read(text, tmp_path) == ("prove", {"t/a.t": "pass", "t/b.t": "fail"})


def test_colours_hide_no_word(tmp_path):
    text = "#01 a: \x1b[0;32mPASSED\x1b[0;0m\n#02 b: \x1b[0;31mFAILED\x1b[0;0m\n"
    found = {"#N a: PASSED": "pass", "#N b: FAILED": "fail"}
    assert readers.read(text, tmp_path) == ("lines", found)


def test_result_files_come_before_what_is_printed(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t/one.trs").write_text(":test-result: PASS\n:global-test-result: PASS\n")
    (tmp_path / "t/two.trs").write_text(":test-result: PASS 1 - a\n:test-result: FAIL 2 - b\n")
    assert readers.read("FAIL: other\n", tmp_path) == (
        "trs", {"t/one": "pass", "t/two 1 - a": "pass", "t/two 2 - b": "fail"})
    (tmp_path / "lib.sum").write_text("PASS: x\nPASS: x\nUNSUPPORTED: y\nXPASS: z\n")
    assert readers.read("", tmp_path, "dejagnu")[1] == {
        "lib: x": "pass", "lib: x (2)": "pass", "lib: y": "skip", "lib: z": "fail"}
    assert {path.name for path in readers.leftovers(tmp_path)} == {"one.trs", "two.trs", "lib.sum"}


def step(status=0, **outcomes):
    return Step(status, 1.0, 5, "tap", outcomes, "")


def test_what_differs_in_every_run_is_a_difference():
    plain, there = [step(a="pass", b="fail")] * 4, [step(a="fail", b="fail")] * 4
    assert results.judge(plain, there) == (
        {"a": {"system": "pass", "there": "fail", "runs": 4}}, [])


def test_a_test_that_is_missing_is_a_difference():
    differs, _ = results.judge([step(a="pass", b="pass")] * 4, [step(a="pass")] * 4)
    assert differs["b"]["there"] == "missing"


def test_an_exit_status_is_a_difference_where_no_test_is():
    differs, _ = results.judge([step(0, a="pass")] * 4, [step(2, a="pass")] * 4)
    assert list(differs) == [results.EXIT]
    assert results.judge([step(1, a="fail")], [step(2, a="fail")]) == ({}, [])


def test_what_changes_from_run_to_run_is_unsteady():
    there = [step(a="fail"), step(a="pass"), step(a="pass"), step(a="pass")]
    assert results.judge([step(a="pass")] * 4, there) == ({}, ["a"])


def row(name, **more):
    return {"package": name, "version": "1", "state": "done", "commit": "c", "when": "2026-01-01",
            "tests": {"pass": 2, "fail": 1, "skip": 0}, "unsteady": [],
            "ways": {"hakmem": {"differs": {}, "processes": 7}}, **more}


def test_rows_that_were_not_run_here_stay_while_they_are_on_the_list(tmp_path):
    lines, page = tmp_path / "a.jsonl", tmp_path / "a.md"
    names = ("old", "both")
    results.publish([row("old"), row("both"), row("off")], lines, page, ("hakmem",), names)
    assert "off" not in lines.read_text()
    what = {"system": "pass", "there": "fail", "runs": 4, "reason": "it counts pages"}
    differs = {"a": what, "b|c": {**what, "system": "missing"}, "d": what}
    new = row("both", version="2", ways={"hakmem": {"differs": differs, "processes": 7}})
    gone = {"package": "old", "version": "2", "state": "none", "note": "cannot be built"}
    results.publish([new, gone], lines, page, ("hakmem",), names)
    kept = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [(each["package"], each["version"]) for each in kept] == [("both", "2"), ("old", "1")]
    assert "| both | 2 | 2 / 1 / 0 | 3 differ |" in page.read_text()
    assert "| both | hakmem | a, and 1 more | pass | fail | it counts pages |" in page.read_text()
    assert "| both | hakmem | b\\|c | missing | fail | it counts pages |" in page.read_text()
    assert "2 packages, 6 tests; 3 different outcomes." in page.read_text()


def test_the_list_is_sound():
    known = {"name", "test", "folder", "prepare", "build", "needs", "reader", "limit_s", "build_s",
             "explained"}
    rows = suites.packages()
    names = [each["name"] for each in rows]
    assert len(set(names)) == len(names)
    for each in rows:
        assert not set(each) - known, each
        assert all(key.split(": ")[0] in (*suites.WAYS, "all") for key in each.get("explained", {}))


class Folder(places.Place):
    """A place whose packages are folders of the test's."""

    def __init__(self, store, source):
        super().__init__(store)
        self.origin = source
        (store / "home").mkdir(parents=True)

    def source(self, package, log):
        return "1"

    def fetch(self, package, version, log, more=""):
        shutil.copytree(self.origin, self.tree(package))
        (self.tree(package) / "debian").mkdir()
        (self.tree(package) / "debian/changelog").write_text(f"{package} ({version}) x;\n")
        return True


MAKEFILE = """
check:
\t@echo PASS: steady
\t@case "$$LD_PRELOAD" in '') echo PASS: plain ;; *) echo FAIL: plain ;; esac
\t@echo >>count; [ $$(($$(wc -l <count) % 2)) = 1 ] && echo PASS: odd || echo FAIL: odd
\t@! ip -o link | grep -v ': lo:' && echo PASS: alone || echo FAIL: alone
"""


@pytest.fixture(name="package")
def fixture_package(tmp_path, monkeypatch):
    """A package one test of which fails under any preloaded library, and one every second time."""
    if not LIBRARY.exists():
        pytest.skip("no library: ./hak build")
    monkeypatch.setattr(suites, "STORE", tmp_path / "store")
    source = tmp_path / "source"
    source.mkdir()
    (source / "Makefile").write_text(MAKEFILE)
    place = Folder(tmp_path / "place", source)
    (tmp_path / "store").mkdir()
    state = results.State(tmp_path / "store/state.sqlite")
    return suites.Package({"name": "made", "build": "true", "limit_s": 20}, place, state,
                          {"release": LIBRARY})


class Quiet:
    """Says nothing."""

    def show(self, what):
        pass

    say = show


def far():
    return time.monotonic() + 600


def test_a_suite_is_compared_and_repeated(package):
    found = suites.work(package, ("hakmem", "hardened"), far(), Quiet())
    assert found["version"] == "1"
    for way in ("hakmem", "hardened"):
        assert found["ways"][way]["differs"] == {
            "plain": {"system": "pass", "there": "fail", "runs": 4}}
        assert found["ways"][way]["processes"] > 2
        assert "proof" not in found["ways"][way]
    assert found["unsteady"] == ["odd"]
    assert found["tests"]["pass"] >= 3
    assert len(list(suites.unexplained(found))) == 2
    package.row["explained"] = {"all: pl*n": "it forbids preloading"}
    assert not list(suites.unexplained(package.result(("hakmem", "hardened"))))


def test_a_suite_is_repeated_only_while_a_test_differed_in_every_run(package):
    package.begin()
    for way, outcome in (("system", "pass"), ("hakmem", "fail"), ("hardened", "pass")):
        package.add(way, 1, step(a=outcome))
    ways = ("hakmem", "hardened")
    assert package.next_step(ways) == ("hakmem", 2)
    package.add("hakmem", 2, step(a="fail"))
    assert package.next_step(ways) == ("system", 2)
    package.add("system", 2, step(a="fail"))
    assert package.next_step(ways) is None
    assert package.result(ways)["unsteady"] == ["a"]


def test_tests_reach_no_network(package):
    if not package.place.is_alone:
        pytest.skip("no right to make namespaces")
    suites.work(package, ("hakmem",), far(), Quiet())
    assert package.steps("system")[0].outcomes["alone"] == "pass"


def test_a_run_that_is_cut_goes_on(package):
    package.begin()
    assert suites.work(package, ("hakmem",), 0, Quiet()) is None
    assert package.state.step("made", "build") is not None
    package.add("system", 1, package.run("system", 1))
    again = suites.Package(package.row, package.place, package.state, package.libraries)
    again.begin()
    assert again.next_step(("hakmem",)) == ("hakmem", 1)


def test_another_library_is_another_run(package, tmp_path):
    package.finish(suites.work(package, ("hakmem",), far(), Quiet()))
    assert package.state.is_done("made", package.identity)
    other = tmp_path / "other.so"
    other.write_bytes(b"other")
    again = suites.Package(package.row, package.place, package.state, {"release": other})
    assert not package.state.is_done("made", again.identity)


def test_a_build_that_is_kept_serves_another_library(package, tmp_path):
    package.keep = True
    package.finish(suites.work(package, ("hakmem",), far(), Quiet()))
    other = tmp_path / "libhakmem.so"
    shutil.copy(LIBRARY, other)
    with open(other, "ab") as file:
        file.write(b"more")
    again = suites.Package(package.row, package.place, package.state, {"release": other})
    again.begin()
    assert again.state.step("made", "build") is not None
    assert again.next_step(("hakmem",)) == ("system", 1)
    again.finish(suites.work(again, ("hakmem",), far(), Quiet()))
    assert not again.tree.exists() and not again.state.has_steps("made")


def test_programs_keep_the_library_that_they_have_mapped(tmp_path):
    source, target = tmp_path / "libhakmem.so", tmp_path / "libhakmem-release.so"
    source.write_bytes(b"first")
    suites.replace(source, target)
    with open(target, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        source.write_bytes(b"other")
        suites.replace(source, target)
        assert mapped[:] == b"first"
    assert target.read_bytes() == b"other"
    assert sorted(path.name for path in tmp_path.iterdir()) == [target.name, source.name]


def test_what_takes_too_long_on_the_systems_allocator_has_no_result(package):
    package.row.update({"limit_s": 1, "test": "echo PASS: a; sleep 60"})
    found = suites.work(package, ("hakmem",), far(), Quiet())
    assert (found["state"], found["note"]) == ("none", "its tests take longer than 1 s")
    assert not package.steps("hakmem")


def test_a_suite_in_which_nothing_runs_has_no_result(package):
    package.row["test"] = ("echo Making check in src; echo \"make[1]: Nothing to be done for "
                           "\'check\'.\"; true")
    found = suites.work(package, ("hakmem",), far(), Quiet())
    assert (found["state"], found["note"]) == (
        "none", "its check has nothing to run")
    assert readers.only_driver("Test project /build/x\nNo tests were found!!!\n")
    assert readers.only_driver("No tests defined.\n")
    assert readers.only_driver("make  example\nmake[1]: 'example' is up to date.\n")
    assert not readers.only_driver("Making check in src\n./check\n")


@pytest.mark.parametrize("makefile, command", [
    ("check:\n\ttrue\n", "make -k check"), ("test :: one\n", "make -k test"),
    ("test check: one\n", "make -k check"), (".PHONY: test\n", None),
    ("check = no\ntest: one\n", "make -k test"), ("check := no\nall: one\n", None)])
def test_a_target_of_make_is_found(tmp_path, makefile, command):
    (tmp_path / "Makefile").write_text(makefile)
    found = suites.find_suite(tmp_path, 2)
    assert (found and found[1]) == command


def test_scripts_that_a_build_uses_are_no_build(tmp_path):
    for folder in (tmp_path / "build-aux", tmp_path):
        folder.mkdir(exist_ok=True)
        (folder / "Makefile").write_text("check:\n\ttrue\n")
    assert suites.find_suite(tmp_path, 2) == (tmp_path, "make -k check")


def test_a_perl_module_that_builds_without_make_has_a_suite(tmp_path):
    (tmp_path / "Build.PL").touch()
    assert suites.find_suite(tmp_path, 2) is None
    (tmp_path / "Build").touch()
    assert suites.find_suite(tmp_path, 2) == (tmp_path, "./Build test")


def test_what_several_builds_need_is_had_at_once(package, monkeypatch):
    asked = []
    monkeypatch.setattr(package.place, "gather", lambda names, log: asked.append(names))
    monkeypatch.setattr(package.place, "source", lambda name, log: None if name == "gone" else "1")
    others = [suites.Package({**package.row, "name": name}, package.place, package.state,
                             package.libraries) for name in ("gone", "other")]
    assert suites.work_all([package, *others], ("hakmem",), far())
    assert asked == [["made", "other"]]


def test_a_package_without_a_source_does_not_end_the_run(package, tmp_path, monkeypatch):
    monkeypatch.setattr(package.place, "source", lambda name, log: None if name == "gone" else "1")
    gone = suites.Package({**package.row, "name": "gone"}, package.place, package.state,
                          package.libraries)
    assert suites.work_all([gone, package], ("hakmem",), far())
    found = {each["package"]: each for each in package.state.rows()}
    assert found["gone"]["note"] == "the mirror lacks its source, or a part of it"
    assert found["made"]["state"] == "done"
    log = (tmp_path / "store/log").read_text()
    assert "gone: the mirror lacks its source, or a part of it\n" in log
    assert "suites: 2 packages done, 0 remain\n" in log


def test_a_result_names_the_source_that_its_libraries_were_first_met_with(package):
    assert package.state.source_of("libraries", "first") == "first"
    assert package.state.source_of("libraries", "second") == "first"
    assert package.state.source_of("others", "second") == "second"


def test_a_library_that_does_not_serve_is_found_out(package, tmp_path):
    other = tmp_path / "libhakmem.so"
    source = tmp_path / "empty.c"
    source.write_text("int nothing;\n")
    assert os.spawnlp(os.P_WAIT, "cc", "cc", "-shared", "-fPIC", "-o", str(other),
                      str(source)) == 0
    package.libraries = {"release": other}
    found = suites.work(package, ("hakmem",), far(), Quiet())
    assert found["ways"]["hakmem"]["proof"] == ["0 of 0 processes served"]
    assert any("0 of 0" in line for line in suites.unexplained(found))


def test_a_run_ends_with_its_limit_and_all_that_it_started(package):
    folder = package.place.store
    begin = time.monotonic()
    script = "exec 9>held; flock 9; sleep 1000 & sleep 1000"
    assert package.place.run(script, folder, folder / "log", 1) == 124
    with open(folder / "held", "a", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # once none of them is there any more
    assert time.monotonic() - begin < 900


def test_what_ends_by_itself_soon_after_a_run_may_end(package):
    folder = package.place.store
    assert package.place.run("(sleep 0.5; echo >ended) & true", folder, folder / "log", 60) == 0
    assert (folder / "ended").exists()


WAITS = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
import places
process = subprocess.Popen(["sh", "-c", "echo runs; read line"], start_new_session=True)
sys.exit(places.wait(process, 5))
"""


def test_a_limit_does_not_count_time_in_which_the_run_was_stopped():
    words = [sys.executable, "-c", WAITS, str(ROOT / "tests/suites")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"runs\n"
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(7)
        os.kill(process.pid, signal.SIGCONT)
        # Long enough for a limit that has passed to be noticed.
        time.sleep(0.5)
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.wait(60) == 0


def test_versions_are_ordered_as_debian_orders_them():
    said = "Package: a\nVersion: 1.9-1\n\nVersion: 1.10-1\nVersion: 1.10~rc1-1\nVersion: 1:0-1\n"
    assert places.versions_in(said) == ["1:0-1", "1.10-1", "1.10~rc1-1", "1.9-1"]
    assert places.versions_in("") == []
