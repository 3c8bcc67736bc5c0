# SPDX-License-Identifier: MIT
"""The workloads: arguments, last line, checked contents."""
import pathlib
import re
import subprocess

import pytest

# Tiny arguments for each source in bench/workloads.
RUNS = {
    "bench_random_mixed": "20000 300 7",
    "larson": "1 8 1024 100 3 12345 3",
    "bench_mid_large_mt": "3 2000 20 8192 32768 42",
    "producer_consumer": "2 0 10 500 5000 16 42",
    "migration": "3 4 300 500 16 1024 42",
    "cross_thread": "4 2000 100 16 42",
    "transactions": "2 300 50 10 42",
    "false_sharing": "1 16 64 20 100",
    "burst": "0 500 6 16 512 42",
    "realloc_growth": "16 65536 2 500 42",
    "big_buffers": "20 4 65536 131072 42",
    "touch_free": "65536 50 0 8 2",
    "binary_trees": "2 8 5 32",
    "replace": "2 2000 20 100 5000 1 0 0 42",
    "thread_churn": "20 3 40 16 2048 42",
    "pool": "20 2 200 50 42",
    "thread_sleep": "10 20 50 10",
    "mixed_lifetimes": "2 5000 42",
    "kept_few": "20000 10000 20 1 1 42",
    "kept_sites": "64000 32000 128 20 0 1 1 1 42",
    "valley": "5000 99 10 200 10 42",
    "phase_server": "5 2000 2 42",
    "bursty_buffers": "5 5 1 42",
    "start_up": "3 100",
    "fork_heap": "2 3 2 256 42",
    "latency": "2 3000 200 12 42",
    "calloc_large": "3 1048576 1",
    "huge_lookup": "1 64 1000 42",
    "replay": "bench/traces/git.trace 2",
}
NUMBERS_ONLY = sorted(set(RUNS) - {"replay"})
# What else a workload tells: names of its notes.
NOTES = {
    "producer_consumer": "cpu_per_block live_at_high rss_at_high rss_at_low",
    "burst": "malloc free_first_to_last free_last_to_first free_at_random",
    "realloc_growth": "realloc_vector moved_vector realloc_string moved_string realloc_shrink "
                      "moved_shrink peak_rss",
    "big_buffers": "peak_rss minor_faults inside",
    "touch_free": "warm_faults warm_faults_per_round",
    "thread_churn": "life rss_early rss_end",
    "pool": "cpu_per_block rss",
    "thread_sleep": "rss_per_thread_worked rss_per_thread_slept",
    "mixed_lifetimes": "live rss",
    "kept_few": "live_valley rss_valley rss_average",
    "kept_sites": "live_valley rss_valley rss_late_valley rss_average",
    "valley": " ".join(f"{what}_{when}" for when in ("filled", "freed", "loaded", "idle")
                       for what in ("live", "floor", "rss")) + " first_fill second_fill",
    "phase_server": " ".join(f"rss_full_{i} rate_full_{i} rss_buffers_{i} rss_low_{i} "
                             f"rss_large_{i} rate_large_{i}" for i in (1, 2)) + " request_p99",
    "bursty_buffers": "cpu_per_buffer minor_faults rss_idle cost_per_round",
    "start_up": "start child_peak_rss",
    "fork_heap": "fork_p50 fork_max to_end_of_child beside",
    "latency": " ".join(f"{what}_{share}" for what in ("malloc", "free", "clock")
                        for share in ("p50", "p90", "p99", "p999", "p9999", "p999999", "max")),
    "calloc_large": "calloc_round mmap_round faults_per_round",
    "replay": "trace_calls trace_threads trace_live",
    "huge_lookup": "fill rss_per_block free",
}
# The least block that the corrupting library may touch, where that is not 16 bytes.
CORRUPT_LEAST = {}
# These only write to their blocks, so that they run where blocks share memory.
WRITE_ONLY = ("bench_random_mixed", "larson", "bench_mid_large_mt", "burst", "transactions",
              "replace")


@pytest.fixture(scope="module")
def root():
    """The repository itself: both programs of each workload come from its release build."""
    return pathlib.Path(__file__).resolve().parents[2]


def call(root, name, arguments, allocator="system", **variables):
    return subprocess.run([root / f"out/release/{name}_{allocator}", *arguments.split()],
                          capture_output=True, text=True, env=variables, cwd=root,
                          timeout=60)


@pytest.fixture(scope="module")
def corrupt(tmp_path_factory):
    """A library that damages blocks now and then."""
    library = tmp_path_factory.mktemp("corrupt") / "corrupt.so"
    source = pathlib.Path(__file__).with_name("corrupt.c")
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", library, source,
                    "-pthread"], check=True)
    return library


def test_every_workload_is_run_here(root):
    sources = {path.stem for path in (root / "bench/workloads").glob("*.c")}
    assert sources == set(RUNS)


@pytest.mark.parametrize("allocator", ["system", "hakmem"])
@pytest.mark.parametrize("name", RUNS)
def test_last_line_is_the_throughput(root, name, allocator):
    done = call(root, name, RUNS[name], allocator)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    *notes, operations, time, throughput = done.stdout.splitlines()
    assert re.fullmatch(r"operations: [1-9]\d*", operations)
    assert re.fullmatch(r"time: \d+\.\d{6} s", time)
    assert re.fullmatch(r"throughput: \d+\.\d\d(\d{4})? M ops/s", throughput)
    told = [re.fullmatch(r"(\w+): -?\d+(?:\.\d+)? \S+", note) for note in notes]
    assert [note[1] for note in told] == NOTES.get(name, "").split()


