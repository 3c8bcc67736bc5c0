# SPDX-License-Identifier: MIT
"""The command line of ./hak bench. What is wrong with it is told in one line, before anything is
built, measured or written; an option is refused where it would do nothing."""
import argparse
import math
import os
import re
from pathlib import Path

from . import command, launcher, peers

REPEATS, QUICK_REPEATS, MOST_REPEATS = 10, 3, 1000
LONGEST_S = 7 * 24 * 3600
QUICK_ALLOCATORS = ("hakmem", "system", "mimalloc", "jemalloc", "tcmalloc", "gperftools")
USAGE = f"""\
  ./hak bench                        measure all cases under all allocators
  ./hak bench -- CMD ARGS            measure a program of yours under all allocators that are built
                                     (--peers) or installed: its time, CPU, peak and average memory
  ./hak bench --mimalloc-bench DIR   measure the programs of a built copy of that suite
  ./hak bench compare A B            two allocators or libraries (A.so), measured now, or two
                                     sessions of out/bench; exit status 1 if A is slower anywhere
  ./hak bench report [SESSION]       a web page of the last (or named) session

allocators: {', '.join(peers.DEFAULT)}, noop,
or a file NAME.so, each optionally with variables: hakmem@HAKMEM_MODE=minimal@HAKMEM_THP=off
"""
WORDS = {"run": (0,), "compare": (2,), "report": (0, 1), "program": (0,)}
SHOWN = {"run": "./hak bench", "compare": "compare", "report": "report", "program": "-- CMD ARGS"}
MEASURES = ("run", "compare", "program")
# The commands that an option does something for.
BELONGS = {
    "quick": ("run", "compare"), "only": ("run", "compare"), "mimalloc_bench": ("run", "compare"),
    "allocators": MEASURES, "repeats": MEASURES, "syscalls": MEASURES, "instructions": MEASURES,
    "resume": ("run",), "peers": ("run",), "install": ("run",), "list": ("run",),
    "into": ("program", "report"), "status": ("program",), "timeout": ("program",),
    "name": ("report",), "readme": ("report",)}
# A session that goes on has these already.
RESUMED = ("quick", "only", "allocators", "repeats")


class Parser(argparse.ArgumentParser):
    """One line for what is wrong."""

    def error(self, message):
        line = re.sub(r"[^ -~\u00a0-\uffff]", "?", message)
        self.exit(2, f"{self.prog}: {line}; {self.prog} --help\n")


def _whole(least, most):
    def read(text):
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{least} to {most}, not '{text}'")
        return int(text)
    return read


def _seconds(text):
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"seconds, more than 0 and at most {LONGEST_S}, not "
                                         f"'{text}'")
    return number


def _words(text):
    """The words of A,B, each once."""
    words = text.split(",")
    if not all(words):
        raise argparse.ArgumentTypeError(f"names with a comma between them, not '{text}'")
    return list(dict.fromkeys(words))


def _path(text):
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def _stem(text):
    if not re.fullmatch(r"\w[\w.-]*", text):
        raise argparse.ArgumentTypeError(f"letters, digits, '.', '_' and '-', not '{text}'")
    return text


