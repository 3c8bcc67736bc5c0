# SPDX-License-Identifier: MIT
"""What the linker sees of libhakmem.a is hak_*, hakmem_*, or listed in cmake/exports.map; what
libhakmem.so exports is exactly the reviewed list and what our own header declares; what it asks of
libc is in glibc 2.31 and no point of cancellation, and it needs nothing else; the functions that
cmake/usual_functions.txt orders exist. With --update the list becomes what is exported: review the
difference."""
import fnmatch
import re
import sys

from checklib import BUILD, ROOT, code, finish, run, source_words, text, without_comments

EXPORTS = "tests/install/exports.txt"
REVIEWED = "# What libhakmem.so exports: one name a line, compared by tools/check_names.py."
OLDEST_GLIBC = (2, 31)
# A thread that is to be cancelled ends in these, so malloc calls none (os/file_calls.h): those of
# POSIX, and of glibc, that a file of src/os might use. fcntl is one for locks of files only.
CANCELLATION = set("""
    accept clock_nanosleep close connect creat epoll_wait fallocate fdatasync fsync lockf msync
    nanosleep open open64 openat openat64 pause poll posix_fallocate ppoll pread pread64 preadv
    pselect pthread_cond_timedwait pthread_cond_wait pthread_join pthread_testcancel pwrite
    pwrite64 pwritev read readv recv recvfrom recvmsg select sem_timedwait sem_wait send sendmsg
    sendto sigsuspend sigtimedwait sigwait sigwaitinfo sleep splice system usleep wait waitid
    waitpid write writev
""".split())


def exported():
    """Patterns between global: and local: of the version script."""
    script = re.sub(r"/\*.*?\*/", "", text("cmake/exports.map"), flags=re.S)
    words = script.split("global:")[1].split("local:")[0].split(";")
    return [word.strip() for word in words if word.strip()]


def defined(*command):
    status, output = run("nm", "--defined-only", *command)
    if status:
        finish("names", "", [output])
    return sorted({line.split()[2] for line in output.splitlines() if len(line.split()) == 3})


def declared():
    """Functions of the public headers."""
    return {name for path in code("include") if path.suffix == ".h"
            for name in re.findall(r"\b(hakmem_\w+)\(", without_comments(text(path)))}


def changes(outside):
    """Differences to the reviewed list of exports and the headers."""
    reviewed = {line for line in text(EXPORTS).splitlines() if line and not line.startswith("#")}
    yield from (f"libhakmem.so exports {name}, which neither {EXPORTS} nor a public header names"
                for name in outside if name not in reviewed | declared())
    yield from (f"libhakmem.so does not export {name}, which {EXPORTS} lists"
                for name in sorted(reviewed.difference(outside)))


def too_new():
    """Symbol versions above the oldest glibc, and needed libraries other than libc."""
    _, output = run("readelf", "--wide", "--dynamic", "--version-info", BUILD / "libhakmem.so")
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", output):
        if library != "libc.so.6":
            yield f"libhakmem.so needs {library}"
    versions = sorted(set(re.findall(r"Name: (\w+?)_([\d.]+)", output)))
    if not versions:
        yield "libhakmem.so names no version of libc: nothing was checked"
    for name, version in versions:
        if name != "GLIBC" or tuple(map(int, version.split("."))) > OLDEST_GLIBC:
            yield f"libhakmem.so asks for {name}_{version}; the oldest glibc is 2.31"


def cancelled():
    _, output = run("nm", "-D", "--undefined-only", BUILD / "libhakmem.so")
    names = set(re.findall(r"\b[Uw] (\w+)", output))
    if not names:
        yield "libhakmem.so asks for nothing of libc: nothing was checked"
    for name in sorted(names & CANCELLATION):
        yield f"libhakmem.so calls {name}, a point of cancellation: see src/os/file_calls.h"


def gone():
    words = source_words()
    listed = re.findall(r"^\w+$", text("cmake/usual_functions.txt"), flags=re.M)
    return [f"cmake/usual_functions.txt: {name} is not in src/"
            for name in listed if name not in words]


def main():
    surface = exported()
    inside = defined("--extern-only", BUILD / "libhakmem.a")
    outside = defined("-D", BUILD / "libhakmem.so")
    allowed = ["hak_*", *surface]
    problems = [f"libhakmem.a: {name}" for name in inside
                if not any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed)]
    problems += [f"libhakmem.so exports {name}" for name in outside if name.startswith("hak_")]
    if "--update" in sys.argv:
        (ROOT / EXPORTS).write_text("".join(f"{line}\n" for line in [REVIEWED, *outside]
                                           if line not in declared()))
    problems += [*changes(outside), *too_new(), *cancelled(), *gone()]
    finish("names", f"{len(inside)} linked, {len(outside)} exported", problems)


main()