@pytest.mark.parametrize("name", sorted(set(RUNS) - {"larson", "calloc_large"}))
def test_a_damaged_block_is_noticed(root, name, corrupt):
    done = call(root, name, RUNS[name], LD_PRELOAD=str(corrupt),
                CORRUPT_LEAST=str(CORRUPT_LEAST.get(name, 16)))
    assert done.returncode == 1, done.stdout
    assert re.fullmatch(rf"({name}_system: .* instead of .*\n)+", done.stderr)
    assert "throughput" not in done.stdout
    assert call(root, name, RUNS[name], LD_PRELOAD=str(corrupt),
                CORRUPT_EVERY="1000000000").returncode == 0


@pytest.mark.parametrize("name", NUMBERS_ONLY)
def test_a_word_is_no_number_and_twenty_arguments_are_too_many(root, name):
    done = call(root, name, "many")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is 'many', expected a number from" in done.stderr
    done = call(root, name, "1 " * 20)
    assert done.returncode == 2
    assert "arguments, got 20" in done.stderr.splitlines()[0]


@pytest.mark.parametrize("name", NUMBERS_ONLY)
def test_help_names_the_arguments(root, name):
    done = call(root, name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    names = re.findall(r"^  ([A-Z_]+) ", done.stdout, re.M)
    source = (root / f"bench/workloads/{name}.c").read_text()
    synopsis = re.search(rf"^ \*   {name} (.*)$", source, re.M)[1]
    assert re.findall(r"\w+", synopsis) == names


@pytest.mark.parametrize("arguments", ["1000", "1000 16", "1000 16 42"])
def test_random_mixed_runs_with_one_to_three_arguments(root, arguments):
    done = call(root, "bench_random_mixed", arguments)
    assert done.returncode == 0
    assert "operations: 1000\n" in done.stdout


def test_one_thread_frees_what_it_would_hand_over(root):
    done = call(root, "bench_mid_large_mt", "1 500 10 8192 32768 42")
    assert done.returncode == 0
    assert "operations: 500\n" in done.stdout


@pytest.mark.parametrize("name, arguments, operations", [
    ("bench_mid_large_mt", "4 500 10 8192 32768 42", 4 * 500),
    ("binary_trees", "2 3 5", 2 * 5 * (2 ** 4 - 1)),
    ("replace", "3 100 10 16 64", 3 * 100),
])
def test_operations_of_all_threads_are_counted(root, name, arguments, operations):
    assert f"operations: {operations}\n" in call(root, name, arguments).stdout


@pytest.mark.parametrize("order", ["0", "1"])
@pytest.mark.parametrize("kind", ["0 0", "4096 0", "64 0", "0 1"])
def test_replaced_blocks_may_be_aligned_or_zero(root, order, kind):
    done = call(root, "replace", f"2 2000 30 1 20000 {order} {kind}", "hakmem")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name, arguments, complaint", [
    ("bench_random_mixed", "0", "CYCLES is '0'"),
    ("bench_random_mixed", "10 ten", "WORKING_SET is 'ten'"),
    ("bench_random_mixed", "10 10 -1", "SEED is '-1'"),
    ("bench_random_mixed", "1 1 1 1", "at most 3 arguments"),
    ("larson", "1 100 100", "MIN 100 is not below MAX 100"),
    ("bench_mid_large_mt", "0", "THREADS is '0'"),
    ("producer_consumer", "1 64 10 10", "LOW 10 is not below HIGH 10"),
    ("false_sharing", "2", "MODE is '2'"),
    ("replace", "1 10 10 10 10", "MIN 10 is not below MAX 10"),
    ("replace", "1 10 10 10 20 0 48", "ALIGNMENT is 48, expected 0 or a power of two"),
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


@pytest.mark.parametrize("name", WRITE_ONLY)
def test_programs_run_on_the_noop_allocator(root, name):
    noop = str(root / "out/release/libnoop.so")
    done = call(root, name, RUNS[name], LD_PRELOAD=noop, BENCH_VERIFY="off")
    assert done.returncode == 0, done.stderr
    assert "throughput: " in done.stdout


HISTOGRAM = r"""
#include "histogram.h"

int main(void)
{
    static struct histogram all, odd;
    for (uint64_t value = 0; value < 100000; value++) {
        histogram_add(value % 2 ? &odd : &all, value);
    }
    histogram_merge(&all, &odd);
    uint64_t p50 = histogram_quantile(&all, 0.5), p99 = histogram_quantile(&all, 0.99);
    for (uint64_t value = 1; value != 0; value <<= 1) {
        uint32_t index = histogram_index(value + value / 3);
        if (index >= HISTOGRAM_COUNTS || histogram_value(index) > value + value / 3 ||
            histogram_value(index) < value) {
            return 1;
        }
    }
    return !(p50 <= 50000 && p50 > 49000 && p99 <= 99000 && p99 > 97000 && all.most == 99999 &&
             all.total == 100000 && histogram_quantile(&all, 1.0) == 99999 &&
             histogram_index(UINT64_MAX) < HISTOGRAM_COUNTS);
}
"""


def test_a_histogram_knows_values_within_a_sixty_fourth(root, tmp_path):
    (tmp_path / "check.c").write_text(HISTOGRAM)
    subprocess.run(["gcc", "-O1", "-I", root / "bench/workloads", "-o", tmp_path / "check",
                    tmp_path / "check.c"], check=True)
    assert subprocess.run([tmp_path / "check"]).returncode == 0
