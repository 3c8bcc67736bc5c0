# SPDX-License-Identifier: MIT
"""./hak bench -- CMD ARGS: a program of the user's under all allocators. What cannot be compared is
told in one line and has no number; a figure is only there with the allocator that served proved."""
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import ROOT
from rich.console import Console

from hakbench import command, peers, programs, tables
from hakbench.results import load

OTHER = "out/release/libother.so"
WORK = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
int main(int count, char **words)
{
    char *held[400];
    for (int i = 0; i < 400; i++)
        memset(held[i] = malloc(20000), i, 20000);
    struct timespec pause = {0, 60000000};
    nanosleep(&pause, NULL);
    int c, read = 0;
    while (count > 2 && (c = getchar()) != EOF)
        read++;
    for (int i = 0; i < 400; i++)
        free(held[i]);
    const char *status = getenv("WORK_STATUS");
    if (status)
        return atoi(status) + (count > 2 && read != atoi(words[2]));
    return count > 2 ? read != atoi(words[2]) : count > 1 ? atoi(words[1]) : 0;
}
"""
OWN = """
static char store[1 << 26];
static unsigned long used;
void *malloc(unsigned long size)
{
    void *block = store + used;
    used += (size + 15) & ~15UL;
    return block;
}
void free(void *block) { (void)block; }
"""


# The entry of malloc in a program that takes its address is where libraries find malloc.
ADDRESS = """
#include <stdlib.h>
void *(*volatile take)(size_t);
void use(void);
int main(void)
{
    take = malloc;
    char *block = take(1 << 20);
    for (int i = 0; i < 1 << 20; i++)
        block[i] = (char)i;
    for (int i = 0; i < 3000000; i++)
        use();
    free(block);
    return 0;
}
"""
USES = """
#include <stdlib.h>
void *(*volatile take_here)(size_t);
void use(void)
{
    take_here = malloc;
    free(take_here(64));
}
"""


# Leaves a process of a session of its own, whose id it adds to the file `left`.
DAEMON = """
import os, time
ends = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open("left", "a") as file:
            print(os.getpid(), file=file)
        os.write(ends[1], b"x")
        time.sleep(600)
    os._exit(0)
os.wait()
os.read(ends[0], 1)
time.sleep(0.05)
"""


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module", name="made")
def made_fixture(tmp_path_factory, root):
    """A folder of programs: dynamic, static, with a malloc of its own, with a library's, short."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "work.c").write_text(WORK)
    (folder / "own.c").write_text(OWN)

    def cc(*words):
        subprocess.run(["cc", "-O1", "-fno-builtin", *words], cwd=folder, check=True)
    (folder / "address.c").write_text(ADDRESS)
    (folder / "uses.c").write_text(USES)
    cc("-shared", "-fPIC", "uses.c", "-o", "libuses.so")
    cc("-no-pie", "-fno-pie", "address.c", "-o", "address", "-L.", "-l:libuses.so",
       f"-Wl,-rpath,{folder}")
    cc("work.c", "-o", "work")
    cc("-static", "work.c", "-o", "static")
    cc("work.c", "own.c", "-o", "own")
    for library in ("libbrought.so", str(root / OTHER)):
        cc("-shared", "-fPIC", str(ROOT / "bench/noop/noop.c"), "-o", library)
    cc("work.c", "-o", "brings", "-L.", "-l:libbrought.so", f"-Wl,-rpath,{folder}")
    return folder


@pytest.fixture(name="bench")
def bench_fixture(root, made, tmp_path):
    """Runs the tool on words after `--`, from the folder of the programs."""
    def run(*words, options=("--repeats", "3"), allocators=f"{OTHER},system", **more):
        code = ("import sys; from pathlib import Path; import hakbench.__main__ as tool; "
                f"tool.ROOT = Path({str(root)!r}); sys.exit(tool.main())")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path),
                                    "HAK_FOLDER": str(made)}
        more = {"stdin": subprocess.DEVNULL} | more if "input" not in more else more
        ran = subprocess.run(
            [sys.executable, "-c", code, "--allocators", allocators, "--into",
             str(tmp_path / "out"), *options, "--", *words], env=environment, text=True,
            capture_output=True, timeout=120, check=False, cwd=ROOT, **more)
        ran.folder = tmp_path / "out"
        ran.text = " ".join((ran.stdout + ran.stderr).split())
        return ran
    return run


