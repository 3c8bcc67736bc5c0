# SPDX-License-Identifier: MIT
"""Sessions: what they keep, how they go on after a cut, what comparisons and reports say."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import ROOT

from hakbench import launcher, page, run, tables, verify
from hakbench.peers import Peer, resolve
from hakbench.results import Measured, load
from session import CASE, empty_library, made_up


class Quiet:
    """A console that keeps what is printed."""

    def __init__(self):
        self.printed = []

    def print(self, *words, **_):
        self.printed += words


def records(session):
    return [json.loads(line) for line in session.path.read_text().splitlines()]


def arms(session, kind="run"):
    return [record["arm"] for record in records(session) if record["record"] == kind]


def ignore(seconds):
    pass


@pytest.fixture(scope="module")
def measured_session(root):
    """A short real session of the system allocator, and one that serves nothing."""
    peers = [resolve(root, "system"), Peer("empty", "empty", "0", None,
                                           {"LD_PRELOAD": str(empty_library(root / "out"))}),
             Peer("wrong", "wrong", "0", empty_library(root / "out", "libwrong.so"))]
    session = run.Session.create(root, quick=True, repeats=2)
    session.begin([CASE], peers)
    session.measure(CASE, run.arms_for(peers), ignore)
    return session


def test_a_session_keeps_each_run_and_each_error(measured_session):
    assert arms(measured_session) == ["system", "empty", "system (again)"] * 2
    assert arms(measured_session, "warmup") == ["system", "empty", "system (again)"]
    errors = [record for record in records(measured_session) if record["record"] == "error"]
    assert [error["allocator"] for error in errors] == ["wrong"]
    assert measured_session.failures == 1


def test_results_name_the_noise_and_leave_out_what_was_not_proved(measured_session):
    result, = Measured(measured_session.path).results()
    assert {row.allocator for row in result.rows} == {"system", "empty"}
    assert result.floor is not None
    assert all(row.cold for row in result.rows)


def test_a_report_names_no_path_of_the_machine(measured_session, root):
    measured = Measured(measured_session.path)
    page.publish(measured, measured_session.path, measured_session.folder, "report")
    for suffix in ("html", "md", "jsonl"):
        assert str(root) not in (measured_session.folder / f"report.{suffix}").read_text()
    assert "**not measured**" in (measured_session.folder / "report.md").read_text()


def test_a_run_without_the_library_mapped_is_an_error(root):
    words = CASE.words()[:1] + ["5000000", "256", "42"]
    done = launcher.run(root, words, {}, "/libelsewhere.so")
    assert done.served is False
    peer = Peer("elsewhere", "", "0", root / "libelsewhere.so")
    with pytest.raises(verify.WrongAllocator, match="libelsewhere.so is not mapped"):
        verify.check_run(peer, done)


def test_a_run_with_the_library_mapped_is_seen(root):
    noop = resolve(root, "noop")
    done = launcher.run(root, CASE.words()[:1] + ["5000000", "256", "42"], noop.variables(),
                        verify.mapped_end(noop))
    assert done.served is True
    assert done.rss and done.cost.average_rss_kib <= done.cost.peak_rss_kib


def test_a_cut_session_goes_on_without_repeating_whole_rounds(root):
    peers = [resolve(root, "system")]
    session = run.Session.create(root, quick=True, repeats=3)
    session.begin([CASE], peers)
    session.measure(CASE, run.arms_for(peers), ignore)
    lines = session.path.read_text().splitlines(keepends=True)
    # Cut within the last round, in the middle of a line.
    session.path.write_text("".join(lines[:-2]) + lines[-2][:40])
    again, header = run.Session.resume(root, session.folder)
    again.measure(CASE, run.arms_for(peers), ignore)
    assert header["repeats"] == 3
    assert arms(again) == ["system", "system (again)"] * 3
    assert len(Measured(again.path).arms(CASE.name)["system"]) == 3


def test_another_build_does_not_go_on(root):
    with pytest.raises(run.SessionError, match="another build"):
        run.check_unchanged({"allocators": [{"name": "noop", "digest": "0"}]},
                            [resolve(root, "noop")])


def script_case(folder, text, place=CASE.place):
    """A case that is a script of these lines."""
    script = folder / "real.sh"
    script.write_text(f"#!/bin/sh\n# packages:\nset -e\n{text}")
    script.chmod(0o755)
    return run.plan.Case("real", "real programs", None, "real", "", None, "", "real", str(script),
                         place=place)


def preloaded(root):
    return (f"LD_PRELOAD=$BENCH_PRELOAD {root}/out/release/bench_random_mixed_system "
            "2000000 256 42\n")


def test_a_program_that_is_absent_is_skipped_by_its_reason(root, tmp_path):
    case = script_case(tmp_path, "echo 'no such server' >&2\nexit 77\n")
    session = run.Session.create(root, quick=True, repeats=1)
    session.measure(case, run.arms_for([resolve(root, "system")]), ignore)
    assert [record["reason"] for record in records(session)] == ["no such server"]
    assert session.failures == 0


def test_an_allocator_that_hangs_fails_in_its_row_and_is_not_tried_again(root, tmp_path):
    starts = tmp_path / "starts"
    # In its warm-up, not in its proof, which sets LD_DEBUG.
    case = script_case(tmp_path, f'echo "$BENCH_PRELOAD" >> {starts}\n'
                       'case "$LD_DEBUG:$BENCH_PRELOAD" in :*noop*) sleep 60 ;; esac\n'
                       + preloaded(root), launcher.Place(timeout_s=5))
    assert CASE.place.timeout_s == run.plan.ROW_TIMEOUT_S < launcher.TIMEOUT_S
    session = run.Session.create(root, quick=True, repeats=2)
    peers = [resolve(root, name) for name in ("system", "noop")]
    session.measure(case, run.arms_for(peers), ignore)
    assert arms(session) == ["system", "system (again)"] * 2
    assert [record["message"] for record in records(session) if record["record"] == "error"] == [
        "still running after 5 s"]
    assert starts.read_text().count("noop") == 2


def test_a_script_gets_the_library_and_its_program_is_proved(root, tmp_path):
    case = script_case(tmp_path, preloaded(root))
    noop = resolve(root, "noop")
    assert "libnoop.so" in verify.check(root, case, noop)
    assert "libc" in verify.check(root, case, resolve(root, "system"))
    case = script_case(tmp_path, preloaded(root).replace("LD_PRELOAD=$BENCH_PRELOAD ", ""))
    with pytest.raises(verify.WrongAllocator, match="no malloc is bound to libnoop.so"):
        verify.check(root, case, noop)


def start_bench(root, *words):
    """hakbench as a process, whose root is the test's."""
    code = ("import sys; from pathlib import Path; import hakbench.__main__ as tool; "
            f"tool.ROOT = Path({str(root)!r}); sys.exit(tool.main())")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", code, *words], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def wait_for_runs(root, known, count):
    """The session that was begun after the known ones, once it has some runs."""
    for _ in range(2400):
        begun = [folder for folder in run.sessions(root) if folder not in known]
        if begun and (begun[0] / "runs.jsonl").read_text().count('"run"') >= count:
            return begun[0]
        time.sleep(0.05)
    raise AssertionError("no run within two minutes")


