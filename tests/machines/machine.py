#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""machine.py NAME: boots a kernel in an emulator, with a libc and hakmem, and runs tests there.

Which caches serve a program depends on the kernel and on libc: those of processors by `mm_cid`
(Linux 6.3) or by `cpu_id`, or those of threads (glibc before 2.35). The first test of each machine
says by hakmem's statistics which ones were in force, so that no machine passes on a fallback. If
one fails, hakmem corrupts memory, or loses its caches, on systems that are not the developer's.

The environment says where hakmem was built (OUT); HAK_FULL that the tests may take long. Exit
status: 0 passed, 1 failed, 77 skipped. Without a name: the names.
"""
import json
import os
import pathlib
import platform
import re
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

from packages import ROOT, STORE, Missing, Release

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
BOOT_S = 120
# The kernel patches its own code while it starts, which the emulator's processors do not always see
# together: it dies before the first process, once in a while, and is started again.
BOOTS_MOST = 4

AMD64 = {
    "debian": "amd64", "compiler": "gcc", "triplet": "x86_64-linux-gnu",
    "loader": "lib64/ld-linux-x86-64.so.2", "console": "ttyS0",
    "emulator": ["qemu-system-x86_64", "-M", "pc", "-cpu", "max"],
}
ARM64 = {
    "debian": "arm64", "compiler": "aarch64-linux-gnu-gcc", "triplet": "aarch64-linux-gnu",
    "loader": "lib/ld-linux-aarch64.so.1", "console": "ttyAMA0",
    "emulator": ["qemu-system-aarch64", "-M", "virt,gic-version=3", "-cpu", "neoverse-n1"],
}

UNREGISTERED = "libc registers no restartable sequences"
BY_PROCESSOR = "caches belong to processors"

# Of a machine: the processor, the releases that kernel and libc come from, what their versions
# begin with, how many bytes libc registers for restartable sequences (more than 32: from 33 on),
# and by which number caches are told apart.
MACHINES = {
    "x86_64_linux_5_10_glibc_2_31": (AMD64, "bullseye", "5.10.", "bullseye", "2.31", 0, "slot"),
    "x86_64_linux_5_10_glibc_2_41": (AMD64, "bullseye", "5.10.", "trixie", "2.41", 32, "cpu_id"),
    "x86_64_linux_6_1_glibc_2_36": (AMD64, "bookworm", "6.1.", "bookworm", "2.36", 32, "cpu_id"),
    "x86_64_linux_6_12_glibc_2_36": (AMD64, "trixie", "6.12.", "bookworm", "2.36", 32, "mm_cid"),
    "x86_64_linux_newest_glibc_2_36": (AMD64, "sid", "", "bookworm", "2.36", 32, "mm_cid"),
    "x86_64_linux_newest_glibc_newest": (AMD64, "sid", "", "sid", "2.", 33, "mm_cid"),
    "arm64_linux_5_10_glibc_2_36": (ARM64, "bullseye", "5.10.", "bookworm", "2.36", 32, "cpu_id"),
    "arm64_linux_6_12_glibc_2_41": (ARM64, "trixie", "6.12.", "trixie", "2.41", 32, "mm_cid"),
    "arm64_linux_newest_glibc_2_36": (ARM64, "sid", "", "bookworm", "2.36", 32, "mm_cid"),
    "arm64_linux_newest_glibc_newest": (ARM64, "sid", "", "sid", "2.", 33, "mm_cid"),
}

PRELOAD = ("preload",)
BOTH = ("preload", "linked")
# Of a test: its source, its sentence, or all, a limit in seconds, and how it has hakmem. What
# measures resident memory or time stays away: an emulator knows neither.
RSEQ = "tests/preload/rseq.c"
TESTS = (
    ("tests/machines/aid/mode.c", ["threads_allocate"], 60, BOTH),
    (RSEQ, ["no_block_is_served_twice_by_caches_of_processors"], 200, BOTH),
    (RSEQ, ["no_block_is_served_twice_where_libc_registers_no_sequences"], 200, PRELOAD),
    (RSEQ, ["no_block_is_served_twice_by_caches_of_threads"], 200, PRELOAD),
    ("tests/preload/exec.c", ["a_child_of_vfork_can_become_another_program"], 60, BOTH),
    ("tests/preload/threads.c", ["the_living_use_and_free_blocks_of_dead_threads"], 120, PRELOAD),
    ("tests/preload/threads.c", ["a_cancelled_thread_can_clean_up"], 120, PRELOAD),
    ("tests/preload/threads.c", ["threads_go_on_after_main_has_ended"], 120, PRELOAD),
    ("tests/preload/life.c", ["handlers_can_allocate_wherever_they_interrupt"], 120, PRELOAD),
    ("tests/preload/life.c", ["interrupted_system_calls_do_not_fail_requests"], 120, PRELOAD),
    ("tests/preload/fork.c", [], 300, PRELOAD),
    ("tests/preload/raw_fork.c", ["copies_by_clone_live_beside_hakmems_own_thread"], 60, PRELOAD),
    ("tests/preload/raw_fork.c", ["copies_by_several_threads_that_allocate_live"], 60, PRELOAD),
)
# An emulator needs longer for what a few seconds do.
VARIABLES = {"mode": ["HAKMEM_STATS=json"],
             "rseq": ["RSEQ_TEST_MS=20000", "RSEQ_TEST_OPERATIONS=1000000", "HAK_EMULATED=1"],
             "raw_fork": ["HAK_EMULATED=1"]}
# Programs of the build's own folder, if it has unit tests, as they are: on a libc as new as the
# build's.
UNIT_TESTS = ("unit_heap_cpu_cache_test", "unit_heap_bins_test", "unit_os_rseq_test")
UNIT_LIBC = (2, 36)

# Not for machines whose caches belong to threads.
PROCESSORS_ONLY = "no_block_is_served_twice_by_caches_of_processors"

LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1",
             "libgcc_s.so.1")
FLAGS = ("-std=gnu11", "-O2", "-g1", "-w", "-pthread", "-fno-builtin-malloc",
         "-fno-builtin-calloc", "-fno-builtin-realloc", "-fno-builtin-free", "-Wl,--as-needed")
# What newer functions were called before.
OLD_NAMES = {"2.31": ("-Dmallinfo2=mallinfo",)}


class Failed(Exception):
    """A machine does not do what it should."""


def check(sentence, is_true, *seen):
    if not is_true:
        raise Failed(": ".join([sentence, *map(str, seen)]))


def call(*command):
    """Runs a command that must end well."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    check(f"{command[0]} ends well", done.returncode == 0, done.stdout[-2000:])


