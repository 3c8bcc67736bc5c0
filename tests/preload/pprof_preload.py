#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The profile that the library writes itself: on request, by the API, and at the end. Readers that
others wrote open it. If this fails, people get files that pprof refuses, or wrong numbers."""
import gzip
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

import processes
from processes import HAKMEM, OUT, check

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOLDER = OUT / "tests" / "cli_holder"
SETTINGS = {"HAKMEM_HEAP_PROFILE_RATE": "2048", "HAKMEM_HEAP_PROFILE_SAMPLES": "0"}

DUMP_MOST = 1024 # statistics are longer, and what the command asks is shorter


def start(folder, prepare=None, program=HOLDER, **settings):
    """A program that holds 8 MB by yard::keep; once it does."""
    return processes.start([program], {"cwd": folder, "stderr": subprocess.PIPE,
                                      "preexec_fn": prepare},
                           **{**SETTINGS, "HAKMEM_STATS_SHM": "1", **settings})


def stop(process):
    """Lets it end well; what it said on standard error."""
    said = process.communicate("", timeout=300)[1]
    check(f"it ends well: {said}", process.returncode == 0)
    return said


def command(folder, *arguments, status=0):
    """Runs the command; what it said."""
    ran = subprocess.run([HAKMEM, *map(str, arguments)], cwd=folder, capture_output=True,
                         timeout=300, check=False)
    check(f"{arguments}: {ran.returncode}, {ran.stderr}", ran.returncode == status)
    return ran.stdout if status == 0 else ran.stderr.decode()


def live_of(folder, path, function):
    """Live bytes by a function, as the command reads the file."""
    folded = command(folder, "profile", path, "--folded").decode()
    return sum(int(line.rpartition(" ")[2]) for line in folded.splitlines() if function in line)


def check_protoc(path):
    """What protoc makes of it, by the public description of the messages."""
    if shutil.which("protoc") is None:
        return
    proto = ROOT / "cli/profiles/profile.proto"
    with open(path, "rb") as file:
        text = subprocess.run(["protoc", "--decode=pprof.Profile", f"--proto_path={proto.parent}",
                               proto], stdin=file, capture_output=True, text=True, check=False)
    check(f"protoc reads it: {text.stderr}", text.returncode == 0 and text.stderr == "")
    check("no field is unknown to it", not re.search(r"^\s*\d+[:{ ]", text.stdout, re.M))
    strings = re.findall(r'^string_table: "(.*)"$', text.stdout, re.M)
    check(f"the strings begin well: {strings[:3]}", strings[:3] == ["", "alloc_objects", "count"])
    types = [tuple(strings[int(n)] for n in pair) for pair in re.findall(
        r"^sample_type {\n  type: (\d+)\n  unit: (\d+)\n}", text.stdout, re.M)]
    check(f"the types: {types}", types == [
        ("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"),
        ("inuse_space", "bytes"), ("lifetime", "nanoseconds")])
    first = re.search(r"^mapping {\n(?:  .*\n)*?  filename: (\d+)\n  build_id: (\d+)", text.stdout,
                      re.M)
    check("the program comes first", strings[int(first[1])].endswith("/cli_holder"))
    check("with its build id", re.fullmatch("[0-9a-f]{40}", strings[int(first[2])]))
    locations = re.findall(r"^location {\n  id: (\d+)\n", text.stdout, re.M)
    check("locations are told apart", locations and len(locations) == len(set(locations)))
    for used in re.findall(r"^  location_id: (\d+)$", text.stdout, re.M):
        check(f"location {used} is there", used in locations)


def check_strings(path):
    """A reader that refuses a file for one string that is no UTF-8."""
    if shutil.which("protoc") is None:
        return
    whole = path.read_bytes()
    whole = gzip.decompress(whole) if whole.startswith(b"\x1f\x8b") else whole
    ran = subprocess.run(["protoc", "--decode=pprof.Profile",
                          f"--proto_path={ROOT / 'cli/profiles'}",
                          ROOT / "cli/profiles/profile.proto"], input=whole, capture_output=True,
                         timeout=300, check=False)
    check(f"protoc reads {path.name}: {ran.stderr}", ran.returncode == 0 and ran.stderr == b"")
    check("the file's name is there", b"/h?lder\"" in ran.stdout)


def check_odd_name(folder):
    """A program whose file's name is no UTF-8."""
    program = folder / os.fsdecode(b"h\xf6lder")
    shutil.copy(HOLDER, program)
    process = start(folder, program=program, HAKMEM_HEAP_PROFILE="on")
    command(folder, "ctl", process.pid, "dump", "--pprof", "own")
    command(folder, "profile", process.pid, "--pprof", "named")
    near("with its functions", live_of(folder, folder / "named", "yard::keep"), 8000000)
    for name in ("own", "named"):
        check_strings(folder / name)
    check("nothing else is printed", stop(process) == "")


