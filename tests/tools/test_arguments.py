# SPDX-License-Identifier: MIT
"""What is wrong with a command line of ./hak bench is one line on standard error and an exit
status; nothing is measured or written, and no traceback is shown."""
import os
import random
import subprocess
import sys

import pytest
from conftest import ROOT
from session import CASE, empty_library, made_up

import hakbench.__main__ as tool
from hakbench import arguments

CODE = """
import sys; from pathlib import Path; import hakbench.__main__ as tool
tool.ROOT = Path({root!r}); sys.exit(tool.main())
"""


@pytest.fixture(name="place")
def place_fixture(root, tmp_path):
    """A folder with sessions, good and bad, and what is neither."""
    made_up(tmp_path / "a.jsonl", {"hakmem": 0.3, "system": 0.1})
    made_up(tmp_path / "b.jsonl", {"hakmem": 0.2, "jemalloc": 0.1})
    for name, text in (("junk.jsonl", "junk\n"), ("empty.jsonl", ""), ("number.jsonl", "[1]\n1\n"),
                       ("half.jsonl", '{"record": "session"}\n'), ("junk.so", "junk"),
                       ("file", "text"), ("plain.sh", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
    made_up(tmp_path / "bare.jsonl", {"hakmem": 0.3}, rounds=0)
    (tmp_path / "bytes.jsonl").write_bytes(bytes(range(256)))
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "folder.so").mkdir()
    (tmp_path / "suite/out/bench").mkdir(parents=True)
    (tmp_path / "suite/bench.sh").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "work.sh").write_text("#!/bin/sh\nsleep 0.05\n")
    (tmp_path / "work.sh").chmod(0o755)
    return tmp_path


@pytest.fixture(name="bench")
def bench_fixture(root, place):
    """Runs the tool in that folder with words, by a shell that has it in "$@" if one is given."""
    def run(*words, shell=None):
        command = [sys.executable, "-c", CODE.format(root=str(root)), *words]
        if shell:
            command = ["sh", "-c", shell, "sh", *command]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path),
                                    "HAK_FOLDER": str(place)}
        return subprocess.run(command, env=environment, text=True, capture_output=True,
                              timeout=120, check=False, cwd=ROOT, stdin=subprocess.DEVNULL)
    return run


