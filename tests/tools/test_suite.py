# SPDX-License-Identifier: MIT
"""The public suite mimalloc-bench, from a small copy made here: its own script says what is run."""
import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

from hakbench import suite
from hakbench.results import load

OTHER = "out/release/libother.so"
SCRIPT = r"""#!/bin/bash
readonly tests_all1="cfrac barnes redis larson"
readonly tests_all2="alloc-test glibc-thread rptest missing security"
readonly tests_all="$tests_all1 $tests_all2"
procs=8
if ! test -f ../../build-bench-env.sh; then
  exit 1
fi
readonly localdevdir=`pwd`
touch ran
readonly redis_dir="$localdevdir/redis"
procsx2=$((procs * 2))

function run_test_env_cmd { # <test name>
  case "$1" in
    redis*)
      outfile="x";;
    barnes)
      infile="$benchdir/barnes/input";;
  esac
  rm -rf everything
  # fixup larson with relative time
  case "$1" in
    larson*)
      rtime=`cat "$1-$2-out.txt" | sed -n 's/.* time: \([0-9\.]*\).*/\1/p'`
      echo "$1,$2, relative time: ${rtime}s";;
    rptest*)
      ops=`cat "$1-$2-out.txt" | sed -n 's/.*\.\.\.\([0-9]*\) memory ops.*/\1/p'`
      rtime=`echo "scale=3; (2000000 / $ops)" | bc`;;
    glibc-thread)
      ops=`cat "$1-$2-out.txt" | sed -n 's/\([0-9\.]*\).*/\1/p'`
      rtime=`echo "scale=3; (1000000000 / $ops)" | bc`;;
  esac
}

function run_test {  # <test>
  case $1 in
    cfrac)
      run_test_cmd "cfrac" "./cfrac 175451";;
    barnes)
      run_test_cmd "barnes" "./barnes";;
    redis)
      run_test_cmd "redis" "$redis_dir/redis-benchmark -q";;
    larson)
      run_test_cmd "larsonN" "./larson 5 8 1000 5000 100 4141 $procs";;
    alloc-test)
      run_test_cmd "alloc-test1" "./alloc-test 1"
      if test "$procs" != "0"; then
        run_test_cmd "alloc-testN" "./alloc-test $procsx2"
      fi;;
    rptest)
      run_test_cmd "rptestN" "./rptest $procs";;
    glibc-thread)
      run_test_cmd "glibc-thread" "./glibc-thread $procs";;
    missing)
      run_test_cmd "missing" "./missing";;
    security)
      run_test_cmd "security";;
    *)
      warning "skipping unknown test: $1";;
  esac
}
for tst in $tests_run; do
  run_test "$tst"
done
"""
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words)
{
    char *block = malloc(3 << 20), line[16] = "";
    memset(block, count, 3 << 20);
    usleep(30000);
    if (strstr(words[0], "barnes"))
        if (!fgets(line, sizeof line, stdin) || strcmp(line, "bodies\n"))
            return 4;
    if (strstr(words[0], "larson"))
        printf("Throughput = 5 operations per second, relative time: 0.250s.\n");
    if (strstr(words[0], "rptest"))
        printf("Running...8000000 memory ops\n");
    if (strstr(words[0], "cfrac") && (count != 2 || strcmp(words[1], "175451")))
        return 5;
    return block[5] != count;
}
"""


@pytest.fixture(scope="module", name="copy")
def copy_fixture(tmp_path_factory):
    """A copy of the suite with a few programs, one of which is not built."""
    folder = tmp_path_factory.mktemp("suite") / "mimalloc-bench"
    (folder / "out/bench").mkdir(parents=True)
    (folder / "bench/barnes").mkdir(parents=True)
    (folder / "extern").mkdir()
    (folder / "bench/barnes/input").write_text("bodies\n")
    (folder / "bench.sh").write_text(SCRIPT)
    (folder / "program.c").write_text(PROGRAM)
    for name in ("cfrac", "barnes", "larson", "alloc-test", "glibc-thread", "rptest"):
        subprocess.run(["cc", "program.c", "-o", f"out/bench/{name}"], cwd=folder, check=True)
    return folder


def test_programs_and_arguments_are_the_script_s_own(copy):
    cases, missing = suite.discover(copy)
    procs = os.cpu_count() if not hasattr(os, "sched_getaffinity") else len(os.sched_getaffinity(0))
    assert {case.name: case.words() for case in cases} == {
        "cfrac": ["./cfrac", "175451"], "barnes": ["./barnes"],
        "larsonN": ["./larson", "5", "8", "1000", "5000", "100", "4141", str(procs)],
        "alloc-test1": ["./alloc-test", "1"], "alloc-testN": ["./alloc-test", str(2 * procs)],
        "glibc-thread": ["./glibc-thread", str(procs)], "rptestN": ["./rptest", str(procs)]}
    assert dict(missing) == {"missing": "./missing is not there", "security": "is no benchmark",
                             "redis": suite.UNSUPPORTED["redis*"]}
    assert not (copy / "out/bench/ran").exists()


def test_what_the_script_takes_for_the_time_is_taken_here(copy):
    cases = {case.name: case for case in suite.discover(copy)[0]}
    assert cases["larsonN"].measured.read("rate 5, relative time: 0.250s.\n")["time_s"] == 0.25
    assert cases["rptestN"].measured.read("all...8000000 memory ops\n")["time_s"] == 0.25
    assert cases["glibc-thread"].measured.read("2000000000.5\n")["time_s"] == pytest.approx(0.5)
    assert cases["cfrac"].measured is None
    for output in ("", "relative time: s\n", "relative time: 0s\n"):
        with pytest.raises(ValueError):
            cases["larsonN"].measured.read(output)


@pytest.mark.parametrize("spoil, said", [
    (lambda copy: (copy / "bench.sh").unlink(), "has no bench.sh"),
    (lambda copy: (copy / "bench.sh").write_text("echo hello\n"), "has no function run_test"),
    (lambda copy: (copy / "out/bench").rmdir(), "is not built"),
])
def test_another_folder_is_told_of(tmp_path, spoil, said):
    (tmp_path / "out/bench").mkdir(parents=True)
    (tmp_path / "bench.sh").write_text(SCRIPT)
    spoil(tmp_path)
    with pytest.raises(suite.SuiteError, match=said):
        suite.discover(tmp_path)


def test_one_command_runs_the_suite(copy, root):
    shutil.copy(root / "out/release/libnoop.so", root / OTHER)
    code = ("import sys; from pathlib import Path; import hakbench.__main__ as tool; "
            f"tool.ROOT = Path({str(root)!r}); sys.exit(tool.main())")
    ran = subprocess.run(
        [sys.executable, "-c", code, "--mimalloc-bench", copy, "--allocators", f"system,{OTHER}",
         "--repeats", "3", "--syscalls"], text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, timeout=200, check=False, cwd=ROOT)
    text = " ".join((ran.stdout + ran.stderr).split())
    assert ran.returncode == 1, text
    # It has no line that says the time: an error, never the time of the run.
    assert "error glibc-thread, system: the output does not say" in text
    assert "skipped missing: ./missing is not there" in text
    folder = sorted((root / "out/bench").glob("*/runs.jsonl"))[-1].parent
    results = {result.name: result for result in load(folder / "runs.jsonl").results()}
    assert set(results) == {"cfrac", "barnes", "larsonN", "alloc-test1", "alloc-testN", "rptestN"}
    for result in results.values():
        assert {row.allocator for row in result.rows} == {"system", OTHER}
        assert result.floor is not None and result.group == "mimalloc-bench"
        assert not shutil.which("strace") or all(row.calls["mmap"] for row in result.rows)
    row = results["larsonN"].row("system")
    assert results["larsonN"].shown_ns(row) == pytest.approx(0.25e9) and row.peak_mib > 3
    assert results["cfrac"].shown_ns(results["cfrac"].row(OTHER)) > 0.03e9
    assert str(copy) not in (folder / "runs.jsonl").read_text()
    page = (folder / "report.html").read_text()
    assert "Factors of a large number" in page and "cfrac" in page
