# SPDX-License-Identifier: MIT
"""The command `hakmem`; after `run` and its options a Python program may stand by itself."""
import os
import sys
from pathlib import Path

TAKE_A_VALUE = ("--mode", "-o")  # the options of `hakmem run` that are two words


def with_python(arguments):
    """The same, with this Python before a program that is Python's: a file, or -m and a module."""
    at = 1
    while at < len(arguments) and arguments[at].startswith("-"):
        if arguments[at] in ("-m", "-c"):
            break
        if arguments[at] == "--":
            return arguments
        at += 2 if arguments[at] in TAKE_A_VALUE else 1
    if at < len(arguments) and (arguments[at] in ("-m", "-c") or arguments[at].endswith(".py")):
        return [*arguments[:at], sys.executable, *arguments[at:]]
    return arguments


def main():
    command = str(Path(__file__).parent / "bin/hakmem")
    arguments = sys.argv[1:]
    if arguments[:1] == ["run"]:
        arguments = with_python(arguments)
    os.execv(command, [command, *arguments])


if __name__ == "__main__":
    main()
