# SPDX-License-Identifier: MIT
"""What ./hak says and does with its words: a copy of it among stand-ins for the tools that it
calls, which note how they were called. If this fails, a typing mistake costs minutes of building,
or runs something else than what was asked for."""
import json
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

    def run(*words, script=tmp_path / "hak"):
        calls.write_text("")
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        ran = subprocess.run(["sh", script, *words], cwd=tmp_path, text=True,
                             capture_output=True, check=False, timeout=100,
                             env={**os.environ, "PATH": path, "CALLS": str(calls)})
        ran.calls = calls.read_text().splitlines()
        ran.builds = [line for line in ran.calls if line.startswith("cmake --build")]
        return ran

    run.tree = tmp_path
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
    ran = hak("build", "tiny", "hakmem_shared", "more")
    assert ran.returncode == 2 and "'more'" in ran.stderr and not ran.calls
    assert hak("build", "tiny").builds == ["cmake --build out/tiny"]
    assert hak("build", "musl").builds == ["cmake --build out/musl"]


def test_a_tool_looks_at_its_words_before_anything_is_built(hak):
    python = hak.tree / "out/venv/bin/python"
    python.write_text('#!/bin/sh\necho "$HAK_WORDS_ONLY $*" >>"$CALLS"\nexit 2\n')
    for command, tool in (("bench", "bench"), ("mutants", "mutants"),
                          ("harden-prices", "harden_prices")):
        ran = hak(command, "--bogus")
        assert ran.returncode == 2
        assert ran.calls == [f"1 tools/{tool}.py --bogus"]


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


def test_a_path_that_cannot_be_preloaded_is_refused(hak):
    for name in ("a b", "a:b"):
        (hak.tree / name).symlink_to(hak.tree)
        for words in (["run"], ["run", "true"], ["run", "--", "true"], ["bench"],
                      ["harden-prices"]):
            ran = hak(*words, script=hak.tree / name / "hak")
            assert ran.returncode == 1 and f"/{name}'" in ran.stderr, words
            assert ran.stderr.count("\n") == 1 and not ran.calls
        assert hak("build", script=hak.tree / name / "hak").builds


def test_a_link_to_it_leads_to_its_folder(hak):
    (hak.tree / "bin/link").symlink_to("../hak")
    assert hak("build", script=hak.tree / "bin/link").builds == ["cmake --build out/release"]
    assert not (hak.tree / "bin/out").exists()


def test_help_needs_no_folder_of_its_own(hak):
    shutil.rmtree(hak.tree / "out")
    (hak.tree / "out").write_text("no folder")
    for words in (["help"], [], ["--help"], ["build", "--help"]):
        ran = hak(*words)
        assert ran.returncode == 0 and "./hak build" in ran.stdout and not ran.stderr, words


def test_an_old_cmake_is_told_by_its_number(hak):
    cmake = hak.tree / "bin/cmake"
    stand_in = cmake.read_text()
    for version in ("2.8.12", "3.9.1", "3.13.0", "3.19.8"):
        cmake.write_text(f"{stand_in}echo 'cmake version {version}'\n")
        ran = hak("build")
        assert ran.returncode == 1 and not ran.builds
        assert f"3.20 is needed, not {version};" in ran.stderr and ran.stderr.count("\n") == 1
    for version in ("3.20.0", "3.31.2", "4.1.0"):
        cmake.write_text(f"{stand_in}echo 'cmake version {version}'\n")
        assert hak("build").builds


def test_the_presets_ask_for_no_newer_cmake():
    assert json.loads((ROOT / "CMakePresets.json").read_text())["version"] == 2


def test_no_policy_stays_when_the_terminal_goes(hak):
    for signal in ("HUP", "INT", "TERM"):
        script = hak.tree / "installs"
        policy = hak.tree / "policy-rc.d"
        text = (ROOT / "hak").read_text()
        assert "policy=/usr/sbin/policy-rc.d" in text
        script.write_text(text.replace("policy=/usr/sbin/policy-rc.d", f"policy={policy}")
                          .replace("build_needs='", "build_needs='no_such_tool "))
        (hak.tree / "bin/id").write_text("#!/bin/sh\necho 0\n")
        (hak.tree / "bin/apt-get").write_text(
            f'#!/bin/sh\nls "{policy}" >>"$CALLS"\nkill -{signal} $PPID\n')
        for name in ("id", "apt-get"):
            (hak.tree / "bin" / name).chmod(0o755)
        ran = hak("build", script=script)
        assert ran.returncode != 0 and ran.calls == [str(policy)], ran.stderr
        assert not policy.exists(), signal


def test_nothing_stays_of_what_is_interrupted(hak):
    for signal, status in (("HUP", 129), ("INT", 130), ("TERM", 143)):
        (hak.tree / "bin/cmake").write_text(
            f"#!/bin/sh\n[ $1 != --build ] || kill -{signal} $PPID\n")
        assert hak("run", "true").returncode == status
        assert not list((hak.tree / "out").glob("quiet.*")), signal


def test_sources_without_a_repository_need_no_git(hak):
    (hak.tree / "packaging").mkdir()
    (hak.tree / "packaging/package.sh").write_text('echo "packs $*"\n')
    script = hak.tree / "hak"
    script.write_text(script.read_text().replace("need git", "need no_such_git"))
    for kind in ("tarball", "alpine"):
        assert hak("package", kind).stdout == f"packs {kind}\n"
    (hak.tree / ".git").mkdir()
    assert "no_such_git" in hak("package", "alpine").stdout + hak("package", "alpine").stderr
