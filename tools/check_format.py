# SPDX-License-Identifier: MIT
"""C and C++ are formatted as .clang-format says; --fix formats them."""
import sys
from pathlib import Path

from checklib import code, finish, run

CLANG_FORMAT = Path(sys.executable).with_name("clang-format")


def main():
    files = code()
    how = ["-i"] if "--fix" in sys.argv else ["--dry-run", "-Werror"]
    status, output = run(CLANG_FORMAT, "--style=file", *how, *files) if files else (0, "")
    wrong = sorted({line.split(":")[0] for line in output.splitlines() if "error:" in line})
    if status and not wrong:
        wrong = [output]
    problems = [f"{file}: ./hak fmt would change it" for file in wrong]
    finish("format", f"{len(files)} files", problems)


main()
