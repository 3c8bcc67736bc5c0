# SPDX-License-Identifier: MIT
"""Real programs as workloads: the contract of bench/programs/*.sh."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = sorted(path for path in (ROOT / "bench/programs").glob("*.sh") if path.name != "lib.sh")


def run(name, **variables):
    return subprocess.run([ROOT / f"bench/programs/{name}.sh"], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], **variables}, timeout=100)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_names_its_packages_and_its_operation(script):
    head = script.read_text().split(". \"$(dirname")[0]
    assert re.search(r"^# packages:( [a-z0-9.+-]+)+$", head, re.M)
    assert "operation" in head
    assert os.access(script, os.X_OK)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_program_that_is_absent_is_skipped_with_a_reason(script, tmp_path):
    for command in "sh mktemp rm dirname awk env date cat id tail runuser chown".split():
        (tmp_path / command).symlink_to(shutil.which(command) or "/bin/false")
    if script.stem == "python3" and pathlib.Path("/usr/bin/python3").exists():
        pytest.skip("/usr/bin/python3 is there")
    done = run(script.stem, PATH=str(tmp_path))
    assert done.returncode == 77, done
    assert re.fullmatch(r"skipped: no \S+\n", done.stdout)


@pytest.mark.parametrize("name", ["perl", "sqlite3"])
def test_a_program_runs_on_hakmem(name, tmp_path):
    statistics = tmp_path / "statistics"
    done = run(name, BENCH_PRELOAD=str(ROOT / "out/release/libhakmem.so"), HAKMEM_STATS="raw",
               HAKMEM_STATS_FILE=str(statistics), TMPDIR=str(tmp_path))
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"throughput: \d+\.\d\d(\d{4})? M ops/s", done.stdout.splitlines()[-1])
    assert statistics.read_text().count("threads_started:") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["statistics"]


def test_only_the_measured_program_gets_the_library():
    done = run("perl", BENCH_PRELOAD="/nowhere/libnone.so")
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert done.returncode == 0
    assert done.stderr.count("/nowhere/libnone.so") == 1
