# SPDX-License-Identifier: MIT
"""Plan, verification, launcher, results: a wrong library is an error, never a number."""
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

from hakbench import counters, counts, environment, launcher, plan, recipes, verify
from hakbench.peers import Peer, PeerError, commit, fetch, resolve
from session import CASE, empty_library

OUTPUT = "operations: 2000000\ntime: 0.020000 s\nthroughput: 100.00 M ops/s\n"


def test_output_is_read_from_the_last_line():
    assert plan.read_output(OUTPUT)["throughput"] == 100.0


@pytest.mark.parametrize("output", ["", OUTPUT + "goodbye\n", OUTPUT.replace("100.00", "200.00"),
                                    "throughput: 0.00 M ops/s\n"])
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
    cost = launcher.run(root, CASE.tiny_words(), {}).cost
    assert cost.peak_rss_kib < 8 << 10 < len(ballast)


@pytest.mark.parametrize("is_waited_for", [True, False])
def test_the_cost_is_that_of_the_program_and_of_what_it_waited_for(root, is_waited_for):
    """Its child's or, if that ends first, not that of the orphan, who takes a second."""
    code = f"""
import os, time
ends = os.pipe()
if os.fork() == 0:
    if {is_waited_for} or os.fork() == 0:
        while time.process_time() < 1:
            pass
        os.write(ends[1], b"x")
    os._exit(0)
os.wait()
os.read(ends[0], 1)
"""
    cost = launcher.run(root, [sys.executable, "-c", code], {}).cost
    assert (cost.user_s + cost.system_s >= 1) == is_waited_for


def test_a_failing_program_is_an_error(root):
    with pytest.raises(launcher.RunError, match="status 2: .*CYCLES"):
        launcher.run(root, [*CASE.tiny_words()[:1], "x"], {})


def test_a_program_that_takes_too_long_is_an_error(root):
    with pytest.raises(launcher.RunError, match="still running"):
        launcher.run(root, ["sleep", "20"], {}, place=launcher.Place(timeout_s=0.3))


def test_unknown_allocators_are_named(root):
    with pytest.raises(PeerError, match="no allocator 'quickmalloc'"):
        resolve(root, "quickmalloc")


def test_own_statistics_are_the_numbers_of_the_last_report():
    counted = counters.parse('{"fallback": 1, "old": 2}\n12\nhakmem: said\n'
                             '{"rseq": "thread", "process": {"fallback": 0, '
                             '"foreign_frees": 12}}\n')
    assert counted == {"fallback": 0, "foreign_frees": 12}


def test_an_allocator_may_come_with_variables(root):
    peer = resolve(root, "system@LD_BIND_NOW=1@A=b=c")
    assert peer.variables() == {"LD_BIND_NOW": "1", "A": "b=c"}
    with pytest.raises(PeerError, match="expected NAME@"):
        resolve(root, "system@fast")


def test_a_library_of_its_own_is_named_by_its_file(root):
    peer = resolve(root, "out/release/libnoop.so")
    assert (peer.title, peer.library.name) == ("libnoop.so", "libnoop.so")
    with pytest.raises(PeerError, match="No such file"):
        resolve(root, "out/release/libnothing.so")


def test_an_allocator_that_cannot_be_had_says_why(root, monkeypatch):
    def fail(folder, recipe, say):
        raise recipes.RecipeError("the registry is closed")
    monkeypatch.setitem(recipes.RECIPES, "mimalloc",
                        recipes.Recipe("m", "PyPI", "m==1", "libm.so", fail))
    with pytest.raises(PeerError, match="m==1 of PyPI: the registry is closed"):
        fetch(root, "mimalloc")
    assert not (root / "out/peers/mimalloc").exists()


def test_each_row_of_the_table_is_a_command_of_its_own():
    cases = plan.read_table()
    assert len({case.name for case in cases}) == len(cases)
    commands = [" ".join(case.words()) for case in cases]
    assert len(set(commands)) == len(commands)


def test_the_table_knows_only_programs_that_exist(root):
    known = {case.name for case in plan.discover(root)}
    assert {case.name for case in plan.read_table()} <= known


def test_notes_are_kept_with_their_units():
    result = plan.read_output("live: 12.5 MiB\nmalloc p99: 80 ns\nrounds: 3\n" + OUTPUT)
    assert result["notes"] == {"live": [12.5, "MiB"], "malloc p99": [80, "ns"], "rounds": [3, ""]}


def test_a_program_without_operations_says_its_throughput():
    assert plan.read_output("done\nthroughput: 0.0712 M ops/s\n")["throughput"] == 0.0712


def test_memory_calls_are_counted(root):
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    counted = counts.count_calls(root, CASE, resolve(root, "system"))
    assert counted["calls"]["mmap"] > 1 and counted["operations"] == 1000


def test_what_cannot_be_counted_says_why(root, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(counts.CannotCount, match="strace is not installed"):
        counts.count_calls(root, CASE, resolve(root, "system"))


def test_a_machine_without_git_and_compiler_is_described(root, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert commit(ROOT) == "uncommitted"
    about = environment.describe(root)
    assert about["commit"] == "uncommitted" and about["compiler"] == "unknown"


def test_the_compiler_is_named_by_its_first_line(root):
    said = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True).stdout
    assert environment.describe(root)["compiler"] == said.splitlines()[0].strip()