def test_a_program_is_compared_with_its_server_proved(bench):
    ran = bench("./work")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    result, = load(ran.folder / "runs.jsonl").results()
    assert {row.allocator: row.served for row in result.rows} == {
        OTHER: "libother.so", "system": "libc"}
    assert result.floor is not None and result.is_whole
    own = result.row("system")
    assert 0.06 < own.wall_s < 1 and result.shown_ns(own) == pytest.approx(own.wall_s * 1e9)
    assert 7 < own.average_mib <= own.peak_mib < 20
    page = (ran.folder / "report.html").read_text()
    assert "./work" in page and "libother.so" in page and "noise" in page
    assert "peak MiB" in ran.text and "noise" in ran.text and "M ops/s" not in ran.text
    assert "written: " in ran.text and "leaves processes" not in ran.text


@pytest.mark.parametrize("words, said", [
    (("./static",), "./static is static"),
    (("./own",), "./own defines malloc itself"),
    (("sh", "-c", "./own; true"), "own calls its own malloc"),
    (("sh", "-c", "./static; true"), "its largest process, static, is static"),
    (("./work", "7"), "fails as it is, with no allocator preloaded: ended with status 7"),
    (("sh", "-c", "kill -SEGV $$"), "died of SIGSEGV"),
    (("true",), "only its start could be measured"),
    (("sh", "-c", "kill -35 $$"), "died of signal 35"),
    (("./absent",), "there is no program './absent'"),
    (("./work.c",), "./work.c is not executable"),
    (("ls | wc",), "sh -c 'ls | wc'"),
], ids=lambda value: " ".join(value) if isinstance(value, tuple) else None)
def test_what_cannot_be_compared_is_one_line_without_a_figure(bench, words, said):
    ran = bench(*words)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert said in ran.text
    assert ran.stderr.startswith("./hak bench: not compared: ") and ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.text and not ran.folder.exists()


def test_a_program_that_never_ends_is_told_of(bench):
    ran = bench("sleep", "30", options=("--timeout", "0.3"))
    assert ran.returncode == 1 and "still running after 0.3 s" in ran.text


def test_a_status_may_be_success(bench):
    ran = bench("./work", "7", options=("--status", "7", "--repeats", "1"))
    assert ran.returncode == 0, ran.text


def test_any_words_of_a_command_line_have_a_report(bench):
    words = ("a|b", "`c``", "two\nlines", "[red]<b>", os.fsdecode(b"\xff"))
    ran = bench("sh", "-c", "./work", *words, options=("--repeats", "1"))
    assert ran.returncode == 0, ran.text
    text = (ran.folder / "report.md").read_text(encoding="utf-8")
    line, = (line for line in text.splitlines() if "sh -c ./work" in line and "```" in line)
    head = next(line for line in text.splitlines() if line.startswith("| Case"))
    cells = re.split(r" (?<!\\)\| ", line)
    assert len(cells) == head.count(" | ") + 1
    assert cells[2] == r"""``` sh -c ./work 'a\|b' '`c``' 'two\nlines' '[red]<b>' '\udcff' ```"""
    page = (ran.folder / "report.html").read_text(encoding="utf-8")
    assert "[red]&lt;b&gt;" in page and r"\udcff" in page


def test_each_run_reads_the_whole_standard_input(bench):
    text = "x" * 70000
    assert bench("./work", "-", "70000", input=text).returncode == 0
    ran = bench("./work", "-", "70000")
    assert ran.returncode == 1 and "its standard input was empty" in ran.text