def check_go(folder, path):
    """Go's pprof, which checks all references."""
    if shutil.which("go") is None:
        return
    known = subprocess.run(["go", "tool", "pprof", "-h"], capture_output=True, check=False)
    if known.returncode not in (0, 2):
        return
    ran = subprocess.run(["go", "tool", "pprof", "-top", "-unit=kB", "-sample_index=inuse_space",
                          path],
                         cwd=folder, capture_output=True, text=True, check=False,
                         env={**os.environ, "PPROF_TMPDIR": str(folder)})
    check(f"go reads it: {ran.stderr}", ran.returncode == 0)
    check(f"go sees the program: {ran.stdout}", "File: cli_holder" in ran.stdout)
    # Of what clang writes it does not read namespaces.
    keep = "keep" if b"clang version" in HOLDER.read_bytes() else "yard::keep"
    row = re.search(rf"^ *([0-9.]+)kB .* ({keep}|\[cli_holder\])$", ran.stdout, re.M)
    check(f"go sees 8 MB: {ran.stdout}", row and 7000 < float(row[1]) < 8500)


def near(what, value, expected):
    """Within a tenth."""
    check(f"{what}: {value}, near {expected}", 0.9 * expected < value < 1.1 * expected)


def check_on_request(folder):
    """hakmem ctl PID dump --pprof."""
    process = start(folder, HAKMEM_HEAP_PROFILE="on")
    said = command(folder, "ctl", process.pid, "dump", "--pprof").decode()
    path = folder / f"hakmem.{process.pid}.pprof"
    check(f"it says where: {said}", said == f"process {process.pid}: profile in {path.name}\n")
    check("only for its owner", path.stat().st_mode & 0o777 == 0o600)
    near("what it keeps", live_of(folder, path, "yard::keep"), 8000000)
    check_protoc(path)
    check_go(folder, path)
    command(folder, "ctl", process.pid, "dump", "--pprof")
    check("another one", (folder / f"hakmem.{process.pid}.2.pprof").exists())
    whole = command(folder, "ctl", process.pid, "dump", "--pprof", "-")
    check("to standard output", whole[:2] == b"\x32\x00")
    check("the statistics as before",
          command(folder, "ctl", process.pid, "dump", "-").startswith(b"{"))
    command(folder, "ctl", process.pid, "dump", "--never", status=2)
    check("nothing else is printed", stop(process) == "")
    silent = start(folder)
    said = command(folder, "ctl", silent.pid, "dump", "--pprof", "no", status=1)
    check(f"without samples: {said}", "nothing has been sampled yet" in said)
    stop(silent)


FORMS = {"--heap-v2": "heap", "--folded": "folded", "--profile-json": "profile.json"}


