# SPDX-License-Identifier: MIT
"""Recording a program and playing it back: counts agree, and a damaged file is refused."""
import pathlib
import random
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = ROOT / "out/release"
MAGIC = b"mtrace1\n"

# 4 threads: each makes 100 blocks, which the next one frees; 50 calloc, 50 realloc, 10 aligned; a
# child's calls and a failed call are not recorded. It ends by _exit, with 3 blocks live.
SCRIPTED = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *blocks[4][100];
static pthread_barrier_t barrier;

static void *work(void *argument)
{
    long index = (long)argument;
    for (int i = 0; i < 100; i++)
        blocks[index][i] = malloc(i);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 100; i++)
        free(blocks[(index + 1) % 4][i]);
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    void *volatile block = NULL;
    pthread_barrier_init(&barrier, NULL, 4);
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 50; i++) {
        block = calloc(3, 10);
        free(block);
    }
    block = NULL;
    for (int i = 1; i <= 50; i++)
        block = realloc(block, i * 100);
    free(block);
    for (int i = 0; i < 10; i++) {
        block = aligned_alloc(4096, 8192);
        free(block);
    }
    block = malloc((size_t)1 << 62);
    free(block);
    free(NULL);
    if (fork() == 0) {
        for (int i = 0; i < 1000; i++)
            free(malloc(10));
        execl("/bin/true", "true", NULL);
    }
    wait(NULL);
    block = malloc(1);
    block = malloc(2);
    block = malloc(3);
    _exit(0);
}
"""


def record(trace, *words, **variables):
    return subprocess.run(words, env={"LD_PRELOAD": str(RELEASE / "libtrace_record.so"),
                                      "TRACE_OUT": str(trace), **variables},
                          capture_output=True, text=True)


def replay(*words, allocator="system"):
    return subprocess.run([RELEASE / f"replay_{allocator}", *map(str, words)],
                          capture_output=True, text=True, timeout=60)


def records(trace):
    """(operation, thread) of each record, read as bench/trace/trace_format.h says."""
    data, place, thread, found = trace.read_bytes(), len(MAGIC), 0, []

    def number():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    assert data[:place] == MAGIC
    while place < len(data) and data[place]:
        first = data[place]
        place += 1
        thread = number() if first & 8 else thread
        number()
        operation = ("", "malloc", "calloc", "aligned", "realloc", "free")[first & 7]
        for _ in range(2 if operation in ("aligned", "realloc") else 1):
            number()
        found.append((operation, thread))
    return found


@pytest.fixture(scope="module")
def scripted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trace")
    (folder / "scripted.c").write_text(SCRIPTED)
    subprocess.run(["gcc", "-w", "-O0", "-o", folder / "scripted", folder / "scripted.c",
                    "-pthread"], check=True)
    done = record(folder / "scripted.trace", folder / "scripted", TRACE_BYTES="65536")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder / "scripted.trace"


def test_a_scripted_program_is_recorded_call_by_call(scripted):
    calls = records(scripted)
    operations = [operation for operation, _ in calls]
    assert operations.count("malloc") == 400 + 3
    # libc's own callocs make the threads' tables; realloc takes what it made before.
    assert 50 <= operations.count("calloc") <= 60
    assert operations.count("realloc") == 50
    assert operations.count("aligned") == 10
    assert 400 + 50 + 1 + 10 <= operations.count("free") <= 400 + 50 + 1 + 10 + 10
    by_thread = [sum(call == ("malloc", thread) for call in calls) for thread in range(5)]
    assert by_thread == [3, 100, 100, 100, 100]


@pytest.mark.parametrize("allocator", ["system", "hakmem"])
def test_what_was_recorded_is_played(scripted, allocator):
    count = len(records(scripted))
    done = replay(scripted, 3, allocator=allocator)
    assert done.returncode == 0, done.stderr
    assert f"trace_calls: {count} calls\ntrace_threads: 5 threads\n" in done.stdout
    assert f"operations: {3 * count}\n" in done.stdout


def test_a_recorded_replay_makes_the_calls_of_the_trace(scripted, tmp_path):
    done = record(tmp_path / "again.trace", RELEASE / "replay_system", scripted, "1")
    assert done.returncode == 0, done.stderr
    before = [operation for operation, _ in records(scripted)]
    after = [operation for operation, _ in records(tmp_path / "again.trace")]
    for operation in ("malloc", "aligned", "realloc"):
        assert 0 <= after.count(operation) - before.count(operation) <= 3


def test_a_file_that_exists_is_left_alone(scripted):
    before = scripted.read_bytes()
    assert record(scripted, "/bin/true").returncode == 0
    assert scripted.read_bytes() == before


def test_a_limit_ends_the_record_and_not_the_program(tmp_path):
    done = record(tmp_path / "short.trace", "/bin/sh", "-c", "for i in 1 2 3; do echo $i; done",
                  TRACE_BYTES="200")
    assert done.stdout == "1\n2\n3\n"
    assert (tmp_path / "short.trace").stat().st_size <= 200
    assert replay(tmp_path / "short.trace", 1).returncode == 0


@pytest.mark.parametrize("allocator", ["system", "hakmem"])
@pytest.mark.parametrize("trace", sorted(path.name for path in ROOT.glob("bench/traces/*.trace")))
def test_each_stored_trace_is_small_and_plays(trace, allocator):
    path = ROOT / "bench/traces" / trace
    assert path.stat().st_size <= 300 << 10
    done = replay(path, 2, allocator=allocator)
    assert done.returncode == 0, done.stderr


def refused(done):
    return done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout


@pytest.mark.parametrize("content, complaint", [
    (b"", "is no trace"),
    (b"mtrace2\n\x01\x00\x08", "is no trace"),
    (MAGIC, "holds no call"),
    (MAGIC + b"\x00", "holds no call"),
    (MAGIC + b"\x01\x00", "record 1 is incomplete"),
    (MAGIC + b"\x01\x00\x88", "record 1 is incomplete"),
    (MAGIC + b"\x01" + b"\x80" * 12, "record 1 is incomplete"),
    (MAGIC + b"\x06\x00\x00", "unknown operation"),
    (MAGIC + b"\x11\x00\x00", "unknown operation"),
    (MAGIC + b"\x05\x00\x01", "a block that was never made"),
    (MAGIC + b"\x05\x00\x00", "frees nothing"),
    (MAGIC + b"\x01\x00\x08\x05\x00\x01\x05\x00\x01", "record 3 names a block that has ended"),
    (MAGIC + b"\x01\x00" + b"\xff" * 8 + b"\x7f", "asks for more than MOST_MIB, 4096 MiB"),
    (MAGIC + b"\x03\x00\x08\x3f", "alignment out of range"),
    (MAGIC + b"\x09\xff\x7f\x00\x08", "is of thread 16383"),
])
def test_what_is_no_trace_is_refused_with_one_line(tmp_path, content, complaint):
    (tmp_path / "x.trace").write_bytes(content)
    done = replay(tmp_path / "x.trace", 1)
    assert refused(done), done
    assert complaint in done.stderr


def test_files_that_are_cut_off_or_damaged_end_in_order(scripted, tmp_path):
    whole = scripted.read_bytes().rstrip(b"\0")
    dice = random.Random(7)
    path = tmp_path / "x.trace"
    endings = set()
    for turn in range(80):
        content = bytearray(whole[:dice.randrange(len(whole))] if turn % 2 else whole)
        for _ in range(dice.randrange(1, 5) if turn % 3 and content else 0):
            content[dice.randrange(len(content))] = dice.randrange(256)
        path.write_bytes(content)
        done = replay(path, 1, 16)
        assert done.returncode in (0, 2), (turn, done)
        assert refused(done) or done.returncode == 0
        endings.add(done.returncode)
    assert endings == {0, 2}


@pytest.mark.parametrize("words, complaint", [
    ([], "expected TRACE [REPEATS]"),
    (["nowhere.trace"], "nowhere.trace: No such file"),
    (["/dev/null"], "is no trace"),
    ([ROOT / "bench/traces/lua.trace", 0], "REPEATS is '0'"),
    ([ROOT / "bench/traces/lua.trace", "x"], "REPEATS is 'x'"),
])
def test_a_wrong_argument_is_named(words, complaint):
    done = replay(*words)
    assert refused(done), done
    assert complaint in done.stderr


def test_help_names_the_arguments():
    done = replay("--help")
    assert done.returncode == 0
    assert re.search("TRACE", done.stdout) and "REPEATS" in done.stdout