WORK = ("--", "./work.sh")
WRONG = [
    ("--repeats: 1 to 1000", "--repeats", "0"), ("'-1'", "--repeats", "-1"),
    ("'x'", "--repeats", "x"), ("9" * 40, "--repeats", "9" * 40), ("''", "--repeats", ""),
    ("at most", "--timeout", "-5", *WORK), ("'nan'", "--timeout", "nan", *WORK),
    ("'inf'", "--timeout", "inf", *WORK), ("0 to 255", "--status", "-1", *WORK),
    ("0 to 255", "--status", "256", *WORK), ("--status goes with -- CMD", "--status", "1"),
    ("--timeout goes with -- CMD ARGS", "--timeout", "1"),
    ("no allocator 'nosuch'", "--allocators", "nosuch"),
    ("no allocator 'nosuch'", "--allocators", "system,nosuch", *WORK),
    ("no allocator 'nosuch'", "--peers", "--allocators", "nosuch"),
    ("no allocator '[/x]'", "--allocators", "[/x]"),
    ("names with a comma", "--allocators", ""), ("names with a comma", "--allocators", ","),
    ("names with a comma", "--allocators", "system,", *WORK),
    ("no allocator ''", "--allocators", "@A=1"),
    ("NAME@VARIABLE=VALUE", "--allocators", "system@A"),
    ("NAME@VARIABLE=VALUE", "--allocators", "system@=x"),
    ("noop is no allocator to compare with", "--allocators", "noop"),
    ("noop is no allocator to compare with", "--allocators", "noop", *WORK),
    ("noop is no allocator to compare with", "--allocators", "noop,system", *WORK),
    ("No such file", "--allocators", "./nosuch.so", *WORK),
    ("is no library", "--allocators", "{place}/junk.so", *WORK),
    ("Is a directory", "--allocators", "{place}/folder.so", *WORK),
    ("names with a comma", "--only", ""), ("names with a comma", "--only", ",", "--list"),
    ("contains nosuch", "--only", "nosuch", "--list"), ("contains nosuch", "--only", "nosuch"),
    ("--only goes with", "--only", "a", "report"), ("--into goes with", "--into", "x"),
    ("no session 'nosuch'", "--resume", "nosuch"), ("no session '../..'", "--resume", "../.."),
    ("the session has its own", "--resume", "x", "--repeats", "2"),
    ("no command 'nonsense'", "nonsense"), ("no command ''", ""),
    ("no command '-'", "-"), ("no command 'a?b'", "a\x1bb"),
    ("unrecognized arguments: --frob", "--frob"), ("unrecognized arguments: --q", "--q"),
    ("expected one argument", "--only"),
    ("-- is followed by a program", "--"), ("nothing else comes before", "report", *WORK),
    ("no program ''", "--", ""), ("no program './nosuch'", "--", "./nosuch"),
    ("no program '[/x]'", "--", "[/x]"), ("no program", "--", "{place}"),
    ("is not executable", "--", "./plain.sh"),
    ("File exists", "--allocators", "system", "--into", "{place}/file", *WORK),
    ("file/x: Not a directory", "--allocators", "system", "--into", "{place}/file/x", *WORK),
    ("/proc/x", "--allocators", "system", "--into", "/proc/x", *WORK),
    ("the name is empty", "--into", "", *WORK),
    ("expected nothing", "compare"), ("expected nothing", "compare", "system"),
    ("name two allocators", "compare", "system", "system"),
    ("no allocator ''", "compare", "", "system"), ("no allocator 'A'", "compare", "A", "B"),
    ("no allocator '[/x]'", "compare", "[/x]", "system"),
    ("noop is no allocator", "compare", "noop", "system"),
    ("two sessions, or two allocators", "compare", "a.jsonl", "system"),
    ("goes with the names of two sessions", "compare", "system", "noop", "--allocators", "system"),
    ("no allocator 'mimalloc3'", "compare", "system", "mimalloc3"),
    ("both allocators are needed", "compare", "hakmem", "system", "--only", "random_mixed_256"),
    ("junk.jsonl holds no session", "compare", "junk.jsonl", "a.jsonl"),
    ("number.jsonl holds no session", "compare", "a.jsonl", "number.jsonl"),
    ("b.jsonl has no system, but hakmem, jemalloc", "compare", "a.jsonl", "b.jsonl",
     "--allocators", "system"),
    ("one of --allocators", "compare", "a.jsonl", "b.jsonl", "--allocators", "system,hakmem"),
    ("no session 'nosuch'", "report", "nosuch"), ("no session ''", "report", ""),
    ("expected nothing", "report", "a", "b"),
    *((f"{name}.jsonl holds no session", "report", f"{name}.jsonl")
      for name in ("junk", "empty", "number", "half", "bytes")),
    ("Is a directory", "report", "folder.jsonl"), ("no figure", "report", "bare.jsonl"),
    ("file: File exists", "report", "a.jsonl", "--into", "{place}/file"),
    ("letters, digits", "report", "a.jsonl", "--into", "{place}", "--name", "a/b"),
    ("letters, digits", "report", "a.jsonl", "--into", "{place}", "--name", ""),
    ("letters, digits", "report", "a.jsonl", "--into", "{place}", "--name", ".."),
    ("--readme: the page must be", "report", "a.jsonl", "--into", "/tmp", "--readme"),
    ("--readme goes with report", "--readme"), ("--name goes with report", "--name", "x"),
    ("it has no bench.sh", "--mimalloc-bench", "nosuch"),
    ("it has no bench.sh", "--mimalloc-bench", "file", "--list"),
    ("the name is empty", "--mimalloc-bench", ""), ("bench.sh", "--mimalloc-bench", "suite"),
]


@pytest.mark.parametrize("said, words", [(said, words) for said, *words in WRONG],
                         ids=[" ".join(words)[:50].replace("\x1b", "ESC") for _, *words in WRONG])
