# SPDX-License-Identifier: MIT
"""clang-tidy with the checks of .clang-tidy over src/ and cli/."""
import sys
from pathlib import Path

from checklib import BUILD, code, finish, run, side_by_side

CLANG_TIDY = Path(sys.executable).with_name("clang-tidy")
GCC_FLAGS_ARE_FINE = ("--extra-arg=-Wno-unknown-warning-option",
                      "--extra-arg=-Wno-ignored-optimization-argument")


def check(path):
    _, output = run(CLANG_TIDY, "--quiet", "-p", BUILD, *GCC_FLAGS_ARE_FINE, path)
    return [line for line in output.splitlines() if "warning:" in line or "error:" in line]


def main():
    sources = [path for path in code("src", "cli") if path.suffix == ".c"]
    sources.sort(key=lambda path: -path.stat().st_size)  # so that no long one is left for the end
    found = side_by_side(check, sources)
    finish("tidy", f"{len(sources)} files", [line for lines in found for line in lines])


main()
