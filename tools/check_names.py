# SPDX-License-Identifier: MIT
"""What the linker sees of libhakmem.a is hak_*, hakmem_*, or listed in cmake/exports.map."""
import fnmatch
import re

from checklib import BUILD, finish, run, text


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


def main():
    surface = exported()
    inside = defined("--extern-only", BUILD / "libhakmem.a")
    outside = defined("-D", BUILD / "libhakmem.so")
    allowed = ["hak_*", *surface]
    problems = [f"libhakmem.a: {name}" for name in inside
                if not any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed)]
    problems += [f"libhakmem.so exports {name}" for name in outside if name.startswith("hak_")]
    finish("names", f"{len(inside)} linked, {len(outside)} exported", problems)


main()