def test_what_is_wrong_is_one_line(root, place, monkeypatch, capfd, said, words):
    before = sorted(place.rglob("*"))
    words = [word.replace("{place}", str(place)) for word in words]
    monkeypatch.setattr(tool, "ROOT", root)
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    monkeypatch.setenv("HAK_FOLDER", str(place))
    try:
        status = tool.main()
    except SystemExit as end:
        status = end.code
    error = capfd.readouterr().err
    assert status in (1, 2), error
    assert error.startswith("./hak bench: ") and error.count("\n") == 1, error
    assert said in error and error[:-1].isprintable(), error
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("word", ["report", "--resume"])
def test_without_sessions_there_is_no_last_one(tmp_path, monkeypatch, capsys, word):
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench", word])
    assert tool.main() == 2
    assert capsys.readouterr().err == ("./hak bench: no session in out/bench (./hak bench makes "
                                       "one)\n")


WORDS = ["", ",", "-", "-1", "0", "1", "x", "a,b", "noop", "system", "hakmem@A=1", "[/x]",
         "\x1b[2J", "é", "9" * 30, "compare", "report", "nan", "/", "..", "-h\0", "--", "--=",
         "--repeats=", "--quick", "--only", "--allocators", "--repeats", "--resume",
         "--syscalls", "--peers", "--instructions", "--install", "--list", "--into",
         "--mimalloc-bench", "--status", "--timeout", "--name", "--readme"]


def test_any_words_are_options_or_one_line(root, capsys, monkeypatch):
    monkeypatch.setenv("HAK_FOLDER", "/nonexistent")
    random.seed(20)
    wrong = 0
    for _ in range(3000):
        words = random.choices(WORDS, k=random.randint(0, 6))
        try:
            options = arguments.parse(root, words)
        except SystemExit as end:
            error = capsys.readouterr().err
            assert end.code == 2 and error.count("\n") == 1, (words, error)
            assert error.startswith("./hak bench: ") and error[:-1].isprintable(), (words, error)
            wrong += 1
        else:
            assert options.command in arguments.WORDS and options.repeats != 0
    assert 2000 < wrong < 3000


def test_output_that_cannot_be_written_is_told(bench):
    ran = bench("--list", "--only", CASE.name, shell='exec "$@" >/dev/full')
    assert ran.returncode == 1
    assert ran.stderr == "./hak bench: cannot write the output: No space left on device\n"


def test_a_reader_may_leave(bench):
    ran = bench("--list", "--only", "random_mixed,larson", shell='"$@" | head -n 1')
    assert ran.stdout.count("\n") == 1 and ran.stderr == ""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_standard_files_may_be_closed(bench, closed):
    ran = bench("--list", "--only", CASE.name, shell=f'exec "$@" {closed}')
    assert ran.returncode == 0 and ran.stderr == ""
    if closed == "<&-":
        assert ran.stdout.startswith(CASE.name)


def test_a_title_is_no_markup(bench):
    ran = bench("--allocators", "system", "--repeats", "1", "--into", "made", "--", "sh", "-c",
                "sleep 0.05; : '[/x] [bold]'")
    assert ran.returncode == 0, ran.stderr
    assert "[/x] [bold]" in ran.stdout


def test_a_case_of_noop_alone_has_no_figure(tmp_path):
    from hakbench.results import load
    path = made_up(tmp_path / "a.jsonl", {"noop": 0.1})
    path.write_text(path.read_text().replace('"group": "all"', '"group": "your program"'))
    assert load(path).results() == []


def test_a_relative_library_is_seen_from_the_callers_folder(root, tmp_path, monkeypatch):
    empty_library(tmp_path)
    monkeypatch.setenv("HAK_FOLDER", str(tmp_path))
    options = arguments.parse(root, ["--allocators", "libempty.so@A=1,system"])
    assert options.allocators == [f"{tmp_path.resolve()}/libempty.so@A=1", "system"]
    options = arguments.parse(root, ["compare", "libempty.so", "system"])
    assert options.words == [f"{tmp_path.resolve()}/libempty.so", "system"]