@pytest.fixture
def small_table(monkeypatch, root, tmp_path):
    """A root whose only programs are those that the fixture built."""
    folder = tmp_path / "root"
    (folder / "bench/workloads").mkdir(parents=True)
    (folder / "bench/launch").symlink_to((root / "bench/launch").resolve())
    (folder / "out").mkdir()
    (folder / "out/release").symlink_to(root / "out/release")
    for name in ("bench_random_mixed",):
        (folder / f"bench/workloads/{name}.c").symlink_to(root / f"bench/workloads/{name}.c")
    return folder


def test_an_interrupt_keeps_what_is_done_and_resume_finishes(small_table):
    words = ("--quick", "--only", "random_mixed_256", "--allocators", "system", "--repeats")
    for _ in range(20):
        known = run.sessions(small_table)
        process = start_bench(small_table, *words, "12")
        folder = wait_for_runs(small_table, known, 6)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=60)[0]
        if process.returncode != 0:  # else it had ended, while a busy machine kept us from it
            break
    assert process.returncode == 130, output
    assert "--resume goes on" in output
    rounds = len(load(folder / "runs.jsonl").arms("random_mixed_256")["system"])
    assert 3 <= rounds < 12
    process = start_bench(small_table, "--resume")
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0, output
    measured = load(folder / "runs.jsonl")
    assert sorted(measured.arms("random_mixed_256")["system"]) == list(range(12))
    assert (folder / "report.html").exists()