def check_texts(folder, pid, prefix):
    """Each text, by readers that others wrote and by the command."""
    heap = folder / f"{prefix}{pid}.heap"
    check("heap_v2 begins well", heap.read_text().startswith("heap_v2/1\n  t*: "))
    if shutil.which("jeprof") is not None:
        ran = subprocess.run(["jeprof", "--text", "--show_bytes", HOLDER, heap], text=True,
                             capture_output=True, timeout=300, check=False)
        row = re.search(r"^Total: (\d+) B$", ran.stdout, re.M)
        check(f"jeprof reads it: {ran.stderr}", ran.returncode == 0 and row)
        near("jeprof's total", int(row[1]), 8000000)
        check(f"jeprof names it: {ran.stdout}", "yard" in ran.stdout and "keep" in ran.stdout)
    lines = (folder / f"{prefix}{pid}.folded").read_text().splitlines()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        check(f"a folded line: {line}", count.isdigit() and (stack == "(no stack)" or all(
            re.fullmatch(r"(/[^;]*\+)?0x[0-9a-f]+", frame) for frame in stack.split(";"))))
    near("folded", sum(int(line.rpartition(" ")[2]) for line in lines), 8000000)
    whole = json.loads((folder / f"{prefix}{pid}.profile.json").read_text())
    near("the sum in JSON", whole["live_bytes"], 8000000)
    check("of its sites", whole["live_bytes"] == sum(s["live_bytes"] for s in whole["sites"]))
    check("of this process", whole["pid"] == pid and whole["program"] == "cli_holder")
    ids = {pathlib.Path(module["path"]).name: module["build_id"] for module in whole["modules"]}
    check(f"of which files: {ids}", re.fullmatch("[0-9a-f]{40}", ids.get("cli_holder", "")))
    for suffix in FORMS.values():
        near(suffix, live_of(folder, folder / f"{prefix}{pid}.{suffix}", "yard::keep"), 8000000)
    other = folder / "other.json"
    for module in whole["modules"]:
        module["build_id"] = "00" * 20
    other.write_text(json.dumps(whole))
    check("a file that is another one by now names nothing",
          live_of(folder, other, "yard::keep") == 0)


def check_forms(folder):
    """heap_v2, folded stacks and JSON: on request, and at the end."""
    process = start(folder, HAKMEM_HEAP_PROFILE="on")
    for option, suffix in FORMS.items():
        said = command(folder, "ctl", process.pid, "dump", option).decode()
        check(f"it says where: {said}",
              said == f"process {process.pid}: profile in hakmem.{process.pid}.{suffix}\n")
    check_texts(folder, process.pid, "hakmem.")
    check("nothing else is printed", stop(process) == "")
    for form, suffix in (("heap_v2", "heap"), ("folded", "folded"), ("json", "profile.json")):
        process = start(folder, HAKMEM_HEAP_PROFILE=form)
        check("it says nothing", stop(process) == "")
        near(form, live_of(folder, folder / f"hakmem.{process.pid}.{suffix}", "yard::keep"),
             8000000)


def check_asleep(folder):
    """A process that sleeps: its profile lies in shared memory, its statistics do not."""
    process = start(folder, HAKMEM_HEAP_PROFILE="on", HAKMEM_STATS_SHM="0")
    for option, suffix in {**FORMS, "--pprof": "pprof"}.items():
        said = command(folder, "ctl", "--wait", 1, process.pid, "dump", option).decode()
        path = folder / f"hakmem.{process.pid}.{suffix}"
        check(f"it says from where: {said}", said == f"process {process.pid}: profile in "
              f"{path.name}, from its shared memory: the process itself does not answer\n")
        near(suffix, live_of(folder, path, "yard::keep"), 8000000)
    said = command(folder, "ctl", "--wait", 1, process.pid, "dump", status=1)
    check(f"one line: {said}", "did not answer" in said and said.count("\n") == 1)
    stop(process)


def check_at_end(folder):
    """heap_profile=pprof; a name of its own, none for a program that sampled nothing."""
    process = start(folder, HAKMEM_HEAP_PROFILE="pprof")
    check("it says nothing", stop(process) == "")
    path = folder / f"hakmem.{process.pid}.pprof"
    check("only for its owner", path.stat().st_mode & 0o777 == 0o600)
    near("what it kept", live_of(folder, path, "yard::keep"), 8000000)
    check_protoc(path)
    for name in ("own.pprof", "own.2.pprof"):
        process = start(folder, HAKMEM_HEAP_PROFILE="pprof", HAKMEM_STATS_FILE="own")
        check("it says nothing", stop(process) == "")
        near(name, live_of(folder, folder / name, "yard::keep"), 8000000)
    process = start(folder, HAKMEM_HEAP_PROFILE="pprof", HAKMEM_STATS_FILE="no/such/%p")
    check("one line", stop(process) == "hakmem: the heap profile cannot be written to "
          f"{folder}/no/such/{process.pid}.pprof: no such file or directory (error 2)\n")
    before = set(os.listdir(folder))
    process = start(folder, HAKMEM_HEAP_PROFILE="pprof", HAKMEM_HEAP_PROFILE_RATE="1T")
    check("it says nothing", stop(process) == "")
    check("nothing sampled, no file", set(os.listdir(folder)) == before)