def find(folder, name):
    """A file of that name somewhere in a folder."""
    for path in sorted(folder.rglob(name)):
        if path.is_file():
            return path
    raise Missing(f"{folder.name} has no {name}")


def kernel(processor, suite):
    """The kernel's image."""
    release = Release(suite, processor["debian"])
    meta = f"linux-image-cloud-{processor['debian']}"
    package = release.depended(meta, r"linux-image-[0-9][^ ,]*")
    if package is None:
        raise Missing(f"{suite} has no {meta}")
    binary = release.depended(package, r"linux-binary-[0-9][^ ,]*")
    return find(release.tree("kernel", [binary or package]), "vmlinuz*")


def libc(processor, suite):
    """A folder with libc, its headers, and what gcc's programs need besides."""
    return Release(suite, processor["debian"]).tree(
        "libc", ["libc6", "libc6-dev", "linux-libc-dev", "libgcc-s1"])


class Archive:
    """A file system for the kernel's beginning: cpio, as the kernel's documents have it."""

    def __init__(self):
        self.parts = []
        self.known = set()

    def add(self, name, mode, content=b"", device=(0, 0)):
        parent = os.path.dirname(name)
        if parent and parent not in self.known:
            self.add(parent, stat.S_IFDIR | 0o755)
        self.known.add(name)
        numbers = (len(self.known), mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name) + 1, 0)
        head = b"070701" + "".join(f"{number:08x}" for number in numbers).encode()
        for part in (head + name.encode() + b"\0", content):
            self.parts.append(part + b"\0" * (-len(part) % 4))

    def add_file(self, name, path):
        self.add(name, stat.S_IFREG | 0o755, pathlib.Path(path).read_bytes())

    def write(self, path):
        self.add("TRAILER!!!", 0)
        pathlib.Path(path).write_bytes(b"".join(self.parts))


