# SPDX-License-Identifier: MIT
"""Plan, verification, launcher, results: a wrong library is an error, never a number."""
import json
import subprocess

import pytest

from hakbench import counters, launcher, plan, verify
from hakbench.peers import Peer, PeerError, resolve
from hakbench.report import markdown, publish
from hakbench.results import Measured
from hakbench.run import Session, arms_for

CASE = plan.select("random_mixed_256")[0]
OUTPUT = "operations: 2000000\ntime: 0.020000 s\nthroughput: 100.00 M ops/s\n"


def empty_library(folder, name="libempty.so"):
    library = folder / name
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", library], check=True)
    return library


def test_output_is_read_from_the_last_line():
    assert plan.read_output(OUTPUT)["throughput"] == 100.0


@pytest.mark.parametrize("output", ["", OUTPUT + "goodbye\n", OUTPUT.replace("100.00", "200.00"),
                                    "throughput: 100.00 M ops/s\n"])
def test_output_without_a_sound_last_line_is_refused(output):
    with pytest.raises(ValueError):
        plan.read_output(output)


def test_the_system_allocator_is_proved(root):
    assert "bound to libc" in verify.check(root, CASE, resolve(root, "system"))


def test_a_preloaded_allocator_is_proved(root):
    assert "libnoop.so" in verify.check(root, CASE, resolve(root, "noop"))


def test_a_library_without_malloc_is_an_error(root, tmp_path):
    peer = Peer("empty", "empty", "0", empty_library(tmp_path))
    with pytest.raises(verify.WrongAllocator, match="malloc is bound to libc.so.6"):
        verify.check(root, CASE, peer)


def test_a_library_that_cannot_be_preloaded_is_an_error(root, tmp_path):
    peer = Peer("absent", "absent", "0", tmp_path / "libabsent.so")
    with pytest.raises(verify.WrongAllocator):
        verify.check(root, CASE, peer)


def test_system_with_something_preloaded_is_an_error(root):
    noop = {"LD_PRELOAD": str(root / "out/release/libnoop.so"), "BENCH_VERIFY": "off"}
    with pytest.raises(verify.WrongAllocator):
        verify.check(root, CASE, Peer("system", "system", "0", None, noop))


def test_peak_memory_is_the_program_s_own(root):
    ballast = bytearray(200 << 20)
    _, _, cost = launcher.run(root, CASE.check_words(), {})
    assert cost.peak_rss_kib < 8 << 10 < len(ballast)


def test_a_failing_program_is_an_error(root):
    with pytest.raises(launcher.RunError, match="status 2: .*CYCLES"):
        launcher.run(root, [*CASE.check_words()[:1], "x"], {})


def test_a_program_that_takes_too_long_is_an_error(root):
    with pytest.raises(launcher.RunError, match="still running"):
        launcher.run(root, ["sleep", "20"], {}, timeout_s=0.3)


def test_unknown_allocators_are_named(root):
    with pytest.raises(PeerError, match="no allocator quickmalloc"):
        resolve(root, "quickmalloc")


def test_own_statistics_are_the_lines_with_numbers():
    counted = counters.parse("hakmem: fallback: 0\n foreign_frees: 12\nmode: balanced\n")
    assert counted == {"fallback": 0, "foreign_frees": 12}


@pytest.fixture(scope="module")
def measured_session(root):
    """A short real session of the system allocator, and one that serves nothing."""
    peers = [resolve(root, "system"), Peer("empty", "empty", "0", None,
                                           {"LD_PRELOAD": str(empty_library(root / "out"))}),
             Peer("wrong", "wrong", "0", empty_library(root / "out", "libwrong.so"))]
    session = Session(root, quick=True, repeats=2)
    session.begin([CASE], peers)
    session.measure(CASE, arms_for(CASE, peers, None), lambda seconds: None)
    return session


def test_a_session_keeps_each_run_and_each_error(measured_session):
    records = [json.loads(line) for line in measured_session.path.read_text().splitlines()]
    arms = [record["arm"] for record in records if record["record"] == "run"]
    assert arms == ["system", "empty", "system (again)"] * 2
    assert [record["allocator"] for record in records if record["record"] == "error"] == ["wrong"]
    assert measured_session.failures == 1


def test_results_name_the_noise_and_leave_out_what_was_not_proved(measured_session):
    result, = Measured(measured_session.path).results()
    assert {row.allocator for row in result.rows} == {"system", "empty"}
    assert result.floor is not None


def test_a_report_names_no_path_of_the_machine(measured_session, root):
    document = publish(measured_session.path, measured_session.folder, "report").read_text()
    assert str(root) not in document
    assert "**not measured**" in document
    assert (measured_session.folder / "report.svg").stat().st_size > 1000


def test_own_time_leaves_out_what_the_program_takes(tmp_path):
    case = plan.select("mid_large_2")[0]
    run = {"record": "run", "case": case.name, "operations": 1000000, "throughput": 1.0,
           "wall_s": 1, "user_s": 1, "system_s": 0, "peak_rss_kib": 2048, "minor_faults": 1,
           "major_faults": 0, "voluntary_switches": 0, "involuntary_switches": 0}
    header = {"record": "session", "environment": {}, "quick": True, "repeats": 2,
              "allocators": [{"name": "a", "version": "1"}, {"name": "b", "version": "2"}],
              "cases": [{"name": case.name, "title": case.title, "command": "x",
                         "minus_noop": True}]}
    times = {"a": 0.15, "b": 0.20, "noop": 0.10, "a (again)": 0.15}
    lines = [header] + [run | {"arm": arm, "round": number, "time_s": time}
                        for number in range(2) for arm, time in times.items()]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    measured = Measured(path)
    row = {row.allocator: row for row in measured.results()[0].rows}["b"]
    assert row.ratio.median == pytest.approx(0.75)
    assert row.own_ratio.median == pytest.approx(0.5)
    assert row.own_time_ns == pytest.approx(100)
    assert "Own time" in markdown(measured, "x.svg")


def test_an_allocator_may_come_with_variables(root):
    peer = resolve(root, "system@LD_BIND_NOW=1@A=b=c")
    assert peer.variables() == {"LD_BIND_NOW": "1", "A": "b=c"}
    with pytest.raises(PeerError, match="expected NAME@"):
        resolve(root, "system@fast")