def test_a_session_without_any_number_is_removed(small_table, tmp_path):
    library = empty_library(tmp_path)
    process = start_bench(small_table, "--quick", "--only", "random_mixed_256", "--allocators",
                          str(library))
    said = process.communicate(timeout=100)[0]
    assert process.returncode == 1, said
    assert not run.sessions(small_table)


@pytest.mark.parametrize("slow, status", [(1.0, 0), (1.5, 1), (0.5, 0)])
def test_comparing_sessions_ends_with_1_only_if_the_first_is_slower(small_table, slow, status):
    first = made_up(small_table / "a.jsonl", {"hakmem": 0.1 * slow})
    second = made_up(small_table / "b.jsonl", {"hakmem": 0.1})
    process = start_bench(small_table, "compare", str(first), str(second))
    output = process.communicate(timeout=60)[0]
    assert process.returncode == status, output
    assert "geometric mean of 2" in output


def test_sessions_without_a_common_case_cannot_be_compared(tmp_path):
    first = load(made_up(tmp_path / "a.jsonl", {"hakmem": 0.1}, cases=("work_1",)))
    second = load(made_up(tmp_path / "b.jsonl", {"hakmem": 0.1}, cases=("work_2",)))
    assert not tables.compare_sessions(Quiet(), first, second, "hakmem")


def test_comparing_allocators_looks_at_each_case(tmp_path):
    measured = load(made_up(tmp_path / "a.jsonl", {"one": 0.1, "two": 0.2}))
    assert tables.compare(Quiet(), measured, "one", "two")
    assert not tables.compare(Quiet(), measured, "two", "one")


def test_geometric_means_are_over_the_cases_that_all_have(tmp_path):
    measured = load(made_up(tmp_path / "a.jsonl", {"hakmem": 0.1, "two": 0.2}))
    overall, cases = measured.overall()
    assert [one.allocator for one in overall] == ["hakmem", "two"]
    assert overall[1].time == pytest.approx(2, rel=0.03)
    assert overall[1].memory == pytest.approx(2, rel=0.03)
    assert len(cases) == 2


def test_one_error_takes_the_allocator_out_of_the_case_and_the_means(tmp_path):
    path = made_up(tmp_path / "a.jsonl", {"hakmem": 0.1, "two": 0.2})
    with path.open("a") as file:
        file.write(json.dumps({"record": "error", "case": "work_1", "allocator": "two",
                               "message": "died of SIGSEGV"}) + "\n")
    measured = load(path)
    assert [one.allocator for one in measured.overall()[0]] == ["hakmem"]
    assert measured.results()[0].row("two") is None
    assert measured.results()[1].row("two")
    assert "died of SIGSEGV" in page.html(measured)


def test_a_page_shows_every_part_and_needs_one_file_beside_it(tmp_path):
    notes = {f"malloc_p{p}": [p * 1.5, "ns"] for p in (50, 90, 99)}
    times = {"hakmem": 0.3, "tcmalloc": 0.2, "<odd>": 0.9}
    path = made_up(tmp_path / "a.jsonl", times, notes=notes)
    text = page.html(load(path))
    for heading in ("Overall", "Where hakmem is behind", "Threads", "Latency",
                    "Memory over time", "How it was measured", "Allocators that served"):
        assert f"<h2>{heading}</h2>" in text
    assert re.search(r"tcmalloc 1\.5\dx faster; peak 8\.0 MiB, hakmem 12\.0 MiB", text)
    assert re.search(r"tcmalloc 1\.50x leaner; peak 8\.0 MiB, hakmem 12\.0 MiB; and 1\.5\dx faster",
                     text)
    assert "mimalloc asks for huge pages by default" in text
    assert "<odd>" not in text and "&lt;odd&gt;" in text
    links = re.findall(r'(?:src|href)="([^#"][^"]*)"|url\(|@import',
                       re.sub(r"<script>.*?</script>", "", text, flags=re.S))
    assert links == [page.DRAWS]