def check_moved(folder):
    """A program that changes to another folder: all files lie where it started."""
    ran = subprocess.run([sys.executable, "-S", "-c", "import os; os.chdir('/')"], cwd=folder,
                         capture_output=True, text=True, timeout=300, check=False,
                         env={**os.environ, "LD_PRELOAD": os.environ["PRELOAD_LIB"],
                              "HAKMEM_HEAP_PROFILE": "pprof", "HAKMEM_HEAP_PROFILE_RATE": "1",
                              "HAKMEM_STATS": "text", "HAKMEM_STATS_FILE": "moved"})
    check(f"it says nothing: {ran}", ran.returncode == 0 and ran.stderr == "")
    check("statistics and profile lie together",
          (folder / "moved").exists() and (folder / "moved.pprof").exists())


def limit_files(pid=0, most=100):
    """As a full disk, for one process."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))


def check_full(folder):
    """What cannot be written whole is not left; the user's own file is."""
    process = start(folder, HAKMEM_HEAP_PROFILE="pprof")
    limit_files(process.pid)
    said = stop(process)
    check(f"one line: {said}", "cannot be written to" in said and said.count("\n") == 1)
    check("the library leaves no part", not (folder / f"hakmem.{process.pid}.pprof").exists())
    process = start(folder, HAKMEM_HEAP_PROFILE="on")
    (folder / "old").write_text("the user's own")
    for name in ([], ["new"], ["old"]):
        before = set(os.listdir(folder))
        ran = subprocess.run([HAKMEM, "ctl", str(process.pid), "dump", *name], cwd=folder,
                             capture_output=True, timeout=300, check=False, restore_signals=False,
                             preexec_fn=lambda: limit_files(most=DUMP_MOST))
        check(f"{name}: {ran}", ran.returncode == 1 and b"cannot be written" in ran.stderr)
        check(f"{name}: the command leaves no part", set(os.listdir(folder)) == before)
    stop(process)


def check_alone(folder):
    """Where the shared file of a profile is too large, the profile at the end has all it had."""
    for form, suffix in (("pprof", "pprof"), ("heap_v2", "heap"), ("folded", "folded"),
                         ("json", "profile.json")):
        process = start(folder, lambda: limit_files(most=1 << 18), HAKMEM_HEAP_PROFILE=form)
        check("no shared file", not os.path.exists(f"/dev/shm/hakmem.profile.{process.pid}"))
        check("it says nothing", stop(process) == "")
        near(f"{form} alone", live_of(folder, folder / f"hakmem.{process.pid}.{suffix}",
                                      "yard::keep"), 8000000)


def check_closed(folder):
    """Programs that close their standard error at their end: the line is there."""
    ran = subprocess.run(["sort", "/dev/null"], cwd=folder, capture_output=True, text=True,
                         timeout=300, check=False,
                         env={**os.environ, "LD_PRELOAD": os.environ["PRELOAD_LIB"],
                              "HAKMEM_HEAP_PROFILE": "pprof", "HAKMEM_HEAP_PROFILE_RATE": "1",
                              "HAKMEM_STATS_FILE": "no/such"})
    check(f"one line: {ran}", ran.stderr == "hakmem: the heap profile cannot be written to "
          f"{folder}/no/such.pprof: no such file or directory (error 2)\n")


with tempfile.TemporaryDirectory() as work:
    check_full(pathlib.Path(work))
    check_closed(pathlib.Path(work))
    check_alone(pathlib.Path(work))
    check_moved(pathlib.Path(work))
    check_on_request(pathlib.Path(work))
    check_odd_name(pathlib.Path(work))
    check_at_end(pathlib.Path(work))
    check_forms(pathlib.Path(work))
    check_asleep(pathlib.Path(work))
print("well")