@pytest.mark.parametrize("kind, tool", [("syscalls", "strace"), ("instructions", "valgrind")])
def test_a_program_is_counted_as_it_is_measured(bench, monkeypatch, kind, tool):
    """In its folder, with its variables, its standard input and its status of success."""
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    monkeypatch.setenv("WORK_STATUS", "7")
    ran = bench("./work", "-", "70000", input="x" * 70000, allocators="system",
                options=("--repeats", "1", f"--{kind}", "--status", "7"))
    assert ran.returncode == 0, ran.text
    measured = load(ran.folder / "runs.jsonl")
    row, = measured.results()[0].rows
    assert (row.instructions if kind == "instructions" else row.calls["mmap"]), ran.text
    assert not measured.uncounted and "not counted" not in ran.text


def test_why_a_program_is_not_counted_is_below_the_table(bench, tmp_path, monkeypatch):
    (tmp_path / "strace").write_text("#!/bin/sh\necho 'not permitted' >&2\nexit 1\n")
    (tmp_path / "strace").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ran = bench("./work", options=("--repeats", "1", "--syscalls"))
    assert ran.returncode == 0, ran.text
    assert f"not counted syscalls of work ({OTHER}, system): ended with status 1: not permitted" \
        in ran.text


def test_standard_input_without_an_end_is_told_of(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "MOST_INPUT_MIB", 1)
    console = Console(file=open(os.devnull, "w", encoding="utf-8"))

    def given(count):
        read = f"import sys; sys.stdout.buffer.write(bytes({count}))"
        with subprocess.Popen([sys.executable, "-c", read], stdout=subprocess.PIPE) as process:
            before = os.dup(0)
            os.dup2(process.stdout.fileno(), 0)
            monkeypatch.setattr(sys, "stdin", open(0, encoding="utf-8", closefd=False))
            try:
                return command.standard_input(console, tmp_path)
            finally:
                os.dup2(before, 0)
                os.close(before)
    assert given(1 << 20).stat().st_size == 1 << 20 and given(0) is None
    with pytest.raises(command.CommandError, match="longer than 1 MiB"):
        given((1 << 20) + 1)


def test_a_program_that_drops_the_library_has_no_figure(bench):
    ran = bench("sh", "-c", "unset LD_PRELOAD; exec ./work")
    result, = load(ran.folder / "runs.jsonl").results()
    assert [row.allocator for row in result.rows] == ["system"]
    assert f"error sh, {OTHER}: work calls malloc of libc.so.6" in ran.text


def test_an_allocator_under_which_the_program_fails_has_no_figure(bench):
    ran = bench("sh", "-c", './work; case $LD_PRELOAD in *other*) exit 9 ;; esac')
    result, = load(ran.folder / "runs.jsonl").results()
    assert [row.allocator for row in result.rows] == ["system"]
    assert f"{OTHER}: ended with status 9" in ran.text


def test_a_library_that_the_program_brings_is_measured_as_it_is(bench):
    ran = bench("./brings")
    assert ran.returncode == 0, ran.text
    result, = load(ran.folder / "runs.jsonl").results()
    assert {row.allocator: row.served for row in result.rows} == {
        OTHER: "libother.so", "system": "libc", "as it is": "libbrought.so"}


def test_a_program_that_takes_malloc_s_address_has_no_malloc_of_its_own(bench):
    ran = bench("./address", options=("--repeats", "1"), allocators="system")
    assert ran.returncode == 0, ran.text
    result, = load(ran.folder / "runs.jsonl").results()
    assert {row.allocator: row.served for row in result.rows} == {"system": "libc"}


def test_the_program_finds_the_user_s_environment_and_folder(bench, monkeypatch, made):
    monkeypatch.setenv("GREETING", "hello")
    monkeypatch.setenv("LD_PRELOAD", "")
    ran = bench("sh", "-c", f'./work && test "$GREETING" = hello && test "$PWD" = {made} && '
                'test -z "$HAK_FOLDER"', options=("--repeats", "1"))
    assert ran.returncode == 0, ran.text


def test_the_program_s_working_folder_is_the_one_it_is_told_of(bench, monkeypatch):
    monkeypatch.setenv("PWD", str(ROOT))
    code = "import os, time; time.sleep(0.05); assert os.environ['PWD'] == os.getcwd(), os.environ"
    ran = bench(sys.executable, "-c", code, options=("--repeats", "1"), allocators="system")
    assert ran.returncode == 0, ran.text


