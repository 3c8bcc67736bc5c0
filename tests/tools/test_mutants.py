# SPDX-License-Identifier: MIT
"""What ./hak mutants changes, and how it runs what it changed. If this fails, its share may count
changes that are none, or a changed allocator may take the machine with it."""
import subprocess
import sys
import textwrap

import pytest
from conftest import ROOT
from mutation import changes, trials

SOURCE = """\
#define MOST 16u
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define hak_assert(condition) ((void)(condition))
enum { LEAST = 3 };
int give(int);
int take(int a, int b)
{
    int sum = a + b;
    hak_assert(sum == 7);
    if (LIKELY(a < b) && !give(b))
        give(a);
    while (sum > 0)
        sum -= give(1);
    return sum ? 0
               : 0;
}
"""


# Its name is no text.
NAMELESS = """exec python3 -c '
import ctypes, time
ctypes.CDLL(None).prctl(15, b"\\xff")
time.sleep(1000)'"""


@pytest.fixture(name="found")
def found_fixture(tmp_path, monkeypatch):
    """The changes of SOURCE: (line, kind, change)."""
    monkeypatch.setattr(changes, "ROOT", tmp_path)
    (tmp_path / "it.c").write_text(SOURCE)
    return changes.changes_of("it.c", ["cc", "-std=gnu11", "-O2"])


def test_each_kind_of_change_is_found_where_it_stands(found):
    assert [(change.line, change.kind, change.change) for change in found] == [
        (1, "constant", "16u to 17u"), (4, "constant", "3 to 4"), (8, "arithmetic", "+ to -"),
        (10, "condition", "LIKELY(a < b) && !give(b) is taken as true"),
        (10, "relation", "< to <="), (10, "logic", "&& to ||"), (10, "logic", "! removed"),
        (11, "removed", "give(a) removed"), (12, "relation", "> to >="), (12, "constant", "0 to 1"),
        (13, "removed", "sum -= give(1) removed"), (13, "arithmetic", "-= to +="),
        (13, "constant", "1 to 2"), (14, "constant", "0 to 1"), (15, "constant", "0 to 1")]


def test_a_change_replaces_what_it_says_and_keeps_the_lines(found):
    texts = {change.change: change.applied_to(SOURCE.encode()).decode() for change in found}
    assert "if (LIKELY(a <= b) && !give(b))" in texts["< to <="]
    assert "        ;\n    while" in texts["give(a) removed"]
    assert all(text.count("\n") == SOURCE.count("\n") for text in texts.values())


def test_the_name_and_the_rank_of_a_change_do_not_depend_on_other_lines(found, tmp_path):
    (tmp_path / "it.c").write_text("int first = 5;\n\n" + SOURCE)
    later = changes.changes_of("it.c", ["cc", "-std=gnu11"])[1:]
    assert [change.name for change in later] == [change.name for change in found]
    assert [change.rank(3) for change in later] == [change.rank(3) for change in found]
    assert len({change.name for change in found}) == len(found)


@pytest.mark.parametrize("failures, said", [
    ([""], ""), (["one", ""], "one"), (["one", "two"], None)])
def test_a_program_that_fails_unchanged_is_run_again(failures, said, monkeypatch):
    left = list(failures)
    monkeypatch.setattr(trials.Trials, "failure", lambda *_: left.pop(0))
    worker = object.__new__(trials.Trials)
    if said is None:
        with pytest.raises(SystemExit, match="it fails unchanged: one and two"):
            worker.cost_of("it")
    else:
        assert worker.cost_of("it").failed == said
    assert not left


def test_waiting_costs_no_processor():
    code = """
        import sys
        from mutation import trials
        trials.become_reaper()
        trials.Trials.failure = lambda _, script, most: trials.run(["sh", "-c", script], (), most)
        cost = object.__new__(trials.Trials).cost_of(sys.argv[1])
        print(cost.seconds, cost.processor)
        """
    works = "(i=0; while [ $((i += 1)) -lt 500000 ]; do :; done) & wait"
    costs = [subprocess.run([sys.executable, "-c", textwrap.dedent(code), script],
                            cwd=ROOT / "tools", check=True, capture_output=True, text=True,
                            timeout=100).stdout.split() for script in ("sleep 2", works)]
    (waits_s, waits_processor), (_, works_processor) = (map(float, cost) for cost in costs)
    assert waits_s >= 2 and waits_processor < 0.2 < works_processor


def run_program(script, seconds, memory_bytes=4 << 30):
    """What trials.run says of a program, and how many processes it left."""
    code = """
        import sys
        from mutation import trials
        trials.MEMORY_BYTES_MOST = int(sys.argv[3])
        trials.become_reaper()
        failed = trials.run(["sh", "-c", sys.argv[1]], ("WORD=said",), float(sys.argv[2]))
        print(failed, "left", len(trials.descendants()))
        """
    words = [script, str(seconds), str(memory_bytes)]
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), *words],
                          cwd=ROOT / "tools", check=True, capture_output=True, text=True,
                          timeout=60)
    return done.stdout.strip()


@pytest.mark.parametrize("script, seconds, said", [
    ("exit 0", 50, ""), ("exit 77", 50, ""), ("exit 3", 50, "exit status 3"),
    ("test $WORD = said", 50, ""), ("kill -SEGV $$", 50, "exit status -11"),
    ("echo 'passed  one'; echo 'FAILED  two'; sleep 1000", 50, "two"),
    ("sleep 1000 & setsid sleep 1000 & sleep 1000", 0.5, "time limit"),
    ("exec >&-; sleep 1000", 0.5, "time limit"),
    ("while echo word; do :; done", 0.5, "time limit"),
    ("setsid sleep 1000 & exit 0", 50, ""),
    (NAMELESS, 0.5, "time limit"),
    ("i=0; while [ $((i += 1)) -lt 600 ]; do sleep 1000 & done; wait", 50, "limit of processes"),
])
def test_a_program_ends_within_its_limits_and_leaves_no_process(script, seconds, said):
    assert run_program(script, seconds) == f"{said} left 0".strip()


def test_a_program_ends_within_its_limit_of_memory():
    script = "python3 -c 'import time; all = b\"x\" * (9 << 25); time.sleep(99)'"
    assert run_program(script, 50, 1 << 28) == "limit of memory left 0"