def test_pages_are_small_and_share_what_draws(tmp_path):
    measured = load(made_up(tmp_path / "a.jsonl", {"hakmem": 0.3, "tcmalloc": 0.2}))
    for name in ("one", "two"):
        written = page.publish(measured, tmp_path / "a.jsonl", tmp_path / name, "report", tmp_path)
        assert f'<script src="../{page.DRAWS}">' in written.read_text()
        assert written.stat().st_size < 100_000
    assert [path.parent for path in tmp_path.rglob(page.DRAWS)] == [tmp_path]
    assert "Plotly" in (tmp_path / page.DRAWS).read_text(encoding="utf-8")
    for name in ("core", "suite"):
        assert (ROOT / f"docs/benchmarks/{name}.html").stat().st_size < 1 << 20
    assert (ROOT / "docs/benchmarks" / page.DRAWS).exists()


@pytest.mark.parametrize("name", ["core", "suite"])
def test_the_picture_brings_the_background_of_its_ink(name):
    text = (ROOT / f"docs/benchmarks/{name}.svg").read_text()
    light, dark = re.findall(r"svg\{(--ink[^}]*)\}", text)
    for scheme in (light, dark):
        assert re.search(r"--ink:#\w+;.*background:#\w+", scheme)
    assert re.search(r"background:#fff;", light) and not re.search(r"background:#fff", dark)


def test_the_table_goes_between_the_marks_of_a_readme(tmp_path):
    measured = load(made_up(tmp_path / "a.jsonl", {"hakmem": 0.1, "two": 0.2}))
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{page.MARKS[0]}\nold\n{page.MARKS[1]}\nafter\n")
    page.write_readme(readme, measured, "x.svg")
    text = readme.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert "| **hakmem** |" in text
    readme.write_text("nothing")
    with pytest.raises(ValueError, match="has no line"):
        page.write_readme(readme, measured, "x.svg")


def test_the_no_op_allocator_is_taken_off(tmp_path):
    measured = load(made_up(tmp_path / "a.jsonl", {"hakmem": 0.3, "noop": 0.1}, spread=0))
    row, = measured.results()[0].rows
    assert row.own_time == pytest.approx(200)


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
def test_names_in_a_narrow_chart_cover_neither_each_other_nor_points():
    script = (ROOT / "tools/hakbench/templates/page.js").read_text()
    function = re.search(r"^function namePlaces\(.*?^}$", script, re.M | re.S)[0]
    # Nine allocators of docs/benchmarks/suite.html on a phone.
    points = [(25, 301, "hakmem"), (92, 110, "tcmalloc"), (111, 94, "gperftools"),
              (123, 163, "snmalloc"), (148, 177, "mimalloc2"), (149, 21, "mimalloc"),
              (159, 101, "rpmalloc"), (165, 178, "jemalloc"), (266, 313, "system")]
    given = [{"x": x, "y": y, "wide": 8 * len(name)} for x, y, name in points]
    done = subprocess.run(["node", "-e", f"{function}\nconsole.log(JSON.stringify("
                           f"namePlaces({json.dumps(given)})))"],
                          check=True, capture_output=True, text=True)
    rows = {"top": (-26, -9), "middle": (-8.5, 8.5), "bottom": (9, 26)}
    boxes = [(x - 9, y - 9, x + 9, y + 9) for x, y, _ in points]
    for (x, y, name), place in zip(points, json.loads(done.stdout), strict=True):
        row, column = place.split()
        left = {"center": x - 4 * len(name), "right": x + 9, "left": x - 9 - 8 * len(name)}[column]
        boxes.append((left, y + rows[row][0], left + 8 * len(name), y + rows[row][1]))
    covered = [(a, b) for at, a in enumerate(boxes) for b in boxes[at + 1:]
               if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]
    points_apart = set(boxes[:len(points)])
    assert [pair for pair in covered if not set(pair) <= points_apart] == []