class Machine:
    """One row of MACHINES."""

    def __init__(self, name, work):
        (self.processor, self.kernel_suite, self.kernel_version, self.libc_suite,
         self.libc_version, self.registered_bytes, self.number) = MACHINES[name]
        self.work = work
        self.out = pathlib.Path(os.environ.get("OUT", ROOT / "out/release"))
        self.libc = libc(self.processor, self.libc_suite)
        self.kernel = kernel(self.processor, self.kernel_suite)
        self.archive = Archive()
        self.jobs = []
        self.said = {}
        self.limit_s = BOOT_S

    def compile(self, source, target, *more):
        """A program for the machine's libc, which comes before the compiler's own."""
        libraries = self.libc / "usr/lib" / self.processor["triplet"]
        headers = self.libc / "usr/include"
        names = OLD_NAMES.get(self.libc_version, ())
        call(self.processor["compiler"], f"--sysroot={self.libc}", f"-B{libraries}",
             f"-L{libraries}", *FLAGS, *names, "-isystem", headers / self.processor["triplet"],
             "-isystem", headers, "-I", ROOT / "tests",
             "-I", ROOT / "include", *more, ROOT / source, "-o", target, "-lm", "-ldl", "-lrt")

    def add_job(self, name, limit_s, *words):
        self.jobs.append(" ".join([name, str(limit_s), *words]))
        self.limit_s += limit_s

    def add_test(self, source, sentence, limit_s, how):
        stem = pathlib.Path(source).stem
        name = f"{stem}_{how}"
        if self.number == "slot" and sentence == [PROCESSORS_ONLY]:
            return
        if not (self.work / name).exists():
            object_first = [self.out / "hakmem.o"] if how == "linked" else []
            self.compile(source, self.work / name, *object_first)
            self.archive.add_file(f"bin/{name}", self.work / name)
        words = list(VARIABLES.get(stem, []))
        words += ["LD_PRELOAD=/lib/libhakmem.so"] if how == "preload" else []
        self.add_job(".".join([name, *sentence]), limit_s, *words, f"/bin/{name}", *sentence)

    def add_unit_tests(self):
        if tuple(map(int, re.findall(r"\d+", self.libc_version)[:2])) < UNIT_LIBC:
            return
        if not list((self.out / "tests").glob("unit_*")):
            return
        for name in UNIT_TESTS:
            self.archive.add_file(f"bin/{name}", self.out / "tests" / name)
            self.add_job(name, 300, f"/bin/{name}")

    def build(self):
        """The file system with all that runs."""
        init = self.work / "init"
        call(self.processor["compiler"], "-static", "-O1", HERE / "aid/init.c", "-o", init)
        self.archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
        self.archive.add_file("init", init)
        self.archive.add("bin/true", stat.S_IFLNK | 0o777, b"/init")
        self.archive.add_file(self.processor["loader"],
                              find(self.libc, os.path.basename(self.processor["loader"])))
        for name in LIBRARIES:
            self.archive.add_file(f"lib/{name}", find(self.libc, name))
        self.archive.add_file("lib/libhakmem.so", self.out / "libhakmem.so")
        for source, sentence, limit_s, ways in TESTS:
            for how in ways:
                self.add_test(source, sentence, limit_s, how)
        self.add_unit_tests()
        self.archive.add("tests", stat.S_IFREG | 0o644, "\n".join(self.jobs).encode() + b"\n")
        self.archive.write(self.work / "initramfs")

    def command(self):
        return [*self.processor["emulator"], "-accel", "tcg,thread=multi", "-smp", "2",
                "-m", "2048", "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
                "-kernel", self.kernel, "-initrd", self.work / "initramfs", "-append",
                f"console={self.processor['console']} quiet panic=-1 mitigations=off rseq_debug=1"]

    def boot_once(self, end_s):
        """What the machine said until it, or the time, ended."""
        lines = []
        with subprocess.Popen([str(word) for word in self.command()], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as emulator:
            try:
                for line in read_lines(emulator.stdout, end_s):
                    print(line, flush=True)
                    lines.append(line)
            finally:
                emulator.kill()
        return lines

    def boot(self):
        """Runs the machine; what each of its tests said, and how it ended."""
        end_s = time.monotonic() + self.limit_s
        for _ in range(BOOTS_MOST):
            lines = self.boot_once(end_s)
            if any(line.startswith("@ ") for line in lines):
                break
            print("the kernel did not get to its first process", flush=True)
        check("the machine ran to its end", "@ done" in lines, "see above")
        return lines

    def judge(self, lines):
        """Of every test: it ended well, and skipped nothing."""
        name = None
        ended = {}
        for line in lines:
            words = line.split()
            if words[:2] == ["@", "begin"]:
                name = words[2]
                self.said[name] = []
            elif words[:2] == ["@", "end"]:
                ended[name], name = int(words[3]), None
            elif name is not None:
                self.said[name].append(line)
        for job in self.jobs:
            test = job.split()[0]
            check(f"{test} ends well", ended.get(test) == 0, ended.get(test))
        skipped = {words[1] for said in self.said.values() for words in map(str.split, said)
                   if len(words) == 2 and words[0] == "skipped"}
        check("nothing is skipped", not skipped, skipped)

    def judge_mode(self, name):
        """The caches in force are those that the machine is there for."""
        said = "\n".join(self.said[name])
        seen = dict(re.findall(r"(\w+)=(\S+)", re.search(r"^mode (.*)$", said, re.M)[1]))
        stats = json.loads(re.search(r'^\{"schema".*$', said, re.M)[0])
        check("the kernel", seen["kernel"].startswith(self.kernel_version), seen["kernel"])
        check("libc", seen["libc"].startswith(self.libc_version), seen["libc"])
        registered = min(int(seen["registered_bytes"]), 33)
        check("the registered bytes", registered == self.registered_bytes, registered)
        is_slot = self.number == "slot"
        kind = "thread" if is_slot else "processor"
        check("whose the caches are", stats["rseq"] == kind, stats["rseq"])
        check("their number", stats["rseq_id"] == self.number, stats["rseq_id"])
        reason = UNREGISTERED if is_slot else BY_PROCESSOR
        check("the reason", stats["rseq_reason"].startswith(reason), stats["rseq_reason"])
        caches = stats["caches"]
        check("caches are of one kind", caches and all(kind in cache for cache in caches), caches)
        popped = sum(size["popped_blocks"] for size in stats["classes"])
        check("the caches served", popped > int(seen["requests"]) * 9 // 10, popped)
        print(f"{name}: {seen}, {kind} by {stats['rseq_id']}, {popped} requests from caches")


def read_lines(stream, end_s):
    """Lines until the stream or the time ends."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while selector.select(max(0, end_s - time.monotonic())):
            part = os.read(stream.fileno(), 65536)
            if not part:
                break
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace").rstrip("\r")
    yield rest.decode(errors="replace")


def run(name, work):
    machine = Machine(name, work)
    machine.build()
    machine.judge(machine.boot())
    for job in machine.jobs:
        if job.startswith("mode_"):
            machine.judge_mode(job.split()[0])


def main():
    if len(sys.argv) != 2:
        print("\n".join(MACHINES))
        return 0
    name = sys.argv[1]
    processor = MACHINES[name][0]
    needs = (processor["emulator"][0], processor["compiler"], "apt-get", "dpkg-deb", "tar")
    work = pathlib.Path(tempfile.mkdtemp(prefix="machine."))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        if "HAK_FULL" not in os.environ:
            raise Missing("machines take long: ./hak test --full")
        for program in needs:
            if shutil.which(program) is None:
                raise Missing(f"no {program}")
        STORE.mkdir(parents=True, exist_ok=True)
        run(name, work)
        return 0
    except Missing as missing:
        print(f"skipped: {missing}")
        return SKIPPED
    except Failed as failed:
        print(f"FAILED: {failed}")
        return 1
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main())
