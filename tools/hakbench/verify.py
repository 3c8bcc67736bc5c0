# SPDX-License-Identifier: MIT
"""The proof that the named allocator served a program: without it there is no number.

Each run looks for the library among the mappings (bench/launch). Before that, once for each program
and allocator, the loader is asked which library each symbol was bound to, and hakmem itself.
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


def environment(case, peer):
    """The variables that put a case on an allocator."""
    if not case.script:
        return peer.variables()
    library = str(peer.library) if peer.library else ""
    # A script sets LD_PRELOAD itself, for the measured program only.
    return peer.environment | {"BENCH_PRELOAD": library}


def bindings(root, case, peer):
    """{program: {symbol: the library that the program's own use of it was bound to}}."""
    with tempfile.TemporaryDirectory(prefix="hakbench-") as folder:
        debug = {"LD_DEBUG": "bindings", "LD_BIND_NOW": "1", "LD_DEBUG_OUTPUT": f"{folder}/loader"}
        launcher.run(root, case.tiny_words(), environment(case, peer) | debug)
        text = "".join(path.read_text(encoding="utf-8", errors="replace")
                       for path in sorted(Path(folder).glob("loader.*")))
    found = {}
    for file, library, symbol in BINDING.findall(text):
        if symbol in SYMBOLS:
            found.setdefault(file, {})[symbol] = library
    return found


def check(root, case, peer):
    """Raises WrongAllocator unless the peer serves the case; returns the proof in words."""
    found = bindings(root, case, peer)
    if case.script:
        proof = _prove_script(case, peer, found)
    else:
        name = Path(case.tiny_words()[0]).name
        bound = next((symbols for file, symbols in found.items() if Path(file).name == name), {})
        proof = _prove(case, peer, bound)
    if peer.library and peer.library.name.startswith("libhakmem"):
        proof += _own_counter(root, case, peer)
    return proof


def check_run(peer, done):
    """Raises WrongAllocator if a run was seen without the library."""
    if done.served is False:
        raise WrongAllocator(f"{expected_name(peer)} is not mapped into the program")


def expected_name(peer):
    return peer.library.name if peer.library else "libc"


def mapped_end(peer):
    """How the path of the library ends among the mappings."""
    return str(peer.library.resolve()) if peer.library else "/libc.so.6"


def _prove(case, peer, bound):
    for symbol in SYMBOLS:
        library = bound.get(symbol)
        if not library or not _is_expected(library, peer):
            raise WrongAllocator(f"{case.name}: {symbol} is bound to "
                                 f"{Path(library).name if library else 'nothing'}, not to "
                                 f"{expected_name(peer)} ({peer.name})")
    return f"{' and '.join(SYMBOLS)} bound to {Path(bound['malloc']).name}"


def _prove_script(case, peer, found):
    """One program of the script, or a library of it, uses the peer; under `system` none uses
    anything but libc."""
    uses = [(Path(file).name, bound["malloc"]) for file, bound in found.items()
            if "malloc" in bound]
    good = [file for file, library in uses if _is_expected(library, peer)]
    if peer.library is None:
        other = [f"{file} uses {Path(library).name}" for file, library in uses
                 if not _is_expected(library, peer)]
        if other:
            raise WrongAllocator(f"{case.name}: {other[0]}, not libc")
    if not good:
        raise WrongAllocator(f"{case.name}: no malloc is bound to {expected_name(peer)} "
                             f"({peer.name})")
    return f"malloc of {good[0]} and {len(good) - 1} other files bound to {expected_name(peer)}"


def _is_expected(library, peer):
    if peer.library is None:
        return bool(LIBC.match(Path(library).name))
    return Path(library).resolve() == peer.library.resolve()


def _own_counter(root, case, peer):
    """What hakmem itself counted: it served, and nothing went to another allocator."""
    with tempfile.NamedTemporaryFile(prefix="hakbench-") as file:
        launcher.run(root, case.tiny_words(),
                     environment(case, peer) | counters.environment(file.name))
        counted = counters.parse(Path(file.name).read_text(encoding="utf-8", errors="replace"))
    if "fallback" not in counted:
        return "; own statistics not available"
    if counted["fallback"]:
        raise WrongAllocator(f"{counted['fallback']} requests fell back to another allocator")
    if not counted.get("window_committed_bytes", 1):
        raise WrongAllocator("hakmem says that it served nothing")
    return "; own counter: 0 requests elsewhere"