def test_what_a_program_leaves_behind_is_ended_and_told_of_once(bench, made):
    ran = bench(sys.executable, "-c", DAEMON, options=("--repeats", "2"), allocators="system")
    assert ran.returncode == 0, ran.text
    assert ran.text.count("leaves processes behind") == 1
    left = (made / "left").read_text().split()
    assert len(left) >= 5 and not any(is_running(int(process)) for process in left)


def test_an_interrupt_is_one_line_and_leaves_nothing_running(tmp_path):
    started = tmp_path / "started"
    os.mkfifo(started)
    with subprocess.Popen(
            [sys.executable, ROOT / "tools/bench.py", "--allocators", "system", "--into",
             tmp_path / "out", "--", "sh", "-c", "trap 'echo >cleaned; exit' TERM; "
             "setsid sh -c 'echo $$ >started; exec sleep 600' & wait"],
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=os.environ | {"HAK_FOLDER": str(tmp_path)}) as process:
        left = int(started.read_text())
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and error == "./hak bench: interrupted\n"
    assert not is_running(left) and (tmp_path / "cleaned").exists()


def test_a_folder_with_a_session_is_not_written_again(bench):
    assert bench("./work", options=("--repeats", "1")).returncode == 0
    again = bench("./work", options=("--repeats", "1"))
    assert again.returncode == 2 and "holds a session already" in again.text


def test_long_programs_are_repeated_less():
    class Options:
        repeats = None

    def repeats(seconds):
        case = command.plan.Case("x", "", None, "x", "", None, "", "x", expected_s=seconds)
        return command.repeats_of(Options, case, ["a"] * 9)
    assert repeats(1) == (7, None)
    count, remark = repeats(12)
    assert count == 4 and "--repeats 7" in remark
    assert repeats(500)[0] == 3


def test_setuid_programs_are_told_of(tmp_path, monkeypatch):
    program = tmp_path / "raised"
    program.write_bytes(open("/bin/true", "rb").read())
    program.chmod(0o4755)
    monkeypatch.setattr(programs.os, "getuid", lambda: program.stat().st_uid + 1)
    monkeypatch.setattr(programs.os, "listxattr", lambda path: [])
    assert "setuid" in programs.obstacle(program)
    program.chmod(0o755)
    assert programs.obstacle(program) is None
    monkeypatch.setattr(programs.os, "listxattr", lambda path: ["security.capability"])
    assert "capabilities" in programs.obstacle(program)


def test_scripts_are_looked_through(tmp_path, made):
    script = tmp_path / "script"
    script.write_text(f"#!{made / 'static'}\n")
    assert "static" in programs.obstacle(script)


def test_programs_for_other_machines_are_told_of(tmp_path, made):
    other = bytearray((made / "work").read_bytes())
    other[18:20] = (22).to_bytes(2, "little")
    (tmp_path / "other").write_bytes(other)
    assert "another kind of machine" in programs.obstacle(tmp_path / "other")


def test_allocators_at_hand_are_those_that_are_built(root, monkeypatch):
    monkeypatch.setattr(peers, "installed", lambda file: None)
    (root / "out/release/libhakmem.so").touch()
    try:
        assert [peer.name for peer in peers.at_hand(root)] == ["hakmem", "system"]
        noop = root / "out/release/libnoop.so"
        monkeypatch.setattr(peers, "installed",
                            lambda file: noop if "jemalloc" in file else None)
        found = {peer.name: peer for peer in peers.at_hand(root)}
        assert list(found) == ["hakmem", "system", "jemalloc"]
        assert found["jemalloc"].library == noop
    finally:
        (root / "out/release/libhakmem.so").unlink()


def test_a_narrow_terminal_cuts_no_figure(bench):
    ran = bench("./work")
    measured = load(ran.folder / "runs.jsonl")
    for width in (200, 100, 70):
        console = Console(width=width, record=True, file=open(os.devnull, "w", encoding="utf-8"))
        tables.show(console, measured)
        text = console.export_text()
        assert "…" not in text and "peak MiB" in text