def _parser():
    parser = Parser(prog="./hak bench", epilog=USAGE, allow_abbrev=False,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="-- CMD ARGS | compare A B | report [SESSION]")
    parser.add_argument("--quick", action="store_true",
                        help=f"fewer cases, short runs, {', '.join(QUICK_ALLOCATORS)} only")
    parser.add_argument("--only", metavar="A,B", type=_words,
                        help="cases whose name or group contains a word")
    parser.add_argument("--allocators", metavar="A,B", type=_words, help="instead of all; the "
                        "first is compared with each of the others")
    parser.add_argument("--repeats", metavar="N", type=_whole(1, MOST_REPEATS), help=f"runs of "
                        f"each, beside a warm-up (default {REPEATS}, quick {QUICK_REPEATS}; a "
                        f"command: {command.REPEATS}, fewer if it is long)")
    parser.add_argument("--resume", nargs="?", const="", metavar="SESSION",
                        help="continue the last (or named) interrupted session")
    parser.add_argument("--syscalls", action="store_true",
                        help="also count memory system calls (strace, in separate runs)")
    parser.add_argument("--instructions", action="store_true",
                        help="also count instructions (callgrind, in separate runs)")
    parser.add_argument("--peers", action="store_true",
                        help="only fetch and build the allocators, and print their versions")
    parser.add_argument("--install", action="store_true",
                        help="install the Debian packages that bench/programs need")
    parser.add_argument("--list", action="store_true", help="only print the cases")
    parser.add_argument("--into", metavar="DIR", type=_path, help="folder of the written files "
                        "(default of report: docs/benchmarks; of a command: a new folder of "
                        "out/bench)")
    parser.add_argument("--mimalloc-bench", metavar="DIR", type=_path, help="measure the programs "
                        "of a built copy of mimalloc-bench, with the arguments that it has")
    parser.add_argument("--status", type=_whole(0, 255), default=0, metavar="N",
                        help="command: its exit status of success (default 0)")
    parser.add_argument("--timeout", type=_seconds, default=launcher.TIMEOUT_S, metavar="SECONDS",
                        help=f"command: the longest run (default {launcher.TIMEOUT_S})")
    parser.add_argument("--name", type=_stem, default="report",
                        help="report: name of the written files")
    parser.add_argument("--readme", action="store_true",
                        help="report: also write the table into README.md, between its marks")
    return parser


def parse(root, words):
    """The options of a command line; ends the program with one line and status 2 if they are
    wrong."""
    parser = _parser()
    place = words.index("--") if "--" in words else len(words)
    # The type of a positional word is not argparse's to guess: only options are options.
    options = parser.parse_args(words[:place])
    options.program = words[place + 1:]
    if place < len(words):
        if not options.program or options.words:
            parser.error("-- is followed by a program, and nothing else comes before it")
        options.words = ["program"]
    options.command, *options.words = options.words or ["run"]
    if options.command not in WORDS:
        parser.error(f"there is no command '{options.command}' (a program of yours comes after "
                     "--)")
    if len(options.words) not in WORDS[options.command]:
        parser.error("expected nothing, -- CMD ARGS, compare A B, or report [SESSION]")
    _refuse_without_effect(parser, options)
    # ./hak has gone to the root; what was typed is seen from where it was called.
    options.folder = Path(os.environ.get("HAK_FOLDER") or os.getcwd())
    options.allocators = [_seen_from(options.folder, root, name) for name in options.allocators] \
        if options.allocators else options.allocators
    if options.command == "compare":
        options.words = [_seen_from(options.folder, root, name) for name in options.words]
    _check_allocators(parser, options, root)
    if options.command == "compare" and len(set(options.words)) == 1:
        parser.error("compare: name two allocators (the noise is measured anyway)")
    options.into = options.folder / options.into if options.into else None
    if options.mimalloc_bench:
        options.mimalloc_bench = (options.folder / options.mimalloc_bench).resolve()
    if options.readme and options.into and not options.into.resolve().is_relative_to(root):
        parser.error("--readme: the page must be in this folder for README.md to link to it")
    return options


def _seen_from(folder, root, name):
    """An allocator NAME.so as the root sees it, if the file is in the caller's folder."""
    file, mark, settings = name.partition("@")
    is_there = file.endswith(".so") and folder.resolve() != root.resolve() \
        and (folder / file).exists()
    return f"{(folder / file).resolve()}{mark}{settings}" if is_there else name


def _refuse_without_effect(parser, options):
    for name, commands in BELONGS.items():
        if getattr(options, name) == parser.get_default(name):
            continue
        shown = f"--{name.replace('_', '-')}"
        if options.command not in commands:
            parser.error(f"{shown} goes with {' or '.join(SHOWN[one] for one in commands)}")
        if options.resume is not None and name in RESUMED:
            parser.error(f"--resume: the session has its own {shown}")


def _check_allocators(parser, options, root):
    """Names that are nobody's are wrong; whether an allocator can be had is asked later."""
    try:
        for name in options.allocators or ():
            peers.known(root, name)
        if options.allocators:
            peers.check_first(options.allocators)
    except peers.PeerError as error:
        parser.error(f"--allocators: {error}")
