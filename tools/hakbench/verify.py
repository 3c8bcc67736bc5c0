# SPDX-License-Identifier: MIT
"""The proof that the named allocator served a program: without it there is no number.

The loader is asked which library each symbol was bound to; hakmem is also asked itself.
"""
import re
import tempfile
from pathlib import Path

from . import counters, launcher

SYMBOLS = ("malloc", "free")
BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `(\w+)'")
LIBC = re.compile(r"^libc(\.so\.6|-.*\.so)$")


class WrongAllocator(Exception):
    """Another library than the expected one served the program."""


def bindings(root, words, variables):
    """{symbol: the library that the program's own use of it was bound to}."""
    with tempfile.TemporaryDirectory(prefix="hakbench-") as folder:
        debug = {"LD_DEBUG": "bindings", "LD_BIND_NOW": "1", "LD_DEBUG_OUTPUT": f"{folder}/loader"}
        launcher.run(root, words, variables | debug)
        text = "".join(path.read_text(encoding="utf-8", errors="replace")
                       for path in sorted(Path(folder).glob("loader.*")))
    program = Path(words[0]).name
    return {symbol: library for file, library, symbol in BINDING.findall(text)
            if Path(file).name == program}


def check(root, case, peer):
    """Raises WrongAllocator unless the peer serves the case; returns the proof in words."""
    words = case.check_words()
    bound = bindings(root, words, peer.variables())
    for symbol in SYMBOLS:
        library = bound.get(symbol)
        if not library or not _is_expected(library, peer):
            raise WrongAllocator(f"{case.name}: {symbol} is bound to "
                                 f"{Path(library).name if library else 'nothing'}, not to "
                                 f"{peer.library.name if peer.library else 'libc'} ({peer.name})")
    proof = f"{' and '.join(SYMBOLS)} bound to {Path(bound['malloc']).name}"
    if peer.library and peer.library.name == "libhakmem.so":
        proof += _own_counter(root, words, peer)
    return proof


def _is_expected(library, peer):
    if peer.library is None:
        return bool(LIBC.match(Path(library).name))
    return Path(library).resolve() == peer.library.resolve()


def _own_counter(root, words, peer):
    """What hakmem itself counted: nothing may have gone to another allocator."""
    with tempfile.NamedTemporaryFile(prefix="hakbench-") as file:
        launcher.run(root, words, peer.variables() | counters.environment(file.name))
        counted = counters.parse(Path(file.name).read_text(encoding="utf-8", errors="replace"))
    if "fallback" not in counted:
        return "; own statistics not available"
    if counted["fallback"]:
        raise WrongAllocator(f"{counted['fallback']} requests fell back to another allocator")
    return "; own counter: 0 requests elsewhere"
