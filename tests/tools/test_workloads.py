# SPDX-License-Identifier: MIT
"""The workloads: arguments, last line, checked contents."""
import re
import subprocess

import pytest

RUNS = {
    "bench_random_mixed": "20000 300 7",
    "larson": "1 8 1024 100 3 12345 3",
    "bench_mid_large_mt": "3 2000 20 8192 32768 42",
}


def call(root, name, arguments, **variables):
    return subprocess.run([root / f"out/release/{name}_system", *arguments.split()],
                          capture_output=True, text=True, env=variables)


@pytest.mark.parametrize("name", RUNS)
def test_last_line_is_the_throughput(root, name):
    done = call(root, name, RUNS[name])
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"throughput: \d+\.\d\d M ops/s", done.stdout.splitlines()[-1])


@pytest.mark.parametrize("arguments", ["1000", "1000 16", "1000 16 42"])
def test_random_mixed_runs_with_one_to_three_arguments(root, arguments):
    done = call(root, "bench_random_mixed", arguments)
    assert done.returncode == 0
    assert "operations: 1000\n" in done.stdout


def test_one_thread_frees_what_it_would_hand_over(root):
    done = call(root, "bench_mid_large_mt", "1 500 10 8192 32768 42")
    assert done.returncode == 0
    assert "operations: 500\n" in done.stdout


def test_operations_of_all_threads_are_counted(root):
    done = call(root, "bench_mid_large_mt", "4 500 10 8192 32768 42")
    assert "operations: 2000\n" in done.stdout


@pytest.mark.parametrize("name, arguments, complaint", [
    ("bench_random_mixed", "0", "CYCLES is '0'"),
    ("bench_random_mixed", "10 ten", "WORKING_SET is 'ten'"),
    ("bench_random_mixed", "10 10 -1", "SEED is '-1'"),
    ("bench_random_mixed", "1 1 1 1", "at most 3 arguments"),
    ("larson", "1 100 100", "MIN 100 is not below MAX 100"),
    ("bench_mid_large_mt", "0", "THREADS is '0'"),
])
def test_a_wrong_argument_is_named(root, name, arguments, complaint):
    done = call(root, name, arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "throughput" not in done.stdout


@pytest.mark.parametrize("name", ["bench_random_mixed", "bench_mid_large_mt"])
def test_blocks_that_share_memory_are_noticed(root, name):
    noop = str(root / "out/release/libnoop.so")
    arguments = {"bench_random_mixed": "200000 20000 7",
                 "bench_mid_large_mt": "2 2000 400 8192 32768 42"}[name]
    done = call(root, name, arguments, LD_PRELOAD=noop)
    assert done.returncode == 1
    assert "instead of" in done.stderr


@pytest.mark.parametrize("name", RUNS)
def test_programs_run_on_the_noop_allocator(root, name):
    noop = str(root / "out/release/libnoop.so")
    done = call(root, name, RUNS[name], LD_PRELOAD=noop, BENCH_VERIFY="off")
    assert done.returncode == 0, done.stderr
    assert "throughput: " in done.stdout
