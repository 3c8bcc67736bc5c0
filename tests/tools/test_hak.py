# SPDX-License-Identifier: MIT
"""What ./hak says and does with its words: a copy of it among stand-ins for the tools that it
calls, which note how they were called. If this fails, a typing mistake costs minutes of building,
or runs something else than what was asked for."""
import os
import shutil
import subprocess

import pytest
from conftest import ROOT

TESTS = """
add_test({build}.unit.base.list_test.a_started_list_is_empty "{tests}/unit_base_list_test" "a")
add_test([=[{build}.pages_16k.unit.base.list_test]=] "cmake" "-E" "{tests}/unit_base_list_test")
add_test({build}.preload.fork_preload "cmake" "A={tests}/../libhakmem.so" "{tests}/fork_preload")
"""
SCRIPT = 'add_test({build}.preload.make_preload "sh" "/tests/preload/make_preload.sh")\n'


@pytest.fixture(name="hak")
def hak_fixture(tmp_path):
    """Runs ./hak with words; what it called is in its `calls`."""
    for folder in ("tools", "cmake", "out/venv/bin", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("hak", "CMakePresets.json", "tools/requirements.txt", "tools/choose_tests.py",
                 "cmake/builds"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "tools/requirements.txt", tmp_path / "out/venv/requirements.txt")
    for build in ("debug", "tiny", "tsan", "release", "fuzz", "arm64"):
        folder = tmp_path / "out" / build / "tests"
        folder.mkdir(parents=True)
        text = "" if build == "fuzz" else TESTS + (SCRIPT if build == "release" else "")
        (folder / "CTestTestfile.cmake").write_text(
            text.format(build=build, tests=folder).replace("tests/../", ""))
    for name in ("bin/cmake", "bin/ctest", "bin/apt-get", "out/venv/bin/python"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name.split("/")[-1]} $*" >>"$CALLS"\n')
        (tmp_path / name).chmod(0o755)
    calls = tmp_path / "calls"

    def run(*words):
        calls.write_text("")
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        ran = subprocess.run(["sh", tmp_path / "hak", *words], cwd=tmp_path, text=True,
                             capture_output=True, check=False, timeout=100,
                             env={**os.environ, "PATH": path, "CALLS": str(calls)})
        ran.calls = calls.read_text().splitlines()
        ran.builds = [line for line in ran.calls if line.startswith("cmake --build")]
        return ran

    return run


def test_an_unknown_command_is_named(hak):
    ran = hak("frobnicate")
    assert ran.returncode == 2
    assert "'frobnicate'" in ran.stderr and ran.stderr.count("\n") == 1


def test_help_of_a_command_is_its_own_lines(hak):
    for command in ("run", "build", "test", "check", "coverage", "golden", "docs", "fmt",
                    "harden-prices"):
        ran = hak(command, "--help")
        assert ran.returncode == 0, command
        lines = ran.stdout.splitlines()
        assert lines and all(line.startswith((f"./hak {command}", "    ")) for line in lines)
        assert not ran.calls, "nothing is built for it"
    assert "bench" in " ".join(hak("bench", "--help").calls)
    assert hak("mutants", "--help").calls == ["python tools/mutants.py --help"]


def test_run_runs_the_program_with_and_without_dashes(hak):
    for words in (["--"], []):
        ran = hak("run", *words, "sh", "-c", 'echo "$LD_PRELOAD" "$0" "$@"', "a b", "-x")
        assert ran.stdout.endswith("/out/release/libhakmem.so a b -x\n")
    assert "'--frob'" in hak("run", "--frob").stderr
    assert "the program is missing" in hak("run", "--").stderr


def test_a_command_refuses_words_that_it_does_not_use(hak):
    for command in ("check", "coverage", "site", "fmt", "docs", "golden"):
        ran = hak(command, "nonsense")
        assert ran.returncode == 2 and "'nonsense'" in ran.stderr and not ran.calls
        assert ran.stderr.count("\n") == 1


def test_build_refuses_what_is_no_preset(hak):
    for word in ("nonsense", "--frob", "base"):
        ran = hak("build", word)
        assert ran.returncode == 2 and f"'{word}'" in ran.stderr and not ran.calls
    assert hak("build", "tiny").builds == ["cmake --build out/tiny"]
    assert hak("build", "musl").builds == ["cmake --build out/musl"]


def test_a_substring_builds_what_its_tests_run(hak):
    for word in ("unit_base_list", "unit.base.list_test", "a_started_list"):
        ran = hak("test", word)
        assert ran.returncode == 0, ran.stderr
        assert ran.builds == [f"cmake --build out/{build} --target tests/unit_base_list_test"
                              for build in ("debug", "tiny", "tsan", "release", "arm64")]
        assert ran.calls[-1].startswith("ctest ") and " -R " in ran.calls[-1]
    ran = hak("test", "release.preload.fork")
    assert ran.builds == ["cmake --build out/release --target libhakmem.so tests/fork_preload"]
    assert hak("test", "make_preload").builds == ["cmake --build out/release"]


def test_ctest_finds_the_names_that_were_chosen(hak):
    assert hak("test", "unit_base.list").calls[-1].endswith("-R unit[._]base[._]list")


def test_a_name_that_no_test_has_is_told_before_anything_is_built(hak):
    ran = hak("test", "no_such_test")
    assert ran.returncode == 1 and "'no_such_test'" in ran.stderr
    assert not ran.builds and not any(call.startswith("ctest") for call in ran.calls)


def test_without_a_substring_all_is_built_but_of_debug_and_tiny_what_tests_run(hak):
    programs = "tests/fork_preload tests/unit_base_list_test"
    assert hak("test").builds == [
        f"cmake --build out/debug --target libhakmem.so {programs.replace(' ', ' tests/soak ')}",
        f"cmake --build out/tiny --target libhakmem.so {programs}",
        *(f"cmake --build out/{build}" for build in ("tsan", "release", "arm64"))]
    assert "'--ful'" in hak("test", "--ful").stderr
    assert "'a'" in hak("test", "a", "b").stderr
